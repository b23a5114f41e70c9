"""How hard may the search press? Settled per fold on failures of the fold's own training rows.

A larger kappa makes augmented rows harder and less like the failures they came from. So, from
the hardest rung of :data:`LADDER` downwards, training rows on which a cross-fitted F fails are
augmented and put to the checks of the certificate; the first rung that passes is taken. The test
fold plays no part: the certificate later asks the same of rows that had no say here.

F and T are those of the fold's cross-fitting, each without the failures it judges; the clones of
an F that came fitted stand in for it. A rung costs a search and predictions. Failures of all parts
are pooled, as a certificate pools those of its folds, and as there the estimates decide: intervals
would ask more of a fold than the certificate asks of the whole task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.notes import Note
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Task
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.baseline.forests import MOST_CLASSES
from amlb_ext.hardening.prepare import cross_fit
from amlb_ext.models.files import is_predictions_file
from amlb_ext.validity.candidates import JUDGE_ONLY, JUDGES, MIN_CANDIDATES
from amlb_ext.validity.held_out_parts import (
    LADDER,
    HeldOutCandidates,
    HeldOutPart,
    RealOpinion,
    parts_with_failures,
)
from amlb_ext.validity.measures import MIN_ROWS, Measure, ScoredUnits, measure_labels
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
        The checks that failed, by name; empty when all passed.
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


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The kappa of a fold and how it was found.

    Attributes
    ----------
    kappa : float
    passed : bool
        Whether rows made with it passed every check; else kappa is the floor, 0.
    failures : int
        Training rows they were judged on.
    rungs : tuple of Rung
        Those tried, hardest first.
    why : Note or None
        Why none passed, or none could be tried.
    """

    kappa: float
    passed: bool
    failures: int
    rungs: tuple[Rung, ...]
    why: Note | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the figures for the fold's summary, which has notes elsewhere."""
        rungs = [dict(vars(rung)) for rung in self.rungs]
        entry = {**vars(self), "rungs": rungs}
        del entry["why"]
        return entry


def wants_calibration(config: GenerateConfig) -> bool:
    """Whether kappa is left open and there will be a search to use it.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> wants_calibration(build_config()), wants_calibration(build_config({"preset": "literal"}))
    (True, False)
    """
    can_search = not is_predictions_file(config.baseline.model)
    return can_search and config.search.kappa is None and config.search.copies > 0


def calibrate(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    held_out: HeldOutCandidates | None = None,
) -> list[Calibration]:
    """Return per task the largest kappa whose augmented rows pass on the training rows of a fold.

    A pure function of its arguments; the tasks need folds, of which no test row is read. One
    search serves all tasks of a group, so they share the kappa: that with which the checks of
    *every* target pass. At each rung the targets are judged in turn until one fails, so later
    targets may show fewer rungs.

    Parameters
    ----------
    tasks : sequence of Task
        One, or all of a group.
    fold : int
    config : GenerateConfig
    held_out : HeldOutCandidates, optional
        Of the same arguments; fitted here when omitted.

    Raises
    ------
    ConfigError
        The rule does not serve this kind of task.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources import open_specs
    >>> config = build_config({"baseline": {"model": "ridge"}})
    >>> task = next(iter(open_specs(["bundled/toy"], config.source))).load()
    >>> [found] = calibrate([split_task(task, config.split, config.seed)], 0, config)
    >>> found.kappa in LADDER, found.failures >= 10
    (True, True)
    """
    untried: list[list[Rung]] = [[] for _ in tasks]
    try:
        if held_out is None:
            cross = cross_fit(tasks, fold, config)
            held_out = HeldOutCandidates(tasks, config, cross)
        baselines = [target.baseline for target in held_out.cross.targets]
        problem = next(filter(None, (F.refit_problem_ for F in baselines)), "")
        if problem:
            why = Note(kind="kappa unseen", words={"problem": problem})
            return _floors(untried, why, 0)
        failures = held_out.n_failures
        # a certificate says nothing on so few failures, and neither can this
        if failures < MIN_ROWS:
            why = Note(kind="kappa few failures", counts={"failures": failures})
            return _floors(untried, why, failures)
        # a third of the whole fold's time, for a kappa that rows of so many classes never passed
        if (n_classes := len(tasks[0].labels)) > MOST_CLASSES:
            why = Note(kind="kappa many classes", counts={"classes": n_classes})
            return _floors(untried, why, failures)
        parts = held_out.parts
    except ModelError as error:
        why = Note(kind="kappa unfitted", words={"error": str(error)})
        return _floors(untried, why, 0)
    fewest = held_out.n_candidates
    has_judges = [
        any(name.removeprefix(JUDGE_ONLY) in JUDGES for name in zoo)
        for zoo in parts[0].zoos
    ]
    if fewest < MIN_CANDIDATES or not all(has_judges):
        why = Note(kind="kappa few candidates", counts={"candidates": fewest})
        return _floors(untried, why, failures)
    return _climb_down(tasks, fold, config, parts, failures)


def _climb_down(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    parts: Sequence[HeldOutPart],
    failures: int,
) -> list[Calibration]:
    """Try the rungs from the hardest one down, until one passes for every target."""
    reals = [RealOpinion.from_parts(parts, target) for target in range(len(tasks))]
    tried: list[list[Rung]] = [[] for _ in tasks]
    for kappa in LADDER:
        passed = True
        for real, rungs in zip(reals, tried, strict=True):
            # a stream of its own for every target and rung: none depends on what was tried before
            rng = random_stream(
                config.seed, tasks[0].stream_name, fold, "calibrate", "checks"
            )
            rungs.append(try_rung(parts, kappa, real, rng))
            passed = rungs[-1].passed
            if not passed:
                break
        if passed:
            return [
                Calibration(
                    kappa=kappa,
                    passed=True,
                    failures=failures,
                    rungs=tuple(rungs),
                )
                for rungs in tried
            ]
    # the first target that fails the last rung says why; those after it were not asked
    last_rungs = [rungs[-1] for rungs in tried if rungs]
    failed = next(rung.why for rung in last_rungs if not rung.passed)
    why = Note(
        kind="kappa failed", counts={"failures": failures}, words={"checks": failed}
    )
    return _floors(tried, why, failures)


def _floors(
    tried: Sequence[Sequence[Rung]], why: Note, failures: int
) -> list[Calibration]:
    """Return calibrations where no kappa passes, or none could be tried."""
    return [
        Calibration(
            kappa=0.0, passed=False, failures=failures, rungs=tuple(rungs), why=why
        )
        for rungs in tried
    ]


def try_rung(
    parts: Sequence[HeldOutPart],
    kappa: float,
    real: RealOpinion,
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
    rng : Generator
    """
    opinions: list[ScoredUnits] = []
    failing = parts_with_failures(parts)
    for number, part in enumerate(failing, 1):
        made = part.augment(kappa)
        if len(made):
            opinions.append(part.ask(made, real.target, part.names(real.target)))
        # after the last part all checks are due, whatever z2 is
        if not opinions or number == len(failing):
            continue
        made_so_far = ScoredUnits.join(opinions)
        real_so_far = ScoredUnits.join(real.failures[:number])
        z2_so_far = fidelity_z2(made_so_far.losses, real_so_far.losses)
        if z2_so_far > HOPELESS:
            return Rung(
                kappa=kappa,
                rows=len(made_so_far.y),
                passed=False,
                why="ga: z2 on its first parts",
                z2=z2_so_far,
            )
    if not opinions:
        return Rung(kappa=kappa, rows=0, passed=False, why="no augmented row was kept")
    pooled = ScoredUnits.join(opinions)
    checks = _measure_checks(pooled, real, rng)
    # None is no verdict: too few rows to say
    failed = [check.name for check in checks if check.passed is False]
    z2, tau, agreement, support = (check.value for check in checks)
    return Rung(
        kappa=kappa,
        rows=len(pooled.y),
        passed=not failed,
        why=", ".join(failed),
        z2=z2,
        tau=tau,
        label_agreement=agreement,
        label_support=support,
    )


def _measure_checks(
    made: ScoredUnits, real: RealOpinion, rng: np.random.Generator
) -> list[Measure]:
    """Fidelity and labels, as a certificate measures them."""
    failures = ScoredUnits.join(real.failures)
    fidelities = measure_fidelity(made.losses, failures.losses, rng, "ga", ROW)
    label_checks = measure_labels(
        real.judge(made),
        real.judge(failures),
        ROW,
        all_agree=real.agrees,
        # no generation filtered these rows, so there is no other opinion to record
        recorded=None,
        n_classes=real.judge.n_classes,
    )
    return [*fidelities, *label_checks]
