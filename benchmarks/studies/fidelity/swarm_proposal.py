"""Rows of a swarm of generators that is searched for ranking fidelity itself.

The case a swarm could win: a few hundred labelled rows, where a generator is the only source of
volume. Its objective is what a certificate asks of made rows: models ordered on them as on real
failures. A mixture of generators makes rows; the teacher says what F's failures there would cost
each model; the order of the models is compared with that on real failures which those models did
not see (they are cross-fitted on the training rows).

The models of the objective, the *takers*, are none of the study's candidates, so every candidate
that judges the result is unseen.

Notation
--------
c : (N,) coefficients of a mixture, sum 1;  tau : Kendall's tau-b
delta : (m,) loss of each taker minus loss of F
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.split import cross_folds
from amlb_ext.models.registry import ModelSpec
from amlb_ext.stats.ranking import kendall_tau
from amlb_ext.synthesizers.swarm.cma_search import CmaSearch
from amlb_ext.synthesizers.swarm.initial import make_generators
from amlb_ext.synthesizers.swarm.space import GeneratorSpace
from amlb_ext.synthesizers.vae import VAE
from amlb_ext.validity.candidates import fit_zoo
from benchmarks.studies.fidelity.draw import Points, score_rows_by
from benchmarks.studies.fidelity.proposals import PROPOSED, Proposal, stack_real_rows
from benchmarks.studies.fidelity.sample import Sample, expected_contrasts
from benchmarks.studies.swarms.rivals import RandomAffine

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
    if "swarm generators" not in s.shared:
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
        s.shared["swarm generators"] = make_generators(
            base,
            X,
            y,
            n_generators=GENERATORS,
            steps=STEPS,
            seed=derive_int_seed(s.draw.seed, s.draw.table, "study", s.key, "swarm"),
        )
    space: GeneratorSpace = s.shared["swarm generators"]
    return space


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
    points: Points = score_rows_by(draw.prepared, takers, draw.teacher, Z)
    tau, beta = expected_contrasts(draw, points)
    values = []
    for k in range(len(batch)):
        own = slice(k * n, (k + 1) * n)
        values.append(_mean_tau(tau[own], beta[own], parts))
    return np.array(values)


def _mean_tau(tau: np.ndarray, beta: np.ndarray, parts: list[_Part]) -> float:
    """Return Kendall's tau of the takers on one mixture's rows, averaged over the parts."""
    total = beta.sum()
    taus = []
    start = 0
    for part in parts:
        stop = start + len(part.takers)
        # where F is expected to fail nowhere, made rows order nothing
        made = np.zeros(len(part.real))
        if total > 0:
            made = tau[:, start:stop].sum(axis=0) / total
        taus.append(kendall_tau(made, part.real))
        start = stop
    return float(np.mean(taus))


SWARM = Proposal(stream="swarm", propose=propose_by_swarm)
SWARM_START = Proposal(stream="swarm_start", propose=propose_by_start)
