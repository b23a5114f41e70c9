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
    replace = {c.name: _unreadable(train, test, c) for c in columns if not c.is_numeric}
    replace = {name: mask for name, mask in replace.items() if mask.any()}
    if not replace:
        return FittedRows(test.copy(), [], np.zeros(0, dtype=int))
    search = _Search(train, test, replace, judge)
    search.run()
    fitted = test.copy()
    cells: list[tuple[int, str]] = []
    for j, name in enumerate(replace):
        codes = test[name].cat.codes.to_numpy().astype(np.int64)
        codes[search.rows] = search.state[:, j]
        fitted[name] = _categories(test[name], codes)
        cells += [(int(row), name) for row in np.flatnonzero(replace[name])]
    repeats = search.repeats(np.arange(len(search.rows)), search.state)
    return FittedRows(fitted, cells, search.rows[repeats])


def _unreadable(train: pd.DataFrame, test: pd.DataFrame, column: Column) -> np.ndarray:
    """Return which test cells of a column AMLB's frameworks could not read, ``(m,)`` bool."""
    known = train[column.name].cat.codes.to_numpy()
    codes = test[column.name].cat.codes.to_numpy()
    out = (codes < 0) & ~(known < 0).any()
    if column_form(column) == "text":
        out |= (codes >= 0) & ~np.isin(codes, known)
    return out


def _candidates(train: pd.Series) -> np.ndarray:
    """Return codes by preference: missing where a training row misses the value, then by count."""
    codes = train.cat.codes.to_numpy()
    counts = np.bincount(codes[codes >= 0], minlength=len(train.cat.categories))
    frequent = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
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
    state : ndarray of shape (r, J), int
        The codes that stand in those columns.
    """

    def __init__(
        self,
        train: pd.DataFrame,
        test: pd.DataFrame,
        replace: dict[str, np.ndarray],
        judge: Judge | None,
    ) -> None:
        mask = np.column_stack(list(replace.values()))
        self.names = list(replace)
        self.rows = np.flatnonzero(mask.any(axis=1))
        self.mask = mask[self.rows]
        self.source = test.iloc[self.rows]
        self.judge = judge
        self.options = [_candidates(train[name]) for name in self.names]
        codes = [self.source[name].cat.codes.to_numpy() for name in self.names]
        first = [options[0] for options in self.options]
        self.state = np.where(self.mask, first, np.column_stack(codes).astype(np.int64))
        self.places = [test.columns.get_loc(name) for name in self.names]
        others = [j for j in range(test.shape[1]) if j not in self.places]
        self.fixed = _fingerprint(self.source, others)
        self.known = np.unique(_fingerprint(train, list(range(test.shape[1]))))
        if judge is not None:
            self.reference = self._predict(self.source)

    def run(self) -> None:
        """Settle the replaced cells: the first ones of all rows, then the second ones, ..."""
        everything = np.arange(len(self.rows))
        start = self._distance(everything, self.state)
        pending = (start > 0) | self.repeats(everything, self.state)
        cells = max(1, int(self.mask[pending].sum()))
        tried = int(np.clip(MOST_ASKED // cells, LEAST_TRIED, MOST_TRIED))
        place = np.cumsum(self.mask, axis=1)
        for turn in range(1, int(place.max()) + 1):
            row, column = np.nonzero(self.mask & (place == turn) & pending[:, None])
            if len(row):
                is_last = place[row, -1] == turn
                self._settle(row, column, is_last, tried)

    def _settle(self, row: np.ndarray, column: np.ndarray, is_last: np.ndarray, tried: int) -> None:
        """Choose the value of one cell in each of these rows."""
        options = [self.options[j][:tried] for j in column]
        cell = np.repeat(np.arange(len(row)), [len(some) for some in options])
        value = np.concatenate(options)
        distance, repeats = np.empty(len(cell)), np.empty(len(cell), dtype=bool)
        for some in self._chunks(len(cell)):
            state = self.state[row[cell[some]]]
            state[np.arange(len(state)), column[cell[some]]] = value[some]
            distance[some] = self._distance(row[cell[some]], state)
            repeats[some] = self.repeats(row[cell[some]], state)
        repeats &= is_last[cell]  # of a row with cells to come nothing can be said yet
        order = np.lexsort((np.arange(len(cell)), distance, repeats, cell))
        best = order[np.unique(cell[order], return_index=True)[1]]
        self.state[row, column] = value[best]

    def repeats(self, row: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return which rows, with these codes, have the features of a training row."""
        prints = self.fixed[row]
        for j, place in enumerate(self.places):
            prints = prints + _mixed(state[:, j], place)
        return np.isin(prints, self.known)

    def _distance(self, row: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return how far predictions lie from those of the rows as they came."""
        if self.judge is None:
            return np.zeros(len(row))
        frame = self.source.iloc[row].copy()
        for j, name in enumerate(self.names):
            frame[name] = _categories(frame[name], state[:, j])
        gap = np.abs(self._predict(frame) - self.reference[row])
        return gap.reshape(len(row), -1).sum(axis=1).round(DECIMALS)

    def _predict(self, frame: pd.DataFrame) -> np.ndarray:
        assert self.judge is not None
        parts = [self.judge(frame.iloc[some]) for some in self._chunks(len(frame))]
        return np.concatenate(parts)

    def _chunks(self, n: int) -> list[slice]:
        step = max(1, CHUNK_VALUES // len(self.source.columns))
        return [slice(start, start + step) for start in range(0, n, step)]


def _fingerprint(features: pd.DataFrame, places: Sequence[int]) -> np.ndarray:
    """Return a hash of some columns of each row, ``(n,)`` uint64: a sum over the columns.

    Being a sum, it is known at once for a row in which one value has changed. Two rows that differ
    have the same one with a chance of 2**-64.
    """
    out = np.zeros(len(features), dtype=np.uint64)
    for place in places:
        values = features.iloc[:, place]
        if isinstance(values.dtype, pd.CategoricalDtype):
            out += _mixed(values.cat.codes.to_numpy(), place)
        else:
            numbers = values.to_numpy(dtype=float) + 0.0  # -0.0 and 0.0 are one number
            out += _mixed(np.where(np.isnan(numbers), np.nan, numbers), place)
    return out


def _mixed(values: np.ndarray, place: int) -> np.ndarray:
    """Return a hash of the values of the column at a place."""
    plain = values if values.dtype.kind == "f" else values.astype(np.int64)
    factor = pd.util.hash_array(np.array([place], dtype=np.int64))[0] | np.uint64(1)
    return pd.util.hash_array(plain) * factor
