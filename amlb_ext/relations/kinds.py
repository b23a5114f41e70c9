"""What a relation is: a rule on one row, a dependency between columns, known combinations.

Rows are tables in the canonical form of :mod:`amlb_ext.core.task`, with the target among the
columns. A relation never changes the rows it is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.core.errors import suggest_nearest
from amlb_ext.relations.conditions import Condition, Truth
from amlb_ext.relations.grammar import (
    RuleError,
    parse_condition,
    quote_name,
    split_at_word,
)
from amlb_ext.relations.values import ValueIndex, numeric_columns

RuleKind = Literal[
    "one_hot",
    "sum",
    "linear",
    "equality",
    "product",
    "quotient",
    "shares",
    "order",
    "exclusive",
    "implies",
    "never",
    "combinations",
    "declared",
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
        indexes = tuple(ValueIndex.learn(rows[name]) for name in (*sources, target))
        keys = _joint_codes(rows, sources, indexes)
        target_index = indexes[-1]
        pairs = pd.DataFrame({"key": keys, "code": target_index.codes(rows[target])})
        counts = pairs.value_counts(sort=False).reset_index()
        # the last row of each key is its most frequent value; of equal counts the lowest code
        order = {"key": True, "count": True, "code": False}
        counts = counts.sort_values(list(order), ascending=list(order.values()))
        most_frequent = counts.drop_duplicates("key", keep="last")
        return cls(
            sources=sources,
            target=target,
            evidence=evidence,
            indexes=indexes,
            known_keys=most_frequent["key"].to_numpy(),
            determined=most_frequent["code"].to_numpy(),
        )

    @property
    def text(self) -> str:
        """The dependency as the language writes it."""
        sources = _quote_names(self.sources)
        if len(self.sources) > 1:
            sources = f"{{{sources}}}"
        return f"{sources} determines {quote_name(self.target)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it binds."""
        return (*self.sources, self.target)

    def breaks(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows have another value than the determined one, ``(n,)`` bool."""
        is_known, expected = self._expected_codes(rows)
        return is_known & (self.indexes[-1].codes(rows[self.target]) != expected)

    def derive(self, rows: pd.DataFrame) -> pd.Series:
        """Return the determined column: its own value where the sources determine none."""
        is_known, expected = self._expected_codes(rows)
        column = rows[self.target]
        index = self.indexes[-1]
        present = column if index.is_numeric else column.astype(object)
        # the last two stand for codes that are no values: missing and unknown
        nothing = np.nan if index.is_numeric else None
        values = np.append(index.values, [nothing, nothing])
        # a row without a known key looks up the first value, and keeps its own
        determined = values[np.where(is_known, expected, 0)]
        filled = np.where(is_known, determined, present)
        derived = pd.Series(filled, index=rows.index, name=self.target)
        return derived.astype(column.dtype)

    def _expected_codes(self, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows have known sources, and the code that these determine."""
        keys = _joint_codes(rows, self.sources, self.indexes)
        # the index has -1 for a key that it does not hold
        position = pd.Index(self.known_keys).get_indexer(keys)
        # one more, because there may be no key at all
        determined = np.append(self.determined, 0)
        return position >= 0, determined[position]


def known_combinations(rows: pd.DataFrame, columns: tuple[str, ...]) -> Rule:
    """Return the rule that the values of columns only come together as in real rows.

    Examples
    --------
    >>> rows = pd.DataFrame({"city": ["Bonn", "Lyon"], "country": ["DE", "FR"]})
    >>> relation = known_combinations(rows, ("city", "country"))
    >>> relation.text
    '{city, country} as in real rows'
    >>> relation.breaks(rows.assign(country=["DE", "DE"])).tolist()
    [False, True]
    """
    indexes = tuple(ValueIndex.learn(rows[name]) for name in columns)
    known_keys = np.unique(_joint_codes(rows, columns, indexes))

    def evaluate(made: pd.DataFrame) -> Truth:
        is_known = np.isin(_joint_codes(made, columns, indexes), known_keys)
        return Truth(is_true=is_known, is_false=~is_known)

    text = f"{{{_quote_names(columns)}}} as in real rows"
    return Rule("combinations", Condition(text, columns, evaluate))


Relation = Rule | Dependency


def reach_columns(
    starts: Iterable[str],
    steps: Mapping[str, Iterable[str]],
) -> set[str]:
    """Return columns and all those to which steps lead from them.

    Examples
    --------
    >>> sorted(reach_columns(["a"], {"a": ["b"], "b": ["c"], "d": ["a"]}))
    ['a', 'b', 'c']
    """
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += steps.get(name, ())
    return reached


def _quote_names(columns: tuple[str, ...]) -> str:
    return ", ".join(quote_name(name) for name in columns)


def _joint_codes(
    rows: pd.DataFrame,
    sources: tuple[str, ...],
    indexes: tuple[ValueIndex, ...],
) -> np.ndarray:
    """Return one number for each combination of source values.

    A dependency's indexes hold one more, that of its target, which does not count here.
    """
    keys = np.zeros(len(rows), dtype=np.int64)
    for name, index in zip(sources, indexes, strict=False):
        codes = index.codes(rows[name])
        keys = keys * index.size + codes
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
        condition = parse_condition(text, numeric_columns(rows))
        return Rule("declared", condition)
    if len(sides) > 2 or not all(sides):
        raise RuleError(
            text,
            "is not of the form 'a determines b'",
            "name the sources on the left, one column on the right: '{a, b} determines c'",
        )
    left, right = sides
    if left.startswith("{") and left.endswith("}"):
        left = left[1:-1]
    columns = [_find_column(name, text, rows) for name in (*left.split(","), right)]
    if len(set(columns)) < len(columns):
        raise RuleError(text, "names a column twice", "name each column once")
    *sources, target = columns
    return Dependency.learn(rows, tuple(sources), target)


def _find_column(written: str, rule: str, rows: pd.DataFrame) -> str:
    """Return the column that a rule names, in backticks or without."""
    name = written.strip()
    is_quoted = name.startswith("`") and name.endswith("`")
    # a single backtick opens a name that nothing closes
    if is_quoted and len(name) > 1:
        name = name[1:-1]
        name = name.replace("``", "`")
    if name not in rows.columns:
        raise RuleError(
            rule,
            f"names the column {name!r}, which the table does not have",
            suggest_nearest(name, rows.columns),
        )
    return name
