"""Predictions of a suite's test rows from a file of the user's, in place of runs of AMLB.

One row for each row of the test files that are predicted, in any order. What its columns are is
told in ``docs/how-to/predictions.md``. The file is held against the suite before anything is
computed: rows that do not fit are an error in one line.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.coding import Coding
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import (
    ConfigError,
    ModelError,
    RunError,
    SourceError,
    suggest_nearest,
)
from amlb_ext.core.paths import check_predictions_file
from amlb_ext.models.answers import Labels
from amlb_ext.models.columns import list_names
from amlb_ext.models.predictions import (
    SCORE_COLUMN,
    check_order,
    check_whose_score,
    interpret_predictions,
    with_points,
)
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.predictions import job_table, read_target
from amlb_ext.runner import join_predictions
from amlb_ext.sources.read_table import CsvFormat, read_table
from amlb_ext.suite import SuiteFiles, amlb_name

#: Folder of predictions beside the results of what runs on a suite outside AMLB.
PREDICTIONS_FOLDER = "hardsynth_predictions"
#: Name the rows; every file has them.
KEY_COLUMNS = ("task", "fold", "row")
#: The target of each row, as a check that the rows are the suite's; may be left out.
TRUTH_COLUMN = "truth"
#: The number that is predicted; of classes the class that is named, which may be left out.
PREDICTION_COLUMN = "prediction"
#: Stands before a class in its column's name where the class has the name of another column.
CLASS_PREFIX = "class="
#: Stands where AMLB names the constraint of a job.
CONSTRAINT = "predictions"
#: Read as the file writes them: a class may be called 007.
_TEXTS = frozenset({"task", TRUTH_COLUMN, PREDICTION_COLUMN})
#: Columns that have a meaning of their own.
_RESERVED = frozenset({*KEY_COLUMNS, *_TEXTS, "score"})


def class_column(label: str) -> str:
    """Return the name of the column with the probability of a class.

    Examples
    --------
    >>> class_column("yes"), class_column("row")
    ('yes', 'class=row')
    """
    return f"{CLASS_PREFIX}{label}" if label in _RESERVED else label


def read_given_predictions(
    suite: SuiteFiles, files: Mapping[str, Path]
) -> tuple[pd.DataFrame, dict[tuple[str, str, int], pd.DataFrame]]:
    """Read files of predictions and hold each of their rows against the suite.

    Parameters
    ----------
    suite : SuiteFiles
    files : mapping of str to path
        By the name that stands in the report.

    Returns
    -------
    jobs : DataFrame
        As :attr:`amlb_ext.runner.jobs.JobTable.table`; all jobs are scored.
    tables : dict of (str, str, int) to DataFrame
        By framework, AMLB task and AMLB's fold, in the form in which AMLB writes predictions; as
        :func:`amlb_ext.runner.results.read_predictions` gives them.

    Raises
    ------
    ModelError
        A file that cannot be read, rows that are not the suite's or lack, values that are no
        numbers or no probabilities; the first such row is named.
    ConfigError
        The name of F or of a control of F.
    """
    tables: dict[tuple[str, str, int], pd.DataFrame] = {}
    records = []
    for name, path in files.items():
        if name == "F" or is_control_framework(name):
            raise ConfigError(
                f"--predictions {name}: the name belongs to F or its controls",
                "write --predictions NAME=FILE with another name",
            )
        for (task, fold), table in _read_file(suite, Path(path)).items():
            tables[name, task, fold] = table
            records.append(
                {
                    "framework": name,
                    "name": name,
                    "constraint": CONSTRAINT,
                    "benchmark": suite.manifest.name,
                    "amlb_task": task,
                    "fold": fold,
                    "status": "scored",
                    "run": Path(path).name,
                }
            )
    return job_table(records), tables


def find_predictions(
    results: Sequence[str | Path], predictions: Mapping[str, Path]
) -> tuple[list[Path], dict[str, Path]]:
    """Return the folders that AMLB wrote, and all files of predictions by name.

    A folder of results with ``hardsynth_predictions/NAME.csv`` was written by
    ``run_tabarena.py``, not by AMLB.

    Raises
    ------
    ConfigError
        Two files of one name.
    RunError
        A folder of predictions without a file.

    Examples
    --------
    >>> find_predictions([], {"mine": Path("mine.csv")})
    ([], {'mine': PosixPath('mine.csv')})
    """
    of_amlb = []
    found = dict(predictions)
    for folder in map(Path, results):
        inside = folder / PREDICTIONS_FOLDER
        if not inside.is_dir():
            of_amlb.append(folder)
            continue
        files = sorted(inside.glob("*.csv"))
        if not files:
            raise RunError(
                f"{inside} holds no predictions",
                "run python run_tabarena.py in that folder's parent to its end",
            )
        for file in files:
            if file.stem in found:
                raise ConfigError(
                    f"predictions of {file.stem!r} are given twice: {found[file.stem]} and {file}",
                    "rename or leave out one of the files",
                )
            found[file.stem] = file
    return of_amlb, found


def _read_file(suite: SuiteFiles, path: Path) -> dict[tuple[str, int], pd.DataFrame]:
    """Return the predictions of a file by AMLB task and fold."""
    check_predictions_file(path)
    try:
        frame = read_table(path, CsvFormat(texts=_TEXTS)).frame
    except SourceError as error:
        raise ModelError(error.message, error.remedy) from error
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    for column in KEY_COLUMNS:
        if column not in frame:
            raise ModelError(
                f"{path.name} lacks the column {column!r} (it has "
                f"{list_names(frame.columns)})",
                "write task, fold and row beside each prediction: "
                "docs/how-to/predictions.md",
            )
    if frame.empty:
        raise ModelError(f"{path.name} has no rows", "write one row for each test row")
    tasks = list(dict.fromkeys(frame["task"].astype(str)))
    _check_tasks(suite, tasks, path.name)
    frame = frame.assign(
        task=frame["task"].astype(str),
        fold=_whole_numbers(frame, "fold", path.name),
        row=_whole_numbers(frame, "row", path.name),
    )
    _check_rows(suite, tasks, frame, path.name)
    tables = {}
    for (name, fold), rows in frame.sort_values("row").groupby(["task", "fold"]):
        coding = suite.coding(name)
        given = _GivenFold(
            file=path.name, place=f"fold {fold} of {name}", coding=coding
        )
        _, test_file = suite.pair(name, fold)
        truth = read_target(test_file, coding)
        rows = with_points(rows.reset_index(drop=True), Labels(coding.labels))
        tables[name, fold] = given.as_amlb_writes(rows, truth)
    return tables


def _check_tasks(suite: SuiteFiles, tasks: Sequence[str], file: str) -> None:
    """Raise for a task that the suite lacks, or whose untouched test folds are missing."""
    for task in tasks:
        if task not in suite.amlb_tasks:
            raise ModelError(
                f"{file} has predictions of {task!r}, and the suite has no such AMLB task",
                suggest_nearest(task, suite.amlb_tasks),
            )
    for task in tasks:
        full_name = amlb_name(suite.amlb_task(task).task, "full")
        if full_name not in tasks:
            raise ModelError(
                f"{file} has predictions of {task}, but none of {full_name}, where models are "
                "compared with F",
                f"add those of the test files of {full_name}",
            )


def _whole_numbers(frame: pd.DataFrame, column: str, file: str) -> pd.Series:
    """Return a column of whole numbers."""
    numbers = pd.to_numeric(frame[column], errors="coerce").astype(float)
    is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    if not is_whole.all():
        first = int(np.flatnonzero(~is_whole)[0])
        raise ModelError(
            f"{file} has {str(frame[column].iloc[first])!r} in the column {column!r}, "
            f"row {first} of the file",
            "give a whole number, counted from 0",
        )
    return numbers.astype("int64")


def _check_rows(
    suite: SuiteFiles, tasks: Sequence[str], frame: pd.DataFrame, file: str
) -> None:
    """Raise where the rows are not those of the test files, each once."""
    wanted = pd.MultiIndex.from_tuples(
        (task, fold, row)
        for task in tasks
        for fold, n_rows in enumerate(suite.amlb_task(task).test_rows)
        for row in range(n_rows)
    )
    given = pd.MultiIndex.from_frame(frame[list(KEY_COLUMNS)])
    problems = {
        "rows that the suite lacks": given[~given.isin(wanted)],
        "rows twice": given[given.duplicated()],
        "no prediction of some rows": wanted[~wanted.isin(given)],
    }
    for problem, rows in problems.items():
        if not len(rows):
            continue
        task, fold, row = rows[0]
        test_rows = suite.amlb_task(task).test_rows
        raise ModelError(
            f"{file} has {problem}, {format_count(len(rows), 'row')} in all; the first is row "
            f"{row} of fold {fold} of {task}",
            f"give one prediction for each test row: folds 0 to {len(test_rows) - 1}, rows from 0 "
            "in the order of the test file",
        )


@dataclass(frozen=True, kw_only=True)
class _GivenFold:
    """What a file predicts of the test rows of a fold; errors name ``file`` and ``place``."""

    file: str
    place: str
    coding: Coding

    def as_amlb_writes(self, rows: pd.DataFrame, truth: pd.Series) -> pd.DataFrame:
        """Return the predictions of a fold in the form in which AMLB writes them."""
        given_truth = truth
        if TRUTH_COLUMN in rows:
            given_truth = self._label_texts(rows[TRUTH_COLUMN])
        # a column of another task's classes is empty here
        values = rows.drop(columns=[*KEY_COLUMNS, TRUTH_COLUMN], errors="ignore")
        values = values.dropna(axis="columns", how="all")
        if self.coding.written_labels:
            table = self._class_predictions(values)
        else:
            numbers = values.apply(pd.to_numeric, errors="coerce")
            f = self._interpret(numbers, ())
            table = pd.DataFrame({"predictions": f})
            given_truth = pd.to_numeric(given_truth, errors="coerce").astype(float)
        table[TRUTH_COLUMN] = given_truth
        try:
            join_predictions(table, table[[]], truth)
        except RunError as error:
            raise ModelError(
                f"{self.file}, {self.place}: {error.message}",
                "these predictions are of other rows: predict the test files of this suite",
            ) from None
        return table

    def _class_predictions(self, values: pd.DataFrame) -> pd.DataFrame:
        """Return probabilities under the written labels, and the label that is named."""
        labels = self.coding.written_labels
        named = values.get(PREDICTION_COLUMN)
        columns = {class_column(label): label for label in labels}
        values = values.drop(columns=[PREDICTION_COLUMN], errors="ignore")
        if named is not None and not len(values.columns):
            # a model that names labels and gives no probabilities
            return self._named_labels(named)
        given: Any = values.rename(columns=columns)
        is_there = [column in values for column in columns]
        if all(is_there):
            # as an array: a class may be called score, which means something else in a file
            given = values[list(columns)].to_numpy()
        elif any(is_there):
            given = given.drop(columns=SCORE_COLUMN, errors="ignore")
        f = self._interpret(given, labels)
        table = pd.DataFrame(f, columns=list(labels))
        if named is None:
            most_probable = f.argmax(axis=1)
            table["predictions"] = [labels[code] for code in most_probable]
            return table
        texts = self._named_labels(named)["predictions"]
        name, known = f"{self.file}, {self.place}", Labels(labels)
        if isinstance(given, pd.DataFrame) and SCORE_COLUMN in given:
            check_whose_score(given[SCORE_COLUMN], named, known, name)
        check_order(f, known.codes(texts), name, has_names=True)
        return table.assign(predictions=texts)

    def _named_labels(self, named: pd.Series) -> pd.DataFrame:
        """Return the labels that are named, as the test file writes them, in their own table."""
        texts, labels = self._label_texts(named), self.coding.written_labels
        is_unknown = ~texts.isin(labels)
        if is_unknown.any():
            row = int(np.flatnonzero(is_unknown)[0])
            raise ModelError(
                f"{self.file}, row {row} of {self.place}: {str(named.iloc[row])!r} is no class of "
                "the task",
                f"the classes are {list_names(labels)}",
            )
        return pd.DataFrame({"predictions": texts.to_numpy()})

    def _label_texts(self, values: pd.Series) -> pd.Series:
        """Return values as text, as the test file has them: ``1`` for 1.0 and for True."""
        labels = Labels(self.coding.written_labels)
        codes = labels.codes(values)
        # the last is for what is no label, and stays as it is
        written = np.array([*labels.names, ""], dtype=object)[codes]
        return values.astype(str).where(codes < 0, pd.Series(written, values.index))

    def _interpret(self, given: Any, labels: Sequence[str]) -> np.ndarray:
        """Return what :func:`interpret_predictions` reads, naming the first bad row."""
        try:
            return interpret_predictions(
                given, Labels(labels), f"{self.file}, {self.place}"
            ).f
        except ModelError as error:
            # rows up to the first bad one are refused, rows before it are not
            row = bisect_left(
                range(len(given) - 1),
                True,
                key=lambda last: _is_refused(given, labels, slice(None, last + 1)),
            )
            # columns that lack are refused for every row, so the row is none to name
            if row == 0 and _is_refused(given, labels, slice(len(given) - 1, None)):
                raise error
            try:
                one_row = given[row : row + 1]
                interpret_predictions(
                    one_row, Labels(labels), f"{self.file}, row {row} of {self.place},"
                )
            except ModelError as of_row:
                raise of_row from None
            raise


def _is_refused(given: Any, labels: Sequence[str], rows: slice) -> bool:
    try:
        interpret_predictions(given[rows], Labels(labels), "")
    except ModelError:
        return True
    return False
