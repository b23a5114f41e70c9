"""One draw of Tables 1 to 3 on one table: everything fitted once, every method by every form.

A draw is a split of the table, its roles, models, generators and searches; all of its random
streams are keyed by (table, number), so draws of different tables and numbers share nothing. What
rows are worth is measured on fresh ones: to takers, to their re-fits and to families unseen, and on
real rows. Nothing of that took part in the search.

Notation
--------
w : (r,) density ratio of made to real rows, for real rows of the test fold
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingClassifier

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.stats.weighted_mean import kish_size
from amlb_ext.synthesizers.base import best_labels
from amlb_ext.synthesizers.swarm.arena import MadeBatch
from amlb_ext.synthesizers.swarm.objectives import mendable, performance
from amlb_ext.validity.measures import finite_or_none
from benchmarks.studies.engine import Rows, flat_rows
from benchmarks.studies.swarms.choices import (
    FORMS,
    OBJECTIVES,
    FormName,
    SwarmChoice,
    parse_objective,
)
from benchmarks.studies.swarms.methods import FormRun, measure_objective, take_rows
from benchmarks.studies.swarms.populations import TrueTeacher
from benchmarks.studies.swarms.prepare import Court, StudyArena, prepare_draw

Numbers = dict[str, float | None]
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


def audit_rows(arena: StudyArena, court: Court, made: MadeBatch) -> Numbers:
    """Return the figures of Table 2 for rows of one source."""
    [fresh] = arena.score([made])
    # by the search's own measure, guard included: set against what the search reported
    figures: Numbers = {"fresh": float(arena.objective(fresh))}
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
    support, _ = check_labels(auditor.predict(Z), y, rmse=auditor.rmse_)
    # of classes a chance, of numbers minus a distance
    least = REJECTED_CHANCE if auditor.rmse_ is None else -REJECTED_ERRORS
    return float((support < least).mean())


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


def _difficulty(court: Court, who: str, weights: np.ndarray | None = None) -> float:
    """Return the loss of the best of a panel on the real rows."""
    s = np.average(court.real_performance(who), axis=1, weights=weights)
    return float(1 - s.max())


def _real_figures(court: Court, weights: np.ndarray) -> Numbers:
    """Return difficulty of real rows to unseen families, and what an auditor gains there."""
    [auditor] = court.real_performance("auditor")
    gain, _ = mendable(court.real_performance("unseen"), auditor, weights)
    difficulty = _difficulty(court, "unseen", weights)
    return {"real": difficulty, "real gain": finite_or_none(gain)}


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


def by_x_figures(arena: StudyArena, court: Court) -> Numbers:
    """Return what real rows are worth that are chosen by features alone."""
    chosen = np.zeros(len(court.y))
    chosen[real_rows_by_regret(arena, court)] = 1.0
    worth = {who: _difficulty(court, who, chosen) for who in court.panels}
    return {"size": float(chosen.sum()), **_real_figures(court, chosen), **worth}


def held_out_figures(court: Court) -> Numbers:
    """Return the difficulty of all real test rows, by their labels."""
    figures: Numbers = {who: _difficulty(court, who) for who in court.panels}
    return {**figures, "real": figures["unseen"]}


#: Methods of Tables 2 and 3 that search; ``regret`` and ``by_x`` stand beside them.
SEARCHES = ("pso", "best_initial", "soups", "affine", "cma")
#: Forms of Table 3, each with the form of its search: labels of the truth itself, an honest search
#: under the truth, and an honest search under a fitted teacher, which the truth judges.
TRUTH_FORMS: dict[str, FormName] = {
    "literal": "literal",
    "honest": "honest",
    "fitted": "honest",
}

#: Labels → numbers, nested.
Figures = dict[str, Any]


# --- Table 1 ---


def draw_table_1(
    choice: SwarmChoice, task: Task | None, *, data: str, draw: int
) -> Rows:
    """Return, by objective, form and method, what it reports and gets on fresh rows."""
    prepared = prepare_draw(task, data, draw, choice, user=True)
    rows: Figures = {objective: {} for objective in choice.objectives or OBJECTIVES}
    for form in FORMS:
        run = FormRun(prepared, form, choice)
        for objective, entry in rows.items():
            entry[form] = measure_objective(run, objective, parse_objective(objective))
    return list(flat_rows(rows, "objective", "form", "method", "figure"))


# --- Table 2 ---


def draw_table_2(
    choice: SwarmChoice, task: Task | None, *, data: str, draw: int
) -> Rows:
    """Return, by form and method, its audit: takers, re-fits, unseen families, real rows.

    Of the form ``proof`` is what can be found on the table before any search.
    """
    prepared = prepare_draw(task, data, draw, choice, user=False)
    rows: Figures = {}
    for form in FORMS:
        run = FormRun(prepared, form, choice)
        arena, court = run.arena, prepared.court
        entry: Figures = {}
        for method in ("dev", "elicitation", "breeder"):
            entry[method] = audit_rows(arena, court, run.fixed[method])
        for method in SEARCHES:
            found = run.find(method, arena)
            made = run.fresh_rows(found, method, "difficult")
            audit = audit_rows(arena, court, made)
            entry[method] = {"reported": found.reported, **audit}
        entry["regret"] = audit_rows(arena, court, draw_by_regret(arena, choice.rows))
        entry["held_out"] = held_out_figures(court)
        entry["by_x"] = by_x_figures(arena, court)
        rows[form] = entry
    rows["proof"] = {"auditor": prepared.proof}
    return list(flat_rows(rows, "form", "method", "figure", objective="difficult"))


# --- Table 3 ---


def draw_table_3(
    choice: SwarmChoice, task: Task | None, *, data: str, draw: int
) -> Rows:
    """Return, by form, objective and method, what the truth says of its rows."""
    prepared = prepare_draw(task, data, draw, choice, user=False)
    fitted = prepared.arena
    truth = TrueTeacher(data, fitted.encoder, fitted.scale)
    rows: Figures = {}
    for form, searched in TRUTH_FORMS.items():
        arena = fitted if form == "fitted" else fitted.with_teacher(truth)
        # what an algorithm says of a generated problem: no label of the generator's own
        arena = dataclasses.replace(arena, is_relabelled=form == "literal")
        run = FormRun(dataclasses.replace(prepared, arena=arena), searched, choice)
        rows[form] = {}
        for objective in ("difficult", "separate"):
            rows[form][objective] = _truth_figures(run, truth, objective)
    return list(flat_rows(rows, "form", "objective", "method", "figure"))


def _truth_figures(run: FormRun, truth: TrueTeacher, objective: str) -> Figures:
    """Return what the truth says of every method's rows."""
    arena, court = run.for_objective({objective: 1.0}), run.prepared.court
    by_x = real_rows_by_regret(arena, court)
    rows: dict[str, tuple[float | None, MadeBatch]] = {
        name: (None, run.fixed[name])
        for name in ("dev", "held_out", "elicitation", "breeder")
    }
    rows["regret"] = None, draw_by_regret(arena, run.choice.rows)
    rows["by_x"] = None, arena.as_written(court.Z[by_x], court.y[by_x])
    for method in SEARCHES:
        found = run.find(method, arena)
        rows[method] = found.reported, run.fresh_rows(found, method, objective)
    return {
        method: {"reported": reported, **judge_by_truth(run, truth, made)}
        for method, (reported, made) in rows.items()
    }


def judge_by_truth(run: FormRun, truth: TrueTeacher, made: MadeBatch) -> Figures:
    """Return difficulty, its two parts, and separation of rows, by the truth.

    Parameters
    ----------
    run : FormRun
    truth : TrueTeacher
    made : MadeBatch

    Returns
    -------
    dict
        ``noise``, what no model could mend; and, of the takers and of unseen
        families, ``excess``, what the best of them loses to the truth, ``difficult`` and
        ``separate``, the paper's objectives by the truth's best label; ``supported``.
    """
    t = truth.predict(made.X)
    asked: dict[str, Any] = {"t": t, "variance": run.arena.variance}
    noise = 0.0 if t.ndim == 1 else float((1 - t.max(axis=1)).mean())
    figures: Figures = {"noise": noise}
    for who in ("seen", "unseen"):
        predicted = run.prepared.court.panels[who].predict(made.X)
        excess = performance(predicted, "honest", y=made.y, **asked).mean(axis=1)
        p = performance(predicted, "literal", y=best_labels(t), **asked).mean(axis=1)
        figures[f"{who} excess"] = float(1 - excess.max())
        figures[f"{who} difficult"] = float(1 - p.max())
        figures[f"{who} separate"] = float(np.ptp(p) / (len(p) - 1))
    supported, _ = run.arena.guard.nearest(made.X)
    figures["supported"] = float(supported.mean())
    figures["size"] = kish_size(np.ones(len(made.y)))
    return figures
