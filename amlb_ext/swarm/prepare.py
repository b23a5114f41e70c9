"""What a swarm needs of one fold before any search: roles, models, generators, judges.

A pure function of (task, fold, request): no files, no clock, one random stream per stage. One
preparation serves searches for several objectives, see :func:`settle_arena`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from amlb_ext.core.config import RelationsConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed, derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.replacements import known_classes
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.models.registry import ModelSpec
from amlb_ext.swarm.arena import Arena
from amlb_ext.swarm.audit import Court, mendable, own_performance
from amlb_ext.swarm.initial import InitialSettings, make_generators
from amlb_ext.swarm.labels import SupportGuard, best_labels, fit_teacher
from amlb_ext.swarm.objectives import MixedObjective, parse_objective
from amlb_ext.swarm.roles import LEAST_ROWS, Roles, deal_roles
from amlb_ext.swarm.search import SwarmPlan
from amlb_ext.swarm.takers import Panel, check_takers, fit_panel, taker_specs

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
class RealRows:
    """The training rows of a fold, encoded, in their roles.

    Attributes
    ----------
    encoder : Encoder
    scale : TargetEncoder
    Z, y : ndarray of shape (n, d), (n,)
    roles : Roles
    """

    encoder: Encoder
    scale: TargetEncoder
    Z: np.ndarray
    y: np.ndarray
    roles: Roles

    def of(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows at these positions and their targets."""
        return self.Z[rows], self.y[rows]


@dataclass(frozen=True, kw_only=True)
class PreparedSwarm:
    """One fold, ready to be searched and judged.

    Attributes
    ----------
    arena : Arena
        For the request's objective and plan.
    court : Court
    real : RealRows
    proof : dict
        By how much the auditor beats the best taker on real rows, before any search.
    test_rows : ndarray of int
        Of the task, those whose class the training rows know.
    left_out : dict of str to int
        Test rows of other classes, by class.
    """

    arena: Arena
    court: Court
    real: RealRows
    proof: dict[str, float | None]
    test_rows: np.ndarray
    left_out: dict[str, int]


def prepare_swarm(task: Task, fold: int, request: SwarmRequest) -> PreparedSwarm:
    """Deal the rows of a fold, fit takers, teacher and auditor, and tune the generators.

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
        An objective that does not exist.
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
        objective=MixedObjective(weights, request.plan.form),
        real=real_s[:, : guard.rows],
        n_rows=request.plan.n_rows,
        common_numbers=request.plan.common_numbers,
        user_rows=user_metric,
    )
    test_rows, left_out = known_classes(task, fold)
    refits = _fit(
        task, real, seen_specs, real.roles.auditor, request, key=(*key, "refits")
    )
    unseen = _fit(
        task, real, unseen_specs, real.roles.takers, request, key=(*key, "unseen")
    )
    court = Court(
        auditor=auditor,
        panels={"seen": seen, "refits": refits, "unseen": unseen},
        Z=real.encoder.transform(task.features.iloc[test_rows]),
        y=real.scale.transform(task.target.iloc[test_rows]),
    )
    return PreparedSwarm(
        arena=settle_arena(arena, request.plan, weights),
        court=court,
        real=real,
        proof=proof,
        test_rows=test_rows,
        left_out=left_out,
    )


def settle_arena(arena: Arena, plan: SwarmPlan, weights: Mapping[str, float]) -> Arena:
    """Return the arena for another plan and objective; rows, models and generators stay.

    Parameters
    ----------
    arena : Arena
    plan : SwarmPlan
    weights : mapping of str to float
        Of the objectives, see :func:`amlb_ext.swarm.objectives.parse_objective`.
    """
    settled = replace(
        arena,
        is_guarded=plan.is_guarded,
        labels=plan.labels,
        objective=MixedObjective(weights, plan.form),
        n_rows=plan.n_rows,
        common_numbers=plan.common_numbers,
    )
    # a single objective has no unit, so nothing is drawn for it
    if len(weights) > 1:
        corners = np.eye(settled.space.n_generators)
        settled.objective.settle_units(settled.scored(corners, stream="units"))
    return settled


def _encode_real_rows(
    task: Task, fold: int, request: SwarmRequest, key: tuple[str | int, ...]
) -> RealRows:
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
    return RealRows(
        encoder=encoder, scale=scale, Z=encoder.transform(features), y=y, roles=roles
    )


def _fit(
    task: Task,
    real: RealRows,
    specs: Mapping[str, ModelSpec],
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
