"""Rankings of candidates: how well two agree, and a score to rank by where bad rows are few.

Notation
--------
l_G, l_F : (n,) losses of a candidate and of F on real, labelled rows
tau : (n,) the contrast l_G - l_F that a teacher T, fitted on other rows, expects

References
----------
Kendall (1945), Biometrika 33, 239-251 (tau-b, which corrects for ties).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau

from amlb_ext.core.errors import DataError

# Formulas stand as in the docstrings, one a line, so this module is denser than others.


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
    x = np.asarray(a, dtype=float)
    y = np.asarray(b, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise DataError(
            f"two rankings have shapes {x.shape} and {y.shape}",
            "score the same candidates, in the same order, on both sides",
        )
    if np.isnan(x).any() or np.isnan(y).any():
        raise DataError("a candidate has no score", "leave it out on both sides")
    # scipy returns NaN where a side ranks nothing
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    tau = float(kendalltau(x, y).statistic)
    # two infinite scores have a range of NaN, which the question above lets pass
    return 0.0 if np.isnan(tau) else tau


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
    # without any standard error the sides are equal or infinitely far apart
    z = np.where(gap == 0, 0.0, np.inf)
    np.divide(gap, se, out=z, where=se != 0)
    # a gap of NaN is not 0, so without this it would pass for infinite where se is 0
    is_missing = np.isnan(gap) | np.isnan(se)
    z[is_missing] = np.nan
    return float((z**2).mean())


@dataclass(frozen=True, kw_only=True)
class RankingScore:
    """A number to rank candidates by. It has no interval, because none would cover.

    Attributes
    ----------
    score : float
        Lower is better.
    realised : float
        Mean realised contrast on the bad rows.
    expected : float
        The teacher's expected contrast.
    n_bad, n_rows : int
        Bad rows, and real rows the teacher was asked about.
    method, assumes : str
    """

    score: float
    realised: float
    expected: float
    n_bad: int
    n_rows: int
    method: str = "half realised contrast on bad rows, half teacher's expected contrast"
    assumes: str = "a score for ranking, not an estimate: it carries the teacher's bias"


def expected_contrast(
    loss_g: np.ndarray,
    loss_f: np.ndarray,
    probabilities: np.ndarray,
    bad: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return a teacher's ``E[b d | x]`` and ``E[b | x]`` over its outcomes y_1..y_m.

    .. math:: \tau_i = \sum_j p_{ij} b_{ij} (l_G(x_i, y_j) - l_F(x_i, y_j)), \quad
              \beta_i = \sum_j p_{ij} b_{ij}

    Parameters
    ----------
    loss_g, loss_f : ndarray of shape (N, m)
        Loss if the outcome were ``y_j``.
    probabilities : ndarray of shape (N, m)
        The teacher's probability of each outcome; rows sum to 1.
    bad : ndarray of shape (N, m), bool, optional
        Whether F would be bad; every outcome counts when omitted.

    Returns
    -------
    contrast : ndarray of shape (N,)
    mass : ndarray of shape (N,)
        All ones without ``bad``.

    Examples
    --------
    >>> both = expected_contrast(np.array([[0.2, 0.8]]), np.array([[0.0, 1.0]]),
    ...                          np.array([[0.5, 0.5]]), np.array([[False, True]]))
    >>> [round(float(a[0]), 3) for a in both]  # .5 (.8 - 1), .5
    [-0.1, 0.5]
    """
    mass = np.asarray(probabilities, dtype=float)
    if bad is not None:
        # P(y_j and bad | x): outcomes at which F would not be bad do not count
        mass = mass * np.asarray(bad, dtype=float)
    gap = np.asarray(loss_g, dtype=float) - np.asarray(loss_f, dtype=float)
    contrast = (mass * gap).sum(axis=1)
    return contrast, mass.sum(axis=1)


def half_and_half_score(
    bad_contrast: np.ndarray,
    teacher_contrast: np.ndarray,
    teacher_bad: np.ndarray | None = None,
) -> RankingScore:
    r"""Return a score to rank candidates by where there are few bad rows.

    .. math:: \tfrac12 \frac{1}{n_b} \sum_{i\ bad} d_i +
              \tfrac12 \frac{\sum_i \tau_i}{\sum_i \beta_i}

    Measured gain in tau over the bad rows alone: +.117 +- .008 (n = 200), +.060 +- .009
    (n = 1000) with unlabelled real rows; +.072, +.039 with the labelled rows' own features.
    Intervals of the teacher's half covered .22: there is none here.

    Parameters
    ----------
    bad_contrast : ndarray of shape (n_b,)
        Realised contrast on rows that are bad for F.
    teacher_contrast : ndarray of shape (N,)
        ``E[b d | x]`` on *real* rows, from :func:`expected_contrast`.
    teacher_bad : ndarray of shape (N,), optional
        ``E[b | x]``; ones when omitted.

    Returns
    -------
    RankingScore
        NaN score when either half has nothing to average.

    Examples
    --------
    >>> half_and_half_score(np.array([-1.0, 0.0]), np.array([-0.2, 0.0]),
    ...                     np.array([0.5, 0.5])).score  # (-.5 - .2) / 2
    -0.35
    """
    d = np.asarray(bad_contrast, dtype=float)
    tau = np.asarray(teacher_contrast, dtype=float)
    beta = np.ones(len(tau))
    if teacher_bad is not None:
        beta = np.asarray(teacher_bad, dtype=float)
    if beta.shape != tau.shape:
        raise DataError(
            f"the teacher's contrast and mass have shapes {tau.shape} and {beta.shape}",
            "give both for the same rows, as expected_contrast returns them",
        )
    realised = float("nan")
    if len(d):
        realised = float(d.mean())
    # a ratio of sums, not a mean of ratios: rows that are hardly ever bad hardly count
    expected = float("nan")
    if beta.sum() > 0:
        expected = float(tau.sum() / beta.sum())
    return RankingScore(
        score=(realised + expected) / 2,
        realised=realised,
        expected=expected,
        n_bad=len(d),
        n_rows=len(tau),
    )
