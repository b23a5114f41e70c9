"""Made rows that satisfy all relations: corrected, rejected, or given back their parent's values.

Every made row has a *parent*, a real row that satisfies the relations. So there is always a way
back: putting the parent's values into the columns of whatever is broken ends in a row that breaks
nothing, after as many rounds as there are columns at most. No solver is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.relations.conditions import tolerance_at
from amlb_ext.relations.equations import Equation
from amlb_ext.relations.groups import Mender, find_mender
from amlb_ext.relations.kinds import Dependency, Relation, Rule, reach_columns
from amlb_ext.relations.values import (
    ColumnReader,
    WrittenForm,
    holds_numbers,
    read_numbers,
)

Direction = Literal["up", "down"]
#: A column, and the relation by which others determine it.
Derivation = tuple[str, Dependency | Equation]


@dataclass(frozen=True, kw_only=True)
class Relations:
    """All that made rows must satisfy.

    Attributes
    ----------
    relations : tuple of Relation
        Mined and declared.
    forms : mapping of str to WrittenForm
        How numbers are written, by column.
    frozen : tuple of str
        Columns that keep the parent's value.
    one_way : mapping of str to {'up', 'down'}
        Columns of numbers that may only grow, or only shrink.
    targets : tuple of str
        Columns that hold targets.

    Examples
    --------
    >>> from amlb_ext.relations.kinds import parse_relation
    >>> parents = pd.DataFrame({"bedrooms": [1.0, 2.0], "rooms": [3.0, 4.0]})
    >>> relations = Relations(relations=(parse_relation("bedrooms <= rooms", parents),))
    >>> made = parents.assign(bedrooms=[3.5, 3.0])
    >>> relations.put_back(made, parents)[0]["bedrooms"].tolist()
    [1.0, 3.0]
    """

    relations: tuple[Relation, ...] = ()
    forms: Mapping[str, WrittenForm] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    one_way: Mapping[str, Direction] = field(default_factory=dict)
    targets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.relations or self.forms or self.frozen or self.one_way)

    def correct(
        self,
        rows: pd.DataFrame,
        parents: pd.DataFrame,
    ) -> pd.DataFrame:
        """Return rows with what can be set right without asking which of two columns is wrong.

        Frozen columns get the parent's value, numbers the written form of real ones, and
        determined columns the value that others determine.

        Parameters
        ----------
        rows, parents : DataFrame of shape (n, d)
            With the same columns; row i was made from parent i.
        """
        corrected = rows.copy()
        for name in self.frozen:
            # an array, so that the parents' index plays no part; it has lost the column's type
            column = pd.Series(parents[name].to_numpy(), index=rows.index)
            corrected[name] = column.astype(rows[name].dtype)
        for name, form in self.forms.items():
            if name not in self.frozen:
                corrected[name] = form.correct(read_numbers(rows, name))
        for group, mend in self._mendable_groups:
            # as it was made, where the largest number still says which column was meant
            is_whole = group.kind == "one_hot"
            mended = mend(rows if is_whole else corrected, parents, self.forms)
            corrected[list(group.columns)] = mended
        # last, because what is computed rests on what has been corrected
        for column, relation in self.derivations:
            corrected[column] = self.derive(column, relation, corrected)
        return corrected

    def derive(
        self,
        column: str,
        relation: Dependency | Equation,
        rows: pd.DataFrame,
    ) -> pd.Series:
        """Return a column as a relation of :attr:`derivations` computes it from the others."""
        if isinstance(relation, Dependency):
            return relation.derive(rows)
        solved = relation.derive(column, rows)
        if column in self.forms:
            solved = self.forms[column].round(solved)
        return pd.Series(solved, index=rows.index, name=column)

    @cached_property
    def derived(self) -> tuple[str, ...]:
        """The columns that others determine, in the order in which they are computed."""
        return tuple(column for column, _ in self.derivations)

    @cached_property
    def derivations(self) -> tuple[Derivation, ...]:
        """Columns that are computed, each with its relation: no column twice, no circle.

        Of two columns that determine each other the number is computed and the category kept.
        Targets and frozen columns are never computed.
        """
        chosen: dict[str, Dependency | Equation] = {}
        # the columns from which each computed one is computed
        rests_on: dict[str, set[str]] = {}
        for column, relation in self._derivation_candidates():
            if column in chosen or relation in chosen.values():
                continue
            sources = set(relation.columns) - {column}
            if column not in reach_columns(sources, rests_on):
                rests_on[column] = sources
                chosen[column] = relation
        return tuple(_sort_by_sources(chosen))

    def _derivation_candidates(self) -> list[Derivation]:
        """Return columns that may be computed, each with a relation; the preferred ones first."""
        of_two: list[Derivation] = []
        others: list[Derivation] = []
        for relation in self.relations:
            if isinstance(relation, Dependency):
                others.append((relation.target, relation))
            elif isinstance(relation, Equation) and len(relation.columns) > 1:
                # one column settles the other here: of net + tax == gross, with net and tax as
                # multiples of gross, a sum of two that were made apart would break both
                preferred = of_two if len(relation.columns) == 2 else others
                preferred += [(name, relation) for name in relation.solvable]
        untouchable = {*self.targets, *self.frozen}
        candidates = [pair for pair in of_two + others if pair[0] not in untouchable]
        # only numbers have a written form
        return sorted(candidates, key=lambda pair: pair[0] not in self.forms)

    @cached_property
    def _mendable_groups(self) -> list[tuple[Rule, Mender]]:
        """Groups none of whose columns is computed from outside, or must not change."""
        groups = []
        for relation in self.relations:
            if not isinstance(relation, Rule):
                continue
            mend = find_mender(relation)
            if mend is None:
                continue
            members = set(relation.columns)
            fixed = {*self.targets, *self.frozen, *self.one_way}
            for column, source in self.derivations:
                if not set(source.columns) <= members:
                    fixed.add(column)
            if members.isdisjoint(fixed):
                groups.append((relation, mend))
        return groups

    def broken(
        self,
        rows: pd.DataFrame,
        parents: pd.DataFrame | None = None,
    ) -> np.ndarray:
        """Return which rows break which relation.

        Parameters
        ----------
        rows : DataFrame of shape (n, d)
        parents : DataFrame of shape (n, d), optional
            Without them the directions of :attr:`one_way` are not looked at.

        Returns
        -------
        ndarray of shape (n, m), bool
            One column for each relation, then one for each column with a direction.
        """
        n_relations = len(self.relations)
        n_columns = n_relations + len(self.one_way)
        broken = np.zeros((len(rows), n_columns), dtype=bool)
        # pandas takes as long to look a column up as a condition takes for some hundred rows
        reader = ColumnReader(rows)
        for position, relation in enumerate(self.relations):
            broken[:, position] = relation.breaks(reader)
        if parents is None:
            return broken
        for position, (name, way) in enumerate(self.one_way.items(), n_relations):
            before, after = read_numbers(parents, name), read_numbers(rows, name)
            back = before - after if way == "up" else after - before
            # a value that appears or goes missing has no direction
            turns = np.isnan(after) != np.isnan(before)
            broken[:, position] = (back > tolerance_at(before)) | turns
        return broken

    def put_back(
        self,
        rows: pd.DataFrame,
        parents: pd.DataFrame,
    ) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Give rows their parent's values in the columns of every broken relation.

        What is put back may break another relation, so this goes on until none is broken.

        Parameters
        ----------
        rows, parents : DataFrame of shape (n, d)
            With the same columns; row i was made from parent i.

        Returns
        -------
        rows : DataFrame of shape (n, d)
        put_back : ndarray of shape (n, d), bool
            Cells that have their parent's value because a relation was broken.
        is_broken : ndarray of shape (n,), bool
            Rows that break a relation still: only where the parent breaks it as well.
        """
        # which columns each relation binds, (m, d), as :meth:`broken` has them
        names = list(rows.columns)
        bound = [relation.columns for relation in self.relations]
        bound += [(name,) for name in self.one_way]
        binds = np.zeros((len(bound), len(names)), dtype=int)
        for row, columns in enumerate(bound):
            binds[row, [names.index(name) for name in columns]] = 1
        put_back = np.zeros(rows.shape, dtype=bool)
        is_broken = np.zeros(len(rows), dtype=bool)
        repaired = rows.reset_index(drop=True)
        parents = parents.reset_index(drop=True)
        # each round gives a row at least one more cell, so a row is open for d rounds at most
        open_rows = np.arange(len(rows))
        while len(open_rows):
            still_open = repaired.iloc[open_rows]
            broken = self.broken(still_open, parents.iloc[open_rows])
            is_bound = broken.astype(int) @ binds > 0
            before = put_back[open_rows]
            needed = before | is_bound
            has_more = (needed != before).any(axis=1)
            breaks_any = broken.any(axis=1)
            # nothing left to put back: the parent itself breaks the relation
            is_broken[open_rows] = breaks_any & ~has_more
            put_back[open_rows] = needed
            open_rows = open_rows[has_more]
            repaired = _with_parent_cells(
                repaired,
                parents,
                cells=put_back,
                changed=open_rows,
            )
        return repaired, put_back, is_broken


def _sort_by_sources(chosen: Mapping[str, Dependency | Equation]) -> list[Derivation]:
    """Sort derivations so that each one comes after those that its sources need."""
    waiting = dict(chosen)
    ordered = []
    while waiting:
        column = next(
            column
            for column, relation in waiting.items()
            if waiting.keys() & set(relation.columns) == {column}
        )
        ordered.append((column, waiting.pop(column)))
    return ordered


def _with_parent_cells(
    rows: pd.DataFrame,
    parents: pd.DataFrame,
    *,
    cells: np.ndarray,
    changed: np.ndarray,
) -> pd.DataFrame:
    """Return rows with the parents' values in the marked cells of the changed rows."""
    out = rows.copy()
    for position, name in enumerate(rows.columns):
        marked = changed[cells[changed, position]]
        if not len(marked):
            continue
        column = out[name]
        # categories of parent and row may differ: they meet as texts
        dtype = float if holds_numbers(column) else object
        values = column.astype(dtype).to_numpy(copy=True)
        parent_values = parents[name].to_numpy(dtype=dtype)
        values[marked] = parent_values[marked]
        repaired = pd.Series(values, index=out.index)
        out[name] = repaired.astype(column.dtype)
    return out
