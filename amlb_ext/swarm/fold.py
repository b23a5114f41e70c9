"""One fold of a swarm: rows in their roles, one search, the audit, the rows that are written.

A pure function of (task, fold, request): no files, no clock, one random stream per stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.config import RelationsConfig
from amlb_ext.core.equal_rows import number_rows, repeats_earlier
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed, derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.replacements import known_classes
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.feasibility import FoldRelations
from amlb_ext.suite import Part, Rows
from amlb_ext.swarm.arena import Arena, MadeBatch
from amlb_ext.swarm.audit import Court, audit_generator, mendable, own_performance
from amlb_ext.swarm.baselines import compare_baselines, real_rows_by_regret
from amlb_ext.swarm.initial import InitialSettings, make_generators
from amlb_ext.swarm.labels import SupportGuard, best_labels, fit_teacher
from amlb_ext.swarm.objectives import MixedObjective, parse_objective
from amlb_ext.swarm.roles import LEAST_ROWS, Roles, deal_roles
from amlb_ext.swarm.search import SwarmPlan, search_generators
from amlb_ext.swarm.takers import Panel, check_takers, fit_panel, taker_specs

#: Rows that are drawn at once for the suite, for each row that is wanted, and how often.
OVERDRAW, DRAWING_ROUNDS = 2, 4
#: Standard errors by which the auditor must beat the best taker before a search begins.
PROOF_ERRORS = 2.0


@dataclass(frozen=True, kw_only=True)
class SwarmRequest:
    """What the user asked of a swarm.

    Attributes
    ----------
    objective : str
        One name, or weights: ``difficult=.6,novel=.4``.
    plan : SwarmPlan
    initial : InitialSettings
    takers : tuple of str
        Empty for four of the zoo.
    user_rows : DataFrame or None
        In canonical form, with the task's columns.
    rows : int
        Rows to write.
    least_rows : int
        That each role needs.
    anyway : bool
        Search where nothing is there to be found, too.
    with_baselines : bool
    seed : int
    relations : RelationsConfig
        What written rows must satisfy.
    """

    objective: str = "difficult"
    plan: SwarmPlan = field(default_factory=SwarmPlan)
    initial: InitialSettings = field(default_factory=InitialSettings)
    takers: tuple[str, ...] = ()
    user_rows: pd.DataFrame | None = None
    rows: int = 500
    least_rows: int = LEAST_ROWS
    anyway: bool = False
    with_baselines: bool = True
    seed: int = 1
    relations: RelationsConfig = field(default_factory=RelationsConfig)


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


@dataclass(frozen=True, kw_only=True)
class _RealRows:
    """The training rows of a fold, encoded, in their roles."""

    encoder: Encoder
    scale: TargetEncoder
    Z: np.ndarray
    y: np.ndarray
    roles: Roles

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.Z[rows], self.y[rows]


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
    key = (task.stream_name, fold, "swarm")
    weights = parse_objective(request.objective)
    real = _encode_real_rows(task, fold, request, key)
    seen_specs, unseen_specs = taker_specs(request.takers, task.kind)
    seen = _fit(
        task, real, seen_specs, real.roles.takers, request, key=(*key, "takers")
    )
    generator_Z, generator_y = real.of(real.roles.generator)
    answers = seen.predict(generator_Z)
    check_takers(seen, answers)
    is_classes = task.kind.is_classification
    real_s = own_performance(answers, generator_y, is_classes)

    auditor = fit_teacher(
        *real.of(real.roles.auditor),
        real.scale.n_classes,
        derive_int_seed(request.seed, *key, "auditor"),
    )
    judged = best_labels(auditor.predict(generator_Z))
    [auditor_s] = own_performance(judged[None], generator_y, is_classes)
    proof = mendable(real_s, auditor_s)
    _check_something_to_find(task, proof, request)

    objective = MixedObjective(weights, request.plan.form)
    guard = SupportGuard(real.encoder, generator_Z)
    user_metric = None
    if request.user_rows is not None:
        user_metric = guard.metric(real.encoder.transform(request.user_rows))
    arena = Arena(
        seed=request.seed,
        key=key,
        encoder=real.encoder,
        scale=real.scale,
        space=make_generators(
            generator_Z,
            generator_y,
            cards=real.encoder.cards_,
            n_classes=real.scale.n_classes,
            settings=request.initial,
            seed=request.seed,
            key=key,
        ),
        panel=seen,
        teacher=fit_teacher(
            *real.of(real.roles.teacher),
            real.scale.n_classes,
            derive_int_seed(request.seed, *key, "teacher"),
        ),
        guard=guard,
        is_guarded=request.plan.is_guarded,
        labels=request.plan.labels,
        objective=objective,
        real=real_s[:, : guard.rows],
        n_rows=request.plan.n_rows,
        common_numbers=request.plan.common_numbers,
        user_rows=user_metric,
    )
    corners = np.eye(arena.space.n_generators)
    objective.settle_units(arena.scored(corners, stream="units"))
    trace = search_generators(arena, request.plan)

    test_rows, left_out = known_classes(task, fold)
    test_features = task.features.iloc[test_rows]
    refits = _fit(
        task, real, seen_specs, real.roles.auditor, request, key=(*key, "refits")
    )
    unseen = _fit(
        task, real, unseen_specs, real.roles.takers, request, key=(*key, "unseen")
    )
    court = Court(
        auditor=auditor,
        panels={"seen": seen, "refits": refits, "unseen": unseen},
        Z=real.encoder.transform(test_features),
        y=real.scale.transform(task.target.iloc[test_rows]),
    )
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
        "takers": list(seen.names),
        "unseen": list(unseen.names),
        "proof": proof,
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
            real=(generator_Z, generator_y),
        )
    train = _real_part(task, task.folds[fold].train)
    full = _real_part(task, test_rows)
    made, drawn = _draw_suite_rows(
        task, fold, arena, theta, request, taken=[train, full]
    )
    record["rows"] = drawn | {"left_out": left_out}
    return SwarmFold(
        train=train,
        parts={"": Part(made), "full": Part(full)},
        record=record,
    )


def _encode_real_rows(
    task: Task, fold: int, request: SwarmRequest, key: tuple[str | int, ...]
) -> _RealRows:
    rows = task.folds[fold].train
    features = task.features.iloc[rows]
    target = task.target.iloc[rows]
    scale = TargetEncoder(task.kind, task.labels, target)
    y = scale.transform(target)
    roles = deal_roles(
        y,
        scale.n_classes,
        random_stream(request.seed, *key, "roles"),
        request.least_rows,
    )
    encoder = Encoder(task.columns).fit(features)
    return _RealRows(
        encoder=encoder, scale=scale, Z=encoder.transform(features), y=y, roles=roles
    )


def _fit(
    task: Task,
    real: _RealRows,
    specs: Any,
    rows: np.ndarray,
    request: SwarmRequest,
    *,
    key: tuple[str | int, ...],
) -> Panel:
    """Fit takers on rows of a role, as many as the takers have, so that panels compare."""
    rows = rows[: len(real.roles.takers)]
    Z, y = real.of(rows)
    return fit_panel(
        specs,
        kind=task.kind,
        n_classes=real.scale.n_classes,
        n_categorical=real.encoder.n_categorical_,
        Z=Z,
        y=y,
        seed=derive_seed(request.seed, *key),
        # of what the user did not name, what cannot be fitted stays out
        must_fit=key[-1] == "takers",
    )


def _check_something_to_find(
    task: Task, proof: dict[str, float | None], request: SwarmRequest
) -> None:
    """Refuse where the auditor does not beat the best taker on real rows by two errors."""
    if request.anyway or request.plan.preset != "honest":
        return
    gain, error = proof["gain"], proof["se"]
    if gain is not None and error is not None and gain > PROOF_ERRORS * error:
        return
    shown = "unknown"
    if gain is not None and error is not None:
        shown = f"{gain:+.3f} with a standard error of {error:.3f}"
    raise DataError(
        f"{task.name}: no taker can be beaten here: on real rows an ensemble gains {shown} over "
        "the best of them, so whatever a search finds is noise",
        "--anyway searches all the same; --preset literal does what the paper does",
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
