"""Relations that hold in every row of a table, each with the evidence for it.

A relation that holds on n rows says little if it could not have failed. So each one carries its
*evidence*: the number of rows expected to break it if its columns had nothing to do with each
other. For an order, an exclusion and an implication this expectation is computed; for a
dependency one column is permuted once. What holds on n rows may still fail in at most 3/n of all
rows (the rule of three; Hanley and Lippman-Hand, JAMA 249, 1983), so no relation is called a law.

All candidates are first tried on few rows; only what survives is verified on all.

The searches: :mod:`~amlb_ext.relations.number_rules` (sums, multiples, orders and exclusions),
:mod:`~amlb_ext.relations.equality_search` (linear equalities of several columns),
:mod:`~amlb_ext.relations.product_search` (products and quotients),
:mod:`~amlb_ext.relations.groups` (one-hot groups, shares within a band) and
:mod:`~amlb_ext.relations.value_rules` (dependencies, and rules between values).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations

import pandas as pd

from amlb_ext.relations.equality_search import MOST_SOURCES, mine_equalities
from amlb_ext.relations.equations import Equation
from amlb_ext.relations.groups import mine_bands, mine_one_hot
from amlb_ext.relations.kinds import Relation
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable
from amlb_ext.relations.number_rules import (
    mine_exclusions,
    mine_linear,
    mine_orders,
    mine_sums,
)
from amlb_ext.relations.product_search import mine_products
from amlb_ext.relations.value_rules import mine_dependencies, mine_value_rules
from amlb_ext.relations.values import WrittenForm, learn_forms

#: What a table is searched for, in words: only these can be told to hold, or to be broken.
LOOKED_FOR = (
    f"one-hot groups, sums, multiples, linear equalities of up to {MOST_SOURCES + 1} columns, "
    "constant sums, sums within a band, products, quotients, dependencies, orders, exclusions, "
    "implications, values that never meet"
)
#: Of one kind, those with the most evidence.
MOST_OF_A_KIND = 300


@dataclass(frozen=True)
class MinedRelations:
    """What holds in a table.

    Attributes
    ----------
    n_rows : int
        Rows on which everything holds.
    relations : tuple of Relation
        By kind, then by evidence.
    forms : tuple of WrittenForm
        One for each column of numbers.
    left_out : dict of str to int
        Relations of a kind beyond :data:`MOST_OF_A_KIND`.
    """

    n_rows: int
    relations: tuple[Relation, ...] = ()
    forms: tuple[WrittenForm, ...] = ()
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def most_exceptions(self) -> float:
        """The share of all rows that breaks a relation, at most: 3/n with confidence 95 %."""
        return min(1.0, 3 / max(1, self.n_rows))


def mine_relations(
    rows: pd.DataFrame,
    least_evidence: float = 10.0,
    seed: int = 0,
) -> MinedRelations:
    """Find the relations that hold in every row.

    Parameters
    ----------
    rows : DataFrame
        In canonical form: numbers as ``float64``, everything else as categories of text; the
        target is a column like any other.
    least_evidence : float
        Relations with less evidence are not returned.
    seed : int
        Of the one permutation that the evidence for dependencies rests on.

    Returns
    -------
    MinedRelations

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.integers(0, 9, (200, 2)).astype(float), columns=["a", "c"])
    >>> rows["b"] = rows["a"] + rows["c"]
    >>> [relation.text for relation in mine_relations(rows).relations]
    ['a + c == b', 'c <= b', 'a <= b']
    """
    forms = tuple(learn_forms(rows))
    if len(rows) < LEAST_ROWS:
        return MinedRelations(len(rows), forms=forms)
    by_kind: dict[str, list[Relation]] = {}
    for relation in _mine_all(MiningTable(rows, seed, least_evidence)):
        by_kind.setdefault(relation.kind, []).append(relation)
    relations: list[Relation] = []
    left_out = {}
    for kind, candidates in by_kind.items():
        # the sort is stable: of equal evidence, the order of the table's columns counts
        ranked = sorted(candidates, key=lambda relation: -relation.evidence)
        relations += ranked[:MOST_OF_A_KIND]
        if len(ranked) > MOST_OF_A_KIND:
            left_out[kind] = len(ranked) - MOST_OF_A_KIND
    return MinedRelations(
        n_rows=len(rows),
        relations=tuple(relations),
        forms=forms,
        left_out=left_out,
    )


def _mine_all(table: MiningTable) -> list[Relation]:
    """Return all relations, kind by kind in the order in which they are listed."""
    one_hot = list(mine_one_hot(table))
    groups = [set(rule.columns) for rule in one_hot]
    # of three columns of which one is 1, two give the third
    dependencies = [
        dependency
        for dependency in mine_dependencies(table)
        if not any(group.issuperset(dependency.columns) for group in groups)
    ]
    # what a dependency or a group settles is not repeated value by value
    settled = {pair for rule in one_hot for pair in permutations(rule.columns, 2)}
    for dependency in dependencies:
        settled |= {(source, dependency.target) for source in dependency.sources}
    value_rules = mine_value_rules(table, settled)
    sums = list(mine_sums(table))
    lines = list(mine_linear(table))
    # the last of a group, and copies, are given by others
    given = {rule.columns[-1] for rule in one_hot}
    given |= {rule.columns[-1] for rule in sums if len(rule.columns) == 2}
    equalities = list(mine_equalities(table, [*sums, *lines], given))
    known = {frozenset(rule.columns) for rule in [*sums, *equalities]}
    products = mine_products(table, known, given)
    given |= {rule.target for rule in equalities if isinstance(rule, Equation)}
    bands = list(mine_bands(table, given))
    return [
        *one_hot,
        *sums,
        # before dependencies: a computed value may be one that was never seen
        *lines,
        # linear equalities, then constant sums, which are shares as bands are
        *sorted(equalities, key=lambda rule: rule.kind),
        *bands,
        # products, then quotients
        *sorted(products, key=lambda rule: rule.kind),
        *dependencies,
        *mine_orders(table),
        *mine_exclusions(table),
        *value_rules,
    ]
