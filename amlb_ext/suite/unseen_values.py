"""Test cells whose value no training row has: what is written in their place.

Most frameworks of AMLB fail on a category that is in the test file alone, so another value must
stand there. It is chosen cell by cell: the training value, or missing where the training rows miss
values too, with which F's prediction of the row changes least.

Notation
--------
n, m : number of training and test rows
r : number of test rows with cells to replace
J : number of columns with such cells
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.amlb.coding import column_form
from amlb_ext.core.task import Column

#: Rows in canonical form to predictions, ``(n,)`` or ``(n, C)``.
Judge = Callable[[pd.DataFrame], np.ndarray]

#: Values that are tried in place of one cell, the most frequent ones of its column: at most ...
MOST_TRIED = 32
#: ... and at least, however many cells there are.
LEAST_TRIED = 4
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
    """Replace values that no training row has, so that AMLB can read the test rows.

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
    unreadable = _unreadable_by_column(train, test, columns)
    if not unreadable:
        return FittedRows(test.copy(), cells=[], copies=np.zeros(0, dtype=int))
    search = _ReplacementSearch(train, test, unreadable, judge)
    search.run()
    features = test.copy()
    cells: list[tuple[int, str]] = []
    for number, (name, mask) in enumerate(unreadable.items()):
        codes = _category_codes(test[name])
        codes[search.rows] = search.codes[:, number]
        features[name] = _categories_like(test[name], codes)
        for row in np.flatnonzero(mask):
            cells.append((int(row), name))
    searched_rows = np.arange(len(search.rows))
    is_copy = search.repeats_training_row(searched_rows, search.codes)
    return FittedRows(features=features, cells=cells, copies=search.rows[is_copy])


def _unreadable_by_column(
    train: pd.DataFrame, test: pd.DataFrame, columns: Sequence[Column]
) -> dict[str, np.ndarray]:
    """Return the columns with cells that AMLB's frameworks could not read, and a mask of these."""
    unreadable: dict[str, np.ndarray] = {}
    for column in columns:
        # any number can be read, and so can a missing one; only categories can be unknown
        if column.is_numeric:
            continue
        train_codes = _category_codes(train[column.name])
        test_codes = _category_codes(test[column.name])
        # a truth value may be unseen, but not missing
        is_readable = np.isin(test_codes, train_codes)
        if column_form(column) == "boolean":
            is_readable |= test_codes >= 0
        if not is_readable.all():
            unreadable[column.name] = ~is_readable
    return unreadable


def _candidate_codes(train: pd.Series) -> np.ndarray:
    """Return codes by preference: missing where a training row misses the value, then by count."""
    counts = train.value_counts(sort=False, dropna=True).to_numpy()
    # a stable sort: of equally frequent categories the first of the column's order comes first
    by_count = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    missing = [-1] if train.isna().any() else []
    return np.concatenate([missing, by_count]).astype(np.int64)[:MOST_TRIED]


def _category_codes(values: pd.Series) -> np.ndarray:
    """Return the category codes of a column, -1 for missing, as a new ``(n,)`` int64 array."""
    return values.cat.codes.to_numpy().astype(np.int64)


def _categories_like(like: pd.Series, codes: np.ndarray) -> pd.Series:
    """Return codes as a column with the categories and the index of another."""
    dtype = pd.CategoricalDtype(like.cat.categories)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=like.index)


class _ReplacementSearch:
    """The search for replacements in the rows that need some.

    It works on all rows at once, as arrays, since a fold may have a hundred thousand such cells and
    the judge is slow to ask. That makes its lines denser than those of other modules.

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
        self.candidates = [_candidate_codes(train[name]) for name in self.names]
        # the search starts from the first candidate of every cell
        source_codes = [_category_codes(self.source[name]) for name in self.names]
        first_candidates = [candidates[0] for candidates in self.candidates]
        self.codes = np.where(
            self.mask,
            first_candidates,
            np.column_stack(source_codes),
        )
        # a row's fingerprint is a sum over columns: that of the fixed ones is taken once
        all_places = range(test.shape[1])
        self.places = [test.columns.get_loc(name) for name in self.names]
        fixed_places = [place for place in all_places if place not in self.places]
        self.fixed_fingerprints = row_fingerprints(self.source, fixed_places)
        self.train_fingerprints = np.unique(row_fingerprints(train, all_places))
        if judge is not None:
            self.reference = self._predict(self.source)

    def run(self) -> None:
        """Settle the replaced cells: the first ones of all rows, then the second ones, ..."""
        all_rows = np.arange(len(self.rows))
        # where the first candidates neither move the prediction nor repeat a row, they stay
        is_pending = self._distance(all_rows, self.codes) > 0
        is_pending |= self.repeats_training_row(all_rows, self.codes)
        # many cells to settle: try fewer values of each, so that the judge's work has a limit
        pending_cells = int(self.mask[is_pending].sum())
        affordable = MOST_ASKED // max(1, pending_cells)
        tried = int(np.clip(affordable, LEAST_TRIED, MOST_TRIED))
        # a row's first cell has turn 1, its second one turn 2, ...
        turn_of_cell = np.cumsum(self.mask, axis=1)
        last_turn = int(turn_of_cell.max())
        for turn in range(1, last_turn + 1):
            has_turn = self.mask & (turn_of_cell == turn)
            row, column = np.nonzero(has_turn & is_pending[:, np.newaxis])
            if len(row) == 0:
                continue
            is_last = turn_of_cell[row, -1] == turn
            self._settle_cells(row, column, is_last=is_last, tried=tried)

    def _settle_cells(
        self, row: np.ndarray, column: np.ndarray, *, is_last: np.ndarray, tried: int
    ) -> None:
        """Choose the value of one cell in each of these rows.

        Parameters
        ----------
        row, column : ndarray of int
            Of each cell.
        is_last : ndarray of bool
            Whether it is the last cell to settle in its row.
        tried : int
            How many candidates of each are tried.
        """
        # one trial per cell and candidate: trial i puts the code value[i] into the cell cell[i]
        candidates = [self.candidates[place][:tried] for place in column]
        counts = [len(codes) for codes in candidates]
        cell = np.repeat(np.arange(len(row)), counts)
        value = np.concatenate(candidates)
        distance = np.empty(len(cell))
        repeats = np.empty(len(cell), dtype=bool)
        for chunk in self._chunks(len(cell)):
            trial_cells = cell[chunk]
            trial_rows = row[trial_cells]
            trial_codes = self.codes[trial_rows]
            trials = np.arange(len(trial_rows))
            trial_codes[trials, column[trial_cells]] = value[chunk]
            distance[chunk] = self._distance(trial_rows, trial_codes)
            repeats[chunk] = self.repeats_training_row(trial_rows, trial_codes)
        # of a row with cells to come nothing can be said yet
        repeats &= is_last[cell]
        # per cell: no repeats first, then the nearest, then the more frequent value
        frequency_rank = np.arange(len(cell))
        order = np.lexsort((frequency_rank, distance, repeats, cell))
        _, first_of_cell = np.unique(cell[order], return_index=True)
        best = order[first_of_cell]
        self.codes[row, column] = value[best]

    def repeats_training_row(self, row: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return which rows, with these codes, have the features of a training row."""
        fingerprints = self.fixed_fingerprints[row]
        for number, place in enumerate(self.places):
            fingerprints = fingerprints + _column_hash(codes[:, number], place)
        return np.isin(fingerprints, self.train_fingerprints)

    def _distance(self, row: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return how far predictions lie from those of the rows as they came."""
        if self.judge is None:
            return np.zeros(len(row))
        frame = self.source.iloc[row].copy()
        for number, name in enumerate(self.names):
            frame[name] = _categories_like(frame[name], codes[:, number])
        predictions = self._predict(frame)
        difference = np.abs(predictions - self.reference[row])
        # probabilities are summed over classes; a regression has one column
        by_row = difference.reshape(len(row), -1)
        return by_row.sum(axis=1).round(DECIMALS)

    def _predict(self, frame: pd.DataFrame) -> np.ndarray:
        assert self.judge is not None
        blocks = [self.judge(frame.iloc[chunk]) for chunk in self._chunks(len(frame))]
        return np.concatenate(blocks)

    def _chunks(self, size: int) -> list[slice]:
        """Split so many rows into slices of at most :data:`CHUNK_VALUES` values."""
        step = max(1, CHUNK_VALUES // len(self.source.columns))
        return [slice(start, start + step) for start in range(0, size, step)]


def row_fingerprints(features: pd.DataFrame, places: Sequence[int]) -> np.ndarray:
    """Return a hash of some columns of each row, ``(n,)`` uint64: a sum over the columns.

    Being a sum, it is known at once for a row in which one value has changed. Two rows that differ
    have the same one with a chance of 2**-64.
    """
    total = np.zeros(len(features), dtype=np.uint64)
    for place in places:
        values = features.iloc[:, place]
        if isinstance(values.dtype, pd.CategoricalDtype):
            total += _column_hash(_category_codes(values), place)
            continue
        # one bit pattern for -0.0 and 0.0, and one for all NaNs: the hash reads bits
        numbers = values.to_numpy(dtype=float) + 0.0
        numbers = np.where(np.isnan(numbers), np.nan, numbers)
        total += _column_hash(numbers, place)
    return total


def _column_hash(values: np.ndarray, place: int) -> np.ndarray:
    """Return a hash of the values of the column at a place: codes (int64) or numbers (float64)."""
    # an odd factor per column, so that equal values in two columns do not cancel or swap
    place_hash = pd.util.hash_array(np.array([place], dtype=np.int64))
    factor = place_hash[0] | np.uint64(1)
    return pd.util.hash_array(values) * factor
