"""Where F fails, by features alone: the bad rows, and each row's chance to be one.

The weight of a row comes from a forest that has not seen the row, so that no row is weighted by
its own error (cross-fitting). Some hundred rows teach a forest only roughly where F fails. How
roughly is seen by learning once more without each part of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import mannwhitneyu
from sklearn.model_selection import StratifiedKFold

from amlb_ext.comparison.labelled import LabelledRows
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.hardening.hardness import BadRule, settle_rule
from amlb_ext.hardening.rules import RULES
from amlb_ext.hardening.split import CvSplits, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.models.answers import Answers

#: Parts of the rows; the weights of each come from the others.
PARTS = 5
#: Chance that a region is found where failures are noise.
CHANCE = 0.05
#: Parts of the rows with groups or times that a region is calibrated on.
CALIBRATING_PARTS = 3


@dataclass(frozen=True, kw_only=True)
class FailureRegion:
    """The bad rows of F and the weights of all rows.

    Attributes
    ----------
    rule : BadRule
    is_bad : ndarray of shape (n,), bool
    weights : ndarray of shape (n,) or None
        ``P(bad | x)``, cross-fitted; None where features do not foresee failures. 0 for the
        oldest rows where the order is that of time: nothing before them tells of their region.
    reweighted : ndarray of shape (PARTS, n) or None
        The same, learnt without each of the parts.
    problem : str
        Why there is no region; empty where there is one, or where features do not foresee it.
    """

    rule: BadRule
    is_bad: np.ndarray
    weights: np.ndarray | None
    reweighted: np.ndarray | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The rule in words, with its threshold."""
        rule = self.rule
        if rule.by_decision:
            return f"{rule.rule}: {rule.reason}"
        if rule.rule == "quantile":
            return f"the {self.is_bad.mean():.0%} of the rows with the largest loss"
        return f"{rule.rule}: {RULES[rule.rule][1]}, alpha {rule.alpha:.3g}"


def find_region(
    rows: LabelledRows,
    answers: Answers,
    config: HardnessConfig,
    seed: int,
    *,
    with_jackknife: bool = True,
) -> FailureRegion:
    """Call rows bad, and learn where bad rows are.

    Parameters
    ----------
    rows : LabelledRows
    answers : Answers
        Of F, scaled.
    config : HardnessConfig
        The rule that calls a row bad.
    seed : int
    with_jackknife : bool
        Whether the weights are learnt without each part, too; ten more forests.

    Returns
    -------
    FailureRegion
        Without weights where no row is bad, or every row: ``problem`` says so.
    """
    y, f = rows.y[:, None], answers.f[:, None]
    rule = settle_rule(
        config, rows.task.kind, rows.task.labels, y=y, f=f, decided=answers.decided
    )
    hardness = rule.hardness(y, f, decided=answers.decided)
    is_bad = rule.select(hardness)
    if not is_bad.any() or is_bad.all():
        problem = _problem_text(rule, hardness, is_bad)
        return FailureRegion(rule=rule, is_bad=is_bad, weights=None, problem=problem)
    learnt = _learn_weights(rows, is_bad, seed, with_jackknife=with_jackknife)
    return FailureRegion(
        rule=rule,
        is_bad=is_bad,
        weights=learnt.weights,
        reweighted=learnt.reweighted,
    )


def _problem_text(rule: BadRule, hardness: np.ndarray, is_bad: np.ndarray) -> str:
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


@dataclass(frozen=True, kw_only=True)
class _LearntWeights:
    """The weights of all rows, and as they are without each part; None where there are none."""

    weights: np.ndarray | None = None
    reweighted: np.ndarray | None = None


def _learn_weights(
    rows: LabelledRows, is_bad: np.ndarray, seed: int, *, with_jackknife: bool
) -> _LearntWeights:
    n_parts = min(PARTS, int(is_bad.sum()), int((~is_bad).sum()))
    if n_parts < 2:
        return _LearntWeights()
    if rows.task.order is not None and rows.task.order.splits:
        return _learn_in_order(rows, is_bad, seed, with_jackknife=with_jackknife)
    splitter = StratifiedKFold(
        n_parts,
        shuffle=True,
        random_state=derive_int_seed(seed, "compare", "parts"),
    )
    part = np.empty(len(rows), dtype=int)
    for number, (_, left_out) in enumerate(splitter.split(rows.Z, is_bad)):
        part[left_out] = number
    weights = np.empty(len(rows))
    for number in range(n_parts):
        region_seed = derive_int_seed(seed, "compare", "region", number)
        learnt, weighed = part != number, part == number
        region = Region(region_seed).fit(rows.Z[learnt], is_bad[learnt])
        if not region.is_found:
            # one part without a region would weigh its rows on another scale than the others
            return _LearntWeights()
        weights[weighed] = region.weights(rows.Z[weighed])
    if not _foretells(weights, is_bad):
        return _LearntWeights()
    # with two parts nothing is left to learn from once one more is taken out
    if not with_jackknife or n_parts < 3:
        return _LearntWeights(weights=weights)
    # a part's own weights never came from it: without it they are as they were
    reweighted = np.tile(weights, (n_parts, 1))
    for first, second in combinations(range(n_parts), 2):
        region_seed = derive_int_seed(seed, "compare", "region", first, second)
        learnt = (part != first) & (part != second)
        region = Region(region_seed).fit(rows.Z[learnt], is_bad[learnt])
        for left_out, weighed in ((first, part == second), (second, part == first)):
            # without a region all rows of the part count alike, on the scale of the others
            values = np.full(weighed.sum(), weights[weighed].mean())
            if region.is_found:
                values = region.weights(rows.Z[weighed])
            reweighted[left_out, weighed] = values
    return _LearntWeights(weights=weights, reweighted=reweighted)


def _foretells(weights: np.ndarray, is_bad: np.ndarray) -> bool:
    """Whether bad rows weigh more than others, by forests that have seen neither.

    A one-sided test of Mann and Whitney: on noise one table in twenty passes.
    """
    if not is_bad.any() or is_bad.all():
        return False
    test = mannwhitneyu(weights[is_bad], weights[~is_bad], alternative="greater")
    return bool(test.pvalue < CHANCE)


def _learn_in_order(
    rows: LabelledRows, is_bad: np.ndarray, seed: int, *, with_jackknife: bool
) -> _LearntWeights:
    """Learn each part's weights from rows of other groups, or of earlier times."""
    assert rows.task.order is not None
    parts = list(_parts_in_order(rows, is_bad, seed, np.arange(len(rows)), PARTS))
    weights = np.zeros(len(rows))
    unknown = []
    for number, (learnt, held) in enumerate(parts):
        values = _weigh_in_order(rows, is_bad, seed + number, learnt=learnt, held=held)
        if values is None:
            unknown.append(number)
        else:
            weights[held] = values
    # in time the first parts have little to learn from, and join the oldest rows
    are_first = unknown == list(range(len(unknown)))
    if unknown and not (rows.task.order.time is not None and are_first):
        return _LearntWeights()
    parts = parts[len(unknown) :]
    if not parts:
        return _LearntWeights()
    weighed = np.concatenate([held for _, held in parts])
    if not _foretells(weights[weighed], is_bad[weighed]):
        return _LearntWeights()
    if not with_jackknife or len(parts) < 3:
        return _LearntWeights(weights=weights)
    reweighted = np.tile(weights, (len(parts), 1))
    for left_out, (_, gone) in enumerate(parts):
        for number, (learnt, held) in enumerate(parts):
            fewer = np.setdiff1d(learnt, gone)
            # a part keeps the weights that it owes nothing of to the one that is left out
            if number == left_out or len(fewer) == len(learnt):
                continue
            values = _weigh_in_order(
                rows, is_bad, seed + number, learnt=fewer, held=held
            )
            # without a region all rows of the part count alike, on the scale of the others
            alike = np.full(len(held), weights[held].mean())
            reweighted[left_out, held] = alike if values is None else values
    return _LearntWeights(weights=weights, reweighted=reweighted)


def _weigh_in_order(
    rows: LabelledRows,
    is_bad: np.ndarray,
    seed: int,
    *,
    learnt: np.ndarray,
    held: np.ndarray,
) -> np.ndarray | None:
    """Return the weights of the held rows; None where the others tell of no region."""
    if not is_bad[learnt].any() or is_bad[learnt].all():
        return None
    try:
        inner = _parts_in_order(rows, is_bad, seed, learnt, CALIBRATING_PARTS)
    except DataError:
        # too few times or groups are left to calibrate on
        return None
    region_seed = derive_int_seed(seed, "compare", "region")
    region = Region(region_seed).fit(rows.Z[learnt], is_bad[learnt], inner)
    return region.weights(rows.Z[held]) if region.is_found else None


def _parts_in_order(
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
