"""From coefficients to rows: N generators tuned from one model, and all mixtures of them.

Section 2.1 of Data Swarms: cluster the data, fine-tune one base model on each cluster. The clusters
are those of k-means on the latent means of the base. The copies share one start, hence one basin of
the loss, and may be averaged weight by weight (Wortsman et al., Model soups, ICML 2022); models of
different starts may not. What is shared by all copies and never averaged is the preparation, the
margins and the noise.

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
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor

from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.synthesizers.latent import split_columns
from amlb_ext.synthesizers.network import DenseNetwork, private_torch
from amlb_ext.synthesizers.swarm.particles import check_generators
from amlb_ext.synthesizers.training import train_network
from amlb_ext.synthesizers.vae import BETAS, VAE, Rows

#: Layers of the decoder of :class:`~amlb_ext.synthesizers.network.DenseNetwork`.
DECODER = ("leave", "film_out", "outer", "narrow", "heads")
#: Rows of a gradient step, where there are so many.
BATCH = 128


class TunedCopy(NamedTuple):
    """One copy: its decoder, and where its encoder puts its rows.

    Attributes
    ----------
    weights : dict of str to ndarray
        Of the decoder, by torch's names.
    means : ndarray of shape (n, latent)
        Of q(z | x, y) for the rows of the copy.
    spread : ndarray of shape (latent,)
        Mean variance of q(z | x, y).
    """

    weights: dict[str, np.ndarray]
    means: np.ndarray
    spread: np.ndarray


class FittedRows:
    """A fitted VAE with its rows, from which copies are made.

    Parameters
    ----------
    model : VAE
        With dense layers.
    X, y : ndarray of shape (n, d), (n,)
        The rows it was fitted on.

    Raises
    ------
    DataError
        No column varies, so there is no network.
    """

    def __init__(self, model: VAE, X: np.ndarray, y: np.ndarray) -> None:
        if not isinstance(model.network_, DenseNetwork):
            raise DataError(
                "all columns are constant or copied, so there is nothing to generate",
                "keep more columns, or choose another table",
            )
        self.model = model
        self.network = model.network_
        self.rows = model._tensors(model.prep_.transform(X), y)

    def latent_means(self) -> np.ndarray:
        """Return where the fitted model puts each row, ``(n, latent)``."""
        with private_torch(seed=0):
            means, _ = self.model._encode_rows(self.rows)
        return means.double().numpy()

    def tune_copy(self, rows: np.ndarray, steps: int, seed: int) -> TunedCopy:
        """Train a copy on the rows at these positions.

        Parameters
        ----------
        rows : ndarray of int
        steps : int
            Gradient steps; 0 gives the model as it was fitted.
        seed : int
            Of the order of rows and of the latent noise.
        """
        network = deepcopy(self.network)
        part = self.rows.take(torch.tensor(rows))
        # the model's own loss, of another network
        self.model.network_ = network
        try:
            with private_torch(seed):
                if steps:
                    self._train(network, part, steps)
                means, log_s2 = self.model._encode_rows(part)
        finally:
            self.model.network_ = self.network
        return TunedCopy(
            weights=decoder_weights(network),
            means=means.double().numpy(),
            spread=log_s2.double().exp().mean(dim=0).numpy(),
        )

    def _train(self, network: DenseNetwork, part: Rows, steps: int) -> None:
        def loss(positions: Tensor, done: float) -> Tensor:
            # fine-tuning goes on where the training ended: with the last weight of the KL term
            return self.model._loss(part.take(positions), BETAS[1])

        train_network(
            network,
            loss,
            learn=torch.arange(len(part.y)),
            held=torch.tensor([], dtype=torch.long),
            batch=min(BATCH, len(part.y)),
            steps=steps,
        )


def decoder_weights(network: DenseNetwork) -> dict[str, np.ndarray]:
    """Return the weights of a decoder as float64, by torch's names."""
    weights = {}
    for name, tensor in network.state_dict().items():
        layer, _, _ = name.partition(".")
        if layer in DECODER:
            # a copy: training writes into one flat vector that all weights are views of
            weights[name] = tensor.detach().double().numpy().copy()
    return weights


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
        of_numbers = X[:, len(self.model.cards_) :]
        np.clip(of_numbers, self.model.low_, self.model.high_, out=of_numbers)
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
        """Return v_hat and log_p, as :class:`~amlb_ext.synthesizers.network.DenseNetwork` does."""
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
        cards = self.model.prep_.cards_
        for column, written in zip(
            split_columns(logits, cards), split_columns(log_p, cards), strict=True
        ):
            written[:] = log_softmax(column, axis=1)
        return outputs[:, :n_numbers], log_p


def _linear(weights: Mapping[str, np.ndarray], layer: str, h: np.ndarray) -> np.ndarray:
    return h @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"]


def _silu(h: np.ndarray) -> np.ndarray:
    # the bound keeps exp from overflowing
    return h / (1 + np.exp(-np.clip(h, -50, 50)))


# The initial generators.


#: Fewer rows than this in a cluster are joined by those nearest to its centre.
LEAST_CLUSTER = 32
#: Added to the latent covariance, so that it has a root.
RIDGE = 1e-6


def make_generators(
    model: VAE,
    X: np.ndarray,
    y: np.ndarray,
    *,
    n_generators: int,
    steps: int,
    seed: int,
) -> GeneratorSpace:
    """Tune N copies of a fitted VAE, each on a cluster of its rows.

    Parameters
    ----------
    model : VAE
        Fitted on X and y, of a single target.
    X, y : ndarray of shape (n, d), (n,)
    n_generators : int
        N, at most n.
    steps : int
        Gradient steps of each copy.
    seed : int

    Raises
    ------
    DataError
        No column varies.
    ConfigError
        Too few generators to search among.
    """
    check_generators(n_generators)
    fitted = FittedRows(model, X, y)
    clusters_seed = derive_int_seed(seed, "clusters")
    parts = _cluster_rows(fitted.latent_means(), n_generators, clusters_seed)
    t = model._target_score(y)

    def arrays(copy: TunedCopy, rows: np.ndarray) -> dict[str, np.ndarray]:
        root, centre = _latent_gaussian(
            copy.means, copy.spread, t=t[rows], n_classes=model.n_classes_
        )
        # log shares of classes, or mean and log spread of a regression's target
        own = t[rows]
        if model.n_classes_:
            counts = np.bincount(own, minlength=model.n_classes_) + 0.5
            target = np.log(counts / counts.sum())
        else:
            target = np.array([own.mean(), np.log(max(own.std(), 1e-3))])
        return {**copy.weights, ROOT: root, CENTRE: centre, TARGET: target}

    everything = np.arange(len(y))
    whole = arrays(fitted.tune_copy(everything, steps=0, seed=0), everything)
    flat = FlatWeights(whole)
    initial = []
    for number, rows in enumerate(parts):
        copy_seed = derive_int_seed(seed, "copy", number)
        copy = fitted.tune_copy(rows, steps=steps, seed=copy_seed)
        initial.append(flat.join(arrays(copy, rows)))
    return GeneratorSpace(
        model=model, initial=np.array(initial), base=flat.join(whole), flat=flat
    )


def _cluster_rows(means: np.ndarray, n_clusters: int, seed: int) -> list[np.ndarray]:
    """Return the positions of each cluster's rows, a few shared where a cluster is small."""
    with threadpool_limits(1):
        clusters = KMeans(n_clusters, n_init=3, random_state=seed).fit(means)
    parts = []
    for number, centre in enumerate(clusters.cluster_centers_):
        rows = np.flatnonzero(clusters.labels_ == number)
        if len(rows) < LEAST_CLUSTER:
            distance = ((means - centre) ** 2).sum(axis=1)
            rows = np.sort(np.argsort(distance, kind="stable")[:LEAST_CLUSTER])
        parts.append(rows)
    return parts


def _latent_gaussian(
    means: np.ndarray, spread: np.ndarray, *, t: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return A and b: of each class with rows enough, else of all rows; of a regression on t."""
    latent = means.shape[1]
    if not n_classes:
        design = np.column_stack([np.ones(len(t)), t])
        centre, *_ = np.linalg.lstsq(design, means, rcond=None)
        root = _covariance_root(means - design @ centre, spread)
        return root[None], centre
    roots, centres = [], []
    for label in range(n_classes):
        rows = means[t == label]
        # a covariance of l dimensions asks for more than l rows
        if len(rows) < 2 * latent:
            rows = means
        roots.append(_covariance_root(rows, spread))
        centres.append(rows.mean(axis=0))
    return np.array(roots), np.array(centres)


def _covariance_root(rows: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the symmetric root of the covariance of z: of its means, and around them."""
    covariance = np.cov(rows.T) + np.diag(spread + RIDGE)
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(values.clip(0))) @ vectors.T
