"""Parts of a fold's training rows, each judged by models that have not seen it.

What calibrates kappa must not have been fitted on the failures that it judges. The parts are those
of the fold's cross-fitting, so F and the oracle need no further fit: only the candidates are fitted
here, once per part and target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from amlb_ext.core import row_losses
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.fold import make_side
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.judged_rows import (
    FoldModels,
    JudgedRows,
    TargetModels,
    judge_real_rows,
    without_single_axis,
)
from amlb_ext.hardening.made_rows.proposals import (
    ask_design,
    confirm_rows,
    with_surrogates,
)
from amlb_ext.hardening.made_rows.screening import MadeRows, TakenRows
from amlb_ext.hardening.prepare import CrossFit
from amlb_ext.hardening.search.domain import linear_slopes
from amlb_ext.models.files import comes_fitted
from amlb_ext.models.registry import ModelSpec, resolve_model
from amlb_ext.validity.candidates import (
    JUDGE_ONLY,
    QUICK_ROWS,
    candidates_and_judges,
    candidates_beside,
    fit_zoo,
)
from amlb_ext.validity.measures import LabelJudge, Losses, ScoredUnits
from amlb_ext.validity.reference import LOSS
from amlb_ext.validity.task_rows import losses_of_candidates

#: Augmented rows asked per failure, and of all parts together: enough to judge, few to search. With
#: one copy z² exceeds its limit by chance (docs/evidence/speed.md).
COPIES, MOST_ROWS = 2, 1000
#: Rows of a part that candidates are asked about, more where failures are rare: all of them say
#: the same, and of many classes what twelve candidates predict of them fills a machine.
MOST_HELD = 4000
#: Share of the rows that F may still be asked about, for the made rows of one part.
CONFIRMED_SHARE = 0.1
#: Weights of the error that are tried, hardest first; with the last no search takes place.
LADDER = (0.5, 0.1, 0.02, 0.005, 0.0)
#: The name of a part in the random streams, which all rungs share.
_SIDE = "calibrate"


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutPart:
    """A part of the training rows, left out of the fits that judge it.

    Attributes
    ----------
    fitted : FoldModels
        Fitted without the part, with the training rows of all parts.
    table, learnt_rows : DataFrame, ndarray of int
        Features of all rows of the table, and which of its rows they were fitted on.
    learnt, held : ndarray of int
        Those that they were fitted on, and those of the part, by position.
    rows : JudgedRows
        Rows of the part, judged by them: :data:`MOST_HELD` drawn at random, or all.
    failures : ndarray of int
        The positions of all rows of the part on which F fails.
    zoos : tuple of mapping of str to EstimatorBaseline
        Per target the candidates and judges by name, fitted without the part as well.
    judges : tuple of list of str
        Per target which of these are the judges.
    """

    fitted: FoldModels
    table: pd.DataFrame
    learnt_rows: np.ndarray
    learnt: np.ndarray
    held: np.ndarray
    rows: JudgedRows
    failures: np.ndarray
    zoos: tuple[Mapping[str, EstimatorBaseline], ...] = ()
    judges: tuple[list[str], ...] = ()
    _augmented: dict[float, JudgedRows] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def models(self) -> FoldModels:
        """The models with the rows that they were fitted on."""
        # taken at every use, or five parts would hold four more tables
        return replace(
            self.fitted, Z=self.fitted.Z[self.learnt], y=self.fitted.y[self.learnt]
        )

    @cached_property
    def _omega(self) -> np.ndarray:
        """Slopes that a search learns of the rows fitted on: alike for every kappa."""
        learnt = self.models
        return linear_slopes(learnt.Z, without_single_axis(learnt.y), learnt.n_classes)

    def augment(self, kappa: float) -> JudgedRows:
        """Augment the part's bad rows with this kappa, once for all targets."""
        if kappa not in self._augmented:
            self._augmented.update(self._augment_with(kappa))
        return self._augmented[kappa]

    def _augment_with(self, kappa: float) -> dict[float, JudgedRows]:
        """Return augmented rows by kappa; of all of :data:`LADDER` where F's answers cost.

        There a surrogate searches, and F confirms what it found for all kappas at once: two calls.
        """
        models = self.models
        if models.ledger is None:
            models = replace(models, omega=self._omega)
            return {kappa: self._propose(models, kappa).rows}
        ask_design(models, self.rows, _SIDE)
        searching = with_surrogates(models, _SIDE)
        proposals = [self._propose(searching, each) for each in LADDER]
        confirmed = confirm_rows(models, proposals, share=CONFIRMED_SHARE)
        rows = [made.rows for made in confirmed]
        return dict(zip(LADDER, rows, strict=True))

    def _propose(self, models: FoldModels, kappa: float) -> MadeRows:
        config = models.config
        search = config.search.model_copy(update={"kappa": kappa})
        models = replace(models, config=config.model_copy(update={"search": search}))
        learnt = self.table.iloc[self.learnt_rows]
        taken = TakenRows((learnt, self.rows.features))
        return make_side(models, self.rows, _SIDE, taken).augmented

    def ask(
        self, rows: JudgedRows, target: int, candidates: Sequence[str]
    ) -> ScoredUnits:
        """Ask candidates and all judges about rows of this part, or rows made from them."""
        zoo = self.zoos[target]
        # those that could be fitted; calibrate gives up where there are none
        judges = [name for name in self.judges[target] if name in zoo]
        asked = dict.fromkeys([*candidates, *judges])
        predicted = {name: zoo[name].predict(rows.Z) for name in asked}
        y = rows.y[:, target]
        losses = Losses(
            candidates=losses_of_candidates(candidates, predicted, y),
            baseline=row_losses.row_loss(y, rows.f[:, target]),
            # rows made from one real row are not independent: they are one cluster
            clusters=self.rows.row[rows.parent],
        )
        judged = np.mean([predicted[name] for name in judges], axis=0)
        return ScoredUnits(losses=losses, judged=judged, y=y)

    def names(self, target: int) -> list[str]:
        """Return the names of the candidates."""
        return [name for name in self.zoos[target] if not name.startswith(JUDGE_ONLY)]


@dataclass(frozen=True, kw_only=True)
class RealOpinion:
    """What candidates and judges say of the real rows of one target: what rungs are held against.

    Attributes
    ----------
    target : int
        Position in the group.
    failures : list of ScoredUnits
        Of each part with failures.
    judge : LabelJudge
    agrees : ndarray of bool
        Whether the judges support the label, for all rows.
    """

    target: int
    failures: Sequence[ScoredUnits]
    judge: LabelJudge
    agrees: np.ndarray

    @classmethod
    def from_parts(cls, parts: Sequence[HeldOutPart], target: int) -> RealOpinion:
        """Collect opinions on all rows; of those that are no failures the judges' is enough."""
        pooled = ScoredUnits.join([part.ask(part.rows, target, []) for part in parts])
        judge = LabelJudge.settle(pooled, parts[0].fitted.n_classes)
        failures = []
        for part in parts_with_failures(parts):
            failing = part.rows.take(np.flatnonzero(part.rows.is_bad))
            failures.append(part.ask(failing, target, part.names(target)))
        agrees = judge(pooled).agrees
        return cls(target=target, failures=failures, judge=judge, agrees=agrees)


def parts_with_failures(parts: Sequence[HeldOutPart]) -> list[HeldOutPart]:
    """Return the parts on which F fails: the others have nothing to augment."""
    return [part for part in parts if part.rows.is_bad.any()]


def hold_out_parts(
    task: Task, config: GenerateConfig, cross: CrossFit
) -> list[HeldOutPart]:
    """Take F and T without each part in turn; one rule K, settled on all predictions.

    Parameters
    ----------
    task : Task
        Any of the group.
    config : GenerateConfig
    cross : CrossFit

    Raises
    ------
    ModelError
        F could not be fitted without some part.
    """
    f = cross.unseen_predictions()
    if f is None or not all(target.cross_fits for target in cross.targets):
        raise ModelError("all but a few rows are of one class")
    judged = cross.judged_view
    rule = settle_rule(
        config.hardness,
        task.kind,
        task.labels,
        y=cross.y[judged],
        f=f[judged],
        t=cross.t[judged],
    )
    # a rung is judged and thrown away: few rows suffice, and none need be synthetic
    few = {
        "copies": min(config.search.copies, COPIES),
        "max_rows": min(config.search.max_rows, MOST_ROWS // len(cross.parts)),
    }
    search = config.search.model_copy(update=few)
    synthesizer = config.synthesizer.model_copy(update={"times": 0.0})
    light = config.model_copy(update={"search": search, "synthesizer": synthesizer})
    parts = []
    for number, (fit, held) in enumerate(cross.parts):
        # F and T as they were fitted without this part
        targets = tuple(
            TargetModels(
                scale=target.scale,
                baseline=target.cross_fits[number],
                oracle=target.oracle.without_part(number),
            )
            for target in cross.targets
        )
        models = FoldModels(
            encoder=cross.encoder,
            targets=targets,
            rule=rule,
            Z=cross.Z,
            y=cross.y,
            config=light,
            # a key of its own, or all parts would draw the same numbers
            key=(*cross.key, "calibrate", number),
        )
        bad = rule.select(rule.hardness(cross.y[held], f[held], cross.t[held]))
        failures = held[bad]
        # as many failures among those drawn as the rungs search from
        few_bad = MOST_ROWS // len(cross.parts)
        most = max(MOST_HELD, few_bad * len(held) // max(1, len(failures)))
        if len(held) > most:
            rng = random_stream(config.seed, *models.key, "held")
            held = np.sort(rng.choice(held, most, replace=False))
        rows = judge_real_rows(
            models,
            features=cross.table.iloc[cross.row[held]],
            Z=cross.Z[held],
            y=cross.y[held],
            f=f[held],
            t=cross.t[held],
            row=cross.row[held],
        )
        part = HeldOutPart(
            fitted=models,
            table=cross.table,
            learnt_rows=cross.row[fit],
            learnt=fit,
            held=held,
            rows=rows,
            failures=failures,
        )
        parts.append(part)
    return parts


class HeldOutCandidates:
    """The parts of a fold's training rows with their candidates, fitted when they are needed.

    Parameters
    ----------
    tasks : sequence of Task
        One, or all of a group.
    config : GenerateConfig
    cross : CrossFit
    """

    def __init__(
        self, tasks: Sequence[Task], config: GenerateConfig, cross: CrossFit
    ) -> None:
        self.tasks = tasks
        self.config = config
        self.cross = cross

    @cached_property
    def unfitted(self) -> list[HeldOutPart]:
        """The parts without candidates; see :func:`hold_out_parts` for what it raises."""
        return hold_out_parts(self.tasks[0], self.config, self.cross)

    @property
    def n_failures(self) -> int:
        """Training rows on which F fails out of fold."""
        return sum(len(part.failures) for part in self.unfitted)

    @cached_property
    def parts(self) -> list[HeldOutPart]:
        """The parts with their candidates."""
        return fit_candidates(self.tasks, self.unfitted, self.config)

    @property
    def n_candidates(self) -> int:
        """Candidates of the target that has fewest; they are the same for all parts."""
        return min(len(self.parts[0].names(k)) for k in range(len(self.tasks)))

    def unseen_losses(self, target: int) -> pd.DataFrame | None:
        """Return what the candidates lose on the training rows, in their order.

        None where no candidates were needed, or they do not stand for those of a certificate:
        where they saw fewer rows than these would, or were not asked about all rows.
        """
        # not fitted for this alone
        parts: list[HeldOutPart] = self.__dict__.get("parts", [])
        held = [part.held for part in parts]
        if not parts or sum(map(len, held)) < len(self.cross.Z):
            return None
        if max(len(part.learnt) for part in parts) > QUICK_ROWS:
            return None
        names = parts[0].names(target)
        asked = [part.ask(part.rows, target, names) for part in parts]
        losses = np.concatenate([units.losses.candidates for units in asked])
        columns = [f"{LOSS}_{name}" for name in names]
        frame = pd.DataFrame(losses, np.concatenate(held), columns)
        return frame.sort_index()


def fit_candidates(
    tasks: Sequence[Task], parts: Sequence[HeldOutPart], config: GenerateConfig
) -> list[HeldOutPart]:
    """Fit each target's candidates beside each part's F; those that fail anywhere are left out.

    They are those of a certificate, which need not fit them again where they see all rows.
    """
    zoos = []
    judges = []
    for target, task in enumerate(tasks):
        model = None
        if not comes_fitted(config.baseline):
            model = resolve_model(config.baseline, task.kind)
        n_classes = len(task.labels)
        specs, names = candidates_and_judges(
            candidates_beside(model, task.kind, n_classes=n_classes),
            task.kind,
            "quick",
            n_classes=n_classes,
        )
        zoos.append(fit_zoos(task, specs, target, parts))
        judges.append(names)
    # a zoo per target and part, dealt out to the parts
    fitted = []
    for number, part in enumerate(parts):
        zoo_of_targets = tuple(zoos_of_parts[number] for zoos_of_parts in zoos)
        fitted.append(replace(part, zoos=zoo_of_targets, judges=tuple(judges)))
    return fitted


def fit_zoos(
    task: Task,
    specs: Mapping[str, ModelSpec],
    target: int,
    parts: Sequence[HeldOutPart],
) -> list[dict[str, EstimatorBaseline]]:
    """Return one target's candidates and judges by name, for each part."""
    fits = []
    for part in parts:
        models = part.fitted
        fitted, _ = fit_zoo(
            specs,
            kind=task.kind,
            n_classes=models.n_classes,
            n_categorical=models.encoder.n_categorical_,
            Z=models.Z,
            y=models.y[:, target],
            seed=derive_int_seed(models.config.seed, *models.key, "zoo"),
            seen=part.learnt,
        )
        fits.append(fitted)
    # a subsample may have shown a candidate one class only
    fewest_classes = 2 if task.labels else 0
    for name in specs:
        knows_enough = [
            name in fit and len(fit[name].classes_) >= fewest_classes for fit in fits
        ]
        if not all(knows_enough):
            # losses of all parts are pooled, so a candidate is there in all of them or in none
            for fit in fits:
                fit.pop(name, None)
    return fits
