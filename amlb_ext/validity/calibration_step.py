"""One rung of the ladder that calibrates kappa: training rows augmented with it, and judged.

T is the mean prediction of the judges, see :mod:`amlb_ext.validity.candidates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.hardening.made_rows.sides import make_side
from amlb_ext.validity.candidates import JUDGES
from amlb_ext.validity.label_measures import judge_labels, measure_labels
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.ranking_measures import fidelity_z2, measure_fidelity

#: A rung that is right has z² near 1 on any of its parts; ten times that ends it before the last.
HOPELESS = 10.0


@dataclass(frozen=True, kw_only=True)
class Rung:
    """What the checks say of one kappa.

    Attributes
    ----------
    kappa : float
    rows : int
        Augmented rows that were judged.
    passed : bool
    why : str
        The checks that failed; empty when all passed.
    z2, tau, label_agreement, label_support : float or None
        As in the certificate.
    """

    kappa: float
    rows: int
    passed: bool
    why: str = ""
    z2: float | None = None
    tau: float | None = None
    label_agreement: float | None = None
    label_support: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOutPart:
    """A part of the training rows, left out of the fits that judge it.

    Attributes
    ----------
    models : FoldModels
        Fitted without the part.
    rows : JudgedRows
        The part, judged by them.
    zoos : tuple of mapping of str to EstimatorBaseline
        Per target the candidates by name, fitted without the part as well.
    """

    models: FoldModels
    rows: JudgedRows
    zoos: tuple[Mapping[str, EstimatorBaseline], ...] = ()

    def augment(self, kappa: float) -> JudgedRows:
        """Augment the part's bad rows with this kappa."""
        config = self.models.config
        search = config.search.model_copy(update={"kappa": kappa})
        models = replace(
            self.models, config=config.model_copy(update={"search": search})
        )
        # "calibrate" is the side's name in the streams, which all rungs share
        return make_side(models, self.rows, "calibrate").augmented.rows

    def ask_candidates(self, rows: JudgedRows, target: int) -> CandidateOpinion:
        """Ask candidates and judges about rows of this part, or about rows made from them."""
        zoo = self.zoos[target]
        y, f = rows.y[:, target], rows.f[:, target]
        predicted = {name: model.predict(rows.Z) for name, model in zoo.items()}
        judgements = [predicted[name] for name in JUDGES if name in predicted]
        losses = Losses(
            G=np.column_stack([row_losses.row_loss(y, g) for g in predicted.values()]),
            F=row_losses.row_loss(y, f),
            # rows made from one real row are not independent: they are one cluster
            c=self.rows.row[rows.parent],
        )
        return CandidateOpinion(losses, np.mean(judgements, axis=0), y)

    def ask_judges(self, target: int) -> np.ndarray:
        """Ask the judges alone, about all rows of the part."""
        zoo = self.zoos[target]
        judgements = [zoo[name].predict(self.rows.Z) for name in JUDGES if name in zoo]
        return np.mean(judgements, axis=0)


@dataclass(frozen=True)
class CandidateOpinion:
    """Losses of candidates on some rows, what the judges predict for them, and their targets."""

    losses: Losses
    T: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RealOpinion:
    """What candidates and judges say of the real rows of one target: what rungs are held against.

    Attributes
    ----------
    target : int
        Position in the group.
    failures : list of CandidateOpinion
        Of each part with failures.
    rmse : float
        Of the judges over all rows; 0 for classes.
    agrees : ndarray of bool
        Whether the judges support the label, for all rows.
    """

    target: int
    failures: Sequence[CandidateOpinion]
    rmse: float
    agrees: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[HeldOutPart], target: int) -> RealOpinion:
        """Ask candidates about the failures only: the other rows are many and need but T."""
        models = parts[0].models
        T = np.concatenate([part.ask_judges(target) for part in parts])
        y = np.concatenate([part.rows.y[:, target] for part in parts])
        rmse = 0.0 if models.n_classes else float(np.sqrt(((T - y) ** 2).mean()))
        _, agrees = judge_labels(T, y, rmse, models.config.agreement, models.n_classes)
        failures = []
        for part in _failing(parts):
            bad = np.flatnonzero(part.rows.is_bad)
            failures.append(part.ask_candidates(part.rows.take(bad), target))
        return cls(target=target, failures=failures, rmse=rmse, agrees=agrees)


def _failing(parts: Sequence[HeldOutPart]) -> list[HeldOutPart]:
    return [part for part in parts if part.rows.is_bad.any()]


def _pool(opinions: Sequence[CandidateOpinion]) -> CandidateOpinion:
    losses = Losses(
        G=np.concatenate([opinion.losses.G for opinion in opinions]),
        F=np.concatenate([opinion.losses.F for opinion in opinions]),
        c=np.concatenate([opinion.losses.c for opinion in opinions]),
    )
    T = np.concatenate([opinion.T for opinion in opinions])
    y = np.concatenate([opinion.y for opinion in opinions])
    return CandidateOpinion(losses, T, y)


def try_rung(
    parts: Sequence[HeldOutPart],
    kappa: float,
    real: RealOpinion,
    augment: Callable[[HeldOutPart], JudgedRows],
    rng: np.random.Generator,
) -> Rung:
    """Augment each part's failures with this kappa and put the rows of one target to the checks.

    The searches of all rungs share their random streams: they differ by kappa alone. A rung whose
    first parts are as far off as :data:`HOPELESS` is given up: the others cannot make up for it.

    Parameters
    ----------
    parts : sequence of HeldOutPart
    kappa : float
    real : RealOpinion
        Of the target.
    augment : callable
        Rows made from a part with this kappa; one search serves all targets, so it may remember.
    rng : Generator
    """
    opinions: list[CandidateOpinion] = []
    failing = _failing(parts)
    for number, part in enumerate(failing, 1):
        made = augment(part)
        if len(made):
            opinions.append(part.ask_candidates(made, real.target))
        # after the last part all checks are due, whatever z2 is
        if not opinions or number == len(failing):
            continue
        made_so_far, real_so_far = _pool(opinions), _pool(real.failures[:number])
        z2_so_far = fidelity_z2(made_so_far.losses, real_so_far.losses)
        if z2_so_far > HOPELESS:
            return Rung(
                kappa=kappa,
                rows=len(made_so_far.y),
                passed=False,
                why=f"ga: z2 {z2_so_far:.3g} on {number} of {len(failing)} parts",
                z2=z2_so_far,
            )
    if not opinions:
        return Rung(kappa=kappa, rows=0, passed=False, why="no augmented row was kept")
    pooled = _pool(opinions)
    checks = _checks(parts[0].models, pooled, real, rng)
    failed = []
    for check in checks:
        # None is no verdict: too few rows to say
        if check.passed is False:
            figure = f": {check.text}" if check.value is None else f" {check.value:.3g}"
            failed.append(check.name + figure)
    value, tau, agreement, support = (check.value for check in checks)
    return Rung(
        kappa=kappa,
        rows=len(pooled.y),
        passed=not failed,
        why=", ".join(failed),
        z2=value,
        tau=tau,
        label_agreement=agreement,
        label_support=support,
    )


def _checks(
    models: FoldModels,
    made: CandidateOpinion,
    real: RealOpinion,
    rng: np.random.Generator,
) -> list[Measure]:
    """Fidelity and labels, as a certificate measures them."""
    few, n_classes = _pool(real.failures), models.n_classes

    def labels_of(rows: CandidateOpinion) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        support, agrees = judge_labels(
            rows.T, rows.y, real.rmse, models.config.agreement, n_classes
        )
        return support, agrees, rows.losses.c

    made_labels = labels_of(made)
    recorded = float(made_labels[1].mean())
    fidelities = measure_fidelity(made.losses, few.losses, rng, "ga")
    label_checks = measure_labels(
        made_labels, labels_of(few), real.agrees, recorded, n_classes
    )
    return [*fidelities, *label_checks]
