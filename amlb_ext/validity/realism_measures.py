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

from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.validity.measures import (
    MIN_ROWS,
    Measure,
    clustered_auc,
    make_measure,
    missing_measure,
    too_few_text,
)

#: Parts of the cross-validation and of the jackknife, random halves, most made rows looked at.
PARTS, GROUPS, HALVES, MOST = 5, 10, 10, 2000
#: A distance below this is none.
SAME = 1e-9
#: Limit of the classifier two-sample test beyond which rows are told apart with ease.
AUC_LIMIT = 0.75
#: Limit of the distance ratio; jitter of the default settings stands above it.
NEAR = 0.1


@dataclass(frozen=True)
class ScaledTable:
    """Rows with their clusters; ``codes`` says which columns are categories."""

    X: np.ndarray
    c: np.ndarray
    codes: np.ndarray

    def take(self, rows: np.ndarray) -> ScaledTable:
        """Return some rows."""
        return ScaledTable(self.X[rows], self.c[rows], self.codes)


def thin_table(table: ScaledTable, rng: np.random.Generator, most: int = MOST) -> ScaledTable:
    """Return at most so many of the rows."""
    if len(table.X) <= most:
        return table
    return table.take(np.sort(rng.choice(len(table.X), most, replace=False)))


def measure_realism(made: ScaledTable, bad: ScaledTable, rng: np.random.Generator) -> list[Measure]:
    """Return the classifier test, Wasserstein, total variation and correlation error."""
    names = ("two-sample test", "Wasserstein", "total variation", "correlation error")
    why = too_few_text(len(bad.X)) if len(bad.X) < MIN_ROWS else "no made rows"
    if len(bad.X) < MIN_ROWS or len(made.X) < MIN_ROWS:
        limits = (AUC_LIMIT, None, None, None)
        return [missing_measure(n, why, "", t, "<=") for n, t in zip(names, limits, strict=True)]
    out = [measure_two_sample(made, bad, rng)]
    texts = (
        "mean distance per numeric column (target included), in training ranges",
        "mean difference of shares per category (classes included)",
        "mean difference of correlations between numeric columns",
    )
    sources = ("earth mover's distance per column; paper, Table A1", "half the L1 distance", "")
    for name, statistic, text, source in zip(
        names[1:],
        (mean_wasserstein, mean_total_variation, mean_correlation_gap),
        texts,
        sources,
        strict=True,
    ):
        out.append(_beside_halves(name, statistic, made, bad, rng, text, source))
    return out


def measure_two_sample(made: ScaledTable, bad: ScaledTable, rng: np.random.Generator) -> Measure:
    """Held-out AUC of a classifier that tells made from real bad rows; .5 is perfect.

    Rows that share a real row stand in one part of the cross-validation.
    Source: Lopez-Paz & Oquab (2017), ICLR; AUC in place of accuracy since classes differ in size.
    """
    seed = int(rng.integers(2**31 - 1))
    source = f"Lopez-Paz & Oquab (2017); limit {AUC_LIMIT} ours"
    score, is_made, c = _told_apart(made, bad, seed)
    e = clustered_auc(score, is_made, c)
    halves = []
    for _ in range(2):
        first = rng.permutation(len(bad.X)) < len(bad.X) // 2
        one, two, _ = _told_apart(bad.take(first), bad.take(~first), seed)
        halves.append(clustered_auc(one, two, np.arange(len(one))).point)
    text = (
        "how well a classifier tells synthetic from real bad rows it has not seen (.5: not at "
        f"all); halves of the real ones: {np.mean(halves):.2f}"
    )
    return make_measure("two-sample test", e.point, text, source, low=e.low, high=e.high,
                   threshold=AUC_LIMIT, sense="<=")  # fmt: skip


def _told_apart(
    a: ScaledTable, b: ScaledTable, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = fill_missing(np.vstack([a.X, b.X]))
    y = np.arange(len(X)) < len(a.X)
    c = np.concatenate([a.c, b.c])
    parts = min(PARTS, len(np.unique(c)))
    score = np.full(len(X), 0.5)
    for train, held in GroupKFold(parts, shuffle=True, random_state=seed).split(X, y, c):
        if y[train].all() or not y[train].any():
            continue
        model = ExtraTreesClassifier(
            50, min_samples_leaf=3, class_weight="balanced", random_state=seed
        )
        score[held] = model.fit(X[train], y[train]).predict_proba(X[held])[:, 1]
    return score, y, c


def mean_wasserstein(a: ScaledTable, b: ScaledTable) -> float:
    """Mean over numeric columns of the 1-D distance; NaN without such columns.

    Examples
    --------
    >>> one = ScaledTable(np.array([[0.0], [1.0]]), np.arange(2), np.array([False]))
    >>> mean_wasserstein(one, ScaledTable(one.X + 0.25, one.c, one.codes))
    0.25
    """
    out = []
    for j in np.flatnonzero(~a.codes):
        u, v = a.X[:, j], b.X[:, j]
        u, v = u[~np.isnan(u)], v[~np.isnan(v)]
        if len(u) and len(v):
            out.append(wasserstein_distance(u, v))
    return float(np.mean(out)) if out else math.nan


def mean_total_variation(a: ScaledTable, b: ScaledTable) -> float:
    """Mean over categorical columns of half the L1 distance of shares; NaN without any.

    Examples
    --------
    >>> one = ScaledTable(np.array([[0.0], [1.0]]), np.arange(2), np.array([True]))
    >>> other = ScaledTable(np.zeros((4, 1)), np.arange(4), one.codes)
    >>> mean_total_variation(one, other)  # (|.5 - 1| + .5) / 2
    0.5
    """
    out = []
    for j in np.flatnonzero(a.codes):
        u, v = a.X[:, j].astype(int), b.X[:, j].astype(int)
        size = int(max(u.max(), v.max())) + 1
        gap = np.bincount(u, minlength=size) / len(u) - np.bincount(v, minlength=size) / len(v)
        out.append(np.abs(gap).sum() / 2)
    return float(np.mean(out)) if out else math.nan


def mean_correlation_gap(a: ScaledTable, b: ScaledTable) -> float:
    """Mean absolute difference of Pearson's r over pairs of numeric columns; NaN without any."""
    numeric = np.flatnonzero(~a.codes)
    sides = [np.nan_to_num(t.X[:, numeric], nan=0.0) for t in (a, b)]
    varies = np.logical_and(*(np.ptp(x, axis=0) > SAME for x in sides))
    if varies.sum() < 2:
        return math.nan
    one, two = (np.corrcoef(x[:, varies], rowvar=False) for x in sides)
    upper = np.triu_indices(int(varies.sum()), 1)
    return float(np.abs(one - two)[upper].mean())


def _beside_halves(
    name: str,
    statistic: Callable[[ScaledTable, ScaledTable], float],
    made: ScaledTable,
    bad: ScaledTable,
    rng: np.random.Generator,
    text: str,
    source: str,
) -> Measure:
    value = statistic(made, bad)
    if math.isnan(value):
        return missing_measure(name, "does not apply: no such columns", source, None, "")
    halves = []
    for _ in range(HALVES):
        first = rng.permutation(len(bad.X)) < len(bad.X) // 2
        halves.append(statistic(bad.take(first), bad.take(~first)))
    low, high = jackknife_interval(statistic, made, bad, rng)
    limit = float(np.nanmean(halves)) if np.isfinite(halves).any() else None
    return make_measure(name, value, text + "; limit: random halves of the real bad rows",
                   (source + "; split-half limit ours").lstrip("; "), low=low, high=high,
                   threshold=limit, sense="<=")  # fmt: skip


def jackknife_interval(
    statistic: Callable[[ScaledTable, ScaledTable], float],
    made: ScaledTable,
    bad: ScaledTable,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """95 % interval, real rows and what was made from them left out in ten groups together."""
    ids = np.unique(np.concatenate([made.c, bad.c]))
    groups = min(GROUPS, len(ids))
    group = rng.permutation(len(ids)) % groups
    values = []
    for k in range(groups):
        kept = ids[group != k]
        sides = [t.take(np.isin(t.c, kept)) for t in (made, bad)]
        if all(len(t.X) for t in sides):
            values.append(statistic(*sides))
    whole, left = statistic(made, bad), np.array(values)
    g = len(left)
    if g < 3 or not np.isfinite(left).all() or not np.isfinite(whole):
        return math.nan, math.nan
    se = math.sqrt((g - 1) / g * ((left - left.mean()) ** 2).sum())
    half = float(student.ppf(0.975, g - 1)) * se
    return whole - half, whole + half


def closest_distances(a: ScaledTable, b: ScaledTable, apart: bool = False) -> np.ndarray:
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
    out = np.full(len(a.X), np.nan)
    for begin in range(0, len(a.X), 500):
        block = a.X[begin : begin + 500]
        total = np.zeros((len(block), len(b.X)))
        for j, is_code in enumerate(a.codes):
            u, v = block[:, [j]], b.X[None, :, j]
            gap = (u != v).astype(float) if is_code else np.abs(u - v)
            total += np.where(np.isnan(gap), np.isnan(u) ^ np.isnan(v), gap)
        if apart:
            total[a.c[begin : begin + 500, None] == b.c[None]] = np.inf
        out[begin : begin + 500] = total.min(axis=1) / len(a.codes)
    return out


def measure_closest_record(
    made: ScaledTable, bad: ScaledTable, rng: np.random.Generator
) -> Measure:
    """Return the ratio of distances to the closest record; :mod:`.copy_checks` has exact copies.

    The ratio is the median distance synthetic → closest real bad row over the median distance
    real bad → closest *other* real bad row: 1 is what a new real row would have, 0 a copy.
    """
    name, source = "closest record", "distance to closest record; limit ours"
    if len(bad.X) < MIN_ROWS or len(made.X) == 0:
        why = too_few_text(len(bad.X)) if len(bad.X) < MIN_ROWS else "no made rows"
        return missing_measure(name, why, source, NEAR, ">=")
    near, own = closest_distances(made, bad), closest_distances(bad, bad, apart=True)
    if float(np.median(own)) < SAME:
        return missing_measure(name, "real rows repeat each other", source, None, "")

    def ratio(a: ScaledTable, b: ScaledTable) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            base = float(np.median(own[np.isin(bad.c, b.c)]))
            return float(np.median(near[np.isin(made.c, a.c)])) / base if base > SAME else math.nan

    low, high = jackknife_interval(ratio, made, bad, rng)
    text = "median distance to the closest real bad row over that between real bad rows"
    return make_measure(name, ratio(made, bad), text, source, low=low, high=high,
                   threshold=NEAR, sense=">=")  # fmt: skip
