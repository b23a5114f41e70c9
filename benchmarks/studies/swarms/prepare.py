"""One draw before any search: rows in their roles, models, generators, judges.

Takers, generators, teacher and auditor see disjoint real rows, and the test fold is everybody's
judge: a strictness that a study of claims needs and a suite does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from amlb_ext.core.rng import derive_int_seed, derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.replacements import known_classes
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.split import cross_folds
from amlb_ext.synthesizers.base import best_labels
from amlb_ext.synthesizers.swarm.arena import EVALUATION_ROWS, Arena, MadeBatch
from amlb_ext.synthesizers.swarm.objectives import (
    MixedObjective,
    SupportGuard,
    mendable,
    own_performance,
)
from amlb_ext.synthesizers.swarm.space import make_generators
from amlb_ext.synthesizers.vae import VAE
from amlb_ext.validity.candidates import candidate_zoo, fit_zoo
from benchmarks.studies.encoded import EncodedTask
from benchmarks.studies.swarms.choices import FormName, SwarmChoice
from benchmarks.studies.swarms.populations import TrueTeacher, split_draw

#: Rows to the takers' labels and the teacher's predictions.
Ask = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
#: Shares of the training rows, in the order of :class:`Roles`.
SHARES = (0.15, 0.40, 0.25, 0.20)
#: Steps of this length, modulo 1, spread any number of positions evenly over the unit interval.
GOLDEN = (5**0.5 - 1) / 2
#: Parts of the cross-fit behind teacher and auditor.
TEACHER_PARTS = 3
#: Rows of a user: a share of the test rows, those nearest to a random one.
USER_SHARE = 0.25
#: Latent dimensions and width of the base generator.
LATENT, WIDTH = 16, 96


class Roles(NamedTuple):
    """Positions of training rows, by what they serve for; re-fits share the auditor's."""

    takers: np.ndarray
    generator: np.ndarray
    teacher: np.ndarray
    auditor: np.ndarray


def deal_roles(
    y: np.ndarray, n_classes: int, rng: np.random.Generator, least_rows: int
) -> Roles:
    """Deal rows to the four roles, each class in the same shares.

    Parameters
    ----------
    y : ndarray of shape (n,)
    n_classes : int
        C, or 0 for a regression.
    rng : numpy.random.Generator
    least_rows : int
        That a role gets, at the cost of the others, but for a few.

    Examples
    --------
    >>> roles = deal_roles(np.arange(4000) % 2, 2, np.random.default_rng(0), 300)
    >>> [len(rows) for rows in roles]
    [599, 1601, 1000, 800]
    """
    n = len(y)
    order = rng.permutation(n)
    if n_classes:
        # class after class: every role is spread evenly over this order, hence over each class
        order = order[np.argsort(y[order], kind="stable")]
    shares = np.maximum(SHARES, least_rows / n)
    edges = np.cumsum(shares / shares.sum())[:-1]
    number = np.searchsorted(edges, np.arange(n) * GOLDEN % 1)
    return Roles(*(np.sort(order[number == role]) for role in range(len(SHARES))))


class Panel:
    """Fitted takers.

    Parameters
    ----------
    models : dict
        Name to fitted model.
    """

    def __init__(self, models: dict[str, EstimatorBaseline]) -> None:
        self.models = models

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return each taker's labels of encoded rows, ``(M, n)``."""
        return np.array(
            [best_labels(model.predict(Z)) for model in self.models.values()]
        )


@dataclass(frozen=True, kw_only=True)
class StudyArena(Arena):
    """An arena of encoded rows, of which the teacher may be replaced by the truth.

    Attributes
    ----------
    encoder : Encoder
    scale : TargetEncoder
    panel : Panel
        The takers that the search sees.
    teacher : Oracle or TrueTeacher
    is_relabelled : bool
        Whether made rows get the teacher's best label in place of the generator's own.
    """

    encoder: Encoder
    scale: TargetEncoder
    panel: Panel
    teacher: Oracle | TrueTeacher
    is_relabelled: bool = False

    def as_written(self, X: np.ndarray, y: np.ndarray) -> MadeBatch:
        """Return encoded rows with the rounding that writing brings."""
        Z = self.encoder.transform(self.encoder.inverse(X))
        if self.is_relabelled:
            y = best_labels(self.teacher.predict(Z))
        return MadeBatch(Z, self.scale.round_decimals(self.scale.snap(y)))

    def settle(
        self, form: FormName, choice: SwarmChoice, weights: dict[str, float]
    ) -> StudyArena:
        """Return the arena by a form and for objectives; rows, models and generators stay."""
        settled = dataclasses.replace(
            self,
            labels=form,
            objective=MixedObjective(weights, form),
            n_rows=choice.evaluation_rows or EVALUATION_ROWS[form],
        )
        settled.settle_units()
        return settled

    def with_teacher(self, teacher: Oracle | TrueTeacher) -> StudyArena:
        """Return the arena with another teacher."""
        return dataclasses.replace(self, teacher=teacher, ask=_ask(self.panel, teacher))


def _ask(panel: Panel, teacher: Oracle | TrueTeacher) -> Ask:
    return lambda Z: (panel.predict(Z), teacher.predict(Z))


@dataclass(frozen=True, kw_only=True)
class Court:
    """Who judges in the end: none of them took part in the search.

    Attributes
    ----------
    auditor : Oracle
    panels : dict of str to Panel
        ``seen``, ``refits`` and ``unseen``.
    Z, y : ndarray of shape (r, d), (r,)
        Real rows of the test fold.
    variance : float
        Of a regression's target.
    """

    auditor: Oracle
    panels: dict[str, Panel]
    Z: np.ndarray
    y: np.ndarray
    variance: float
    _answers: dict[str, np.ndarray] = field(default_factory=dict)

    def real_performance(self, who: str) -> np.ndarray:
        """Return how a panel, or the ``auditor``, does on the real rows, ``(M, r)``."""
        if who not in self._answers:
            if who == "auditor":
                predicted = best_labels(self.auditor.predict(self.Z))[None]
            else:
                predicted = self.panels[who].predict(self.Z)
            self._answers[who] = own_performance(
                predicted, self.y, self.auditor.n_classes, self.variance
            )
        return self._answers[who]


@dataclass(frozen=True, kw_only=True)
class PreparedDraw:
    """One draw, ready to be searched and judged.

    Attributes
    ----------
    arena : StudyArena
        By the paper's letter, for difficult rows.
    court : Court
    roles : Roles
    Z, y : ndarray of shape (n, d), (n,)
        The training rows.
    proof : dict
        By how much the auditor beats the best taker on real rows, before any search: ``gain``
        and ``se``.
    held_out : ndarray of int
        Positions among the judges' real rows that serve as the held-out set.
    """

    arena: StudyArena
    court: Court
    roles: Roles
    Z: np.ndarray
    y: np.ndarray
    proof: dict[str, float]
    held_out: np.ndarray

    def rows_of(self, role: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of a role and their targets."""
        rows = getattr(self.roles, role)
        return self.Z[rows], self.y[rows]


def prepare_draw(
    task: Task | None, name: str, number: int, choice: SwarmChoice, *, user: bool
) -> PreparedDraw:
    """Deal the rows of a draw, fit takers, teacher and auditor, and tune the generators.

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
    task = split_draw(task, name, seed, choice.most_rows)
    key = (task.stream_name, 0, "swarm")
    train = task.folds[0].train
    encoded = EncodedTask(task, train)
    Z, y = encoded.rows(train)
    encoder, n_classes = encoded.encoder, encoded.scale.n_classes
    variance = 1.0 if n_classes else float(np.var(y))
    # a small table has fewer rows for each role, rather than no place at all
    least_rows = min(choice.least_rows, len(train) // 4)
    roles = deal_roles(y, n_classes, random_stream(seed, *key, "roles"), least_rows)

    def fit_ensemble(rows: np.ndarray, stage: str) -> Oracle:
        stage_seed = derive_int_seed(seed, *key, stage)
        parts = cross_folds(y[rows], n_classes, TEACHER_PARTS, stage_seed)
        return Oracle(n_classes, stage_seed).fit(Z[rows], y[rows], parts)

    def fit_panel(names: list[str], rows: np.ndarray, stage: str) -> Panel:
        # as many rows for all, so that panels compare
        rows = rows[: len(roles.takers)]
        fitted, _ = fit_zoo(
            {name: zoo[name] for name in names},
            kind=task.kind,
            n_classes=n_classes,
            n_categorical=encoder.n_categorical_,
            Z=Z[rows],
            y=y[rows],
            seed=derive_seed(seed, *key, stage),
        )
        return Panel(fitted)

    zoo = candidate_zoo(task.kind)
    unseen = [other for other in zoo if other not in choice.takers]
    panels = {
        "seen": fit_panel(list(choice.takers), roles.takers, "takers"),
        "refits": fit_panel(list(choice.takers), roles.auditor, "refits"),
        "unseen": fit_panel(unseen, roles.takers, "unseen"),
    }
    teacher = fit_ensemble(roles.teacher, "teacher")
    auditor = fit_ensemble(roles.auditor, "auditor")
    own_Z, own_y = Z[roles.generator], y[roles.generator]
    real = own_performance(panels["seen"].predict(own_Z), own_y, n_classes, variance)
    judged = best_labels(auditor.predict(own_Z))[None]
    [auditor_s] = own_performance(judged, own_y, n_classes, variance)
    gain, error = mendable(real, auditor_s)

    base = VAE(
        latent=LATENT, decoder=WIDTH, max_steps=choice.base_steps, device="cpu"
    ).fit(
        own_Z,
        own_y,
        cards=encoder.cards_,
        n_classes=n_classes,
        rng=random_stream(seed, *key, "base"),
    )
    guard = SupportGuard(base.prep_, own_Z)
    test_rows, _ = known_classes(task, 0)
    is_user = np.zeros(len(test_rows), dtype=bool)
    test_Z, test_y = encoded.rows(test_rows)
    user_rows = None
    if user:
        is_user = _choose_user(guard.metric(test_Z), random_stream(seed, *key, "user"))
        user_rows = guard.metric(test_Z[is_user])
    arena = StudyArena(
        seed=seed,
        key=key,
        space=make_generators(
            base,
            own_Z,
            own_y,
            n_generators=choice.generators,
            steps=choice.steps,
            seed=derive_int_seed(seed, *key, "copies"),
        ),
        ask=_ask(panels["seen"], teacher),
        guard=guard,
        labels="literal",
        objective=MixedObjective({"difficult": 1.0}, "literal"),
        real=real[:, : guard.rows],
        variance=variance,
        n_rows=choice.evaluation_rows or EVALUATION_ROWS["literal"],
        user_rows=user_rows,
        encoder=encoder,
        scale=encoded.scale,
        panel=panels["seen"],
        teacher=teacher,
    )
    court = Court(
        auditor=auditor,
        panels=panels,
        Z=test_Z,
        y=test_y,
        variance=variance,
    )
    return PreparedDraw(
        arena=arena,
        court=court,
        roles=roles,
        Z=Z,
        y=y,
        proof={"gain": gain, "se": error},
        held_out=np.flatnonzero(~is_user),
    )


def _choose_user(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return which rows stand for a user's: those nearest to one of them, ``(n,)`` bool."""
    centre = points[rng.integers(len(points))]
    distance = ((points - centre) ** 2).sum(axis=1)
    n_user = max(2, int(USER_SHARE * len(points)))
    is_user = np.zeros(len(points), dtype=bool)
    is_user[np.argsort(distance, kind="stable")[:n_user]] = True
    return is_user
