"""One fold of a task, from its rows to everything the suite writes of it.

``harden_fold`` is a pure function of (task, fold, configuration): no files, no clock, one
random stream per stage. So is ``harden_group``, for the tasks of a table with several targets
(paper, section 6): a task on its own is a group of one. Rows are made from the failures of the test
rows and, where asked, of the training rows; the test side may also have rows that stand for all
test rows.

Every target has an F, an oracle T and a scale of its own. Shared are K, hence the bad rows and the
region; the search, whose fitness averages the squared error over the targets; and the synthesizer,
whose condition is the vector of all targets. What is made is a row with k targets; it stands in k
AMLB tasks, with one target in each, and is kept only if K calls it bad and each of its targets
passes the agreement filter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.notes import Note
from amlb_ext.core.progress import begin_stage
from amlb_ext.core.rng import derive_seed
from amlb_ext.core.task import Task
from amlb_ext.hardening.assemble import HardFold, assemble_fold
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.hardening.made_rows.augment import augment_bad_rows
from amlb_ext.hardening.made_rows.proposals import (
    ask_design,
    confirm_rows,
    surplus_of_proposals,
    with_surrogates,
)
from amlb_ext.hardening.made_rows.screening import (
    MadeSide,
    TakenRows,
    with_least_support,
)
from amlb_ext.hardening.made_rows.synthesize import sample_synthetic_rows
from amlb_ext.hardening.prepare import CrossFit, Prepared, prepare
from amlb_ext.hardening.rules import BY_KIND, RULES


def harden_fold(
    task: Task,
    fold: int,
    config: GenerateConfig,
) -> HardFold:
    """Find the rows of a fold on which F fails, augment them, sample new ones.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    config : GenerateConfig

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
    ['bad', 'full', 'ga', 'hard', 'region', 'synthetic']
    """
    return harden_group([task], fold, config)[0]


def harden_group(
    tasks: Sequence[Task],
    fold: int,
    config: GenerateConfig,
    cross: CrossFit | None = None,
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
    >>> from amlb_ext.sources.files import to_tasks
    >>> x = np.random.default_rng(0).random((120, 4))
    >>> frame = pd.DataFrame(x[:, :2], columns=["u", "v"])
    >>> frame = frame.assign(a=x[:, 0] ** 2 + 0.1 * x[:, 2], b=x[:, 1] ** 2 + 0.1 * x[:, 3])
    >>> config = build_config(
    ...     {"synthesizer": {"name": "local"}, "baseline": {"model": "ridge"}}
    ... )
    >>> about = {"kind": None, "origin": Origin("t")}
    >>> tasks = to_tasks(Table("t", frame), name="t", targets=["a", "b"], **about)
    >>> tasks = [split_task(task, config.split, config.seed) for task in tasks]
    >>> a, b = harden_group(tasks, 0, config)
    >>> a.parts["synthetic"].test.features.equals(b.parts["synthetic"].test.features)
    True
    """
    if len(tasks) > 1:
        check_several_targets(config)
    prepared = prepare(tasks, fold, config, cross)
    # the tasks share their features, so what one may not repeat, none may
    test_side, train_side = make_both_sides(prepared, tasks[0].features)
    folds = []
    for target, task in enumerate(tasks):
        hard = assemble_fold(
            task,
            fold,
            prepared,
            test_side=test_side,
            train_side=train_side,
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
        fitting = [
            name for name, about in RULES.items() if about[0] != "classification"
        ]
        raise ConfigError(
            f"the rule {rule!r} serves classification, --targets regression",
            f"--rule {' or '.join(fitting)}",
        )
    unfit = ""
    if config.synthesizer.name == "swarm":
        unfit = "--synthesizer swarm"
    elif config.synthesizer.learn_from == "population":
        unfit = "--learn-from population"
    if unfit:
        raise ConfigError(
            f"{unfit} serves a single target, --targets names several",
            "leave it out, or harden the targets one by one with --target",
        )


# Both sides of a fold.


#: Shares of the rows that F may still be asked about, for the made rows of each kind.
AUGMENTED_SHARE, SYNTHETIC_SHARE = 0.4, 0.7


def make_both_sides(
    prepared: Prepared, table: pd.DataFrame
) -> tuple[MadeSide | None, MadeSide | None]:
    """Make rows from the failures of the test rows and, where asked, of the training rows.

    No made row repeats the features of a row of the table, of a test row as it is written, or of
    a row made before it.

    Parameters
    ----------
    prepared : Prepared
    table : DataFrame
        Features of all rows of the table, in canonical form.

    Returns
    -------
    test_side, train_side : MadeSide or None
        None where no row failed; without bad test rows nothing is made at all.
    """
    test, train = prepared.test, prepared.train
    if not test.is_bad.any():
        return None, None
    real_sides = {"test": test}
    if prepared.models.config.train_hard and train.is_bad.any():
        real_sides["train"] = train
    models = with_least_support(prepared.models, train)
    taken = TakenRows((table, test.features))
    sides = {}
    for name, real in real_sides.items():
        side = make_side(models, real, name, taken)
        # the test side comes first, so it is the training side that gives way
        taken = taken.with_made(side.augmented.rows, side.synthetic.rows)
        sides[name] = side
    return sides["test"], sides.get("train")


def make_side(
    models: FoldModels, real: JudgedRows, side: str, taken: TakenRows | None = None
) -> MadeSide:
    """Augment the bad rows, learn their distribution, sample from it.

    Parameters
    ----------
    models : FoldModels
    real : JudgedRows
        All real rows of this side, at least one of them bad: they bound columns and targets.
    side : str
        ``test`` or ``train``; part of the key of the random streams.
    taken : TakenRows, optional
        Rows that no made row may repeat; when omitted those the models were fitted on, and the
        real rows of this side.
    """
    if taken is None:
        # decoded, not as they came: rows of a study are known by their codes alone
        fitted_on = models.encoder.inverse(models.Z)
        taken = TakenRows((fitted_on, models.encoder.inverse(real.Z)))
    notes: tuple[Note, ...] = ()
    least = models.least_support
    if least is not None and models.config.search.operators.agreement:
        note = Note(kind="no support", side=side)
        if np.isfinite(least):
            counts = {"least": float(least)}
            note = Note(kind="least support", side=side, counts=counts)
        notes = (note,)

    # one stream per stage, keyed by the side as well
    seed, key = models.config.seed, (*models.key, side)
    augment_seed = derive_seed(seed, *key, "augment")
    synthesize_seed = derive_seed(seed, *key, "synthesize")
    # suites were made before a bad row had several tries: the key of the first has no number
    search_seeds = [derive_seed(seed, *key, "search")]
    for attempt in range(1, models.config.search.operators.tries):
        search_seeds.append(derive_seed(seed, *key, "search", attempt))

    ask_design(models, real, side)
    begin_stage(f"searching for rows near the {side} rows on which F fails")
    proposed = augment_bad_rows(
        with_surrogates(models, side),
        real,
        side=side,
        taken=taken,
        seed=augment_seed,
        search_seeds=search_seeds,
    )
    [augmented] = confirm_rows(models, [proposed], share=AUGMENTED_SHARE)
    if models.config.synthesizer.times:
        begin_stage(f"learning the {side} failures, and sampling from them")
    proposed = sample_synthetic_rows(
        # learnt anew: F has said more by now
        with_surrogates(models, side),
        real,
        augmented=augmented.rows,
        side=side,
        taken=taken.with_made(augmented.rows),
        seed=synthesize_seed,
        surplus=surplus_of_proposals(models),
    )
    [synthetic] = confirm_rows(models, [proposed], share=SYNTHETIC_SHARE)
    return MadeSide(
        augmented=augmented,
        synthetic=synthetic,
        bad=int(real.is_bad.sum()),
        least_support=models.least_support,
        notes=(*notes, *augmented.notes, *synthetic.notes),
    )
