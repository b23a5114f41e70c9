"""What is learnt once an autoencoder is trained: where its rows lie, and corrected margins.

A prior N(0, I) is a poor guess of where the encoder put the rows of a small table. The honest
remedy is a density of few parameters over latent means and target: it cannot remember single rows,
unlike drawing from the posterior of a training row. What the decoder says of a new row is then
corrected so that the made table has the fitted margins.

Notation
--------
mu : (n, l) posterior means;  s2 : (l,) mean posterior variance per dimension
t : (n, k) the target as the mixture sees it: a normal score of each target (regression), nothing
    (classes)
pi, m, S : weights, means, covariances of the components
v_hat, log_p : the decoder's numbers, and log probabilities of all codes, column after column
s : (q,) spread of what the decoder leaves unsaid of a number: v ~ v_hat + s N(0, 1)
"""

# Its lines stay dense: they are the formulas of the notation above.

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, softmax
from sklearn.covariance import ledoit_wolf
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from amlb_ext.core.rng import draw_int_seed

#: Latent dimensions whose means vary less than this carry nothing: the KL term shut them.
ACTIVE = 1e-2
#: Rows for each component of a mixture, on average, and most components.
ROWS_PER_COMPONENT, MOST_COMPONENTS = 250, 20
#: Most rows one mixture is fitted to, and rounds of EM: 10,000 rows and 100 rounds doubled
#: the time of a fit.
MOST_ROWS, ROUNDS = 5000, 50
#: Beyond this many rows EM counts in single precision, in half the time and to the same likelihood
#: but for its sixth digit.
SINGLE_BEYOND = 2500
#: Keys of the mixtures that are no class's: of means and target, and of the means of all rows.
JOINT, ANY_CLASS = 0, -1


class Mixture(NamedTuple):
    """Weights (g,), means (g, k) and covariances (g, k, k) of g Gaussians."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


class LatentMixture:
    """p(z | y): a mixture per class, or one mixture of (mu, y) conditioned on y.

    A mixture has a component for so many rows on average; fewer rows than twice this get a single
    Gaussian with the covariance of Ledoit and Wolf, so that no component can sit on a single row.

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
        mean = mu.mean(axis=0)
        self.shut_ = np.where(is_active, 0.0, mean)
        self.s2_ = s2
        self.n_classes_ = n_classes
        self.mixtures_: dict[int, Mixture] = {}
        if not len(self.active_):
            return self
        means = mu[:, self.active_]
        if n_classes == 0:
            # the targets are the last coordinates
            joint = np.column_stack([means, y])
            self.mixtures_[JOINT] = self._fit_sample(*self._draw_sample(joint, rng))
            return self
        for c in np.unique(y):
            class_means = means[y == c]
            if len(class_means) > 1:
                sample = self._draw_sample(class_means, rng)
                self.mixtures_[int(c)] = self._fit_sample(*sample)
        # for a class with one row or none; drawn for in any case, so that what is drawn later
        # does not depend on whether there is such a class
        sample = self._draw_sample(means, rng)
        if len(self.mixtures_) < self.n_classes_:
            self.mixtures_[ANY_CLASS] = self._fit_sample(*sample)
        return self

    def sample(self, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw z, (n, l), for targets as in :meth:`fit`."""
        n = len(y)
        # z = mu + posterior noise: the encoder's aggregate posterior, not its means alone
        posterior_noise = rng.standard_normal((n, len(self.s2_)))
        z = self.shut_ + np.sqrt(self.s2_) * posterior_noise
        # drawn for all rows at once: a row's draws do not depend on the classes beside it
        uniform = rng.random(n)
        noise = rng.standard_normal((n, len(self.active_)))
        if not len(self.active_):
            return z
        if self.n_classes_ == 0:
            draw_means = _draw_given_target if y.ndim == 1 else _draw_given_targets
            joint = self.mixtures_[JOINT]
            means = draw_means(joint, y, uniform=uniform, noise=noise)
        else:
            means = np.empty_like(noise)
            for c in np.unique(y):
                rows = y == c
                known = int(c) if int(c) in self.mixtures_ else ANY_CLASS
                mixture = self.mixtures_[known]
                means[rows] = _draw_rows(mixture, uniform[rows], noise[rows])
        z[:, self.active_] += means
        return z

    def _draw_sample(
        self, rows: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, int]:
        """Return the rows that a mixture is fitted to, and the seed of the fit."""
        if len(rows) > MOST_ROWS:
            shuffled = rng.permutation(len(rows))
            rows = rows[shuffled[:MOST_ROWS]]
        # a single Gaussian has nothing to start from
        seed = draw_int_seed(rng) if self._n_components(len(rows)) > 1 else 0
        return rows, seed

    def _n_components(self, n: int) -> int:
        return max(1, min(n // ROWS_PER_COMPONENT, MOST_COMPONENTS))

    def _fit_sample(self, rows: np.ndarray, seed: int) -> Mixture:
        n, n_dimensions = rows.shape
        # the ridge keeps the Cholesky root of rows that are all alike
        covariance, _ = ledoit_wolf(rows)
        shrunk = covariance + 1e-9 * np.eye(n_dimensions)
        n_components = self._n_components(n)
        if n_components == 1:
            return Mixture(
                weights=np.ones(1),
                means=rows.mean(axis=0)[None],
                covariances=shrunk[None],
            )
        ridge = 1e-3 * np.trace(shrunk) / n_dimensions
        mixture = GaussianMixture(
            n_components,
            max_iter=ROUNDS,
            reg_covar=ridge,
            random_state=seed,
        )
        # an unfinished EM is still a density
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(rows.astype(np.float32) if n > SINGLE_BEYOND else rows)
        return Mixture(
            weights=mixture.weights_.astype(float),
            means=mixture.means_.astype(float),
            covariances=mixture.covariances_.astype(float),
        )


# --- draws of n rows from a mixture ---
#
# uniform : (n,) chooses a row's component;  noise : (n, l) standard normal, coloured by the root
# of the component's covariance. Of component i of the joint mixture of (mu, y)
#     mean = (m, m_y),   covariance S = [[S_mm, S_my], [S_ym, S_yy]],
# and mu | y ~ N(m + G (y - m_y), S_mm - G S_ym) with the gain G = S_my S_yy⁻¹.


def _draw_rows(
    mixture: Mixture,
    uniform: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """Draw from a mixture that has nothing to be conditioned on."""
    edges = np.cumsum(mixture.weights)
    # the last edge is 1 but for rounding, and no draw may lie beyond it
    component = np.searchsorted(edges[:-1], uniform)

    def gaussian(i: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return mixture.means[i], mixture.covariances[i]

    return _draw_gaussians(component, noise, gaussian)


def _draw_gaussians(
    component: np.ndarray,
    noise: np.ndarray,
    gaussian: Callable[[int, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Draw each row by its component: ``gaussian(i, rows)`` gives centres and covariance of i."""
    means = np.empty_like(noise)
    for i in np.unique(component):
        rows = component == i
        centre, covariance = gaussian(i, rows)
        root = np.linalg.cholesky(covariance)
        means[rows] = centre + noise[rows] @ root.T
    return means


def _draw_given_target(
    mixture: Mixture,
    y: np.ndarray,
    *,
    uniform: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """Draw from p(mu | y), the target, (n,), being the mixture's last coordinate."""
    # NOTE: the general case with k = 1, kept apart for its bytes: with a division in place of a
    # solve and a Cholesky root the last digits are others, and suites made before stay the same
    m_y = mixture.means[:, -1]
    s_y = mixture.covariances[:, -1, -1]
    # p(i | y) ∝ pi_i N(y; m_y, s_y)
    deviation = y[:, None] - m_y
    distance = deviation**2 / (2 * s_y)
    log_p = np.log(mixture.weights) - np.log(s_y) / 2 - distance

    def gaussian(i: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S = mixture.covariances[i]
        gain = S[:-1, -1] / s_y[i]
        centre = mixture.means[i, :-1] + np.outer(y[rows] - m_y[i], gain)
        return centre, S[:-1, :-1] - np.outer(gain, S[-1, :-1])

    return _draw_gaussians(_draw_component(log_p, uniform), noise, gaussian)


def _draw_given_targets(
    mixture: Mixture,
    y: np.ndarray,
    *,
    uniform: np.ndarray,
    noise: np.ndarray,
) -> np.ndarray:
    """Draw from p(mu | y), the targets, (n, k), being the mixture's last coordinates."""
    k = y.shape[1]
    deviations = [y - mean[-k:] for mean in mixture.means]
    # log p(i | y) but for a constant: p(i | y) ∝ pi_i N(y; m_y, S_yy)
    log_weights = []
    for weight, S, deviation in zip(
        mixture.weights, mixture.covariances, deviations, strict=True
    ):
        # S_yy = L Lᵀ
        L = np.linalg.cholesky(S[-k:, -k:])
        white = np.linalg.solve(L, deviation.T)
        distance = (white**2).sum(axis=0) / 2
        log_weights.append(np.log(weight) - np.log(np.diag(L)).sum() - distance)
    log_p = np.column_stack(log_weights)

    def gaussian(i: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S = mixture.covariances[i]
        S_ym = S[-k:, :-k]
        gain = np.linalg.solve(S[-k:, -k:], S_ym).T
        centre = mixture.means[i, :-k] + deviations[i][rows] @ gain.T
        return centre, S[:-k, :-k] - gain @ S_ym

    return _draw_gaussians(_draw_component(log_p, uniform), noise, gaussian)


def _draw_component(log_p: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return a component for each row, given log weights (n, g) and uniform draws (n,)."""
    edges = np.cumsum(softmax(log_p, axis=1), axis=1)
    # the last edge is 1 but for rounding, and no draw may lie beyond it
    inner_edges = edges[:, :-1]
    return (uniform[:, None] > inner_edges).sum(axis=1)


# The corrections of what the decoder says.


#: Rounds of matching mean probabilities to fitted shares; they settle in three or four.
MATCHING_ROUNDS = 10


class Margins:
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
        pairs = zip(split_columns(log_p, self.cards), shares, strict=True)
        self.shifts_ = [_matching_shift(log_q, own) for log_q, own in pairs]
        return self

    def draw(
        self,
        v_hat: np.ndarray,
        log_p: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (n, m) int64 and normal scores (n, q)."""
        codes = np.empty((len(log_p), len(self.cards)), dtype=np.int64)
        for j, log_q in enumerate(split_columns(log_p, self.cards)):
            codes[:, j] = _draw_component(
                log_q + self.shifts_[j], rng.random(len(log_p))
            )
        # normal scores, each by the quantile at which its number lies
        scores = np.empty(v_hat.shape)
        for j, column in enumerate(v_hat.T):
            scores[:, j] = np.interp(column, self.quantiles_[:, j], self.scores_)
        return codes, scores


def _matching_shift(log_q: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the log-odds shift, (card,), under which the mean probabilities are the shares."""
    shift = np.zeros(len(shares))
    for _ in range(MATCHING_ROUNDS):
        probabilities = softmax(log_q + shift, axis=1)
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
    ends = np.cumsum(cards, dtype=int)
    # behind the last end there is nothing
    return np.split(log_p, ends, axis=1)[:-1]
