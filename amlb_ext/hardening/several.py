"""Several regression targets as one: k models, oracles and rules where the search wants one.

Each target has an F of its own, fitted on it alone, as scikit-learn's ``MultiOutputRegressor``
does; nothing here is fitted. What predicts ``(n,)`` for one target predicts ``(n, k)`` here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import Baseline, CvSplits
from amlb_ext.hardening.encode import TargetEncoder
from amlb_ext.hardening.hardness import BadRule, columns, settle_rule
from amlb_ext.hardening.judged_rows import FoldModels
from amlb_ext.hardening.oracle import Oracle


class SeveralBaselines(Baseline):
    """Fitted baselines of several targets, asked together.

    Parameters
    ----------
    baselines : sequence of Baseline
        One per target, each predicting ``(n,)``.
    """

    def __init__(self, baselines: Sequence[Baseline]) -> None:
        self.baselines = tuple(baselines)
        self.can_search = all(each.can_search for each in baselines)

    def fit(self, Z: np.ndarray, y: np.ndarray, seed: int) -> SeveralBaselines:
        """Keep the models as they came."""
        return self

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return ``(n, k)``."""
        return np.column_stack([each.predict(Z) for each in self.baselines])

    def cross_fit(
        self, Z: np.ndarray, y: np.ndarray, rows: np.ndarray, parts: CvSplits, seed: int
    ) -> tuple[np.ndarray, list[Baseline]]:
        """Predict with the models as they are: they came fitted."""
        return self.predict(Z), []


class SeveralOracles(Oracle):
    """Fitted oracles of several targets; ``rmse_`` is ``(k,)``, ``out_of_fold_`` ``(n, k)``.

    Parameters
    ----------
    oracles : sequence of Oracle
        Fitted, for regression.
    """

    def __init__(self, oracles: Sequence[Oracle]) -> None:
        super().__init__(0, oracles[0].seed, oracles[0].folds)
        self.oracles = tuple(oracles)
        self.rmse_ = np.array([each.rmse_ for each in oracles])
        self.out_of_fold_ = np.column_stack([each.out_of_fold_ for each in oracles])

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return ``(n, k)``."""
        return np.column_stack([each.predict(Z) for each in self.oracles])


@dataclass(frozen=True)
class CombinedRule(BadRule):
    """K of each target on its own, and the intersection or the union of what they call bad.

    The hardness is that of the target that decides: the least hard one (intersection) or the
    hardest (union), each moved by how far its own threshold lies from the common one.

    Attributes
    ----------
    rules : tuple of BadRule
        One per target.
    over : str
        ``intersection`` or ``union``.
    """

    rules: tuple[BadRule, ...] = ()
    over: str = "intersection"

    @classmethod
    def of(cls, rules: Sequence[BadRule], over: str) -> CombinedRule:
        """Combine settled rules of one name; the strictest threshold becomes the common one."""
        first = max(rules, key=lambda rule: rule.threshold)
        reasons = dict.fromkeys(rule.reason for rule in rules)
        reason = f"{over} of {len(rules)} targets: {'; '.join(reasons)}"
        return cls(first.rule, first.threshold, first.alpha, reason, (), tuple(rules), over)

    def hardness(self, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None) -> np.ndarray:
        """Return ``(n,)`` for y and f of shape ``(n, k)``; see :class:`BadRule`."""
        each = [
            rule.hardness(*of_target) + (self.threshold - rule.threshold)
            for rule, of_target in zip(self.rules, columns(y, f, t), strict=True)
        ]
        pick = np.min if self.over == "intersection" else np.max
        return pick(each, axis=0)

    def worst_of(
        self, share: float, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None
    ) -> CombinedRule:
        """Return the rule ``quantile`` with each target's worst share of these rows."""
        rules = [
            rule.worst_of(share, *of_target)
            for rule, of_target in zip(self.rules, columns(y, f, t), strict=True)
        ]
        return CombinedRule.of(rules, self.over)


def settle_several(
    config: HardnessConfig, out_of_fold: np.ndarray, y: np.ndarray, oracle: np.ndarray
) -> BadRule:
    """Settle K for several targets from the training rows (paper, section 6).

    ``mean``: the hardness is averaged over the targets and put to one threshold.
    ``intersection``, ``union``: every target has a threshold of its own.

    Parameters
    ----------
    config : HardnessConfig
    out_of_fold, y, oracle : ndarray of shape (n, k)
        F's out-of-fold predictions, the scaled targets, the oracle's out-of-fold predictions.

    Raises
    ------
    ConfigError
        A rule that does not serve regression.

    Examples
    --------
    >>> y, f = np.zeros((3, 2)), np.array([[0.2, 0.0], [0.3, 0.3], [0.0, 0.0]])
    >>> for over in ("mean", "intersection", "union"):
    ...     rule = settle_several(HardnessConfig(over=over, alpha=0.15), f, y, y)
    ...     rule.select(rule.hardness(y, f)).tolist()
    [False, True, False]
    [False, True, False]
    [True, True, False]
    """
    if config.over == "mean":
        rule = settle_rule(config, Kind.REGRESSION, (), out_of_fold, y, oracle)
        return replace(rule, reason=f"mean over {y.shape[1]} targets: {rule.reason}")
    each = columns(y, out_of_fold, oracle)
    rules = [settle_rule(config, Kind.REGRESSION, (), f, own, t) for own, f, t in each]
    return CombinedRule.of(rules, config.over)


def side_by_side(models: Sequence[FoldModels], rule: BadRule) -> FoldModels:
    """Return the models of several targets of the same rows as models of one vector target."""
    first = models[0]
    return replace(
        first,
        target=TargetEncoder.beside([each.target for each in models]),
        baseline=SeveralBaselines([each.baseline for each in models]),
        oracle=SeveralOracles([each.oracle for each in models]),
        rule=rule,
        y=np.column_stack([each.y for each in models]),
        fits=(),
    )
