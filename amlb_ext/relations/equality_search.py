"""Search for linear equalities of three and more columns: ``excess == 2 * red - green - blue``.

Columns are taken one after another as sources. A column that the sources give, but for what
rounding takes away, is a candidate; small factors are dropped, the others become the simplest
fractions that fit, and the equality is verified on every row. Where few columns are tied together,
those are taken as sources that give the others by the simplest formulas.

The work grows with the cube of the number of columns, and not with its powers beyond: subsets of a
wide table are never enumerated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import lcm

import numpy as np

from amlb_ext.relations.equations import Equation, write_room
from amlb_ext.relations.grammar import (
    LONGEST_RULE,
    MOST_OPERATIONS,
    quote_name,
    quote_value,
)
from amlb_ext.relations.kinds import Rule
from amlb_ext.relations.mining_table import LEAST_ROWS, MiningTable
from amlb_ext.relations.number_rules import (
    fit_constant,
    is_nearly_constant,
    write_formula,
)

#: Columns on the right side of an equality; plain sums may have as many as a rule can write.
MOST_SOURCES = 8
#: Rows for each column, so that no column follows from the others by chance.
ROWS_PER_COLUMN = 4
#: Denominators of factors, the simplest first; then decimals of factors.
DENOMINATORS, DECIMALS = (1, 2, 3, 4, 6, 10, 12), (3, 4)
#: A factor that moves the target by less than this share of its spread is none.
LEAST_WEIGHT = 1e-3
#: What rounding may take away, in standard deviations of the target: of its own, and with sources.
MOST_OWN_ROUNDING, MOST_ROUNDING = 0.05, 0.02
#: The variance of misses within a room of one, without those that are hardly any.
LEAST_FILLED, LEAST_MISS = 0.2, 1e-3
#: By how much a fit on few rows may miss more than rounding does.
SLACK = 1.5
#: What is left of a column that others give exactly, in standard deviations.
FIT_ERROR = 1e-6
#: Of so many columns that equalities tie together, each set is tried as the sources of others.
SMALL_GROUP = 9
#: A division is as much to write as a factor of this.
DIVISOR_SIZE = 3


@dataclass(frozen=True)
class _Formula:
    """A target, its sources with their factors, and a constant more."""

    target: int
    sources: tuple[int, ...]
    factors: tuple[Fraction, ...]
    constant: float
    room: float
    #: 0 where no rounding is needed, 1 for that of the target, 2 for that of all columns.
    roughness: int

    @property
    def size(self) -> float:
        """How much there is to write and to round."""
        divisor = lcm(*(factor.denominator for factor in self.factors))
        factors = [abs(float(factor * divisor)) for factor in self.factors]
        return sum(factors) + DIVISOR_SIZE * (divisor > 1) + (self.constant != 0)


class _Sample:
    """Columns on the rows that are tried first, centred and scaled, and how they are rounded."""

    def __init__(self, table: MiningTable, names: Sequence[str]) -> None:
        complete = table.complete_sample(names, ROWS_PER_COLUMN)
        spread = complete.std().to_numpy()
        varies = spread > 0
        kept = complete.loc[:, varies]
        self.names = [str(name) for name in kept]
        self.numbers = kept.to_numpy(dtype=float)
        self.spread = spread[varies]
        #: Half a unit of each column's last digit.
        self.halves = table.half_units(self.names)
        self.rounding = self.halves / self.spread
        mean = self.numbers.mean(axis=0)
        centred = (self.numbers - mean) / self.spread
        n_rows = max(1, len(centred))
        self.correlation = centred.T @ centred / n_rows

    def regress(self, target: int, sources: Sequence[int]) -> tuple[np.ndarray, float]:
        """Return factors of scaled sources, and what they leave of the scaled target."""
        among = self.correlation[np.ix_(sources, sources)]
        towards = self.correlation[sources, target]
        factors = np.linalg.lstsq(among, towards, rcond=1e-13)[0]
        left = self.correlation[target, target] - factors @ towards
        return factors, float(np.sqrt(max(left, 0.0)))

    def noise(self, target: int, sources: Sequence[int], factors: np.ndarray) -> float:
        """Return what rounding leaves of a scaled target, at most."""
        everything = (
            self.rounding[target] + np.abs(factors) @ self.rounding[list(sources)]
        )
        return float(_most_noise(self.rounding[target], everything))


def _most_noise(own: np.ndarray, everything: np.ndarray) -> np.ndarray:
    """Return what may be left of scaled targets, by their own rounding and that of all columns."""
    # a target that is too rough for a rule must be given without any rounding
    least = np.where(own <= MOST_OWN_ROUNDING, own, 0.0)
    rounding = np.maximum(least, np.minimum(everything, MOST_ROUNDING))
    return SLACK * rounding + FIT_ERROR


def mine_equalities(
    table: MiningTable, known: Iterable[Rule], left_out: Collection[str]
) -> Iterator[Rule]:
    """Find numbers that a linear formula of two and more others gives in every row.

    Parameters
    ----------
    table : MiningTable
    known : iterable of Rule
        Sums and multiples that were found; what follows from these is not said again.
    left_out : collection of str
        Columns that are not looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.uniform(0, 255, (200, 3)).round(2), columns=["r", "g", "b"])
    >>> rows["mean"] = rows.sum(axis=1).div(3).round(2)
    >>> [rule] = mine_equalities(MiningTable(rows), [], [])
    >>> rule.text
    'mean == (r + g + b) / 3 within 0.005'
    """
    names = [name for name in table.numeric_names if name not in left_out]
    if len(names) < 3:
        return
    sample = _Sample(table, names)
    if len(sample.names) < 3 or len(sample.numbers) < LEAST_ROWS:
        return
    dependent = dict(_dependent_columns(sample))
    supports = {}
    for target, sources in dependent.items():
        kept = _drop_small(sample, target, sources)
        if len(kept) > 1:
            supports[target] = kept
    formulas = []
    for group in _connected({target, *kept} for target, kept in supports.items()):
        targets = [target for target in supports if target in group]
        if len(group) <= SMALL_GROUP:
            formulas += _simplest_basis(sample, sorted(group), len(targets))
        else:
            each = [_simplest_formula(sample, k, supports[k]) for k in targets]
            formulas += [formula for formula in each if formula is not None]
    formulas.sort(
        key=lambda formula: (formula.roughness, formula.size, -formula.target)
    )
    span = _Span(sample.names)
    for rule in known:
        if isinstance(rule, Equation):
            span.add({powers[0][0]: f for powers, f in rule.terms.items() if powers})
    for formula in formulas:
        vector = {sample.names[formula.target]: -1.0}
        for source, factor in zip(formula.sources, formula.factors, strict=True):
            vector[sample.names[source]] = float(factor)
        if span.holds(vector):
            continue
        found = _verify(table, sample, formula)
        if found is not None:
            span.add(vector)
            yield found


def _dependent_columns(sample: _Sample) -> Iterator[tuple[int, list[int]]]:
    """Return columns that those taken before give, but for rounding, with the latter.

    Each step takes the column of which most is left, and sweeps it out of the others (the sweep
    operator; Goodnight, The American Statistician 33, 1979). Of the swept matrix only the factors
    of the sources and the diagonal are kept, which of thousands of columns is a small part.
    """
    left = sample.correlation.diagonal().copy()
    is_open = np.ones(len(left), dtype=bool)
    sources: list[int] = []
    factors = np.empty((0, len(left)))
    while is_open.any() and len(sources) < len(sample.numbers) / ROWS_PER_COLUMN:
        pivot = int(np.where(is_open, left, -1.0).argmax())
        is_open[pivot] = False
        if left[pivot] <= FIT_ERROR**2:
            return
        # what the sources leave of each column's correlation with the pivot
        rest = sample.correlation[pivot] - sample.correlation[pivot, sources] @ factors
        own = rest / left[pivot]
        factors = np.vstack([factors - np.outer(factors[:, pivot], own), own])
        left -= rest * own
        sources.append(pivot)
        everything = sample.rounding + sample.rounding[sources] @ np.abs(factors)
        noise = _most_noise(sample.rounding, everything)
        is_given = is_open & (left <= np.square(noise))
        is_open &= ~is_given
        for target in np.flatnonzero(is_given).tolist():
            yield target, list(sources)


def _drop_small(sample: _Sample, target: int, sources: Sequence[int]) -> list[int]:
    """Return the sources that are needed; none where these are too many."""
    kept = list(sources)
    factors, left = sample.regress(target, kept)
    # half of them at once, then fewer and fewer: most are not needed
    n_dropped = len(kept) // 2
    while n_dropped:
        order = np.argsort(np.abs(factors), kind="stable")
        fewer = [kept[position] for position in sorted(order[n_dropped:].tolist())]
        factors_then, left = sample.regress(target, fewer)
        if left <= sample.noise(target, fewer, factors_then):
            kept, factors = fewer, factors_then
            n_dropped = min(n_dropped, len(kept) // 2)
        else:
            n_dropped //= 2
    if np.abs(factors).min() < LEAST_WEIGHT:
        return []
    plain = factors * sample.spread[target] / sample.spread[kept]
    is_plain_sum = bool((np.abs(np.abs(plain) - 1) < 0.1).all())
    most = MOST_OPERATIONS if is_plain_sum else MOST_SOURCES
    return kept if len(kept) <= most else []


def _connected(supports: Iterable[set[int]]) -> list[set[int]]:
    """Return the sets of columns that supports tie together."""
    groups: list[set[int]] = []
    for support in supports:
        touched = [group for group in groups if group & support]
        merged = support.union(*touched)
        groups = [group for group in groups if not group & support] + [merged]
    return groups


def _simplest_basis(
    sample: _Sample, group: Sequence[int], n_dependent: int
) -> list[_Formula]:
    """Return formulas that give the columns of a group from some of them, the simplest ones.

    All rest on the same columns, so that what rounding takes away does not add up from one to the
    next, and what follows from several of them holds as closely as they do.
    """
    known: dict[tuple[int, ...], _Formula | None] = {}
    best: list[_Formula] = []
    least = (0, 0, np.inf)
    # the last columns of a table are computed from the first ones, rather than the other way round
    for sources in combinations(group, len(group) - n_dependent):
        formulas = []
        for target in group:
            if target in sources:
                continue
            kept = tuple(_drop_small(sample, target, sources))
            if len(kept) < 2:
                continue
            key = (target, *kept)
            if key not in known:
                known[key] = _simplest_formula(sample, target, kept)
            formula = known[key]
            if formula is not None:
                formulas.append(formula)
        size = sum(formula.size for formula in formulas)
        roughness = sum(formula.roughness for formula in formulas)
        cost = (-len(formulas), roughness, size)
        if cost < least:
            least, best = cost, formulas
    return best


def _simplest_formula(
    sample: _Sample, target: int, sources: Sequence[int]
) -> _Formula | None:
    scaled, _ = sample.regress(target, sources)
    factors = scaled * sample.spread[target] / sample.spread[list(sources)]
    y = sample.numbers[:, target]
    X = sample.numbers[:, sources]
    own = float(sample.halves[target])
    for exact in _fractions_near(factors):
        numbers = np.array([float(factor) for factor in exact])
        if not numbers.all():
            continue
        fitted = X @ numbers
        rest = y - fitted
        # what a double loses grows with what is added up
        error = 1e-9 * np.maximum(1.0, np.abs(X) @ np.abs(numbers))
        everything = own + float(np.abs(numbers) @ sample.halves[list(sources)])
        limits = (np.inf, MOST_OWN_ROUNDING, MOST_ROUNDING)
        for roughness, room in enumerate((0.0, own, everything)):
            if room > limits[roughness] * sample.spread[target]:
                continue
            constant = fit_constant(rest, room + error)
            if constant is None:
                continue
            if roughness != 1 or _fills_room(rest - constant, room):
                return _Formula(
                    target=target,
                    sources=tuple(sources),
                    factors=exact,
                    constant=constant,
                    room=room,
                    roughness=roughness,
                )
    return None


def _fills_room(misses: np.ndarray, room: float) -> bool:
    """Return whether misses spread as rounding makes them: evenly, from end to end of the room.

    Noise that is smaller than the room does not: then the target's rounding hides that no formula
    holds. An even spread has a variance of a third.
    """
    shares = misses / room
    # what was not rounded at all says nothing
    shares = shares[np.abs(shares) > LEAST_MISS]
    return bool(np.square(shares).mean() >= LEAST_FILLED) if len(shares) else True


def _fractions_near(factors: np.ndarray) -> Iterator[tuple[Fraction, ...]]:
    """Return the factors as simple fractions, the simplest first, then as short decimals."""
    for denominator in DENOMINATORS:
        rounded = np.rint(factors * denominator).astype(int).tolist()
        yield tuple(Fraction(number, denominator) for number in rounded)
    for decimals in DECIMALS:
        yield tuple(Fraction(f"{factor:.{decimals}f}") for factor in factors)


def _verify(table: MiningTable, sample: _Sample, formula: _Formula) -> Rule | None:
    """Return the equality where it holds in every row and could have failed."""
    names = [sample.names[source] for source in formula.sources]
    target = sample.names[formula.target]
    for name in (*names, target):
        numbers = table.numbers(name)
        if is_nearly_constant(numbers[~np.isnan(numbers)]):
            return None
    text = _write(formula, names, target)
    if len(text) > LONGEST_RULE:
        return None
    is_total = formula.constant and all(factor == -1 for factor in formula.factors)
    rule = table.make_rule("shares" if is_total else "equality", text, 0.0)
    return table.with_evidence(rule, target)


def _write(formula: _Formula, names: Sequence[str], target: str) -> str:
    """Return the equality in the language of relations."""
    factors = formula.factors
    within = write_room(formula.room)
    if formula.constant and all(factor == -1 for factor in factors):
        summands = " + ".join(quote_name(name) for name in (*names, target))
        return f"{summands} == {quote_value(formula.constant)}{within}"
    divisor = lcm(*(factor.denominator for factor in factors))
    # decimals stay decimals
    divisor = divisor if divisor <= max(DENOMINATORS) else 1
    added, taken = "", ""
    for name, factor in zip(names, factors, strict=True):
        size = quote_value(abs(float(factor * divisor)))
        term = quote_name(name) if size == "1" else f"{size} * {quote_name(name)}"
        if factor > 0:
            added += f" + {term}"
        else:
            taken += f" - {term}"
    # what is added comes before what is taken away
    written = added.removeprefix(" + ") + taken
    if not added:
        written = "-" + taken.removeprefix(" - ")
    if divisor > 1:
        written = f"({written}) / {divisor}"
    return write_formula(target, written, formula.constant) + within


class _Span:
    """Which linear equalities follow from those that were kept."""

    def __init__(self, names: Sequence[str]) -> None:
        self._positions = {name: position for position, name in enumerate(names)}
        self._basis: list[np.ndarray] = []

    def _rest(self, vector: dict[str, float]) -> np.ndarray | None:
        """Return what the basis leaves of a vector; None where it names another column."""
        rest = np.zeros(len(self._positions))
        for name, factor in vector.items():
            if name not in self._positions:
                return None
            rest[self._positions[name]] = factor
        rest /= np.linalg.norm(rest)
        # twice, because what was taken away once may leave a trace of itself
        for _ in range(2):
            for direction in self._basis:
                rest = rest - (rest @ direction) * direction
        return rest

    def holds(self, vector: dict[str, float]) -> bool:
        """Whether an equality says nothing new."""
        rest = self._rest(vector)
        return rest is not None and float(np.linalg.norm(rest)) < 1e-6

    def add(self, vector: dict[str, float]) -> None:
        """Keep an equality."""
        rest = self._rest(vector)
        if rest is not None and np.linalg.norm(rest) >= 1e-6:
            self._basis.append(rest / np.linalg.norm(rest))
