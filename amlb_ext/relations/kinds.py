"""What a relation is: a rule on one row, a dependency between columns, the written form of numbers.

Rows are tables in the canonical form of :mod:`amlb_ext.core.task`, with the target among the
columns. A relation never changes the rows it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.core.errors import suggest_nearest
from amlb_ext.relations.grammar import (
    TOLERANCE,
    Condition,
    RuleError,
    parse_condition,
    quote_name,
    split_at_word,
)
from amlb_ext.relations.values import ValueIndex, holds_numbers

RuleKind = Literal[
    "order", "sum", "exclusive", "implies", "never", "one_hot", "declared"
]


@dataclass(frozen=True)
class Rule:
    """A condition that every row satisfies.

    Attributes
    ----------
    kind : str
        What the rule was mined as; ``declared`` where a user wrote it.
    condition : Condition
    evidence : float
        Rows that would break the rule if the columns had nothing to do with each other; infinite
        where the rule was declared.
    """

    kind: RuleKind
    condition: Condition
    evidence: float = np.inf

    @property
    def text(self) -> str:
        """The rule as the language writes it."""
        return self.condition.text

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it binds."""
        return self.condition.columns

    def breaks(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows break the rule, ``(n,)`` bool; an unknown condition breaks nothing."""
        return self.condition.breaks(rows)


@dataclass(frozen=True)
class Dependency:
    """The values of some columns determine that of another one.

    A combination of values that was never seen determines nothing, so it breaks nothing.

    Attributes
    ----------
    sources : tuple of str
    target : str
        The determined column.
    evidence : float
    indexes : tuple of ValueIndex
        Of the sources, then of the target.
    known_keys : ndarray of shape (m,), int64
        Combinations of source values that were seen, sorted.
    determined : ndarray of shape (m,), int64
        The target's code for each of them.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": ["x", "y", "x"], "b": [1.0, 2.0, 1.0]})
    >>> dependency = Dependency.learn(rows, ("a",), "b")
    >>> dependency.text
    'a determines b'
    >>> dependency.breaks(rows.assign(b=[1.0, 1.0, np.nan])).tolist()
    [False, True, True]
    """

    sources: tuple[str, ...]
    target: str
    evidence: float
    indexes: tuple[ValueIndex, ...] = field(repr=False)
    known_keys: np.ndarray = field(repr=False, compare=False)
    determined: np.ndarray = field(repr=False, compare=False)
    kind: Literal["determines"] = "determines"

    @classmethod
    def learn(
        cls,
        rows: pd.DataFrame,
        sources: tuple[str, ...],
        target: str,
        evidence: float = np.inf,
    ) -> Dependency:
        """Learn the values from rows; of contradicting rows the most frequent value counts."""
        indexes = tuple(ValueIndex.of(rows[name]) for name in (*sources, target))
        keys = _joint_codes(rows, sources, indexes)
        codes = indexes[-1].codes(rows[target])
        counts = (
            pd.DataFrame({"key": keys, "code": codes})
            .value_counts(sort=False)
            .reset_index()
        )
        # the last row of each key is its most frequent value
        counts = counts.sort_values(
            ["key", "count", "code"], ascending=[True, True, False]
        )
        last = counts.drop_duplicates("key", keep="last")
        return cls(
            sources=sources,
            target=target,
            evidence=evidence,
            indexes=indexes,
            known_keys=last["key"].to_numpy(),
            determined=last["code"].to_numpy(),
        )

    @property
    def text(self) -> str:
        """The dependency as the language writes it."""
        names = ", ".join(quote_name(name) for name in self.sources)
        left = names if len(self.sources) == 1 else f"{{{names}}}"
        return f"{left} determines {quote_name(self.target)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it binds."""
        return (*self.sources, self.target)

    def breaks(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows have another value than the determined one, ``(n,)`` bool."""
        is_known, expected = self._expected(rows)
        return is_known & (self.indexes[-1].codes(rows[self.target]) != expected)

    def derive(self, rows: pd.DataFrame) -> pd.Series:
        """Return the determined column: its own value where the sources determine none."""
        is_known, expected = self._expected(rows)
        column, index = rows[self.target], self.indexes[-1]
        # the last two stand for codes that are no values: missing and unknown
        no_value = [np.nan, np.nan] if index.is_numeric else [None, None]
        values = np.array([*index.values, *no_value], dtype=index.values.dtype)
        own = column if index.is_numeric else column.astype(object)
        filled = np.where(is_known, values[np.where(is_known, expected, 0)], own)
        return pd.Series(filled, index=rows.index, name=self.target).astype(
            column.dtype
        )

    def _expected(self, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows have known sources, and the code that these determine."""
        keys = _joint_codes(rows, self.sources, self.indexes)
        if not len(self.known_keys):
            return np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=np.int64)
        position = np.searchsorted(self.known_keys, keys).clip(
            max=len(self.known_keys) - 1
        )
        return self.known_keys[position] == keys, self.determined[position]


@dataclass(frozen=True)
class KnownCombinations:
    """Columns whose values only come together as in real rows.

    Attributes
    ----------
    columns : tuple of str
    indexes : tuple of ValueIndex
    known_keys : ndarray of shape (m,), int64
        Combinations that real rows have, sorted.

    Examples
    --------
    >>> rows = pd.DataFrame({"city": ["Bonn", "Lyon"], "country": ["DE", "FR"]})
    >>> relation = KnownCombinations.learn(rows, ("city", "country"))
    >>> relation.breaks(rows.assign(country=["DE", "DE"])).tolist()
    [False, True]
    """

    columns: tuple[str, ...]
    indexes: tuple[ValueIndex, ...] = field(repr=False)
    known_keys: np.ndarray = field(repr=False, compare=False)
    kind: Literal["combinations"] = "combinations"
    evidence: float = np.inf

    @classmethod
    def learn(cls, rows: pd.DataFrame, columns: tuple[str, ...]) -> KnownCombinations:
        """Learn the combinations from real rows."""
        indexes = tuple(ValueIndex.of(rows[name]) for name in columns)
        return cls(columns, indexes, np.unique(_joint_codes(rows, columns, indexes)))

    @property
    def text(self) -> str:
        """The relation in words."""
        names = ", ".join(quote_name(name) for name in self.columns)
        return f"{{{names}}} as in real rows"

    def breaks(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows combine values that no real row does, ``(n,)`` bool."""
        return ~np.isin(_joint_codes(rows, self.columns, self.indexes), self.known_keys)


Relation = Rule | Dependency | KnownCombinations


def _joint_codes(
    rows: pd.DataFrame, sources: tuple[str, ...], indexes: tuple[ValueIndex, ...]
) -> np.ndarray:
    """Return one number for each combination of source values."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for name, index in zip(sources, indexes, strict=False):
        keys = keys * index.size + index.codes(rows[name])
    return keys


def parse_relation(text: str, rows: pd.DataFrame) -> Relation:
    """Parse a rule or a dependency that a user declares.

    Parameters
    ----------
    text : str
    rows : DataFrame
        Real rows: their columns may be named, and a dependency learns its values from them.

    Returns
    -------
    Rule or Dependency

    Raises
    ------
    RuleError
        The text is neither, or names a column that is not there.

    Examples
    --------
    >>> rows = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0], "c": [2.0, 2.0]})
    >>> parse_relation("b <= c", rows).columns
    ('b', 'c')
    >>> parse_relation("{a, c} determines b", rows).sources
    ('a', 'c')
    """
    sides = split_at_word(text, "determines")
    if len(sides) == 1:
        numeric = {name: holds_numbers(rows[name]) for name in rows}
        return Rule("declared", parse_condition(text, numeric))
    if len(sides) > 2 or not all(sides):
        raise RuleError(
            text,
            "is not of the form 'a determines b'",
            "name the sources on the left, one column on the right: '{a, b} determines c'",
        )
    left, right = sides
    if left.startswith("{") and left.endswith("}"):
        left = left[1:-1]
    sources = tuple(_column_name(name, text, rows) for name in left.split(","))
    target = _column_name(right, text, rows)
    if target in sources or len(set(sources)) < len(sources):
        raise RuleError(text, "names a column twice", "name each column once")
    return Dependency.learn(rows, sources, target)


def _column_name(written: str, rule: str, rows: pd.DataFrame) -> str:
    name = written.strip()
    if len(name) > 1 and name.startswith("`") and name.endswith("`"):
        name = name[1:-1].replace("``", "`")
    if name not in rows.columns:
        raise RuleError(
            rule,
            f"names the column {name!r}, which the table does not have",
            suggest_nearest(name, rows.columns),
        )
    return name


@dataclass(frozen=True)
class WrittenForm:
    """How the real numbers of a column are written: their range, decimals, and list of values.

    Attributes
    ----------
    column : str
    low, high : float
        Smallest and largest value.
    decimals : int or None
        Decimals that no value exceeds; None where a value has more than six.
    values : ndarray or None
        The values that were seen, sorted, where the column takes only few.
    is_complete : bool
        Whether a new value is so unlikely that one is not written as real ones are.

    Examples
    --------
    >>> form = WrittenForm("temp", 0.0, 1.0, decimals=2, values=None)
    >>> form.correct(np.array([0.24373, 1.2, np.nan])).tolist()
    [0.24, 1.0, nan]
    >>> form.breaks(np.array([0.24373, 0.24])).tolist()
    [True, False]
    """

    column: str
    low: float
    high: float
    decimals: int | None = None
    values: np.ndarray | None = field(default=None, compare=False)
    is_complete: bool = False

    def correct(self, numbers: np.ndarray) -> np.ndarray:
        """Return numbers as real ones are written: within range, rounded, from the list."""
        corrected = np.clip(numbers, self.low, self.high)
        if self.values is not None:
            index = ValueIndex(self.values, is_numeric=True)
            snapped = self.values[index.nearest(corrected)]
            return np.where(np.isnan(numbers), np.nan, snapped)
        if self.decimals is not None:
            # rounding may leave the range where a bound has more digits than are counted
            corrected = np.clip(np.round(corrected, self.decimals), self.low, self.high)
        return corrected

    def breaks(self, numbers: np.ndarray) -> np.ndarray:
        """Return which numbers have too many decimals or are not on the list; bounds aside."""
        is_known = ~np.isnan(numbers)
        if self.values is not None and self.is_complete:
            return is_known & (_codes(self.values, numbers) > len(self.values))
        if self.decimals is None:
            return np.zeros(len(numbers), dtype=bool)
        room = TOLERANCE * np.maximum(1.0, np.abs(numbers))
        return is_known & (np.abs(numbers - np.round(numbers, self.decimals)) > room)


def _codes(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return ValueIndex(values, is_numeric=True).codes(pd.Series(numbers))


def forms_by_column(forms: list[WrittenForm]) -> Mapping[str, WrittenForm]:
    """Return written forms by the column they describe."""
    return {form.column: form for form in forms}
