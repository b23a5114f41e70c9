"""How hard may the search press? Settled per fold on failures of the fold's own training rows.

A larger kappa makes augmented rows harder and less like the failures they came from. So, from
the hardest rung of :data:`LADDER` downwards, training rows on which a cross-fitted F fails are
augmented and put to the checks of the certificate; the first rung that passes is taken. The test
fold plays no part: the certificate later asks the same of rows that had no say here.

F and T are those of the fold's cross-fitting, each without the failures it judges; a rung costs a
search and predictions. Failures of all parts are pooled, as a certificate pools those of its folds,
and as there the estimates decide: intervals would ask more of a fold than the certificate asks of
the whole task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.baseline.from_file import PREDICTION_SUFFIXES, is_baseline_file
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.judged_rows import (
    FoldModels,
    JudgedRows,
    TargetModels,
    judge_real_rows,
)
from amlb_ext.hardening.prepare import CrossFit, cross_fit
from amlb_ext.validity.calibration_step import HeldOutPart, RealOpinion, Rung, try_rung
from amlb_ext.validity.candidates import JUDGES, MIN_CANDIDATES, candidate_zoo, fit_zoo
from amlb_ext.validity.measures import MIN_ROWS, too_few_text

#: Weights of the error that are tried, hardest first; with the last no search takes place.
LADDER = (0.5, 0.1, 0.02, 0.005, 0.0)
#: Augmented rows asked per failure, and of all parts together: enough to judge, few to search.
COPIES, MOST_ROWS = 2, 1000


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
    reason : str
        One sentence.
    """

    kappa: float
    passed: bool
    failures: int
    rungs: tuple[Rung, ...]
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return plain mappings and lists."""
        return {**vars(self), "rungs": [dict(vars(rung)) for rung in self.rungs]}


def wants_calibration(config: GenerateConfig) -> bool:
    """Whether kappa is left open and there will be a search to use it.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> wants_calibration(build_config()), wants_calibration(build_config({"preset": "literal"}))
    (True, False)
    """
    ending = Path(config.baseline.model).suffix.lower()
    searched = not (is_baseline_file(config.baseline) and ending in PREDICTION_SUFFIXES)
    return searched and config.search.kappa is None and config.search.copies > 0


def calibrate(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    cross: CrossFit | None = None,
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
    cross : CrossFit, optional
        What :func:`amlb_ext.hardening.prepare.cross_fit` returned for the same arguments.

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
    if is_baseline_file(config.baseline):
        why = "F came fitted, so no failures can be had that it surely did not see"
        return _floors(tasks, why, 0)
    try:
        parts = hold_out_parts(
            tasks[0], config, cross or cross_fit(tasks, fold, config)
        )
        failures = int(sum(part.rows.is_bad.sum() for part in parts))
        # a certificate says nothing on so few failures, and neither can this
        if failures < MIN_ROWS:
            why = too_few_text(failures, "failures of the training rows")
            return _floors(tasks, why, failures)
        parts = fit_candidates(tasks, parts)
    except ModelError as error:
        return _floors(tasks, f"on parts of the training rows: {error}", 0)
    zoos = parts[0].zoos
    if any(_is_too_small(zoo) for zoo in zoos):
        fewest = min(len(zoo) for zoo in zoos)
        return _floors(tasks, f"only {fewest} candidates could be fitted", failures)
    return _climb_down(tasks, fold, config, parts, failures)


def _climb_down(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    parts: Sequence[HeldOutPart],
    failures: int,
) -> list[Calibration]:
    """Try the rungs from the hardest one down, until one passes for every target."""
    reals = [RealOpinion.of(parts, target) for target in range(len(tasks))]
    tried: list[list[Rung]] = [[] for _ in tasks]
    for_all = " for every target" if len(tasks) > 1 else ""
    for kappa in LADDER:
        augment = _remembered_search(
            kappa
        )  # of each part once, though every target asks
        passed = True
        for real, rungs in zip(reals, tried, strict=True):
            # a stream of its own for every target and rung: none depends on what was tried before
            rng = random_stream(
                config.seed, tasks[0].stream_name, fold, "calibrate", "checks"
            )
            rungs.append(try_rung(parts, kappa, real, augment, rng))
            passed = rungs[-1].passed
            if not passed:
                break
        if passed:
            reason = f"the largest that passes{for_all} on {failures} failures of the training rows"
            return [
                Calibration(
                    kappa=kappa,
                    passed=True,
                    failures=failures,
                    rungs=tuple(rungs),
                    reason=reason,
                )
                for rungs in tried
            ]
    last_rungs = [rungs[-1] for rungs in tried if rungs]
    failed = next(rung.why for rung in last_rungs if not rung.passed)
    at_floor = "" if len(tasks) > 1 else "at 0: "
    why = f"no kappa passes{for_all} on {failures} failures of the training rows; {at_floor}{failed}"
    return [_floor(why, failures, rungs) for rungs in tried]


def _remembered_search(kappa: float) -> Callable[[HeldOutPart], JudgedRows]:
    """Return a function that augments a part with this kappa, once for all targets."""

    def augment(part: HeldOutPart) -> JudgedRows:
        return part.augment(kappa)

    return cache(augment)


def _floor(why: str, failures: int, rungs: Sequence[Rung] = ()) -> Calibration:
    """Return the calibration where no kappa passes, or none could be tried."""
    return Calibration(
        kappa=0.0, passed=False, failures=failures, rungs=tuple(rungs), reason=why
    )


def _floors(tasks: Sequence[Task], why: str, failures: int) -> list[Calibration]:
    return [_floor(why, failures) for _ in tasks]


def _is_too_small(candidates: Collection[str]) -> bool:
    """Whether too few candidates could be fitted to judge anything."""
    return len(candidates) < MIN_CANDIDATES or not set(JUDGES) & set(candidates)


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
    rule = settle_rule(
        config.hardness, task.kind, task.labels, y=cross.y, f=cross.f, t=cross.t
    )
    if not all(cross.refits):
        raise ModelError("all but a few rows are of one class")
    # a rung is judged and thrown away: few rows suffice, and none need be synthetic
    light = _lighter(config, parts=len(cross.parts))
    parts = []
    for number, (fit, held) in enumerate(cross.parts):
        targets = []
        for scale, refits, oracle in zip(
            cross.scales, cross.refits, cross.oracles, strict=True
        ):
            blind = oracle.without_part(number)
            targets.append(
                TargetModels(scale=scale, baseline=refits[number], oracle=blind)
            )
        models = FoldModels(
            encoder=cross.encoder,
            targets=tuple(targets),
            rule=rule,
            Z=cross.Z[fit],
            y=cross.y[fit],
            config=light,
            # a key of its own, or all parts would draw the same numbers
            key=(*cross.key, "calibrate", number),
        )
        rows = judge_real_rows(
            models,
            features=cross.features.iloc[held],
            Z=cross.Z[held],
            y=cross.y[held],
            f=cross.f[held],
            t=cross.t[held],
            row=cross.row[held],
        )
        parts.append(HeldOutPart(models=models, rows=rows))
    return parts


def _lighter(config: GenerateConfig, *, parts: int) -> GenerateConfig:
    """Return settings that make a few augmented rows from each part and no synthetic ones."""
    few = {
        "copies": min(config.search.copies, COPIES),
        "max_rows": min(config.search.max_rows, MOST_ROWS // parts),
    }
    search = config.search.model_copy(update=few)
    synthesizer = config.synthesizer.model_copy(update={"times": 0.0})
    return config.model_copy(update={"search": search, "synthesizer": synthesizer})


def fit_candidates(
    tasks: Sequence[Task], parts: Sequence[HeldOutPart]
) -> list[HeldOutPart]:
    """Fit each target's candidates beside each part's F; those that fail anywhere are left out."""
    zoos = [_fit_zoos(task, target, parts) for target, task in enumerate(tasks)]
    fitted = []
    for number, part in enumerate(parts):
        by_target = tuple(by_part[number] for by_part in zoos)
        fitted.append(replace(part, zoos=by_target))
    return fitted


def _fit_zoos(
    task: Task, target: int, parts: Sequence[HeldOutPart]
) -> list[dict[str, EstimatorBaseline]]:
    """Return one target's candidates by name, for each part."""
    specs = candidate_zoo(task.kind)
    fits = []
    for models in (part.models for part in parts):
        fitted, _ = fit_zoo(
            specs,
            kind=task.kind,
            n_classes=models.n_classes,
            n_categorical=models.encoder.n_categorical_,
            Z=models.Z,
            y=models.y[:, target],
            seed=derive_seed(models.config.seed, *models.key, "zoo") % 2**31,
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
