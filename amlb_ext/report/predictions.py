"""Test rows of an AMLB task, where each comes from, and what every framework predicted.

Notation
--------
n : rows of all folds together;  C : classes
y : (n,) truth, class codes or the target in its own unit
f : (n,) or (n, C) predictions, NaN where a framework has none
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.coding import Coding
from amlb_ext.amlb.safe_text import normalize_text
from amlb_ext.core import row_losses
from amlb_ext.core.errors import ModelError, RunError, SuiteError
from amlb_ext.core.task import Kind
from amlb_ext.models.columns import list_names
from amlb_ext.models.predictions import check_order
from amlb_ext.report.metrics import score_rows
from amlb_ext.runner import join_predictions
from amlb_ext.runner.agreement import (
    ComparedRows,
    Disagreement,
    find_disagreements,
    stored_refits,
)
from amlb_ext.runner.jobs import JOB_COLUMNS
from amlb_ext.runner.original_results import read_job_predictions
from amlb_ext.runner.results import NO_CLASSES
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.reader import stored_predictions
from amlb_ext.units.region import place_of_failure

#: By how much probabilities that were rounded may miss 1 in a row, those of many classes too.
_MOST_ROUNDED = 0.05


@dataclass(frozen=True, kw_only=True)
class TaskPredictions:
    """Rows of one AMLB task, and the predictions of every framework.

    Attributes
    ----------
    name, suffix : str
    kind : Kind
    labels : tuple of str
        Class labels in the task's order; empty for regression.
    rows : DataFrame of shape (n, p)
        ``fold`` (the source's number), ``amlb_fold`` (AMLB's), ``row`` (position in the test
        file), then the provenance.
    y : ndarray of shape (n,)
    low, span : ndarray of shape (n,)
        Smallest target of each row's training file, and its range; 0 and 1 for classes.
    f : dict of str to ndarray of shape (n,) or (n, C)
        Predictions by framework.
    chosen : dict of str to ndarray of shape (n,)
        The class each framework names, -1 where none; empty for regression.
    only_labels : set of str
        Frameworks that name classes and give no probabilities; theirs are 0 and 1.
    warnings : tuple of str
        What is wrong with predictions that are used all the same, each one sentence.
    """

    name: str
    suffix: str
    kind: Kind
    labels: tuple[str, ...]
    rows: pd.DataFrame
    y: np.ndarray
    low: np.ndarray
    span: np.ndarray
    f: dict[str, np.ndarray] = field(default_factory=dict)
    chosen: dict[str, np.ndarray] = field(default_factory=dict)
    only_labels: set[str] = field(default_factory=set)
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def scored(self, framework: str) -> np.ndarray:
        """Return which rows a framework predicted, bool of shape (n,)."""
        return has_prediction(self.f[framework])

    def loss(self, framework: str) -> np.ndarray:
        """Return Brier losses, or squared errors of the scaled target; NaN where none, (n,)."""
        return self.loss_of(self.f[framework])

    def loss_of(self, f: np.ndarray) -> np.ndarray:
        """Return the same of any predictions of these rows."""
        if f.ndim == 2:
            return row_losses.brier_loss(self.y, f)
        # On the scale of the training targets, or tasks could not be averaged.
        scaled_y = (self.y - self.low) / self.span
        scaled_f = (f - self.low) / self.span
        return row_losses.squared_error(scaled_y, scaled_f)

    def own(self) -> np.ndarray | None:
        """Return F's predictions as the provenance has them; None in suites that lack them."""
        return stored_predictions(self.rows, len(self.labels))

    def disagreements(self, framework: str) -> list[Disagreement]:
        """Return where a framework that is F disagrees with the F that the provenance keeps."""
        own = self.own()
        is_scored = self.scored(framework)
        if own is None or not is_scored.any():
            return []
        compared = ComparedRows(
            fold=self.rows["amlb_fold"].to_numpy(),
            f=self.f[framework],
            own=own,
            loss=self.loss(framework),
            loss_f=self.rows["loss"].to_numpy(dtype=float),
            null=stored_refits(self.rows),
            span=self.span,
        )
        return find_disagreements(self.name, compared.take(is_scored))


def has_prediction(f: np.ndarray) -> np.ndarray:
    """Return which rows of ``(n,)`` or ``(n, C)`` predictions are not NaN, bool of shape (n,)."""
    # A row's probabilities are all there or all missing: the first class stands for the others.
    if f.ndim == 2:
        f = f[:, 0]
    return ~np.isnan(f)


def job_table(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return jobs that were not read from AMLB's results of a suite of tables.

    Parameters
    ----------
    records : sequence of mapping
        Of some of :data:`amlb_ext.runner.jobs.JOB_COLUMNS`; the others are empty.

    Examples
    --------
    >>> job_table([{"framework": "a", "fold": 0}])[["framework", "constraint"]].values.tolist()
    [['a', '']]
    """
    texts = ("constraint", "version", "benchmark", "reason", "metric", "run")
    nothing = dict.fromkeys(texts, "") | {"original_task": "", "original_fold": -1}
    filled = [nothing | dict(record) for record in records]
    return pd.DataFrame(filled, columns=list(JOB_COLUMNS))


def row_clusters(rows: pd.DataFrame) -> np.ndarray:
    """Return what rows of a provenance depend on each other by, ``(n,)``.

    The group where the user named groups, else the source row, which several folds may
    hold.
    """
    column = "group" if "group" in rows else "source_row"
    return rows[column].to_numpy()


def region_weights(predictions: TaskPredictions) -> np.ndarray | None:
    """Return 1.0 for the rows where F is foreseen to fail most, a fifth of each fold, else 0.0.

    None where P(F fails | x) is not known.
    """
    # Rows that were made have no weight (NaN); weights that are all 0 are no distribution.
    weights = predictions.rows["weight"].to_numpy(dtype=float)
    if not np.isfinite(weights).all() or weights.sum() <= 0:
        return None
    folds = np.unique(predictions.rows["fold"], return_inverse=True)[1].reshape(-1)
    return place_of_failure(weights, folds)


def read_task_predictions(
    suite: SuiteFiles,
    name: str,
    jobs: pd.DataFrame,
    given: Mapping[tuple[str, str, int], pd.DataFrame] = MappingProxyType({}),
) -> tuple[TaskPredictions, dict[int, str]]:
    """Read the rows of an AMLB task and join each framework's predictions to them.

    Parameters
    ----------
    suite : SuiteFiles
    name : str
        The AMLB task's.
    jobs : DataFrame
        Rows of :func:`amlb_ext.runner.read_jobs`; those of this task that are scored are read.
    given : mapping of (str, str, int) to DataFrame
        Predictions that no run of AMLB wrote, by framework, AMLB task and AMLB's fold; see
        :func:`amlb_ext.report.given_predictions.read_given_predictions`.

    Returns
    -------
    predictions : TaskPredictions
    refused : dict of int to str
        By index in ``jobs``: predictions that cannot be used, and why; the first row whose
        truth differs is named.

    Raises
    ------
    SuiteError
        The suite is damaged.
    """
    task = suite.amlb_task(name)
    coding = suite.coding(name)
    folds = []
    for index, source_fold in enumerate(task.folds):
        folds.append(_read_fold(suite, name, index=index, source_fold=source_fold))
    lengths = [len(fold.y) for fold in folds]
    read = ReadPredictions()
    is_read = (jobs["amlb_task"] == name) & (jobs["status"] == "scored")
    for job_index, job in jobs[is_read].to_dict("index").items():
        framework = str(job["framework"])
        fold = int(job["fold"])
        # One file that cannot be used costs its own job, not the report.
        try:
            if not 0 <= fold < len(folds):
                raise RunError(
                    f"the suite has {len(folds)} folds of {name}, this is fold {fold}"
                )
            written = given.get((framework, name, fold))
            if written is None:
                written = read_job_predictions(suite, job)
            # Without columns of the provenance, for a class may have the name of one.
            no_columns = folds[fold].rows[[]]
            table = join_predictions(written, no_columns, folds[fold].target_text)
            read.add(framework, fold, table, coding.written_labels, job)
        except RunError as error:
            read.refused[job_index] = str(error)
    predictions = TaskPredictions(
        name=name,
        suffix=task.suffix,
        kind=task.type,
        labels=coding.labels,
        rows=pd.concat([fold.rows for fold in folds], ignore_index=True),
        y=np.concatenate([fold.y for fold in folds]),
        low=np.repeat([fold.low for fold in folds], lengths),
        span=np.repeat([fold.span for fold in folds], lengths),
        **read.stacked(dict(enumerate(lengths))),
    )
    return predictions, read.refused


@dataclass(frozen=True, kw_only=True)
class _TestFold:
    """The test rows of one fold.

    Attributes
    ----------
    rows : DataFrame of shape (n, p)
        Folds and position, then the provenance.
    target_text : Series of str
        The target as the test file has it.
    y : ndarray of shape (n,)
    low, span : float
        Smallest target of the training file, and its range; 0 and 1 for classes.
    """

    rows: pd.DataFrame
    target_text: pd.Series
    y: np.ndarray
    low: float
    span: float


def _read_fold(
    suite: SuiteFiles, name: str, *, index: int, source_fold: int
) -> _TestFold:
    """Read one fold; ``index`` is AMLB's number of it, ``source_fold`` the source's."""
    coding = suite.coding(name)
    train_file, test_file = suite.pair(name, index)
    rows = suite.provenance(name, index)
    for column in ("loss", "weight", "source_row"):
        if column not in rows:
            raise SuiteError(
                f"the provenance of {name}, fold {index}, has no column {column!r}",
                "hardsynth verify DIR tells what differs",
            )
    rows.insert(0, "row", np.arange(len(rows)))
    rows.insert(0, "amlb_fold", index)
    rows.insert(0, "fold", source_fold)
    target_text = read_target(test_file, coding)
    if coding.labels:
        codes = {label: code for code, label in enumerate(coding.written_labels)}
        y = target_text.map(codes).to_numpy(dtype=np.int64)
        return _TestFold(rows=rows, target_text=target_text, y=y, low=0.0, span=1.0)
    training_targets = read_target(train_file, coding).to_numpy(dtype=float)
    low = float(training_targets.min())
    span = float(training_targets.max()) - low
    return _TestFold(
        rows=rows,
        target_text=target_text,
        y=target_text.to_numpy(dtype=float),
        low=low,
        span=span or 1.0,  # a constant target has no range to divide by
    )


def read_target(path: Path, coding: Coding) -> pd.Series:
    """Return the target column of a training or test file, as text."""
    name = coding.written_target
    # No text is taken for a missing value: a class may be called "NA" or "None".
    table = pd.read_csv(path, usecols=[name], dtype=str, keep_default_na=False)
    return table[name]


@dataclass(kw_only=True)
class ReadPredictions:
    """What frameworks predict of one task, fold by fold.

    Attributes
    ----------
    folds : list of int
        Those that are compared, where not all are.
    f, chosen : dict of (str, int) to ndarray
        By framework and fold: in the target's unit, or probabilities and the class that is named.
    refused : dict of int to str
        By index in the table of jobs.
    renamed : set of str
        Frameworks whose classes were read by position.
    only_labels : set of str
        Frameworks that name classes and give no probabilities.
    other_scores : dict of str to list of str
        By framework: where AMLB's score is not that of the predictions.
    rescaled : dict of str to float
        By framework what probabilities sum to that do not sum to 1.
    """

    folds: list[int] = field(default_factory=list)
    f: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    chosen: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    renamed: set[str] = field(default_factory=set)
    only_labels: set[str] = field(default_factory=set)
    other_scores: dict[str, list[str]] = field(default_factory=dict)
    rescaled: dict[str, float] = field(default_factory=dict)

    def add(
        self,
        framework: str,
        fold: int,
        table: pd.DataFrame,
        labels: Sequence[str],
        job: Mapping[str, Any],
    ) -> None:
        """Take what AMLB's table says of a fold.

        Parameters
        ----------
        framework : str
        fold : int
        table : DataFrame of n rows
        labels : sequence of str
            As the table writes them, in the order of the codes; empty for a regression.
        job : mapping
            With AMLB's ``metric`` and ``result``, where there are such.

        Raises
        ------
        RunError
            A prediction that is no number, or names no class; or probabilities that are of other
            classes, or contradict the classes that are named.
        """
        key = framework, fold
        chosen, known = None, COMPARED
        if labels:
            f, chosen, total = _parse_classes(table, labels)
            if abs(total - 1) > _MOST_ROUNDED:
                self.rescaled[framework] = total
            self.chosen[key] = chosen
            y = _class_codes(table["truth"], labels)
            if _names_labels_alone(table, labels):
                self.only_labels.add(framework)
                known = OF_DECISIONS
        else:
            f = table["predictions"].to_numpy(dtype=float)
            _check_finite(f)
            y = table["truth"].to_numpy(dtype=float)
        self.f[key] = f
        metric = str(job.get("metric") or "").removeprefix("neg_")
        # of a job of the original the suite may have some of the rows alone
        if metric in known and not job.get("original_task"):
            own = score_rows(y, f, predicted=chosen, names={metric}).get(metric, np.nan)
            if text := score_contradiction(job, own):
                told = self.other_scores.setdefault(framework, [])
                told.append(f"on fold {fold} {text}")

    def stacked(self, lengths: Mapping[int, int]) -> dict[str, Any]:
        """Return what :class:`TaskPredictions` has of each framework, one fold after another.

        ``lengths`` are the rows of each fold, in their order.
        """
        return {
            "f": _stack_folds(self.f, lengths, np.nan),
            "chosen": _stack_folds(self.chosen, lengths, -1),
            "only_labels": self.only_labels,
            "warnings": (
                *score_warnings(self.other_scores),
                *(
                    f"{name}: the probabilities of a row sum to {total:.3g}. Each row is divided "
                    "by its sum, as for AMLB's log loss."
                    for name, total in sorted(self.rescaled.items())
                ),
            ),
        }


#: Metrics of AMLB that follow from its predictions however classes are numbered, and those of
#: them for which decisions are enough.
OF_DECISIONS = frozenset({"acc", "balacc"})
COMPARED = OF_DECISIONS | {"logloss", "auc", "auc_ovo", "auc_ovr"}
COMPARED |= {"mae", "mse", "rmse", "rmsle", "r2"}


def score_contradiction(job: Mapping[str, Any], own: float) -> str:
    """Return how AMLB's score of a job differs from that of its predictions; empty where not.

    AMLB scores the very file that it leaves, so no more than rounding may lie between them.

    Examples
    --------
    >>> job = {"metric": "neg_rmse", "result": -2.0}
    >>> score_contradiction(job, 2.0001), score_contradiction(job, 3.0)
    ('', 'AMLB wrote rmse 2 where the predictions have 3')
    """
    metric = str(job["metric"]).removeprefix("neg_")
    # earlier versions of AMLB wrote losses without the sign, and took another logarithm of 0
    score, own = abs(float(job["result"])), abs(own)
    room = 0.05 if metric == "logloss" else 1e-3
    is_known = np.isfinite([score, own]).all()
    if not is_known or np.isclose(score, own, rtol=room, atol=1e-5):
        return ""
    return f"AMLB wrote {metric} {score:.4g} where the predictions have {own:.4g}"


def score_warnings(other_scores: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return a sentence for each framework whose scores are not those of its predictions."""
    return tuple(
        f"{name}: {texts[0]}{f', and {len(texts) - 1} more' if texts[1:] else ''}. The predictions "
        "are compared; if they are of another run, put the right ones back."
        for name, texts in sorted(other_scores.items())
    )


def _names_labels_alone(table: pd.DataFrame, labels: Sequence[str]) -> bool:
    """Whether a table of predictions has no column for the probability of any class."""
    known = {normalize_text(label) for label in labels}
    return not known & {normalize_text(str(column)) for column in table.columns}


def _stack_folds(
    by_fold: Mapping[tuple[str, int], np.ndarray],
    lengths: Mapping[int, int],
    nothing: float,
) -> dict[str, np.ndarray]:
    """Return the values of each framework; ``nothing`` stands in folds that it did not run on."""
    ends = np.cumsum([0, *lengths.values()])
    starts = dict(zip(lengths, ends[:-1], strict=True))
    stacked: dict[str, np.ndarray] = {}
    for (framework, fold), values in by_fold.items():
        if framework not in stacked:
            stacked[framework] = np.full((ends[-1], *values.shape[1:]), nothing)
        first = starts[fold]
        stacked[framework][first : first + lengths[fold]] = values
    return stacked


def _parse_classes(
    table: pd.DataFrame, labels: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return probabilities ``(n, C)``, the codes of the classes that are named, and a sum.

    The sum is the one farthest from 1 that a row has in the file.
    """
    # Frameworks that encode labels may write a label's text with other case or space.
    codes = {normalize_text(label): code for code, label in enumerate(labels)}
    columns = {}
    for column in table.columns:
        columns[normalize_text(str(column))] = column
    unknown = [columns[text] for text in columns if text not in (*codes, *NO_CLASSES)]
    # beside all classes it may be one that is declared, and that no row has
    if unknown and not set(codes) <= set(columns):
        raise RunError(
            f"nothing can be read from its columns {list_names(unknown)}",
            "call each column of probabilities as its class is called: "
            f"{list_names(labels)}",
        )
    f = np.zeros((len(table), len(codes)))
    for label, code in codes.items():
        # A class that never occurred in training may have no column: its probability is 0.
        if label in columns:
            probabilities = table[columns[label]]
            f[:, code] = probabilities.to_numpy(dtype=float)
    _check_finite(f)
    named = table["predictions"]
    chosen = _class_codes(named, labels)
    if (chosen < 0).any():
        row = _first_row(chosen < 0)
        raise RunError(
            f"row {row} predicts {str(named.iloc[row])!r}, which is no class of the task: those "
            f"are {list_names(labels)}",
            "run that fold again",
        )
    if _names_labels_alone(table, labels):
        f = np.eye(len(codes))[chosen]
    total = f.sum(axis=1)
    is_negative = (f < 0).any(axis=1)
    is_invalid = is_negative | (total <= 0)
    if is_invalid.any():
        raise RunError(
            f"the probabilities of row {_first_row(is_invalid)} are negative or all zero",
            "run that fold again",
        )
    # rounded in the file, they need not sum to 1
    f /= total[:, None]
    _check_decisions(f, chosen)
    return f, chosen, float(total[np.argmax(np.abs(total - 1))])


def _class_codes(texts: pd.Series, labels: Sequence[str]) -> np.ndarray:
    """Return the code of the class that each text names, ``(n,)``; -1 for what is none."""
    codes = {normalize_text(label): code for code, label in enumerate(labels)}
    named = texts.map(lambda text: codes.get(normalize_text(str(text)), -1))
    return named.to_numpy(dtype=np.int64)


def _check_decisions(f: np.ndarray, chosen: np.ndarray) -> None:
    """Refuse probabilities that are not those of the classes that are named beside them.

    A framework may decide by a threshold of its own, and so against its largest probability, but a
    class is more probable where it is decided for.
    """
    # beyond the digits that a file leaves out
    is_other = f[np.arange(len(f)), chosen] < f.max(axis=1, initial=0) - 1e-6
    is_most = is_other.sum() > len(f) / 2
    try:
        # what columns are called counts less where they contradict most rows
        check_order(f, chosen, "it", has_names=not is_most)
        # whoever always decides alike shows no order
        if not (is_most and len(np.unique(chosen)) == 1):
            return
    except ModelError:
        pass
    raise RunError(
        f"the class in the column 'predictions' is not the most probable one in {is_other.sum()} "
        f"of {len(f)} rows",
        "call each column of probabilities after the class that it is of",
    )


def _check_finite(f: np.ndarray) -> None:
    is_finite = np.isfinite(f)
    if f.ndim == 2:
        is_finite = is_finite.all(axis=1)
    n_wrong = int((~is_finite).sum())
    if n_wrong:
        raise RunError(
            f"{n_wrong} of {len(f)} predictions are no finite numbers, "
            f"the first in row {_first_row(~is_finite)}",
            "run that fold again",
        )


def _first_row(is_wrong: np.ndarray) -> int:
    return int(np.flatnonzero(is_wrong)[0])
