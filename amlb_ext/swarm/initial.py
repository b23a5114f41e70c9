"""The initial generators: one model of all rows, and N copies of it, each tuned on a cluster.

Section 2.1 of Data Swarms: cluster the data, fine-tune one base model on each cluster. The clusters
are those of k-means on the latent means of the base.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.swarm.particles import check_generators
from amlb_ext.swarm.space import CENTRE, ROOT, TARGET, FlatWeights, GeneratorSpace

#: Fewer rows than this in a cluster are joined by those nearest to its centre.
LEAST_CLUSTER = 32
#: Added to the latent covariance, so that it has a root.
RIDGE = 1e-6


@dataclass(frozen=True, kw_only=True)
class InitialSettings:
    """How the initial generators are made.

    Attributes
    ----------
    n_generators : int
        N.
    latent, width : int
        Of the base VAE.
    steps : int
        Gradient steps of each fine-tuning.
    base_steps : int
        Most gradient steps of the base.
    device : str
        ``auto`` trains the base on a GPU where there is one; ``cpu`` makes the same bytes with
        and without one.
    """

    n_generators: int = 8
    latent: int = 16
    width: int = 96
    steps: int = 250
    base_steps: int = 1000
    device: str = "auto"


def make_generators(
    X: np.ndarray,
    y: np.ndarray,
    *,
    cards: tuple[int, ...],
    n_classes: int,
    settings: InitialSettings,
    seed: int,
    key: tuple[str | int, ...],
) -> GeneratorSpace:
    """Fit the base on all rows and tune N copies of it.

    Parameters
    ----------
    X, y : ndarray of shape (n, d), (n,)
        Encoded rows and targets, see :mod:`amlb_ext.synthesizers.base`.
    cards : tuple of int
    n_classes : int
        C, or 0 for regression.
    settings : InitialSettings
    seed : int
    key : tuple
        Of the random streams: task, fold, ``swarm``.

    Raises
    ------
    DataError
        No column varies.
    ConfigError
        Too few generators to search among.
    """
    # torch is loaded by whoever makes generators, not by whoever reads of them
    from amlb_ext.synthesizers.tuned_copies import FittedRows, TunedCopy
    from amlb_ext.synthesizers.vae import VAE

    check_generators(settings.n_generators)
    base = VAE(
        latent=settings.latent,
        decoder=settings.width,
        max_steps=settings.base_steps,
        device=settings.device,
    )
    base.fit(
        X,
        y,
        cards=cards,
        n_classes=n_classes,
        rng=random_stream(seed, *key, "base"),
    )
    fitted = FittedRows(base, X, y)
    parts = _cluster_rows(
        fitted.latent_means(),
        settings.n_generators,
        derive_int_seed(seed, *key, "clusters"),
    )
    t = base._target_score(y)

    def arrays(copy: TunedCopy, rows: np.ndarray) -> dict[str, np.ndarray]:
        root, centre = _latent_gaussian(
            copy.means, copy.spread, t=t[rows], n_classes=n_classes
        )
        target = _target_parameters(t[rows], n_classes)
        return {**copy.weights, ROOT: root, CENTRE: centre, TARGET: target}

    everything = np.arange(len(y))
    whole = arrays(fitted.tune_copy(everything, steps=0, seed=0), everything)
    flat = FlatWeights(whole)
    initial = []
    for number, rows in enumerate(parts):
        copy = fitted.tune_copy(
            rows,
            steps=settings.steps,
            seed=derive_int_seed(seed, *key, number),
        )
        initial.append(flat.join(arrays(copy, rows)))
    return GeneratorSpace(
        initial=np.array(initial),
        base=flat.join(whole),
        flat=flat,
        prep=base.prep_,
        margins=base.margins_,
        noise=np.asarray(base.noise_),
        low=base.low_,
        high=base.high_,
        target_map=None if n_classes else base.target_map_,
        n_classes=n_classes,
        sizes=tuple(len(rows) for rows in parts),
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


def _target_parameters(t: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the log shares of classes, or mean and log spread of a regression's target."""
    if not n_classes:
        return np.array([t.mean(), np.log(max(t.std(), 1e-3))])
    counts = np.bincount(t, minlength=n_classes) + 0.5
    return np.log(counts / counts.sum())
