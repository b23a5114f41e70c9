"""Search for dependencies: columns whose values one or two other columns determine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from amlb_ext.relations.kinds import Dependency
from amlb_ext.relations.mining_table import MiningTable

#: Pairs of columns determine another one only if they take few values, and are few themselves.
PAIR_VALUES, PAIR_COLUMNS = 60, 64
#: A column with fewer rows for each of its values than this is nearly a key. A key determines
#: every column, which is no evidence of anything.
ROWS_PER_KEY = 3


@dataclass(frozen=True)
class _CodedTable:
    """A table's values as codes.

    Attributes
    ----------
    codes : ndarray of shape (n, d), int32
    n_values : ndarray of shape (d,), int32
        How many values each column takes.
    """

    table: MiningTable
    names: list[str]
    codes: np.ndarray
    n_values: np.ndarray

    @classmethod
    def from_table(cls, table: MiningTable) -> _CodedTable:
        names = list(table.rows)
        shape = (table.n_rows, len(names))
        # filled column by column: a list of all columns would take the memory twice
        codes = np.empty(shape, dtype=np.int32, order="F")
        for position, name in enumerate(names):
            # a missing value has a code like any other
            column_codes, _ = pd.factorize(table.rows[name], use_na_sentinel=False)
            codes[:, position] = column_codes
        # codes count from zero, without gaps
        n_values = codes.max(axis=0) + 1
        return cls(
            table=table,
            names=names,
            codes=codes,
            n_values=n_values,
        )

    @property
    def most_key_values(self) -> float:
        """Columns with more values than this are nearly keys."""
        return self.table.n_rows / ROWS_PER_KEY

    def takes_few(self, most_values: int) -> np.ndarray:
        """Return which columns vary, and take no more values than this, ``(d,)`` bool."""
        return (self.n_values >= 2) & (self.n_values <= most_values)

    def joint_codes(self, first: int, second: int) -> np.ndarray:
        """Return one code for each combination of two columns' values, ``(n,)``."""
        # 32 bits are enough: pairs are made of columns with few values
        first_codes = self.codes[:, first]
        second_codes = self.codes[:, second]
        joint = first_codes * self.n_values[second] + second_codes
        # without gaps, as the codes of a single column
        codes, _ = pd.factorize(joint)
        return codes

    def permuted_codes(self, column: int) -> np.ndarray:
        """Return the codes of a column that has nothing to do with the others any more."""
        return self.codes[self.table.permutation, column]

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
        surviving = np.flatnonzero(is_constant & candidates)
        if not len(surviving):
            return []
        first = _first_with_same_key(key)
        determined = []
        for j in surviving.tolist():
            column = self.codes[:, j]
            if (column[first] == column).all():
                determined.append(j)
        return determined


def _first_with_same_key(key: np.ndarray) -> np.ndarray:
    """Return for each row the position of the first row that has the same key."""
    _, first, inverse = np.unique(
        key,
        return_index=True,
        return_inverse=True,
    )
    return first[inverse]


def mine_dependencies(
    table: MiningTable,
    least_evidence: float,
) -> list[Dependency]:
    """Find columns that another one determines, then those that two others determine."""
    coded = _CodedTable.from_table(table)
    single = list(_single_sources(coded, least_evidence))
    # whether the column of a row determines, on its own, that of a column: (d, d) bool
    n_columns = len(coded.names)
    determines = np.zeros((n_columns, n_columns), dtype=bool)
    for finding in single:
        (source,) = finding.sources
        determines[source, finding.target] = True
    pairs = list(_pairs_of_sources(coded, determines, least_evidence))
    findings = single + pairs
    return [finding.learn(coded) for finding in findings]


@dataclass(frozen=True)
class _Finding:
    """A dependency by the positions of its columns."""

    sources: tuple[int, ...]
    target: int
    evidence: float

    def learn(self, coded: _CodedTable) -> Dependency:
        """Return the dependency with the values that it determines."""
        sources = [coded.names[position] for position in self.sources]
        return Dependency.learn(
            coded.table.rows,
            sources=tuple(sources),
            target=coded.names[self.target],
            evidence=self.evidence,
        )


def _single_sources(
    coded: _CodedTable,
    least_evidence: float,
) -> Iterator[_Finding]:
    """Find columns that determine another one."""
    for i, n_values in enumerate(coded.n_values):
        if not 2 <= n_values <= coded.most_key_values:
            continue
        # each of its values determines one, so the other column cannot take more
        may_follow = coded.takes_few(n_values)
        may_follow[i] = False
        key = coded.codes[:, i]
        for j in coded.determined_by(key, may_follow):
            evidence = _broken_when_permuted(key, coded.permuted_codes(j))
            if evidence >= least_evidence:
                yield _Finding((i,), j, evidence)


def _pairs_of_sources(
    coded: _CodedTable,
    determines: np.ndarray,
    least_evidence: float,
) -> Iterator[_Finding]:
    """Find pairs of columns that together determine another one."""
    for i, k in combinations(_columns_for_pairs(coded), 2):
        n_combinations = coded.n_values[i] * coded.n_values[k]
        if n_combinations > coded.most_key_values:
            continue
        # where one of the two determines the other, the pair says no more than that one
        if determines[i, k] or determines[k, i]:
            continue
        most_values = min(PAIR_VALUES, n_combinations)
        may_follow = coded.takes_few(most_values)
        # what one of the two determines alone is no news
        may_follow &= ~determines[i] & ~determines[k]
        may_follow[[i, k]] = False
        key = coded.joint_codes(i, k)
        for j in coded.determined_by(key, may_follow):
            evidence = _broken_when_permuted(key, coded.permuted_codes(j))
            if evidence >= least_evidence:
                yield _Finding((i, k), j, evidence)


def _columns_for_pairs(coded: _CodedTable) -> list[int]:
    """Return the columns that pairs are made of, in the table's order."""
    columns = np.flatnonzero(coded.takes_few(PAIR_VALUES))
    # those with the most values say most, where there are too many columns to try all pairs
    n_values = coded.n_values[columns]
    by_values = np.argsort(-n_values, kind="stable")
    chosen = columns[by_values[:PAIR_COLUMNS]]
    return sorted(chosen.tolist())


def _broken_when_permuted(key: np.ndarray, permuted: np.ndarray) -> float:
    """Return how many rows must go until the key determines the permuted column (g3 times n).

    Source: Kivinen and Mannila, Approximate inference of functional dependencies from relations,
    Theoretical Computer Science 149 (1995).
    """
    n_codes = int(permuted.max()) + 1
    pair_codes = key.astype(np.int64) * n_codes + permuted
    pairs, counts = np.unique(pair_codes, return_counts=True)
    keys = pairs // n_codes
    # pairs are sorted, so the counts of one key stand side by side, from here to the next start
    _, starts = np.unique(keys, return_index=True)
    # of each key, the rows with its most frequent value may stay
    n_kept = np.maximum.reduceat(counts, starts).sum()
    return float(len(key) - n_kept)
