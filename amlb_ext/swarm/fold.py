"""One fold of a swarm: one search, the audit, the rows that are written.

A pure function of (task, fold, request): no files, no clock, one random stream per stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.equal_rows import number_rows, repeats_earlier
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.feasibility import FoldRelations
from amlb_ext.suite import Part, Rows
from amlb_ext.swarm.arena import Arena, MadeBatch
from amlb_ext.swarm.audit import audit_generator
from amlb_ext.swarm.baselines import compare_baselines, real_rows_by_regret
from amlb_ext.swarm.prepare import SwarmRequest, prepare_swarm
from amlb_ext.swarm.search import search_generators

#: Rows that are drawn at once for the suite, for each row that is wanted, and how often.
OVERDRAW, DRAWING_ROUNDS = 2, 4


@dataclass(frozen=True, kw_only=True)
class SwarmFold:
    """What one fold gives.

    Attributes
    ----------
    train : Rows
    parts : dict of str to Part
        The swarm's rows, and the untouched test fold.
    record : dict
        What was searched and what it is worth; JSON values.
    """

    train: Rows
    parts: dict[str, Part]
    record: dict[str, Any]


def swarm_fold(task: Task, fold: int, request: SwarmRequest) -> SwarmFold:
    """Search a swarm on one fold and audit what was found.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    request : SwarmRequest

    Raises
    ------
    DataError
        Too few rows, or nothing to be found: no auditor beats the takers on real rows.
    ModelError
        A taker that fails or that always says the same.
    ConfigError
        An objective, or settings, that cannot be searched.
    """
    prepared = prepare_swarm(task, fold, request)
    arena, court = prepared.arena, prepared.court
    trace = search_generators(arena, request.plan)
    theta = trace.chosen @ arena.space.initial
    record: dict[str, Any] = {
        "objective": request.objective,
        "preset": request.plan.preset,
        "labels": request.plan.labels,
        "searches": list(request.plan.searches),
        "evaluations": len(trace.points),
        "generators": arena.space.n_generators,
        "weights_per_generator": int(arena.space.initial.shape[1]),
        "coefficients": [round(float(c), 4) for c in trace.chosen],
        "takers": list(arena.panel.names),
        "unseen": list(court.panels["unseen"].names),
        "proof": prepared.proof,
        "reported": trace.reported,
        "chosen": audit_generator(arena, court, theta, "chosen"),
        "real_rows_by_x": real_rows_by_regret(arena, court),
    }
    if request.with_baselines:
        record["baselines"] = compare_baselines(
            arena,
            court,
            request.plan,
            trace,
            real=prepared.real.of(prepared.real.roles.generator),
        )
    train = _real_part(task, task.folds[fold].train)
    full = _real_part(task, prepared.test_rows)
    made, drawn = _draw_suite_rows(
        task, fold, arena, theta, request, taken=[train, full]
    )
    record["rows"] = drawn | {"left_out": prepared.left_out}
    return SwarmFold(
        train=train,
        parts={"": Part(made), "full": Part(full)},
        record=record,
    )


def _real_part(task: Task, rows: np.ndarray) -> Rows:
    provenance = pd.DataFrame(
        {"origin": np.repeat("real", len(rows)), "row": task.row_ids[rows]}
    )
    return Rows(task.features.iloc[rows], task.target.iloc[rows], provenance)


def _draw_suite_rows(
    task: Task,
    fold: int,
    arena: Arena,
    theta: np.ndarray,
    request: SwarmRequest,
    *,
    taken: list[Rows],
) -> tuple[Rows, dict[str, int]]:
    """Draw the rows that are written: new, true to relations and, if guarded, supported."""
    relations = FoldRelations.settle(
        [task],
        task.folds[fold].train,
        [arena.scale],
        request.relations,
        derive_seed(arena.seed, *arena.key, "relations"),
    )
    rng = random_stream(arena.seed, *arena.key, "written")
    known = pd.concat([rows.features for rows in taken], ignore_index=True)
    kept: list[MadeBatch] = []
    counts = {"broken": 0, "unsupported": 0, "repeated": 0, "drawn": 0}
    n_kept = 0
    for _ in range(DRAWING_ROUNDS):
        made = arena.make_rows(theta, OVERDRAW * request.rows, rng)
        labels = arena.written_labels(made)
        made = replace(made, y=labels)
        broken = np.zeros(len(labels), bool)
        if relations:
            broken = relations.breaks(made.features, labels[:, None])
        supported, _ = arena.guard.nearest(made.Z)
        off = ~supported & arena.is_guarded
        earlier = [known, *(rows.features for rows in kept)]
        numbers = number_rows(pd.concat([*earlier, made.features], ignore_index=True))[
            0
        ]
        repeated = repeats_earlier(numbers)[-len(labels) :]
        keep = ~(broken | off | repeated)
        counts["drawn"] += len(labels)
        counts["broken"] += int(broken.sum())
        counts["unsupported"] += int((off & ~broken).sum())
        counts["repeated"] += int((repeated & ~broken & ~off).sum())
        positions = np.flatnonzero(keep)[: request.rows - n_kept]
        kept.append(
            MadeBatch(
                features=made.features.iloc[positions].reset_index(drop=True),
                Z=made.Z[positions],
                y=labels[positions],
            )
        )
        n_kept += len(positions)
        if n_kept == request.rows:
            break
    if not n_kept:
        raise DataError(
            f"{task.name}, fold {fold}: none of {counts['drawn']} made rows can be written: "
            f"{counts['broken']} break a relation, {counts['unsupported']} lie where no real rows "
            f"are, {counts['repeated']} repeat a row",
            "another --search or --objective, or --preset literal",
        )
    features = pd.concat([rows.features for rows in kept], ignore_index=True)
    y = np.concatenate([rows.y for rows in kept])
    provenance = pd.DataFrame({"origin": np.repeat("swarm", n_kept), "row": -1})
    target = arena.scale.inverse(y, task.target_name)
    return Rows(features, target, provenance), counts | {"written": n_kept}
