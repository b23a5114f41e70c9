"""What the decoder says of a row, corrected so that the made table has the fitted margins.

Notation
--------
v_hat, log_p : the decoder's numbers, and log probabilities of all codes, column after column
s : (q,) spread of what the decoder leaves unsaid of a number: v ~ v_hat + s N(0, 1)
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator

#: Rounds of matching mean probabilities to fitted shares; they settle in three or four.
ROUNDS = 10


class Margins(BaseEstimator):
    """One monotone map per number and one log-odds shift per code.

    Parameters
    ----------
    cards : tuple of int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v_hat, log_p = 3 + rng.random((4000, 1)), np.log(np.full((4000, 2), 0.5))
    >>> codes, z = Margins((2,)).fit(v_hat, log_p, [np.array([0.9, 0.1])]).draw(v_hat, log_p, rng)
    >>> f"{np.mean(codes == 0):.1f} {abs(z.mean()):.1f} {z.std():.1f}"
    '0.9 0.0 1.0'
    """

    def __init__(self, cards: tuple[int, ...]) -> None:
        self.cards = cards

    def fit(
        self, v_hat: np.ndarray, log_p: np.ndarray, shares: list[np.ndarray]
    ) -> Margins:
        """Learn the corrections on rows made for the fitted targets.

        Parameters
        ----------
        v_hat : ndarray of shape (n, q)
        log_p : ndarray of shape (n, sum of cards)
        shares : list of ndarray
            Of each column's codes in the fitted rows.
        """
        # from half a row in from either end, with 200 steps between: finer ones would hold noise
        end = 0.5 / len(v_hat)
        levels = np.r_[end, np.arange(0.0025, 1, 0.005), 1 - end]
        self.quantiles_ = np.quantile(v_hat, levels, axis=0)  # (levels, q)
        self.scores_ = ndtri(levels)
        self.shifts_ = []
        for log_q, share in zip(split_columns(log_p, self.cards), shares, strict=True):
            self.shifts_.append(_matching_shift(log_q, share))
        return self

    def draw(
        self, v_hat: np.ndarray, log_p: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (n, m) int64 and normal scores (n, q)."""
        numbers = np.empty(v_hat.shape)
        for j in range(v_hat.shape[1]):
            numbers[:, j] = np.interp(v_hat[:, j], self.quantiles_[:, j], self.scores_)
        codes = np.empty((len(v_hat), len(self.cards)), dtype=np.int64)
        for j, log_q in enumerate(split_columns(log_p, self.cards)):
            cumulative = np.cumsum(softmax(log_q + self.shifts_[j]), axis=1)
            # the last edge is 1 but for rounding, so it is left out: no draw may lie beyond it
            uniform = rng.random((len(log_q), 1))
            codes[:, j] = (uniform > cumulative[:, :-1]).sum(axis=1)
        return codes, numbers


def _matching_shift(log_q: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Return the log-odds shift, (card,), under which the mean probabilities are the shares."""
    shift = np.zeros(len(share))
    for _ in range(ROUNDS):
        mean_probability = softmax(log_q + shift).mean(axis=0)
        # a code that the decoder never says would divide by zero
        shift += np.log(share / mean_probability.clip(1e-12))
    return shift


def split_columns(log_p: np.ndarray, cards: tuple[int, ...]) -> list[np.ndarray]:
    """Return the part of each column.

    Examples
    --------
    >>> [part.shape for part in split_columns(np.zeros((7, 5)), (2, 3))]
    [(7, 2), (7, 3)]
    >>> split_columns(np.zeros((7, 0)), ())
    []
    """
    return np.split(log_p, np.cumsum(cards)[:-1].astype(int), axis=1)[: len(cards)]


def softmax(log_q: np.ndarray) -> np.ndarray:
    """Return the probabilities of each row."""
    # the largest is taken out first: exp of a large number overflows
    p = np.exp(log_q - log_q.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
