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
        is_active = mu.std(axis=0) > ACTIVE
        self.active_ = np.flatnonzero(is_active)
        # where a shut dimension lies; the active ones are added to 0
        self.shut_ = np.where(is_active, 0.0, mu.mean(axis=0))
        self.s2_ = s2
        self.n_classes_ = n_classes
        rows = mu[:, self.active_]
        self.mixtures_: dict[int, Mixture] = {}
        if not len(self.active_):
            return self
        if n_classes == 0:
            joint = np.column_stack([rows, y])  # the targets are the last coordinates
            self.mixtures_[0] = self._fit_mixture(joint, rng)
            return self
        for c in np.unique(y):
            if (y == c).sum() > 1:
                self.mixtures_[int(c)] = self._fit_mixture(rows[y == c], rng)
        self.mixtures_[-1] = self._fit_mixture(
            rows, rng
        )  # for a class with one row or none
        return self

    def sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw z, (n, l), for targets as in :meth:`fit`."""
        # z = mu + posterior noise: the encoder's aggregate posterior, not its means alone
        posterior_noise = rng.standard_normal((len(y), len(self.s2_)))
        z = self.shut_ + np.sqrt(self.s2_) * posterior_noise
        # drawn for all rows at once: a row's draws do not depend on the classes beside it
        uniform = rng.random(len(y))
        noise = rng.standard_normal((len(y), len(self.active_)))
        if not len(self.active_):
            return z
        if self.n_classes_ == 0:
            draw_means = _draw_given_target if y.ndim == 1 else _draw_given_targets
            z[:, self.active_] += draw_means(self.mixtures_[0], y, uniform, noise)
            return z
        for c in np.unique(y):
            rows = y == c
            mixture = self.mixtures_.get(int(c), self.mixtures_[-1])
            z[np.ix_(rows, self.active_)] += _draw_rows(
                mixture, uniform[rows], noise[rows]
            )
        return z

    def _fit_mixture(self, rows: np.ndarray, rng: np.random.Generator) -> Mixture:
        if len(rows) > MOST_ROWS:
            rows = rows[rng.permutation(len(rows))[:MOST_ROWS]]
        # the ridge keeps the Cholesky root of rows that are all alike
        shrunk = ledoit_wolf(rows)[0] + 1e-9 * np.eye(rows.shape[1])
        n_components = min(len(rows) // self.rows_per_component, self.max_components)
        if n_components < 2:
            return Mixture(np.ones(1), rows.mean(axis=0)[None], shrunk[None])
        mixture = GaussianMixture(
            n_components,
            max_iter=ROUNDS,
            reg_covar=1e-3 * np.trace(shrunk) / len(shrunk),
            random_state=draw_int_seed(rng),
        )
        with warnings.catch_warnings():  # an unfinished EM is still a density
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(rows)
        return Mixture(mixture.weights_, mixture.means_, mixture.covariances_)


# --- draws of n rows from a mixture ---
#
# uniform : (n,) chooses a row's component;  noise : (n, l) standard normal, coloured by the root
# of the component's covariance. Of component i of the joint mixture of (mu, y)
#     mean = (m, m_y),   covariance S = [[S_mm, S_my], [S_ym, S_yy]],
# and mu | y ~ N(m + G (y - m_y), S_mm - G S_ym) with the gain G = S_my S_yy⁻¹.


def _draw_rows(mixture: Mixture, uniform: np.ndarray, noise: np.ndarray) -> np.ndarray:
    component = np.searchsorted(np.cumsum(mixture.weights)[:-1], uniform)
    means = np.empty_like(noise)
    for i in np.unique(component):
        rows = component == i
        root = np.linalg.cholesky(mixture.covariances[i])
        means[rows] = mixture.means[i] + noise[rows] @ root.T
    return means


def _draw_given_target(
    mixture: Mixture, y: np.ndarray, uniform: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Draw from p(mu | y), the target, (n,), being the mixture's last coordinate."""
    # NOTE: the general case with k = 1, kept apart for its bytes: with a division in place of a
    # solve and a Cholesky root the last digits are others, and suites made before stay the same
    m_y = mixture.means[:, -1]
    s_y = mixture.covariances[:, -1, -1]
    # p(i | y) ∝ pi_i N(y; m_y, s_y)
    distance = (y[:, None] - m_y) ** 2 / (2 * s_y)
    component = _draw_component(
        np.log(mixture.weights) - np.log(s_y) / 2 - distance, uniform
    )
    means = np.empty_like(noise)
    for i in np.unique(component):
        rows = component == i
        S = mixture.covariances[i]
        gain = S[:-1, -1] / s_y[i]
        root = np.linalg.cholesky(S[:-1, :-1] - np.outer(gain, S[-1, :-1]))
        centre = mixture.means[i, :-1] + np.outer(y[rows] - m_y[i], gain)
        means[rows] = centre + noise[rows] @ root.T
    return means


def _draw_given_targets(
    mixture: Mixture, y: np.ndarray, uniform: np.ndarray, noise: np.ndarray
) -> np.ndarray:
    """Draw from p(mu | y), the targets, (n, k), being the mixture's last coordinates."""
    k = y.shape[1]
    deviations = [y - mean[-k:] for mean in mixture.means]
    log_p = []  # p(i | y) ∝ pi_i N(y; m_y, S_yy), S_yy = L Lᵀ
    for weight, deviation, S in zip(
        mixture.weights, deviations, mixture.covariances, strict=True
    ):
        L = np.linalg.cholesky(S[-k:, -k:])
        white = np.linalg.solve(L, deviation.T)
        log_det = np.log(np.diag(L)).sum()
        log_p.append(np.log(weight) - log_det - (white**2).sum(axis=0) / 2)
    component = _draw_component(np.column_stack(log_p), uniform)
    means = np.empty_like(noise)
    for i in np.unique(component):
        rows = component == i
        S = mixture.covariances[i]
        gain = np.linalg.solve(S[-k:, -k:], S[-k:, :-k]).T
        root = np.linalg.cholesky(S[:-k, :-k] - gain @ S[-k:, :-k])
        centre = mixture.means[i, :-k] + deviations[i][rows] @ gain.T
        means[rows] = centre + noise[rows] @ root.T
    return means


def _draw_component(log_p: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return a component for each row, given log weights (n, g) and uniform draws (n,)."""
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    cumulative = np.cumsum(p / p.sum(axis=1, keepdims=True), axis=1)
    return (uniform[:, None] > cumulative[:, :-1]).sum(axis=1)
