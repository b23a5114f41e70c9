"""Results of ours in the form AMLB gives them: a run's folder with scores and predictions."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext import __version__
from amlb_ext.core.atomic import write_file, write_text

#: Stands where AMLB names the constraint: no limit of time was set.
CONSTRAINT = "score"


class Written:
    """Runs being written, one for each framework.

    Parameters
    ----------
    outdir : Path
        What AMLB is given as ``-o``.
    benchmark : str
    """

    def __init__(self, outdir: Path, benchmark: str) -> None:
        self.outdir, self.benchmark = outdir, benchmark
        self.stamp = time.strftime("%Y%m%dT%H%M%S")
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def run_dir(self, framework: str) -> Path:
        """Return the folder of a framework's run."""
        name = ".".join([framework, self.benchmark, CONSTRAINT, "local"]).lower()
        return self.outdir / f"{name}.{self.stamp}"

    def add(self, row: Mapping[str, Any], predictions: pd.DataFrame) -> None:
        """Write one job's predictions and keep its score.

        Parameters
        ----------
        row : mapping
            ``amlb_task``, ``amlb_fold``, ``framework``, ``type``, ``metric``, ``loss``.
        predictions : DataFrame
            As :func:`amlb_ext.runner.read_predictions` reads it.
        """
        framework, task, fold = str(row["framework"]), str(row["amlb_task"]), row["amlb_fold"]
        folder = self.run_dir(framework) / "predictions" / task / str(fold)
        write_file(
            folder / "predictions.csv",
            lambda part: predictions.to_csv(part, index=False, lineterminator="\n"),
        )
        about = {"framework": framework, "framework_version": __version__, "name": task,
                 "fold": fold, "type_": row["type"]}  # fmt: skip
        write_text(folder / "metadata.json", json.dumps(about, indent=1) + "\n")
        self.rows.setdefault(framework, []).append(
            {
                "id": task,
                "task": task,
                "framework": framework,
                "constraint": CONSTRAINT,
                "fold": fold,
                "type": row["type"],
                "result": -float(row["loss"]),
                "metric": f"neg_{row['metric']}",
                "mode": "local",
                "version": __version__,
                "params": "",
                "app_version": f"hardsynth {__version__}",
                "utc": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
                "info": "",
                row["metric"]: float(row["loss"]),
            }
        )

    def finish(self) -> None:
        """Write the scores; a run without them is unfinished."""
        for framework, rows in self.rows.items():
            table = pd.DataFrame(rows).sort_values(["task", "fold"])
            write_file(
                self.run_dir(framework) / "scores" / "results.csv",
                partial(table.to_csv, index=False, lineterminator="\n"),
            )
