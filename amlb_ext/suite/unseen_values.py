"""Test cells whose value no training row has: what is written in their place.

Most frameworks of AMLB fail on a category that is in the test file alone, so another value must
stand there. It is chosen cell by cell: the training value, or missing where the training rows miss
values too, with which F's prediction of the row changes least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.task import Column
from amlb_ext.suite.coding import column_form

#: Rows in canonical form to predictions, ``(n,)`` or ``(n, C)``.
Judge = Callable[[pd.DataFrame], np.ndarray]

#: Values that are tried in place of one cell, the most frequent ones of its column.
MOST_TRIED, LEAST_TRIED = 32, 4
#: Rows that the judge is asked about in one fold, unless ``LEAST_TRIED`` values need more.
MOST_ASKED = 200_000
#: Values of a table that the judge is given at once.
CHUNK_VALUES = 4_000_000
#: Predictions nearer than this many decimals are the same: the more frequent value wins.
DECIMALS = 12


@dataclass(frozen=True)
class FittedRows:
    """Test rows that AMLB can read beside their training rows.

    Attributes
    ----------
    features : DataFrame of shape (m, d)
        In canonical form.
    cells : list of (int, str)
        Position and column of each replaced cell, column by column.
    copies : ndarray, int
        Rows with replaced cells that no value could keep from repeating the features of a
        training row.
    """

    features: pd.DataFrame
    cells: list[tuple[int, str]]
    copies: np.ndarray


def fit_to_train(
    train: pd.DataFrame,
    test: pd.DataFrame,
    columns: Sequence[Column],
    judge: Judge | None = None,
) -> FittedRows:
    """Replace what the training rows do not know, so that AMLB can read the test rows.

    A category that no training row has is replaced, and a missing one where no training row
    misses the value. Candidates are missing, where a training row misses the value, and the
    column's most frequent training values. The one with which the judge's prediction is nearest
    to that of the row as it came is taken, the earlier of equals; of several cells in a row one
    after the other. A row with replaced cells that would repeat the features of a training row
    takes the next best. Columns written as ``True``/``False`` are numbers to AMLB and may hold an
    unseen value.

    Parameters
    ----------
    train : DataFrame of shape (n, d)
        Training features in canonical form.
    test : DataFrame of shape (m, d)
        Test features in canonical form.
    columns : sequence of Column
        The task's columns.
    judge : callable, optional
        Predicts rows, those with unknown values too. Without one the first candidate is taken.

    Returns
    -------
    FittedRows
        ``test`` itself stays as it is.

    Examples
    --------
    >>> column = Column("c", "categorical", ("a", "b", "z"))
    >>> def frame(*values):
    ...     return pd.DataFrame({"c": pd.Categorical(values, categories=column.categories)})
    >>> train, test = frame("b", "b", "a"), frame("a", "z", None)
    >>> fitted = fit_to_train(train, test, [column])
    >>> list(fitted.features["c"]), fitted.cells, fitted.copies.tolist()
    (['a', 'b', 'b'], [(1, 'c'), (2, 'c')], [1, 2])
    >>> far_from_b = lambda rows: (rows["c"] == "b").to_numpy(dtype=float)
    >>> list(fit_to_train(train, test, [column], far_from_b).features["c"])
    ['a', 'a', 'a']
    """
    unreadable: dict[str, np.ndarray] = {}
    for column in columns:
        mask = np.zeros(len(test), dtype=bool)
        if not column.is_numeric:
            mask = _unreadable_cells(train, test, column)
        if mask.any():
            unreadable[column.name] = mask
    if not unreadable:
        return FittedRows(test.copy(), [], np.zeros(0, dtype=int))
    search = _Search(train, test, unreadable, judge)
    search.run()
    fitted = test.copy()
    cells: list[tuple[int, str]] = []
    for place, (name, mask) in enumerate(unreadable.items()):
        codes = test[name].cat.codes.to_numpy().astype(np.int64)
        codes[search.rows] = search.codes[:, place]
        fitted[name] = _categories(test[name], codes)
        cells += [(int(row), name) for row in np.flatnonzero(mask)]
    is_copy = search.repeats_training_row(np.arange(len(search.rows)), search.codes)
    return FittedRows(fitted, cells, search.rows[is_copy])


def _unreadable_cells(
    train: pd.DataFrame, test: pd.DataFrame, column: Column
) -> np.ndarray:
    """Return which test cells of a column AMLB's frameworks could not read, ``(m,)`` bool."""
    train_codes = train[column.name].cat.codes.to_numpy()
    test_codes = test[column.name].cat.codes.to_numpy()
    is_missing = test_codes < 0
    unreadable = is_missing & ~(train_codes < 0).any()
    if column_form(column) == "text":
        unreadable |= ~is_missing & ~np.isin(test_codes, train_codes)
    return unreadable


def _candidates(train: pd.Series) -> np.ndarray:
    """Return codes by preference: missing where a training row misses the value, then by count."""
    codes = train.cat.codes.to_numpy()
    counts = np.bincount(codes[codes >= 0], minlength=len(train.cat.categories))
    frequent = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    # code -1 stands for missing
    missing = [-1] if (codes < 0).any() else []
    return np.concatenate([np.array(missing, dtype=np.int64), frequent])[:MOST_TRIED]


def _categories(like: pd.Series, codes: np.ndarray) -> pd.Series:
    dtype = pd.CategoricalDtype(like.cat.categories)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=like.index)


class _Search:
    """The search for replacements in the rows that need some.

    Attributes
    ----------
    rows : ndarray of shape (r,), int
        Positions of those rows among the test rows.
    mask : ndarray of shape (r, J), bool
        Which of their cells are replaced, by column that has such cells.
    codes : ndarray of shape (r, J), int
        The codes that stand in those columns.
    """

    def __init__(
        self,
        train: pd.DataFrame,
        test: pd.DataFrame,
        unreadable: dict[str, np.ndarray],
        judge: Judge | None,
    ) -> None:
        mask = np.column_stack(list(unreadable.values()))
        self.names = list(unreadable)
        self.rows = np.flatnonzero(mask.any(axis=1))
        self.mask = mask[self.rows]
        self.source = test.iloc[self.rows]
        self.judge = judge
        self.candidates = [_candidates(train[name]) for name in self.names]
        source_codes = [self.source[name].cat.codes.to_numpy() for name in self.names]
        first_candidates = [candidates[0] for candidates in self.candidates]
        self.codes = np.where(
            self.mask, first_candidates, np.column_stack(source_codes).astype(np.int64)
        )
        # a row's fingerprint is a sum over columns: that of the fixed ones is taken once
        self.places = [test.columns.get_loc(name) for name in self.names]
        other_places = [
            place for place in range(test.shape[1]) if place not in self.places
        ]
        self.other_fingerprints = _fingerprint(self.source, other_places)
        self.train_fingerprints = np.unique(
            _fingerprint(train, list(range(test.shape[1])))
        )
        if judge is not None:
            self.reference = self._predict(self.source)

    def run(self) -> None:
        """Settle the replaced cells: the first ones of all rows, then the second ones, ..."""
        all_rows = np.arange(len(self.rows))
        is_pending = self._distance(all_rows, self.codes) > 0
        is_pending |= self.repeats_training_row(all_rows, self.codes)
        # many cells to settle: try fewer values of each, so that the judge's work has a limit
        cells = max(1, int(self.mask[is_pending].sum()))
        tried = int(np.clip(MOST_ASKED // cells, LEAST_TRIED, MOST_TRIED))
        turn_of_cell = np.cumsum(self.mask, axis=1)
        for turn in range(1, int(turn_of_cell.max()) + 1):
            has_turn = self.mask & (turn_of_cell == turn)
            row, column = np.nonzero(has_turn & is_pending[:, None])
            if len(row):
                is_last = turn_of_cell[row, -1] == turn
                self._settle(row, column, is_last, tried)

    def _settle(
        self, row: np.ndarray, column: np.ndarray, is_last: np.ndarray, tried: int
    ) -> None:
        """Choose the value of one cell in each of these rows."""
        values = [self.candidates[place][:tried] for place in column]
        # one trial per cell and value: `cell` and `value` have its number and its code
        cell = np.repeat(
            np.arange(len(row)), [len(tried_values) for tried_values in values]
        )
        value = np.concatenate(values)
        distance = np.empty(len(cell))
        repeats = np.empty(len(cell), dtype=bool)
        for chunk in self._chunks(len(cell)):
            trial_rows = row[cell[chunk]]
            trial_codes = self.codes[trial_rows]
            trial_codes[np.arange(len(trial_codes)), column[cell[chunk]]] = value[chunk]
            distance[chunk] = self._distance(trial_rows, trial_codes)
            repeats[chunk] = self.repeats_training_row(trial_rows, trial_codes)
        repeats &= is_last[cell]  # of a row with cells to come nothing can be said yet
        # per cell: no repeats first, then the nearest, then the more frequent value
        order = np.lexsort((np.arange(len(cell)), distance, repeats, cell))
        best = order[np.unique(cell[order], return_index=True)[1]]
        self.codes[row, column] = value[best]

    def repeats_training_row(self, row: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return which rows, with these codes, have the features of a training row."""
        fingerprints = self.other_fingerprints[row]
        for number, place in enumerate(self.places):
            fingerprints = fingerprints + _column_hash(codes[:, number], place)
        return np.isin(fingerprints, self.train_fingerprints)

    def _distance(self, row: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return how far predictions lie from those of the rows as they came."""
        if self.judge is None:
            return np.zeros(len(row))
        frame = self.source.iloc[row].copy()
        for number, name in enumerate(self.names):
            frame[name] = _categories(frame[name], codes[:, number])
        difference = np.abs(self._predict(frame) - self.reference[row])
        return difference.reshape(len(row), -1).sum(axis=1).round(DECIMALS)

    def _predict(self, frame: pd.DataFrame) -> np.ndarray:
        assert self.judge is not None
        blocks = [self.judge(frame.iloc[chunk]) for chunk in self._chunks(len(frame))]
        return np.concatenate(blocks)

    def _chunks(self, size: int) -> list[slice]:
        step = max(1, CHUNK_VALUES // len(self.source.columns))
        return [slice(start, start + step) for start in range(0, size, step)]


def _fingerprint(features: pd.DataFrame, places: Sequence[int]) -> np.ndarray:
    """Return a hash of some columns of each row, ``(n,)`` uint64: a sum over the columns.

    Being a sum, it is known at once for a row in which one value has changed. Two rows that differ
    have the same one with a chance of 2**-64.
    """
    total = np.zeros(len(features), dtype=np.uint64)
    for place in places:
        values = features.iloc[:, place]
        if isinstance(values.dtype, pd.CategoricalDtype):
            total += _column_hash(values.cat.codes.to_numpy(), place)
        else:
            numbers = values.to_numpy(dtype=float) + 0.0  # -0.0 and 0.0 are one number
            numbers = np.where(
                np.isnan(numbers), np.nan, numbers
            )  # and so are all NaNs
            total += _column_hash(numbers, place)
    return total


def _column_hash(values: np.ndarray, place: int) -> np.ndarray:
    """Return a hash of the values of the column at a place."""
    plain = values if values.dtype.kind == "f" else values.astype(np.int64)
    # an odd factor per column, so that equal values in two columns do not cancel or swap
    factor = pd.util.hash_array(np.array([place], dtype=np.int64))[0] | np.uint64(1)
    return pd.util.hash_array(plain) * factor
