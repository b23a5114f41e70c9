"""A table as the searches for relations share it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import Condition
from amlb_ext.relations.equations import read_equation
from amlb_ext.relations.grammar import parse_condition
from amlb_ext.relations.kinds import Rule, RuleKind
from amlb_ext.relations.values import half_unit_of, numeric_columns, read_numbers

#: Rows on which all candidates are tried first.
SCREENING_ROWS = 500
#: Fewer rows than this say nothing.
LEAST_ROWS = 30


class MiningTable:
    """A table, and what every search needs of it.

    Parameters
    ----------
    rows : DataFrame of shape (n, d)
    seed : int
        Of the sample and of the permutation.
    least_evidence : float
        Relations with less evidence are none.

    Attributes
    ----------
    sample : ndarray of int
        Positions of the rows on which all candidates are tried first, sorted.
    permutation : ndarray of shape (n,), int
        Separates a column from the others: what still holds then holds by chance.
    numeric : dict of str to bool
        Whether each column holds numbers.
    """

    def __init__(
        self, rows: pd.DataFrame, seed: int = 0, least_evidence: float = 10.0
    ) -> None:
        self.rows = rows
        self.least_evidence = least_evidence
        rng = np.random.default_rng([seed, len(rows)])
        self.permutation = rng.permutation(len(rows))
        self.sample = np.sort(self.permutation[:SCREENING_ROWS])
        self.numeric = numeric_columns(rows)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.rows)

    @property
    def numeric_names(self) -> list[str]:
        """The columns that hold numbers."""
        return [name for name, is_numeric in self.numeric.items() if is_numeric]

    def numbers(self, name: str) -> np.ndarray:
        """Return the numbers of a column, NaN where one is missing."""
        return read_numbers(self.rows, name)

    def complete_numbers(self, *names: str) -> list[np.ndarray]:
        """Return the numbers of columns in the rows that lack none of them."""
        columns = [self.numbers(name) for name in names]
        is_complete = ~np.isnan(columns).any(axis=0)
        return [column[is_complete] for column in columns]

    @cached_property
    def n_values(self) -> pd.Series:
        """How many values each column of numbers takes."""
        return self.rows[self.numeric_names].nunique()

    def varied_names(
        self, least_values: int = 2, left_out: Collection[str] = ()
    ) -> list[str]:
        """Return the columns of numbers that take so many values."""
        return [
            name
            for name in self.numeric_names
            if self.n_values[name] >= least_values and name not in left_out
        ]

    def half_units(self, names: Sequence[str]) -> np.ndarray:
        """Return by how much rounding changed the numbers of columns at most."""
        return np.array([half_unit_of(self.numbers(name)) for name in names])

    def screened_rows(self, names: list[str]) -> pd.DataFrame:
        """Return columns of the rows on which candidates are tried first."""
        return self.rows[names].iloc[self.sample]

    def complete_sample(
        self, names: Sequence[str], rows_per_column: int = 0
    ) -> pd.DataFrame:
        """Return numbers of rows that are tried first, without gaps.

        All columns but the emptiest are kept where enough rows remain, else those without a gap.
        """
        n_tried = max(SCREENING_ROWS, rows_per_column * len(names))
        sample = self.rows[list(names)].iloc[np.sort(self.permutation[:n_tried])]
        half = len(sample) // 2
        complete = sample.dropna(axis=1, thresh=half).dropna(axis=0)
        if len(complete) >= LEAST_ROWS:
            return complete
        return sample.dropna(axis=1)

    def make_condition(self, text: str) -> Condition:
        """Return a condition on this table from its text."""
        return parse_condition(text, self.numeric)

    def make_rule(
        self,
        kind: RuleKind,
        text: str,
        evidence: float,
    ) -> Rule:
        """Return a rule of this table from its text; an equality computes a column."""
        condition = self.make_condition(text)
        return read_equation(Rule(kind, condition, float(evidence)), self.rows)

    def with_evidence(self, rule: Rule, target: str) -> Rule | None:
        """Return a rule that holds in every row, with its evidence; None where that is too small.

        The evidence is how many rows break the rule when the target is permuted.
        """
        if rule.breaks(self.rows).any():
            return None
        permuted = self.rows[list(rule.columns)].copy()
        permuted[target] = permuted[target].to_numpy()[self.permutation]
        evidence = float(rule.breaks(permuted).sum())
        if evidence < self.least_evidence:
            return None
        return replace(rule, evidence=evidence)
