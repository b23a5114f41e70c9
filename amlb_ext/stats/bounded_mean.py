"""Intervals for the mean of a bounded loss: the true error from labelled rows alone.

Notation
--------
v : (n,) losses of the labelled rows S, each in [0, C_h];  C_h : ``bound``
m, s^2 : their mean and variance (divisor n - 1)
alpha = 1 - level : split evenly over both sides
e : number of errors, for losses that are 0 or 1

References
----------
Wilson (1927), JASA 22, 209-212; Clopper & Pearson (1934), Biometrika 26, 404-413; Efron (1987),
JASA 82, 171-185 (BCa); Cochran (1977), Sampling Techniques, section 2.15; Hall (1992), JRSS B 54,
221-228; Maurer & Pontil (2009), COLT, theorem 4; Waudby-Smith & Ramdas (2024), JRSS B 86, 1-27
(betting).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special, stats

from amlb_ext.core.errors import DataError
from amlb_ext.stats.error_estimate import ErrorEstimate, LossSample

NO_ROW = "no labelled row"
IID = "the labelled rows are independent draws from the population"
LARGE = f"{IID}, and enough of them that their mean is nearly normal"
SKEWED = (
    f"{IID}, the skewness of the losses is as it shows in them, and no rare rows lose far more "
    "than any labelled row"
)
#: Fewest rows of which a skewness is believed, and the factor of Cochran's rule.
FEWEST_T, COCHRAN = 100, 25
#: The same for Hall's interval, which takes skewness into account and asks for less of it to be
#: averaged out; measured, see docs/evidence/coverage.md.
FEWEST_HALL, HALL = 200, 15
#: Below this |a| Hall's transformation is, to rounding, the identity.
NO_SKEWNESS = 1e-9
#: Orders of the rows over which the betting interval is averaged, and its largest stake.
ORDERS, STAKE = 5, 0.75
#: Fewer rows of a class have exact limits: with one to nine of them Wilson's make intervals that
#: hold in 82 to 93 % of draws in place of 95.
FEW_OF_CLASS = 10
#: Halvings of [0, 1] in the search for a betting limit: to 1e-9, far below any sampling error.
HALVINGS = 30


def wilson_interval(losses: np.ndarray, level: float = 0.95) -> ErrorEstimate:
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
    >>> e = wilson_interval(np.repeat([0, 1], [9, 1]))
    >>> round(e.low, 4), round(e.high, 4)
    (0.0179, 0.4042)
    """
    sample = LossSample.checked("wilson", losses, level, assumes=IID, binary=True)
    v = sample.losses
    if len(v) == 0:
        return sample.without_interval(NO_ROW)
    errors, n = np.array([v.sum()]), np.array([len(v)])
    [low], [high] = wilson_limits(errors, n, level)
    return sample.interval(low, high)


def wilson_limits(
    errors: np.ndarray, n: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of :func:`wilson_interval` for many counts at once.

    Parameters
    ----------
    errors, n : ndarray of shape (k,)
        Errors and rows, ``n > 0``. They need not be whole: ``n`` may be an effective size (see
        :func:`~amlb_ext.stats.weighted_mean.kish_size`), and ``errors`` a share of it.
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
    # Wilson (1927): solve |share - p| = z sqrt(p (1 - p) / n) for p.
    z = special.ndtri(0.5 + level / 2)
    share = errors / n
    stretch = 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / stretch
    variance = share * (1 - share) / n + z**2 / (4 * n**2)
    half_width = z / stretch * np.sqrt(variance)
    # Rounding leaves 1e-17 where the formula gives exactly 0 or 1.
    low = np.where(errors == 0, 0.0, centre - half_width)
    high = np.where(errors == n, 1.0, centre + half_width)
    return low, high


def clopper_pearson(losses: np.ndarray, level: float = 0.95) -> ErrorEstimate:
    """Return the exact binomial interval for a 0-1 loss; it covers at least the level.

    Source: Clopper & Pearson (1934), by ``scipy.stats.binomtest``. Parameters and errors as in
    :func:`wilson_interval`.

    Examples
    --------
    >>> round(clopper_pearson(np.zeros(10)).high, 4)  # 1 - .025 ** (1 / 10)
    0.3085
    """
    name = "clopper_pearson"
    sample = LossSample.checked(name, losses, level, assumes=IID, binary=True)
    v = sample.losses
    if len(v) == 0:
        return sample.without_interval(NO_ROW)
    test = stats.binomtest(int(v.sum()), len(v))
    low, high = test.proportion_ci(level, method="exact")
    return sample.interval(low, high)


def t_interval(
    losses: np.ndarray, level: float = 0.95, bound: float = 1.0
) -> ErrorEstimate:
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
    sample = LossSample.checked("t", losses, level, assumes=LARGE, bound=bound)
    v = sample.losses
    if reason := why_no_spread(v):
        return sample.without_interval(reason)
    n, m = len(v), v.mean()
    quantile = special.stdtrit(n - 1, 0.5 + level / 2)
    half_width = quantile * v.std(ddof=1) / math.sqrt(n)
    return sample.interval(m - half_width, m + half_width)


def hall_interval(
    losses: np.ndarray, level: float = 0.95, bound: float = 1.0
) -> ErrorEstimate:
    r"""Return the t interval corrected for skewness by Hall's cubic transformation.

    .. math::
        m - \frac{s}{\sqrt n} \, h(\pm t), \quad
        h(x) = \frac{3}{a} \left(\left[1 + a \left(x - \frac{a}{6}\right)\right]^{1/3} - 1\right),
        \quad a = g / \sqrt n

    with the skewness g of the losses. Source: Hall (1992). NOTE[DIFF]: quantiles of t in place of
    the normal ones. Parameters and errors as in :func:`t_interval`; it, too, gives no interval for
    equal losses. It is approximate: rows that lose much but are too rare to be among the labelled
    ones are not seen.

    Examples
    --------
    >>> e = hall_interval(np.repeat([0.0, 0.01, 0.1], [80, 15, 5]))
    >>> t = t_interval(np.repeat([0.0, 0.01, 0.1], [80, 15, 5]))
    >>> e.low > t.low, e.high > t.high
    (True, True)
    """
    sample = LossSample.checked("hall", losses, level, assumes=SKEWED, bound=bound)
    v = sample.losses
    if reason := why_no_spread(v):
        return sample.without_interval(reason)
    n, m = len(v), v.mean()
    a = stats.skew(v) / math.sqrt(n)
    quantile = special.stdtrit(n - 1, 0.5 + level / 2)
    # The upper quantile gives the lower limit, as in any interval that is solved for m.
    ends = np.array([quantile, -quantile])
    if abs(a) > NO_SKEWNESS:  # h(x) tends to x for a = 0: the t interval
        shifted = 1 + a * (ends - a / 6)
        # cbrt, not a power of 1/3: the base may be negative
        ends = 3 / a * (np.cbrt(shifted) - 1)
    low, high = m - ends * v.std(ddof=1) / math.sqrt(n)
    return sample.interval(low, high)


def interval_for_skewness(losses: np.ndarray) -> str:
    """Return which interval to quote for a loss other than 0-1: ``t``, ``hall`` or ``betting``.

    With the skewness g of the losses, t by Cochran's rule, n >= 25 g^2, and 100 rows, since fewer
    do not show it; Hall's interval with n >= 15 g^2 and 200 rows. What came of it:
    docs/evidence/coverage.md.

    Parameters
    ----------
    losses : ndarray of shape (n,)

    Examples
    --------
    >>> interval_for_skewness(np.linspace(0, 1, 100)), interval_for_skewness(np.linspace(0, 1, 99))
    ('t', 'betting')
    >>> interval_for_skewness(np.repeat([0.0, 1.0], [184, 16]))  # g = 3.1
    'hall'
    >>> interval_for_skewness(np.repeat([0.0, 1.0], [190, 10]))
    'betting'
    """
    v = np.asarray(losses, dtype=float)
    n = len(v)
    # equal losses have no skewness, and no spread to build an interval on
    if n >= FEWEST_T and not why_no_spread(v):
        squared_skewness = stats.skew(v) ** 2
        if n >= COCHRAN * squared_skewness:
            return "t"
        if n >= max(FEWEST_HALL, HALL * squared_skewness):
            return "hall"
    # the only one that needs no spread, and the widest
    return "betting"


def betting_interval(
    losses: np.ndarray, level: float = 0.95, bound: float = 1.0, seed: int = 0
) -> ErrorEstimate:
    r"""Return the betting interval: it covers at least the level for any loss in [0, bound].

    Whoever bets against a mean of mu, by :math:`\prod_i (1 + \lambda_i (v_i - \mu))` with stakes
    that know earlier rows alone, multiplies their capital by 2 / alpha with probability alpha / 2
    at most if mu is the mean. The limits are the means against which that was not achieved. It
    uses the spread of the losses as empirical Bernstein does, at half the width for small means.

    Source: Waudby-Smith & Ramdas (2024), section 4.2, with their stakes for a fixed n. NOTE[DIFF]:
    the capital is averaged over ``ORDERS`` random orders of the rows, which keeps the guarantee;
    each side has alpha / 2. Parameters and errors as in :func:`t_interval`; equal losses are no
    trouble.

    Parameters
    ----------
    losses : ndarray of shape (n,)
    level : float
    bound : float
        C_h.
    seed : int
        Of the orders.

    Examples
    --------
    >>> v = np.full(200, 0.001)
    >>> betting_interval(v).width < 0.6 * empirical_bernstein(v).width
    True
    """
    sample = LossSample.checked("betting", losses, level, assumes=IID, bound=bound)
    v = sample.losses
    if len(v) == 0:
        return sample.without_interval(NO_ROW)
    log_goal = math.log(2 / (1 - level))  # each side has alpha / 2
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(v / bound) for _ in range(ORDERS)]
    rows = np.stack(orders, axis=1)
    low = _lower_betting_limit(rows, log_goal)
    # The upper limit of v is one less the lower limit of 1 - v.
    mirrored = 1 - np.minimum(rows, 1.0)
    high = 1 - _lower_betting_limit(mirrored, log_goal)
    return sample.interval(bound * low, bound * high)


def _lower_betting_limit(rows: np.ndarray, log_goal: float) -> float:
    """Return the largest mean below the rows' against which the gambler reaches the goal.

    Parameters
    ----------
    rows : ndarray of shape (n, orders)
        The losses, scaled to [0, 1], in several orders; the capital is their columns' average.
    log_goal : float
        Logarithm of the capital to reach.
    """
    n, n_orders = rows.shape
    # Waudby-Smith & Ramdas (2024), section 4.2: running means and variances, each with a prior
    # row (mean 1/2, variance 1/4), so that the first stake is defined.
    count = np.arange(1, n + 1)[:, None]
    mean = (0.5 + np.cumsum(rows, axis=0)) / (count + 1)
    squares = np.cumsum((rows - mean) ** 2, axis=0)
    variance = (0.25 + squares) / (count + 1)
    # A stake may know earlier rows alone, hence the shift by one.
    prior_variance = np.full((1, n_orders), 0.25)
    earlier_variance = np.vstack([prior_variance, variance[:-1]])
    stake = np.sqrt(2 * log_goal / (n * earlier_variance))

    def log_capital(mu: float) -> float:
        # A stake of 1 / mu could lose everything; STAKE keeps some in hand.
        stakes = np.minimum(stake, STAKE / mu)
        by_order = np.log1p(stakes * (rows - mu)).sum(axis=0)
        # The logarithm of a mean of exponentials, without overflow.
        largest = by_order.max()
        mean_capital = np.exp(by_order - largest).mean()
        return float(largest + np.log(mean_capital))

    # The capital falls as mu grows, hence bisection; against ``low`` the goal is always reached.
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if log_capital(middle) >= log_goal:
            low = middle
        else:
            high = middle
    return low


def bca_interval(
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
    >>> e = bca_interval(np.repeat([0, 1], [90, 10]))
    >>> bool(0.03 < e.low < 0.1 < e.high < 0.2)
    True
    """
    sample = LossSample.checked("bca", losses, level, assumes=LARGE, bound=bound)
    v = sample.losses
    if reason := why_no_spread(v):
        return sample.without_interval(reason)
    with warnings.catch_warnings():
        # a degenerate draw gives NaN, which is refused below
        warnings.simplefilter("ignore")
        bootstrap = stats.bootstrap(
            (v,),
            np.mean,
            confidence_level=level,
            n_resamples=resamples,
            batch=resamples,
            random_state=np.random.default_rng(seed),
        )
    low, high = bootstrap.confidence_interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return sample.without_interval("the bootstrap is degenerate on these losses")
    return sample.interval(low, high)


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
    name = "empirical_bernstein"
    sample = LossSample.checked(name, losses, level, assumes=IID, bound=bound)
    v = sample.losses
    n = len(v)
    if n < 2:
        return sample.without_interval(f"{n} labelled rows; 2 needed")
    log_term = math.log(4 / (1 - level))
    by_spread = v.std(ddof=1) * math.sqrt(2 * log_term / n)
    by_bound = bound * 7 * log_term / (3 * (n - 1))
    half_width = by_spread + by_bound
    m = v.mean()
    return sample.interval(m - half_width, m + half_width)


def why_no_spread(losses: np.ndarray) -> str:
    """Return why the spread of these losses cannot be seen; empty when it can."""
    if len(losses) < 2:
        return f"{len(losses)} labelled rows; 2 needed"
    if np.ptp(losses) == 0:
        return (
            f"all {len(losses)} losses are {losses[0]:.4g}: their spread cannot be seen; "
            "empirical_bernstein, or wilson for a 0-1 loss, still holds"
        )
    return ""


# Formulas stand as in the papers, one a line, so this module is denser than others.

# The interval for rows that were drawn class by class.
#
# Notation:
# pi_c, m_c, [l_c, u_c], n_c : prior, mean loss, limits and rows of class c
#
# References:
# Zou & Donner (2008), Statistics in Medicine 27, 1693-1702 (MOVER); Welch (1947), Biometrika 34,
# 28-35.


#: What must hold for the interval to cover.
OF_EACH_CLASS = "the rows of each class are independent draws from that class"
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
    costs: np.ndarray | None = None,
) -> ErrorEstimate:
    r"""Return the interval for rows drawn class by class, when the priors are known.

    .. math::
        p = \sum_c \pi_c m_c, \quad
        L = p - \sqrt{\textstyle\sum_c \pi_c^2 (m_c - l_c)^2}, \quad
        U = p + \sqrt{\textstyle\sum_c \pi_c^2 (u_c - m_c)^2}

    for a 0-1 loss, with Wilson limits per class (MOVER; Zou & Donner 2008); of a class with fewer
    than ten rows, those of Clopper and Pearson. For other losses
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
    costs : ndarray of shape (C, C), optional
        What each decision costs, by true class: the limits of each class are then those of
        :func:`cost_interval`.

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
    sample = LossSample.checked(
        "stratified",
        losses,
        level,
        assumes=BY_CLASS if prior_rows is None else BY_CLASS_COUNTED,
        bound=bound,
        binary=binary,
    )
    v = sample.losses
    pi, codes = checked_strata(classes, priors, len(v))
    counts = np.bincount(codes, minlength=len(pi))
    if reason := _why_classes_lack(pi, counts, binary or costs is not None, names):
        return sample.without_interval(reason, point=math.nan)

    # Rows of a class that the population lacks say nothing of its error.
    strata = np.flatnonzero(pi > 0)
    pi = pi[strata]
    n_of_class = counts[strata]
    sums = np.bincount(codes, v, minlength=len(counts))[strata]
    means = sums / n_of_class
    point = float(pi @ means)
    if binary:
        # MOVER: the distances to the limits of each class add up as standard errors do
        sums = np.rint(sums)
        of_many = wilson_limits(sums, n_of_class, level)
        of_few = exact_limits(sums, n_of_class, level)
        lows, highs = np.where(n_of_class < FEW_OF_CLASS, of_few, of_many)
        down = math.sqrt((pi**2) @ (means - lows) ** 2)
        up = math.sqrt((pi**2) @ (highs - means) ** 2)
    elif costs is not None:
        of_class = np.array(
            [_cost_half_widths(v[codes == c], costs[c], level) for c in strata]
        )
        down, up = np.sqrt((pi**2) @ of_class**2)
    else:
        variances = np.array([v[codes == c].var(ddof=1) for c in strata])
        terms = pi**2 * variances / n_of_class  # of V
        variance = float(terms.sum())
        if variance <= NO_VARIANCE * bound**2:
            reason = "all losses of each class are equal: their spread cannot be seen"
            return sample.without_interval(reason, point)
        # Welch (1947)
        squares = terms**2 / (n_of_class - 1)
        df = variance**2 / float(squares.sum())
        quantile = special.stdtrit(df, 0.5 + level / 2)
        down = up = float(quantile) * math.sqrt(variance)
    if prior_rows is not None:
        # the delta method for shares counted on a multinomial sample
        z = special.ndtri(0.5 + level / 2)
        # rounding may make it negative where all classes have one mean
        between_classes = max(float(pi @ means**2) - point**2, 0.0)
        of_priors = z**2 * between_classes / prior_rows
        down = math.sqrt(down**2 + of_priors)
        up = math.sqrt(up**2 + of_priors)
    return sample.interval(point - down, point + up, point)


def cost_interval(
    losses: np.ndarray, costs: np.ndarray, level: float = 0.95
) -> ErrorEstimate:
    r"""Return the interval of a mean cost of decisions, each of which has one of few values.

    .. math::
        p = \sum_k c_k \hat p_k, \quad
        L = p - \sqrt{\textstyle\sum_k c_k^2 (\hat p_k - l_k)^2}, \quad
        U = p + \sqrt{\textstyle\sum_k c_k^2 (u_k - \hat p_k)^2}

    with :math:`\hat p_k` the share of rows that cost :math:`c_k > 0` and Clopper and Pearson's
    limits of it (MOVER; Zou & Donner 2008). A dear mistake that no labelled row shows has an upper
    limit, too, which the spread of the labelled rows' costs would not show. Shares add up to 1 at
    most, so their errors are not positively correlated, and the interval is no narrower than it
    should be.

    Parameters
    ----------
    losses : ndarray of shape (n,)
    costs : ndarray
        All values that a row can cost.
    level : float

    Returns
    -------
    ErrorEstimate

    Examples
    --------
    >>> losses = np.r_[np.zeros(90), np.ones(10)]
    >>> found = cost_interval(losses, np.array([[0.0, 10.0], [1.0, 0.0]]))
    >>> found.point, round(found.low, 2), round(found.high, 2)  # none of the dear ones was seen
    (0.1, 0.05, 0.47)
    """
    bound = float(np.max(costs))
    sample = LossSample.checked("cost", losses, level, assumes=IID, bound=bound)
    if len(sample.losses) == 0:
        return sample.without_interval(NO_ROW)
    down, up = _cost_half_widths(sample.losses, costs, level)
    point = float(sample.losses.mean())
    return sample.interval(point - down, point + up)


def _cost_half_widths(
    losses: np.ndarray, costs: np.ndarray, level: float
) -> tuple[float, float]:
    """Return how far the limits of :func:`cost_interval` lie below and above the mean."""
    n = len(losses)
    values = np.unique(costs[costs > 0])
    counts = np.array([(losses == value).sum() for value in values])
    lows, highs = exact_limits(counts, n, level)
    shares = counts / n
    down = math.sqrt((values**2) @ (shares - lows) ** 2)
    up = math.sqrt((values**2) @ (highs - shares) ** 2)
    return down, up


def exact_limits(
    errors: np.ndarray, n: np.ndarray | int, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of Clopper and Pearson for many counts at once, each ``(k,)``."""
    tail = (1 - level) / 2
    low = np.where(errors > 0, special.betaincinv(errors, n - errors + 1, tail), 0.0)
    high = np.where(
        errors < n, special.betaincinv(errors + 1, n - errors, 1 - tail), 1.0
    )
    return low, high


def balanced_interval(
    losses: np.ndarray,
    classes: np.ndarray,
    level: float = 0.95,
    names: Sequence[str] = (),
) -> ErrorEstimate:
    """Return the interval of the balanced error: the mean over classes of their shares of errors.

    That of :func:`stratified_interval` with a prior of 1/C for each class; how often a class was
    drawn is no matter.

    Parameters
    ----------
    losses : ndarray of shape (n,)
        0 or 1.
    classes : ndarray of shape (n,)
        Codes 0..C-1 of the true classes.
    level : float
    names : sequence of str
        Of all C classes.

    Returns
    -------
    ErrorEstimate
        Without an interval where a class has no labelled row.

    Examples
    --------
    >>> losses, classes = np.r_[np.tile([0, 0, 0, 1], 20), [1, 0]], np.repeat([0, 1], [80, 2])
    >>> found = balanced_interval(losses, classes, names=["no", "yes"])
    >>> found.point, round(found.low, 2), round(found.high, 2)
    (0.375, 0.13, 0.62)
    """
    n_classes = len(names)
    counts = np.bincount(np.asarray(classes, dtype=int), minlength=n_classes)
    lacking = [name for name, count in zip(names, counts, strict=True) if not count]
    if lacking:
        return ErrorEstimate(
            name="balanced",
            level=level,
            n=len(losses),
            assumes=OF_EACH_CLASS,
            reason=f"no labelled row of class {', '.join(lacking)}, and each class counts alike",
        )
    estimate = stratified_interval(
        losses, classes, np.full(n_classes, 1 / n_classes), level, binary=True
    )
    return replace(estimate, name="balanced", assumes=OF_EACH_CLASS)


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
    are_shares = pi.ndim == 1 and bool(np.isfinite(pi).all() and (pi >= 0).all())
    if not are_shares or abs(pi.sum() - 1) > PRIOR_TOLERANCE:
        raise DataError(
            f"priors {pi.tolist()}",
            "give one share from 0 to 1 for each class, with a sum of 1",
        )
    given_codes = np.asarray(classes)
    # a code of 1.5 would silently become class 1
    if given_codes.shape != (n,) or not np.isin(given_codes, np.arange(len(pi))).all():
        raise DataError(
            f"classes of shape {given_codes.shape} for {n} losses and {len(pi)} priors",
            f"give each row a whole number, 0 to {len(pi) - 1}",
        )
    return pi, given_codes.astype(int)
