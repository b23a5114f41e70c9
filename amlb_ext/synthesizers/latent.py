"""Where a trained autoencoder puts its rows: a Gaussian mixture over latent means and target.

A prior N(0, I) is a poor guess of where the encoder put the rows of a small table. The honest
remedy is a density of few parameters: it cannot remember single rows, unlike drawing from the
posterior of a training row.

Notation
--------
mu : (n, l) posterior means;  s2 : (l,) mean posterior variance per dimension
t : (n, k) the target as the mixture sees it: a normal score of each target (regression), nothing
    (classes)
pi, m, S : weights, means, covariances of the components
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from amlb_ext.core.rng import draw_int_seed

#: Latent dimensions whose means vary less than this carry nothing: the KL term shut them.
ACTIVE = 1e-2
#: Most rows one mixture is fitted to, and rounds of EM: 10,000 rows and 100 rounds doubled
#: the time of a fit.
MOST_ROWS, ROUNDS = 5000, 50


class Mixture(NamedTuple):
    """Weights (g,), means (g, k) and covariances (g, k, k) of g Gaussians."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class LatentMixture(BaseEstimator):
    """p(z | y): a mixture per class, or one mixture of (mu, y) conditioned on y.

    Parameters
    ----------
    max_components : int
        Most components of one mixture.
    rows_per_component : int
        Rows per component on average; fewer rows than twice this get a single Gaussian with the
        covariance of Ledoit and Wolf, so that no component can sit on a single row.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> mu = np.where(y[:, None] == 0, -3.0, 3.0) + 0.1 * rng.standard_normal((100, 2))
    >>> mixture = LatentMixture().fit(mu, np.full(2, 0.01), y, 2, rng)
    >>> np.sign(mixture.sample(np.array([0, 1, 1]), rng)).tolist()
    [[-1.0, -1.0], [1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, max_components: int = 20, rows_per_component: int = 250) -> None:
        self.max_components = max_components
        self.rows_per_component = rows_per_component

    def fit(
        self,
        mu: np.ndarray,
        s2: np.ndarray,
        y: np.ndarray,
        n_classes: int,
        rng: np.random.Generator,
    ) -> LatentMixture:
        """Fit the mixture.

        Parameters
        ----------
        mu : ndarray of shape (n, l)
            At least two rows.
        s2 : ndarray of shape (l,)
        y : ndarray of shape (n,)
            Class codes, or normal scores of a regression target; ``(n, k)`` of several.
        n_classes : int
        rng : numpy.random.Generator
        """
        self.active_ = np.flatnonzero(mu.std(axis=0) > ACTIVE)
        self.shut_, self.s2_ = np.where(mu.std(axis=0) > ACTIVE, 0.0, mu.mean(axis=0)), s2
        self.n_classes_ = n_classes
        rows = mu[:, self.active_]
        self.mixtures_: dict[int, Mixture] = {}
        if not len(self.active_):
            return self
        if n_classes == 0:
            self.mixtures_[0] = self._mixture(np.column_stack([rows, y]), rng)
            return self
        for c in np.unique(y):
            if (y == c).sum() > 1:
                self.mixtures_[int(c)] = self._mixture(rows[y == c], rng)
        self.mixtures_[-1] = self._mixture(rows, rng)  # for a class with one row or none
        return self

    def sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw z, (n, l), for targets as in :meth:`fit`."""
        # z = mu + posterior noise: the encoder's aggregate posterior, not its means alone
        z = self.shut_ + np.sqrt(self.s2_) * rng.standard_normal((len(y), len(self.s2_)))
        pick, noise = rng.random(len(y)), rng.standard_normal((len(y), len(self.active_)))
        if not len(self.active_):
            return z
        if self.n_classes_ == 0:
            draw = _draw_given if y.ndim == 1 else _draw_given_several
            z[:, self.active_] += draw(self.mixtures_[0], y, pick, noise)
            return z
        for c in np.unique(y):
            rows = y == c
            mixture = self.mixtures_.get(int(c), self.mixtures_[-1])
            z[np.ix_(rows, self.active_)] += _draw(mixture, pick[rows], noise[rows])
        return z

    def _mixture(self, rows: np.ndarray, rng: np.random.Generator) -> Mixture:
        if len(rows) > MOST_ROWS:
            rows = rows[rng.permutation(len(rows))[:MOST_ROWS]]
        shrunk = ledoit_wolf(rows)[0] + 1e-9 * np.eye(rows.shape[1])
        components = min(len(rows) // self.rows_per_component, self.max_components)
        if components < 2:
            return Mixture(np.ones(1), rows.mean(axis=0)[None], shrunk[None])
        mixture = GaussianMixture(
            components,
            max_iter=ROUNDS,
            reg_covar=1e-3 * np.trace(shrunk) / len(shrunk),
            random_state=draw_int_seed(rng),
        )
        with warnings.catch_warnings():  # an unfinished EM is still a density
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(rows)
        return Mixture(mixture.weights_, mixture.means_, mixture.covariances_)


def _draw(mixture: Mixture, pick: np.ndarray, noise: np.ndarray) -> np.ndarray:
    which = np.searchsorted(np.cumsum(mixture.weights)[:-1], pick)
    out = np.empty_like(noise)
    for i in np.unique(which):
        root = np.linalg.cholesky(mixture.covariances[i])
        out[which == i] = mixture.means[i] + noise[which == i] @ root.T
    return out


def _draw_given(mixture: Mixture, y: np.ndarray, pick: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Draw from p(mu | y), the target being the mixture's last coordinate."""
    m_y, s_y = mixture.means[:, -1], mixture.covariances[:, -1, -1]
    # p(i | y) ∝ pi_i N(y; m_y, s_y)
    log_p = np.log(mixture.weights) - np.log(s_y) / 2 - (y[:, None] - m_y) ** 2 / (2 * s_y)
    which = _component(log_p, pick)
    out = np.empty_like(noise)
    for i in np.unique(which):
        rows, S = which == i, mixture.covariances[i]
        gain = S[:-1, -1] / s_y[i]  # mu | y ~ N(m + gain (y - m_y), S_mm - gain S_ym)
        root = np.linalg.cholesky(S[:-1, :-1] - np.outer(gain, S[-1, :-1]))
        centre = mixture.means[i, :-1] + np.outer(y[rows] - m_y[i], gain)
        out[rows] = centre + noise[rows] @ root.T
    return out


def _draw_given_several(
    mixture: Mixture, y: np.ndarray, pick: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Draw from p(mu | y), the k targets being the mixture's last coordinates."""
    k = y.shape[1]
    apart = [y - mean[-k:] for mean in mixture.means]
    log_p = []  # p(i | y) ∝ pi_i N(y; m_y, S_yy), S_yy = L Lᵀ
    for weight, d, S in zip(mixture.weights, apart, mixture.covariances, strict=True):
        L = np.linalg.cholesky(S[-k:, -k:])
        white = np.linalg.solve(L, d.T)
        log_p.append(np.log(weight) - np.log(np.diag(L)).sum() - (white**2).sum(axis=0) / 2)
    which = _component(np.column_stack(log_p), pick)
    out = np.empty_like(noise)
    for i in np.unique(which):
        rows, S = which == i, mixture.covariances[i]
        gain = np.linalg.solve(S[-k:, -k:], S[-k:, :-k]).T
        root = np.linalg.cholesky(S[:-k, :-k] - gain @ S[-k:, :-k])
        out[rows] = mixture.means[i, :-k] + apart[i][rows] @ gain.T + noise[rows] @ root.T
    return out


def _component(log_p: np.ndarray, pick: np.ndarray) -> np.ndarray:
    """Return a component for each row, given log weights (n, g) and uniform draws (n,)."""
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
    return (pick[:, None] > p[:, :-1]).sum(axis=1)
