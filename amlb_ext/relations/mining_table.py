"""A table as the searches for relations share it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import Condition
from amlb_ext.relations.equations import read_equation
from amlb_ext.relations.grammar import parse_condition
from amlb_ext.relations.kinds import Rule, RuleKind
from amlb_ext.relations.values import numeric_columns, read_numbers

#: Rows on which all candidates are tried first.
SCREENING_ROWS = 500
#: Fewer rows than this say nothing.
LEAST_ROWS = 30


@dataclass(frozen=True)
class MiningTable:
    """A table, and what every search needs of it.

    Attributes
    ----------
    rows : DataFrame of shape (n, d)
    sample : ndarray of int
        Positions of the rows on which all candidates are tried first, sorted.
    permutation : ndarray of shape (n,), int
        Separates a column from the others: what still holds then holds by chance.
    numeric : dict of str to bool
        Whether each column holds numbers.
    """

    rows: pd.DataFrame
    sample: np.ndarray
    permutation: np.ndarray
    numeric: dict[str, bool]

    @classmethod
    def from_rows(cls, rows: pd.DataFrame, seed: int) -> MiningTable:
        """Draw the sample and the permutation."""
        rng = np.random.default_rng([seed, len(rows)])
        permutation = rng.permutation(len(rows))
        return cls(
            rows=rows,
            sample=np.sort(permutation[:SCREENING_ROWS]),
            permutation=permutation,
            numeric=numeric_columns(rows),
        )

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

    def screened_rows(self, names: list[str]) -> pd.DataFrame:
        """Return columns of the rows on which candidates are tried first."""
        return self.rows[names].iloc[self.sample]

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

    def with_evidence(
        self,
        rule: Rule,
        target: str,
        least_evidence: float,
    ) -> Rule | None:
        """Return a rule that holds in every row, with its evidence; None where that is too small.

        The evidence is how many rows break the rule when the target is permuted.
        """
        if rule.breaks(self.rows).any():
            return None
        permuted = self.rows[list(rule.columns)].copy()
        permuted[target] = permuted[target].to_numpy()[self.permutation]
        evidence = float(rule.breaks(permuted).sum())
        return replace(rule, evidence=evidence) if evidence >= least_evidence else None
