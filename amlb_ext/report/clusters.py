"""Groups of failures and what sets each apart; ``feature_space`` has the points and the map.

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
from dataclasses import dataclass

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
#: Rows whose silhouettes are averaged.
_SILHOUETTE_ROWS = 2000
#: A departure worth words, in standard deviations; features named per group.
DEPARTURE, NAMED = 0.5, 3
#: The standard error of a median, in standard deviations of the rows, times sqrt(n).
_MEDIAN_ERROR = 1.25
#: Shares of missing values that differ by this are told instead of the values.
_MISSING_GAP = 0.3
#: A number with so few distinct values is told by its mean, for its median hardly moves.
_FEW_VALUES = 10


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
    n_rows = len(Z_bad)
    one_group = np.zeros(n_rows, dtype=int)
    if n_rows < MIN_ROWS:
        return one_group
    rng = random_stream(rng_seed, "clusters")
    with threadpool_limits(1):
        silhouette, labels = _best_partition(Z_bad, most, rng, n_starts=10)
        if silhouette < SILHOUETTE:
            return one_group
        n_reference = min(n_rows, _REFERENCE_ROWS)
        centred = Z_bad - Z_bad.mean(axis=0)
        for _ in range(REFERENCES):
            # Random sums of the rows are Gaussian with the covariance of the rows.
            sums = rng.normal(size=(n_reference, n_rows))
            structureless = sums @ centred / np.sqrt(n_rows)
            if _best_partition(structureless, most, rng, n_starts=3)[0] >= silhouette:
                return one_group
    # KMeans numbers its groups at random; the reader's group 1 is the largest.
    by_size = np.argsort(-np.bincount(labels), kind="stable")
    rank_of_label = np.argsort(by_size, kind="stable")
    return np.asarray(rank_of_label[labels])


def _best_partition(
    Z: np.ndarray, most: int, rng: np.random.Generator, n_starts: int
) -> tuple[float, np.ndarray]:
    """Return the best mean silhouette over k and its labels; no group may be very small."""
    n_rows = len(Z)
    best_silhouette, best_labels = -1.0, np.zeros(n_rows, dtype=int)
    n_distinct = len(np.unique(Z, axis=0))
    for k in range(2, min(most, n_rows // 5, n_distinct - 1) + 1):
        kmeans = KMeans(k, n_init=n_starts, random_state=draw_int_seed(rng))
        labels = kmeans.fit_predict(Z)
        # A handful of rows far out is no group of failures.
        if np.bincount(labels, minlength=k).min() < max(3, 0.05 * n_rows):
            continue
        # A silhouette takes all distances: beyond some rows a sample has to do.
        sample = np.arange(n_rows)
        if n_rows > _SILHOUETTE_ROWS:
            sample = rng.choice(n_rows, _SILHOUETTE_ROWS, replace=False)
        if len(np.unique(labels[sample])) < k:
            continue
        silhouette = float(silhouette_score(Z[sample], labels[sample]))
        if silhouette > best_silhouette:
            best_silhouette, best_labels = silhouette, labels
    return best_silhouette, best_labels


def assign_groups(
    parent: np.ndarray, source: np.ndarray, labels: np.ndarray
) -> np.ndarray:
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
    group_of_source = dict(zip(source.tolist(), labels.tolist(), strict=True))
    return np.array(
        [group_of_source.get(row, -1) for row in parent.tolist()], dtype=int
    )


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
    n_groups = int(labels.max()) + 1 if len(labels) else 0
    # Two-sided at 5 %, Bonferroni over the features.
    critical = float(norm.isf(0.025 / max(1, len(columns))))
    departures: list[list[_Departure]] = [[] for _ in range(n_groups)]
    for column in columns:
        bad_values, all_values = features_bad[column.name], features_all[column.name]
        name = shorten_text(column.name)
        describe = _category_departure
        if column.is_numeric and all_values.nunique() > 2:
            describe = _number_departure
        for group in range(n_groups):
            departure = describe(name, bad_values[labels == group], all_values)
            if departure.effect >= DEPARTURE:
                departures[group].append(departure)
    return [
        _group_phrase(group_departures, critical) for group_departures in departures
    ]


@dataclass(frozen=True, kw_only=True)
class _Departure:
    """How one feature of a group differs from that of all rows.

    Attributes
    ----------
    effect : float
        In standard deviations of all rows; never negative.
    n_rows : int
        Rows of the group that have a value.
    text : str
    """

    effect: float
    n_rows: int
    text: str

    def is_clear(self, critical: float) -> bool:
        """Whether chance would hardly bring it; ``critical`` is the normal quantile."""
        return self.effect >= _MEDIAN_ERROR * critical / np.sqrt(self.n_rows)


def _group_phrase(departures: list[_Departure], critical: float) -> str:
    """Return the largest clear departures of one group, or the nearest to one."""
    largest_first = sorted(departures, key=lambda departure: -departure.effect)
    clear = [
        departure.text for departure in largest_first if departure.is_clear(critical)
    ]
    if clear:
        return "; ".join(clear[:NAMED])
    nearest = f"; nearest to it: {largest_first[0].text}" if largest_first else ""
    return f"no feature departs clearly from all rows{nearest}"


def _number_departure(name: str, group: pd.Series, everyone: pd.Series) -> _Departure:
    """Return by how much the middle of a number departs."""
    group_values, all_values = group.dropna(), everyone.dropna()
    missing_gap = abs(group.isna().mean() - everyone.isna().mean())
    if not len(group_values) or missing_gap >= _MISSING_GAP:
        # Whether there is a value says more than the value.
        group_known = group.where(group.isna(), "known").astype(object)
        all_known = everyone.where(everyone.isna(), "known").astype(object)
        return _category_departure(name, group_known, all_known)
    spread = float(all_values.std())
    if all_values.nunique() <= _FEW_VALUES:
        word, middle, overall = (
            "mean",
            float(group_values.mean()),
            float(all_values.mean()),
        )
    else:
        word, middle, overall = (
            "median",
            float(group_values.median()),
            float(all_values.median()),
        )
        quartile_range = float(all_values.quantile(0.75) - all_values.quantile(0.25))
        if quartile_range > 0:
            spread = (
                quartile_range / 1.349
            )  # of a normal distribution, one standard deviation
    if not spread > 0:
        return _Departure(effect=0.0, n_rows=1, text="")
    level = "high" if middle > overall else "low"
    text = f"{level} {name} ({word} {_short_number(middle)}, all rows {_short_number(overall)})"
    effect = abs(middle - overall) / spread
    return _Departure(effect=effect, n_rows=len(group_values), text=text)


def _category_departure(name: str, group: pd.Series, everyone: pd.Series) -> _Departure:
    """Return by how much the share of the category departs that departs most."""
    all_shares = _category_shares(everyone)
    group_shares = _category_shares(group).reindex(all_shares.index, fill_value=0.0)
    # A rare category has a small variance: it is raised, lest every rare one stand out.
    variance = np.maximum(all_shares * (1 - all_shares), 0.09)
    gaps = (group_shares - all_shares) / np.sqrt(variance)
    # What is frequent in the group says more than what is rare.
    tell_frequent = gaps.max() >= 0.6 * -gaps.min()
    position = gaps.argmax() if tell_frequent else gaps.argmin()
    category = all_shares.index[position]
    share, overall = (
        float(group_shares.iloc[position]),
        float(all_shares.iloc[position]),
    )
    if category is None or category != category:
        shown = "missing"
    elif isinstance(category, str):
        shown = quote_category(category)
    else:
        shown = plain_number(float(category))
    how_often = _frequency_word(share, overall)
    return _Departure(
        effect=abs(float(gaps.iloc[position])),
        n_rows=len(group),
        text=f"{name} {how_often} {shown} ({share:.0%}, all rows {overall:.0%})",
    )


def _category_shares(values: pd.Series) -> pd.Series:
    """Return the share of each category, the most frequent first; None is missing."""
    categories = values.astype(object).where(values.notna(), None)
    return categories.value_counts(normalize=True, dropna=False)


def _frequency_word(share: float, overall: float) -> str:
    if share > overall:
        if overall >= 0.5:
            return "more often"
        return "mostly" if share >= 0.5 else "often"
    return "never" if share == 0 else "rarely"


def _short_number(value: float) -> str:
    """Return a number with three significant digits."""
    return plain_number(float(f"{value:.2e}"))
