"""Models that are compared by cross-validation: cloned and fitted on the same folds.

Each row is predicted by models that were fitted on other rows. What is claimed is of the *recipes*
on tables of this size, so an interval must count that another table would have given other fits,
and that the fits of two folds share most of their rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import PredefinedSplit

from amlb_ext.comparison.models import predict_rows
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.hardening.split import CvSplits, cross_folds
from amlb_ext.models.adapter import ModelAdapter, describe_error
from amlb_ext.models.answers import Answers, label_text
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.models.given_table import target_values
from amlb_ext.swap.harm import bootstrap_rows
from amlb_ext.units.labelled import LabelledRows

#: The fold of a row that is never tested, as for ``PredefinedSplit`` of scikit-learn.
NEVER_TESTED = -1


@dataclass(frozen=True, kw_only=True)
class Folds:
    """The divisions of the rows, one for each repetition.

    Attributes
    ----------
    repeats : tuple of CvSplits
        In each, no row is tested twice.
    tested : ndarray of shape (n,), bool
        Rows that are tested, each of them in every repetition.
    backward : int
        Folds whose models are fitted on rows later than some that they are tested on.
    """

    repeats: tuple[CvSplits, ...]
    tested: np.ndarray
    backward: int = 0

    @property
    def widening(self) -> float:
        r"""By how much the variance of a mean over rows grows.

        The variance of a mean of K folds whose training rows overlap is
        :math:`(1/K + n_{test} / n_{train}) S^2` rather than :math:`S^2 / K` (Nadeau & Bengio 2003,
        Machine Learning 52, 239-281), so that over rows it grows by
        :math:`1 + K n_{test} / n_{train}`.
        """
        ratios = [
            len(splits) * np.mean([len(test) / len(train) for train, test in splits])
            for splits in self.repeats
        ]
        return float(1 + np.mean(ratios))

    @property
    def text(self) -> str:
        """What is claimed, and how intervals count the folds."""
        n_folds = format_count(len(self.repeats[0]), "fold")
        times = f", {len(self.repeats)} times" if len(self.repeats) > 1 else ""
        return (
            f"cross-validation with {n_folds}{times}: a verdict is of the recipes, fitted on "
            f"tables of this size; variances are {self.widening:.2f} times those of rows, since "
            "the fits of two folds share most of their rows"
        )

    @property
    def notes(self) -> list[str]:
        """Return :attr:`text`, and whether models have seen what was later."""
        if not self.backward:
            return [self.text]
        n_folds = sum(map(len, self.repeats))
        return [
            self.text,
            f"in {self.backward} of {n_folds} folds models are fitted on rows later than some that "
            "they are tested on, which says nothing of the future: give cv a number of folds, or "
            "rows in the order of time to TimeSeriesSplit",
        ]


def read_folds(
    cv: Any, rows: LabelledRows, seed: int, *, align: Align = "auto"
) -> Folds:
    """Return the folds that a user means.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number of folds, which keep groups together and times in order; a splitter of
        scikit-learn; positions in the table, as its ``split`` returns them, or masks; or the fold
        of each row, -1 where it is never tested, as in ``PredefinedSplit``. Several divisions one
        after the other are repetitions.
    rows : LabelledRows
    seed : int
    align : {'auto', 'index', 'position'}
        How the folds of a Series belong to the rows.

    Raises
    ------
    ConfigError, DataError
        Folds that overlap, that hold a group on both sides, or test rows unequally often.
    """
    n, order = len(rows), rows.task.order
    if isinstance(cv, PredefinedSplit):
        # its folds are of all rows, whatever it is asked to split
        cv = cv.test_fold
    is_number = isinstance(cv, int | np.integer)
    if isinstance(cv, bool) or (is_number and not 2 <= cv <= n):
        raise ConfigError(f"cv is {cv}", f"give a number of folds from 2 to {n}")
    if is_number:
        codes = rows.y.astype(int) if rows.is_classification else np.zeros(n, dtype=int)
        n_classes = len(rows.labels) if rows.is_classification else 0
        part_seed = derive_int_seed(seed, "compare", "folds")
        splits = list(cross_folds(codes, n_classes, int(cv), part_seed, order))
    elif _are_fold_numbers(cv):
        aligned = align_rows(cv, rows.table.rows, what="cv", align=align)
        number = _number_folds(target_values(aligned), "cv")[rows.task.row_ids]
        splits = [
            (np.flatnonzero(number != fold), np.flatnonzero(number == fold))
            for fold in np.unique(number[number != NEVER_TESTED])
        ]
    elif hasattr(cv, "split"):
        groups = None if order is None else order.group
        try:
            with warnings.catch_warnings():
                # a splitter without groups says that it ignores them; what comes of it is checked
                warnings.simplefilter("ignore", UserWarning)
                given = rows.table.take(rows.task.row_ids).given
                splits = list(cv.split(given, rows.y_given, groups))
        except Exception as error:
            remedy = "give a number of folds, or (train, test) positions"
            if groups is None and "group" in str(error):
                remedy = "give groups= to a splitter that keeps them together"
            raise ConfigError(
                f"cv cannot split the rows: {describe_error(error)}", remedy
            ) from error
    else:
        try:
            given = [(train, test) for train, test in cv]
            splits = [
                (_as_positions(train, rows, align), _as_positions(test, rows, align))
                for train, test in given
            ]
            _refuse_labelled_positions(given, rows)
        except (TypeError, ValueError):
            raise ConfigError(
                f"cv is a {type(cv).__name__}",
                "give a number of folds, a splitter of scikit-learn, or (train, test) positions",
            ) from None
    if not splits:
        raise ConfigError("cv gives no folds", "give cv=5")
    for number, (train, test) in enumerate(splits, start=1):
        _check_fold(number, train, test, rows)
    repeats = divide_into_repeats(splits, n)
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=n)
    tested = times > 0
    often = times[tested]
    if often.min() < len(repeats):
        raise DataError(
            f"cv tests some rows {often.max()} times and others {often.min()}",
            "give KFold or RepeatedKFold, which test each row as often as any other",
        )
    backward = 0
    if order is not None and order.time is not None:
        time = order.time
        backward = sum(time[train].max() > time[test].min() for train, test in splits)
    return Folds(repeats=repeats, tested=tested, backward=int(backward))


def read_fold_column(name: str, frame: pd.DataFrame) -> np.ndarray:
    """Return the fold of each row, ``(n,)``, from a column of the table.

    Raises
    ------
    ConfigError, DataError
        There is no such column, or a row without a fold.
    """
    if name not in frame.columns:
        raise ConfigError(
            f"cv is {name!r}, which is no column of the table",
            f"give a number of folds, or the column with the fold of each row; "
            f"{suggest_nearest(name, [str(each) for each in frame.columns])}",
        )
    return _number_folds(frame[name], f"column {name!r}")


def _number_folds(folds: pd.Series, what: str) -> np.ndarray:
    """Return the number of each row's fold, ``(n,)``; -1 stays what it is."""
    numbers, distinct = pd.factorize(folds, sort=True)
    if (numbers < 0).any():
        raise DataError(
            f"{what} names no fold in {int((numbers < 0).sum())} rows",
            "fill it, or leave those rows out",
        )
    is_tested = np.array([label_text(each) != str(NEVER_TESTED) for each in distinct])
    return np.where(is_tested[numbers], numbers, NEVER_TESTED)


def _refuse_labelled_positions(given: Sequence[Any], rows: LabelledRows) -> None:
    """Refuse positions that may be those among the rows with a target."""
    parts = [np.asarray(part) for pair in given for part in pair]
    n = len(rows)
    if n == len(rows.table) or any(part.dtype == bool for part in parts):
        return
    if np.array_equal(np.unique(np.concatenate(parts)), np.arange(n)):
        raise DataError(
            f"cv names the rows 0 to {n - 1}, as many as have a target, and the table has "
            f"{len(rows.table)}",
            "split the whole table, or leave the rows without a target out of X and y, too",
        )


def _as_positions(part: Any, rows: LabelledRows, align: Align) -> np.ndarray:
    """Return positions among the rows with a target, from positions in the table or a mask of it.

    Raises
    ------
    TypeError
        They are no whole numbers.
    """
    n = len(rows.table)
    if isinstance(part, pd.Series) and len(part) == n and part.dtype == bool:
        part = align_rows(part, rows.table.rows, what="a mask of cv", align=align)
    part = np.asarray(part, dtype=None if len(part) else int)
    if part.dtype == bool:
        if part.shape != (n,):
            raise DataError(
                f"a mask of cv has the shape {part.shape}, and the table {n} rows",
                "give one truth value for each row",
            )
        part = np.flatnonzero(part)
    if len(part) and (part.min() < 0 or part.max() >= n):
        raise DataError(
            f"cv names positions from {part.min()} to {part.max()}, and the table has 0 to {n - 1}",
            "give positions as scikit-learn's splitters return them",
        )
    labelled = np.full(n, -1)
    labelled[rows.task.row_ids] = np.arange(len(rows))
    own = labelled[part.astype(int, casting="same_kind")]
    return own[own >= 0]


def _are_fold_numbers(cv: Any) -> bool:
    """Whether a fold is given for each row, rather than positions."""
    if not hasattr(cv, "__len__") or getattr(cv, "ndim", 1) != 1 or not len(cv):
        return False
    values = cv.to_pandas() if hasattr(cv, "to_pandas") else cv
    return all(map(pd.api.types.is_scalar, values))


def _check_fold(
    number: int, train: np.ndarray, test: np.ndarray, rows: LabelledRows
) -> None:
    for what, part in (("train", train), ("test", test)):
        if not len(part):
            raise DataError(
                f"fold {number} has no {what} rows with a target",
                "give positions as scikit-learn's splitters return them",
            )
    if len(np.unique(test)) < len(test):
        raise DataError(
            f"fold {number} tests a row more than once", "name each test row once"
        )
    shared = np.intersect1d(train, test)
    if len(shared):
        raise DataError(
            f"fold {number} tests {len(shared)} rows that its models are fitted on, row "
            f"{shared[0]} the first",
            "give train and test rows that do not overlap",
        )
    order = rows.task.order
    if order is not None and order.group is not None:
        both = np.intersect1d(order.group[train], order.group[test])
        if len(both):
            raise DataError(
                f"fold {number} has {format_count(len(both), 'group')} of {order.group_name!r} on "
                "both sides",
                "give a number of folds, or GroupKFold",
            )


def divide_into_repeats(splits: CvSplits, n: int) -> tuple[CvSplits, ...]:
    """Return the folds by repetition: a new one begins where a row is tested again."""
    repeats: list[list[tuple[np.ndarray, np.ndarray]]] = [[]]
    seen = np.zeros(n, dtype=bool)
    for train, test in splits:
        if seen[test].any():
            repeats.append([])
            seen[:] = False
        seen[test] = True
        repeats[-1].append((train, test))
    return tuple(repeats)


def predict_out_of_fold(
    model: ModelAdapter,
    rows: LabelledRows,
    folds: Folds,
    seed: int,
    *,
    is_bootstrapped: bool = False,
) -> list[Answers]:
    """Return what clones of a model answer to rows that they were not fitted on.

    Parameters
    ----------
    model : ModelAdapter
    rows : LabelledRows of n rows
    folds : Folds
    seed : int
    is_bootstrapped : bool
        Whether each clone is fitted on a bootstrap sample of its fold's rows; of rows with groups,
        of groups.

    Returns
    -------
    list of Answers
        One for each repetition, of n rows; those that are not tested are NaN.

    Raises
    ------
    ModelError
        The model cannot be cloned or fitted.
    """
    order = rows.task.order
    group = None if order is None else order.group
    answers = []
    for number, splits in enumerate(folds.repeats):
        parts = []
        for fold, (train, test) in enumerate(splits):
            fitted = train
            if is_bootstrapped:
                rng = np.random.default_rng(
                    derive_int_seed(seed, "compare", "bootstrap", number, fold)
                )
                own = None if group is None else group[train]
                fitted = train[bootstrap_rows(len(train), rng, own)]
            clone = model.fit_again(
                rows.table.take(rows.task.row_ids[fitted]), rows.y_given[fitted], seed
            )
            parts.append((test, predict_rows(clone, rows)))
        answers.append(_join_parts(parts, len(rows)))
    return answers


def _join_parts(parts: Sequence[tuple[np.ndarray, Answers]], n: int) -> Answers:
    """Return the answers of several models, each of its own rows."""
    first = parts[0][1]
    f = np.full((n, *first.f.shape[1:]), np.nan)
    decided = None if first.decided is None else np.full(n, -1)
    for test, said in parts:
        f[test] = said.f[test]
        if decided is not None and said.decided is not None:
            decided[test] = said.decided[test]
    notes = dict.fromkeys(note for _, said in parts for note in said.notes)
    return Answers(
        f=f,
        decided=decided,
        only_labels=any(said.only_labels for _, said in parts),
        notes=tuple(notes),
    )
