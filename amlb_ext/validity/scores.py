"""A ranking score without an interval: half realised, half expected failures.

Notation
--------
l_G, l_F : (n,) losses of a candidate and of F on real, labelled rows
tau : (n,) the contrast l_G - l_F that a teacher T, fitted on other rows, expects
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.errors import DataError


@dataclass(frozen=True)
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
    p = np.asarray(probabilities, dtype=float)
    mass = p if bad is None else p * np.asarray(bad, dtype=float)
    gap = np.asarray(loss_g, dtype=float) - np.asarray(loss_f, dtype=float)
    return (mass * gap).sum(axis=1), mass.sum(axis=1)


def half_and_half_score(
    bad_contrast: np.ndarray, teacher_contrast: np.ndarray, teacher_bad: np.ndarray | None = None
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
    d, tau = np.asarray(bad_contrast, dtype=float), np.asarray(teacher_contrast, dtype=float)
    beta = np.ones(len(tau)) if teacher_bad is None else np.asarray(teacher_bad, dtype=float)
    if beta.shape != tau.shape:
        raise DataError(
            f"the teacher's contrast and mass have shapes {tau.shape} and {beta.shape}",
            "give both for the same rows, as expected_contrast returns them",
        )
    realised = float(d.mean()) if len(d) else float("nan")
    expected = float(tau.sum() / beta.sum()) if beta.sum() > 0 else float("nan")
    return RankingScore((realised + expected) / 2, realised, expected, len(d), len(tau))
