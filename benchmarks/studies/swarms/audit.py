"""What rows are worth: to takers, to their re-fits and to families unseen, and on real rows.

Nothing of this took part in the search: the rows are fresh, the auditor's rows and the test fold
were seen by nobody.

Notation
--------
w : (r,) density ratio of made to real rows, for real rows of the test fold
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingClassifier

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.stats.weighted_mean import kish_size
from amlb_ext.synthesizers.swarm.answers import best_labels, mendable, performance
from amlb_ext.synthesizers.swarm.arena import MadeBatch
from amlb_ext.validity.measures import finite_or_none
from benchmarks.studies.swarms.prepare import Court, StudyArena
from benchmarks.studies.swarms.rivals import take_rows

Figures = dict[str, float | None]
#: A label is rejected where the auditor gives it a smaller chance, or where a number lies more of
#: the auditor's errors away.
REJECTED_CHANCE, REJECTED_ERRORS = 0.2, 2.5
#: Below this share of supported rows, or this effective size, too few real rows are there.
LEAST_SUPPORTED, LEAST_SIZE = 0.2, 50
#: Largest density ratio.
LARGEST_RATIO = 20.0
#: Real rows that are chosen by features alone.
CHOSEN_SHARE = 0.2
#: Rows among which regret draws, for each row that is returned.
REGRET_POOL = 5


def audit_rows(arena: StudyArena, court: Court, made: MadeBatch) -> Figures:
    """Return the figures of Table 2 for rows of one source."""
    [fresh] = arena.score([made])
    # by the search's own measure, guard included: set against what the search reported
    figures: Figures = {"fresh": float(arena.objective(fresh))}
    t = arena.teacher.predict(made.X)
    order = np.zeros(0)
    asked: dict[str, Any] = {"y": made.y, "t": t, "variance": arena.variance}
    for who, panel in court.panels.items():
        predicted = panel.predict(made.X)
        p = performance(predicted, arena.labels, **asked).mean(axis=1)
        excess = performance(predicted, "honest", **asked).mean(axis=1)
        figures[who] = float(1 - p.max())
        figures[f"{who} excess"] = float(1 - excess.max())
        if who == "unseen":
            order = p
    labels = best_labels(t) if arena.is_honest else made.y
    figures["rejected"] = share_rejected(court.auditor, made.X, labels)
    figures["supported"] = float(fresh.supported.mean())
    weights = _density_ratio(arena, court, made)
    figures["size"] = kish_size(weights)
    # a ratio that is the same for all rows looks like a full sample and says nothing
    if fresh.supported.mean() >= LEAST_SUPPORTED and kish_size(weights) >= LEAST_SIZE:
        figures |= _real_figures(court, weights)
        p = np.average(court.real_performance("unseen"), axis=1, weights=weights)
        figures["tau"] = finite_or_none(kendalltau(order, p).statistic)
    return figures


def share_rejected(auditor: Oracle, Z: np.ndarray, y: np.ndarray) -> float:
    """Return the share of labels that an auditor holds for wrong."""
    a = auditor.predict(Z)
    if a.ndim == 2:
        chance = a[np.arange(len(a)), y.astype(int)]
        return float((chance < REJECTED_CHANCE).mean())
    assert auditor.rmse_ is not None
    return float((np.abs(a - y) > REJECTED_ERRORS * max(auditor.rmse_, 1e-9)).mean())


def _density_ratio(arena: StudyArena, court: Court, made: MadeBatch) -> np.ndarray:
    """Return w of the real rows: each half gets its ratio from a test that saw the other."""
    made_Z, real = fill_missing(made.X), fill_missing(court.Z)
    half = np.arange(len(real)) % 2
    odds = np.empty(len(real))
    for part in (0, 1):
        learn = real[half != part]
        test = HistGradientBoostingClassifier(
            max_iter=40,
            max_leaf_nodes=12,
            early_stopping=False,
            class_weight="balanced",
            random_state=derive_int_seed(arena.seed, *arena.key, "density", part),
        ).fit(
            np.vstack([made_Z, learn]),
            np.arange(len(made_Z) + len(learn)) < len(made_Z),
        )
        chance = test.predict_proba(real[half == part])[:, 1]
        odds[half == part] = chance / (1 - chance).clip(1e-9)
    return np.clip(odds, 0.0, LARGEST_RATIO)


def _real_figures(court: Court, weights: np.ndarray | None) -> Figures:
    """Return difficulty of real rows to unseen families, and what an auditor gains there."""
    s = court.real_performance("unseen")
    [auditor] = court.real_performance("auditor")
    gain, _ = mendable(s, auditor, weights)
    difficulty = 1 - np.average(s, axis=1, weights=weights).max()
    return {"real": float(difficulty), "real gain": finite_or_none(gain)}


def draw_by_regret(arena: StudyArena, n: int) -> MadeBatch:
    """Draw rows of all initial generators again, each by the least regret of any taker there."""
    rng = random_stream(arena.seed, *arena.key, "regret")
    each = -(-n * REGRET_POOL // arena.space.n_generators)
    parts = [arena.make_rows(theta, each, rng) for theta in arena.space.initial]
    pool = MadeBatch(*map(np.concatenate, zip(*parts, strict=True)))
    [scored] = arena.score([pool], "honest")
    # where nobody errs all rows count alike
    chance = 1 - scored.s.max(axis=0) + 1e-6
    drawn = rng.choice(len(chance), n, replace=False, p=chance / chance.sum())
    return take_rows(pool, drawn)


def real_rows_by_regret(arena: StudyArena, court: Court) -> np.ndarray:
    """Return positions of the judges' real rows with the largest least regret of any taker.

    They are chosen by features alone: their labels are never looked at.
    """
    predicted, t = arena.ask(court.Z)
    regret = 1 - performance(
        predicted, "honest", y=court.y, t=t, variance=arena.variance
    )
    # ties of the least regret are settled by the mean one
    value = regret.min(axis=0) + 1e-3 * regret.mean(axis=0)
    n = max(1, int(CHOSEN_SHARE * len(value)))
    return np.argsort(-value, kind="stable")[:n]


def by_x_figures(arena: StudyArena, court: Court) -> Figures:
    """Return what real rows are worth that are chosen by features alone."""
    chosen = np.zeros(len(court.y))
    chosen[real_rows_by_regret(arena, court)] = 1.0
    figures: Figures = {"size": float(chosen.sum()), **_real_figures(court, chosen)}
    for who in court.panels:
        s = court.real_performance(who)
        figures[who] = float(1 - np.average(s, axis=1, weights=chosen).max())
    return figures


def held_out_figures(court: Court) -> Figures:
    """Return the difficulty of all real test rows, by their labels."""
    figures: Figures = {}
    for who in court.panels:
        figures[who] = float(1 - court.real_performance(who).mean(axis=1).max())
    return {**figures, "real": figures["unseen"]}
