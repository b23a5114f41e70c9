"""Where F fails, by features alone: the bad rows, and each row's chance to be one.

The weight of a row comes from a forest that has not seen the row, so that no row is weighted by
its own error (cross-fitting).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import StratifiedKFold

from amlb_ext.comparison.labelled import LabelledRows
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import derive_int_seed
from amlb_ext.hardening.hardness import RULES, BadRule, settle_rule
from amlb_ext.hardening.weights import Region

#: Parts of the rows; the weights of each come from the others.
PARTS = 5


@dataclass(frozen=True, kw_only=True)
class FailureRegion:
    """The bad rows of F and the weights of all rows.

    Attributes
    ----------
    rule : BadRule
    is_bad : ndarray of shape (n,), bool
    weights : ndarray of shape (n,) or None
        ``P(bad | x)``, cross-fitted; None where features do not foresee failures.
    """

    rule: BadRule
    is_bad: np.ndarray
    weights: np.ndarray | None

    @property
    def text(self) -> str:
        """The rule in words, with its threshold."""
        return (
            f"{self.rule.rule}: {RULES[self.rule.rule][1]}, alpha {self.rule.alpha:.3g}"
        )


def find_region(
    rows: LabelledRows, f: np.ndarray, config: HardnessConfig, seed: int
) -> FailureRegion:
    """Call rows bad, and learn where bad rows are.

    Parameters
    ----------
    rows : LabelledRows
    f : ndarray of shape (n,) or (n, C)
        F's predictions.
    config : HardnessConfig
        The rule that calls a row bad.
    seed : int

    Raises
    ------
    DataError
        No row is bad under the rule, or every row is.
    """
    y, predictions = rows.y[:, None], f[:, None]
    rule = settle_rule(config, rows.task.kind, rows.task.labels, y=y, f=predictions)
    hardness = rule.hardness(y, predictions)
    is_bad = rule.select(hardness)
    if not is_bad.any() or is_bad.all():
        how_many = "every row" if is_bad.all() else "no row"
        wanted = max(10, len(rows) // 20)
        raise DataError(
            f"F fails on {how_many} of {len(rows)} under the rule {rule.rule!r} with alpha "
            f"{rule.alpha:.3g}",
            f"alpha={rule.alpha_for(hardness, wanted):.4g} would give {wanted} rows",
        )
    return FailureRegion(
        rule=rule, is_bad=is_bad, weights=_cross_fitted_weights(rows, is_bad, seed)
    )


def _cross_fitted_weights(
    rows: LabelledRows, is_bad: np.ndarray, seed: int
) -> np.ndarray | None:
    n_parts = min(PARTS, int(is_bad.sum()), int((~is_bad).sum()))
    if n_parts < 2:
        return None
    splitter = StratifiedKFold(
        n_parts,
        shuffle=True,
        random_state=derive_int_seed(seed, "compare", "parts"),
    )
    weights = np.empty(len(rows))
    for number, (learnt, left_out) in enumerate(splitter.split(rows.Z, is_bad)):
        region_seed = derive_int_seed(seed, "compare", "region", number)
        region = Region(region_seed).fit(rows.Z[learnt], is_bad[learnt])
        if not region.is_found:
            # one part without a region would weigh its rows on another scale than the others
            return None
        weights[left_out] = region.weights(rows.Z[left_out])
    return weights
