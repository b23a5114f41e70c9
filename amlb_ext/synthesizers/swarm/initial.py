"""The initial generators: one model of all rows, and N copies of it, each tuned on a cluster.

Section 2.1 of Data Swarms: cluster the data, fine-tune one base model on each cluster. The clusters
are those of k-means on the latent means of the base.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from amlb_ext.core.rng import derive_int_seed
from amlb_ext.synthesizers.swarm.particles import check_generators
from amlb_ext.synthesizers.swarm.space import (
    CENTRE,
    ROOT,
    TARGET,
    FlatWeights,
    GeneratorSpace,
)
from amlb_ext.synthesizers.swarm.tuned_copies import FittedRows, TunedCopy
from amlb_ext.synthesizers.vae import VAE

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
        target = _target_parameters(t[rows], model.n_classes_)
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


def _target_parameters(t: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the log shares of classes, or mean and log spread of a regression's target."""
    if not n_classes:
        return np.array([t.mean(), np.log(max(t.std(), 1e-3))])
    counts = np.bincount(t, minlength=n_classes) + 0.5
    return np.log(counts / counts.sum())
