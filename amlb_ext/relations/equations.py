"""Equations: numbers that others give, by sums, multiples, products and quotients.

An equality is written out as a sum of terms, so that any column that stands in one term can be
computed from the others. Columns are rounded when they are written, and an equality may miss by
what that takes away: ``excess == 2 * red - green - blue within 1.5e-06``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.relations.grammar import (
    is_equality,
    parse_condition,
    quote_value,
    split_at_word,
)
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.values import (
    half_unit_of,
    holds_numbers,
    numeric_columns,
    read_numbers,
)

#: Columns and their exponents; empty for a constant.
Powers = tuple[tuple[str, int], ...]
#: Factors of terms that add up.
Terms = dict[Powers, float]
#: A product of sums that has more terms is no formula that anybody looks through.
MOST_TERMS = 100


@dataclass(frozen=True, kw_only=True)
class Equation(Rule):
    """An equality of numbers, which computes one of them.

    Attributes
    ----------
    terms : mapping of Powers to float
        They add up to zero.
    target : str
        The column that is computed first of all.
    shares_gaps : bool
        Whether in every real row the target is missing where another column is, and only there.

    Examples
    --------
    >>> rows = pd.DataFrame({"quantity": [2.0, 3.0], "price": [1.5, 2.0], "total": [3.0, 6.0]})
    >>> condition = parse_condition("quantity * price == total", numeric_columns(rows))
    >>> equation = read_equation(Rule("declared", condition), rows)
    >>> equation.derive("price", rows.assign(total=[8.0, 9.0])).tolist()
    [4.0, 3.0]
    """

    terms: Mapping[Powers, float] = field(repr=False, compare=False)
    target: str
    shares_gaps: bool

    @property
    def solvable(self) -> tuple[str, ...]:
        """The columns that can be computed, the target first, then from the last to the first."""
        found = []
        for name in dict.fromkeys((self.target, *reversed(self.columns))):
            used = [dict(powers)[name] for powers in self.terms if name in dict(powers)]
            if used in ([1], [-1]):
                found.append(name)
        return tuple(found)

    def derive(self, column: str, rows: pd.DataFrame) -> np.ndarray:
        """Return one of the numbers as the others give it, ``(n,)``, not rounded.

        Where a number is missing and need not be, the column stays as it is.
        """
        solved = self.solve(column, rows)
        present = read_numbers(rows, column)
        # a division by zero says nothing
        stays = ~np.isfinite(solved)
        if not self.shares_gaps:
            return np.where(stays | np.isnan(present), present, solved)
        for name in self.columns:
            if name != column:
                stays &= ~np.isnan(read_numbers(rows, name))
        return np.where(stays, present, solved)

    def solve(self, column: str, rows: pd.DataFrame) -> np.ndarray:
        """Return the number that makes the equality true, ``(n,)``; NaN where there is none."""
        factor = np.zeros(len(rows))
        rest = np.zeros(len(rows))
        exponent = 1
        for powers, coefficient in self.terms.items():
            others = tuple(power for power in powers if power[0] != column)
            value = coefficient * _product_of(others, rows)
            if len(others) < len(powers):
                factor = value
                exponent = dict(powers)[column]
            else:
                rest = rest + value
        with np.errstate(all="ignore"):
            solved = -rest / factor if exponent > 0 else factor / -rest
        # without the sign of a zero
        return np.where(np.isfinite(solved), solved, np.nan) + 0.0


def _product_of(powers: Powers, rows: pd.DataFrame) -> np.ndarray:
    product = np.ones(len(rows))
    with np.errstate(all="ignore"):
        for name, exponent in powers:
            numbers = read_numbers(rows, name)
            for _ in range(abs(exponent)):
                product = product * numbers if exponent > 0 else product / numbers
    return product


def read_equation(rule: Rule, rows: pd.DataFrame) -> Rule:
    """Return a rule so that one of its columns is computed, where it is an equality of numbers.

    Any other rule is returned as it is.

    Parameters
    ----------
    rule : Rule
    rows : DataFrame
        Real rows.

    Examples
    --------
    >>> from amlb_ext.relations.kinds import parse_relation
    >>> rows = pd.DataFrame({"a": [0.1, 0.4], "b": [0.6, 0.5]})
    >>> read_equation(parse_relation("a <= b", rows), rows).kind
    'declared'
    """
    tree = rule.condition.tree
    if not is_equality(tree) or not all(
        holds_numbers(rows[name]) for name in rule.columns
    ):
        return rule
    sides = (tree.comparators[0], tree.left)
    right, left = map(_read_terms, sides)
    terms = _subtract(left, right)
    if terms is None:
        return rule
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    # of 'b == a' the left side is what is computed, of 'a + b == c' the only name
    target = names[-1] if names else rule.columns[-1]
    others = [name for name in rule.columns if name != target]
    lacks_other = rows[others].isna().any(axis=1)
    equation = Equation(
        kind=rule.kind,
        condition=rule.condition,
        evidence=rule.evidence,
        terms=terms,
        target=target,
        shares_gaps=bool((lacks_other == rows[target].isna()).all()),
    )
    if not equation.solvable:
        return rule
    if equation.target not in equation.solvable:
        equation = replace(equation, target=equation.solvable[0])
    return equation


def give_room(equation: Rule, rows: pd.DataFrame) -> Rule:
    """Return an equality with the least room, of those that rounding shows, that keeps most rows.

    Any other rule is returned as it is, and so is an equality that has a room.

    Parameters
    ----------
    equation : Rule
    rows : DataFrame
        Real rows.

    Examples
    --------
    >>> from amlb_ext.relations.kinds import parse_relation
    >>> rows = pd.DataFrame({"a": [0.1, 0.4], "b": [0.6, 0.5], "mean": [0.3, 0.5]})
    >>> exact = read_equation(parse_relation("(a + b) / 2 == mean", rows), rows)
    >>> give_room(exact, rows).text
    '(a + b) / 2 == mean within 0.05'
    """
    if not isinstance(equation, Equation):
        return equation
    broken = equation.breaks(rows).sum()
    # a room that was written is meant
    if not broken or len(split_at_word(equation.text, "within")) > 1:
        return equation
    # what rounding moves each term by, where a term is a column and its factor
    moves = {}
    for powers, factor in equation.terms.items():
        if len(powers) == 1 and powers[0][1] == 1:
            name = powers[0][0]
            moves[name] = abs(factor) * half_unit_of(read_numbers(rows, name))
    best = equation
    # the target rounded, and then all columns
    for room in (moves.get(equation.target, 0.0), sum(moves.values())):
        wider = equation.text + write_room(room)
        condition = parse_condition(wider, numeric_columns(rows))
        still_broken = condition.breaks(rows).sum()
        if still_broken < broken:
            broken = still_broken
            best = replace(equation, condition=condition)
    return best


def write_room(room: float) -> str:
    """Return by how much an equality may miss, to stand behind it; nothing where that is zero.

    Examples
    --------
    >>> write_room(0.05), write_room(0)
    (' within 0.05', '')
    """
    # as short as it can be written, and not below
    shortest = float(f"{room * (1 + 1e-9):.6g}")
    return f" within {quote_value(shortest)}" if room else ""


# from a tree to terms; None for what is no sum of products


def _read_terms(node: ast.expr) -> Terms | None:
    if isinstance(node, ast.Name):
        return {((node.id, 1),): 1.0}
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return {(): float(node.value)}
    if isinstance(node, ast.UnaryOp):
        inner = _read_terms(node.operand)
        return inner if isinstance(node.op, ast.UAdd) else _subtract({}, inner)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _read_terms(node.left), _read_terms(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return _subtract(left, _subtract({}, right))
    if isinstance(node.op, ast.Sub):
        return _subtract(left, right)
    if isinstance(node.op, ast.Mult):
        return _multiply(left, right)
    if isinstance(node.op, ast.Div) and len(right) == 1:
        [(powers, divisor)] = right.items()
        if divisor:
            turned = tuple((name, -exponent) for name, exponent in powers)
            # divided, not multiplied by a rounded inverse
            divided = {powers: factor / divisor for powers, factor in left.items()}
            return _multiply(divided, {turned: 1.0})
    return None


def _subtract(left: Terms | None, right: Terms | None) -> Terms | None:
    if left is None or right is None:
        return None
    terms = dict(left)
    for powers, factor in right.items():
        terms[powers] = terms.get(powers, 0.0) - factor
    return {powers: factor for powers, factor in terms.items() if factor}


def _multiply(left: Terms, right: Terms) -> Terms | None:
    if len(left) * len(right) > MOST_TERMS:
        return None
    terms: Terms = {}
    for first, factor in left.items():
        for second, other in right.items():
            exponents = dict(first)
            for name, exponent in second:
                exponents[name] = exponents.get(name, 0) + exponent
            kept = tuple(sorted((name, e) for name, e in exponents.items() if e))
            terms[kept] = terms.get(kept, 0.0) + factor * other
    return terms
