"""One fold of a task, from its rows to everything the suite writes of it.

``harden_fold`` is a pure function of (task, fold, configuration): no files, no clock, one
random stream per stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.augment import make_side
from amlb_ext.hardening.hardness import BadRule
from amlb_ext.hardening.judged_rows import (
    FoldModels,
    RealRows,
    Side,
    blocks_by_origin,
    failures,
    judged_again,
    real_rows,
    stack,
    training_rows,
)
from amlb_ext.hardening.prepare import CrossFit, Prepared, prepare
from amlb_ext.hardening.taken_rows import TakenRows, part_sides
from amlb_ext.hardening.test_rows import substituted_names
from amlb_ext.hardening.vouch import has_cells_only, least_support
from amlb_ext.hardening.weights import draw_region
from amlb_ext.stats.weighted_mean import kish_size
from amlb_ext.suite import Part, Rows

#: Fewer hard training rows than this make no training file for ``<task>_hard``.
MIN_HARD_TRAIN = 10


@dataclass(frozen=True)
class HardFold:
    """What one fold gives.

    Attributes
    ----------
    train : Rows
        The rows F was trained on.
    parts : dict of str to Part
        Keyed by the suffix of the AMLB task: ``""``, ``full``, ``bad``, ``ga``, ``synthetic``,
        ``region``, ``hard``. A fold without failures has ``full`` and ``region`` only.
    summary : dict
        Counts, F's score on each part (an rmse in the target's own unit), how the threshold was
        set, remarks; JSON values.
    """

    train: Rows
    parts: dict[str, Part]
    summary: dict[str, Any] = field(default_factory=dict)


def harden_fold(
    task: Task, fold: int, config: GenerateConfig, cross: CrossFit | None = None
) -> HardFold:
    """Find the rows of a fold on which F fails, augment them, sample new ones.

    Parameters
    ----------
    task : Task
        With folds.
    fold : int
    config : GenerateConfig
    cross : CrossFit, optional
        What :func:`amlb_ext.hardening.prepare.cross_fit` gave for the same arguments.

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
    ready = prepare(task, fold, config, cross)
    on_test, on_train = both_sides(ready, config, TakenRows.of_fold(task, ready.test.features))
    return written_up(task, fold, ready, on_test, on_train, config)


def both_sides(
    ready: Prepared, config: GenerateConfig, taken: TakenRows
) -> tuple[Side | None, Side | None]:
    """Make rows from the failures of the test rows and, where asked, of the training rows.

    None where no row failed; without bad test rows nothing is made at all. No row repeats the
    features of one that is ``taken``, and none of the training side those of the test side.
    """
    test, train = ready.test, ready.train
    if not test.bad.any():
        return None, None
    models = vouching(ready.models, train)
    on_test = make_side(models, failures(test), test.Z, test.y, "test", taken)
    if not (config.train_hard and train.bad.any()):
        return on_test, None
    taken = on_test.taken_after(taken, models)
    return on_test, make_side(models, failures(train), train.Z, train.y, "train", taken)


def vouching(models: FoldModels, train: RealRows) -> FoldModels:
    """Return the models with what a label needs of the oracle, where rows are cells of a table."""
    if not models.target.n_classes or not has_cells_only(models.encoder, models.Z):
        return models
    least = least_support(models.rule, train.y, train.f, models.oracle.out_of_fold_)
    return replace(models, least_support=least)


def written_up(
    task: Task,
    fold: int,
    ready: Prepared,
    on_test: Side | None,
    on_train: Side | None,
    config: GenerateConfig,
) -> HardFold:
    """Put real and made rows together as the suite wants them, with the figures of the fold.

    Parameters
    ----------
    task : Task
    fold : int
    ready : Prepared
    on_test, on_train : Side or None
        As :func:`both_sides` gives them.
    config : GenerateConfig
    """
    models, test, weights = ready.models, ready.test, ready.test.weight
    target, rule, key = models.target, models.rule, models.key
    train_rows = task.folds[fold].train

    parts = {"full": Part(real_rows(task, target, test, slice(None)), None)}
    region, replaced = draw_region(weights, random_stream(config.seed, *key, "region"))
    parts["region"] = Part(real_rows(task, target, test, region), None)
    summary: dict[str, Any] = {
        "rule": rule.rule,
        "alpha": rule.alpha,
        "alpha_reason": rule.reason,
        "train": len(train_rows),
        "test": len(test.rows),
        "bad": int(test.bad.sum()),
        "bad_train": int(ready.train.bad.sum()),
        "augmented": 0,
        "synthetic": 0,
        "dropped": {},  # told even where nothing was made: verify holds such folds to the rule
        "region": {
            "rows": len(region),
            "with_replacement": replaced,
            "effective_size": kish_size(weights),
            "effective_size_reducible": kish_size(test.reducible + 1e-12),
        },
        "score": dict([row_losses.summary_score(test.y, test.f, target.span)]),
        "notes": ready.changes.notes(),
        **ready.changes.to_json(),
    }
    if on_test is None:
        summary["no_failures"] = no_failures(rule, test.hardness)
        summary["notes"].append(summary["no_failures"])
        return HardFold(training_rows(task, train_rows), parts, summary)

    parts |= _hard_parts(task, models, test, on_test, config)
    _count(summary, on_test, test, target.span)
    if config.train_hard:
        hard = _hard_pair(task, fold, ready, on_train, parts[""].test, summary)
        if hard is not None:
            assert hard.train is not None
            tests = readable_beside(task, hard.test, hard.train, ready)
            parts["hard"] = Part(tests, hard.train)
    return HardFold(training_rows(task, train_rows), parts, summary)


def readable_beside(task: Task, tests: Rows, train: Rows, ready: Prepared) -> Rows:
    """Return test rows with what these training rows do not know replaced, and judged again.

    The hard training rows are few, so they know fewer categories than the fold's own.
    """
    fitted, _ = ready.chooser.fit(train.features, tests.features, task)
    if not fitted.cells:
        return tests
    names = substituted_names(task, fitted.cells, len(tests))
    earlier = tests.provenance["substituted"].to_numpy()
    both = [",".join(filter(None, pair)) for pair in zip(earlier, names, strict=True)]
    provenance = tests.provenance.assign(substituted=both)
    changed = np.flatnonzero(names != "")
    if ready.models.baseline.can_search:
        features, target = fitted.features.iloc[changed], tests.target.iloc[changed]
        fresh = judged_again(task, ready.models, features, target)
        for name, values in fresh.items():
            provenance.loc[changed, name] = values
    return Rows(fitted.features, tests.target, provenance)


def no_failures(rule: BadRule, hardness: np.ndarray) -> str:
    """Say that no row is bad, how near the worst one comes, and which alpha would give some."""
    wanted = min(10, int(np.ceil(len(hardness) / 4)))
    nearest = rule.alpha_for(hardness, 1)
    return (
        f"no failures found at alpha = {rule.alpha:.4g} under the rule {rule.rule}: the worst "
        f"row reaches {nearest:.4g}; --alpha {rule.alpha_for(hardness, wanted):.4g} would give "
        f"{wanted} rows, or use --rule quantile --share {wanted / len(hardness):.2g}"
    )


def _hard_parts(
    task: Task, models: FoldModels, test: RealRows, side: Side, config: GenerateConfig
) -> dict[str, Part]:
    blocks = blocks_by_origin(task, models, test, side)
    chosen = [blocks[name] for name in config.composition if name in blocks] or [blocks["bad"]]
    return {"": Part(stack(chosen), None)} | {n: Part(b, None) for n, b in blocks.items()}


def _count(summary: dict[str, Any], side: Side, test: RealRows, unit: float) -> None:
    summary.update(side.counts)
    summary["notes"] += side.notes
    name = next(iter(summary["score"]))
    scores = {name: summary["score"][name]}
    scores["bad"] = row_losses.summary_score(test.y[test.bad], test.f[test.bad], unit)[1]
    for origin, made in (("ga", side.augmented), ("synthetic", side.synthetic)):
        if len(made) and not np.isnan(made.f).any():
            scores[origin] = row_losses.summary_score(made.y, made.f, unit)[1]
    summary["score"] = scores


def _hard_pair(
    task: Task,
    fold: int,
    ready: Prepared,
    side: Side | None,
    test: Rows,
    summary: dict[str, Any],
) -> Part | None:
    """Hard rows of both sides, or None (said) when those of training are too few to train on."""
    if side is None:
        summary["notes"].append("no _hard: no training row failed out of fold")
        return None
    # of training rows a re-fit is no judge: it was fitted on most of them
    models = replace(ready.models, fits=())
    blocks = blocks_by_origin(task, models, ready.train, side)
    pair, left_out = part_sides(
        stack(list(blocks.values())),
        test,
        real=(task.features, ready.test.features),
        tested=(task.features.iloc[task.folds[fold].test], ready.test.features),
        fit=lambda train, asked: ready.chooser.fit(train, asked, task)[0],
    )
    rows = pair.train
    assert rows is not None
    summary["hard_train"] = {**side.counts, "left_out": left_out}
    summary["notes"] += side.notes
    if any(left_out.values()):
        words = {
            "train_real": "real training rows with the features of a test row",
            "train_made": "made training rows with the features of a test row",
            "test_made": "made test rows that repeat another row as they are written there",
        }
        counted = ", ".join(
            f"{left_out[key]} {text}" for key, text in words.items() if left_out[key]
        )
        summary["notes"].append(f"_hard: left out {counted}")
    if len(rows.target) < MIN_HARD_TRAIN or rows.target.nunique() < 2:
        summary["notes"].append(
            f"no _hard: its training file would have {len(rows.target)} rows and "
            f"{rows.target.nunique()} distinct targets"
        )
        return None
    return pair
