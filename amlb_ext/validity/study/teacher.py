"""The teacher's distribution of the target given the features.

Notation
--------
q : outcomes per row: the classes, or quantiles of the residual
s(x) : expected |y - T(x)|, by boosting on out-of-fold residuals (regression)
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from amlb_ext.hardening.augment import FoldModels
from amlb_ext.hardening.baseline import fill_missing

#: Quantiles of the standardised residual.
QUANTILES = 41
#: Least probability of a class: no outcome is impossible.
FLOOR = 0.005


class Teacher:
    """The fold's oracle T with a spread: which targets a row may have, and how probable.

    Classification: the oracle's class probabilities. Regression: ``T(x) + s(x) e`` with e the
    quantiles of the out-of-fold residuals over their expected size.

    Parameters
    ----------
    models : FoldModels
    y : ndarray of shape (n,)
        Targets of the training rows.
    """

    def __init__(self, models: FoldModels, y: np.ndarray) -> None:
        self.n_classes = models.target.n_classes
        if self.n_classes:
            return
        gap = y - models.oracle.out_of_fold_
        size = HistGradientBoostingRegressor(
            max_iter=40, max_leaf_nodes=8, min_samples_leaf=40, early_stopping=False
        )
        self.size_ = size.fit(fill_missing(models.Z), np.abs(gap))
        self.least_ = max(1e-6, 0.1 * float(np.abs(gap).mean()))
        self.low_, self.high_ = float(y.min()), float(y.max())
        steps = (np.arange(QUANTILES) + 0.5) / QUANTILES
        self.residuals_ = np.quantile(gap / self.spread(models.Z), steps)

    def spread(self, Z: np.ndarray) -> np.ndarray:
        """Return s(x), regression only."""
        return np.maximum(self.size_.predict(fill_missing(Z)), self.least_)

    def outcomes(self, Z: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return possible targets and their probabilities, ``(n, q)`` each.

        Parameters
        ----------
        Z : ndarray of shape (n, d)
        t : ndarray of shape (n,) or (n, C)
            The oracle's predictions there.
        """
        if self.n_classes:
            p = np.clip(t, FLOOR, None)
            codes = np.broadcast_to(np.arange(self.n_classes), p.shape)
            return codes, p / p.sum(axis=1, keepdims=True)
        y = t[:, None] + self.spread(Z)[:, None] * self.residuals_
        y = np.clip(y, self.low_, self.high_)
        return y, np.full(y.shape, 1 / QUANTILES)
