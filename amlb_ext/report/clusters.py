"""Groups of failures, and how each differs from all rows.

The points come from ``feature_space``, which has the map of them as well.

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
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from amlb_ext.core.display import shorten_text
from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.core.task import Column
from amlb_ext.report.conditions import WIDTH, plain_number, quote_category

# Lines are dense here where one array expression is one step of the method.

#: A mean silhouette below this makes one group.
SILHOUETTE = 0.15
#: Fewer rows than this make one group.
MIN_ROWS = 20
#: Structureless sets that real groups must surpass: by chance they do in one of 20 cases.
REFERENCES = 19
#: Rows of each structureless set at most.
_REFERENCE_ROWS = 300
#: Rows whose silhouettes are averaged.
_SILHOUETTE_ROWS = 2000
#: A departure worth words, in standard deviations.
DEPARTURE = 0.5
#: Features named per group.
NAMED = 3
#: The standard error of a median, in standard deviations of the rows, times sqrt(n).
_MEDIAN_ERROR = 1.25
#: Shares of missing values that differ by this are told instead of the values.
_MISSING_GAP = 0.3
#: A number with so few distinct values is told by its mean, for its median hardly moves.
_FEW_VALUES = 10
#: Interquartile range of a normal distribution, in standard deviations.
_NORMAL_IQR = 1.349
#: Of the variance of a share: a rare category would stand out with its own.
_SMALLEST_VARIANCE = 0.09


def find_clusters(Z_bad: np.ndarray, rng_seed: int, most: int = 6) -> np.ndarray:
    """Return the group of each real bad row; group 0 is the largest.

    The module's docstring says how many groups there are.

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
    # Tasks have a process each: threads would only fight for its core.
    with threadpool_limits(1):
        silhouette, labels = _best_partition(Z_bad, most, rng, n_starts=10)
        if silhouette < SILHOUETTE:
            return one_group
        # One structureless set that does as well is enough: the groups are no more than chance.
        n_reference = min(n_rows, _REFERENCE_ROWS)
        centred = Z_bad - Z_bad.mean(axis=0)
        for _ in range(REFERENCES):
            # Random sums of the rows are Gaussian with the covariance of the rows.
            sums = rng.normal(size=(n_reference, n_rows))
            structureless = sums @ centred / np.sqrt(n_rows)
            by_chance, _ = _best_partition(structureless, most, rng, n_starts=3)
            if by_chance >= silhouette:
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
    best_silhouette = -1.0
    best_labels = np.zeros(n_rows, dtype=int)
    smallest_group = max(3, 0.05 * n_rows)
    n_distinct = len(np.unique(Z, axis=0))
    # Groups have five rows on average at least.
    largest_k = min(most, n_rows // 5, n_distinct - 1)
    for k in range(2, largest_k + 1):
        kmeans = KMeans(k, n_init=n_starts, random_state=draw_int_seed(rng))
        labels = kmeans.fit_predict(Z)
        # A handful of rows far out is no group of failures.
        if np.bincount(labels, minlength=k).min() < smallest_group:
            continue
        # A silhouette takes all distances: beyond some rows a sample has to do.
        sample = np.arange(n_rows)
        if n_rows > _SILHOUETTE_ROWS:
            sample = rng.choice(n_rows, _SILHOUETTE_ROWS, replace=False)
        # The sample may have missed a small group.
        if len(np.unique(labels[sample])) < k:
            continue
        silhouette = float(silhouette_score(Z[sample], labels[sample]))
        if silhouette > best_silhouette:
            best_silhouette = silhouette
            best_labels = labels
    return best_silhouette, best_labels


def assign_groups(
    parent: np.ndarray, source: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Return the group of each row, which is that of the bad row it was made from; -1 if unknown.

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
    groups = [group_of_source.get(row, -1) for row in parent.tolist()]
    return np.array(groups, dtype=int)


def describe_clusters(
    features_bad: pd.DataFrame,
    columns: Sequence[Column],
    labels: np.ndarray,
    features_all: pd.DataFrame,
) -> list[str]:
    """Return a phrase per group: where its rows depart most from all real rows.

    A number departs by its median in robust standard deviations (IQR / 1.349) of all rows, by
    its mean where it has few values; a category by its share. Only departures of at least
    :data:`DEPARTURE` that chance among so many features hardly explains are named.

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
    n_groups = int(labels.max(initial=-1)) + 1
    # Two-sided at 5 %, Bonferroni over the features.
    n_features = max(1, len(columns))
    critical = float(norm.isf(0.025 / n_features))
    departures: list[list[_Departure]] = [[] for _ in range(n_groups)]
    for column in columns:
        bad_values = features_bad[column.name]
        all_values = features_all[column.name]
        name = shorten_text(column.name, WIDTH)
        describe = _category_departure
        # A number with two values is told like a category: "mostly 1" says more than a mean.
        if column.is_numeric and all_values.nunique() > 2:
            describe = _number_departure
        for group in range(n_groups):
            group_values = bad_values[labels == group]
            departure = describe(name, group_values, all_values)
            if departure.effect >= DEPARTURE:
                departures[group].append(departure)
    return [_group_phrase(of_group, critical) for of_group in departures]


@dataclass(frozen=True, kw_only=True)
class _Departure:
    """How one feature of a group differs from that of all rows.

    Attributes
    ----------
    effect : float
        Size in standard deviations of all rows; never negative.
    n_rows : int
        Rows of the group that have a value.
    text : str
    """

    effect: float
    n_rows: int
    text: str

    def is_clear(self, critical: float) -> bool:
        """Whether chance hardly explains it; ``critical`` is the normal quantile."""
        largest_by_chance = _MEDIAN_ERROR * critical / np.sqrt(self.n_rows)
        return self.effect >= largest_by_chance


def _group_phrase(departures: list[_Departure], critical: float) -> str:
    """Return the largest clear departures of one group, or the nearest to one."""
    largest_first = sorted(departures, key=lambda departure: -departure.effect)
    clear = []
    for departure in largest_first:
        if departure.is_clear(critical):
            clear.append(departure.text)
    if clear:
        return "; ".join(clear[:NAMED])
    phrase = "no feature departs clearly from all rows"
    if largest_first:
        phrase += f"; nearest to it: {largest_first[0].text}"
    return phrase


def _number_departure(name: str, group: pd.Series, everyone: pd.Series) -> _Departure:
    """Return the departure of a number's median, or of its mean where it has few values."""
    group_values = group.dropna()
    all_values = everyone.dropna()
    missing_gap = abs(group.isna().mean() - everyone.isna().mean())
    if not len(group_values) or missing_gap >= _MISSING_GAP:
        # Whether there is a value says more than the value.
        return _category_departure(name, _presence(group), _presence(everyone))
    # Few values: the median stays the same while most of them move.
    if all_values.nunique() <= _FEW_VALUES:
        statistic = "mean"
        middle = float(group_values.mean())
        overall = float(all_values.mean())
        spread = float(all_values.std())
    else:
        statistic = "median"
        middle = float(group_values.median())
        overall = float(all_values.median())
        spread = _robust_spread(all_values)
    if not spread > 0:
        return _Departure(effect=0.0, n_rows=1, text="")
    level = "high" if middle > overall else "low"
    in_group = f"{statistic} {_short_number(middle)}"
    in_all_rows = f"all rows {_short_number(overall)}"
    return _Departure(
        effect=abs(middle - overall) / spread,
        n_rows=len(group_values),
        text=f"{level} {name} ({in_group}, {in_all_rows})",
    )


def _robust_spread(values: pd.Series) -> float:
    """Return a standard deviation that a long tail does not stretch."""
    lower, upper = values.quantile([0.25, 0.75])
    quartile_range = float(upper - lower)
    # Half of the values or more are the same: the quartiles see no spread.
    if not quartile_range > 0:
        return float(values.std())
    return quartile_range / _NORMAL_IQR


def _presence(values: pd.Series) -> pd.Series:
    """Return ``known`` for every value that is not missing."""
    return values.where(values.isna(), "known").astype(object)


def _category_departure(name: str, group: pd.Series, everyone: pd.Series) -> _Departure:
    """Return the departure of the category whose share departs most."""
    all_shares = _category_shares(everyone)
    group_shares = _category_shares(group).reindex(all_shares.index, fill_value=0.0)
    variance = np.maximum(all_shares * (1 - all_shares), _SMALLEST_VARIANCE)
    gaps = (group_shares - all_shares) / np.sqrt(variance)
    # What is frequent in the group says more than what is rare.
    tell_frequent = gaps.max() >= 0.6 * -gaps.min()
    position = gaps.argmax() if tell_frequent else gaps.argmin()
    share = float(group_shares.iloc[position])
    overall = float(all_shares.iloc[position])
    category = _shown_category(all_shares.index[position])
    how_often = _frequency_word(share, overall)
    shares = f"{share:.0%}, all rows {overall:.0%}"
    return _Departure(
        effect=abs(float(gaps.iloc[position])),
        n_rows=len(group),
        text=f"{name} {how_often} {category} ({shares})",
    )


def _shown_category(category: Any) -> str:
    if pd.isna(category):
        return "missing"
    if isinstance(category, str):
        return quote_category(category)
    # A number of two values, which is told like a category.
    return plain_number(float(category))


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
