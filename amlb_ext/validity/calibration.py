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

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.baseline.from_file import PREDICTION_SUFFIXES, is_baseline_file
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.judged_rows import FoldModels
from amlb_ext.hardening.prepare import CrossFit, cross_fit
from amlb_ext.validity.calibration_step import HeldOut, Real, Rung, try_rung
from amlb_ext.validity.candidates import JUDGES, MIN_CANDIDATES, candidate_zoo, fit_zoo
from amlb_ext.validity.measures import MIN_ROWS, too_few_text

#: Weights of the error that are tried, hardest first; with the last no search takes place.
LADDER = (0.5, 0.1, 0.02, 0.005, 0.0)
#: Augmented rows asked per failure, and of all parts together: enough to judge, few to search.
COPIES, MOST_ROWS = 2, 1000


@dataclass(frozen=True)
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
    task: Task, fold: int, config: GenerateConfig, cross: CrossFit | None = None
) -> Calibration:
    """Return the largest kappa whose augmented rows pass on the training rows of a fold.

    A pure function of its arguments; ``task`` needs folds, of which no test row is read. ``cross``
    is what :func:`amlb_ext.hardening.prepare.cross_fit` gave for the same arguments.

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
    >>> found = calibrate(split_task(task, config.split, config.seed), 0, config)
    >>> found.kappa in LADDER, found.failures >= 10
    (True, True)
    """
    if is_baseline_file(config.baseline):
        return floor("F came fitted, so no failures can be had that it surely did not see", 0)
    try:
        parts = _parts(task, config, cross or cross_fit(task, fold, config))
        failures = int(sum(part.bad.sum() for part in parts))
        if failures < MIN_ROWS:
            return floor(too_few_text(failures, "failures of the training rows"), failures)
        parts = with_zoo(task, parts)
    except ModelError as error:
        return floor(f"on parts of the training rows: {error}", 0)
    if too_small(parts):
        return floor(f"only {len(parts[0].zoo)} candidates could be fitted", failures)
    real = Real.of(parts)
    rungs: list[Rung] = []
    for kappa in LADDER:
        rng = random_stream(config.seed, task.name, fold, "calibrate", "checks")
        rungs.append(try_rung(parts, kappa, real, rng))
        if rungs[-1].passed:
            text = f"the largest that passes on {failures} failures of the training rows"
            return Calibration(kappa, True, failures, tuple(rungs), text)
    why = f"no kappa passes on {failures} failures of the training rows; at 0: {rungs[-1].why}"
    return floor(why, failures, rungs)


def floor(why: str, failures: int, rungs: Sequence[Rung] = ()) -> Calibration:
    """Return the calibration where no kappa passes, or none could be tried."""
    return Calibration(0.0, False, failures, tuple(rungs), why)


def too_small(parts: Sequence[HeldOut]) -> bool:
    """Whether too few candidates could be fitted to judge anything."""
    zoo = parts[0].zoo
    return len(zoo) < MIN_CANDIDATES or not set(JUDGES) & set(zoo)


def _parts(task: Task, config: GenerateConfig, cross: CrossFit) -> list[HeldOut]:
    """Take F and T without each part in turn, and K settled on their predictions."""
    y, f, t = cross.y, cross.f, cross.oracle.out_of_fold_
    rule = settle_rule(config.hardness, task.kind, task.labels, f, y, t)
    return held_out(config, cross, rule, rule.select(rule.hardness(y, f, t)))


def held_out(
    config: GenerateConfig, cross: CrossFit, rule: BadRule, bad: np.ndarray
) -> list[HeldOut]:
    """Take F and T without each part in turn; one rule K for all of them."""
    if not cross.fits:
        raise ModelError("all but a few rows are of one class")
    Z, y, f = cross.Z, cross.y, cross.f
    most = min(config.search.max_rows, MOST_ROWS // len(cross.parts))
    few = {"copies": min(config.search.copies, COPIES), "max_rows": most}
    search = config.search.model_copy(update=few)
    nothing = config.synthesizer.model_copy(update={"times": 0.0})
    light = config.model_copy(update={"search": search, "synthesizer": nothing})
    parts = []
    for number, ((fit, held), F) in enumerate(zip(cross.parts, cross.fits, strict=True)):
        T = copy(cross.oracle)
        T.members_ = cross.oracle.members_[number : number + 1]  # it never saw the rows held
        key = (*cross.key, "calibrate", number)
        models = FoldModels(cross.encoder, cross.target, F, rule, T, Z[fit], y[fit], light, key)
        parts.append(HeldOut(models, cross.rows[held], Z[held], y[held], f[held], bad[held]))
    return parts


def with_zoo(task: Task, parts: list[HeldOut]) -> list[HeldOut]:
    """Fit the candidates beside each part's F; those that fail anywhere leave everywhere."""
    specs = candidate_zoo(task.kind)
    fits = []
    for models in (part.models for part in parts):
        shape = (task.kind, models.target.n_classes, models.encoder.n_categorical_)
        seed = derive_seed(models.config.seed, *models.key, "zoo") % 2**31
        fits.append(fit_zoo(specs, *shape, models.Z, models.y, seed)[0])
    many = 1 if task.labels else -1  # a subsample may have shown a candidate one class only
    kept = [n for n in specs if all(n in fit and len(fit[n].classes_) > many for fit in fits)]
    return [
        replace(part, zoo={name: fit[name] for name in kept})
        for part, fit in zip(parts, fits, strict=True)
    ]
