"""What a swarm must beat, with the same number of evaluations: the baselines of the paper and ours.

initial : the best initial generator, by the search's own objective
base : the one generator of all rows (self-instruct of the paper)
uniform soup : the mean of all initial generators
soups, affine, cma, pso : searches in the same hull with the same budget
autobencher, elicitation, breeder : the paper's rivals that choose rows, see
    :mod:`amlb_ext.swarm.rival_rows`
regret : rows of all initial generators, drawn again by the takers' least regret: no search at all
real rows by x : real rows of the test fold with the largest least regret under the teacher, chosen
    by features alone, with their true labels. It is the one to beat.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.swarm.arena import Arena, MadeBatch
from amlb_ext.swarm.audit import (
    AUDIT_ROWS,
    HELD_OUT_ROWS,
    Court,
    audit_generator,
    audit_rows,
    mendable,
)
from amlb_ext.swarm.labels import performance
from amlb_ext.swarm.rival_rows import autobencher, breeder, elicitation, take_rows
from amlb_ext.swarm.search import SearchName, SearchTrace, SwarmPlan, search_generators

#: Real rows chosen by x; of a small test fold at most a fifth.
CHOSEN_ROWS, CHOSEN_SHARE = 300, 0.2
#: Rows among which ``regret`` draws, for each row that it returns.
REGRET_POOL = 5
#: Searches that are run beside the plan's own.
RIVALS: tuple[SearchName, ...] = ("pso", "affine", "cma", "soups")


def compare_baselines(
    arena: Arena,
    court: Court,
    plan: SwarmPlan,
    trace: SearchTrace,
    *,
    real: tuple[np.ndarray, np.ndarray],
) -> dict[str, dict[str, Any]]:
    """Return the audit of every baseline by name.

    Parameters
    ----------
    arena : Arena
    court : Court
    plan : SwarmPlan
    trace : SearchTrace
        Of the plan's own search; its number of evaluations is everybody's budget.
    real : tuple of ndarray
        The generators' real rows, encoded, and their labels.
    """
    n = arena.space.n_generators
    corners = arena.values(np.eye(n), stream="search")
    best = int(corners.argmax())
    initial = arena.space.initial
    uniform = np.full(n, 1 / n)
    results: dict[str, dict[str, Any]] = {}

    def add(name: str, theta: np.ndarray, reported: float | None) -> None:
        record = audit_generator(arena, court, theta, name)
        results[name] = {"reported": reported, **record}

    add("initial", initial[best], float(corners.max()))
    add("base", arena.space.base, None)
    add(
        "uniform soup",
        uniform @ initial,
        float(arena.values(uniform[None], stream="search")[0]),
    )
    for name in RIVALS:
        if plan.searches == (name,):
            continue
        rival = search_generators(
            arena, plan, searches=(name,), evaluations=len(trace.points)
        )
        add(name, rival.chosen @ initial, rival.reported)
    made, held = draw_by_regret(arena)
    results["regret"] = {"reported": None, **audit_rows(arena, court, made, held)}
    n_rows = AUDIT_ROWS + HELD_OUT_ROWS
    rivals = {
        "autobencher": autobencher(arena, *real, min(n_rows, len(real[1]) // 2)),
        "elicitation": elicitation(arena, n_rows),
        "breeder": breeder(arena, n_rows),
    }
    for rival_name, rows in rivals.items():
        # of few rows the same share is held out
        cut = len(rows.y) * AUDIT_ROWS // n_rows
        first = take_rows(rows, np.arange(cut))
        rest = take_rows(rows, np.arange(cut, len(rows.y)))
        results[rival_name] = {
            "reported": None,
            **audit_rows(arena, court, first, rest),
        }
    return results


def draw_by_regret(arena: Arena) -> tuple[MadeBatch, MadeBatch]:
    """Draw rows of all initial generators again, each by the least regret of any taker there."""
    rng = random_stream(arena.seed, *arena.key, "regret")
    wanted = AUDIT_ROWS + HELD_OUT_ROWS
    each = -(-wanted * REGRET_POOL // arena.space.n_generators)
    X, y = [], []
    for theta in arena.space.initial:
        rows, own = arena.space.sample_weights(theta, each, rng)
        X.append(rows)
        y.append(own)
    pool = arena.as_written(np.concatenate(X), np.concatenate(y))
    [scored] = arena.score([pool], "excess")
    regret = 1 - scored.s.max(axis=0)
    if arena.is_guarded:
        regret = np.where(scored.supported, regret, 0.0)
    # where nobody errs all rows count alike
    chance = regret + 1e-6
    drawn = rng.choice(len(regret), wanted, replace=False, p=chance / chance.sum())
    return take_rows(pool, drawn[:AUDIT_ROWS]), take_rows(pool, drawn[AUDIT_ROWS:])


def real_rows_by_regret(arena: Arena, court: Court) -> dict[str, Any]:
    """Return what real rows are worth that are chosen by features alone, labels never looked at.

    Returns
    -------
    dict
        ``rows`` chosen, and by panel their difficulty, and the auditor's gain over the best taker
        with its standard error, on these rows and on all real rows.
    """
    t = arena.teacher.predict(court.Z)
    excess = performance(arena.panel.predict(court.Z), "excess", y=court.y, t=t)
    regret = 1 - excess
    # ties of the least regret are settled by the mean one
    value = regret.min(axis=0) + 1e-3 * regret.mean(axis=0)
    n = min(CHOSEN_ROWS, max(1, int(CHOSEN_SHARE * len(value))))
    chosen = np.zeros(len(value))
    chosen[np.argsort(-value, kind="stable")[:n]] = 1.0
    auditor = court.auditor_performance()
    record: dict[str, Any] = {"rows": n}
    for who in court.panels:
        s = court.real_performance(who)
        record[who] = {
            "difficult": float(1 - np.average(s, axis=1, weights=chosen).max()),
            **mendable(s, auditor, chosen),
            "all_rows": mendable(s, auditor),
        }
    return record
