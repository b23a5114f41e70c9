"""What AMLB wrote: scores and predictions, and predictions joined to where their rows come from.

Layout, from ``amlb/results.py`` and ``amlb/resources.py`` of AMLB v2.1.7::

    OUT/results.csv                            all runs, appended
    OUT/<run>/scores/results.csv               one run
    OUT/<run>/predictions/<task>/<fold>/predictions.csv, metadata.json

AMLB before 2.0 had ``scores/<framework>_benchmark_<benchmark>.csv`` and
``predictions/<framework>_<task>_<fold>.csv``, which are read as well.

``predictions.csv`` has no row id: row i is row i of the test file. :func:`join_predictions`
therefore goes by position and demands that ``truth`` agrees.
"""

from __future__ import annotations

import glob
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import reads_as_missing
from amlb_ext.core.errors import RunError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.numbers import are_rounded
from amlb_ext.core.version import __version__
from amlb_ext.runner.run_folder import is_running, make_run_dir

#: Columns of ``results.csv`` that are no numbers.
TEXT = {
    "id",
    "task",
    "framework",
    "constraint",
    "type",
    "metric",
    "mode",
    "version",
    "params",
    "app_version",
    "utc",
    "info",
    "run",
}


#: Columns of a file of predictions that are no probabilities of a class.
NO_CLASSES = ("predictions", "truth")


def predictions_path(run_dir: Path, task: str, fold: int) -> Path:
    """Return where a run keeps one fold's predictions."""
    path = run_dir / "predictions" / task / str(fold) / "predictions.csv"
    if path.is_file():
        return path
    # AMLB before 2.0, whose runs have the framework in their name, too
    ending = f"_{task}_{fold}.csv"
    former = [
        file
        for file in run_dir.glob(f"predictions/*{glob.escape(ending)}")
        if f"{file.name.removesuffix(ending)}_" in run_dir.name
    ]
    return former[0] if len(former) == 1 else path


@dataclass(frozen=True, kw_only=True)
class PredictionFile:
    """One fold's predictions.

    Attributes
    ----------
    run_dir : Path
        The run's folder below AMLB's output directory.
    framework, task : str
    fold : int
    path : Path
    """

    run_dir: Path
    framework: str
    task: str
    fold: int
    path: Path


class NoScoresError(RunError):
    """A folder has no file of scores, as a run that was killed leaves it."""


def read_results(*outdirs: Path | str) -> pd.DataFrame:
    """Read the scores of AMLB's output folders, or of single runs in them.

    Parameters
    ----------
    *outdirs : path
        Output folders (``-o``) or run folders. Every run below is read; the appended
        ``results.csv`` only where no run's own scores are left.

    Returns
    -------
    DataFrame
        One line per job, as in ``results.csv`` (numbers as float, ``fold`` as int, the rest as
        text), with ``run``, the run's folder. A job that AMLB could not load has no line.

    Raises
    ------
    RunError
        No folder, or no scores in it.
    """
    frames = []
    for outdir in map(Path, outdirs):
        has_runs = False
        for run_dir in _run_dirs(outdir):
            scores = run_dir / "scores" / "results.csv"
            # AMLB before 2.0 named the benchmark
            former = sorted(run_dir.glob("scores/*_benchmark_*.csv"))
            for path in [scores] if scores.is_file() else former[:1]:
                # an empty one belongs to a run that begins to write it, or was killed then
                if path.stat().st_size:
                    frames.append(_read_scores(path, str(run_dir)))
                    has_runs = True
        if has_runs:
            # The appended file has the same rows again, without their runs.
            continue
        if (outdir / "results.csv").is_file():
            frames.append(_read_scores(outdir / "results.csv", str(outdir)))
        else:
            raise NoScoresError(
                f"{outdir} holds no AMLB results",
                "give the folder that AMLB wrote into (-o)",
            )
    return pd.concat(frames, ignore_index=True)


def _run_dirs(outdir: Path) -> list[Path]:
    """Return the folders that may be runs: the given one, and those in it."""
    if not outdir.is_dir():
        raise RunError(
            f"there is no folder {outdir}", "give the folder that AMLB wrote into (-o)"
        )
    return [outdir, *sorted(path for path in outdir.iterdir() if path.is_dir())]


def _read_scores(path: Path, run: str) -> pd.DataFrame:
    """Read a table of scores; ``run`` is the folder that it belongs to."""
    frame = _read_csv(path)
    for name in ("task", "fold", "framework", "result"):
        if name not in frame.columns:
            raise RunError(
                f"{path} is no results file of AMLB, it has no column {name!r}",
                "write it as AMLB does: commas, UTF-8, one head; or move its run elsewhere",
            )
    # whoever joined files may have left floats
    frame["fold"] = frame["fold"].str.removesuffix(".0")
    is_fold = frame["fold"].fillna("").str.fullmatch(r"\d{1,9}")
    if not is_fold.all():
        # the first line is the head
        line = int((~is_fold).to_numpy().argmax()) + 2
        raise RunError(
            f"{path} was cut off or damaged: line {line} has no number of a fold",
            "run it again, or move the run elsewhere",
        )
    for name in frame.columns:
        if name == "fold":
            frame[name] = frame[name].astype("int64")
        elif name not in TEXT:
            numbers = _read_numbers(frame[name])
            # of a file without rows the answers have no type
            is_missing = frame[name].fillna("").map(reads_as_missing).astype(bool)
            unread = np.flatnonzero(numbers.isna() & ~is_missing)
            if name == "result" and len(unread):
                line = int(unread[0])
                raise RunError(
                    f"{path}, line {line + 2}: the column 'result' holds "
                    f"{frame[name].iloc[line][:60]!r}, which is no number",
                    "write it with a decimal point, and nothing where a job failed",
                )
            frame[name] = numbers
    frame["run"] = run
    return frame


def find_predictions(outdir: Path | str) -> Iterator[PredictionFile]:
    """Yield all predictions below an output folder or a run's folder, in order of path.

    Of a run that is going on, those of jobs that have been scored: others may be half written.
    """
    for run_dir in _run_dirs(Path(outdir)):
        scored = None
        if is_running(run_dir):
            scored = set()
            with suppress(RunError):
                rows = read_results(run_dir)
                scored = set(zip(rows["task"], rows["fold"], strict=True))
        for path in sorted(run_dir.glob("predictions/*/*/predictions.csv")):
            fold_dir = path.parent
            if not fold_dir.name.isdecimal():
                continue
            if scored is None or (fold_dir.parent.name, int(fold_dir.name)) in scored:
                yield PredictionFile(
                    run_dir=run_dir,
                    # a folder's name is in lower case, but better than nothing
                    framework=_framework_name(fold_dir) or run_dir.name.split(".")[0],
                    task=fold_dir.parent.name,
                    fold=int(fold_dir.name),
                    path=path,
                )


def _framework_name(fold_dir: Path) -> str:
    """Return the framework of a fold's predictions, by AMLB's notes beside them; else nothing."""
    try:
        text = (fold_dir / "metadata.json").read_text(encoding="utf-8")
        return str(json.loads(text)["framework"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def read_predictions(
    run_dir: Path | str,
    task: str,
    fold: int,
    *,
    framework: str = "",
    has_classes: bool | None = None,
) -> pd.DataFrame:
    """Read one fold's predictions.

    Parameters
    ----------
    run_dir : path
    task : str
    fold : int
    framework : str
        Whose predictions are wanted, by AMLB's name of it; anybody's when omitted.
    has_classes : bool, optional
        Whether the task has classes, since a file of labels alone looks like one of numbers; told
        by the columns when omitted.

    Returns
    -------
    DataFrame
        Row i belongs to row i of the test file. Classes: one float column per label in the
        order of their text, then ``predictions`` and ``truth`` as text. Regression: the last
        two alone, as float.

    Raises
    ------
    RunError
        No such file, one of another shape, or one of another framework.
    """
    path = predictions_path(Path(run_dir), task, fold)
    if not path.is_file():
        raise RunError(
            f"{run_dir} holds no predictions of fold {fold} of {task}",
            "run that fold again; its log says why it has none",
        )
    # AMLB takes the name in its scores from these notes, so others were copied here; folders and
    # their names differ in case
    noted = _framework_name(path.parent)
    if framework and noted and noted.lower() != framework.lower():
        raise RunError(
            f"the predictions are those of {noted[:60]}, by the metadata.json beside them, and the "
            f"scores those of {framework}",
            "run that fold again, or put its own predictions back",
        )
    frame = _read_csv(path)
    for name in NO_CLASSES:
        if name not in frame.columns:
            raise RunError(f"{path} has no column {name!r}", "run that fold again")
    if has_classes is None:
        # Beside the two there are probabilities of classes, or a time series' quantiles.
        is_time_series = "repeated_item_id" in frame.columns
        has_classes = len(frame.columns) > 2 and not is_time_series
    for name in frame.columns:
        is_label = has_classes and name in NO_CLASSES
        if not is_label:
            frame[name] = _read_numbers(frame[name])
    return frame


def _read_numbers(texts: pd.Series) -> pd.Series:
    """Return texts as floats; NaN for those that are no numbers, e.g. an empty result."""
    return pd.to_numeric(texts, errors="coerce").astype("float64")


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a table as text, so that a label like ``NA`` or ``007`` stays as it is."""
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read {path}: {error}", "run that fold again") from None


class RowsDifferError(RunError):
    """Predictions are of other rows: another number of them, or another truth."""


def join_predictions(
    predictions: pd.DataFrame,
    provenance: pd.DataFrame,
    truth: Sequence[object] | pd.Series,
) -> pd.DataFrame:
    """Put predictions beside the provenance of their rows.

    Parameters
    ----------
    predictions : DataFrame
        As :func:`read_predictions` gives it.
    provenance : DataFrame
        One line per line of the test file.
    truth : sequence
        The target column of the test file. Labels may differ in case and surrounding space
        (AMLB's encoded frameworks write them so), numbers by a relative 1e-6 (float32).

    Returns
    -------
    DataFrame
        The columns of ``provenance``, then those of ``predictions``.

    Raises
    ------
    RunError
        A name in both.
    RowsDifferError
        Other lengths, or a row whose truth differs; the first is named.

    Examples
    --------
    >>> predictions = pd.DataFrame({"predictions": [1.0, 2.5], "truth": [1.0, 2.0]})
    >>> provenance = pd.DataFrame({"origin": ["bad", "synthetic"]})
    >>> join_predictions(predictions, provenance, [1.0, 2.0])["origin"].tolist()
    ['bad', 'synthetic']
    >>> join_predictions(predictions, provenance, [1.0, 3.0])
    Traceback (most recent call last):
    ...
    amlb_ext.runner.results.RowsDifferError: row 1 of the predictions is not row 1 of the test \
file: its truth is 2.0, the test file has 3.0 (these results belong to another suite, or lack \
rows; run it again)
    """
    remedy = "these results belong to another suite, or lack rows; run it again"
    counts = {
        "predictions": len(predictions),
        "rows in the test file": len(truth),
        "rows of provenance": len(provenance),
    }
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{count} {what}" for what, count in counts.items())
        raise RowsDifferError(f"rows cannot be joined: {sizes}", remedy)
    doubled = sorted(set(predictions.columns) & set(provenance.columns))
    if doubled:
        raise RunError(
            f"both tables have a column {doubled[0]!r}", "rename it in the provenance"
        )
    predicted_truth = predictions["truth"]
    true_values = pd.Series(list(truth), dtype=object)
    if pd.api.types.is_float_dtype(predicted_truth):
        numbers = predicted_truth.to_numpy(dtype=float)
        wanted = pd.to_numeric(true_values, errors="coerce").to_numpy(dtype=float)
        differs = ~are_rounded(numbers, wanted)
    else:
        # AMLB's encoded frameworks write labels stripped and in lower case
        differs = _normalize_labels(predicted_truth) != _normalize_labels(true_values)
    if differs.any():
        row = int(np.flatnonzero(differs)[0])
        raise RowsDifferError(
            f"row {row} of the predictions is not row {row} of the test file: its truth is "
            f"{predicted_truth.iloc[row]}, the test file has {true_values.iloc[row]}",
            remedy,
        )
    tables = [provenance.reset_index(drop=True), predictions.reset_index(drop=True)]
    return pd.concat(tables, axis=1)


def _normalize_labels(labels: pd.Series) -> np.ndarray:
    return labels.astype(str).str.strip().str.lower().to_numpy()


# Results of ours in the form AMLB gives them: a run's folder with scores and predictions.

#: Stands where AMLB names the constraint: no time limit applied.
CONSTRAINT = "score"


class RunWriter:
    """Runs being written, one for each framework.

    Parameters
    ----------
    outdir : Path
        What AMLB is given as ``-o``.
    benchmark : str
    """

    def __init__(self, outdir: Path, benchmark: str) -> None:
        self.outdir = outdir
        self.benchmark = benchmark
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self._run_dirs: dict[str, Path] = {}

    def run_dir(self, framework: str) -> Path:
        """Return the folder of a framework's run."""
        if framework not in self._run_dirs:
            # Named as AMLB names runs, so that what reads its folders reads these.
            name = ".".join([framework, self.benchmark, CONSTRAINT, "local"]).lower()
            self._run_dirs[framework] = make_run_dir(self.outdir, name)
        return self._run_dirs[framework]

    def add(self, row: Mapping[str, Any], predictions: pd.DataFrame) -> None:
        """Write one job's predictions and keep its score.

        Parameters
        ----------
        row : mapping
            ``amlb_task``, ``amlb_fold``, ``framework``, ``type``, ``metric``, ``loss``.
        predictions : DataFrame
            As :func:`amlb_ext.runner.read_predictions` reads it.
        """
        framework = str(row["framework"])
        task = str(row["amlb_task"])
        fold = row["amlb_fold"]
        path = predictions_path(self.run_dir(framework), task, fold)
        write_file(
            path,
            partial(predictions.to_csv, index=False, lineterminator="\n"),
        )
        metadata = {
            "framework": framework,
            "framework_version": __version__,
            "name": task,
            "fold": fold,
            "type_": row["type"],
        }
        notes = path.with_name("metadata.json")
        write_text(notes, json.dumps(metadata, indent=1) + "\n")
        score = {
            "id": task,
            "task": task,
            "framework": framework,
            "constraint": CONSTRAINT,
            "fold": fold,
            "type": row["type"],
            # AMLB's results are larger for better models, hence the sign and the name.
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
        self.rows.setdefault(framework, []).append(score)

    def finish(self) -> None:
        """Write the scores; a run without them is unfinished."""
        for framework, rows in self.rows.items():
            table = pd.DataFrame(rows).sort_values(["task", "fold"])
            write_file(
                self.run_dir(framework) / "scores" / "results.csv",
                partial(table.to_csv, index=False, lineterminator="\n"),
            )
