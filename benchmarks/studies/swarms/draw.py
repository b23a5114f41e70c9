"""One draw of Tables 1 to 3 on one table: everything fitted once, every method by every form.

A draw is a split of the table, its roles, models, generators and searches; all of its random
streams are keyed by (table, number), so draws of different tables and numbers share nothing.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from amlb_ext.core.task import Task
from amlb_ext.stats.weighted_mean import kish_size
from amlb_ext.synthesizers.swarm.answers import best_labels, performance
from amlb_ext.synthesizers.swarm.arena import MadeBatch
from benchmarks.studies.engine import Rows, flat_rows
from benchmarks.studies.swarms.audit import (
    audit_rows,
    by_x_figures,
    draw_by_regret,
    held_out_figures,
    real_rows_by_regret,
)
from benchmarks.studies.swarms.choices import (
    FORMS,
    OBJECTIVES,
    FormName,
    SwarmChoice,
    parse_objective,
)
from benchmarks.studies.swarms.methods import FormRun, measure_objective
from benchmarks.studies.swarms.populations import TrueTeacher
from benchmarks.studies.swarms.prepare import prepare_draw

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
    task: Task | None, name: str, number: int, choice: SwarmChoice
) -> Rows:
    """Return, by objective, form and method, what it reports and gets on fresh rows."""
    prepared = prepare_draw(task, name, number, choice, user=True)
    rows: Figures = {objective: {} for objective in choice.objectives or OBJECTIVES}
    for form in FORMS:
        run = FormRun(prepared, form, choice)
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
    prepared = prepare_draw(task, name, number, choice, user=False)
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
    task: Task | None, name: str, number: int, choice: SwarmChoice
) -> Rows:
    """Return, by form, objective and method, what the truth says of its rows."""
    prepared = prepare_draw(task, name, number, choice, user=False)
    fitted = prepared.arena
    truth = TrueTeacher(name, fitted.encoder, fitted.scale)
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
    rows = {
        name: run.fixed[name] for name in ("dev", "held_out", "elicitation", "breeder")
    }
    rows["regret"] = draw_by_regret(arena, run.choice.rows)
    rows["by_x"] = arena.as_written(court.Z[by_x], court.y[by_x])
    figures: Figures = {}
    for method, made in rows.items():
        figures[method] = {"reported": None, **judge_by_truth(run, truth, made)}
    for method in SEARCHES:
        found = run.find(method, arena)
        made = run.fresh_rows(found, method, objective)
        judged = judge_by_truth(run, truth, made)
        figures[method] = {"reported": found.reported, **judged}
    return figures


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
