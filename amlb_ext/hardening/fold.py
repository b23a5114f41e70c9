"""One fold of a task, from its rows to everything the suite writes of it.

``harden_fold`` is a pure function of (task, fold, configuration): no files, no clock, one
random stream per stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core import losses
from amlb_ext.core.config import GenerateConfig
from amlb_ext.core.rng import derive_seed, stream
from amlb_ext.core.task import Task
from amlb_ext.hardening.augment import FoldModels, MadeRows, Side, make_side
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.given import make_baseline
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.oracle import Oracle, check_labels
from amlb_ext.hardening.weights import draw_region, effective_size, region_weights
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
        Counts, F's score on each part, how the threshold was set, remarks; JSON values.
    """

    train: Rows
    parts: dict[str, Part]
    summary: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RealRows:
    """The real rows of one side, with what is known of each."""

    rows: np.ndarray
    Z: np.ndarray
    y: np.ndarray
    f: np.ndarray
    hardness: np.ndarray
    support: np.ndarray
    agrees: np.ndarray
    weight: np.ndarray
    bad: np.ndarray


def harden_fold(task: Task, fold: int, config: GenerateConfig) -> HardFold:
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
    ['', 'bad', 'full', 'ga', 'hard', 'region', 'synthetic']
    """
    key = (task.name, fold)
    seed = derive_seed(config.seed, *key, "fit") % 2**31
    train_rows, test_rows = task.folds[fold].train, task.folds[fold].test
    encoder = Encoder(task.columns).fit(task.features.iloc[train_rows])
    target = TargetEncoder(task.kind, task.labels, task.target.iloc[train_rows])
    Z, y = _encoded(task, encoder, target, train_rows)
    Z_test, y_test = _encoded(task, encoder, target, test_rows)

    baseline = make_baseline(config.baseline, task, encoder, target).fit(Z, y, seed)
    oracle = Oracle(target.n_classes, derive_seed(config.seed, *key, "oracle") % 2**31).fit(Z, y)
    f_out = baseline.out_of_fold(Z, y, train_rows, seed)
    t_test = oracle.predict(Z_test)
    f_test = baseline.predict_rows(Z_test, test_rows)
    rule = settle_rule(config.hardness, task.kind, task.labels, f_out, y, oracle.out_of_fold_)
    h_train = rule.hardness(y, f_out, oracle.out_of_fold_)
    bad_train = rule.select(h_train)
    h_test = rule.hardness(y_test, f_test, t_test)
    if rule.rule == "quantile":
        rule, bad_test = _worst_share(rule, h_test, config.hardness.share)
    else:
        bad_test = rule.select(h_test)
    weights = region_weights(
        Z, bad_train, Z_test, derive_seed(config.seed, *key, "weights") % 2**31
    )
    support, agrees = check_labels(oracle, t_test, y_test, config.agreement)
    test = RealRows(test_rows, Z_test, y_test, f_test, h_test, support, agrees, weights, bad_test)
    models = FoldModels(encoder, target, baseline, rule, oracle, Z, y, config, key)

    parts = {"full": Part(_real(task, target, test, slice(None)), None)}
    region, replaced = draw_region(weights, stream(config.seed, *key, "region"))
    parts["region"] = Part(_real(task, target, test, region), None)
    summary: dict[str, Any] = {
        "rule": rule.rule,
        "alpha": rule.alpha,
        "alpha_reason": rule.reason,
        "train": len(train_rows),
        "test": len(test_rows),
        "bad": int(bad_test.sum()),
        "bad_train": int(bad_train.sum()),
        "augmented": 0,
        "synthetic": 0,
        "region": {
            "rows": len(region),
            "with_replacement": replaced,
            "effective_size": effective_size(weights),
        },
        "score": dict([losses.score(y_test, f_test)]),
        "notes": [],
    }
    if not bad_test.any():
        summary["notes"].append(no_failures(rule, h_test))
        return HardFold(_train(task, train_rows), parts, summary)

    side = make_side(models, Z_test[bad_test], y_test[bad_test], Z_test, y_test, "test")
    parts |= _hard_parts(task, models, test, side, config)
    _count(summary, side, test)
    if config.train_hard:
        out_of_fold = check_labels(oracle, oracle.out_of_fold_, y, config.agreement)
        unweighted = np.full(len(y), np.nan)
        train = RealRows(train_rows, Z, y, f_out, h_train, *out_of_fold, unweighted, bad_train)
        hard = _hard_training_rows(task, models, train, summary)
        if hard is not None:
            parts["hard"] = Part(parts[""].test, hard)
    return HardFold(_train(task, train_rows), parts, summary)


def no_failures(rule: BadRule, hardness: np.ndarray) -> str:
    """Say that no row is bad, how near the worst one comes, and which alpha would give some."""
    wanted = min(10, int(np.ceil(len(hardness) / 4)))
    nearest = rule.alpha_for(hardness, 1)
    return (
        f"no failures found at alpha = {rule.alpha:.4g} under the rule {rule.rule}: the worst "
        f"row reaches {nearest:.4g}; --alpha {rule.alpha_for(hardness, wanted):.4g} would give "
        f"{wanted} rows, or use --rule quantile --share {wanted / len(hardness):.2g}"
    )


def _encoded(
    task: Task, encoder: Encoder, target: TargetEncoder, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    Z = encoder.transform(task.features.iloc[rows])
    return Z, target.transform(task.target.iloc[rows])


def _worst_share(rule: BadRule, hardness: np.ndarray, share: float) -> tuple[BadRule, np.ndarray]:
    """Settle the rule ``quantile``: the worst share of these rows, at least one."""
    count = max(1, int(np.ceil(share * len(hardness))))
    threshold = float(np.sort(hardness)[::-1][count - 1])
    reason = f"the worst {share:.0%} of the test rows"
    settled = BadRule(rule.rule, threshold, threshold, reason)
    return settled, settled.select(hardness)


def _train(task: Task, rows: np.ndarray) -> Rows:
    provenance = pd.DataFrame({"source_row": task.row_ids[rows]})
    return Rows(_reset(task.features.iloc[rows]), _reset(task.target.iloc[rows]), provenance)


def _reset(values: Any) -> Any:
    return values.reset_index(drop=True)


def _real(task: Task, target: TargetEncoder, side: RealRows, chosen: Any) -> Rows:
    """Real rows as they stand in the table."""
    rows = side.rows[chosen]
    ids = task.row_ids[rows].astype(np.int64)
    provenance = pd.DataFrame(
        {
            "origin": np.where(side.bad[chosen], "bad", "good"),
            "source_row": ids,
            "parent_row": ids,
            "hardness": side.hardness[chosen],
            "loss": losses.row_loss(side.y[chosen], side.f[chosen]),
            "label_support": side.support[chosen],
            "label_agrees": side.agrees[chosen],
            "weight": side.weight[chosen],
        }
    )
    return Rows(_reset(task.features.iloc[rows]), _reset(task.target.iloc[rows]), provenance)


def _made(task: Task, models: FoldModels, made: MadeRows, origin: str, parents: np.ndarray) -> Rows:
    """Made rows, decoded to the table's form; ``parents`` are source ids of the bad rows."""
    provenance = pd.DataFrame(
        {
            "origin": np.full(len(made), origin, dtype=object),
            "source_row": np.full(len(made), -1, dtype=np.int64),
            "parent_row": parents[made.parent].astype(np.int64),
            "hardness": made.hardness,
            "loss": losses.row_loss(made.y, made.f),
            "label_support": made.support,
            "label_agrees": made.agrees,
            "weight": np.full(len(made), np.nan),
        }
    )
    target = models.target.inverse(made.y, task.target_name)
    return Rows(models.encoder.inverse(made.Z), target, provenance)


def _stack(blocks: list[Rows]) -> Rows:
    features = pd.concat([b.features for b in blocks], ignore_index=True)
    target = pd.concat([b.target for b in blocks], ignore_index=True)
    provenance = pd.concat([b.provenance for b in blocks], ignore_index=True)
    return Rows(features, target, provenance)


def _blocks(task: Task, models: FoldModels, real: RealRows, side: Side) -> dict[str, Rows]:
    """Rows by origin, those with none left out."""
    parents = task.row_ids[real.rows[real.bad]]
    blocks = {"bad": _real(task, models.target, real, np.flatnonzero(real.bad))}
    if len(side.augmented):
        blocks["ga"] = _made(task, models, side.augmented, "ga", parents)
    if len(side.synthetic):
        blocks["synthetic"] = _made(task, models, side.synthetic, "synthetic", parents)
    return blocks


def _hard_parts(
    task: Task, models: FoldModels, test: RealRows, side: Side, config: GenerateConfig
) -> dict[str, Part]:
    blocks = _blocks(task, models, test, side)
    chosen = [blocks[name] for name in config.composition if name in blocks] or [blocks["bad"]]
    return {"": Part(_stack(chosen), None)} | {n: Part(b, None) for n, b in blocks.items()}


def _count(summary: dict[str, Any], side: Side, test: RealRows) -> None:
    summary.update(side.counts)
    summary["notes"] += side.notes
    name = next(iter(summary["score"]))
    scores = {name: summary["score"][name]}
    scores["bad"] = losses.score(test.y[test.bad], test.f[test.bad])[1]
    for origin, made in (("ga", side.augmented), ("synthetic", side.synthetic)):
        if len(made) and not np.isnan(made.f).any():
            scores[origin] = losses.score(made.y, made.f)[1]
    summary["score"] = scores


def _hard_training_rows(
    task: Task, models: FoldModels, train: RealRows, summary: dict[str, Any]
) -> Rows | None:
    """Hard rows of the training side, or None (said) when they are too few to train on."""
    if not train.bad.any():
        summary["notes"].append("no _hard: no training row failed out of fold")
        return None
    side = make_side(models, train.Z[train.bad], train.y[train.bad], train.Z, train.y, "train")
    rows = _stack(list(_blocks(task, models, train, side).values()))
    summary["hard_train"] = dict(side.counts)
    summary["notes"] += side.notes
    if len(rows.target) < MIN_HARD_TRAIN or rows.target.nunique() < 2:
        summary["notes"].append(
            f"no _hard: its training file would have {len(rows.target)} rows and "
            f"{rows.target.nunique()} distinct targets"
        )
        return None
    return rows
