"""Made rows that satisfy all relations: corrected, rejected, or given back their parent's values.

Every made row has a *parent*, a real row that satisfies the relations. So there is always a way
back: putting the parent's values into the columns of whatever is broken ends in a row that breaks
nothing, after as many rounds as there are columns at most. No solver is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.relations.grammar import TOLERANCE
from amlb_ext.relations.kinds import Dependency, Relation, Rule, WrittenForm
from amlb_ext.relations.mining import MOST_DECIMALS
from amlb_ext.relations.values import holds_numbers

Direction = Literal["up", "down"]


@dataclass(frozen=True)
class FeasibleRows:
    """Made rows after the relations have been put to them.

    Attributes
    ----------
    rows : DataFrame of shape (n, d)
    put_back : ndarray of shape (n, d), bool
        Cells that have their parent's value because a relation was broken.
    is_broken : ndarray of shape (n,), bool
        Rows that break a relation still.
    """

    rows: pd.DataFrame
    put_back: np.ndarray
    is_broken: np.ndarray


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
    >>> relations.put_back(made, parents).rows["bedrooms"].tolist()
    [1.0, 3.0]
    """

    relations: tuple[Relation, ...] = ()
    forms: Mapping[str, WrittenForm] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    one_way: Mapping[str, Direction] = field(default_factory=dict)
    targets: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.relations or self.forms or self.frozen or self.one_way)

    def correct(self, rows: pd.DataFrame, parents: pd.DataFrame) -> pd.DataFrame:
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
            corrected[name] = parents[name].to_numpy()
            corrected[name] = corrected[name].astype(rows[name].dtype)
        for name, form in self.forms.items():
            if name not in self.frozen:
                corrected[name] = form.correct(corrected[name].to_numpy(dtype=float))
        for column, relation in self.derivations:
            corrected[column] = self.derive(column, relation, corrected)
        return corrected

    def derive(self, column: str, relation: Relation, rows: pd.DataFrame) -> pd.Series:
        """Return a column as a relation of :attr:`derivations` computes it from the others."""
        if isinstance(relation, Dependency):
            return relation.derive(rows)
        # the summand or the total that makes a + b == c true
        *parts, total = relation.columns
        numbers = {name: rows[name].to_numpy(dtype=float) for name in relation.columns}
        if column == total:
            solved = np.sum([numbers[name] for name in parts], axis=0)
        else:
            others = [numbers[name] for name in parts if name != column]
            solved = numbers[total] - np.sum(others, axis=0)
        form = self.forms.get(column)
        decimals = (
            MOST_DECIMALS if form is None or form.decimals is None else form.decimals
        )
        return pd.Series(np.round(solved, decimals), index=rows.index, name=column)

    @cached_property
    def derived(self) -> tuple[str, ...]:
        """The columns that others determine, in the order in which they are computed."""
        return tuple(column for column, _ in self.derivations)

    @cached_property
    def derivations(self) -> tuple[tuple[str, Relation], ...]:
        """Columns that are computed, each with its relation: no column twice, no circle.

        Of two columns that determine each other the number is computed and the category kept.
        Targets and frozen columns are never computed.
        """
        candidates: list[tuple[str, Relation]] = []
        for relation in self.relations:
            if isinstance(relation, Dependency):
                candidates.append((relation.target, relation))
            elif relation.kind == "sum" and len(relation.columns) == 3:
                # the total, or where that is the target the second summand
                first, second, total = relation.columns
                candidates += [(name, relation) for name in (total, second, first)]
        candidates.sort(key=lambda pair: pair[0] not in self.forms)
        chosen: dict[str, Relation] = {}
        rests_on: dict[str, set[str]] = {}
        used: list[Relation] = []
        for column, relation in candidates:
            sources = set(relation.columns) - {column}
            reached = sources | {
                deep for name in sources for deep in rests_on.get(name, ())
            }
            is_given = column in self.targets or column in self.frozen
            if is_given or column in chosen or column in reached or relation in used:
                continue
            # what rests on this column now rests on its sources as well
            for below in rests_on.values():
                if column in below:
                    below |= reached
            rests_on[column] = reached
            chosen[column] = relation
            used.append(relation)
        return tuple(_in_order(chosen))

    def broken(
        self, rows: pd.DataFrame, parents: pd.DataFrame | None = None
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
        columns = [relation.breaks(rows) for relation in self.relations]
        for name, direction in self.one_way.items():
            columns.append(
                np.zeros(len(rows), dtype=bool)
                if parents is None
                else _goes_wrong_way(rows[name], parents[name], direction)
            )
        return (
            np.column_stack(columns)
            if columns
            else np.zeros((len(rows), 0), dtype=bool)
        )

    def put_back(self, rows: pd.DataFrame, parents: pd.DataFrame) -> FeasibleRows:
        """Give rows their parent's values in the columns of every broken relation.

        What is put back may break another relation, so this goes on until none is broken.

        Parameters
        ----------
        rows, parents : DataFrame of shape (n, d)
            With the same columns; row i was made from parent i.

        Returns
        -------
        FeasibleRows
            A row stays broken only where its parent breaks the relation as well.
        """
        names = list(rows.columns)
        binds = np.array(
            [[name in columns for name in names] for columns in self._bound_columns],
            dtype=bool,
        ).reshape(-1, len(names))
        put_back = np.zeros(rows.shape, dtype=bool)
        is_broken = np.zeros(len(rows), dtype=bool)
        repaired = rows.reset_index(drop=True)
        parents = parents.reset_index(drop=True)
        open_rows = np.arange(len(rows))
        while len(open_rows):
            broken = self.broken(repaired.iloc[open_rows], parents.iloc[open_rows])
            wanted = put_back[open_rows] | (broken.astype(int) @ binds.astype(int) > 0)
            has_more = (wanted != put_back[open_rows]).any(axis=1)
            # nothing left to put back: the parent itself breaks the relation
            is_broken[open_rows] = broken.any(axis=1) & ~has_more
            put_back[open_rows] = wanted
            open_rows = open_rows[has_more]
            repaired = _with_cells_of(repaired, parents, put_back, open_rows)
        return FeasibleRows(repaired, put_back, is_broken)

    @property
    def _bound_columns(self) -> list[tuple[str, ...]]:
        return [relation.columns for relation in self.relations] + [
            (name,) for name in self.one_way
        ]

    def breaks_form(self, rows: pd.DataFrame) -> np.ndarray:
        """Return which rows have a number that is not written as real ones, ``(n,)`` bool."""
        breaks = np.zeros(len(rows), dtype=bool)
        for name, form in self.forms.items():
            breaks |= form.breaks(rows[name].to_numpy(dtype=float))
        return breaks


def _in_order(chosen: Mapping[str, Relation]) -> list[tuple[str, Relation]]:
    """Sort derivations so that each one comes after those that its sources need."""
    waiting, ordered = dict(chosen), []
    while waiting:
        for column, relation in waiting.items():
            if not (set(relation.columns) - {column}) & set(waiting):
                ordered.append((column, relation))
                del waiting[column]
                break
    return ordered


def _goes_wrong_way(
    made: pd.Series, parent: pd.Series, direction: Direction
) -> np.ndarray:
    now, before = made.to_numpy(dtype=float), parent.to_numpy(dtype=float)
    room = TOLERANCE * np.maximum(1.0, np.abs(before))
    with np.errstate(invalid="ignore"):
        moved = now < before - room if direction == "up" else now > before + room
    # a value that appears or goes missing has no direction
    return moved | (np.isnan(now) != np.isnan(before))


def _with_cells_of(
    rows: pd.DataFrame, parents: pd.DataFrame, cells: np.ndarray, changed: np.ndarray
) -> pd.DataFrame:
    """Return rows with the parents' values in the marked cells of the changed rows."""
    out = rows.copy()
    for position, name in enumerate(rows.columns):
        these = changed[cells[changed, position]]
        if not len(these):
            continue
        column = out[name]
        if holds_numbers(column):
            values = column.to_numpy(dtype=float).copy()
            values[these] = parents[name].to_numpy(dtype=float)[these]
            out[name] = values
        else:
            texts = column.astype(object).to_numpy(copy=True)
            texts[these] = parents[name].astype(object).to_numpy()[these]
            out[name] = pd.Series(texts, index=out.index).astype(column.dtype)
    return out


def breaking_rows(
    rules: Sequence[Rule | Dependency], rows: pd.DataFrame
) -> dict[str, int]:
    """Return how many rows break each relation, by its text; relations that hold are left out."""
    counts = {rule.text: int(rule.breaks(rows).sum()) for rule in rules}
    return {text: count for text, count in counts.items() if count}
