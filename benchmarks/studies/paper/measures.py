"""The paper's measures (section 5.2, Table 1).

Notation
--------
y : (n,) scaled targets or class codes;  f : (n,) predictions or (n, C) class probabilities
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import wasserstein_distance
from sklearn.metrics import f1_score, roc_auc_score

from amlb_ext.core.row_losses import symmetric_percentage_error

# Dense lines below: each is one of the paper's formulas.


def mean_smape(y: np.ndarray, f: np.ndarray) -> float:
    """Return the symmetric mean absolute percentage error, between 0 and 2 (section 5.2).

    Rows with ``|y| + |f| = 0`` count 0.

    Examples
    --------
    >>> mean_smape(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    0.5
    """
    return float(np.mean(symmetric_percentage_error(y, f)))


def score_predictions(y: np.ndarray, f: np.ndarray) -> dict[str, float]:
    """Return MSE, SMAPE, residual variance and W1 of targets; or F1 and ROC AUC.

    The positive class is code 1; it is predicted from probability 1/2 on. AUC is NaN where all
    rows have one label. ``w_target`` is the distance between targets and predictions: the only
    reading under which the row of the bad points themselves is not 0 in Table 1.

    Examples
    --------
    >>> scores = score_predictions(np.array([0.0, 1.0]), np.array([0.5, 1.0]))
    >>> scores["mse"], scores["w_target"]
    (0.125, 0.25)
    """
    if f.ndim == 1:
        residual = y - f
        return {
            "mse": float(np.mean(residual**2)),
            "smape": mean_smape(y, f),
            "residual_variance": float(np.var(residual)),
            "w_target": float(wasserstein_distance(y, f)),
        }
    is_positive = (y == 1).astype(int)
    n_positive = is_positive.sum()
    p = f[:, 1]
    # bad rows may all be of one label, for which no ranking exists
    auc = math.nan
    if 0 < n_positive < len(is_positive):
        auc = float(roc_auc_score(is_positive, p))
    f1 = float(f1_score(is_positive, p >= 0.5, zero_division=0.0))
    return {"f1": f1, "auc": auc}


def wasserstein_distances(A: np.ndarray, B: np.ndarray) -> dict[str, float]:
    """Return the mean over columns of the Wasserstein distance between encoded rows.

    Categories count by their ordinal codes (section 4.3.1); missing numbers are left out.

    Examples
    --------
    >>> wasserstein_distances(np.array([[0.0, 1.0]]), np.array([[1.0, 1.0]]))
    {'w_features': 0.5}
    """
    distances = []
    for a, b in zip(A.T, B.T, strict=True):
        a = a[~np.isnan(a)]
        b = b[~np.isnan(b)]
        # a column without a number on one side has no distance
        if len(a) and len(b):
            distances.append(wasserstein_distance(a, b))
    return {"w_features": float(np.mean(distances)) if distances else math.nan}
