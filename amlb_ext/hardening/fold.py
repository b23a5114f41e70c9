"""One fold of a task, from its rows to everything the suite writes of it.

``harden_fold`` is a pure function of (task, fold, configuration): no files, no clock, one
random stream per stage. So is ``harden_group``, for the tasks of a table with several targets
(paper, section 6): a task on its own is a group of one.

Every target has an F, an oracle T and a scale of its own. Shared are K, hence the bad rows and the
region; the search, whose fitness averages the squared error over the targets; and the synthesizer,
whose condition is the vector of all targets. What is made is a row with k targets; it stands in k
AMLB tasks, with one target in each, and is kept only if K calls it bad and each of its targets
passes the agreement filter.
"""

from __future__ import annotations

from collections.abc import Sequence

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.task import Task
from amlb_ext.hardening.assemble import HardFold, assemble_fold
from amlb_ext.hardening.composition import Composition
from amlb_ext.hardening.made_rows.sides import make_both_sides
from amlb_ext.hardening.prepare import CrossFit, prepare
from amlb_ext.hardening.rules import BY_KIND, RULES

__all__ = [
    "HardFold",
    "check_several_targets",
    "harden_fold",
    "harden_group",
]


def harden_fold(
    task: Task,
    fold: int,
    config: GenerateConfig,
    cross: CrossFit | None = None,
    composition: Composition | None = None,
) -> HardFold:
    """Find the rows of a fold on which F fails, augment them, sample new ones.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    config : GenerateConfig
    cross : CrossFit, optional
        What :func:`amlb_ext.hardening.prepare.cross_fit` returned for the same arguments.
    composition : Composition, optional
        What the main test file is made of; as the settings name it when omitted.

    Returns
    -------
    HardFold

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.
    ConfigError
        The rule does not serve this kind of task.

    Examples
    --------
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources import open_specs
    >>> config = build_config({"synthesizer": {"name": "local"}, "baseline": {"model": "ridge"}})
    >>> task = next(iter(open_specs(["bundled/toy"], config.source))).load()
    >>> hard = harden_fold(split_task(task, config.split, config.seed), 0, config)
    >>> sorted(hard.parts)
    ['', 'bad', 'full', 'ga', 'hard', 'region', 'synthetic']
    """
    return harden_group([task], fold, config, cross, composition)[0]


def harden_group(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    cross: CrossFit | None = None,
    composition: Composition | None = None,
) -> list[HardFold]:
    """Harden one fold of the tasks of a group: the same rows for all, each with its own target.

    Parameters
    ----------
    tasks : sequence of Task
        One, or several regression tasks with the same features, folds and ``group``.
    fold : int
    config : GenerateConfig
        ``hardness.over`` says how the targets' residuals become one K.
    cross : CrossFit, optional
        What :func:`amlb_ext.hardening.prepare.cross_fit` returned for the same arguments.
    composition : Composition, optional
        What the main test files are made of; as the settings name it when omitted.

    Returns
    -------
    list of HardFold
        One per task, with the same parts and the same features in them, row for row.

    Raises
    ------
    ModelError
        F cannot be fitted, or its predict fails.
    ConfigError
        The rule does not serve this kind of task, or the settings serve single targets only.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from amlb_ext.core.config import build_config
    >>> from amlb_ext.core.task import Origin
    >>> from amlb_ext.hardening.split import split_task
    >>> from amlb_ext.sources.table import Table
    >>> from amlb_ext.sources.targets import to_tasks
    >>> x = np.random.default_rng(0).random((120, 4))
    >>> frame = pd.DataFrame(x[:, :2], columns=["u", "v"])
    >>> frame = frame.assign(a=x[:, 0] ** 2 + 0.1 * x[:, 2], b=x[:, 1] ** 2 + 0.1 * x[:, 3])
    >>> config = build_config(
    ...     {"synthesizer": {"name": "local"}, "baseline": {"model": "ridge"}}
    ... )
    >>> about = {"kind": None, "folds": (), "origin": Origin("t")}
    >>> tasks = to_tasks(Table("t", frame), name="t", targets=["a", "b"], **about)
    >>> tasks = [split_task(task, config.split, config.seed) for task in tasks]
    >>> a, b = harden_group(tasks, 0, config)
    >>> a.parts["synthetic"].test.features.equals(b.parts["synthetic"].test.features)
    True
    """
    if len(tasks) > 1:
        check_several_targets(config)
    if composition is None:
        composition = Composition.of_parts(config.composition, "as the settings say")
    prepared = prepare(tasks, fold, config, cross)
    test_side, train_side = make_both_sides(
        prepared.models,
        prepared.test,
        prepared.train,
        # the tasks share their features, so what one may not repeat, none may
        table=tasks[0].features,
        region=prepared.region,
        composition=composition,
    )
    folds = []
    for target, task in enumerate(tasks):
        hard = assemble_fold(
            task,
            fold,
            prepared,
            test_side=test_side,
            train_side=train_side,
            composition=composition,
            config=config,
            target=target,
        )
        # a task on its own shares nothing, and its summary does not mention it
        if task.group:
            hard.summary["shared"] = {
                "group": task.group,
                "targets": [member.target_name for member in tasks],
                "over": config.hardness.over,
            }
        folds.append(hard)
    return folds


def check_several_targets(config: GenerateConfig) -> None:
    """Raise for settings that several regression targets cannot share.

    Raises
    ------
    ConfigError
    """
    rule = config.hardness.rule
    # "auto" chooses a rule for the kind of the task
    if rule not in BY_KIND and RULES[rule][0] == "classification":
        fitting = []
        for name, (family, _) in RULES.items():
            if family != "classification":
                fitting.append(name)
        raise ConfigError(
            f"the rule {rule!r} serves classification, --targets regression",
            f"--rule {' or '.join(fitting)}",
        )
    if "population" in config.composition:
        raise ConfigError(
            "--composition population serves a single target, --targets names several",
            "leave population out, or harden the targets one by one with --target",
        )
    if config.synthesizer.name == "swarm":
        raise ConfigError(
            "--synthesizer swarm serves a single target, --targets names several",
            "choose another, or harden the targets one by one with --target",
        )
    if config.synthesizer.learn_from == "population":
        raise ConfigError(
            "--learn-from population serves a single target, --targets names several",
            "leave it out, or harden the targets one by one with --target",
        )
