"""Groups of failures and what sets each apart; ``space`` has the points and the map.

Notation
--------
Z : (n, k) rows in a :class:`FeatureSpace`, in which a categorical weighs about as much as a number
labels : (n_b,) group of each real bad row, the largest is 0

Groups are a description, chosen by looking at the rows: whether they mean anything is for the
reader to say. One group is reported unless several are really there: the best mean silhouette
(Rousseeuw 1987) over k must reach :data:`SILHOUETTE` and exceed that of every one of
:data:`REFERENCES` structureless sets of rows with the same covariance (in the manner of
Tibshirani, Walther & Hastie 2001), treated the same.

Made rows (``ga``, ``synthetic``) belong to the group of the real bad row they came from.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.conditions import plain_number, quote_category, shorten_text

#: Mean silhouette below this, or fewer rows, make one group.
SILHOUETTE, MIN_ROWS = 0.15, 20
#: Structureless sets that real groups must surpass, and rows used of each.
REFERENCES, _REFERENCE_ROWS = 19, 300
#: A departure worth words, in standard deviations; features named per group.
DEPARTURE, NAMED = 0.5, 3


def find_clusters(Z_bad: np.ndarray, rng_seed: int, most: int = 6) -> np.ndarray:
    """Return the group of each real bad row, the largest 0; see this module for how many.

    Parameters
    ----------
    Z_bad : ndarray of shape (n_b, k)
        Each source row once.
    rng_seed : int
    most : int

    Returns
    -------
    ndarray of shape (n_b,), int

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0], [9]], [15, 25], axis=0)
    >>> np.bincount(find_clusters(Z, 0)).tolist()
    [25, 15]
    """
    n = len(Z_bad)
    one = np.zeros(n, dtype=int)
    if n < MIN_ROWS:
        return one
    rng = random_stream(rng_seed, "clusters")
    with threadpool_limits(1):
        best, labels = _best(Z_bad, most, rng, 10)
        if best < SILHOUETTE:
            return one
        rows = min(n, _REFERENCE_ROWS)
        for _ in range(REFERENCES):
            centred = Z_bad - Z_bad.mean(axis=0)
            # Gaussian with the covariance of the rows: random sums of them
            blank = rng.normal(size=(rows, n)) @ centred / np.sqrt(n)
            if _best(blank, most, rng, 3)[0] >= best:
                return one
    order = np.argsort(-np.bincount(labels), kind="stable")
    return np.asarray(np.argsort(order, kind="stable")[labels])


def _best(
    Z: np.ndarray, most: int, rng: np.random.Generator, starts: int
) -> tuple[float, np.ndarray]:
    """Return the best mean silhouette over k and its labels; no group may be very small."""
    n = len(Z)
    best, labels = -1.0, np.zeros(n, dtype=int)
    distinct = len(np.unique(Z, axis=0))
    for k in range(2, min(most, n // 5, distinct - 1) + 1):
        tried = KMeans(k, n_init=starts, random_state=draw_int_seed(rng)).fit_predict(Z)
        if np.bincount(tried, minlength=k).min() < max(3, 0.05 * n):
            continue
        rows = np.arange(n) if n <= 2000 else rng.choice(n, 2000, replace=False)
        if len(np.unique(tried[rows])) < k:
            continue
        score = float(silhouette_score(Z[rows], tried[rows]))
        if score > best:
            best, labels = score, tried
    return best, labels


def assign_groups(parent: np.ndarray, source: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the group of rows by the real bad row they came from; -1 where it is unknown.

    Parameters
    ----------
    parent : ndarray of shape (n,)
        Source row each row came from.
    source, labels : ndarray of shape (n_b,)
        Source rows of the bad rows, and their groups.

    Examples
    --------
    >>> assign_groups(np.array([7, 5, 9]), np.array([5, 7]), np.array([0, 1])).tolist()
    [1, 0, -1]
    """
    of = dict(zip(np.asarray(source).tolist(), np.asarray(labels).tolist(), strict=True))
    return np.array([of.get(row, -1) for row in np.asarray(parent).tolist()], dtype=int)


def describe_clusters(
    features_bad: pd.DataFrame,
    columns: Sequence[Column],
    labels: np.ndarray,
    features_all: pd.DataFrame,
) -> list[str]:
    """Return a phrase per group: where its rows depart most from all real rows.

    A number departs by its median in robust standard deviations (IQR / 1.349) of all rows, by
    its mean where it has few values; a category by its share. Only departures of at least
    :data:`DEPARTURE` that chance among so many features would hardly bring are named.

    Parameters
    ----------
    features_bad : DataFrame of shape (n_b, d)
    columns : sequence of Column
    labels : ndarray of shape (n_b,), int
    features_all : DataFrame of shape (n, d)

    Returns
    -------
    list of str
        Phrase k is about group k.

    Examples
    --------
    >>> x = pd.DataFrame({"age": np.arange(100.0)})
    >>> describe_clusters(x[80:], [Column("age", "numeric")], np.zeros(20, int), x)
    ['high age (median 89.5, all rows 49.5)']
    """
    groups = range(int(labels.max()) + 1 if len(labels) else 0)
    surely = float(norm.isf(0.025 / max(1, len(columns))))
    said: list[list[tuple[bool, float, str]]] = [[] for _ in groups]
    for column in columns:
        mine, everyone = features_bad[column.name], features_all[column.name]
        tell = _number if column.is_numeric and everyone.nunique() > 2 else _category
        for k in groups:
            effect, rows, text = tell(shorten_text(column.name), mine[labels == k], everyone)
            if effect >= DEPARTURE:
                # 1.25: the standard error of a median, in standard deviations
                said[k].append((effect >= 1.25 * surely / np.sqrt(rows), effect, text))
    return [_phrase(parts) for parts in said]


def _phrase(parts: list[tuple[bool, float, str]]) -> str:
    parts = sorted(parts, key=lambda part: -part[1])
    clear = [text for sure, _, text in parts if sure][:NAMED]
    if clear:
        return "; ".join(clear)
    near = f"; nearest to it: {parts[0][2]}" if parts else ""
    return f"no feature departs clearly from all rows{near}"


def _number(name: str, part: pd.Series, everyone: pd.Series) -> tuple[float, int, str]:
    """Return by how much a number departs, on how many rows, and the words."""
    mine, all_rows = part.dropna(), everyone.dropna()
    if not len(mine) or abs(part.isna().mean() - everyone.isna().mean()) >= 0.3:
        known = [v.where(v.isna(), "known").astype(object) for v in (part, everyone)]
        return _category(name, *known)
    few = all_rows.nunique() <= 10
    word = "mean" if few else "median"
    a, b = (float(v.mean() if few else v.median()) for v in (mine, all_rows))
    spread = float(all_rows.std())
    if not few:
        robust = float(all_rows.quantile(0.75) - all_rows.quantile(0.25)) / 1.349
        spread = robust if robust > 0 else spread
    if not spread > 0:
        return 0.0, 1, ""
    level = "high" if a > b else "low"
    text = f"{level} {name} ({word} {_round(a)}, all rows {_round(b)})"
    return abs(a - b) / spread, len(mine), text


def _category(name: str, part: pd.Series, everyone: pd.Series) -> tuple[float, int, str]:
    """Return by how much the share of a category departs, on how many rows, and the words."""
    of_all, of_mine = (
        v.astype(object).where(v.notna(), None).value_counts(normalize=True, dropna=False)
        for v in (everyone, part)
    )
    mine = of_mine.reindex(of_all.index, fill_value=0.0)
    gap = (mine - of_all) / np.sqrt(np.maximum(of_all * (1 - of_all), 0.09))
    # what is frequent says more than what is rare
    top = gap.argmax() if gap.max() >= 0.6 * -gap.min() else gap.argmin()
    value, a, b = of_all.index[top], float(mine.iloc[top]), float(of_all.iloc[top])
    word = ("mostly" if a >= 0.5 else "often") if a > b else ("never" if a == 0 else "rarely")
    if a > b and b >= 0.5:
        word = "more often"
    if value is None or value != value:
        told = "missing"
    else:
        told = quote_category(value) if isinstance(value, str) else plain_number(float(value))
    text = f"{name} {word} {told} ({a:.0%}, all rows {b:.0%})"
    return abs(float(gap.iloc[top])), len(part), text


def _round(value: float) -> str:
    return plain_number(float(f"{value:.2e}"))
