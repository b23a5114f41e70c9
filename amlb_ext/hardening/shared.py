"""One fold of several tasks that share their rows: multi-output regression (paper, section 6).

Every target has an F, an oracle T and a scale of its own. Shared are K, hence the bad rows and the
region; the search, whose fitness averages the squared error over the targets; and the synthesizer,
whose condition is the vector of all targets. What is made is a row with k targets; it stands in k
AMLB tasks, with one target in each, and is kept only if K calls it bad and each of its targets
passes the agreement filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.task import Task
from amlb_ext.hardening.fold import HardFold, both_sides, written_up
from amlb_ext.hardening.hardness import RULES
from amlb_ext.hardening.judged_rows import RealRows
from amlb_ext.hardening.prepare import (
    CrossFit,
    Fitted,
    Prepared,
    Seen,
    call_bad,
    cross_fit,
    fit_region,
    fit_together,
    judged,
)
from amlb_ext.hardening.several import settle_several, side_by_side
from amlb_ext.hardening.taken_rows import TakenRows


def harden_shared(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    crosses: Sequence[CrossFit] | None = None,
) -> list[HardFold]:
    """Harden one fold of the tasks of a group: the same rows for all, each with its own target.

    Parameters
    ----------
    tasks : sequence of Task
        Regression tasks with the same features, folds and ``group``.
    fold : int
    config : GenerateConfig
        ``hardness.over`` says how the targets' residuals become one K.
    crosses : sequence of CrossFit, optional
        What :func:`amlb_ext.hardening.prepare.cross_fit` gave for each task.

    Returns
    -------
    list of HardFold
        One per task, with the same parts and the same features in them, row for row.

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.
    ConfigError
        The rule does not serve regression, or the settings serve single targets only.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.core.task import Origin
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources.table import Table
    >>> from amlb_ext.sources.targets import to_tasks
    >>> x = np.random.default_rng(0).random((120, 2))
    >>> frame = pd.DataFrame(x, columns=["u", "v"]).assign(a=x[:, 0] ** 2, b=x[:, 1] ** 2)
    >>> config = build_config(
    ...     {"synthesizer": {"name": "local"}, "baseline": {"model": "ridge"}}
    ... )
    >>> about = {"kind": None, "folds": (), "origin": Origin("t")}
    >>> tasks = to_tasks(Table("t", frame), name="t", targets=["a", "b"], **about)
    >>> tasks = [split_task(task, config.split, config.seed) for task in tasks]
    >>> a, b = harden_shared(tasks, 0, config)
    >>> a.parts["synthetic"].test.features.equals(b.parts["synthetic"].test.features)
    True
    """
    check_shared(config)
    known = crosses or [cross_fit(task, fold, config) for task in tasks]
    fitted = fit_together(tasks, fold, config, known)
    joint, each = share(fitted, config)
    # the tasks share their features, so what is taken for one is taken for all
    sides = both_sides(joint, config, TakenRows.of_fold(tasks[0], joint.test.features))
    about = {
        "group": tasks[0].group,
        "targets": [task.target_name for task in tasks],
        "over": config.hardness.over,
    }
    out = []
    for j, (task, ready) in enumerate(zip(tasks, each, strict=True)):
        test, train = (None if side is None else side.of_target(j) for side in sides)
        hard = written_up(task, fold, ready, test, train, config)
        hard.summary["shared"] = about
        out.append(hard)
    return out


def check_shared(config: GenerateConfig) -> None:
    """Raise for settings that several regression targets cannot share.

    Raises
    ------
    ConfigError
    """
    rule = config.hardness.rule
    if rule != "auto" and RULES[rule][0] == "classification":
        fitting = " or ".join(name for name, (kind, _) in RULES.items() if kind != RULES[rule][0])
        raise ConfigError(
            f"the rule {rule!r} serves classification, --targets regression", f"--rule {fitting}"
        )
    if config.synthesizer.learn_from == "population":
        raise ConfigError(
            "--learn-from population serves a single target, --targets names several",
            "leave it out, or harden the targets one by one with --target",
        )


def share(fitted: Sequence[Fitted], config: GenerateConfig) -> tuple[Prepared, list[Prepared]]:
    """Settle one K and one region for all targets, and judge the real rows.

    Returns
    -------
    joint : Prepared
        The targets side by side, as search and synthesizer see them.
    each : list of Prepared
        Per target.
    """
    train, test = (_beside([getattr(one, side) for one in fitted]) for side in ("train", "test"))
    rule = settle_several(config.hardness, train.f, train.y, train.t)
    verdict = call_bad(rule, config, train, test)
    region = fit_region(fitted[0], verdict, config)
    each = [judged(one, verdict, region, config) for one in fitted]
    models = side_by_side([ready.models for ready in each], verdict.rule)
    on_test, on_train = (
        rows_beside([getattr(ready, side) for ready in each]) for side in ("test", "train")
    )
    return replace(each[0], models=models, region=region, test=on_test, train=on_train), each


def _beside(sides: Sequence[Seen]) -> Seen:
    """Put y, f and t of the targets side by side."""
    columns = {n: np.column_stack([getattr(side, n) for side in sides]) for n in ("y", "f", "t")}
    return replace(sides[0], **columns)


def rows_beside(rows: Sequence[RealRows]) -> RealRows:
    """Put what is known per target side by side; hardness, weight and bad are common to all."""
    own = ("y", "f", "reducible", "support", "agrees")
    return replace(
        rows[0], **{name: np.column_stack([getattr(one, name) for one in rows]) for name in own}
    )
