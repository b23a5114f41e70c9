"""The kappa of tasks that share their rows: one search for all, judged for each target.

As :mod:`amlb_ext.validity.calibration`, with one difference: a rung passes when the rows made by
the shared search pass the checks of *every* target. So the kappa is the largest that
suits them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ModelError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.judged_rows import MadeRows
from amlb_ext.hardening.prepare import CrossFit
from amlb_ext.hardening.several import settle_several, side_by_side
from amlb_ext.validity.calibration import (
    LADDER,
    Calibration,
    floor,
    held_out,
    too_small,
    with_zoo,
)
from amlb_ext.validity.calibration_step import HeldOut, Real, Rung, try_rung
from amlb_ext.validity.measures import MIN_ROWS, too_few_text


def calibrate_shared(
    tasks: Sequence[Task], fold: int, config: GenerateConfig, crosses: Sequence[CrossFit]
) -> list[Calibration]:
    """Return per task the largest kappa whose shared rows pass for every target, and its rungs.

    A pure function of its arguments; no test row is read. At each rung the targets are judged in
    turn until one fails, so later targets may show fewer rungs.

    Parameters
    ----------
    tasks : sequence of Task
        Of one group, with folds.
    fold : int
    config : GenerateConfig
    crosses : sequence of CrossFit
        What :func:`amlb_ext.hardening.prepare.cross_fit` gave for each task.

    Raises
    ------
    ConfigError
        The rule does not serve regression.
    """
    y, f, t = (
        np.column_stack(columns)
        for columns in zip(*((c.y, c.f, c.oracle.out_of_fold_) for c in crosses), strict=True)
    )
    rule = settle_several(config.hardness, f, y, t)
    bad = rule.select(rule.hardness(y, f, t))
    failures = int(bad.sum())
    try:
        if failures < MIN_ROWS:
            why = too_few_text(failures, "failures of the training rows")
            return [floor(why, failures) for _ in tasks]
        targets = [held_out(config, cross, rule, bad) for cross in crosses]
        targets = _with_shared_search(targets)
        targets = [with_zoo(task, parts) for task, parts in zip(tasks, targets, strict=True)]
    except ModelError as error:
        return [floor(f"on parts of the training rows: {error}", 0) for _ in tasks]
    if any(too_small(parts) for parts in targets):
        fewest = min(len(parts[0].zoo) for parts in targets)
        return [floor(f"only {fewest} candidates could be fitted", failures) for _ in tasks]
    reals = [Real.of(parts) for parts in targets]
    rungs: list[list[Rung]] = [[] for _ in tasks]
    for kappa in LADDER:
        passed = True
        for parts, real, tried in zip(targets, reals, rungs, strict=True):
            rng = random_stream(config.seed, tasks[0].stream_name, fold, "calibrate", "checks")
            tried.append(try_rung(parts, kappa, real, rng))
            passed = tried[-1].passed
            if not passed:
                break
        if passed:
            why = f"the largest that passes for every target on {failures} failures of the "
            return [
                Calibration(kappa, True, failures, tuple(tried), f"{why}training rows")
                for tried in rungs
            ]
    why = next(tried[-1].why for tried in rungs if tried and not tried[-1].passed)
    why = f"no kappa passes for every target on {failures} failures of the training rows; {why}"
    return [floor(why, failures, tried) for tried in rungs]


def _with_shared_search(targets: Sequence[list[HeldOut]]) -> list[list[HeldOut]]:
    """Let the parts of all targets take their augmented rows from one search per part."""
    out: list[list[HeldOut]] = [[] for _ in targets]
    for parts in zip(*targets, strict=True):
        models = side_by_side([part.models for part in parts], parts[0].models.rule)
        y, f = (np.column_stack([getattr(part, name) for part in parts]) for name in ("y", "f"))
        joint = cache(replace(parts[0], models=models, y=y, f=f).augment)
        for j, part in enumerate(parts):
            out[j].append(replace(part, search=partial(_of_target, joint, j)))
    return out


def _of_target(search: Callable[[float], MadeRows], j: int, kappa: float) -> MadeRows:
    return search(kappa).of_target(j)
