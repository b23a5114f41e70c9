"""One draw of Tables 1 to 3 on one table: everything fitted once, every method by every form.

A draw is a split of the table, its roles, models, generators and searches; all of its random
streams are keyed by (table, number), so draws of different tables and numbers share nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Task
from amlb_ext.stats.weighted_mean import kish_size
from amlb_ext.swarm.arena import Arena, MadeBatch
from amlb_ext.swarm.audit import AUDIT_ROWS, HELD_OUT_ROWS, Court, audit_rows
from amlb_ext.swarm.baselines import draw_by_regret, real_rows_by_regret
from amlb_ext.swarm.initial import InitialSettings
from amlb_ext.swarm.labels import performance
from amlb_ext.swarm.objectives import parse_objective
from amlb_ext.swarm.prepare import (
    PreparedSwarm,
    SwarmRequest,
    prepare_swarm,
)
from amlb_ext.swarm.search import make_plan
from benchmarks.studies.engine import Rows, flat_rows
from benchmarks.studies.swarms.choices import (
    FORMS,
    OBJECTIVES,
    SwarmChoice,
)
from benchmarks.studies.swarms.data import split_draw
from benchmarks.studies.swarms.methods import (
    FormRun,
    Found,
    form_plan,
    measure_objective,
    split_rows,
)
from benchmarks.studies.swarms.populations import TrueTeacher

#: Methods of Tables 2 and 3 that search; ``regret`` and ``by_x`` stand beside them.
SEARCHES = ("pso", "best_initial", "soups", "affine", "cma")
#: Rows of a user: a share of the test rows, those nearest to a random one.
USER_SHARE = 0.25
#: Share of the rows of an audit that is held out of the test that tells made from real.
AUDIT_SHARE = AUDIT_ROWS / (AUDIT_ROWS + HELD_OUT_ROWS)
#: Forms of Table 3: labels of the truth itself, an honest search under the truth, and an honest
#: search under a fitted teacher, which the truth judges.
TRUTH_FORMS = ("literal", "honest", "fitted")
#: Real rows that are chosen by features alone.
CHOSEN_SHARE = 0.2

#: Labels → numbers, nested.
Figures = dict[str, Any]


def prepare_draw(
    task: Task | None, name: str, number: int, choice: SwarmChoice, *, user: bool
) -> tuple[PreparedSwarm, np.ndarray]:
    """Return a prepared fold, and which of its judges' rows serve as the held-out set.

    Parameters
    ----------
    task : Task or None
        None where each draw simulates its own rows.
    name : str
    number : int
        Of the draw.
    choice : SwarmChoice
    user : bool
        Whether a part of the test rows stands for a user's.
    """
    seed = number + 1
    split = split_draw(task, name, seed, choice.most_rows)
    fold = split.folds[0]
    rest, of_user = np.arange(len(fold.test)), np.zeros(0, dtype=int)
    if user:
        rest, of_user = _split_off_user(split, name, seed)
    request = SwarmRequest(
        plan=make_plan("literal"),
        initial=InitialSettings(
            n_generators=choice.generators,
            steps=choice.steps,
            base_steps=choice.base_steps,
            device="cpu",
        ),
        takers=choice.takers,
        user_rows=split.features.iloc[fold.test[of_user]] if user else None,
        # a small table has fewer rows for each role, rather than no place at all
        least_rows=min(choice.least_rows, len(fold.train) // 4),
        seed=seed,
    )
    prepared = prepare_swarm(split, 0, request)
    # the judges know no test rows of classes that training rows lack
    kept = np.flatnonzero(np.isin(prepared.test_rows, fold.test[rest]))
    return prepared, kept


def _split_off_user(split: Task, name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of test rows: others, and a user's, all near to one of them."""
    rows = split.folds[0].test
    features = split.features.iloc[rows]
    columns = []
    for column in split.columns:
        values = features[column.name]
        if column.is_numeric:
            numbers = values.to_numpy(dtype=float)
        else:
            numbers = values.cat.codes.to_numpy(dtype=float)
        spread = np.nanstd(numbers) or 1.0
        columns.append(np.nan_to_num((numbers - np.nanmean(numbers)) / spread))
    points = np.column_stack(columns)
    centre = random_stream(seed, name, "swarm user").integers(len(rows))
    distance = ((points - points[centre]) ** 2).sum(axis=1)
    order = np.argsort(distance, kind="stable")
    cut = max(2, int(USER_SHARE * len(rows)))
    return np.sort(order[cut:]), np.sort(order[:cut])


# --- Table 1 ---


def draw_table_1(
    task: Task | None, name: str, number: int, choice: SwarmChoice
) -> Rows:
    """Return, by objective, form and method, what it reports and gets on fresh rows."""
    prepared, held_out = prepare_draw(task, name, number, choice, user=True)
    rows: Figures = {objective: {} for objective in choice.objectives or OBJECTIVES}
    for form in FORMS:
        run = FormRun(prepared, form_plan(form, choice), choice, held_out)
        for objective, entry in rows.items():
            entry[form] = measure_objective(run, objective, parse_objective(objective))
    return list(flat_rows(rows, "objective", "form", "method", "figure"))


# --- Table 2 ---


def draw_table_2(
    task: Task | None, name: str, number: int, choice: SwarmChoice
) -> Rows:
    """Return, by form and method, its audit: takers, re-fits, unseen families, real rows.

    Of the form ``proof`` is what can be found on the table before any search.
    """
    prepared, held_out = prepare_draw(task, name, number, choice, user=False)
    rows: Figures = {}
    for form in FORMS:
        run = FormRun(prepared, form_plan(form, choice), choice, held_out)
        arena, court = run.arena, prepared.court
        entry: Figures = {}
        for method in ("dev", "elicitation", "breeder"):
            made, held = split_rows(run.fixed[method], AUDIT_SHARE)
            entry[method] = _short_audit(audit_rows(arena, court, made, held), None)
        for method in SEARCHES:
            found = run.find(method, arena)
            made, held = split_rows(
                run.fresh_rows(found, method, "difficult"), AUDIT_SHARE
            )
            entry[method] = _short_audit(
                audit_rows(arena, court, made, held), found.reported
            )
        made, held = draw_by_regret(arena)
        entry["regret"] = _short_audit(audit_rows(arena, court, made, held), None)
        entry["held_out"] = _held_out_figures(court)
        entry["by_x"] = _by_x_figures(arena, court)
        rows[form] = entry
    rows["proof"] = {"auditor": {key: prepared.proof[key] for key in ("gain", "se")}}
    return list(flat_rows(rows, "form", "method", "figure", objective="difficult"))


def _short_audit(audit: dict[str, Any], reported: float | None) -> Figures:
    """Return the figures of an audit that Table 2 shows."""
    figures: Figures = {"reported": reported, "fresh": audit["fresh"]}
    for who in ("seen", "refits", "unseen"):
        figures[who] = audit[who]["difficult"]
        figures[f"{who} excess"] = audit[who]["excess"]
    figures["rejected"] = audit["labels"]["rejected"]
    figures["supported"] = audit["supported"]
    figures["size"] = audit["effective_size"]
    real = audit["real"]
    if real is not None:
        figures["real"] = real["unseen"]["difficult"]
        figures["real gain"] = real["unseen"]["gain"]
        figures["tau"] = real["unseen"]["tau"]
    return figures


def _held_out_figures(court: Court) -> Figures:
    """Return the difficulty of all real test rows, by their labels."""
    figures: Figures = {}
    for who in court.panels:
        figures[who] = float(1 - court.real_performance(who).mean(axis=1).max())
    figures["real"] = figures["unseen"]
    return figures


def _by_x_figures(arena: Arena, court: Court) -> Figures:
    chosen = real_rows_by_regret(arena, court)
    figures: Figures = {who: chosen[who]["difficult"] for who in court.panels}
    figures["real"] = figures["unseen"]
    figures["real gain"] = chosen["unseen"]["gain"]
    figures["size"] = chosen["rows"]
    return figures


# --- Table 3 ---


def draw_table_3(
    task: Task | None, name: str, number: int, choice: SwarmChoice
) -> Rows:
    """Return, by form, objective and method, what the truth says of its rows."""
    prepared, held_out = prepare_draw(task, name, number, choice, user=False)
    fitted = prepared.arena
    truth = TrueTeacher(name, fitted.encoder, fitted.scale)
    rows: Figures = {}
    for form in TRUTH_FORMS:
        plan = form_plan("literal" if form == "literal" else "honest", choice)
        if form == "literal":
            # what an algorithm says of a generated problem: no label of the generator's own
            plan = dataclasses.replace(plan, labels="hard")
        arena = fitted if form == "fitted" else _with_truth(fitted, truth)
        run = FormRun(
            dataclasses.replace(prepared, arena=arena), plan, choice, held_out
        )
        rows[form] = {}
        for objective in ("difficult", "separate"):
            rows[form][objective] = _truth_figures(run, truth, objective)
    return list(flat_rows(rows, "form", "objective", "method", "figure"))


def _with_truth(arena: Arena, truth: TrueTeacher) -> Arena:
    return dataclasses.replace(arena, teacher=truth)


def _truth_figures(run: FormRun, truth: TrueTeacher, objective: str) -> Figures:
    """Return what the truth says of every method's rows."""
    arena = run.for_objective(parse_objective(objective))
    figures: Figures = {}
    for method in ("dev", "held_out", "elicitation", "breeder"):
        figures[method] = judge_by_truth(run, truth, run.fixed[method], None)
    for method in SEARCHES:
        found: Found = run.find(method, arena)
        made = run.fresh_rows(found, method, objective)
        figures[method] = judge_by_truth(run, truth, made, found.reported)
    made, _ = draw_by_regret(arena)
    figures["regret"] = judge_by_truth(run, truth, made, None)
    figures["by_x"] = judge_by_truth(run, truth, _rows_by_x(run), None)
    return figures


def judge_by_truth(
    run: FormRun, truth: TrueTeacher, made: MadeBatch, reported: float | None
) -> Figures:
    """Return difficulty, its two parts, and separation of rows, by the truth.

    Parameters
    ----------
    run : FormRun
    truth : TrueTeacher
    made : MadeBatch
    reported : float or None

    Returns
    -------
    dict
        ``reported``; ``noise``, what no model could mend; and, of the takers and of unseen
        families, ``excess``, what the best of them loses to the truth, ``difficult`` and
        ``separate``, the paper's objectives by the truth's best label; ``supported``.
    """
    t = truth.predict(made.Z)
    figures: Figures = {"reported": reported}
    noise = 0.0 if t.ndim == 1 else float((1 - t.max(axis=1)).mean())
    figures["noise"] = noise
    for who in ("seen", "unseen"):
        predicted = run.prepared.court.panels[who].predict(made.Z)
        excess = performance(predicted, "excess", y=made.y, t=t).mean(axis=1)
        p = performance(predicted, "hard", y=made.y, t=t).mean(axis=1)
        figures[f"{who} excess"] = float(1 - excess.max())
        figures[f"{who} difficult"] = float(1 - p.max())
        figures[f"{who} separate"] = float(np.ptp(p) / (len(p) - 1))
    supported, _ = run.arena.guard.nearest(made.Z)
    figures["supported"] = float(supported.mean())
    figures["size"] = kish_size(np.ones(len(made.y)))
    return figures


def _rows_by_x(run: FormRun) -> MadeBatch:
    """Return the real rows on which the takers' least regret under the teacher is largest."""
    arena, court = run.arena, run.prepared.court
    real = arena.as_written(court.Z, court.y)
    t = arena.teacher.predict(real.Z)
    excess = performance(arena.panel.predict(real.Z), "excess", y=real.y, t=t)
    regret = (1 - excess).min(axis=0) + 1e-3 * (1 - excess).mean(axis=0)
    n = max(1, int(CHOSEN_SHARE * len(regret)))
    chosen = np.argsort(-regret, kind="stable")[:n]
    return arena.as_written(court.Z[chosen], court.y[chosen])
