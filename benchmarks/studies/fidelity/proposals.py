"""Where the rows of a design may come from: each proposes features, never targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core.config import Operators, SearchConfig, SynthesizerConfig
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.synthesizers import make_synthesizer
from benchmarks.studies.fidelity.sample import Sample

#: Rows proposed.
PROPOSED = 5000
#: Failures that a search starts from at most.
STARTS = 400
#: Rows of a neighbourhood, and how far a row moves in units of its covariance.
NEIGHBOURS, STEP = 40, 0.3
#: Standard deviation of the jitter after a search, in encoded units.
JITTER = 0.025


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A way to propose rows, and the random stream that it draws from.

    Attributes
    ----------
    stream : str
        Keys the random stream, so it is a constant of its own: renaming the function must not
        move a number. Designs of one stream share the rows.
    propose : callable
        From S and the stream to encoded rows.
    """

    stream: str
    propose: Callable[[Sample, np.random.Generator], np.ndarray]


def propose_population(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the whole population: training rows and S, moved towards neighbours."""
    return _sample_population(s, "local", rng)


def propose_by_vae(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the whole population, from a conditional VAE."""
    return _sample_population(s, "vae", rng)


def propose_failures(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows from a copula of all failures: out of fold in training, and those of S."""
    Z, y = _known_failures(s)
    return _fit_and_sample(s, "copula", Z, y, rng=rng)


def propose_searched(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows near failures where F departs most from the teacher (reducible hardness)."""
    models = s.draw.prepared.models
    [target_models] = models.targets
    n_categorical = models.encoder.n_categorical_
    # failures are copied to a third of the rows that other designs propose: a search asks F
    # for every row of every generation
    Z, y = _known_failures(s)
    n_starts = min(STARTS, len(Z))
    n_copies = max(1, PROPOSED // (3 * n_starts))
    starts = rng.choice(len(Z), n_starts, replace=False)
    starts = np.repeat(starts, n_copies)
    domain = learn_domain(
        stack_real_rows(s),
        models.Z,
        models.y[:, 0],
        n_classes=models.n_classes,
        n_categorical=n_categorical,
    )
    config = SearchConfig(
        kappa=0.1,
        population=10,
        generations=6,
        operators=Operators(fitness="reducible", strength=0.05, sigma2=0.0),
    )
    best, _ = genetic_search(
        target_models.baseline.predict,
        Z[starts],
        y[starts],
        domain=domain,
        config=config,
        seed=int(rng.integers(2**31)),
        oracle=target_models.oracle.predict,
    )
    # copies of one start often end at the same row: jitter tells them apart
    jittered = best.copy()
    numbers = jittered[:, n_categorical:]
    noise = rng.normal(0.0, JITTER, size=numbers.shape)
    low = domain.low[n_categorical:]
    high = domain.high[n_categorical:]
    jittered[:, n_categorical:] = np.clip(numbers + noise, low, high)
    return jittered


def propose_neighbourhoods(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows from the local covariance of real rows around each failure.

    A real neighbour of a failure gives the categories, all together, and the place; its numbers
    move along the covariance of the neighbourhood and stay within its range.
    """
    pool = stack_real_rows(s)
    failures, _ = _known_failures(s)
    n_categorical = s.draw.prepared.models.encoder.n_categorical_
    n_neighbours = min(NEIGHBOURS, len(pool))
    search = NearestNeighbors(n_neighbors=n_neighbours).fit(fill_missing(pool))
    groups = search.kneighbors(fill_missing(failures), return_distance=False)
    n_per_failure = max(1, PROPOSED // len(failures))
    # a missing number stands at its column's mean while the covariance is taken
    column_means = np.nanmean(pool[:, n_categorical:], axis=0)
    proposed = []
    for group in groups:
        numbers = pool[group][:, n_categorical:]
        parents = pool[rng.choice(group, n_per_failure)]
        filled = np.where(np.isnan(numbers), column_means, numbers)
        centred = filled - filled.mean(axis=0)
        # a Gaussian with the sample covariance, without forming it
        weights = rng.standard_normal((n_per_failure, len(group)))
        step = weights @ centred / np.sqrt(len(group))
        moved = parents[:, n_categorical:] + STEP * step
        parents[:, n_categorical:] = np.clip(
            moved, filled.min(axis=0), filled.max(axis=0)
        )
        proposed.append(parents)
    return np.vstack(proposed)


#: The streams below are part of every published number: never change one.
POPULATION = Proposal(stream="population", propose=propose_population)
POPULATION_VAE = Proposal(stream="population_vae", propose=propose_by_vae)
FAILURES = Proposal(stream="failures", propose=propose_failures)
SEARCHED = Proposal(stream="searched", propose=propose_searched)
NEIGHBOURHOODS = Proposal(stream="neighbourhoods", propose=propose_neighbourhoods)


def _sample_population(s: Sample, name: str, rng: np.random.Generator) -> np.ndarray:
    """Sample a synthesizer fitted on all labelled real rows."""
    y = np.concatenate([s.draw.prepared.models.y[:, 0], s.y])
    return _fit_and_sample(s, name, stack_real_rows(s), y, rng=rng)


def _fit_and_sample(
    s: Sample, name: str, Z: np.ndarray, y: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    models = s.draw.prepared.models
    synthesizer = make_synthesizer(SynthesizerConfig(name=name))
    synthesizer.fit(
        Z,
        y,
        cards=models.encoder.cards_,
        n_classes=models.n_classes,
        rng=rng,
    )
    # the targets that come with the rows are dropped: a design labels them by the teacher
    rows, _ = synthesizer.sample(PROPOSED, rng)
    return rows


def stack_real_rows(s: Sample) -> np.ndarray:
    """Return the training rows, then those of S."""
    return np.vstack([s.draw.prepared.models.Z, s.points.Z])


def _known_failures(s: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets of all known failures: out of fold in training, and those of S."""
    train = s.draw.prepared.train
    Z = np.vstack([train.Z[train.is_bad], s.points.Z[s.bad]])
    y = np.concatenate([train.y[train.is_bad, 0], s.y[s.bad]])
    return Z, y
