"""Conditions on one feature: what a tree sees of a column, and how a reader is told of it.

Names, categories and numbers are the user's data: any text, made short and kept on one line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from amlb_ext.core.task import Column

#: Categories told apart in one column; the others are one group.
MOST_CATEGORIES = 12
#: Longest name or category in a text, and categories listed.
WIDTH, LISTED = 60, 5


def shorten(text: str, width: int = WIDTH) -> str:
    """Return text of the user's data on one line, with an ellipsis where it is longer.

    Examples
    --------
    >>> shorten("a long\\nname", 8)
    'a long …'
    """
    line = " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def say_number(value: float) -> str:
    """Return a number without exponent where it can be read so.

    Examples
    --------
    >>> say_number(45.0), say_number(0.35), say_number(1.5e20)
    ('45', '0.35', '1.5e+20')
    """
    if value == 0 or 1e-5 <= abs(value) < 1e15:
        return str(np.format_float_positional(value, trim="-"))
    return f"{value:.4g}"


@dataclass
class Condition:
    """Rows of one column: ``low < x <= high``, or codes of a categorical; and missing values."""

    low: float = -np.inf
    high: float = np.inf
    missing: bool = True

    @property
    def parts(self) -> int:
        """How much there is to read: a range or set and missing values are two things."""
        return 1 + (
            self.missing and (self.low > -np.inf or self.high < np.inf) and self.low < np.inf
        )


@dataclass
class Coded:
    """A column as the trees see it; what is learned comes from the finding half alone.

    ``x`` is numeric with NaN for missing. A categorical has ranks by its share of bad rows:
    ``named`` category by rank, None for all others together. ``gaps`` counts missing values in
    the finding half.
    """

    name: str
    x: np.ndarray
    found: np.ndarray
    whole: bool = False
    named: list[str | None] = field(default_factory=list)
    others: bool = False
    gaps: int = 0

    def matches(self, c: Condition) -> np.ndarray:
        """Return which rows meet the condition, ``(n,)`` bool."""
        gap = np.isnan(self.x)
        with np.errstate(invalid="ignore"):
            return np.where(gap, c.missing, (self.x > c.low) & (self.x <= c.high))

    def settle(self, c: Condition) -> Condition:
        """Round the bounds to few digits, without moving a row of the finding half."""
        return Condition(self._bound(c.low), self._bound(c.high), c.missing)

    def _bound(self, t: float) -> float:
        if not np.isfinite(t) or self.named:
            return t
        i = int(np.searchsorted(self.found, t, side="right"))
        if i == 0 or i == len(self.found):
            return t
        if self.whole:
            return float(np.floor(t))
        for digits in range(2, 16):
            short = float(f"{t:.{digits}e}")
            if self.found[i - 1] <= short < self.found[i]:
                return short
        return t

    def say(self, c: Condition, alone: bool) -> str:
        """Return the condition in words; empty when it holds for every row."""
        gap = bool(np.isnan(self.x).any())
        known = ~np.isnan(self.x)
        inside = self.matches(c) & known
        if not inside.any() or inside.sum() == known.sum():
            if not gap or (c.missing and inside.any()):
                return ""
            return f"{self.name} is {'missing' if c.missing else 'not missing'}"
        text = self._say_categories(c) if self.named else self._say_range(c)
        if not (gap and c.missing):
            return text
        return f"{text} or missing" if alone else f"({text} or missing)"

    def _say_range(self, c: Condition) -> str:
        inside = self.x[(self.x > c.low) & (self.x <= c.high)]
        if self.whole and inside.min() == inside.max():
            return f"{self.name} = {say_number(inside[0])}"
        if np.isfinite(c.low) and np.isfinite(c.high):
            return f"{say_number(c.low)} < {self.name} <= {say_number(c.high)}"
        if np.isfinite(c.low):
            return f"{self.name} > {say_number(c.low)}"
        return f"{self.name} <= {say_number(c.high)}"

    def _say_categories(self, c: Condition) -> str:
        ranks = [r for r in range(len(self.named)) if c.low < r <= c.high]
        inside = [name for r in ranks if (name := self.named[r]) is not None]
        outside = [n for r, n in enumerate(self.named) if r not in ranks and n is not None]
        rest = any(self.named[r] is None for r in ranks)
        if rest if self.others else len(outside) < len(inside):
            gap = "known and " if np.isnan(self.x).any() and not c.missing else ""
            return f"{self.name} is {gap}" + _listed(outside, "not ", "none of ")
        return f"{self.name} is " + _listed(inside, "", "one of ")


def _listed(names: list[str], one: str, several: str) -> str:
    quoted = [quote(name) for name in names]
    if len(quoted) == 1:
        return one + quoted[0]
    if len(quoted) > LISTED:
        return f"{several}{len(quoted)} (" + ", ".join([*quoted[: LISTED - 1], "…"]) + ")"
    return f"{several}(" + ", ".join(quoted) + ")"


def quote(text: str) -> str:
    """Return a category, in quotation marks where it could be taken for something else.

    Examples
    --------
    >>> quote("blue-collar"), quote("a, b"), quote("")
    ('blue-collar', '“a, b”', '“”')
    """
    short = shorten(text)
    plain = short and not set(short) & set(",()“”") and short == short.strip()
    return short if plain and (short == text or short.endswith("…")) else f"“{short}”"


def code_column(
    values: pd.Series, column: Column, bad: np.ndarray, found: np.ndarray
) -> Coded | None:
    """Return a column as the trees see it; None when it is constant where slices are found."""
    name = shorten(column.name) or "“”"
    if column.is_numeric:
        x = values.to_numpy(dtype=float, na_value=np.nan)
        seen = x[found]
        distinct = np.unique(seen[~np.isnan(seen)])
        whole = (
            bool(np.all(x[~np.isnan(x)] % 1 == 0)) and float(np.abs(distinct).max(initial=0)) < 1e15
        )
        coded = Coded(name, x, distinct, whole)
    else:
        as_category = values.astype("category")
        codes = as_category.cat.codes.to_numpy()
        texts = [str(text) for text in as_category.cat.categories]
        rows = np.bincount(codes[found] + 1, minlength=len(texts) + 1)[1:]
        hits = np.bincount(codes[found] + 1, bad[found], minlength=len(texts) + 1)[1:]
        often = np.argsort(-rows, kind="stable")[:MOST_CATEGORIES]
        often = often[rows[often] >= max(3, 0.005 * len(found))]
        # a share of few rows is drawn towards that of all: ten rows' worth
        base = float(bad[found].mean())
        rest = [rows.sum() - rows[often].sum(), hits.sum() - hits[often].sum()]
        shares = (np.append(hits[often], rest[1]) + 10 * base) / (
            np.append(rows[often], rest[0]) + 10
        )
        order = np.argsort(shares, kind="stable")
        rank_of = np.full(len(texts) + 1, np.flatnonzero(order == len(often))[0], dtype=float)
        rank_of[-1] = np.nan  # code -1, missing
        rank_of[often] = np.argsort(order, kind="stable")[: len(often)]
        x = rank_of[codes]
        named = [None if i == len(often) else texts[often[i]] for i in order]
        others = bool(np.any((codes >= 0) & ~np.isin(codes, often)))
        distinct = np.unique(x[found][~np.isnan(x[found])])
        coded = Coded(name, x, distinct, named=named, others=others)
    coded.gaps = int(np.isnan(coded.x[found]).sum())
    return coded if len(distinct) + (coded.gaps > 0) > 1 else None
