"""Relations that hold in every row of a table, each with the evidence for it.

A relation that holds on n rows says little if it could not have failed. So each one carries its
*evidence*: the number of rows expected to break it if its columns had nothing to do with each
other. For an order, an exclusion and an implication this expectation is computed; for a
dependency one column is permuted once. What holds on n rows may still fail in at most 3/n of all
rows (the rule of three; Hanley and Lippman-Hand, JAMA 249, 1983), so no relation is called a law.

All candidates are first tried on few rows; only what survives is verified on all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd

from amlb_ext.relations.grammar import parse_condition, quote_name, quote_value
from amlb_ext.relations.kinds import Dependency, Relation, Rule, RuleKind, WrittenForm
from amlb_ext.relations.values import holds_numbers

#: Rows on which all candidates are tried first.
SCREENING_ROWS = 500
#: Numbers with more decimals than this are measurements.
MOST_DECIMALS = 6
#: A column takes few values where there are this many rows for each of them, and where the chance
#: that the next row brings a new one (Good-Turing: values seen once, by rows) is small. Made rows
#: then take values that were seen; the list counts as complete where that chance is tiny.
ROWS_PER_VALUE, FEW_VALUES_CHANCE, COMPLETE_CHANCE = 20, 0.02, 0.001
#: The most frequent value of a number is a pile from this share on, where others are spread out.
PILE_SHARE, SPREAD_VALUES = 0.3, 5
#: Values of one column that implications may name: frequent enough to be a thing of its own.
ATOM_SHARE, ATOMS_PER_COLUMN, ATOMS_IN_ALL = 0.01, 30, 2000
#: In a number that takes many values, only piles of this share.
ATOM_SHARE_OF_NUMBERS, MANY_VALUES = 0.05, 20
#: Pairs of columns determine another one only if they take few values, and are few themselves.
PAIR_VALUES, PAIR_COLUMNS = 60, 64
#: Both summands must be at work in this share of the rows.
SUMMAND_SHARE = 0.05
#: Of one kind, those with the most evidence.
MOST_OF_A_KIND = 300
#: Fewer rows than this say nothing.
LEAST_ROWS = 30


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
    rows: pd.DataFrame, least_evidence: float = 10.0, seed: int = 0
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
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.integers(0, 9, (200, 2)).astype(float), columns=["a", "c"])
    >>> rows["b"] = rows["a"] + rows["c"]
    >>> [relation.text for relation in mine_relations(rows).relations]
    ['a + c == b', 'c <= b', 'a <= b']
    """
    if len(rows) < LEAST_ROWS:
        return MinedRelations(len(rows), forms=tuple(_written_forms(rows)))
    table = _Table.of(rows, seed)
    dependencies = list(_dependencies(table, least_evidence))
    # what a dependency settles is not said again value by value
    settled = {(source, d.target) for d in dependencies for source in d.sources}
    found: dict[str, list[Relation]] = {
        "sum": list(_sums(table, least_evidence)),
        "determines": list(dependencies),
        "order": list(_orders(table, least_evidence)),
        "exclusive": list(_exclusions(table, least_evidence)),
        **_implications(table, least_evidence, settled),
    }
    kept: list[Relation] = []
    left_out = {}
    for kind, relations in found.items():
        ranked = sorted(relations, key=lambda relation: -relation.evidence)
        kept += ranked[:MOST_OF_A_KIND]
        if len(ranked) > MOST_OF_A_KIND:
            left_out[kind] = len(ranked) - MOST_OF_A_KIND
    return MinedRelations(len(rows), tuple(kept), tuple(_written_forms(rows)), left_out)


@dataclass(frozen=True)
class _Table:
    """A table as arrays that the searches share."""

    rows: pd.DataFrame
    sample: np.ndarray
    permutation: np.ndarray
    numeric: dict[str, bool]

    @classmethod
    def of(cls, rows: pd.DataFrame, seed: int) -> _Table:
        rng = np.random.default_rng([seed, len(rows)])
        permutation = rng.permutation(len(rows))
        sample = np.sort(permutation[:SCREENING_ROWS])
        numeric = {name: holds_numbers(rows[name]) for name in rows}
        return cls(rows, sample, permutation, numeric)

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def numbers(self, name: str) -> np.ndarray:
        return self.rows[name].to_numpy(dtype=float)

    @property
    def numeric_names(self) -> list[str]:
        return [name for name, is_numeric in self.numeric.items() if is_numeric]

    def rule(self, kind: RuleKind, text: str, evidence: float) -> Rule:
        return Rule(kind, parse_condition(text, self.numeric), float(evidence))

    def codes(self, name: str) -> np.ndarray:
        """Return the column's values as codes; a missing value is one of its own."""
        return pd.factorize(self.rows[name], use_na_sentinel=False)[0]


# The written form of numbers


def _written_forms(rows: pd.DataFrame) -> Iterator[WrittenForm]:
    for name in rows:
        if not holds_numbers(rows[name]):
            continue
        values, counts = np.unique(
            rows[name].dropna().to_numpy(dtype=float), return_counts=True
        )
        if not len(values):
            continue
        n = counts.sum()
        chance_of_new = (counts == 1).sum() / n
        takes_few = (
            2 <= len(values) <= n / ROWS_PER_VALUE
            and chance_of_new <= FEW_VALUES_CHANCE
        )
        yield WrittenForm(
            column=str(name),
            low=float(values[0]),
            high=float(values[-1]),
            decimals=count_decimals(values),
            values=values if takes_few else None,
            is_complete=takes_few and chance_of_new <= COMPLETE_CHANCE,
        )


def count_decimals(values: np.ndarray) -> int | None:
    """Return the decimals that no value exceeds; None where one has more than six.

    Examples
    --------
    >>> count_decimals(np.array([1.25, 3.5])), count_decimals(np.array([np.pi]))
    (2, None)
    """
    for decimals in range(MOST_DECIMALS + 1):
        shortest = np.round(values, decimals)
        if np.all(np.abs(values - shortest) <= 1e-9 * np.maximum(1.0, np.abs(values))):
            return decimals
    return None


# a <= b


def _orders(table: _Table, least_evidence: float) -> Iterator[Rule]:
    names = table.numeric_names
    if len(names) < 2:
        return
    few = table.rows[names].iloc[table.sample].to_numpy(dtype=float)
    low = np.array([table.rows[name].min() for name in names])
    high = np.array([table.rows[name].max() for name in names])
    for i, left in enumerate(names):
        with np.errstate(invalid="ignore"):
            holds_on_few = ~(few[:, [i]] > few).any(axis=0)
        # where the ranges do not overlap the order cannot fail, so that it holds says nothing
        candidates = np.flatnonzero(holds_on_few & (high[i] > low))
        for j in candidates[candidates != i]:
            a, b = table.numbers(left), table.numbers(names[j])
            is_known = ~(np.isnan(a) | np.isnan(b))
            a, b = a[is_known], b[is_known]
            if len(a) < LEAST_ROWS or (a > b).any() or np.array_equal(a, b):
                continue
            evidence = _expected_above(a, b)
            if evidence >= least_evidence:
                symbol = "<" if (a < b).all() else "<="
                text = f"{quote_name(left)} {symbol} {quote_name(names[j])}"
                yield table.rule("order", text, evidence)


def _expected_above(a: np.ndarray, b: np.ndarray) -> float:
    """Return how many of n rows have a > b when a and b are drawn independently."""
    smaller = np.searchsorted(np.sort(b), a, side="left")
    return float(smaller.sum() / len(b))


# a + b == c and a == b


def _sums(table: _Table, least_evidence: float) -> Iterator[Rule]:
    names = [name for name in table.numeric_names if table.rows[name].nunique() > 1]
    if len(names) < 2:
        return
    few = table.rows[names].iloc[table.sample]
    complete = few.dropna(axis=1, thresh=len(few) // 2).dropna(axis=0)
    if len(complete) < LEAST_ROWS:
        complete = few.dropna(axis=1)
    names = list(complete.columns)
    if len(names) < 2 or not len(complete):
        return
    # random weights over rows: two columns, or a sum and a column, have the same weighted total
    # only if they agree in every row
    weights = np.random.default_rng(len(complete)).normal(size=len(complete))
    totals = weights @ complete.to_numpy(dtype=float)
    scale = np.abs(weights) @ np.abs(complete.to_numpy(dtype=float))
    order = np.argsort(totals, kind="stable")
    ranked = totals[order]
    for i in range(len(names) - 1):
        others = np.arange(i + 1, len(names))
        room = 1e-9 * (scale[i] + scale[others] + 1e-300)
        for j in others[np.abs(totals[i] - totals[others]) <= room]:
            yield from _verified_sum(table, (names[i],), names[j], least_evidence)
        wanted = totals[i] + totals[others]
        first = np.searchsorted(ranked, wanted - room)
        last = np.searchsorted(ranked, wanted + room, side="right")
        for position in np.flatnonzero(last > first):
            j = others[position]
            for k in order[first[position] : last[position]]:
                if k not in (i, j):
                    parts = (names[i], names[j])
                    yield from _verified_sum(table, parts, names[k], least_evidence)


def _verified_sum(
    table: _Table, parts: tuple[str, ...], total: str, least_evidence: float
) -> Iterator[Rule]:
    """Give the sum where it holds in every row and could have failed."""
    summands = np.column_stack([table.numbers(name) for name in parts])
    values = table.numbers(total)
    is_known = ~np.isnan(summands).any(axis=1) & ~np.isnan(values)
    if is_known.sum() < LEAST_ROWS:
        return
    summands, values = summands[is_known], values[is_known]
    if ((summands != 0).mean(axis=0) <= SUMMAND_SHARE).any():
        return
    sums = summands.sum(axis=1)
    room = 1e-9 * np.maximum(1.0, np.maximum(np.abs(sums), np.abs(values)))
    if (np.abs(sums - values) > room).any():
        return
    # how many rows would keep the sum by chance: those where the total has its most frequent value
    _, counts = np.unique(values, return_counts=True)
    evidence = len(values) * (1 - float(np.square(counts / len(values)).sum()))
    if evidence < least_evidence:
        return
    text = " + ".join(quote_name(name) for name in parts) + f" == {quote_name(total)}"
    yield table.rule("sum", text, evidence)


# a == 0 or b == 0


def _exclusions(table: _Table, least_evidence: float) -> Iterator[Rule]:
    """Two numbers of which one always has its most frequent value, as gains and losses."""
    piles, spread = [], []
    for name in table.numeric_names:
        numbers = table.numbers(name)
        values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
        if len(values) > SPREAD_VALUES and counts.max() >= PILE_SHARE * table.n_rows:
            pile = values[counts.argmax()]
            piles.append((name, pile))
            spread.append((numbers != pile) & ~np.isnan(numbers))
    if len(piles) < 2:
        return
    is_off = np.column_stack(spread).astype(np.float32)
    together = is_off.T @ is_off
    counts_off = is_off.sum(axis=0, dtype=np.float64)
    for i, j in combinations(range(len(piles)), 2):
        evidence = counts_off[i] * counts_off[j] / table.n_rows
        if together[i, j] == 0 and evidence >= least_evidence:
            text = " or ".join(
                f"{quote_name(name)} == {quote_value(float(pile))}"
                for name, pile in (piles[i], piles[j])
            )
            yield table.rule("exclusive", text, evidence)


# a determines b


def _dependencies(table: _Table, least_evidence: float) -> Iterator[Dependency]:
    names = list(table.rows)
    # filled column by column: a list of all columns would take the memory twice
    codes = np.empty((table.n_rows, len(names)), dtype=np.int32, order="F")
    for position, name in enumerate(names):
        codes[:, position] = table.codes(name)
    n_values = codes.max(axis=0) + 1
    determined: dict[int, set[int]] = {j: set() for j in range(len(names))}
    for i in range(len(names)):
        # a near-key determines everything, which is no evidence of anything
        if not 2 <= n_values[i] <= table.n_rows / 3:
            continue
        may_follow = (n_values >= 2) & (n_values <= n_values[i])
        may_follow[i] = False
        for j in _determined_by(codes[:, i], codes, may_follow, table.sample):
            evidence = _broken_when_permuted(codes[:, i], codes[table.permutation, j])
            if evidence >= least_evidence:
                determined[j].add(i)
                yield Dependency.learn(table.rows, (names[i],), names[j], evidence)
    small = [i for i in range(len(names)) if 2 <= n_values[i] <= PAIR_VALUES]
    # those with the most values say most, where there are too many columns to try all pairs
    small = sorted(sorted(small, key=lambda i: -n_values[i])[:PAIR_COLUMNS])
    for i, k in combinations(small, 2):
        if (
            n_values[i] * n_values[k] > table.n_rows / 3
            or k in determined[i]
            or i in determined[k]
        ):
            continue
        joint = pd.factorize(codes[:, i].astype(np.int64) * n_values[k] + codes[:, k])[
            0
        ]
        may_follow = (n_values >= 2) & (
            n_values <= min(PAIR_VALUES, n_values[i] * n_values[k])
        )
        # what one of the two determines alone is no news
        may_follow &= [not determined[j] & {i, k} for j in range(len(names))]
        may_follow[[i, k]] = False
        for j in _determined_by(joint, codes, may_follow, table.sample):
            evidence = _broken_when_permuted(joint, codes[table.permutation, j])
            if evidence >= least_evidence:
                yield Dependency.learn(
                    table.rows, (names[i], names[k]), names[j], evidence
                )


def _determined_by(
    key: np.ndarray, codes: np.ndarray, may_follow: np.ndarray, sample: np.ndarray
) -> np.ndarray:
    """Return the columns, of those that may follow, that are constant wherever the key is."""
    # position of the first row with the same key; on few rows all columns are compared at once
    _, first, inverse = np.unique(key[sample], return_index=True, return_inverse=True)
    few = codes[sample]
    candidates = np.flatnonzero((few[first[inverse]] == few).all(axis=0) & may_follow)
    if not len(candidates):
        return candidates
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    keeps = [(codes[first[inverse], j] == codes[:, j]).all() for j in candidates]
    candidates = candidates[np.array(keeps, dtype=bool)]
    return candidates


def _broken_when_permuted(key: np.ndarray, permuted: np.ndarray) -> float:
    """Return how many rows must go until the key determines the permuted column (g3 times n).

    Source: Kivinen and Mannila, Approximate inference of functional dependencies from relations,
    Theoretical Computer Science 149 (1995).
    """
    joint = key.astype(np.int64) * (int(permuted.max()) + 1) + permuted
    values, counts = np.unique(joint, return_counts=True)
    keys = values // (int(permuted.max()) + 1)
    # values are sorted, so the counts of one key stand side by side
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    return float(len(key) - np.maximum.reduceat(counts, starts).sum())


# a == v implies b == w, and values that never meet


@dataclass(frozen=True)
class _Atom:
    """A frequent value of a column; None stands for a missing one."""

    column: str
    value: float | str | None
    count: int

    @property
    def text(self) -> str:
        return f"{quote_name(self.column)} == {quote_value(self.value)}"


def _implications(
    table: _Table, least_evidence: float, settled: set[tuple[str, str]]
) -> dict[str, list[Relation]]:
    atoms = _frequent_values(table)
    n = table.n_rows
    together = _met_together(table, atoms)
    counts = np.array([atom.count for atom in atoms], dtype=float)
    columns = np.array([atom.column for atom in atoms], dtype=object)
    has_missing = {name: bool(table.rows[name].isna().any()) for name in table.rows}
    implies: list[Relation] = []
    never: list[Relation] = []
    implied: set[tuple[int, str]] = set()
    # atom by atom: matrices of expectations would take more memory than the table
    for i, premise in enumerate(atoms):
        by_chance = premise.count * (1 - counts / n)
        always = (together[i] == premise.count) & (columns != premise.column)
        for j in np.flatnonzero(always & (by_chance >= least_evidence)):
            conclusion = atoms[j]
            if (premise.column, conclusion.column) in settled:
                continue
            text = f"{premise.text} implies {conclusion.text}"
            if has_missing[conclusion.column] and conclusion.value is not None:
                # a missing value would make the conclusion unknown, which breaks nothing
                text += f" and {quote_name(conclusion.column)} != missing"
            implies.append(table.rule("implies", text, by_chance[j]))
            implied.add((i, conclusion.column))
    for i, first in enumerate(atoms):
        expected = first.count * counts / n
        apart = (
            (together[i] == 0)
            & (columns != first.column)
            & (expected >= least_evidence)
        )
        for j in np.flatnonzero(apart):
            second = atoms[j]
            if (
                j <= i
                or (i, second.column) in implied
                or (int(j), first.column) in implied
            ):
                continue
            if {(first.column, second.column), (second.column, first.column)} & settled:
                continue
            text = f"not ({first.text} and {second.text})"
            never.append(table.rule("never", text, expected[j]))
    return {"implies": implies, "never": never}


def _frequent_values(table: _Table) -> list[_Atom]:
    atoms: list[_Atom] = []
    for name, is_numeric in table.numeric.items():
        counts = table.rows[name].value_counts(dropna=False)
        least = max(ATOM_SHARE * table.n_rows, 5)
        if is_numeric and len(counts) > MANY_VALUES:
            least = ATOM_SHARE_OF_NUMBERS * table.n_rows
        for value, count in counts[counts >= least].head(ATOMS_PER_COLUMN).items():
            atoms.append(
                _Atom(str(name), None if pd.isna(value) else value, int(count))
            )
    frequent = sorted(range(len(atoms)), key=lambda i: -atoms[i].count)[:ATOMS_IN_ALL]
    return [atoms[i] for i in sorted(frequent)]


def _met_together(table: _Table, atoms: list[_Atom]) -> np.ndarray:
    """Return how many rows have both of two values, ``(m, m)``."""
    together = np.zeros((len(atoms), len(atoms)), dtype=np.float32)
    by_column: dict[str, list[int]] = {}
    for position, atom in enumerate(atoms):
        by_column.setdefault(atom.column, []).append(position)
    # the position of the atom that each row has in a column, -1 for none
    positions = {
        name: _atom_of_row(table.rows[name], {atoms[p].value: p for p in members})
        for name, members in by_column.items()
    }
    # in blocks of rows, so that the table of zeros and ones never stands as a whole
    step = max(1, 1_000_000 // max(1, len(atoms)))
    for start in range(0, table.n_rows, step):
        stop = min(start + step, table.n_rows)
        has_value = np.zeros((stop - start, len(atoms)), dtype=np.float32)
        for of_row in positions.values():
            rows = np.flatnonzero(of_row[start:stop] >= 0)
            has_value[rows, of_row[start:stop][rows]] = 1
        together += has_value.T @ has_value
    return together


def _atom_of_row(
    column: pd.Series, position_of: dict[float | str | None, int]
) -> np.ndarray:
    """Return the position of each row's value among the atoms, -1 where it is none of them."""
    codes, values = pd.factorize(column, use_na_sentinel=False)
    of_value = [
        position_of.get(None if pd.isna(value) else value, -1) for value in values
    ]
    return np.array(of_value, dtype=np.int16)[codes]
