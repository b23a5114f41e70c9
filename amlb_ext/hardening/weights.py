"""Region weights: where failures are likely, by features alone.

``w(x) = P(bad | x)``, a calibrated random forest on the training rows' out-of-fold bad flags. It
never sees F's output on the row it weighs, so weighted real rows keep unbiased labels. The other
kind of weight, reducible hardness ``v(x) = (T(x) - F(x))^2``, is the rule ``reducible`` of
:mod:`amlb_ext.hardening.hardness`.
"""

from __future__ import annotations

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier

from amlb_ext.hardening.baseline import fill_missing

#: Keeps every row of the test fold in play.
SMALLEST = 1e-4


def region_weights(train: np.ndarray, bad: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return ``P(bad | x)`` for each test row.

    The forest's probabilities are calibrated by a sigmoid on its own out-of-fold output (Platt,
    1999), which few bad rows suffice for.

    Parameters
    ----------
    train, test : ndarray of shape (n, d), (m, d)
        Encoded rows.
    bad : ndarray of shape (n,), bool
        Out-of-fold bad flags of the training rows.
    test : ndarray
    seed : int

    Returns
    -------
    ndarray of shape (m,)
        All equal when no or every training row is bad: there is no region to weigh.
    """
    if bad.all() or not bad.any():
        return np.ones(len(test))
    leaf = max(2, min(15, int(bad.sum()) // 2))
    forest = RandomForestClassifier(
        100, min_samples_leaf=leaf, max_features="sqrt", random_state=seed, n_jobs=1
    )
    parts = min(3, int(bad.sum()), int((~bad).sum()))
    if parts > 1:
        forest = CalibratedClassifierCV(forest, method="sigmoid", cv=parts, ensemble=False)
    forest.fit(fill_missing(train), bad)
    return forest.predict_proba(fill_missing(test))[:, 1] + SMALLEST


def effective_size(weights: np.ndarray) -> float:
    """Return Kish's effective sample size ``(sum w)^2 / sum w^2``.

    Examples
    --------
    >>> effective_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def draw_region(
    weights: np.ndarray, rng: np.random.Generator, smallest: int = 30
) -> tuple[np.ndarray, bool]:
    """Draw test rows in proportion to their weights.

    Systematic sampling without replacement of ``floor(sum w / max w)`` rows has inclusion
    probabilities exactly proportional to the weights (Madow, 1949, Ann. Math. Stat. 20).
    Where that gives fewer than ``smallest`` rows, they are drawn with replacement instead.

    Parameters
    ----------
    weights : ndarray of shape (n,)
    rng : Generator
    smallest : int
        Fewest rows worth a sample without replacement (or n, when smaller).

    Returns
    -------
    rows : ndarray of int
        Positions, ascending.
    replaced : bool
        Whether rows may repeat.
    """
    n = len(weights)
    size = int(np.floor(weights.sum() / weights.max() + 1e-9))
    if size < min(smallest, n):
        rows = rng.choice(n, size=min(smallest, n), replace=True, p=weights / weights.sum())
        return np.sort(rows), True
    order = rng.permutation(n)
    steps = np.cumsum(weights[order]) * (size / weights.sum())
    picks = np.searchsorted(steps, rng.random() + np.arange(size), side="left")
    return np.sort(order[np.minimum(picks, n - 1)]), False
