"""Rows of a table as units: the bad ones, and each row's chance to be one, by features alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.model_selection import StratifiedKFold

from amlb_ext.core.config import HardnessConfig, build_config
from amlb_ext.core.errors import DataError
from amlb_ext.core.losses import Loss
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.rules import RULES, failing_text
from amlb_ext.hardening.split import CvSplits, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.models.answers import Answers
from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.claims import no_region_text
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.units.judged import Judged
from amlb_ext.units.labelled import LabelledRows
from amlb_ext.units.region import (
    GROUPS,
    Learn,
    Part,
    RegionWeights,
    cross_fit,
    forest_learner,
)

#: Chance that a region is found where failures are noise.
CHANCE = 0.05
#: Parts of the rows with groups or times that a region is calibrated on.
CALIBRATING_PARTS = 3
#: Why nothing is said where F fails under a loss of pairs of rows.
OF_PAIRS = "an AUC is of pairs of rows, so it is judged over all rows and in groups"
_NO_REGION = RegionWeights(reason=no_region_text(ROW))


def hardness_config(rule: str, alpha: float | None) -> HardnessConfig:
    """Return the settings of a rule.

    Raises
    ------
    ConfigError
        An unknown rule, with the nearest one.
    """
    return build_config({"hardness": {"rule": rule, "alpha": alpha}}).hardness


def judge_rows(
    rows: LabelledRows,
    answers: Answers,
    loss_f: np.ndarray,
    config: HardnessConfig,
    *,
    loss: Loss,
    seed: int = 0,
    level: float = 0.95,
) -> Judged:
    """Call rows bad, and learn where bad rows are.

    Parameters
    ----------
    rows : LabelledRows
    answers : Answers
        Of F, scaled.
    loss_f : ndarray of shape (n,)
        Of F, as they are.
    config : HardnessConfig
        The rule that calls a row bad.
    loss : Loss
        Squared errors are compared with a cap; of pairs of rows nothing is said where F fails.
    seed : int
    level : float
        Coverage of intervals.

    Returns
    -------
    Judged
        Without weights where no row is bad, or every row: ``no_claim`` says so.
    """
    y, f = rows.y[:, None], answers.f[:, None]
    rule = settle_rule(
        config, rows.task.kind, rows.task.labels, y=y, f=f, decided=answers.decided
    )
    hardness = rule.hardness(y, f, decided=answers.decided)
    is_bad = rule.select(hardness)
    if not is_bad.any() or is_bad.all():
        region = RegionWeights(reason=_why_nothing_to_learn(rule, hardness, is_bad))
    else:
        region = weigh_rows(rows, is_bad, seed=seed)
    order = rows.task.order
    if loss.is_of_pairs:
        region = RegionWeights(reason=OF_PAIRS)
    is_squared = loss.name == "squared"
    return Judged(
        compared=ComparedUnits(
            loss_f=loss_f,
            weights=region.inside,
            clusters=None if order is None else order.clusters,
            level=level,
            cap=cap_from_baseline(loss_f) if is_squared else NO_CAP,
            # errors are in the target's own unit already
            span=np.ones(len(rows)) if is_squared else None,
            unit=ROW,
        ),
        is_bad=is_bad,
        risk=region.weights,
        rule=_rule_text(rule, is_bad),
        verb=failing_text(rule.rule),
        no_claim=region.reason,
    )


def _rule_text(rule: BadRule, is_bad: np.ndarray) -> str:
    """Return the rule in words, with its threshold."""
    if rule.by_decision:
        return f"{rule.rule}: {rule.reason}"
    if rule.rule == "quantile":
        return f"the {is_bad.mean():.0%} of the rows with the largest loss"
    return f"{rule.rule}: {RULES[rule.rule][1]}, alpha {rule.alpha:.3g}"


def _why_nothing_to_learn(
    rule: BadRule, hardness: np.ndarray, is_bad: np.ndarray
) -> str:
    """Return why there is no region, and what would give one."""
    n = len(hardness)
    if rule.by_decision:
        n_wrong = int((hardness >= 1).sum())
        alike = ", and its probabilities tell these apart by nothing" if n_wrong else ""
        return f"F decides {n_wrong} of {n} rows wrongly{alike}: there is no place where it fails"
    how_many = "every row" if is_bad.all() else "no row"
    wanted = max(10, n // 20)
    alpha = rule.alpha_for(hardness, wanted)
    told = int(
        (hardness >= 1 - alpha if rule.rule == "band" else hardness >= alpha).sum()
    )
    advice = f"; alpha={alpha:.4g} would give {told} rows" if 0 < told < n / 2 else ""
    return (
        f"F fails on {how_many} of {n} under the rule {rule.rule!r} with alpha {rule.alpha:.3g}: "
        f"nothing tells rows apart by it{advice}"
    )


def weigh_rows(
    rows: LabelledRows, is_bad: np.ndarray, *, seed: int = 0
) -> RegionWeights:
    """Learn the weights of rows from others: of other parts, other groups, or earlier times.

    Parameters
    ----------
    rows : LabelledRows
    is_bad : ndarray of shape (n,), bool
        Some, not all.
    seed : int

    Returns
    -------
    RegionWeights
        Weights are 0 for the oldest rows where the order is that of time: nothing before them
        tells of their region.
    """
    n_parts = min(GROUPS, int(is_bad.sum()), int((~is_bad).sum()))
    if n_parts < 2:
        return _NO_REGION
    order = rows.task.order
    in_order = order is not None and order.splits
    if in_order:
        splits = _splits_in_order(rows, is_bad, seed, np.arange(len(rows)), GROUPS)
        learn = _learner_in_order(rows, is_bad, seed)
    else:
        splitter = StratifiedKFold(
            n_parts,
            shuffle=True,
            random_state=derive_int_seed(seed, "compare", "parts"),
        )
        splits = list(splitter.split(rows.Z, is_bad))
        learn = forest_learner(
            rows.Z,
            is_bad,
            lambda own: derive_int_seed(seed, "compare", "region", own),
        )
    parts = [
        Part(group=number, learnt=learnt, held=held)
        for number, (learnt, held) in enumerate(splits)
    ]
    is_forward = order is not None and order.time is not None
    weights, parts = cross_fit(rows.Z, parts, learn, is_forward=is_forward)
    if not parts:
        return _NO_REGION
    # without a region the first parts join the oldest rows
    parts = [replace(part, group=number) for number, part in enumerate(parts)]
    weighed = np.concatenate([part.held for part in parts])
    if not _foretells(weights[weighed], is_bad[weighed]):
        return _NO_REGION
    part_of = np.full(len(rows), -1)
    for part in parts:
        part_of[part.held] = part.group
    return RegionWeights(weights=weights, part=part_of)


def _foretells(weights: np.ndarray, is_bad: np.ndarray) -> bool:
    """Whether bad rows weigh more than others, by forests that have seen neither.

    A one-sided test of Mann and Whitney: on noise one table in twenty passes.
    """
    if not is_bad.any() or is_bad.all():
        return False
    test = mannwhitneyu(weights[is_bad], weights[~is_bad], alternative="greater")
    return bool(test.pvalue < CHANCE)


def _learner_in_order(rows: LabelledRows, is_bad: np.ndarray, seed: int) -> Learn:
    """Return what learns a region that is calibrated in the order of the rows, too."""

    def learn(learnt: np.ndarray, own: int) -> Region | None:
        if not is_bad[learnt].any() or is_bad[learnt].all():
            return None
        own_seed = seed + own
        try:
            inner = _splits_in_order(rows, is_bad, own_seed, learnt, CALIBRATING_PARTS)
        except DataError:
            # too few times or groups are left to calibrate on
            return None
        region = Region(derive_int_seed(own_seed, "compare", "region"))
        region.fit(rows.Z[learnt], is_bad[learnt], inner)
        return region if region.is_found else None

    return learn


def _splits_in_order(
    rows: LabelledRows,
    is_bad: np.ndarray,
    seed: int,
    among: np.ndarray,
    n_parts: int,
) -> CvSplits:
    """Return parts of some of the rows, as positions among these."""
    assert rows.task.order is not None
    part_seed = derive_int_seed(seed, "compare", "parts")
    codes = is_bad[among].astype(int)
    return cross_folds(codes, 2, n_parts, part_seed, rows.task.order.take(among))
