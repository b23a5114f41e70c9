"""Do made rows look like real bad rows, and are they more than near copies of them?

Notation
--------
A : (n, d) made rows, B : (n_b, d) real bad rows, numbers min–max scaled, categories as codes;
    the last column is the target. Both are pooled over folds, a real row stands once.
c : the real row each came from

Each measure stands beside its *split-half value*: the same between random halves of B. It is
what real rows reach against real rows, on fewer of them, so it is a lenient limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student
from scipy.stats import wasserstein_distance
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GroupKFold

from amlb_ext.core.unit import Unit
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.validity.measures import (
    MIN_ROWS,
    Measure,
    clustered_auc,
    plan_measure,
    why_not_compared,
)

#: Parts of the cross-validation and of the jackknife, random halves, most made rows looked at.
PARTS, GROUPS, HALVES, MOST = 5, 10, 10, 2000
#: Most real bad rows among which the closest is looked for: every pair is compared.
MOST_RECORDS = 5000
#: Rows whose distances to all others are in memory at a time.
BLOCK = 128
#: A distance below this is none.
SAME = 1e-9
#: Limit of the classifier two-sample test beyond which rows are told apart with ease.
AUC_LIMIT = 0.75
#: Limit of the distance ratio; jitter of the default settings stands above it.
NEAR = 0.1
#: Share of made rows that may repeat others: none do in suites of this version.
MOST_COPIES = 0.02


@dataclass(frozen=True)
class ScaledTable:
    """Rows as numbers on one scale; see the module's notation.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    clusters : ndarray of shape (n,)
        c.
    is_category : ndarray of shape (d,), bool
        Which columns hold codes of categories.
    """

    X: np.ndarray
    clusters: np.ndarray
    is_category: np.ndarray

    def take(self, rows: np.ndarray) -> ScaledTable:
        """Return some rows, by position or as a mask."""
        return ScaledTable(self.X[rows], self.clusters[rows], self.is_category)

    def split_in_half(
        self, rng: np.random.Generator
    ) -> tuple[ScaledTable, ScaledTable]:
        """Return random halves, the second one row larger where the number is odd."""
        size = len(self.X)
        is_first = rng.permutation(size) < size // 2
        return self.take(is_first), self.take(~is_first)


#: A measure of how far two tables lie apart.
Statistic = Callable[[ScaledTable, ScaledTable], float]


def thin_table(
    table: ScaledTable, rng: np.random.Generator, most: int = MOST
) -> ScaledTable:
    """Return at most so many of the rows, drawn at random, in their order."""
    if len(table.X) <= most:
        return table
    rows = rng.choice(len(table.X), most, replace=False)
    return table.take(np.sort(rows))


def measure_realism(
    made: ScaledTable, bad: ScaledTable, rng: np.random.Generator, unit: Unit
) -> list[Measure]:
    """Return the classifier test, Wasserstein, total variation and correlation error."""
    if why := why_not_compared(len(bad.X), len(made.X), unit, least=MIN_ROWS):
        others = [plan_measure(name, "", "<=") for _, name, *_ in _BESIDE_HALVES]
        two_sample = plan_measure("two-sample test", "", "<=", AUC_LIMIT)
        return [measure.missing(why) for measure in (two_sample, *others)]
    # in this order: all draw from one stream
    out = [measure_two_sample(made, bad, rng, unit)]
    for statistic, name, text, source in _BESIDE_HALVES:
        value = statistic(made, bad)
        if math.isnan(value):
            planned = plan_measure(name, source)
            out.append(planned.missing("does not apply: no such columns"))
            continue
        halves = [statistic(*bad.split_in_half(rng)) for _ in range(HALVES)]
        low, high = jackknife_interval(statistic, made, bad, rng)
        # halves of few rows may lack what is compared, and then there is no limit
        limit = float(np.nanmean(halves)) if np.isfinite(halves).any() else None
        text += f"; limit: random halves of the real bad {unit.many}"
        planned = plan_measure(name, source, "<=", limit)
        out.append(planned.found(value, text, low=low, high=high))
    return out


def measure_two_sample(
    made: ScaledTable, bad: ScaledTable, rng: np.random.Generator, unit: Unit
) -> Measure:
    """Held-out AUC of a classifier that tells made from real bad rows; .5 is perfect.

    Rows that share a real row stand in one part of the cross-validation.
    Source: Lopez-Paz & Oquab (2017), ICLR; AUC in place of accuracy since classes differ in size.
    """
    seed = int(rng.integers(2**31 - 1))
    score, is_made, clusters = _tell_apart(made, bad, seed)
    area = clustered_auc(score, is_made, clusters)
    text = (
        f"how well a classifier tells {unit.made} from real bad {unit.many} it has not seen (.5: "
        "not at all)"
    )
    source = f"Lopez-Paz & Oquab (2017); limit {AUC_LIMIT} ours"
    return plan_measure("two-sample test", source, "<=", AUC_LIMIT).estimated(
        area, text
    )


def _tell_apart(
    first: ScaledTable, second: ScaledTable, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a classifier's held-out scores, which rows are of the first table, and clusters."""
    X = fill_missing(np.vstack([first.X, second.X]))
    is_first = np.arange(len(X)) < len(first.X)
    clusters = np.concatenate([first.clusters, second.clusters])
    n_parts = min(PARTS, len(np.unique(clusters)))
    parts = GroupKFold(n_parts, shuffle=True, random_state=seed)
    # a row that no model was fitted for counts as undecided
    score = np.full(len(X), 0.5)
    for train, held in parts.split(X, is_first, clusters):
        has_one_side = is_first[train].all() or not is_first[train].any()
        if has_one_side:
            continue
        # leaves of three rows: a deeper tree would learn single rows, not the distribution
        model = ExtraTreesClassifier(
            50, min_samples_leaf=3, class_weight="balanced", random_state=seed
        )
        model.fit(X[train], is_first[train])
        score[held] = model.predict_proba(X[held])[:, 1]
    return score, is_first, clusters


def mean_wasserstein(a: ScaledTable, b: ScaledTable) -> float:
    """Mean over numeric columns of the 1-D distance; NaN without such columns.

    Examples
    --------
    >>> one = ScaledTable(np.array([[0.0], [1.0]]), np.arange(2), np.array([False]))
    >>> mean_wasserstein(one, ScaledTable(one.X + 0.25, one.clusters, one.is_category))
    0.25
    """
    distances = []
    for column in np.flatnonzero(~a.is_category):
        a_values = _without_missing(a.X[:, column])
        b_values = _without_missing(b.X[:, column])
        if len(a_values) and len(b_values):
            distances.append(wasserstein_distance(a_values, b_values))
    return float(np.mean(distances)) if distances else math.nan


def _without_missing(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def mean_total_variation(a: ScaledTable, b: ScaledTable) -> float:
    """Mean over categorical columns of half the L1 distance of shares; NaN without any.

    Examples
    --------
    >>> one = ScaledTable(np.array([[0.0], [1.0]]), np.arange(2), np.array([True]))
    >>> other = ScaledTable(np.zeros((4, 1)), np.arange(4), one.is_category)
    >>> mean_total_variation(one, other)  # (|.5 - 1| + .5) / 2
    0.5
    """
    distances = []
    for column in np.flatnonzero(a.is_category):
        a_codes = a.X[:, column].astype(int)
        b_codes = b.X[:, column].astype(int)
        # a category may be absent from one side
        size = int(max(a_codes.max(), b_codes.max())) + 1
        a_shares = np.bincount(a_codes, minlength=size) / len(a_codes)
        b_shares = np.bincount(b_codes, minlength=size) / len(b_codes)
        distances.append(np.abs(a_shares - b_shares).sum() / 2)
    return float(np.mean(distances)) if distances else math.nan


def mean_correlation_gap(a: ScaledTable, b: ScaledTable) -> float:
    """Mean absolute difference of Pearson's r over pairs of numeric columns; NaN without any."""
    numeric = np.flatnonzero(~a.is_category)
    a_values = np.nan_to_num(a.X[:, numeric], nan=0.0)
    b_values = np.nan_to_num(b.X[:, numeric], nan=0.0)
    # a constant column has no correlation
    varies_in_a = np.ptp(a_values, axis=0) > SAME
    varies_in_b = np.ptp(b_values, axis=0) > SAME
    varies = varies_in_a & varies_in_b
    if varies.sum() < 2:
        return math.nan
    a_correlations = np.corrcoef(a_values[:, varies], rowvar=False)
    b_correlations = np.corrcoef(b_values[:, varies], rowvar=False)
    # each pair once, and no column with itself
    pairs = np.triu_indices(int(varies.sum()), 1)
    return float(np.abs(a_correlations - b_correlations)[pairs].mean())


def jackknife_interval(
    statistic: Statistic, made: ScaledTable, bad: ScaledTable, rng: np.random.Generator
) -> tuple[float, float]:
    """95 % interval, real rows and what was made from them left out in ten groups together."""
    clusters = np.unique(np.concatenate([made.clusters, bad.clusters]))
    n_groups = min(GROUPS, len(clusters))
    group = rng.permutation(len(clusters)) % n_groups
    left_out = []
    for number in range(n_groups):
        kept = clusters[group != number]
        made_kept = made.take(np.isin(made.clusters, kept))
        bad_kept = bad.take(np.isin(bad.clusters, kept))
        if len(made_kept.X) and len(bad_kept.X):
            left_out.append(statistic(made_kept, bad_kept))
    whole = statistic(made, bad)
    values = np.array(left_out)
    size = len(values)
    # two values give a spread, but one that says nothing
    if size < 3 or not np.isfinite(values).all() or not np.isfinite(whole):
        return math.nan, math.nan
    squares = ((values - values.mean()) ** 2).sum()
    # the jackknife's factor: values that share nearly all rows scatter far too little
    se = math.sqrt((size - 1) / size * squares)
    half_width = float(student.ppf(0.975, size - 1)) * se
    return whole - half_width, whole + half_width


def closest_distances(
    a: ScaledTable, b: ScaledTable, apart: bool = False
) -> np.ndarray:
    """Distance of each row of ``a`` to the closest of ``b``, mean over columns (Gower 1971).

    A category that differs, or a number missing on one side only, counts 1. The target counts
    as a column. With ``apart``, rows of one cluster are not compared.

    Examples
    --------
    >>> t = ScaledTable(np.array([[0.0, 0.0], [1.0, 0.5]]), np.arange(2), np.array([True, False]))
    >>> closest_distances(t, t).tolist()
    [0.0, 0.0]
    >>> closest_distances(t, t, apart=True).tolist()  # (1 + .5) / 2
    [0.75, 0.75]
    """
    closest = np.full(len(a.X), np.nan)
    for start in range(0, len(a.X), BLOCK):  # all pairs may not fit into memory
        block = slice(start, start + BLOCK)
        total = np.zeros((len(a.X[block]), len(b.X)))
        for column, is_category in enumerate(a.is_category):
            a_values = a.X[block, [column]]  # (block, 1) against (1, n_b): all pairs
            b_values = b.X[None, :, column]
            gap = np.abs(a_values - b_values)
            if is_category:
                gap = (a_values != b_values).astype(float)
            # a pair that both lack is no distance
            is_lacking_on_one_side = np.isnan(a_values) ^ np.isnan(b_values)
            total += np.where(np.isnan(gap), is_lacking_on_one_side, gap)
        if apart:
            is_same_row = a.clusters[block, None] == b.clusters[None]
            total[is_same_row] = np.inf
        closest[block] = total.min(axis=1) / len(a.is_category)
    return closest


def measure_closest_record(
    made: ScaledTable, bad: ScaledTable, rng: np.random.Generator, unit: Unit
) -> Measure:
    """Return the ratio of distances to the closest record; an exact copy has a measure of its own.

    The ratio is the median distance synthetic → closest real bad row over the median distance
    real bad → closest *other* real bad row: 1 is what a new real row would have, 0 a copy.
    """
    source = "distance to closest record; limit ours"
    closest = plan_measure("closest record", source, ">=", NEAR)
    if why := why_not_compared(len(bad.X), len(made.X), unit):
        return closest.missing(why)
    bad = thin_table(bad, rng, MOST_RECORDS)
    to_bad = closest_distances(made, bad)
    among_bad = closest_distances(bad, bad, apart=True)
    if float(np.median(among_bad)) < SAME:
        # there is no distance to be near by, so no limit either
        unlimited = plan_measure("closest record", source)
        return unlimited.missing(f"real {unit.many} repeat each other")

    def ratio(some_made: ScaledTable, some_bad: ScaledTable) -> float:
        # the distances stand, so the jackknife takes those of the rows it kept
        of_made = to_bad[np.isin(made.clusters, some_made.clusters)]
        of_bad = among_bad[np.isin(bad.clusters, some_bad.clusters)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the median of no rows
            base = float(np.median(of_bad))
            if base <= SAME:
                return math.nan
            return float(np.median(of_made)) / base

    low, high = jackknife_interval(ratio, made, bad, rng)
    text = (
        f"median distance to the closest real bad {unit.one} over that between real bad "
        f"{unit.many}"
    )
    return closest.found(ratio(made, bad), text, low=low, high=high)


def measure_share_of_copies(
    name: str, count: int, total: int, what: str, most: float = MOST_COPIES
) -> Measure:
    """Return a share that is 0 where nothing repeats anything else.

    Parameters
    ----------
    name : str
    count, total : int
        Those that repeat something, and all that were looked at.
    what : str
        The words after both numbers.
    most : float
        Largest share that passes.

    Examples
    --------
    >>> measure_share_of_copies("exact copies", 1, 20, "made rows equal a real one").text
    '1 of 20 made rows equal a real one'
    """
    source = "exact comparison of features; limit ours"
    planned = plan_measure(name, source, "<=", most)
    return planned.found(count / total, f"{count} of {total} {what}")


#: Measures whose limit is what random halves of the bad rows reach: name, text and source.
_BESIDE_HALVES: tuple[tuple[Statistic, str, str, str], ...] = (
    (
        mean_wasserstein,
        "Wasserstein",
        "mean distance per numeric column (target included), in training ranges",
        "earth mover's distance per column; paper, Table A1; split-half limit ours",
    ),
    (
        mean_total_variation,
        "total variation",
        "mean difference of shares per category (classes included)",
        "half the L1 distance; split-half limit ours",
    ),
    (
        mean_correlation_gap,
        "correlation error",
        "mean difference of correlations between numeric columns",
        "split-half limit ours",
    ),
)
