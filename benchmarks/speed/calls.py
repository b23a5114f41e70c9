"""How often is F fitted and asked, and how many rows is it asked about, in one fold?

    python -m benchmarks.speed.calls
    python -m benchmarks.speed.calls --table adult.data --target 14 --settings '{"seed": 1}'

A model in a table's context pays for its context with every call, and a service for every row, so
both are counted, by stage. F is scikit-learn's extremely randomised trees, which writes down what
it is asked. The table is simulated unless one is given, of which 4,000 rows are drawn; no header is
expected of a file that ends in ``.data``. ``--json`` prints the counts as one JSON line.

``--per-call`` and ``--per-row`` are what a call and a row cost, in seconds. The default is what was
measured of TabFM with 40,000 rows of context on an RTX 5090 (its issue 60): 25 s and 1.4 ms.
"""

from __future__ import annotations

import argparse
import json
import operator
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from benchmarks.speed.whole import simulate

#: What a call of F was: its stage, "fit" or "ask", and the number of rows.
LOG: list[tuple[str, str, int]] = []
#: The stage that the fold is in, as the progress bar would show it.
_stage = ["before the fold"]

ROWS, COLUMNS = 4000, 16
#: Seconds of a call and of a row: TabFM, issue 60.
PER_CALL, PER_ROW = 25.0, 0.0014


class _Counts:
    """Writes down every fit and every question."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        LOG.append((_stage[0], "fit", len(X)))
        return super().fit(X, y, sample_weight)

    def _asked(self, X: Any) -> None:
        LOG.append((_stage[0], "ask", len(X)))


class CountingClassifier(_Counts, ExtraTreesClassifier):
    """Trees that are asked for probabilities."""

    def predict_proba(self, X: Any) -> Any:
        self._asked(X)
        return super().predict_proba(X)


class CountingRegressor(_Counts, ExtraTreesRegressor):
    """Trees that are asked for numbers."""

    def predict(self, X: Any) -> Any:
        self._asked(X)
        return super().predict(X)


def count(
    table: pd.DataFrame, target: str, settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Harden one fold with a counting F; return its counts, by stage and together.

    Parameters
    ----------
    table : DataFrame
    target : str
        A column; numbers make a regression.
    settings : dict, optional
        Layers of the configuration, beside the defaults.
    """
    from amlb_ext.core.config import build_config
    from amlb_ext.core.progress import listening
    from amlb_ext.hardening.split import split_task
    from amlb_ext.pipeline.folds import harden_calibrated
    from amlb_ext.sources import open_specs

    is_regression = pd.api.types.is_numeric_dtype(table[target])
    family = "Regressor" if is_regression else "Classifier"
    layers = dict(settings or {})
    layers["source"] = {"target": target}
    baseline = {"model": f"{__name__}.Counting{family}", "encoding": "ordinal"}
    layers["baseline"] = {**baseline, **layers.get("baseline", {})}
    config = build_config(layers)
    LOG.clear()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table.to_csv(path, index=False)
        [lazy] = open_specs([str(path)], config.source)
        task = split_task(lazy.load(), config.split, config.seed)
        with listening(partial(operator.setitem, _stage, 0)):
            [hard] = harden_calibrated((task,), 0, config)
    return {**_add_up(), "summary": hard.summary}


def _add_up() -> dict[str, Any]:
    """Return fits, calls and rows, by stage and together."""
    stages: dict[str, dict[str, int]] = {}
    for stage, event, rows in LOG:
        counts = stages.setdefault(stage, {"fits": 0, "calls": 0, "rows": 0})
        if event == "fit":
            counts["fits"] += 1
        else:
            counts["calls"] += 1
            counts["rows"] += rows
    together = {
        name: sum(counts[name] for counts in stages.values())
        for name in ("fits", "calls", "rows")
    }
    return {"stages": stages, **together}


def read_table(path: Path | None, target: str, rows: int = ROWS) -> pd.DataFrame:
    """Return the table that is given, or a simulated one with classes."""
    if path is None:
        return simulate(rows, COLUMNS, "binary", seed=0)
    header = None if path.suffix == ".data" else "infer"
    table = pd.read_csv(path, header=header, skipinitialspace=True, na_values="?")
    table = table.set_axis([str(name) for name in table.columns], axis=1)
    if header is None:
        columns = {str(j): f"x{j}" for j in range(table.shape[1])}
        table = table.rename(columns={**columns, target: target})
    if len(table) > rows:
        table = table.sample(rows, random_state=0)
    return table


def print_counts(counts: dict[str, Any], per_call: float, per_row: float) -> None:
    """Print the counts as a table, with what they would cost."""
    print(f"{'stage':60} {'fits':>5} {'calls':>6} {'rows':>9} {'hours':>6}")
    for stage, of_stage in {**counts["stages"], "together": counts}.items():
        hours = (of_stage["calls"] * per_call + of_stage["rows"] * per_row) / 3600
        print(
            f"{stage:60} {of_stage['fits']:5d} {of_stage['calls']:6,d} "
            f"{of_stage['rows']:9,d} {hours:6.2f}"
        )


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--target", default="y")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--per-call", type=float, default=PER_CALL)
    parser.add_argument("--per-row", type=float, default=PER_ROW)
    parser.add_argument("--summary", action="store_true", help="print the fold's, too")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    table = read_table(arguments.table, arguments.target, arguments.rows)
    counts = count(table, arguments.target, arguments.settings)
    summary = counts.pop("summary")
    if arguments.summary:
        print(json.dumps(summary, indent=1))
    if arguments.json:
        print(json.dumps(counts))
    else:
        print_counts(counts, arguments.per_call, arguments.per_row)


if __name__ == "__main__":
    # under its own name, by which F is imported
    from benchmarks.speed import calls

    calls.main()
