"""The area under the ROC curve as a mean over pairs of rows, and what each row has of it.

Notation
--------
P, N : positive and negative rows; s : scores
A = mean over pairs of 1[s_p < s_n] + 1/2 1[s_p = s_n], the share ordered wrongly: 1 - AUC
m_i : for a positive row the share of negatives that it is misranked with, and the reverse

The influence of a row on A is (m_i - A) / |P| or (m_i - A) / |N| (Hanley & McNeil 1982; DeLong,
DeLong & Clarke-Pearson 1988, Biometrics 44, 837-845). A + n times the influence is a number for
each row whose mean is A and whose variance over n is that of A. So the paired t test of two models'
numbers is DeLong's test. The m_i themselves, taken for losses of rows, state half of the error.
"""

from __future__ import annotations

import numpy as np


def misranked_by(
    scores: np.ndarray, others: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return for each score the weight of other scores that are above it, ties counting half.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    others : ndarray of shape (k,)
    weights : ndarray of shape (k,), optional
        Of the others; alike and summing to 1 when omitted.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> misranked_by(np.array([0.2, 0.5]), np.array([0.5, 0.1])).tolist()
    [0.5, 0.25]
    """
    if weights is None:
        weights = np.full(len(others), 1 / len(others))
    order = np.argsort(others, kind="stable")
    total = np.r_[0.0, np.cumsum(weights[order])]
    ascending = others[order]
    below = total[np.searchsorted(ascending, scores, side="left")]
    at_most = total[np.searchsorted(ascending, scores, side="right")]
    return np.asarray(total[-1] - (below + at_most) / 2)


def misranked(is_positive: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return a number for each row whose mean is 1 - AUC, with the right variance.

    Parameters
    ----------
    is_positive : ndarray of shape (n,), bool
        Rows of both classes.
    scores : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> misranked(np.array([True, False, False]), np.array([0.4, 0.5, 0.1])).tolist()
    [0.5, 1.25, -0.25]
    """
    share = np.empty(len(scores))
    share[is_positive] = misranked_by(scores[is_positive], scores[~is_positive])
    share[~is_positive] = 1 - misranked_by(scores[~is_positive], scores[is_positive])
    area = share[is_positive].mean()
    n = len(scores)
    size = np.where(is_positive, is_positive.sum(), n - is_positive.sum())
    return np.asarray(area + n * (share - area) / size)
