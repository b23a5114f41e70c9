"""Rows as points, and points on a map.

Notation
--------
Z : (n, k) rows in a :class:`FeatureSpace`, in which a categorical weighs about as much as a number
xy : (m, 2) positions on the map of the m rows chosen for it

Distances on a t-SNE map (van der Maaten & Hinton 2008) mean little beyond the nearest rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import draw_int_seed
from amlb_ext.core.task import Column

# Lines are dense here where one array expression is one step of the method.

#: Dimensions of a space.
DIMENSIONS = 20
#: Distinct points that t-SNE needs.
FEWEST = 30
#: Variances below this are rounding.
_NO_VARIANCE = 1e-18
#: Indicators and categories of less variance are scaled as if they had this much.
_SMALLEST_VARIANCE = 0.25


class FeatureSpace:
    """Real rows as points: normal scores of numbers, weighted categories, then PCA.

    Numbers become normal scores among the rows of the fit, drawn in at their 1 % and 99 %
    quantiles: a long tail of the data is then no group of its own. Missing ones go to the middle,
    beside an indicator. Each column has variance 1 at most, a categorical over all its categories.

    Examples
    --------
    >>> x = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": pd.Categorical(["u", "v", "u"])})
    >>> columns = [Column("a", "numeric"), Column("b", "categorical", ("u", "v"))]
    >>> FeatureSpace().fit(x, columns).transform(x).shape
    (3, 3)
    """

    def fit(self, features: pd.DataFrame, columns: Sequence[Column]) -> FeatureSpace:
        """Learn the space from rows ``(n, d)`` in canonical form.

        Raises
        ------
        DataError
            There are no rows or no columns.
        """
        if not len(features) or not columns:
            raise DataError(f"a space needs rows and columns, got {features.shape}")
        self.numeric_names_: list[str] = []
        self.category_names_: list[str] = []
        for column in columns:
            names = self.numeric_names_ if column.is_numeric else self.category_names_
            names.append(column.name)
        numbers = self._select_numbers(features)
        is_missing = np.isnan(numbers)
        self.sorted_values_ = []
        for values, without_value in zip(numbers.T, is_missing.T, strict=True):
            known_values = values[~without_value]
            self.sorted_values_.append(np.sort(known_values))
        # One indicator per column that misses more than a few values.
        self.has_indicator_ = is_missing.mean(axis=0) >= 0.01
        self.encoder_ = OneHotEncoder(
            # Made rows may have categories that no real row has: they count as rare ones.
            max_categories=20,
            handle_unknown="infrequent_if_exist",
            sparse_output=False,
        )
        if self.category_names_:
            self.encoder_.fit(self._select_categories(features))

        wide = self._widen_rows(features)
        variance = wide.var(axis=0)
        self.scale_ = self._column_scales(variance)
        # Rows that are all alike have no principal component.
        self.pca_ = None
        if len(wide) > 1 and variance.sum() > _NO_VARIANCE:
            n_components = min(DIMENSIONS, *wide.shape)
            self.pca_ = PCA(n_components, random_state=0)
            self.pca_.fit(wide / self.scale_)
        return self

    def _column_scales(self, variance: np.ndarray) -> np.ndarray:
        """Return the divisor of each wide column, so that no feature outweighs another."""
        # A rare category or missing value is no reason to throw a row far out.
        scale = np.sqrt(np.maximum(variance, _SMALLEST_VARIANCE))
        n_numbers = len(self.numeric_names_)
        number_variance = variance[:n_numbers]
        varies = number_variance > _NO_VARIANCE
        scale[:n_numbers] = np.where(varies, np.sqrt(number_variance), 1.0)
        # The blocks of the wide table: numbers, indicators, then categories column by column.
        n_indicators = int(self.has_indicator_.sum())
        start = n_numbers + n_indicators
        for width in self._one_hot_widths():
            # The categories of one column share a scale: together they weigh like a number.
            block = slice(start, start + width)
            total = max(variance[block].sum(), _SMALLEST_VARIANCE)
            scale[block] = np.sqrt(total)
            start += width
        return scale

    def transform(self, features: pd.DataFrame) -> np.ndarray:
        """Return rows as points ``(n, k)``; all at the origin when nothing varied at fit."""
        if self.pca_ is None:
            return np.zeros((len(features), 1))
        if not len(features):
            return np.zeros((0, self.pca_.n_components_))
        wide = self._widen_rows(features)
        return np.asarray(self.pca_.transform(wide / self.scale_))

    def _select_numbers(self, features: pd.DataFrame) -> np.ndarray:
        return features[self.numeric_names_].to_numpy(dtype=float, na_value=np.nan)

    def _select_categories(self, features: pd.DataFrame) -> np.ndarray:
        # Missing ones become NaN, which the encoder takes for a category of its own.
        values = features[self.category_names_].astype(object)
        return np.asarray(values.where(values.notna(), np.nan))

    def _widen_rows(self, features: pd.DataFrame) -> np.ndarray:
        """Return normal scores, indicators of missing values and one-hot categories."""
        numbers = self._select_numbers(features)
        scores = np.empty_like(numbers)
        for position, sorted_values in enumerate(self.sorted_values_):
            values = numbers[:, position]
            scores[:, position] = _normal_scores(values, sorted_values)
        is_missing = np.isnan(numbers)
        indicators = is_missing[:, self.has_indicator_].astype(float)
        blocks = [scores, indicators]
        if self.category_names_:
            categories = self._select_categories(features)
            blocks.append(self.encoder_.transform(categories))
        return np.hstack(blocks)

    def _one_hot_widths(self) -> list[int]:
        """Return how many one-hot columns each categorical has."""
        if not self.category_names_:
            return []
        n_columns = len(self.category_names_)
        positions = [str(position) for position in range(n_columns)]
        # Rare categories share one column, so only the encoder knows: names begin "POSITION_".
        widths = [0] * n_columns
        for name in self.encoder_.get_feature_names_out(positions):
            position, _, _ = name.partition("_")
            widths[int(position)] += 1
        return widths


def _normal_scores(values: np.ndarray, sorted_values: np.ndarray) -> np.ndarray:
    """Return normal scores of values among sorted values, mid-ranks for ties; 0 where missing."""
    # NOTE[OWN] scikit-learn's QuantileTransformer takes values closer than 1e-7 for equal, at
    # any scale of the column.
    if not len(sorted_values):
        return np.zeros(len(values))
    n_below = np.searchsorted(sorted_values, values, side="left")
    n_up_to = np.searchsorted(sorted_values, values, side="right")
    middle = (n_below + n_up_to) / (2 * len(sorted_values))
    quantile = np.where(np.isnan(values), 0.5, middle)
    # Drawn in, or the smallest and the largest value would lie at infinity.
    drawn_in = np.clip(quantile, 0.01, 0.99)
    return np.asarray(norm.ppf(drawn_in))


def project_rows(
    Z: np.ndarray,
    rng: np.random.Generator,
    *,
    keep: np.ndarray | None = None,
    group: np.ndarray | None = None,
    method: Literal["auto", "PCA", "t-SNE"] = "auto",
    most: int = 800,
) -> tuple[np.ndarray, np.ndarray, str]:
    """Place rows on a map.

    Parameters
    ----------
    Z : ndarray of shape (n, k)
    rng : Generator
    keep : ndarray of shape (n,), bool, optional
        Rows to be left out last; they take at most two thirds where others are left out.
    group : ndarray of shape (n,), optional
        Kinds of the other rows; each gets the same number of places, as far as it has rows.
    method : {'auto', 'PCA', 't-SNE'}
        ``auto`` is t-SNE; it falls back to PCA for fewer than :data:`FEWEST` distinct points.
    most : int

    Returns
    -------
    xy : ndarray of shape (m, 2)
    chosen : ndarray of shape (m,), int
        Positions of the rows in Z, ascending.
    method : str
        ``PCA`` or ``t-SNE``.

    Examples
    --------
    >>> Z = np.random.default_rng(0).normal(size=(20, 3))
    >>> xy, chosen, method = project_rows(Z, np.random.default_rng(0))
    >>> xy.shape, len(chosen), method
    ((20, 2), 20, 'PCA')
    """
    n_rows = len(Z)
    is_kept = np.zeros(n_rows, dtype=bool)
    if keep is not None:
        is_kept = np.asarray(keep, dtype=bool)
    kinds = np.zeros(n_rows, dtype=int)
    if group is not None:
        _, kinds = np.unique(group, return_inverse=True)
    chosen = _choose_rows(is_kept, kinds, most=most, rng=rng)
    points = Z[chosen]
    # Tasks have a process each: threads would only fight for its core.
    with threadpool_limits(1):
        plane = _principal_plane(points)
        n_distinct = len(np.unique(points, axis=0))
        if method == "PCA" or n_distinct < FEWEST:
            return plane, chosen, "PCA"
        # Noise parts rows that coincide, and lets a map of one dimension use the second.
        noise = 0.01 * rng.normal(size=plane.shape)
        spread = plane[:, 0].std()
        # t-SNE wants to begin with all points close together.
        start = 1e-4 * (plane / spread + noise)
        # Started from the principal plane: two reports of one suite show the same map.
        perplexity = float(np.clip(len(points) / 10, 5, 30))
        tsne = TSNE(
            perplexity=perplexity,
            init=start.astype(np.float32),
            random_state=draw_int_seed(rng),
            max_iter=500,
        )
        xy = np.asarray(tsne.fit_transform(points), dtype=float)
        return xy, chosen, "t-SNE"


def _principal_plane(points: np.ndarray) -> np.ndarray:
    """Return the first two principal components, 0 where there are fewer."""
    plane = np.zeros((len(points), 2))
    # PCA warns of points that all coincide, and their components mean nothing.
    if len(points) < 2 or not np.ptp(points, axis=0).any():
        return plane
    n_components = min(2, *points.shape)
    pca = PCA(n_components, random_state=0)
    plane[:, :n_components] = pca.fit_transform(points)
    return plane


def _choose_rows(
    is_kept: np.ndarray, kinds: np.ndarray, *, most: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the positions of at most ``most`` rows, ascending."""
    n_rows = len(is_kept)
    if n_rows <= most:
        return np.arange(n_rows)
    kept_rows = np.flatnonzero(is_kept)
    n_others = n_rows - len(kept_rows)
    # At most two thirds are kept rows, unless the others do not fill the rest.
    places_of_kept = max(2 * most // 3, most - n_others)
    if len(kept_rows) > places_of_kept:
        kept_rows = rng.choice(kept_rows, places_of_kept, replace=False)

    rows_by_kind = []
    for kind in np.unique(kinds[~is_kept]):
        is_kind = ~is_kept & (kinds == kind)
        rows_by_kind.append(np.flatnonzero(is_kind))
    # The smallest kind first: places that it does not fill go to the larger ones.
    rows_by_kind.sort(key=len)
    chosen = [kept_rows]
    places = most - len(kept_rows)
    for position, rows in enumerate(rows_by_kind):
        kinds_left = len(rows_by_kind) - position
        share = min(len(rows), places // kinds_left)
        sample = rng.choice(rows, share, replace=False)
        chosen.append(sample)
        places -= share
    return np.sort(np.concatenate(chosen))
