"""How well two rankings of the same candidates agree.

References
----------
Kendall (1945), Biometrika 33, 239-251 (tau-b, which corrects for ties).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import kendalltau

from amlb_ext.core.errors import DataError


@dataclass(frozen=True)
class Agreement:
    """Two rankings set against each other.

    Attributes
    ----------
    tau : float
        Kendall's tau-b; 0 where a side ranks nothing.
    a, b : Series
        Mean loss per candidate on either side.
    best_a, best_b : str
        The candidate with the smallest mean loss on either side; the first of equals.
    """

    tau: float
    a: pd.Series
    b: pd.Series
    best_a: str
    best_b: str


def kendall_tau(a: np.ndarray, b: np.ndarray) -> float:
    """Return Kendall's tau-b, with ties, of two scores of the same candidates.

    ``(P - Q) / sqrt((P + Q + T_a) (P + Q + T_b))`` with P concordant and Q discordant pairs and
    ``T_a`` (``T_b``) the pairs tied in a (b) only.

    Returns
    -------
    float
        0 where tau does not exist: fewer than two candidates, or all tied on one side. Such a
        side carries no ranking, so it agrees with none.

    Raises
    ------
    DataError
        When lengths differ or a score is NaN.

    Examples
    --------
    >>> round(kendall_tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])), 4)  # (5 - 1) / 6
    0.6667
    >>> kendall_tau(np.array([1, 2, 3]), np.array([7, 7, 7]))
    0.0
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise DataError(
            f"two rankings have shapes {x.shape} and {y.shape}",
            "score the same candidates, in the same order, on both sides",
        )
    if np.isnan(x).any() or np.isnan(y).any():
        raise DataError("a candidate has no score", "leave it out on both sides")
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    tau = float(kendalltau(x, y).statistic)
    return 0.0 if np.isnan(tau) else tau


def rank_agreement(
    losses_a: pd.DataFrame | np.ndarray,
    losses_b: pd.DataFrame | np.ndarray,
    weights_a: np.ndarray | None = None,
    weights_b: np.ndarray | None = None,
) -> Agreement:
    """Rank candidates by mean loss on two sets of rows and compare the rankings.

    Parameters
    ----------
    losses_a, losses_b : DataFrame or ndarray of shape (rows, candidates)
        Losses per row; the two may have different rows. DataFrames are aligned by column.
    weights_a, weights_b : ndarray of shape (rows,), optional
        For weighted means.

    Returns
    -------
    Agreement

    Raises
    ------
    DataError
        When the candidates differ or a set of rows is empty.

    Examples
    --------
    >>> few = pd.DataFrame({"tree": [0.1, 0.3], "line": [0.4, 0.4]})
    >>> all_rows = pd.DataFrame({"line": [0.3, 0.5, 0.5], "tree": [0.2, 0.2, 0.1]})
    >>> rank_agreement(few, all_rows).tau
    1.0
    """
    a, b = _means(losses_a, weights_a), _means(losses_b, weights_b)
    if set(a.index) != set(b.index):
        raise DataError(
            f"candidates differ: {sorted(map(str, set(a.index) ^ set(b.index)))}",
            "score the same candidates on both sets of rows",
        )
    b = b.loc[a.index]
    tau = kendall_tau(a.to_numpy(), b.to_numpy())
    return Agreement(tau, a, b, str(a.idxmin()), str(b.idxmin()))


def mean_z2(synthetic: np.ndarray, real: np.ndarray, se_real: np.ndarray) -> float:
    r"""Return the mean over candidates of the squared standardised gap.

    .. math:: \frac{1}{m} \sum_g \left( \frac{\delta^{syn}_g - \delta^{real}_g}{se_g} \right)^2

    About 1 where synthetic rows say what other real rows would say, given that the sampling
    error of the real ones dominates; the certificate asks for at most 1.

    Parameters
    ----------
    synthetic, real : ndarray of shape (m,)
        Contrast of each candidate with F.
    se_real : ndarray of shape (m,)
        Standard error of ``real``.

    Returns
    -------
    float
        A candidate with standard error 0 counts 0 where both sides are equal, else infinity.
        NaN when any number is.

    Examples
    --------
    >>> mean_z2(np.array([0.1, 0.4]), np.array([0.2, 0.4]), np.array([0.1, 0.1]))
    0.5
    """
    gap = np.asarray(synthetic, dtype=float) - np.asarray(real, dtype=float)
    se = np.asarray(se_real, dtype=float)
    if gap.shape != se.shape or gap.size == 0:
        raise DataError(
            f"contrasts have shape {gap.shape}, standard errors {se.shape}",
            "give one of each per candidate, and at least one candidate",
        )
    z = np.where(gap == 0, 0.0, np.inf * np.ones_like(gap))
    np.divide(gap, se, out=z, where=se != 0)
    z[np.isnan(gap) | np.isnan(se)] = np.nan
    return float((z**2).mean())


def _means(losses: pd.DataFrame | np.ndarray, weights: np.ndarray | None) -> pd.Series:
    frame = losses if isinstance(losses, pd.DataFrame) else pd.DataFrame(np.asarray(losses))
    w = np.ones(len(frame)) if weights is None else np.asarray(weights, dtype=float)
    if len(w) != len(frame) or not w.sum() > 0:
        raise DataError(
            f"{len(frame)} rows with {len(w)} weights that sum to {w.sum():g}",
            "give at least one row, and one weight per row with a positive sum",
        )
    return pd.Series(w @ frame.to_numpy(dtype=float) / w.sum(), index=frame.columns)
