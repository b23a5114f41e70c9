"""Rows of a table as units: the bad ones, and each row's chance to be one, by features alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.model_selection import StratifiedKFold

from amlb_ext.core.losses import Loss
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.rules import RULES, failing_text
from amlb_ext.hardening.split import cross_folds
from amlb_ext.models.answers import Answers
from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.claims import no_region_text
from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.units.judged import Judged
from amlb_ext.units.labelled import LabelledRows
from amlb_ext.units.region import GROUPS, Part, RegionWeights, cross_fit

if TYPE_CHECKING:
    from amlb_ext.core.config import HardnessConfig

#: Why nothing is said where F fails under a loss of pairs of rows.
OF_PAIRS = "an AUC is of pairs of rows, so it is judged over all rows and in groups"


def hardness_config(rule: str, alpha: float | None) -> HardnessConfig:
    """Return the settings of a rule.

    Raises
    ------
    ConfigError
        An unknown rule, with the nearest one.
    """
    # settings need pydantic, which takes longer to import than all that is ours
    from amlb_ext.core.config import build_config

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
        Of F, numbers in the target's own unit.
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
    if not rows.is_classification:
        f = (f - rows.scale.low) / rows.scale.span
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
        return RegionWeights(reason=no_region_text(ROW))
    order = rows.task.order
    part_seed = derive_int_seed(seed, "compare", "parts")
    if order is not None and order.splits:
        splits = cross_folds(is_bad.astype(int), 2, GROUPS, part_seed, order)
    else:
        splitter = StratifiedKFold(n_parts, shuffle=True, random_state=part_seed)
        splits = list(splitter.split(rows.Z, is_bad))
    parts = [
        Part(group=number, learnt=learnt, held=held)
        for number, (learnt, held) in enumerate(splits)
    ]
    is_forward = order is not None and order.time is not None
    unforeseen = no_region_text(ROW)
    return cross_fit(
        rows.Z, is_bad, parts, seed, unforeseen=unforeseen, is_forward=is_forward
    )
