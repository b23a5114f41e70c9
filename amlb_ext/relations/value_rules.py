"""Search for rules between values: dependencies, implications, and values that never meet.

Of a dependency one or two columns determine another one, whatever their values; the rules between
frequent values are ``a == v implies b == w`` and ``not (a == v and b == w)``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from amlb_ext.relations.grammar import quote_name, write_equality
from amlb_ext.relations.kinds import Dependency, Rule
from amlb_ext.relations.mining_table import MiningTable

#: Pairs of columns determine another one only if they take few values, and are few themselves.
PAIR_VALUES, PAIR_COLUMNS = 60, 64
#: A column with fewer rows for each of its values than this is nearly a key. A key determines
#: every column, which is no evidence of anything.
ROWS_PER_KEY = 3


class _CodedTable:
    """A table's values as codes.

    Attributes
    ----------
    codes : ndarray of shape (n, d), int32
    n_values : ndarray of shape (d,), int32
        How many values each column takes.
    """

    def __init__(self, table: MiningTable) -> None:
        self.table = table
        self.names = list(table.rows)
        shape = (table.n_rows, len(self.names))
        # filled column by column: a list of all columns would take the memory twice
        self.codes = np.empty(shape, dtype=np.int32, order="F")
        for position, name in enumerate(self.names):
            # a missing value has a code like any other
            column_codes, _ = pd.factorize(table.rows[name], use_na_sentinel=False)
            self.codes[:, position] = column_codes
        # codes count from zero, without gaps
        self.n_values = self.codes.max(axis=0) + 1

    def takes_few(self, most_values: int) -> np.ndarray:
        """Return which columns vary, and take no more values than this, ``(d,)`` bool."""
        return (self.n_values >= 2) & (self.n_values <= most_values)

    def joint_codes(self, first: int, second: int) -> np.ndarray:
        """Return one code for each combination of two columns' values, ``(n,)``."""
        # 32 bits are enough: pairs are made of columns with few values
        joint = self.codes[:, first] * self.n_values[second] + self.codes[:, second]
        # without gaps, as the codes of a single column
        return pd.factorize(joint)[0]

    def determined_by(
        self,
        key: np.ndarray,
        candidates: np.ndarray,
    ) -> list[int]:
        """Return the columns, of the candidates, that are constant wherever the key is.

        Parameters
        ----------
        key : ndarray of shape (n,), int
        candidates : ndarray of shape (d,), bool
        """
        sample = self.table.sample
        # on few rows all columns are compared at once
        screened = self.codes[sample]
        first = _first_with_same_key(key[sample])
        is_constant = (screened[first] == screened).all(axis=0)
        surviving = np.flatnonzero(is_constant & candidates).tolist()
        if not surviving:
            return []
        first = _first_with_same_key(key)
        codes = self.codes
        return [j for j in surviving if np.array_equal(codes[first, j], codes[:, j])]


def _first_with_same_key(key: np.ndarray) -> np.ndarray:
    """Return for each row the position of the first row that has the same key."""
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return first[inverse]


def mine_dependencies(table: MiningTable) -> list[Dependency]:
    """Find columns that another one determines, then those that two others determine."""
    coded = _CodedTable(table)
    # columns with more values than this are nearly keys
    most_key_values = table.n_rows / ROWS_PER_KEY
    dependencies = []

    def add_determined(sources: tuple[int, ...], may_follow: np.ndarray) -> list[int]:
        """Keep the dependencies on some sources; return the columns that they determine."""
        key = coded.codes[:, sources[0]]
        if len(sources) == 2:
            key = coded.joint_codes(*sources)
        kept = []
        for j in coded.determined_by(key, may_follow):
            # a permuted column has nothing to do with the others any more
            permuted = coded.codes[table.permutation, j]
            evidence = _broken_when_permuted(key, permuted)
            if evidence < table.least_evidence:
                continue
            kept.append(j)
            named = tuple(coded.names[i] for i in sources)
            target = coded.names[j]
            dependencies.append(
                Dependency.learn(table.rows, named, target, evidence=evidence)
            )
        return kept

    # whether the column of a row determines, on its own, that of a column: (d, d) bool
    n_columns = len(coded.names)
    determines = np.zeros((n_columns, n_columns), dtype=bool)
    for i, n_values in enumerate(coded.n_values):
        if 2 <= n_values <= most_key_values:
            # each of its values determines one, so the other column cannot take more
            may_follow = coded.takes_few(n_values)
            may_follow[i] = False
            determines[i, add_determined((i,), may_follow)] = True
    for i, k in combinations(_columns_for_pairs(coded), 2):
        n_combinations = coded.n_values[i] * coded.n_values[k]
        # where one of the two determines the other, the pair says no more than that one
        says_more = not (determines[i, k] or determines[k, i])
        if n_combinations <= most_key_values and says_more:
            may_follow = coded.takes_few(min(PAIR_VALUES, n_combinations))
            # what one of the two determines alone is no news
            may_follow &= ~determines[i] & ~determines[k]
            may_follow[[i, k]] = False
            add_determined((i, k), may_follow)
    return dependencies


def _columns_for_pairs(coded: _CodedTable) -> list[int]:
    """Return the columns that pairs are made of, in the table's order."""
    columns = np.flatnonzero(coded.takes_few(PAIR_VALUES))
    # those with the most values say most, where there are too many columns to try all pairs
    by_values = np.argsort(-coded.n_values[columns], kind="stable")
    return sorted(columns[by_values[:PAIR_COLUMNS]].tolist())


def _broken_when_permuted(key: np.ndarray, permuted: np.ndarray) -> float:
    """Return how many rows must go until the key determines the permuted column (g3 times n).

    Source: Kivinen and Mannila, Approximate inference of functional dependencies from relations,
    Theoretical Computer Science 149 (1995).
    """
    n_codes = int(permuted.max()) + 1
    pair_codes = key.astype(np.int64) * n_codes + permuted
    pairs, counts = np.unique(pair_codes, return_counts=True)
    # pairs are sorted, so the counts of one key stand side by side, from here to the next start
    _, starts = np.unique(pairs // n_codes, return_index=True)
    # of each key, the rows with its most frequent value may stay
    n_kept = np.maximum.reduceat(counts, starts).sum()
    return float(len(key) - n_kept)


# Rules between frequent values.


#: Values of one column that rules may name: frequent enough to be a thing of its own.
VALUE_SHARE, VALUES_PER_COLUMN, VALUES_IN_ALL = 0.01, 30, 2000
#: In a number that takes many values, only piles of this share.
PILE_SHARE, MANY_VALUES = 0.05, 20
#: However short the table is, a frequent value has this many rows.
LEAST_COUNT = 5
#: Cells of the block of zeros and ones that counts which values meet.
CELLS_PER_BLOCK = 1_000_000

Value = float | str | None


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


def mine_value_rules(
    table: MiningTable, settled: Collection[tuple[str, str]]
) -> list[Rule]:
    """Find implications between frequent values, and values that never meet.

    Parameters
    ----------
    table : MiningTable
    settled : collection of (str, str)
        Sources and targets of dependencies, about which no value needs a rule of its own.

    Returns
    -------
    list of Rule
        Implications first.
    """
    values = _frequent_values(table)
    # of values i and j, the number of rows with both: (m, m)
    n_together = _count_together(table, values)
    counts = np.array([value.count for value in values], dtype=float)
    columns = np.array([value.column for value in values], dtype=object)
    share_without = 1 - counts / table.n_rows

    def with_evidence(i: int, holds: np.ndarray, evidence: np.ndarray) -> list[int]:
        """Return the values of other columns for which a rule holds with enough evidence."""
        is_other_column = columns != columns[i]
        could_fail = evidence >= table.least_evidence
        return list(np.flatnonzero(holds & is_other_column & could_fail).tolist())

    has_missing = table.rows.isna().any()
    rules = []
    # a premise, by its position, and the column about which an implication says all
    implied: set[tuple[int, str]] = set()
    for i, premise in enumerate(values):
        expected_exceptions = premise.count * share_without
        # what every row with the premise has
        always = n_together[i] == premise.count
        for j in with_evidence(i, always, expected_exceptions):
            conclusion = values[j]
            if (premise.column, conclusion.column) in settled:
                continue
            text = f"{premise.test} implies {conclusion.test}"
            if has_missing[conclusion.column] and conclusion.value is not None:
                # a missing value would make the conclusion unknown, which breaks nothing
                text += f" and {quote_name(conclusion.column)} != missing"
            rules.append(table.make_rule("implies", text, expected_exceptions[j]))
            implied.add((i, conclusion.column))
    for i, first in enumerate(values):
        expected_together = first.count * counts / table.n_rows
        never_together = n_together[i] == 0
        # each pair once
        never_together[: i + 1] = False
        for j in with_evidence(i, never_together, expected_together):
            second = values[j]
            # where one value implies another of that column, it meets none of the rest
            if (i, second.column) in implied or (j, first.column) in implied:
                continue
            pair = (first.column, second.column)
            if pair in settled or pair[::-1] in settled:
                continue
            text = f"not ({first.test} and {second.test})"
            rules.append(table.make_rule("never", text, expected_together[j]))
    return rules


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
            values.append(_FrequentValue(name, _none_if_missing(value), int(count)))
    # from the most frequent one; stable: of equally frequent values, the first ones stay
    by_count = np.argsort([-value.count for value in values], kind="stable")
    return [values[i] for i in sorted(by_count[:VALUES_IN_ALL])]


def _none_if_missing(value: Value) -> Value:
    """Return None for NaN, which is not even equal to itself."""
    return None if pd.isna(value) else value


def _count_together(table: MiningTable, values: list[_FrequentValue]) -> np.ndarray:
    """Return how many rows have both of two values, ``(m, m)``."""
    n_values = len(values)
    n_together = np.zeros((n_values, n_values), dtype=np.float32)
    by_column: dict[str, dict[Value, int]] = {}
    for position, frequent in enumerate(values):
        by_column.setdefault(frequent.column, {})[frequent.value] = position
    # of each column: the position of each row's value, -1 where it is not frequent
    positions = []
    for name, position_of in by_column.items():
        codes, distinct = pd.factorize(table.rows[name], use_na_sentinel=False)
        found = [position_of.get(_none_if_missing(value), -1) for value in distinct]
        # 16 bits hold every position, since VALUES_IN_ALL is far below 32,767
        positions.append(np.array(found, dtype=np.int16)[codes])
    # in blocks of rows, so that the table of zeros and ones never stands as a whole
    block_size = CELLS_PER_BLOCK // max(1, n_values)
    for start in range(0, table.n_rows, block_size):
        end = min(start + block_size, table.n_rows)
        has_value = np.zeros((end - start, n_values), dtype=np.float32)
        for column in positions:
            in_block = column[start:end]
            rows = np.flatnonzero(in_block >= 0)
            has_value[rows, in_block[rows]] = 1
        n_together += has_value.T @ has_value
    return n_together
