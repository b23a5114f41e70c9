"""Nemenyi's comparisons of every two entrants over blocks, after Friedman's test.

References
----------
Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.

NOTE[OWN]: scikit-posthocs has this test, and draws in statsmodels, seaborn and formulaic (50 MB)
with it. It is the oracle of the unit test here.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata, studentized_range


def nemenyi_p_values(losses: np.ndarray) -> np.ndarray:
    """Return the p-value of each pair of entrants.

    Parameters
    ----------
    losses : ndarray of shape (n, k)
        A row per block, say a task, and a column per entrant; ties share their mean rank.

    Returns
    -------
    ndarray of shape (k, k)
        Symmetric, with ones on the diagonal.

    Examples
    --------
    >>> losses = np.array([[0.3, 0.1, 0.2], [0.4, 0.3, 0.5], [0.2, 0.1, 0.3], [0.5, 0.1, 0.6]])
    >>> nemenyi_p_values(losses).round(3).tolist()
    [[1.0, 0.181, 0.759], [0.181, 1.0, 0.036], [0.759, 0.036, 1.0]]
    """
    n_blocks, n_entrants = losses.shape
    mean_ranks = rankdata(losses, axis=1).mean(axis=0)
    differences = np.abs(mean_ranks[:, None] - mean_ranks[None, :])
    # standard error of the difference of two mean ranks, as Demsar has it
    standard_error = np.sqrt(n_entrants * (n_entrants + 1) / (6 * n_blocks))
    statistics = np.sqrt(2) * differences / standard_error
    p_values = studentized_range.sf(statistics, n_entrants, np.inf)
    np.fill_diagonal(p_values, 1.0)
    return np.asarray(p_values, dtype=float)
