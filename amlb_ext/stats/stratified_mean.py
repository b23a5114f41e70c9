"""The interval for rows that were drawn class by class.

Notation
--------
pi_c, m_c, [l_c, u_c], n_c : prior, mean loss, limits and rows of class c

References
----------
Zou & Donner (2008), Statistics in Medicine 27, 1693-1702 (MOVER); Welch (1947), Biometrika 34,
28-35.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import special

from amlb_ext.core.errors import DataError
from amlb_ext.stats.bounded_mean import checked_sample, wilson_limits
from amlb_ext.stats.error_estimate import ErrorEstimate, clipped_estimate, no_estimate

# Formulas stand as in the papers, one a line, so this module is denser than others.

#: What must hold for the interval to cover.
BY_CLASS = (
    "rows of each class are independent draws from that class, and the priors are true"
)
BY_CLASS_COUNTED = (
    "rows of each class are independent draws from that class, and the training rows, whose shares "
    "of the classes are taken, are independent draws from the population"
)
#: Priors that miss 1 by more than this are refused.
PRIOR_TOLERANCE = 1e-6
#: A variance below this, relative to the squared bound, is rounding.
NO_VARIANCE = 1e-24


def stratified_interval(
    losses: np.ndarray,
    classes: np.ndarray,
    priors: Sequence[float] | np.ndarray,
    level: float = 0.95,
    bound: float = 1.0,
    binary: bool = False,
    names: Sequence[str] | None = None,
    prior_rows: int | None = None,
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
    prior_rows : int, optional
        Rows that the priors were counted on: their own sampling error,
        ``z^2 (sum_c pi_c m_c^2 - p^2) / prior_rows``, is then added in quadrature to both sides.

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
    >>> e = stratified_interval(losses, classes, [0.9, 0.1], binary=True)
    >>> bool(e.low < e.point < e.high), round(e.point, 3)
    (True, 0.25)
    >>> stratified_interval(losses[:40], classes[:40], [0.9, 0.1], binary=True).reason
    'no labelled row of class 1, 10.0% of the population'
    """
    v = checked_sample(losses, bound, level, binary)
    pi, codes = checked_strata(classes, priors, len(v))
    counts = np.bincount(codes, minlength=len(pi))
    assumes = BY_CLASS if prior_rows is None else BY_CLASS_COUNTED
    refuse = partial(no_estimate, "stratified", level=level, n=len(v), assumes=assumes)
    if reason := _why_classes_lack(pi, counts, binary, names):
        return refuse(reason=reason)

    # Rows of a class that the population lacks say nothing of its error.
    strata = np.flatnonzero(pi > 0)
    pi = pi[strata]
    n_of_class = counts[strata]
    sums = np.bincount(codes, v, minlength=len(counts))[strata]
    means = sums / n_of_class
    point = float(pi @ means)
    if binary:
        # MOVER: the distances to the limits of each class add up as standard errors do
        lows, highs = wilson_limits(np.rint(sums), n_of_class, level)
        down = math.sqrt((pi**2) @ (means - lows) ** 2)
        up = math.sqrt((pi**2) @ (highs - means) ** 2)
    else:
        variances = np.array([v[codes == c].var(ddof=1) for c in strata])
        terms = pi**2 * variances / n_of_class  # of V
        half_width = _welch_half_width(terms, n_of_class, level, bound)
        if half_width is None:
            reason = "all losses of each class are equal: their spread cannot be seen"
            return replace(refuse(reason=reason), point=point)
        down = up = half_width
    if prior_rows is not None:
        # the delta method for shares counted on a multinomial sample
        z = special.ndtri(0.5 + level / 2)
        # rounding may make it negative where all classes have one mean
        between_classes = max(float(pi @ means**2) - point**2, 0.0)
        of_priors = z**2 * between_classes / prior_rows
        down = math.sqrt(down**2 + of_priors)
        up = math.sqrt(up**2 + of_priors)
    return clipped_estimate(
        "stratified",
        point,
        (point - down, point + up),
        level=level,
        n=len(v),
        assumes=assumes,
        bound=bound,
    )


def _welch_half_width(
    terms: np.ndarray, n_of_class: np.ndarray, level: float, bound: float
) -> float | None:
    """Return ``t sqrt(V)``, with the classes' terms of V; None where there is no variance."""
    variance = float(terms.sum())
    if variance <= NO_VARIANCE * bound**2:
        return None
    # Welch (1947)
    squares = terms**2 / (n_of_class - 1)
    df = variance**2 / float(squares.sum())
    quantile = special.stdtrit(df, 0.5 + level / 2)
    return float(quantile) * math.sqrt(variance)


def _why_classes_lack(
    pi: np.ndarray, counts: np.ndarray, binary: bool, names: Sequence[str] | None
) -> str:
    """Return which classes of the population have too few labelled rows; empty for none."""
    fewest = 1 if binary else 2  # a single 0-1 loss has Wilson limits, but no variance
    is_lacking = (pi > 0) & (counts < fewest)
    if not is_lacking.any():
        return ""
    labels = []
    for code in np.flatnonzero(is_lacking):
        labels.append(str(code if names is None else names[int(code)]))
    rows = "no labelled row" if binary else "fewer than 2 labelled rows"
    plural = "es" if len(labels) > 1 else ""
    share = pi[is_lacking].sum()
    return f"{rows} of class{plural} {', '.join(labels)}, {share:.1%} of the population"


def checked_strata(
    classes: np.ndarray, priors: Sequence[float] | np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return priors ``(C,)`` and codes ``(n,)``, or raise where they are not usable."""
    pi = np.asarray(priors, dtype=float)
    if pi.ndim != 1 or not np.isfinite(pi).all() or (pi < 0).any():
        raise DataError(
            f"priors {pi.tolist()}", "give one share from 0 to 1 for each class"
        )
    if abs(pi.sum() - 1) > PRIOR_TOLERANCE:
        raise DataError(
            f"priors {pi.tolist()} sum to {pi.sum():.6g}", "make them sum to 1"
        )
    given_codes = np.asarray(classes)
    if given_codes.shape != (n,):
        raise DataError(
            f"classes of shape {given_codes.shape} for {n} losses", "give one per row"
        )
    codes = given_codes.astype(int)
    # a code of 1.5 would silently become class 1
    is_whole = bool((codes == given_codes).all())
    has_prior = (codes >= 0) & (codes < len(pi))
    if not has_prior.all() or not is_whole:
        raise DataError(
            f"a class code outside 0..{len(pi) - 1}",
            "give a prior for each class, in code order",
        )
    return pi, codes
