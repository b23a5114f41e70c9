"""From coefficients to rows: the space of mixtures of N generators that share one start.

Notation
--------
theta_k : (D,) weights of initial generator k: its decoder, the Gaussian of its latent space, the
    distribution of its target
c : (N,) coefficients with sum 1;  theta(c) = sum_k c_k theta_k
z : (n, l) latent vectors;  t : (n,) target as the network sees it
A, b : latent Gaussian, z = b_y + A_y eps; for a regression z = b_0 + b_1 t + A eps

Weights are formed only to sample, in numpy: rows of a mixture are the same bytes with and without
a GPU, and many mixtures pass through small matrices faster than through a network each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from amlb_ext.synthesizers.vae import VAE

#: Names of the parts of theta that are no weights of the decoder.
ROOT, CENTRE, TARGET = "latent root", "latent centre", "target"
#: Numbers of a broken mixture are kept finite, log probabilities above this.
LARGEST_NUMBER, LEAST_LOGIT = 1e6, -60.0


class FlatWeights:
    """One flat vector for named arrays, and back.

    Parameters
    ----------
    arrays : mapping of str to ndarray
        Names and shapes; the order decides.

    Examples
    --------
    >>> arrays = {"a": np.zeros((2, 2)), "b": np.ones(3)}
    >>> flat = FlatWeights(arrays)
    >>> vector = flat.join(arrays)
    >>> vector.shape, flat.split(vector)["b"].tolist()
    ((7,), [1.0, 1.0, 1.0])
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.shapes = {name: array.shape for name, array in arrays.items()}

    def join(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the arrays as one vector, ``(D,)``."""
        return np.concatenate([np.ravel(arrays[name]) for name in self.shapes])

    def split(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Return the arrays of a vector."""
        arrays = {}
        start = 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            arrays[name] = vector[start : start + size].reshape(shape)
            start += size
        return arrays


@dataclass(frozen=True, kw_only=True)
class GeneratorSpace:
    """All mixtures of N generators that were tuned from one fitted VAE.

    Attributes
    ----------
    model : VAE
        Its preparation, margins and noise are shared by all mixtures.
    initial : ndarray of shape (N, D)
        The initial generators.
    base : ndarray of shape (D,)
        The generator of all rows, from which they were tuned.
    flat : FlatWeights
    """

    model: VAE
    initial: np.ndarray
    base: np.ndarray
    flat: FlatWeights

    @property
    def n_generators(self) -> int:
        """N."""
        return len(self.initial)

    def sample(
        self, theta: np.ndarray, n: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows of the generator with weights theta.

        Parameters
        ----------
        theta : ndarray of shape (D,)
        n : int
        rng : numpy.random.Generator
            The same state gives the same random numbers to every generator, so that two of them
            differ by what they are.

        Returns
        -------
        X : ndarray of shape (n, d)
        y : ndarray of shape (n,)
            The generator's own targets, as fitted rows have them.
        """
        y = self.draw_targets(theta, n, rng)
        return self.draw_rows(theta, y, rng), y

    def draw_targets(
        self, theta: np.ndarray, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw targets: classes by their log shares, or numbers by mean and log spread."""
        parameters = self.flat.split(theta)[TARGET]
        if self.model.n_classes_:
            shares = np.exp(log_softmax(parameters))
            # the last edge is left out: rounding must not put a draw beyond it
            edges = np.cumsum(shares)[:-1]
            return np.searchsorted(edges, rng.random(n))
        mean, log_spread = parameters
        t = mean + np.exp(np.clip(log_spread, -5, 2)) * rng.standard_normal(n)
        fitted = np.sort(self.model.targets_)
        [scores] = self.model.target_map_.maps
        place = np.searchsorted(fitted, scores.inverse(t))
        return fitted[np.minimum(place, len(fitted) - 1)]

    def draw_rows(
        self, theta: np.ndarray, y: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw a row for each target, ``(n, d)``; parameters as in :meth:`sample`."""
        weights = self.flat.split(theta)
        t = self.model._target_score(y)
        z = self._draw_latent(weights, t, rng)
        v_hat, log_p = self.decode(weights, z, t)
        v_hat = v_hat + self.model.noise_ * rng.standard_normal(v_hat.shape)
        # a mixture far outside the start may overflow
        v_hat = np.nan_to_num(v_hat, posinf=LARGEST_NUMBER, neginf=-LARGEST_NUMBER)
        log_p = np.nan_to_num(log_p, nan=LEAST_LOGIT, neginf=LEAST_LOGIT)
        codes, numbers = self.model.margins_.draw(v_hat, log_p, rng)
        X = self.model.prep_.inverse(codes, numbers, rng)
        n_categorical = len(self.model.cards_)
        X[:, n_categorical:] = np.clip(
            X[:, n_categorical:], self.model.low_, self.model.high_
        )
        return X

    def _draw_latent(
        self,
        weights: Mapping[str, np.ndarray],
        t: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        root = weights[ROOT]
        centre = weights[CENTRE]
        eps = rng.standard_normal((len(t), root.shape[1]))
        if not self.model.n_classes_:
            return centre[0] + np.outer(t, centre[1]) + eps @ root[0].T
        z = np.empty_like(eps)
        for label in range(self.model.n_classes_):
            rows = t == label
            z[rows] = centre[label] + eps[rows] @ root[label].T
        return z

    def decode(
        self, weights: Mapping[str, np.ndarray], z: np.ndarray, t: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return v_hat and log_p, as :class:`~amlb_ext.synthesizers.dense.DenseNetwork` does."""
        condition = np.reshape(t, (len(t), 1)).astype(float)
        if self.model.n_classes_:
            condition = weights["film_out.embed.weight"][t]
        scale = _linear(weights, "film_out.scale", condition)
        shift = _linear(weights, "film_out.shift", condition)
        h = _linear(weights, "leave", z) * (1 + scale) + shift
        h = _linear(weights, "outer", _silu(h))
        h = _silu(h)
        if "narrow.weight" in weights:
            h = _linear(weights, "narrow", h)
        outputs = _linear(weights, "heads", h)
        n_numbers = self.model.prep_.n_numbers_
        logits = outputs[:, n_numbers:]
        log_p = np.empty_like(logits)
        start = 0
        for card in self.model.prep_.cards_:
            column = slice(start, start + card)
            log_p[:, column] = log_softmax(logits[:, column], axis=1)
            start += card
        return outputs[:, :n_numbers], log_p


def _linear(weights: Mapping[str, np.ndarray], layer: str, h: np.ndarray) -> np.ndarray:
    return h @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]


def _silu(h: np.ndarray) -> np.ndarray:
    # the bound keeps exp from overflowing
    return h / (1 + np.exp(-np.clip(h, -50, 50)))
