"""Which windows are bad for F: rules K, settled on windows that ended before the test origins.

Notation
--------
F, T : forecasts of F, and of an ensemble that does not learn from the window's series
s : a window's scale; H : horizon; alpha : threshold of the rule
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from amlb_ext.core.display import format_decimals, format_percent
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.windows import WindowRule

WindowRuleName = Literal["mase", "sql", "quantile", "reducible"]
#: What each rule calls hard.
RULES = {
    "mase": "mean absolute error in scales >= alpha",
    "sql": "mean pinball loss in scales >= alpha",
    "quantile": "mean absolute error in scales among the worst share alpha of earlier origins",
    "reducible": "mean squared distance of F and an ensemble T, in scales, >= alpha",
}
#: Share of the windows of earlier origins that are bad where no alpha is given.
BAD_SHARE = 0.1
#: A threshold rests on at least so many windows.
FEWEST_WINDOWS = 20


def window_rule_text(rule: WindowRule) -> str:
    """Return a rule in words.

    Examples
    --------
    >>> window_rule_text(WindowRule(rule="mase", alpha=2.0, reason="given"))
    'mase: mean absolute error in scales >= alpha, 2.00 (given)'
    """
    meaning = RULES[rule.rule]
    return f"{rule.rule}: {meaning}, {format_decimals(rule.alpha, 2)} ({rule.reason})"


def check_rule(rule: str, alpha: float | None) -> None:
    """Refuse an unknown rule, or an alpha that it cannot take.

    Raises
    ------
    ConfigError
    """
    if rule not in RULES:
        raise ConfigError(f"no rule is called {rule!r}", suggest_nearest(rule, RULES))
    if alpha is None:
        return
    if rule == "quantile" and not 0 < alpha < 1:
        raise ConfigError(
            f"alpha {alpha:g} is no share", "give the worst share, between 0 and 1"
        )
    if not (np.isfinite(alpha) and alpha > 0):
        raise ConfigError(f"alpha {alpha:g}", "give a number above 0")


def settle_window_rule(
    rule: str,
    alpha: float | None,
    earlier: np.ndarray,
    *,
    instead: np.ndarray | None = None,
) -> WindowRule:
    """Return a rule with its threshold.

    Parameters
    ----------
    rule : str
    alpha : float, optional
        As the user gives it; a share for the rule ``quantile``.
    earlier : ndarray of shape (n,)
        Hardness of F's windows at learning origins.
    instead : ndarray of shape (m,), optional
        That of the windows that are tested, where a threshold only describes these: it rests on
        them where earlier ones are too few.

    Raises
    ------
    DataError
        Fewer than 20 earlier windows, and the threshold rests on them.

    Examples
    --------
    >>> settle_window_rule("quantile", 0.25, np.arange(1.0, 101.0)).alpha
    75.25
    >>> settle_window_rule("mase", 2, np.empty(0)).reason
    'given'
    """
    check_rule(rule, alpha)
    if alpha is not None and rule != "quantile":
        return WindowRule(rule=rule, alpha=float(alpha), reason="given")
    share = BAD_SHARE if alpha is None else float(alpha)
    source = "earlier origins"
    if len(earlier) < FEWEST_WINDOWS:
        if instead is None:
            raise DataError(
                f"{len(earlier)} windows of earlier origins tell no threshold, {FEWEST_WINDOWS} "
                "would",
                "give more or longer series, or --alpha",
            )
        earlier, source = instead, "these windows"
    threshold = float(np.quantile(earlier, 1 - share))
    reason = f"the worst {format_percent(share)} of {source}"
    return WindowRule(rule=rule, alpha=threshold, reason=reason)


def reducible_hardness(f: np.ndarray, t: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the mean squared distance of two forecasts, in scales.

    Parameters
    ----------
    f, t : ndarray of shape (n, H)
    scale : ndarray of shape (n,)

    Examples
    --------
    >>> reducible_hardness(np.array([[1.0, 2.0]]), np.array([[3.0, 2.0]]), np.array([2.0]))
    array([0.5])
    """
    return np.asarray((((t - f) / scale[:, None]) ** 2).mean(axis=1))
