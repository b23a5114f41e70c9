r"""Where F fails: a few conditions on features, found on one half of the rows, judged on the other.

Notation
--------
a slice : a conjunction of conditions on features, as a reader could type them
base : share of bad rows among all rows of the judging half;  share : the same inside the slice

Found: every node of a few shallow trees, fitted to the bad flags of one half of the source rows,
and what is simpler by one condition, is a candidate. Numbers are rounded and categories listed
*before* judging, so what is printed is what was judged. Judged, on the other half alone, by
source row:

* p : one-sided, of "bad rows fall inside as they fall elsewhere". All splits of the judged source
  rows into inside and outside are equally likely then, so it is the hypergeometric tail
  (Fisher 1934), or, where a source row occurs several times, a Monte Carlo permutation of whole
  source rows (Phipson & Smyth 2010). Nothing is assumed of the numbers being large.
* interval : Wilson (1927) with Kish's effective number of source rows, :math:`(\sum m)^2 /
  \sum m^2` for m occurrences each, as n. With one occurrence each it is Wilson's; else it errs on
  the wide side, since a mean of flags within [0, 1] varies at most as a single flag does.
* Holm (1979) over all slices judged. Only slices with an adjusted p of at most .05 are returned.

Selected on realised error, bad rows may be label noise: no slice is no proof that none exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hypergeom, norm
from sklearn.tree import DecisionTreeClassifier

from amlb_ext.core.rng import draw_int_seed
from amlb_ext.core.task import Column
from amlb_ext.stats.weighted_mean import holm_adjusted, kish_size

#: Columns of :func:`find_slices`.
COLUMNS = (
    "slice", "rows", "bad", "share", "low", "high", "base", "lift", "p", "p_holm", "n_features",
)  # fmt: skip
#: Fewer source rows, or fewer bad ones in a half, are not searched.
MIN_ROWS, MIN_BAD = 40, 3
#: Adjusted p-values above this are no finding.
LEVEL = 0.05
#: Rows used to find slices, and values in them.
MOST_FOUND_ON, MOST_VALUES = 20_000, 4_000_000
_TREES, _DRAWS, _PER_CONDITION = 3, 99_999, 0.5
_OVERLAP, _WORSE = 0.6, 1.5


def find_slices(
    features: pd.DataFrame,
    columns: Sequence[Column],
    bad: np.ndarray,
    groups: np.ndarray,
    rng: np.random.Generator,
    most: int = 5,
    depth: int = 3,
) -> pd.DataFrame:
    """Return slices of the features in which F fails significantly more often than elsewhere.

    Parameters
    ----------
    features : DataFrame of shape (n, d)
        Real rows in canonical form.
    columns : sequence of Column
    bad : ndarray of shape (n,), bool
    groups : ndarray of shape (n,)
        The source row of each row; rows of one source row have the same features.
    rng : Generator
    most : int
        Slices judged at most.
    depth : int
        Conditions at most; those on one feature are merged.

    Returns
    -------
    DataFrame
        One row per slice, smallest p first, with :data:`COLUMNS`; all numbers come from the
        judging half. Empty when nothing was found, or there is too little to find anything in.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = pd.DataFrame({"age": rng.integers(18, 80, 800).astype(float)})
    >>> bad = (x["age"] > 60).to_numpy() & (rng.random(800) < 0.5)
    >>> found = find_slices(x, [Column("age", "integer")], bad, np.arange(800), rng)
    >>> found["slice"].tolist()
    ['age > 60']
    """
    empty = pd.DataFrame({name: [] for name in COLUMNS}).astype({"slice": object})
    bad = np.asarray(bad, dtype=bool)
    codes = np.unique(np.asarray(groups), return_inverse=True)[1].reshape(-1)
    if len(bad) == 0 or codes.max() + 1 < MIN_ROWS or features.shape[1] == 0:
        return empty
    first = _halve(np.bincount(codes, bad) > 0, rng)[codes]
    if any(len(np.unique(codes[half & bad])) < MIN_BAD for half in (first, ~first)):
        return empty
    if bad[first].all() or bad[~first].all():
        return empty
    data = features[[column.name for column in columns]]
    chosen = _search(data, columns, bad, np.flatnonzero(first), rng, most, depth)
    judged = _judge([s for s in chosen if s.text], bad[~first], codes[~first], ~first, rng)
    if not judged:
        return empty
    table = pd.DataFrame(judged)
    table["p_holm"] = holm_adjusted(table["p"].to_numpy())
    table = table[table["p_holm"] <= LEVEL].sort_values(["p", "lift"], ascending=[True, False])
    return table[list(COLUMNS)].reset_index(drop=True) if len(table) else empty


@dataclass
class _Slice:
    rows: np.ndarray
    score: float
    text: str
    n_features: int = 0


def _halve(strata: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return which source rows find; bad ones and good ones are halved each."""
    first = np.zeros(len(strata), dtype=bool)
    for stratum in (strata, ~strata):
        members = rng.permutation(np.flatnonzero(stratum))
        first[members[: (len(members) + int(rng.integers(2))) // 2]] = True
    return first


def _search(
    data: pd.DataFrame,
    columns: Sequence[Column],
    bad: np.ndarray,
    found: np.ndarray,
    rng: np.random.Generator,
    most: int,
    depth: int,
) -> list[_Slice]:
    """Return the slices to be judged: nodes of trees, the most telling first, little overlap."""
    rows = min(MOST_FOUND_ON, max(1000, MOST_VALUES // len(columns)))
    if len(found) > rows:
        found = np.sort(rng.choice(found, rows, replace=False))
    coded = [
        c for j, col in enumerate(columns) if (c := code_column(data.iloc[:, j], col, bad, found))
    ]
    if not coded or not 0 < bad[found].sum() < len(found):
        return []
    big = float(np.finfo(np.float32).max) / 2
    X = np.clip(np.column_stack([c.x[found] for c in coded]), -big, big).astype(np.float32)
    leaf = max(5, int(np.ceil(0.02 * len(found))))
    free = np.arange(len(coded))
    paths: list[dict[int, Condition]] = []
    for _ in range(_TREES):
        if not len(free):
            break
        tree = DecisionTreeClassifier(
            max_depth=depth, min_samples_leaf=leaf, class_weight="balanced",
            random_state=draw_int_seed(rng),
        ).fit(X[:, free], bad[found]).tree_  # fmt: skip
        paths += _paths(tree, free)
        free = free[free != free[tree.feature[0]]] if tree.node_count > 1 else free[:0]
    nodes: list[tuple[_Slice, dict[int, Condition]]] = []
    for variant in (variant for path in paths for variant in _variants(path)):
        settled = {j: coded[j].settle(c) for j, c in variant.items()}
        inside = np.logical_and.reduce([coded[j].matches(c) for j, c in settled.items()])
        if inside[found].sum() < leaf:
            continue
        more = sum(c.parts if coded[j].gaps else 1 for j, c in settled.items()) - 1
        score = _z(bad[found], inside[found]) - _PER_CONDITION * more
        nodes.append((_Slice(inside, score, ""), settled))
    nodes.sort(key=lambda node: -node[0].score)
    chosen: list[_Slice] = []
    for s, settled in nodes:
        apart = all(_apart(s.rows[found], o.rows[found], bad[found]) for o in chosen)
        if len(chosen) < most and s.score >= 1.5 and apart:
            said = [coded[j].say(c, len(settled) == 1) for j, c in settled.items()]
            said = [text for text in said if text]
            chosen.append(_Slice(s.rows, s.score, " and ".join(said), len(said)))
    return chosen


def _apart(mine: np.ndarray, other: np.ndarray, bad: np.ndarray) -> bool:
    """Return whether a slice says more than one chosen before: other rows, or far worse ones."""
    if (mine & other).sum() <= _OVERLAP * min(mine.sum(), other.sum()):
        return True
    return bool(bad[mine].mean() >= _WORSE * bad[other].mean())


def _z(bad: np.ndarray, inside: np.ndarray) -> float:
    """Return by how many standard errors the share inside exceeds the share of all."""
    n, k = len(bad), int(inside.sum())
    base = bad.mean()
    if not 0 < k < n:
        return -np.inf
    return float((bad[inside].mean() - base) / np.sqrt(base * (1 - base) * (1 / k - 1 / n)))


def _paths(tree: Any, free: np.ndarray) -> list[dict[int, Condition]]:
    """Return the conditions that lead to each node below the root, merged by column."""
    paths: list[dict[int, Condition]] = []
    waiting: list[tuple[int, dict[int, Condition]]] = [(0, {})]
    while waiting:
        node, path = waiting.pop()
        if path:
            paths.append(path)
        if tree.children_left[node] < 0:
            continue
        j, t = int(free[tree.feature[node]]), float(tree.threshold[node])
        left = bool(tree.missing_go_to_left[node])
        c = path.get(j, Condition())
        below = Condition(c.low, min(c.high, t), c.missing and left)
        above = Condition(max(c.low, t), c.high, c.missing and not left)
        waiting += [
            (int(tree.children_left[node]), {**path, j: below}),
            (int(tree.children_right[node]), {**path, j: above}),
        ]
    return paths


def _variants(path: dict[int, Condition]) -> list[dict[int, Condition]]:
    """Return a path and what is simpler: a condition less, or not both a range and missing."""
    variants = [path]
    for j, c in path.items():
        rest = {i: other for i, other in path.items() if i != j}
        if rest:
            variants.append(rest)
        if c.parts > 1:
            variants.append({**rest, j: Condition(low=np.inf)})
            variants.append({**rest, j: Condition(c.low, c.high, False)})
    return variants


def _judge(
    slices: list[_Slice],
    bad: np.ndarray,
    codes: np.ndarray,
    judging: np.ndarray,
    rng: np.random.Generator,
) -> list[dict[str, object]]:
    """Return the figures of each slice on the rows that did not find it."""
    _, start, source = np.unique(codes, return_index=True, return_inverse=True)
    times = np.bincount(source).astype(float)
    hits = np.bincount(source, bad)
    base = float(bad.mean())
    judged: list[dict[str, object]] = []
    for s in slices:
        rows = s.rows[judging]
        inside = rows[start]
        if inside.sum() < 5 or inside.all():
            continue
        share = hits[inside].sum() / times[inside].sum()
        low, high = wilson(share, kish_size(times[inside]))
        judged.append({
            "slice": s.text, "rows": int(times[inside].sum()), "bad": int(hits[inside].sum()),
            "share": share, "low": low, "high": high, "base": base, "lift": share / base,
            "p": _p_value(times, hits, inside, rng), "n_features": s.n_features,
        })  # fmt: skip
    return judged


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share among n, which need not be whole.

    Examples
    --------
    >>> [round(bound, 3) for bound in wilson(0.5, 10)]  # z = 1.96: (.5 + .192 -+ .316) / 1.384
    [0.237, 0.763]
    """
    z2 = float(norm.ppf(0.5 + level / 2)) ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / (1 + z2 / n)
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def _p_value(
    times: np.ndarray, hits: np.ndarray, inside: np.ndarray, rng: np.random.Generator
) -> float:
    """Return the one-sided p of a slice; ``times`` and ``hits`` by source row, see the module."""
    k = int(inside.sum())
    if times.max() == 1:
        return float(hypergeom.sf(hits[inside].sum() - 1, len(hits), int(hits.sum()), k))
    excess = hits - hits.sum() / times.sum() * times
    kinds, counts = np.unique(excess, return_counts=True)
    # without shuffling rows: which kinds of source rows fall inside is all that matters
    draws = rng.multivariate_hypergeometric(counts, k, size=_DRAWS, method="marginals") @ kinds
    return float((1 + (draws >= excess[inside].sum() - 1e-9).sum()) / (1 + _DRAWS))


# Conditions on one feature: what a tree sees of a column, and how a reader is told of it.
#
# Names, categories and numbers are the user's data: any text, made short and kept on one line.

#: Categories told apart in one column; the others are one group.
MOST_CATEGORIES = 12
#: Longest name or category in a text, and categories listed.
WIDTH, LISTED = 60, 5


def shorten_text(text: str, width: int = WIDTH) -> str:
    """Return text of the user's data on one line, with an ellipsis where it is longer.

    Examples
    --------
    >>> shorten_text("a long\\nname", 8)
    'a long …'
    """
    line = " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())
    return line if len(line) <= width else line[: width - 1] + "…"


def plain_number(value: float) -> str:
    """Return a number without exponent where it can be read so.

    Examples
    --------
    >>> say_number(45.0), say_number(0.35), plain_number(1.5e20)
    ('45', '0.35', '1.5e+20')
    """
    if value == 0 or 1e-5 <= abs(value) < 1e15:
        return str(np.format_float_positional(value, trim="-"))
    return f"{value:.4g}"


@dataclass
class Condition:
    """Rows of one column: ``low < x <= high``, or codes of a categorical; and missing values."""

    low: float = -np.inf
    high: float = np.inf
    missing: bool = True

    @property
    def parts(self) -> int:
        """How much there is to read: a range or set and missing values are two things."""
        return 1 + (
            self.missing and (self.low > -np.inf or self.high < np.inf) and self.low < np.inf
        )


@dataclass
class CodedColumn:
    """A column as the trees see it; what is learned comes from the finding half alone.

    ``x`` is numeric with NaN for missing. A categorical has ranks by its share of bad rows:
    ``named`` category by rank, None for all others together. ``gaps`` counts missing values in
    the finding half.
    """

    name: str
    x: np.ndarray
    found: np.ndarray
    whole: bool = False
    named: list[str | None] = field(default_factory=list)
    others: bool = False
    gaps: int = 0

    def matches(self, c: Condition) -> np.ndarray:
        """Return which rows meet the condition, ``(n,)`` bool."""
        gap = np.isnan(self.x)
        with np.errstate(invalid="ignore"):
            return np.where(gap, c.missing, (self.x > c.low) & (self.x <= c.high))

    def settle(self, c: Condition) -> Condition:
        """Round the bounds to few digits, without moving a row of the finding half."""
        return Condition(self._bound(c.low), self._bound(c.high), c.missing)

    def _bound(self, t: float) -> float:
        if not np.isfinite(t) or self.named:
            return t
        i = int(np.searchsorted(self.found, t, side="right"))
        if i == 0 or i == len(self.found):
            return t
        if self.whole:
            return float(np.floor(t))
        for digits in range(2, 16):
            short = float(f"{t:.{digits}e}")
            if self.found[i - 1] <= short < self.found[i]:
                return short
        return t

    def say(self, c: Condition, alone: bool) -> str:
        """Return the condition in words; empty when it holds for every row."""
        gap = bool(np.isnan(self.x).any())
        known = ~np.isnan(self.x)
        inside = self.matches(c) & known
        if not inside.any() or inside.sum() == known.sum():
            if not gap or (c.missing and inside.any()):
                return ""
            return f"{self.name} is {'missing' if c.missing else 'not missing'}"
        text = self._say_categories(c) if self.named else self._say_range(c)
        if not (gap and c.missing):
            return text
        return f"{text} or missing" if alone else f"({text} or missing)"

    def _say_range(self, c: Condition) -> str:
        inside = self.x[(self.x > c.low) & (self.x <= c.high)]
        if self.whole and inside.min() == inside.max():
            return f"{self.name} = {plain_number(inside[0])}"
        if np.isfinite(c.low) and np.isfinite(c.high):
            return f"{plain_number(c.low)} < {self.name} <= {plain_number(c.high)}"
        if np.isfinite(c.low):
            return f"{self.name} > {plain_number(c.low)}"
        return f"{self.name} <= {plain_number(c.high)}"

    def _say_categories(self, c: Condition) -> str:
        ranks = [r for r in range(len(self.named)) if c.low < r <= c.high]
        inside = [name for r in ranks if (name := self.named[r]) is not None]
        outside = [n for r, n in enumerate(self.named) if r not in ranks and n is not None]
        rest = any(self.named[r] is None for r in ranks)
        if rest if self.others else len(outside) < len(inside):
            gap = "known and " if np.isnan(self.x).any() and not c.missing else ""
            return f"{self.name} is {gap}" + _listed(outside, "not ", "none of ")
        return f"{self.name} is " + _listed(inside, "", "one of ")


def _listed(names: list[str], one: str, several: str) -> str:
    quoted = [quote_category(name) for name in names]
    if len(quoted) == 1:
        return one + quoted[0]
    if len(quoted) > LISTED:
        return f"{several}{len(quoted)} (" + ", ".join([*quoted[: LISTED - 1], "…"]) + ")"
    return f"{several}(" + ", ".join(quoted) + ")"


def quote_category(text: str) -> str:
    """Return a category, in quotation marks where it could be taken for something else.

    Examples
    --------
    >>> quote("blue-collar"), quote("a, b"), quote_category("")
    ('blue-collar', '“a, b”', '“”')
    """
    short = shorten_text(text)
    plain = short and not set(short) & set(",()“”") and short == short.strip()
    return short if plain and (short == text or short.endswith("…")) else f"“{short}”"


def code_column(
    values: pd.Series, column: Column, bad: np.ndarray, found: np.ndarray
) -> CodedColumn | None:
    """Return a column as the trees see it; None when it is constant where slices are found."""
    name = shorten_text(column.name) or "“”"
    if column.is_numeric:
        x = values.to_numpy(dtype=float, na_value=np.nan)
        seen = x[found]
        distinct = np.unique(seen[~np.isnan(seen)])
        whole = (
            bool(np.all(x[~np.isnan(x)] % 1 == 0)) and float(np.abs(distinct).max(initial=0)) < 1e15
        )
        coded = CodedColumn(name, x, distinct, whole)
    else:
        as_category = values.astype("category")
        codes = as_category.cat.codes.to_numpy()
        texts = [str(text) for text in as_category.cat.categories]
        rows = np.bincount(codes[found] + 1, minlength=len(texts) + 1)[1:]
        hits = np.bincount(codes[found] + 1, bad[found], minlength=len(texts) + 1)[1:]
        often = np.argsort(-rows, kind="stable")[:MOST_CATEGORIES]
        often = often[rows[often] >= max(3, 0.005 * len(found))]
        # a share of few rows is drawn towards that of all: ten rows' worth
        base = float(bad[found].mean())
        rest = [rows.sum() - rows[often].sum(), hits.sum() - hits[often].sum()]
        shares = (np.append(hits[often], rest[1]) + 10 * base) / (
            np.append(rows[often], rest[0]) + 10
        )
        order = np.argsort(shares, kind="stable")
        rank_of = np.full(len(texts) + 1, np.flatnonzero(order == len(often))[0], dtype=float)
        rank_of[-1] = np.nan  # code -1, missing
        rank_of[often] = np.argsort(order, kind="stable")[: len(often)]
        x = rank_of[codes]
        named = [None if i == len(often) else texts[often[i]] for i in order]
        others = bool(np.any((codes >= 0) & ~np.isin(codes, often)))
        distinct = np.unique(x[found][~np.isnan(x[found])])
        coded = CodedColumn(name, x, distinct, named=named, others=others)
    coded.gaps = int(np.isnan(coded.x[found]).sum())
    return coded if len(distinct) + (coded.gaps > 0) > 1 else None
