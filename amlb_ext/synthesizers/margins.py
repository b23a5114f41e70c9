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
        self,
        v_hat: np.ndarray,
        log_p: np.ndarray,
        shares: list[np.ndarray],
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
        steps = np.arange(0.0025, 1, 0.005)
        levels = np.concatenate([[end], steps, [1 - end]])
        self.quantiles_ = np.quantile(v_hat, levels, axis=0)  # (levels, q)
        self.scores_ = ndtri(levels)
        self.shifts_ = []
        columns = split_columns(log_p, self.cards)
        for log_q, column_shares in zip(columns, shares, strict=True):
            shift = _matching_shift(log_q, column_shares)
            self.shifts_.append(shift)
        return self

    def draw(
        self,
        v_hat: np.ndarray,
        log_p: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (n, m) int64 and normal scores (n, q)."""
        codes = self._draw_codes(log_p, rng)
        return codes, self._map_numbers(v_hat)

    def _map_numbers(self, v_hat: np.ndarray) -> np.ndarray:
        """Return normal scores, each by the quantile at which its number lies."""
        scores = np.empty(v_hat.shape)
        for j, column in enumerate(v_hat.T):
            quantiles = self.quantiles_[:, j]
            scores[:, j] = np.interp(column, quantiles, self.scores_)
        return scores

    def _draw_codes(
        self,
        log_p: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return codes drawn from the shifted probabilities."""
        n_rows = len(log_p)
        shape = (n_rows, len(self.cards))
        codes = np.empty(shape, dtype=np.int64)
        columns = split_columns(log_p, self.cards)
        for j, log_q in enumerate(columns):
            probabilities = softmax(log_q + self.shifts_[j])
            edges = np.cumsum(probabilities, axis=1)
            # the last edge is 1 but for rounding, so it is left out: no draw may lie beyond it
            inner_edges = edges[:, :-1]
            uniform = rng.random((n_rows, 1))
            is_beyond = uniform > inner_edges
            codes[:, j] = is_beyond.sum(axis=1)
        return codes


def _matching_shift(log_q: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the log-odds shift, (card,), under which the mean probabilities are the shares."""
    shift = np.zeros(len(shares))
    for _ in range(ROUNDS):
        probabilities = softmax(log_q + shift)
        # a code that the decoder never says would divide by zero
        mean_probability = probabilities.mean(axis=0).clip(1e-12)
        shift += np.log(shares / mean_probability)
    return shift


def split_columns(
    log_p: np.ndarray,
    cards: tuple[int, ...],
) -> list[np.ndarray]:
    """Return the part of each column.

    Examples
    --------
    >>> [part.shape for part in split_columns(np.zeros((7, 5)), (2, 3))]
    [(7, 2), (7, 3)]
    >>> split_columns(np.zeros((7, 0)), ())
    []
    """
    parts = []
    start = 0
    for card in cards:
        stop = start + card
        parts.append(log_p[:, start:stop])
        start = stop
    return parts


def softmax(log_q: np.ndarray) -> np.ndarray:
    """Return the probabilities of each row."""
    # the largest is taken out first: exp of a large number overflows
    largest = log_q.max(axis=1, keepdims=True)
    p = np.exp(log_q - largest)
    return p / p.sum(axis=1, keepdims=True)
