"""Conditions on one feature: how trees see a column, and how a condition is put in words.

Names, categories and numbers are the user's data: any text, made short and kept on one line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.core.display import shorten_text
from amlb_ext.core.task import Column

# Lines are dense here where one array expression is one step of the method.

#: Categories told apart in one column; the others are one group.
MOST_CATEGORIES = 12
#: Longest name or category in a text.
WIDTH = 60
#: Categories that are listed; of more the first are.
LISTED = 5
#: A category is told apart only with this many rows, ...
_FEWEST_ROWS = 3
#: ... and with this share of the rows.
_SMALLEST_SHARE = 0.005
#: How many rows' worth the share of a category is drawn towards that of all rows.
_PRIOR_ROWS = 10
#: Numbers from here on are shown with an exponent, and not taken for whole ones.
_LARGEST_WHOLE = 1e15


def middle_and_spread(values: np.ndarray) -> tuple[float, float]:
    """Return the median of numbers, and the median distance of the others from it; 1 for none.

    Trees hold numbers in single precision, and see neither tiny numbers nor small differences of
    large ones. On this scale they do, and a few huge numbers hide nothing.

    Examples
    --------
    >>> middle_and_spread(np.array([1e-12, 3e-12, 5e-12, 1e9]))
    (4e-12, 2e-12)
    """
    middle = float(np.median(values))
    distances = np.abs(values - middle)
    others = distances[distances > 0]
    return middle, float(np.median(others)) if len(others) else 1.0


def plain_number(value: float) -> str:
    """Return a number as text, without an exponent where it is readable without.

    Examples
    --------
    >>> plain_number(45.0), plain_number(0.35), plain_number(1.5e20)
    ('45', '0.35', '1.5e+20')
    """
    has_short_digits = 1e-5 <= abs(value) < _LARGEST_WHOLE
    if value == 0 or has_short_digits:
        return str(np.format_float_positional(value, trim="-"))
    return f"{value:.4g}"


def short_number(value: float, splits: Callable[[float], np.ndarray]) -> str:
    """Return a number near another, of few digits, that splits the rows alike.

    Parameters
    ----------
    value : float
    splits : callable
        From a number to which rows it splits off, ``(n,)`` bool.

    Examples
    --------
    >>> seconds = np.array([1700049728.0, 1700049729.0])
    >>> short_number(0.1234567, lambda cut: seconds > cut)
    '0.123'
    >>> short_number(1700049728.4, lambda cut: seconds > cut)
    '1700049728'
    """
    wanted = splits(value)
    for digits in range(2, 16):
        near = float(f"{value:.{digits}e}")
        step = float(f"1e{np.floor(np.log10(abs(near) or 1)) - digits:.0f}")
        for short in (near, near + step, near - step):
            text = plain_number(float(f"{short:.{digits}e}"))
            if np.array_equal(splits(float(text)), wanted):
                return text
    return repr(float(value))


def quote_category(text: str) -> str:
    """Return a category, quoted where it could be mistaken for something else.

    Examples
    --------
    >>> quote_category("blue-collar"), quote_category("a, b"), quote_category("")
    ('blue-collar', '“a, b”', '“”')
    """
    short = shorten_text(text, WIDTH)
    # A reader takes these for the punctuation of a list.
    has_marks = not set(short).isdisjoint(",()“”")
    # White space or control characters were taken out: quotation marks say that it is not the
    # text itself. An ellipsis says so without them.
    is_altered = short != text and not short.endswith("…")
    if not short or has_marks or is_altered or short != short.strip():
        return f"“{short}”"
    return short


@dataclass
class Condition:
    """Rows of one column: ``low < x <= high``, or codes of a categorical; and missing values."""

    low: float = -np.inf
    high: float = np.inf
    missing: bool = True

    @property
    def n_parts(self) -> int:
        """Number of statements to read: a range or set, and missing values, are two."""
        is_bounded = (self.low, self.high) != (-np.inf, np.inf)
        # Above infinity lies no number: such a condition is about missing values alone.
        return 2 if is_bounded and self.low < np.inf and self.missing else 1


@dataclass(kw_only=True)
class CodedColumn:
    """A column as the trees see it; what is learned comes from the finding half alone.

    Attributes
    ----------
    name : str
    x : ndarray of shape (n,)
        Numbers, or the ranks of categories by their share of bad rows; NaN for missing.
    distinct : ndarray of shape (k,)
        Sorted distinct values of the finding half.
    is_whole : bool
        Whether only whole numbers occur.
    category_names : list of (str or None)
        Categories by rank, None for all others together; empty for numbers.
    has_others : bool
        There are categories without a rank of their own.
    n_missing : int
        Missing values in the finding half.
    """

    name: str
    x: np.ndarray
    distinct: np.ndarray
    is_whole: bool = False
    category_names: list[str | None] = field(default_factory=list)
    has_others: bool = False
    n_missing: int = 0

    @property
    def is_missing(self) -> np.ndarray:
        """Which rows have no value, ``(n,)`` bool."""
        return np.isnan(self.x)

    def matches(self, condition: Condition) -> np.ndarray:
        """Return which rows meet the condition, ``(n,)`` bool."""
        with np.errstate(invalid="ignore"):
            is_in_range = (self.x > condition.low) & (self.x <= condition.high)
        return np.where(self.is_missing, condition.missing, is_in_range)

    def rounded(self, condition: Condition) -> Condition:
        """Round the bounds to few digits, without moving a row of the finding half."""
        return replace(
            condition,
            low=self._short_bound(condition.low),
            high=self._short_bound(condition.high),
        )

    def _short_bound(self, threshold: float) -> float:
        # Bounds of a categorical lie between ranks; no reader sees them.
        if self.category_names or not np.isfinite(threshold):
            return threshold
        position = int(np.searchsorted(self.distinct, threshold, side="right"))
        if position in (0, len(self.distinct)):
            return threshold
        if self.is_whole:
            return float(np.floor(threshold))
        # Any bound between the two neighbouring values cuts the rows alike.
        below, above = self.distinct[position - 1 : position + 1]
        for digits in range(2, 16):
            short = float(f"{threshold:.{digits}e}")
            if below <= short < above:
                return short
        return threshold

    def describe(self, condition: Condition, is_alone: bool) -> str:
        """Return the condition in words; empty when it holds for every row.

        Parameters
        ----------
        condition : Condition
        is_alone : bool
            Whether it is the only condition; ``or`` needs brackets otherwise.
        """
        n_known = len(self.x) - self.is_missing.sum()
        inside = self.x[self.matches(condition) & ~self.is_missing]
        has_missing = n_known < len(self.x)
        if len(inside) in (0, n_known):
            # No value or all values: what is left to say is about missing ones.
            holds_for_all = condition.missing and len(inside) > 0
            if holds_for_all or not has_missing:
                return ""
            return f"{self.name} is {'' if condition.missing else 'not '}missing"
        low, high = plain_number(condition.low), plain_number(condition.high)
        if self.category_names:
            text = self._describe_categories(condition)
        elif self.is_whole and inside.min() == inside.max():
            text = f"{self.name} = {plain_number(inside[0])}"
        elif not np.isfinite(condition.low):
            text = f"{self.name} <= {high}"
        elif not np.isfinite(condition.high):
            text = f"{self.name} > {low}"
        else:
            text = f"{low} < {self.name} <= {high}"
        if not has_missing or not condition.missing:
            return text
        return f"{text} or missing" if is_alone else f"({text} or missing)"

    def _describe_categories(self, condition: Condition) -> str:
        named: dict[bool, list[str]] = {True: [], False: []}
        others_inside = False
        for rank, category in enumerate(self.category_names):
            is_inside = condition.low < rank <= condition.high
            if category is None:
                others_inside = is_inside
            else:
                named[is_inside].append(category)
        inside, outside = named[True], named[False]
        # "All others" cannot be listed, so a set that holds them is told by what it lacks;
        # without others, by the shorter list.
        tells_shorter = len(outside) < len(inside)
        if not (others_inside if self.has_others else tells_shorter):
            listed = _category_list(inside, single="", several="one of ")
            return f"{self.name} is {listed}"
        # Of a missing value it is true as well that it is none of these.
        excludes_missing = self.is_missing.any() and not condition.missing
        known = "known and " if excludes_missing else ""
        listed = _category_list(outside, single="not ", several="none of ")
        return f"{self.name} is {known}{listed}"


def _category_list(names: list[str], *, single: str, several: str) -> str:
    """Return quoted categories behind a word that depends on their number."""
    if len(names) == 1:
        return single + quote_category(names[0])
    if len(names) <= LISTED:
        quoted = ", ".join(quote_category(name) for name in names)
        return f"{several}({quoted})"
    # The ellipsis takes the place of the last one.
    quoted = ", ".join(quote_category(name) for name in names[: LISTED - 1])
    return f"{several}{len(names)} ({quoted}, …)"


def code_columns(
    data: pd.DataFrame,
    columns: Sequence[Column],
    *,
    bad: np.ndarray,
    finding_rows: np.ndarray,
) -> list[CodedColumn]:
    """Return the columns as the trees see them, without those constant where slices are found.

    Parameters
    ----------
    data : DataFrame of shape (n, d)
    columns : sequence of Column
        The d columns, in the order of ``data``.
    bad : ndarray of shape (n,), bool
    finding_rows : ndarray of int
        Positions of the rows in which slices are searched; nothing is learned from the others.
    """
    coded_columns = []
    for position, column in enumerate(columns):
        values = data.iloc[:, position]
        name = shorten_text(column.name, WIDTH) or "“”"
        if column.is_numeric:
            x = values.to_numpy(dtype=float, na_value=np.nan)
            distinct = _distinct_values(x[finding_rows])
            largest = float(np.abs(distinct).max(initial=0))
            # Whole in all rows, since what is told of a slice is about all of them.
            is_whole = not (_distinct_values(x) % 1).any() and largest < _LARGEST_WHOLE
            coded = CodedColumn(name=name, x=x, distinct=distinct, is_whole=is_whole)
        else:
            coded = _code_categories(name, values, bad=bad, finding_rows=finding_rows)
        coded.n_missing = int(np.isnan(coded.x[finding_rows]).sum())
        # That a value is missing sets rows apart like any other value.
        n_values = len(coded.distinct) + (coded.n_missing > 0)
        if n_values > 1:
            coded_columns.append(coded)
    return coded_columns


def _code_categories(
    name: str, values: pd.Series, *, bad: np.ndarray, finding_rows: np.ndarray
) -> CodedColumn:
    """Rank categories by their share of bad rows: a tree then finds a set by one threshold."""
    as_category = values.astype("category")
    codes = as_category.cat.codes.to_numpy()  # -1 for missing
    texts = [str(text) for text in as_category.cat.categories]
    # Shifted by one, so that missing values have the first place, which is cut off.
    n_places = len(texts) + 1
    finding_codes = codes[finding_rows] + 1
    finding_bad = bad[finding_rows]
    n_rows = np.bincount(finding_codes, minlength=n_places)[1:]
    n_bad = np.bincount(finding_codes, weights=finding_bad, minlength=n_places)[1:]

    frequent = np.argsort(-n_rows, kind="stable")[:MOST_CATEGORIES]
    fewest = max(_FEWEST_ROWS, _SMALLEST_SHARE * len(finding_rows))
    frequent = frequent[n_rows[frequent] >= fewest]

    # Groups are the frequent categories; the last group is all other categories together.
    other_rows = n_rows.sum() - n_rows[frequent].sum()
    other_bad = n_bad.sum() - n_bad[frequent].sum()
    rows_by_group = np.append(n_rows[frequent], other_rows)
    bad_by_group = np.append(n_bad[frequent], other_bad)
    # The share of few rows is drawn towards that of all, as if there were more rows like them.
    prior_bad = _PRIOR_ROWS * float(finding_bad.mean())
    shares = (bad_by_group + prior_bad) / (rows_by_group + _PRIOR_ROWS)

    order = np.argsort(shares, kind="stable")
    rank_of_group = np.argsort(order, kind="stable")
    rank_of_code = np.full(n_places, rank_of_group[-1], dtype=float)
    rank_of_code[frequent] = rank_of_group[:-1]
    rank_of_code[-1] = np.nan  # where the code -1, missing, looks
    x = rank_of_code[codes]

    names = [*(texts[code] for code in frequent), None]
    is_other = (codes >= 0) & ~np.isin(codes, frequent)
    return CodedColumn(
        name=name,
        x=x,
        distinct=_distinct_values(x[finding_rows]),
        category_names=[names[group] for group in order],
        has_others=bool(is_other.any()),
    )


def _distinct_values(values: np.ndarray) -> np.ndarray:
    return np.unique(values[~np.isnan(values)])
