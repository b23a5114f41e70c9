"""Search for products and quotients of two columns: ``quantity * price == total``.

Rows get random weights, as in the search for sums: the weighted total of a product, for all pairs
at once, is a product of matrices. It meets the weighted total of a column, up to what rounding
takes away, where the product is that column, and hardly ever elsewhere; what meets twice is
verified on every row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

import numpy as np

from amlb_ext.relations.conditions import TOLERANCE
from amlb_ext.relations.grammar import quote_name, quote_value
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable
from amlb_ext.relations.number_rules import is_nearly_constant

#: Two columns of fewer values are codes, of which some product is a third one by chance.
LEAST_VALUES = 10
#: Weightings on which totals must meet.
WEIGHTINGS = 3
#: Second columns whose products with all others are weighed at once.
COLUMNS_AT_ONCE = 64
#: By how many standard deviations rounding may move a total.
DEVIATIONS = 6.0
#: What rounding may take away of a result, in its standard deviations.
MOST_ROUNDING = 0.05

Kind = Literal["product", "quotient"]


def mine_products(
    table: MiningTable,
    known: Collection[frozenset[str]],
    left_out: Collection[str],
) -> list[Rule]:
    """Find numbers that are the product, or the quotient, of two others.

    Of three columns ``rate == cost / hours`` may hold, and ``cost == rate * hours`` as well, up to
    the rounding of the cost. The closest one is kept: the others follow from it.

    Parameters
    ----------
    table : MiningTable
    known : collection of frozenset of str
        Sets of columns of which an equality is known.
    left_out : collection of str
        Columns that are not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"quantity": rng.integers(1, 90, 200) * 1.0})
    >>> rows["price"] = rng.gamma(2, 20, 200).round(2)
    >>> rows["total"] = rows["quantity"] * rows["price"]
    >>> [rule] = mine_products(MiningTable(rows), [], [])
    >>> rule.text
    'total == quantity * price'
    """
    screened = table.complete_sample(table.varied_names(left_out=left_out))
    if screened.shape[1] < 2 or len(screened) < LEAST_ROWS:
        return []
    names = [str(name) for name in screened]
    numbers = screened.to_numpy(dtype=float)
    halves = table.half_units(names)
    is_spread = (table.n_values[names] >= LEAST_VALUES).to_numpy()
    # by the columns: a rule, and its room as a share of the result's standard deviation
    closest: dict[frozenset[str], tuple[Rule, float]] = {}
    kinds: tuple[Kind, ...] = ("product", "quotient")
    for kind in kinds:
        for i, j, k in _candidates(numbers, halves, is_spread, kind):
            named = (names[i], names[j], names[k])
            columns = frozenset(named)
            if columns in known:
                continue
            found = _verify(table, named, kind=kind, half=float(halves[k]))
            if found is not None:
                best = closest.get(columns, found)
                closest[columns] = min(best, found, key=lambda pair: pair[1])
    return [rule for rule, _ in closest.values()]


def _candidates(
    numbers: np.ndarray,
    halves: np.ndarray,
    is_spread: np.ndarray,
    kind: Kind,
) -> Iterator[tuple[int, int, int]]:
    """Return two columns and one that has their product, or quotient, on the screened rows."""
    n_rows, n_columns = numbers.shape
    # none has a mean of zero, so that a product far from a column never meets it
    weights = np.random.default_rng(n_rows).uniform(0, 2, size=(WEIGHTINGS, n_rows))
    # where the second column is 0 there is no quotient, which weighs nothing
    is_product = kind == "product"
    is_defined = (numbers != 0) | is_product
    with np.errstate(divide="ignore"):
        factors = numbers if is_product else 1 / numbers
    others = np.where(is_defined, factors, 0.0)
    length = np.sqrt(np.square(weights).sum(axis=1))
    most_rounding = MOST_ROUNDING * numbers.std(axis=0)
    halves = np.where(halves <= most_rounding, halves, 0.0)
    rooms = DEVIATIONS * length[:, None] * halves
    for start in range(0, n_columns, COLUMNS_AT_ONCE):
        block = slice(start, start + COLUMNS_AT_ONCE)
        # (weightings, second columns, n): rows by their weight, and by the second column
        by_weight = weights[:, None] * is_defined[:, block].T
        by_other = weights[:, None] * others[:, block].T
        results = by_weight @ numbers
        totals = by_other @ numbers
        scale = np.abs(by_other) @ np.abs(numbers)
        # the tiny number lets two columns of zeros agree
        tolerances = TOLERANCE * (scale + 1e-300)
        for row in range(totals.shape[1]):
            j = start + row
            # of a product each pair once
            firsts = np.arange(j + 1 if is_product else n_columns)
            firsts = firsts[is_spread[firsts] | is_spread[j]]
            tolerance = tolerances[:, row]
            largest = tolerance[0, firsts].max(initial=0.0)
            position, k = _meeting_pairs(
                totals[0, row, firsts],
                results[0, row],
                rooms[0] + largest,
            )
            i = firsts[position]
            # of a product both factors may be one column
            are_apart = (i != k) & (k != j)
            may_be = is_spread[k] & are_apart & ((i != j) | is_product)
            i, k = i[may_be], k[may_be]
            # two decimals times a whole number are two decimals, and need no room
            is_exact = is_product & (2 * halves[i] * halves[j] >= halves[k])
            rounding = np.where(is_exact, 0.0, rooms[:, k])
            room = rounding + tolerance[:, i]
            misses = np.abs(totals[:, row, i] - results[:, row, k])
            meets = (misses <= room).all(axis=0)
            for met in np.flatnonzero(meets).tolist():
                yield int(i[met]), j, int(k[met])


def _meeting_pairs(
    wanted: np.ndarray, results: np.ndarray, rooms: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of wanted totals and of results that they meet, within the latter's room."""
    order = np.argsort(wanted, kind="stable")
    in_order = wanted[order]
    starts = np.searchsorted(in_order, results - rooms)
    counts = np.searchsorted(in_order, results + rooms, side="right") - starts
    met = np.repeat(np.arange(len(results)), counts)
    # the first of each result's totals, and how far along each one is
    begins = np.cumsum(counts) - counts
    along = np.arange(len(met)) - begins[met]
    return order[starts[met] + along], met


def _verify(
    table: MiningTable, names: tuple[str, str, str], *, kind: Kind, half: float
) -> tuple[Rule, float] | None:
    """Return the equality where it holds in every row and could have failed, and its room."""
    first, second, result = names
    sign = "*" if kind == "product" else "/"
    text = f"{quote_name(result)} == {quote_name(first)} {sign} {quote_name(second)}"
    within = f" within {quote_value(half)}" if half else ""
    screened = table.screened_rows([*dict.fromkeys(names)])
    if table.make_condition(text + within).breaks(screened).any():
        return None
    x, y, z = (table.numbers(name) for name in names)
    # where a factor is 0, the result says nothing of the other one
    is_at_work = (x != 0) & (y != 0) & ~np.isnan(x + y + z)
    results = z[is_at_work]
    if len(results) < LEAST_ROWS or len(np.unique(results)) < LEAST_VALUES:
        return None
    if is_nearly_constant(x[is_at_work]) or is_nearly_constant(y[is_at_work]):
        return None
    rule = table.make_rule(kind, text, 0.0)
    room = 0.0
    if rule.breaks(table.rows).any():
        room = half / results.std()
        if room > MOST_ROUNDING:
            return None
        rule = table.make_rule(kind, text + within, 0.0)
    found = table.with_evidence(rule, result)
    # what hardly any other result would break is held by its room, not by the columns
    if found is None or found.evidence < len(results) / 2:
        return None
    return found, room
