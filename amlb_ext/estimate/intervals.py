"""Intervals for the true error from labelled rows alone.

Notation
--------
v : (n,) losses of the labelled rows S, each in [0, C_h];  C_h : ``bound``
m, s^2 : their mean and variance (divisor n - 1)
alpha = 1 - level : split evenly over both sides
e : number of errors, for losses that are 0 or 1
pi_c, m_c, [l_c, u_c], n_c : prior, mean loss, limits and rows of class c

References
----------
Wilson (1927), JASA 22, 209-212; Clopper & Pearson (1934), Biometrika 26, 404-413; Efron (1987),
JASA 82, 171-185 (BCa); Maurer & Pontil (2009), COLT, theorem 4; Zou & Donner (2008), Statistics
in Medicine 27, 1693-1702 (MOVER); Welch (1947), Biometrika 34, 28-35.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special, stats

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.results import ErrorEstimate, without

IID = "the labelled rows are independent draws from the population"
LARGE = f"{IID}, and enough of them that their mean is nearly normal"
BY_CLASS = "rows of each class are independent draws from that class, and the priors are true"
#: Priors that miss 1 by more than this are refused.
PRIOR_TOLERANCE = 1e-6


def wilson(losses: np.ndarray, level: float = 0.95) -> ErrorEstimate:
    r"""Return Wilson's score interval for a 0-1 loss.

    .. math::
        \frac{m + z^2 / 2n}{1 + z^2 / n} \pm
        \frac{z}{1 + z^2 / n} \sqrt{\frac{m (1 - m)}{n} + \frac{z^2}{4 n^2}}

    Source: Wilson (1927).

    Parameters
    ----------
    losses : ndarray of shape (n,)
        0 or 1.
    level : float
        Two-sided, between 0 and 1.

    Raises
    ------
    DataError
        When a loss is not 0 or 1.
    ConfigError
        When the level is not between 0 and 1.

    Examples
    --------
    >>> e = wilson(np.repeat([0, 1], [9, 1]))
    >>> round(e.low, 4), round(e.high, 4)
    (0.0179, 0.4042)
    """
    v = checked_losses(losses, 1.0, level, binary=True)
    if len(v) == 0:
        return without("wilson", level, 0, IID, "no labelled row")
    low, high = wilson_limits(np.array([v.sum()]), np.array([len(v)]), level)
    return clipped("wilson", v.mean(), low[0], high[0], level, len(v), IID)


def wilson_limits(errors: np.ndarray, n: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of :func:`wilson` for many counts at once.

    Parameters
    ----------
    errors, n : ndarray of shape (k,)
        Errors and rows, ``n > 0``.
    level : float

    Returns
    -------
    tuple of ndarray of shape (k,)
        Low and high.

    Examples
    --------
    >>> wilson_limits(np.array([0]), np.array([10]), 0.95)[1].round(4).tolist()
    [0.2775]
    """
    z = special.ndtri(0.5 + level / 2)
    p, stretch = errors / n, 1 + z**2 / n
    centre = (p + z**2 / (2 * n)) / stretch
    half = z / stretch * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # Rounding leaves 1e-17 where the formula gives exactly 0 or 1.
    low = np.where(errors == 0, 0.0, centre - half)
    return low, np.where(errors == n, 1.0, centre + half)


def clopper_pearson(losses: np.ndarray, level: float = 0.95) -> ErrorEstimate:
    """Return the exact binomial interval for a 0-1 loss; it covers at least the level.

    Source: Clopper & Pearson (1934), by ``scipy.stats.binomtest``. Parameters and errors as in
    :func:`wilson`.

    Examples
    --------
    >>> round(clopper_pearson(np.zeros(10)).high, 4)  # 1 - .025 ** (1 / 10)
    0.3085
    """
    v = checked_losses(losses, 1.0, level, binary=True)
    if len(v) == 0:
        return without("clopper_pearson", level, 0, IID, "no labelled row")
    low, high = stats.binomtest(int(v.sum()), len(v)).proportion_ci(level, method="exact")
    return clipped("clopper_pearson", v.mean(), low, high, level, len(v), IID)


def t_interval(losses: np.ndarray, level: float = 0.95, bound: float = 1.0) -> ErrorEstimate:
    """Return ``m ± t s / sqrt(n)``, clipped to [0, bound].

    Parameters
    ----------
    losses : ndarray of shape (n,)
    level : float
    bound : float
        C_h, in units of the loss.

    Returns
    -------
    ErrorEstimate
        Without an interval when all losses are equal: their spread cannot be seen.

    Raises
    ------
    DataError
        When a loss lies outside [0, bound].
    ConfigError
        When the level is not between 0 and 1.

    Examples
    --------
    >>> e = t_interval([0.1, 0.2, 0.3])  # .2 ± 4.303 * .1 / sqrt(3)
    >>> round(e.low, 4), round(e.high, 4)
    (0.0, 0.4484)
    """
    v = checked_losses(losses, bound, level)
    if reason := no_spread(v):
        return refused("t", v, level, LARGE, reason)
    half = special.stdtrit(len(v) - 1, 0.5 + level / 2) * v.std(ddof=1) / math.sqrt(len(v))
    return clipped("t", v.mean(), v.mean() - half, v.mean() + half, level, len(v), LARGE, bound)


def bca(
    losses: np.ndarray,
    level: float = 0.95,
    bound: float = 1.0,
    resamples: int = 1000,
    seed: int = 0,
) -> ErrorEstimate:
    """Return the bias-corrected and accelerated bootstrap interval, for comparison.

    Source: Efron (1987), by ``scipy.stats.bootstrap``. Parameters and errors as in
    :func:`t_interval`; it, too, gives no interval for equal losses.

    Examples
    --------
    >>> e = bca(np.repeat([0, 1], [90, 10]))
    >>> bool(0.03 < e.low < 0.1 < e.high < 0.2)
    True
    """
    v = checked_losses(losses, bound, level)
    if reason := no_spread(v):
        return refused("bca", v, level, LARGE, reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate draw gives NaN, which is refused below
        found = stats.bootstrap(
            (v,),
            np.mean,
            confidence_level=level,
            n_resamples=resamples,
            batch=resamples,
            random_state=np.random.default_rng(seed),
        ).confidence_interval
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        return refused("bca", v, level, LARGE, "the bootstrap is degenerate on these losses")
    return clipped("bca", v.mean(), found.low, found.high, level, len(v), LARGE, bound)


def empirical_bernstein(
    losses: np.ndarray, level: float = 0.95, bound: float = 1.0
) -> ErrorEstimate:
    r"""Return an interval that covers at least the level for any loss in [0, bound].

    .. math::
        m \pm \left\{ s \sqrt{\frac{2 \ln(4 / \alpha)}{n}}
        + C_h \frac{7 \ln(4 / \alpha)}{3 (n - 1)} \right\}

    Source: Maurer & Pontil (2009), theorem 4, with delta = alpha / 2 for each side. Parameters
    and errors as in :func:`t_interval`; equal losses are no trouble.

    Examples
    --------
    >>> e = empirical_bernstein(np.zeros(101))  # 7 ln(80) / 300
    >>> round(e.high, 4)
    0.1022
    """
    v = checked_losses(losses, bound, level)
    if len(v) < 2:
        return refused("empirical_bernstein", v, level, IID, f"{len(v)} labelled rows; 2 needed")
    log, n = math.log(4 / (1 - level)), len(v)
    half = v.std(ddof=1) * math.sqrt(2 * log / n) + bound * 7 * log / (3 * (n - 1))
    m = v.mean()
    return clipped("empirical_bernstein", m, m - half, m + half, level, n, IID, bound)


def stratified(
    losses: np.ndarray,
    classes: np.ndarray,
    priors: Sequence[float] | np.ndarray,
    level: float = 0.95,
    bound: float = 1.0,
    binary: bool = False,
    names: Sequence[str] | None = None,
) -> ErrorEstimate:
    r"""Return the interval for rows drawn class by class, when the priors are known.

    .. math::
        p = \sum_c \pi_c m_c, \quad
        L = p - \sqrt{\textstyle\sum_c \pi_c^2 (m_c - l_c)^2}, \quad
        U = p + \sqrt{\textstyle\sum_c \pi_c^2 (u_c - m_c)^2}

    for a 0-1 loss, with Wilson limits per class (MOVER; Zou & Donner 2008). For other losses
    ``p ± t sqrt(V)`` with ``V = sum_c pi_c^2 s_c^2 / n_c`` and Welch–Satterthwaite's degrees of
    freedom, ``V^2 / sum_c (pi_c^2 s_c^2 / n_c)^2 / (n_c - 1)``.

    Parameters
    ----------
    losses : ndarray of shape (n,)
    classes : ndarray of shape (n,)
        Codes 0..C-1 of the true classes.
    priors : sequence of length C
        Share of each class in the population; they sum to 1.
    level : float
    bound : float
    binary : bool
        Whether the loss is 0 or 1.
    names : sequence of str, optional
        Of the classes, for the reason.

    Returns
    -------
    ErrorEstimate
        Without an interval when a class of the population has no labelled row (or one, for
        losses other than 0-1); ``reason`` names these classes and their share.

    Raises
    ------
    DataError
        When shapes do not match, priors are negative or do not sum to 1, or a class is unknown.

    Examples
    --------
    >>> losses, classes = np.tile([0, 0, 0, 1], 20), np.repeat([0, 1], 40)
    >>> e = stratified(losses, classes, [0.9, 0.1], binary=True)
    >>> bool(e.low < e.point < e.high), round(e.point, 3)
    (True, 0.25)
    >>> stratified(losses[:40], classes[:40], [0.9, 0.1], binary=True).reason
    'no labelled row of class 1, 10.0% of the population'
    """
    v = checked_losses(losses, bound, level, binary)
    pi, codes = checked_strata(classes, priors, len(v))
    counts = np.bincount(codes, minlength=len(pi))
    few = 1 if binary else 2
    lacking = np.flatnonzero((pi > 0) & (counts < few))
    if len(lacking):
        which = ", ".join(str(names[int(c)]) if names is not None else str(c) for c in lacking)
        rows = "no labelled row" if binary else "fewer than 2 labelled rows"
        plural = "es" if len(lacking) > 1 else ""
        share = pi[lacking].sum()
        reason = f"{rows} of class{plural} {which}, {share:.1%} of the population"
        return without("stratified", level, len(v), BY_CLASS, reason)
    # Rows of a class that the population lacks say nothing of its error.
    use = pi > 0
    pi, k = pi[use], counts[use]
    sums = np.bincount(codes, v, minlength=len(use))[use]
    m = sums / k
    point = float(pi @ m)
    if binary:
        low, high = wilson_limits(np.rint(sums), k, level)
        down = math.sqrt((pi**2) @ (m - low) ** 2)
        up = math.sqrt((pi**2) @ (high - m) ** 2)
    else:
        s2 = np.array([v[codes == c].var(ddof=1) for c in np.flatnonzero(use)])
        part = pi**2 * s2 / k
        variance = float(part.sum())
        if variance <= 1e-24 * bound**2:
            reason = "all losses of each class are equal: their spread cannot be seen"
            return replace(without("stratified", level, len(v), BY_CLASS, reason), point=point)
        df = variance**2 / float((part**2 / (k - 1)).sum())
        down = up = special.stdtrit(df, 0.5 + level / 2) * math.sqrt(variance)
    return clipped("stratified", point, point - down, point + up, level, len(v), BY_CLASS, bound)


def checked_losses(
    losses: np.ndarray, bound: float, level: float, binary: bool = False
) -> np.ndarray:
    """Return the losses as ``(n,)`` floats, or say what is wrong with them or the level."""
    if not 0 < level < 1:
        raise ConfigError(f"level {level}", "give a level between 0 and 1, e.g. 0.95")
    if not (math.isfinite(bound) and bound > 0):
        raise ConfigError(f"a loss bounded by {bound}", "give a positive finite bound")
    v = np.asarray(losses, dtype=float)
    if v.ndim != 1:
        raise DataError(f"losses of shape {v.shape}", "give one loss per row, shape (n,)")
    if not np.isfinite(v).all():
        raise DataError("a missing or infinite loss", "drop rows without label first")
    if binary and not np.isin(v, (0.0, 1.0)).all():
        raise DataError("a loss other than 0 or 1", "use t_interval or empirical_bernstein")
    # A bound such as -ln eps may be met up to rounding.
    if len(v) and (v.min() < 0 or v.max() > bound * (1 + 1e-12)):
        raise DataError(
            f"losses from {v.min():.4g} to {v.max():.4g} with a bound of {bound:.4g}",
            "give the bound of this loss, or scale the target",
        )
    return v


def checked_strata(
    classes: np.ndarray, priors: Sequence[float] | np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return priors ``(C,)`` and codes ``(n,)``, or say what is wrong with them."""
    pi, given = np.asarray(priors, dtype=float), np.asarray(classes)
    if pi.ndim != 1 or not np.isfinite(pi).all() or (pi < 0).any():
        raise DataError(f"priors {pi.tolist()}", "give one share from 0 to 1 for each class")
    if abs(pi.sum() - 1) > PRIOR_TOLERANCE:
        raise DataError(f"priors {pi.tolist()} sum to {pi.sum():.6g}", "make them sum to 1")
    if given.shape != (n,):
        raise DataError(f"classes of shape {given.shape} for {n} losses", "give one per row")
    codes = given.astype(int)
    if n and (codes.min() < 0 or codes.max() >= len(pi) or (codes != given).any()):
        raise DataError(
            f"a class code outside 0..{len(pi) - 1}", "give a prior for each class, in code order"
        )
    return pi, codes


def no_spread(losses: np.ndarray) -> str:
    """Return why the spread of these losses cannot be seen; empty when it can."""
    if len(losses) < 2:
        return f"{len(losses)} labelled rows; 2 needed"
    if np.ptp(losses) == 0:
        return (
            f"all {len(losses)} losses are {losses[0]:.4g}: their spread cannot be seen; "
            "empirical_bernstein, or wilson for a 0-1 loss, still holds"
        )
    return ""


def refused(
    name: str, losses: np.ndarray, level: float, assumes: str, reason: str
) -> ErrorEstimate:
    """Return the mean loss without an interval, and why."""
    empty = without(name, level, len(losses), assumes, reason)
    return replace(empty, point=float(losses.mean())) if len(losses) else empty


def clipped(
    name: str,
    point: float,
    low: float,
    high: float,
    level: float,
    n: int,
    assumes: str,
    bound: float = 1.0,
) -> ErrorEstimate:
    """Return an estimate whose numbers all lie in [0, bound]."""
    m, lower, upper = (min(max(float(value), 0.0), bound) for value in (point, low, high))
    return ErrorEstimate(name, m, lower, upper, level, n, assumes)
