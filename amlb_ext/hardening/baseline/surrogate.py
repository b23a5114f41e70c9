"""A forest that stands in for F while rows are searched; what it proposes, F must confirm."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.baseline.estimator import Baseline, fill_missing
from amlb_ext.hardening.split import CvSplits

#: Trees of the forest.
TREES = 100


class SurrogateBaseline(Baseline):
    """What F would say, by extremely randomised trees fitted to its answers.

    Their regression is of F's very output: of two classes the probability of the second.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Encoded rows that F was asked about.
    f : ndarray of shape (n,) or (n, C)
        Its answers.
    seed : int

    Examples
    --------
    >>> Z = np.random.default_rng(0).random((500, 2))
    >>> surrogate = SurrogateBaseline(Z, Z[:, 0] + Z[:, 1], seed=0)
    >>> round(float(surrogate.predict(np.array([[0.5, 0.5]]))[0]), 1)
    1.0
    """

    def __init__(self, Z: np.ndarray, f: np.ndarray, seed: int) -> None:
        self.n_classes = f.shape[1] if f.ndim == 2 else 0
        # of two classes one number says all, and forests of one number are asked faster
        answers = f[:, 1] if self.n_classes == 2 else f
        forest = ExtraTreesRegressor(TREES, max_features=None, random_state=seed)
        self.forest_ = forest.fit(fill_missing(Z), answers)

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> SurrogateBaseline:
        """Nothing to fit: F's answers are all that it learns from."""
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return what F is expected to say."""
        f = forests.predict(self.forest_, fill_missing(Z))
        if self.n_classes == 2:
            return np.column_stack([1 - f, f])
        return f

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Predict the rows; there is nothing to fit again."""
        return self.predict(Z), []
