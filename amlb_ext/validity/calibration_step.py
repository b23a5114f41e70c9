"""One rung of the ladder that calibrates kappa: training rows augmented with it, and judged.

T is the mean prediction of the judges, see :mod:`amlb_ext.validity.candidates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.hardening.augment import make_side
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.judged_rows import Failures, FoldModels, MadeRows
from amlb_ext.validity.candidates import JUDGES
from amlb_ext.validity.label_measures import judge_labels, measure_labels
from amlb_ext.validity.measures import Losses, Measure
from amlb_ext.validity.ranking_measures import fidelity_z2, measure_fidelity

#: A rung that is right has z² near 1 on any of its parts; ten times that ends it before the last.
HOPELESS = 10.0


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class HeldOut:
    """Rows left out of the fits of ``models`` and ``zoo``.

    ``search`` makes augmented rows with a kappa where this target shares them with others;
    otherwise the part's own models do.
    """

    models: FoldModels
    rows: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    bad: np.ndarray
    zoo: Mapping[str, EstimatorBaseline] = field(default_factory=dict)
    search: Callable[[float], MadeRows] | None = None

    def augment(self, kappa: float) -> MadeRows:
        """Augment the part's bad rows with this kappa."""
        if self.search is not None:
            return self.search(kappa)
        config = self.models.config
        search = config.search.model_copy(update={"kappa": kappa})
        models = replace(self.models, config=config.model_copy(update={"search": search}))
        failures = Failures.of(models, self.Z[self.bad], self.y[self.bad])
        return make_side(models, failures, self.Z, self.y, "calibrate").augmented

    def judge(self, Z: np.ndarray, y: np.ndarray, f: np.ndarray, c: np.ndarray) -> Judged:
        """Ask candidates and judges about rows that descend from the rows c."""
        predicted = {name: model.predict(Z) for name, model in self.zoo.items()}
        G = np.column_stack([row_losses.row_loss(y, g) for g in predicted.values()])
        T = np.mean([predicted[name] for name in JUDGES if name in predicted], axis=0)
        return Judged(Losses(G, row_losses.row_loss(y, f), c), T, y)

    def judge_failures(self) -> Judged:
        """Ask candidates and judges about the part's own bad rows."""
        b = self.bad
        return self.judge(self.Z[b], self.y[b], self.f[b], self.rows[b])

    def teach(self) -> np.ndarray:
        """Ask the judges alone, about all rows of the part."""
        return np.mean([self.zoo[name].predict(self.Z) for name in JUDGES if name in self.zoo],
                       axis=0)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """Losses of some rows, what the judges predict for them, and their targets."""

    losses: Losses
    T: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Real:
    """The failures of each part, judged; of all rows the judges' RMSE, and whom they support."""

    failures: Sequence[Judged]
    rmse: float
    agrees: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[HeldOut]) -> Real:
        """Ask candidates about the failures only: the other rows are many and need but T."""
        models = parts[0].models
        C = models.target.n_classes
        T, y = (np.concatenate(some) for some in ([p.teach() for p in parts], [p.y for p in parts]))
        rmse = 0.0 if C else float(np.sqrt(((T - y) ** 2).mean()))
        agrees = judge_labels(T, y, rmse, models.config.agreement, C)[1]
        return cls([p.judge_failures() for p in parts if p.bad.any()], rmse, agrees)


def _pool(judged: Sequence[Judged]) -> Judged:
    sides = [entry.losses for entry in judged]
    pooled = Losses(*(np.concatenate([getattr(s, n) for s in sides]) for n in ("G", "F", "c")))
    return Judged(pooled, *(np.concatenate([getattr(e, n) for e in judged]) for n in "Ty"))


def try_rung(parts: Sequence[HeldOut], kappa: float, real: Real, rng: np.random.Generator) -> Rung:
    """Augment each part's failures with this kappa and put the rows to the checks.

    The searches of all rungs share their random streams: they differ by kappa alone. A rung whose
    first parts are as far off as :data:`HOPELESS` is given up: the others cannot make up for it.
    """
    judged: list[Judged] = []
    failing = [part for part in parts if part.bad.any()]
    for number, part in enumerate(failing, 1):
        made = _made(part, kappa)
        if made is not None:
            judged.append(made)
        if judged and number < len(failing):
            so_far = fidelity_z2(_pool(judged).losses, _pool(real.failures[:number]).losses)
            if so_far > HOPELESS:
                why = f"ga: z2 {so_far:.3g} on {number} of {len(failing)} parts"
                return Rung(kappa, sum(len(j.y) for j in judged), False, why, so_far)
    if not judged:
        return Rung(kappa, 0, False, "no augmented row was kept")
    pooled = _pool(judged)
    checks = _checks(parts[0].models, pooled, real, rng)
    failed = [m.name + (f" {m.value:.3g}" if m.value is not None else f": {m.text}")
              for m in checks if m.passed is False]  # fmt: skip
    value, tau, agreement, support = (m.value for m in checks)
    return Rung(kappa, len(pooled.y), not failed, ", ".join(failed), value, tau, agreement, support)


def _made(part: HeldOut, kappa: float) -> Judged | None:
    """Augment the failures of a part; None where nothing was kept."""
    made = part.augment(kappa)
    if not len(made):
        return None
    return part.judge(made.Z, made.y, made.f, part.rows[part.bad][made.parent])


def _checks(
    models: FoldModels, made: Judged, real: Real, rng: np.random.Generator
) -> list[Measure]:
    """Fidelity and labels, as a certificate measures them."""
    few, C = _pool(real.failures), models.target.n_classes

    def of(rows: Judged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return *judge_labels(rows.T, rows.y, real.rmse, models.config.agreement, C), rows.losses.c

    own = of(made)
    fidelities = measure_fidelity(made.losses, few.losses, rng, "ga")
    return [*fidelities, *measure_labels(own, of(few), real.agrees, float(own[1].mean()), C)]
