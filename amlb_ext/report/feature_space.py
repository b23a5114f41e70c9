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

#: Dimensions of a space; distinct points that t-SNE needs.
DIMENSIONS, FEWEST = 20, 30
# scikit-learn < 1.5 calls it n_iter
_ITERATIONS = "max_iter" if "max_iter" in TSNE().get_params() else "n_iter"


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
            No rows or no columns.
        """
        if not len(features) or not columns:
            raise DataError(f"a space needs rows and columns, got {features.shape}")
        self.numeric_ = [c.name for c in columns if c.is_numeric]
        self.texts_ = [c.name for c in columns if not c.is_numeric]
        x = self._numbers(features)
        gaps = np.isnan(x)
        self.known_ = [np.sort(v[~np.isnan(v)]) for v in x.T]
        self.gaps_ = gaps.mean(axis=0) >= 0.01
        self.encoder_ = OneHotEncoder(
            max_categories=20, handle_unknown="infrequent_if_exist", sparse_output=False
        )
        if self.texts_:
            self.encoder_.fit(self._texts(features))
        self.scale_ = np.ones(1)
        flat = self._flat(features)
        variance = flat.var(axis=0)
        # a rare category or missing value is no reason to throw a row far out
        scale = np.sqrt(np.maximum(variance, 0.25))
        n = len(self.numeric_)
        scale[:n] = np.where(variance[:n] > 1e-18, np.sqrt(variance[:n]), 1.0)
        start = n + int(self.gaps_.sum())
        for kept in self._widths():
            scale[start : start + kept] = np.sqrt(max(variance[start : start + kept].sum(), 0.25))
            start += kept
        self.scale_ = scale
        k = min(DIMENSIONS, *flat.shape)
        self.pca_ = None
        if len(flat) > 1 and variance.sum() > 1e-18:
            self.pca_ = PCA(k, random_state=0).fit(flat / scale)
        return self

    def transform(self, features: pd.DataFrame) -> np.ndarray:
        """Return rows as points ``(n, k)``; all at the origin when nothing varied at fit."""
        if self.pca_ is None:
            return np.zeros((len(features), 1))
        if not len(features):
            return np.zeros((0, self.pca_.n_components_))
        return np.asarray(self.pca_.transform(self._flat(features) / self.scale_))

    def _numbers(self, features: pd.DataFrame) -> np.ndarray:
        return features[self.numeric_].to_numpy(dtype=float, na_value=np.nan)

    def _texts(self, features: pd.DataFrame) -> np.ndarray:
        values = features[self.texts_].astype(object)
        return np.asarray(values.where(values.notna(), np.nan))

    def _flat(self, features: pd.DataFrame) -> np.ndarray:
        x = self._numbers(features)
        gaps = np.isnan(x)
        scores = [_normal_scores(v, known) for v, known in zip(x.T, self.known_, strict=True)]
        parts = [np.array(scores).reshape(x.shape[::-1]).T, gaps[:, self.gaps_].astype(float)]
        if self.texts_:
            parts.append(self.encoder_.transform(self._texts(features)))
        return np.hstack(parts)

    def _widths(self) -> list[int]:
        if not self.texts_:
            return []
        names = self.encoder_.get_feature_names_out([str(j) for j in range(len(self.texts_))])
        owner = np.array([int(name.split("_", 1)[0]) for name in names])
        return np.bincount(owner, minlength=len(self.texts_)).tolist()


def _normal_scores(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return normal scores of values among sorted ones, ties in the middle; 0 where missing."""
    # scikit-learn's QuantileTransformer takes values closer than 1e-7 for equal, at any scale
    if not len(known):
        return np.zeros(len(values))
    below, up_to = (np.searchsorted(known, values, side) for side in ("left", "right"))
    share = np.where(np.isnan(values), 0.5, (below + up_to) / (2 * len(known)))
    return np.asarray(norm.ppf(np.clip(share, 0.01, 0.99)))


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
    n = len(Z)
    kept = np.zeros(n, dtype=bool) if keep is None else np.asarray(keep, dtype=bool)
    kinds = np.zeros(n, dtype=int)
    if group is not None:
        kinds = np.unique(np.asarray(group), return_inverse=True)[1].reshape(-1)
    chosen = _thin(kept, kinds, most, rng)
    points = Z[chosen]
    with threadpool_limits(1):
        flat = _plane(points)
        if method == "PCA" or len(np.unique(points, axis=0)) < FEWEST:
            return flat, chosen, "PCA"
        # rows that coincide part, and a map of one dimension may use the second
        start = 1e-4 * (flat / flat[:, 0].std() + 0.01 * rng.normal(size=flat.shape))
        tsne = TSNE(
            perplexity=float(np.clip(len(points) / 10, 5, 30)),
            init=start.astype(np.float32),
            random_state=draw_int_seed(rng),
            **{_ITERATIONS: 500},
        )
        return np.asarray(tsne.fit_transform(points), dtype=float), chosen, "t-SNE"


def _plane(points: np.ndarray) -> np.ndarray:
    """Return the first two principal components, 0 where there are fewer."""
    flat = np.zeros((len(points), 2))
    if len(points) > 1 and np.ptp(points, axis=0).max(initial=0) > 0:
        k = min(2, *points.shape)
        flat[:, :k] = PCA(k, random_state=0).fit_transform(points)
    return flat


def _thin(kept: np.ndarray, kinds: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of at most ``most`` rows, ascending."""
    n = len(kept)
    if n <= most:
        return np.arange(n)
    first = np.flatnonzero(kept)
    room = max(2 * most // 3, most - int((~kept).sum()))
    if len(first) > room:
        first = rng.choice(first, room, replace=False)
    parts = [first]
    left = most - len(first)
    stock = [np.flatnonzero(~kept & (kinds == kind)) for kind in np.unique(kinds[~kept])]
    stock.sort(key=len)
    for i, rows in enumerate(stock):
        share = min(len(rows), left // (len(stock) - i))
        parts.append(rng.choice(rows, share, replace=False))
        left -= share
    return np.sort(np.concatenate(parts))
