r"""K, the rule that calls a row bad (paper, sections 3, 4.1 and 4.2).

Every rule maps a row to a *hardness*, larger is worse, and calls it bad when the hardness
reaches a threshold:

===========  ==========================================  ================  ==============
rule         hardness h                                  threshold         customary alpha
===========  ==========================================  ================  ==============
absolute     :math:`|F(x) - y|`                          alpha             .1
squared      :math:`(F(x) - y)^2`                        alpha             .01
band         :math:`1 - \max_c p_c(x)`                   1 - alpha         .505
wrong        :math:`1 - p_y(x)`                          1 - alpha         .5
quantile     squared error or Brier loss                 worst ``share``   none
reducible    :math:`\sum (T(x) - F(x))^2`, T an oracle   alpha             worst ``share``
===========  ==========================================  ================  ==============

Targets of a regression are min–max scaled by the training rows. ``absolute`` is the reading of
the paper's threshold that gives its shares of bad points; ``squared`` is the printed formula,
``wrong`` the printed one for classes, ``band`` the one under which its scores are possible.
``reducible`` is not in the paper: its rows are chosen by features alone.

Of several targets, y being ``(n, k)``, the hardness is the mean over them (paper, section 6);
:mod:`amlb_ext.hardening.shared` has the intersection and the union.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.task import Kind

#: Rules, the kinds they serve, and what they mean, for ``hardsynth list``.
RULES: dict[str, tuple[str, str]] = {
    "absolute": ("regression", "|F(x) - y| >= alpha on the scaled target"),
    "squared": ("regression", "(F(x) - y)^2 >= alpha, the paper's printed formula"),
    "band": ("classification", "largest class probability <= alpha: the least confident rows"),
    "wrong": ("classification", "probability of the true class <= alpha, as printed"),
    "quantile": ("any", "the worst share of rows by squared error or Brier loss"),
    "reducible": ("any", "a cross-fitted oracle departs from F: by features alone"),
}
CUSTOMARY = {"absolute": 0.1, "squared": 0.01, "band": 0.505, "wrong": 0.5}
_FALLING = ("band", "wrong")  # hardness is 1 - what alpha bounds from above


@dataclass(frozen=True)
class BadRule:
    """K with its threshold settled for one fold.

    Attributes
    ----------
    rule : str
    threshold : float
        A row is bad when its hardness is at least this.
    alpha : float
        The same in the rule's own units.
    reason : str
        How alpha was chosen, for the manifest.
    class_alpha : tuple of float
        Threshold per class code for ``wrong`` with per-class alphas; else empty.
    """

    rule: str
    threshold: float
    alpha: float
    reason: str
    class_alpha: tuple[float, ...] = ()

    def hardness(self, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None) -> np.ndarray:
        """Return the hardness of each row, ``(n,)``; larger is worse.

        Parameters
        ----------
        y, f : ndarray
            Targets and predictions, see :mod:`amlb_ext.core.row_losses`.
        t : ndarray, optional
            The oracle's predictions, for ``reducible``.
        """
        h = raw_hardness(self.rule, y, f, t)
        if self.class_alpha:
            # paper 4.2: a threshold per class, folded into the hardness so one threshold serves
            h = h + self.threshold - (1 - np.asarray(self.class_alpha)[y.astype(int)])
        return h

    def select(self, hardness: np.ndarray) -> np.ndarray:
        """Return which rows are bad, ``(n,)`` bool."""
        return hardness >= self.threshold

    def worst_of(
        self, share: float, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None
    ) -> BadRule:
        """Return the rule ``quantile`` settled on test rows: their worst share, at least one."""
        hardness = self.hardness(y, f, t)
        count = max(1, int(np.ceil(share * len(hardness))))
        threshold = float(np.sort(hardness)[::-1][count - 1])
        return BadRule(self.rule, threshold, threshold, f"the worst {share:.0%} of the test rows")

    def alpha_for(self, hardness: np.ndarray, rows: int) -> float:
        """Return an alpha of four digits that would call at least ``rows`` of these rows bad."""
        worst = float(np.sort(hardness)[::-1][min(rows, len(hardness)) - 1])
        if self.rule in _FALLING:
            return float(np.ceil((1 - worst) * 1e4) / 1e4)
        unit = 10.0 ** (np.floor(np.log10(worst)) - 3) if worst > 0 else 1.0
        return float(np.floor(worst / unit) * unit)


def raw_hardness(
    rule: str, y: np.ndarray, f: np.ndarray, t: np.ndarray | None = None
) -> np.ndarray:
    """Return the hardness under ``rule``; see the table of this module.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5], [0.9, 0.1]])
    >>> raw_hardness("band", np.array([0, 0]), p).round(2).tolist()
    [0.5, 0.1]
    """
    if y.ndim == 2:
        each = (raw_hardness(rule, *rows) for rows in columns(y, f, t))
        return np.mean(list(each), axis=0)
    if rule == "absolute":
        return row_losses.absolute_error(y, f)
    if rule == "squared":
        return row_losses.squared_error(y, f)
    if rule == "band":
        return 1 - f.max(axis=1)
    if rule == "wrong":
        return 1 - row_losses.true_probability(y, f)
    if rule == "quantile":
        return row_losses.row_loss(y, f)
    if t is None:
        raise ConfigError("the rule 'reducible' needs an oracle's predictions")
    return ((t - f) ** 2).reshape(len(f), -1).sum(axis=1)


def columns(
    y: np.ndarray, f: np.ndarray, t: np.ndarray | None
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Yield y, f and t of each of several regression targets; each is ``(n, k)``."""
    for j in range(y.shape[1]):
        yield y[:, j], f[:, j], None if t is None else t[:, j]


def settle_rule(
    config: HardnessConfig,
    kind: Kind,
    labels: tuple[str, ...],
    out_of_fold: np.ndarray,
    y: np.ndarray,
    oracle: np.ndarray | None = None,
) -> BadRule:
    """Choose rule and threshold for a fold from the configuration and the training rows.

    The test fold plays no part, so a threshold is never chosen on the rows it will judge.

    Parameters
    ----------
    config : HardnessConfig
    kind : Kind
    labels : tuple of str
        The task's class labels.
    out_of_fold : ndarray of shape (n,) or (n, C)
        F's out-of-fold predictions of the training rows; ``(n, k)`` for several targets.
    y : ndarray of shape (n,) or (n, k)
        Their targets.
    oracle : ndarray, optional
        The oracle's out-of-fold predictions, for ``reducible``.

    Raises
    ------
    ConfigError
        A rule that does not serve this kind, or thresholds for unknown classes.
    """
    rule = config.rule
    if rule == "auto":
        rule = "band" if kind.is_classification else "absolute"
    serves = RULES[rule][0]
    if serves not in ("any", "classification" if kind.is_classification else "regression"):
        fitting = [n for n, (k, _) in RULES.items() if k in ("any", _family(kind))]
        raise ConfigError(
            f"the rule {rule!r} serves {serves}, this task is {kind}",
            f"use --rule {' or '.join(fitting)}",
        )
    h = raw_hardness(rule, y, out_of_fold, oracle)
    if config.class_alpha:
        return _per_class(config, rule, labels)
    if config.alpha is not None and rule != "quantile":
        return _given(rule, config.alpha, "given by the user")
    if rule in CUSTOMARY:
        customary = _given(rule, CUSTOMARY[rule], "the rule's customary threshold")
        failing = float(customary.select(h).mean())
        if failing >= config.floor:
            return customary
        why = (
            f"under the customary {customary.alpha:g} only {failing:.1%} of the training rows "
            f"fail out of fold, so their worst {config.share:.0%} set it"
        )
    else:
        why = f"the worst {config.share:.0%} of the training rows, out of fold"
    threshold = float(np.quantile(h, 1 - config.share, method="higher"))
    alpha = 1 - threshold if rule in _FALLING else threshold
    return BadRule(rule, threshold, alpha, why)


def _family(kind: Kind) -> str:
    return "classification" if kind.is_classification else "regression"


def _given(rule: str, alpha: float, reason: str) -> BadRule:
    threshold = 1 - alpha if rule in _FALLING else alpha
    # a band of exactly alpha must not be lost to rounding of 1 - alpha
    return BadRule(rule, threshold - 1e-12, alpha, reason)


def _per_class(config: HardnessConfig, rule: str, labels: tuple[str, ...]) -> BadRule:
    if not labels:
        raise ConfigError(
            "class_alpha sets thresholds for classes, this task is regression",
            "leave --class-alpha out; --alpha sets the threshold of a regression",
        )
    unknown = sorted(set(config.class_alpha) - set(labels))
    if unknown:
        raise ConfigError(
            f"class_alpha names {unknown[0]!r}, the classes are {', '.join(labels)}",
            "use the labels as the source writes them",
        )
    if rule != "wrong":
        raise ConfigError(f"class_alpha belongs to the rule 'wrong', not {rule!r}", "--rule wrong")
    default = config.alpha if config.alpha is not None else CUSTOMARY["wrong"]
    alphas = tuple(config.class_alpha.get(label, default) for label in labels)
    base = _given(rule, default, "given by the user, per class")
    return BadRule(rule, base.threshold, default, base.reason, alphas)
