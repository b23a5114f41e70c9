"""Where the rows of a design may come from: each proposes features, never targets.

One of them is a swarm of generators that is searched for ranking fidelity itself: the case a swarm
could win, a few hundred labelled rows, where a generator is the only source of volume. Its
objective is what a certificate asks of made rows: models ordered on them as on real failures. A
mixture of generators makes rows; the teacher says what F's failures there would cost each model;
the order of the models is compared with that on real failures which those models did not see (they
are cross-fitted on the training rows). The models of the objective, the *takers*, are none of the
study's candidates, so every candidate that judges the result is unseen.

Notation
--------
c : (N,) coefficients of a mixture, sum 1;  tau : Kendall's tau-b
delta : (m,) loss of each taker minus loss of F
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.core import row_losses
from amlb_ext.core.config import Operators, SearchConfig, SynthesizerConfig
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline, fill_missing
from amlb_ext.hardening.search import genetic_search, learn_domain
from amlb_ext.hardening.split import cross_folds
from amlb_ext.models.registry import ModelSpec
from amlb_ext.stats.ranking import kendall_tau
from amlb_ext.synthesizers import make_synthesizer
from amlb_ext.synthesizers.swarm.particles import CmaSearch
from amlb_ext.synthesizers.swarm.space import GeneratorSpace, make_generators
from amlb_ext.synthesizers.vae import VAE
from amlb_ext.validity.candidates import fit_zoo
from benchmarks.studies.fidelity.draw import once
from benchmarks.studies.fidelity.sample import Sample, expected_contrasts
from benchmarks.studies.swarms.methods import RandomAffine

#: Rows proposed.
PROPOSED = 5000
#: Failures that a search starts from at most.
STARTS = 400
#: Rows of a neighbourhood, and how far a row moves in units of its covariance.
NEIGHBOURS, STEP = 40, 0.3
#: Standard deviation of the jitter after a search, in encoded units.
JITTER = 0.025


def propose_population(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the whole population: training rows and S, moved towards neighbours."""
    y = np.concatenate([s.draw.prepared.models.y[:, 0], s.y])
    return _fit_and_sample(s, "local", stack_real_rows(s), y, rng=rng)


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
        operators=Operators(
            population=10,
            generations=6,
            fitness="reducible",
            strength=0.05,
            sigma2=0.0,
        ),
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


#: The base of all generators; on the CPU, so that a draw has the same bytes everywhere.
BASE: dict[str, Any] = {"latent": 16, "decoder": 96, "max_steps": 1000, "device": "cpu"}
#: Initial generators, and gradient steps of each: one cluster of some 500 rows has 80, so a step of
#: its fine-tuning sees them all, and 100 steps are 100 epochs.
GENERATORS, STEPS = 6, 100
#: Iterations that set the budget N (1 + K) of the search.
ITERATIONS = 10
#: Rows of an evaluation, and of the comparison of the finalists on fresh rows.
EVALUATION_ROWS, FINAL_ROWS, FINALISTS = 400, 2000, 5
#: Parts of the training rows on which the takers are cross-fitted.
PARTS = 2
#: Fewer real failures than this in a part order nothing.
LEAST_FAILURES = 3


def taker_specs(kind: Kind) -> dict[str, ModelSpec]:
    """Return the takers: families as in the zoo of candidates, of other capacities.

    Examples
    --------
    >>> from amlb_ext.validity.candidates import candidate_zoo
    >>> zoo, takers = candidate_zoo(Kind.BINARY), taker_specs(Kind.BINARY)
    >>> len(takers), any(spec in zoo.values() for spec in takers.values())
    (8, False)
    """
    classes = kind.is_classification
    ending = "Classifier" if classes else "Regressor"
    linear = ModelSpec("sklearn.linear_model.Ridge", {"alpha": 100.0}, "onehot")
    if classes:
        weak = {"C": 0.01, "max_iter": 300}
        linear = ModelSpec("sklearn.linear_model.LogisticRegression", weak, "onehot")
    shapes = {
        "neighbours_10": ("neighbors.KNeighbors", "onehot", {"n_neighbors": 10}),
        "neighbours_50": ("neighbors.KNeighbors", "onehot", {"n_neighbors": 50}),
        "tree_5": ("tree.DecisionTree", "ordinal", {"max_depth": 5}),
        "tree_leaf_20": ("tree.DecisionTree", "ordinal", {"min_samples_leaf": 20}),
        "forest_4": (
            "ensemble.RandomForest",
            "ordinal",
            {"n_estimators": 30, "max_depth": 4},
        ),
        "extra_trees_6": (
            "ensemble.ExtraTrees",
            "ordinal",
            {"n_estimators": 30, "max_depth": 6},
        ),
        "boosting_short": (
            "ensemble.HistGradientBoosting",
            "ordinal",
            {"max_iter": 15, "max_leaf_nodes": 8, "early_stopping": False},
        ),
    }
    specs = {"linear_strict": linear}
    for name, (path, encoding, params) in shapes.items():
        specs[name] = ModelSpec(f"sklearn.{path}{ending}", params, encoding)
    return specs


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Takers that did not see a part of the training rows, and how they do on its failures."""

    takers: tuple[EstimatorBaseline, ...]
    real: np.ndarray


def propose_by_swarm(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the mixture whose rows order models as real failures do."""
    space = _generators(s)
    c = search_fidelity(s, space)
    rows, _ = space.sample(c @ space.initial, PROPOSED, rng)
    return rows


def propose_by_start(s: Sample, rng: np.random.Generator) -> np.ndarray:
    """Propose rows of the same generators in equal shares: what no search gives."""
    space = _generators(s)
    each = -(-PROPOSED // space.n_generators)
    parts = [space.sample(theta, each, rng)[0] for theta in space.initial]
    return np.vstack(parts)[:PROPOSED]


def search_fidelity(s: Sample, space: GeneratorSpace) -> np.ndarray:
    """Return the coefficients whose rows agree best with real failures, ``(N,)``.

    A random affine search and CMA-ES share the budget; the best of both are compared on fresh
    rows. Without real failures enough the uniform soup stands.
    """
    parts = _cross_fit_takers(s)
    n = space.n_generators
    if not parts:
        return np.full(n, 1 / n)
    seen: dict[bytes, float] = {}
    evaluations = n * (1 + ITERATIONS) // 2
    for search in (
        RandomAffine(n, s.stage_stream("swarm affine"), evaluations),
        CmaSearch(n, s.stage_stream("swarm cma"), evaluations),
    ):
        while len(batch := search.ask()):
            # both searches begin at the corners, which are scored once
            unseen = np.array([c for c in batch if c.tobytes() not in seen])
            if len(unseen):
                scores = _agreements(s, space, unseen, parts, EVALUATION_ROWS)
                for c, score in zip(unseen, scores, strict=True):
                    seen[c.tobytes()] = float(score)
            search.tell(np.array([seen[c.tobytes()] for c in batch]))
    # best first; of equal scores the one seen first
    best_first = sorted(seen, key=seen.__getitem__, reverse=True)
    finalists = np.array([np.frombuffer(key) for key in best_first[:FINALISTS]])
    fresh = _agreements(s, space, finalists, parts, FINAL_ROWS, stage="final")
    return np.asarray(finalists[int(np.argmax(fresh))])


def _generators(s: Sample) -> GeneratorSpace:
    """Return generators of all labelled real rows, tuned once for all designs of a sample."""

    def tune() -> GeneratorSpace:
        models = s.draw.prepared.models
        X = stack_real_rows(s)
        y = np.concatenate([models.y[:, 0], s.y])
        base = VAE(**BASE).fit(
            X,
            y,
            cards=models.encoder.cards_,
            n_classes=models.n_classes,
            rng=s.stage_stream("swarm base"),
        )
        return make_generators(
            base,
            X,
            y,
            n_generators=GENERATORS,
            steps=STEPS,
            seed=derive_int_seed(s.draw.seed, s.draw.table, "study", s.key, "swarm"),
        )

    return once(s.shared, "swarm generators", tune)


def _cross_fit_takers(s: Sample) -> list[_Part]:
    """Return takers without each part of the training rows, and delta on the part's failures.

    The failures of S join every part: no taker saw them.
    """
    draw = s.draw
    train = draw.prepared.train
    kind = draw.task.kind
    models = draw.prepared.models
    y = train.y[:, 0]
    seed = derive_int_seed(draw.seed, draw.table, "study", s.key, "swarm takers")
    parts = []
    for learn, held in cross_folds(y, models.n_classes, PARTS, seed):
        fitted, _ = fit_zoo(
            taker_specs(kind),
            kind=kind,
            n_classes=models.n_classes,
            n_categorical=models.encoder.n_categorical_,
            Z=train.Z[learn],
            y=y[learn],
            seed=seed,
        )
        bad = held[train.is_bad[held]]
        if len(bad) + len(s.bad) < LEAST_FAILURES:
            continue
        Z = np.vstack([train.Z[bad], s.points.Z[s.bad]])
        f = np.concatenate([train.f[bad, 0], s.points.f[s.bad]])
        truth = np.concatenate([y[bad], s.y[s.bad]])
        loss_of_f = row_losses.row_loss(truth, f)
        takers = tuple(fitted.values())
        deltas = []
        for taker in takers:
            loss = row_losses.row_loss(truth, taker.predict(Z))
            deltas.append(float((loss - loss_of_f).mean()))
        parts.append(_Part(takers=takers, real=np.array(deltas)))
    return parts


def _agreements(
    s: Sample,
    space: GeneratorSpace,
    batch: np.ndarray,
    parts: list[_Part],
    n: int,
    stage: str = "search",
) -> np.ndarray:
    """Return each mixture's tau between made and real failures, averaged over the parts.

    The rows of all mixtures pass through every model in one predict.

    Parameters
    ----------
    s : Sample
    space : GeneratorSpace
    batch : ndarray of shape (k, N)
        Coefficients of k mixtures.
    parts : list of _Part
    n : int
        Rows of each mixture.
    stage : str
        Keys the random numbers of the rows.

    Returns
    -------
    ndarray of shape (k,)
    """
    draw = s.draw
    made_rows = []
    for c in batch:
        # common random numbers: two mixtures differ by what they are
        rng = random_stream(draw.seed, draw.table, "study", s.key, "swarm rows", stage)
        rows, _ = space.sample(c @ space.initial, n, rng)
        made_rows.append(rows)
    encoder = draw.prepared.models.encoder
    Z = encoder.transform(encoder.inverse(np.vstack(made_rows)))
    takers = tuple(taker for part in parts for taker in part.takers)
    points = draw.score_rows(Z, takers)
    tau, beta = expected_contrasts(draw, points)
    # the takers of one part after those of another
    ends = np.cumsum([len(part.takers) for part in parts])
    values = []
    for k in range(len(batch)):
        own = slice(k * n, (k + 1) * n)
        total = beta[own].sum()
        # where F is expected to fail nowhere, made rows order nothing
        made = np.zeros(len(takers))
        if total > 0:
            made = tau[own].sum(axis=0) / total
        taus = [
            kendall_tau(of_part, part.real)
            for of_part, part in zip(np.split(made, ends[:-1]), parts, strict=True)
        ]
        values.append(float(np.mean(taus)))
    return np.array(values)


#: Stream → how rows are proposed, from S and the stream. The names key random streams, which are
#: part of every published number: never change one.
PROPOSALS: dict[str, Callable[[Sample, np.random.Generator], np.ndarray]] = {
    "population": propose_population,
    "failures": propose_failures,
    "searched": propose_searched,
    "neighbourhoods": propose_neighbourhoods,
    "swarm": propose_by_swarm,
    "swarm_start": propose_by_start,
}
