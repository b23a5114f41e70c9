"""Search for rules between frequent values: ``a == v implies b == w``, and values never met."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.relations.grammar import quote_name, write_equality
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import MiningTable

#: Values of one column that rules may name: frequent enough to be a thing of its own.
VALUE_SHARE, VALUES_PER_COLUMN, VALUES_IN_ALL = 0.01, 30, 2000
#: In a number that takes many values, only piles of this share.
PILE_SHARE, MANY_VALUES = 0.05, 20
#: However short the table is, a frequent value has this many rows.
LEAST_COUNT = 5
#: Cells of the block of zeros and ones that counts which values meet.
CELLS_PER_BLOCK = 1_000_000

ColumnPairs = Collection[tuple[str, str]]
Value = float | str | None
#: Positions of frequent values, by value.
ValuePositions = dict[Value, int]


@dataclass(frozen=True)
class _FrequentValue:
    """A frequent value of a column; None stands for a missing one."""

    column: str
    value: Value
    count: int

    @property
    def test(self) -> str:
        """The condition that a row has the value."""
        return write_equality(self.column, self.value)


@dataclass(frozen=True)
class ValueRules:
    """Rules between frequent values.

    Attributes
    ----------
    implies : list of Rule
        One value implies another.
    never : list of Rule
        Two values never meet.
    """

    implies: list[Rule]
    never: list[Rule]


def mine_value_rules(
    table: MiningTable,
    least_evidence: float,
    settled: ColumnPairs,
) -> ValueRules:
    """Find implications between frequent values, and values that never meet.

    Parameters
    ----------
    table : MiningTable
    least_evidence : float
    settled : collection of (str, str)
        Sources and targets of dependencies, about which no value needs a rule of its own.
    """
    search = _Search(table, least_evidence, settled)
    implies: list[Rule] = []
    never: list[Rule] = []
    # a premise, by its position, and the column about which an implication says all
    implied: set[tuple[int, str]] = set()
    for i, premise in enumerate(search.values):
        expected_exceptions = premise.count * search.share_without
        for j in search.implied_by(i, expected_exceptions):
            conclusion = search.values[j]
            if (premise.column, conclusion.column) in settled:
                continue
            text = search.implication_text(premise, conclusion)
            rule = table.make_rule("implies", text, expected_exceptions[j])
            implies.append(rule)
            implied.add((i, conclusion.column))
    for i, first in enumerate(search.values):
        expected_together = first.count * search.counts / table.n_rows
        for j in search.apart_from(i, expected_together):
            second = search.values[j]
            # where one value implies another of that column, it meets none of the rest
            if (i, second.column) in implied:
                continue
            if (j, first.column) in implied:
                continue
            if search.is_settled(first, second):
                continue
            text = f"not ({first.test} and {second.test})"
            rule = table.make_rule("never", text, expected_together[j])
            never.append(rule)
    return ValueRules(implies, never)


class _Search:
    """Which frequent values there are, and how often they meet."""

    def __init__(
        self,
        table: MiningTable,
        least_evidence: float,
        settled: ColumnPairs,
    ) -> None:
        self.least_evidence = least_evidence
        self.settled = settled
        self.has_missing = table.rows.isna().any()
        self.values = _frequent_values(table)
        # of values i and j, the number of rows with both: (m, m)
        self.n_together = _count_together(table, self.values)
        counts = [value.count for value in self.values]
        self.counts = np.array(counts, dtype=float)
        self.share_without = 1 - self.counts / table.n_rows
        columns = [value.column for value in self.values]
        self.columns = np.array(columns, dtype=object)

    def implied_by(self, i: int, evidence: np.ndarray) -> list[int]:
        """Return the values that every row with value i has."""
        n_rows = self.values[i].count
        always = self.n_together[i] == n_rows
        return self._with_evidence(i, always, evidence)

    def apart_from(self, i: int, evidence: np.ndarray) -> list[int]:
        """Return the values after value i that no row has together with it."""
        never = self.n_together[i] == 0
        # each pair once
        never[: i + 1] = False
        return self._with_evidence(i, never, evidence)

    def _with_evidence(
        self,
        i: int,
        holds: np.ndarray,
        evidence: np.ndarray,
    ) -> list[int]:
        """Return the values of other columns for which a rule holds with enough evidence."""
        is_other_column = self.columns != self.columns[i]
        could_fail = evidence >= self.least_evidence
        positions = np.flatnonzero(holds & is_other_column & could_fail)
        return list(positions.tolist())

    def is_settled(
        self,
        first: _FrequentValue,
        second: _FrequentValue,
    ) -> bool:
        """Whether the column of one value determines that of the other."""
        if (first.column, second.column) in self.settled:
            return True
        return (second.column, first.column) in self.settled

    def implication_text(
        self,
        premise: _FrequentValue,
        conclusion: _FrequentValue,
    ) -> str:
        """Return the rule that a value implies another one."""
        text = f"{premise.test} implies {conclusion.test}"
        column = conclusion.column
        if self.has_missing[column] and conclusion.value is not None:
            # a missing value would make the conclusion unknown, which breaks nothing
            text += f" and {quote_name(column)} != missing"
        return text


def _frequent_values(table: MiningTable) -> list[_FrequentValue]:
    """Return the most frequent values of all columns, in the table's order."""
    values: list[_FrequentValue] = []
    for name, is_numeric in table.numeric.items():
        counts = table.rows[name].value_counts(dropna=False)
        if is_numeric and len(counts) > MANY_VALUES:
            least = PILE_SHARE * table.n_rows
        else:
            least = max(VALUE_SHARE * table.n_rows, LEAST_COUNT)
        # the most frequent ones come first
        frequent = counts[counts >= least].head(VALUES_PER_COLUMN)
        for value, count in frequent.items():
            frequent_value = _FrequentValue(
                column=str(name),
                value=_none_if_missing(value),
                count=int(count),
            )
            values.append(frequent_value)
    if len(values) <= VALUES_IN_ALL:
        return values
    # from the most frequent one; stable: of equally frequent values, the first ones stay
    negative_counts = [-value.count for value in values]
    by_count = np.argsort(negative_counts, kind="stable")
    chosen = sorted(by_count[:VALUES_IN_ALL])
    return [values[i] for i in chosen]


def _none_if_missing(value: Value) -> Value:
    """Return None for NaN, which is not even equal to itself."""
    return None if pd.isna(value) else value


def _count_together(
    table: MiningTable,
    values: list[_FrequentValue],
) -> np.ndarray:
    """Return how many rows have both of two values, ``(m, m)``."""
    n_values = len(values)
    n_together = np.zeros((n_values, n_values), dtype=np.float32)
    positions = _positions_by_column(table, values)
    # in blocks of rows, so that the table of zeros and ones never stands as a whole
    block_size = CELLS_PER_BLOCK // max(1, n_values)
    for start in range(0, table.n_rows, block_size):
        block = slice(start, start + block_size)
        in_block = [column[block] for column in positions]
        has_value = _mark_values(in_block, n_values)
        n_together += has_value.T @ has_value
    return n_together


def _mark_values(positions: list[np.ndarray], n_values: int) -> np.ndarray:
    """Return which rows have which values, as zeros and ones, ``(rows, values)`` float32."""
    n_rows = len(positions[0]) if positions else 0
    has_value = np.zeros((n_rows, n_values), dtype=np.float32)
    for column in positions:
        rows = np.flatnonzero(column >= 0)
        has_value[rows, column[rows]] = 1
    return has_value


def _positions_by_column(
    table: MiningTable,
    values: list[_FrequentValue],
) -> list[np.ndarray]:
    """Return for each column, and each row, which of the values it has; -1 for none."""
    by_column: dict[str, ValuePositions] = {}
    for position, frequent in enumerate(values):
        column_positions = by_column.setdefault(frequent.column, {})
        column_positions[frequent.value] = position
    return [
        _positions_in_column(table.rows[name], column_positions)
        for name, column_positions in by_column.items()
    ]


def _positions_in_column(
    column: pd.Series,
    position_of: ValuePositions,
) -> np.ndarray:
    """Return the position of each row's value among the frequent ones, -1 for another value."""
    codes, distinct = pd.factorize(column, use_na_sentinel=False)
    positions = []
    for value in distinct:
        key = _none_if_missing(value)
        position = position_of.get(key, -1)
        positions.append(position)
    # 16 bits hold every position, since VALUES_IN_ALL is far below 32,767
    position_of_value = np.array(positions, dtype=np.int16)
    return position_of_value[codes]
