"""Where the rows of a design may come from: each proposes features, never targets."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.config import SearchConfig, SynthesizerConfig
from amlb_ext.experiments.fidelity.sample import Sample
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.synthesizers import make_synthesizer

#: Rows proposed.
PROPOSED = 5000
#: Failures that a search starts from at most.
STARTS = 400


def population(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the whole population: training rows and S, moved towards neighbours."""
    return _synthetic(s, "local", rng)


def population_vae(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the whole population, from a conditional VAE."""
    return _synthetic(s, "vae", rng)


def _synthetic(s: Sample, name: str, rng: np.random.Generator) -> np.ndarray:
    models = s.draw.ready.models
    Z, y = np.vstack([models.Z, s.points.Z]), np.concatenate([models.y[:, 0], s.y])
    return _sampled(s, name, Z, y, rng)


def _sampled(
    s: Sample, name: str, Z: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    models = s.draw.ready.models
    model = make_synthesizer(SynthesizerConfig(name=name))
    model.fit(Z, y, cards=models.encoder.cards_, n_classes=models.n_classes, rng=rng)
    return model.sample(PROPOSED, rng)[0]


def real(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose the unlabelled real rows: the ceiling of what made features can give."""
    return s.draw.unlabelled.Z


def failures(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows from a copula of all failures: out of fold in training, and those of S."""
    return _sampled(s, "copula", *_failing(s), rng)


def searched(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows near failures where F departs most from the teacher (reducible hardness)."""
    Z, y = _failing(s)
    some = rng.choice(len(Z), min(STARTS, len(Z)), replace=False)
    some = np.repeat(some, max(1, PROPOSED // (3 * len(some))))
    models = s.draw.ready.models
    pool = np.vstack([models.Z, s.points.Z])
    m = models.encoder.n_categorical_
    domain = learn_domain(
        pool, models.Z, models.y[:, 0], n_classes=models.n_classes, n_categorical=m
    )
    config = SearchConfig(
        kappa=0.1,
        fitness="reducible",
        population=10,
        generations=6,
        strength=0.05,
        sigma2=0.0,
    )
    best, _ = genetic_search(
        models.targets[0].baseline.predict,
        Z[some],
        y[some],
        domain=domain,
        config=config,
        seed=int(rng.integers(2**31)),
        oracle=models.targets[0].oracle.predict,
    )
    return _jittered(best, domain.low, domain.high, m, rng)


def neighbourhoods(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows from the local covariance of real rows around each failure.

    A real neighbour of a failure gives the categories, all together, and the place; its numbers
    move along the covariance of the neighbourhood and stay within its range.
    """
    models = s.draw.ready.models
    pool = np.vstack([models.Z, s.points.Z])
    centres = _failing(s)[0]
    m = models.encoder.n_categorical_
    near = NearestNeighbors(n_neighbors=min(40, len(pool))).fit(fill_missing(pool))
    groups = near.kneighbors(fill_missing(centres), return_distance=False)
    times = max(1, PROPOSED // len(centres))
    out = []
    for group in groups:
        numbers = pool[group][:, m:]
        parents = pool[rng.choice(group, times)]
        known = np.where(np.isnan(numbers), np.nanmean(pool[:, m:], axis=0), numbers)
        spread = known - known.mean(axis=0)
        # a Gaussian with the sample covariance, without forming it
        step = rng.standard_normal((times, len(group))) @ spread / np.sqrt(len(group))
        moved = parents[:, m:] + 0.3 * step
        parents[:, m:] = np.clip(moved, known.min(axis=0), known.max(axis=0))
        out.append(parents)
    return np.vstack(out)


def _failing(s: Sample) -> tuple[np.ndarray, np.ndarray]:
    """All failures known: of the training rows, out of fold, and of S."""
    train = s.draw.ready.train
    Z = np.vstack([train.Z[train.is_bad], s.points.Z[s.bad]])
    return Z, np.concatenate([train.y[train.is_bad, 0], s.y[s.bad]])


def _jittered(
    Z: np.ndarray, low: np.ndarray, high: np.ndarray, m: int, rng: np.random.Generator
) -> np.ndarray:
    Z = Z.copy()
    noise = rng.normal(0.0, 0.025, size=Z[:, m:].shape)
    Z[:, m:] = np.clip(Z[:, m:] + noise, low[m:], high[m:])
    return Z
