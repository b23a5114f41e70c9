"""OSYN: a lower bound of the true error from K labelled rows and a generator.

It serves to reproduce the paper and to look at, not to rely on: the cells are centred on the rows
whose losses are averaged, so that nothing random is left for the Hoeffding step, and clipping the
counts breaks the multinomial assumption. :mod:`amlb_ext.estimate.partition` is the sound bound of
this kind.

The notation is that of :mod:`amlb_ext.estimate.osyn.bound`.
Target_i(u) <= l(s_i), and equal if and only if l(u) >= l(s_i). Once each region has given g*_i
such rows, F - eps = Σ w_i l(s_i): the closed form, in which the generator matters through p alone.

References
----------
Seed paper "Using Synthetic Data to estimate the True Error is theoretically and practically
doable": Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn.regions import (
    Placed,
    RegionTally,
    is_zero_one,
    rows_inside,
)
from amlb_ext.stats.bounded_loss import checked_losses
from amlb_ext.stats.error_estimate import FAILED, ErrorEstimate

# Theorem 1 of OSYN: its settings, the counts that it needs, and the bound that it gives.
#
# Notation:
# l : loss in [0, C_h];  s_1..s_K labelled rows, each the centre of region i;  u : generated row
# p : (K,) region masses;  g_i ~ Multinomial(g, p), clipped to g* (K,);  w = g* / sum(g*)
# Target_i(u) = l(u) - |l(u) - l(s_i)| = min(l(s_i), 2 l(u) - l(s_i))
# F - eps : mean Target of the selected rows;  a_i : mean loss of region i, at most a_hat
# B = C_h sqrt(½ ln(1/δ2) Σ w²);  D = a_hat ln(1/δ1) / g;  β = 2 Σ p_i a_i²
# bound = (sqrt(F - eps - B + D) - sqrt(D))², with probability 1 - δ1 - δ2
#
# References:
# Seed paper "Using Synthetic Data to estimate the True Error is theoretically and practically
# doable": Theorem 1, section 4, Appendix A.


@dataclass(frozen=True)
class OsynSettings:
    """The choices that Theorem 1 and Algorithm 1 leave open, to be made before any result.

    Attributes
    ----------
    g : int
        Generated rows to select, before clipping.
    b : float
        Counts are clipped to g (1 ± b) / K.
    delta1, delta2 : float
        Probabilities of failing; the level is ``1 - delta1 - delta2``.
    C_h : float
        Bound of the loss.
    a_hat : float, "paper" or None
        Bound of the mean losses of the regions. None is C_h, which is always valid. "paper" is the
        largest mean loss of *generated* rows, while the theorem means those of the population.

    Raises
    ------
    ConfigError
        A value outside its range.
    """

    g: int = 50_000
    b: float = 1.0
    delta1: float = 0.01
    delta2: float = 0.2
    C_h: float = 1.0
    a_hat: float | Literal["paper"] | None = None

    def __post_init__(self) -> None:
        # A finite C_h alone bounds a sum of losses.
        if self.g < 1 or self.b < 0 or not 0 < self.C_h < math.inf:
            raise ConfigError(
                f"g = {self.g}, b = {self.b}, C_h = {self.C_h}",
                "choose g >= 1, b >= 0 and a finite C_h > 0",
            )
        if min(self.delta1, self.delta2) <= 0 or self.delta1 + self.delta2 >= 1:
            raise ConfigError(
                f"delta1 = {self.delta1}, delta2 = {self.delta2}",
                "choose both above 0, with a sum below 1",
            )
        is_word = self.a_hat is None or self.a_hat == "paper"
        # any other text; written so that NaN fails as well
        is_wrong = isinstance(self.a_hat, str | None) or not 0 <= self.a_hat <= self.C_h
        if is_wrong and not is_word:
            raise ConfigError(
                f"a_hat = {self.a_hat!r}",
                f"give a number in 0..{self.C_h}, 'paper' or None",
            )


class BoundParts(NamedTuple):
    """The bound of Theorem 1, its terms B and D, and whether F - eps is at least B."""

    bound: np.ndarray
    B: np.ndarray
    D: np.ndarray
    met: np.ndarray


@dataclass(frozen=True, kw_only=True)
class OsynBound:
    """A bound and the numbers that it follows from.

    Attributes
    ----------
    bound : float
        0 if F - eps < B.
    F_minus_eps, B, D : float
        See the notation.
    weights : ndarray of shape (K,)
        Shares of the regions among the selected rows.
    g, g_star : int
        Numbers of rows selected and wanted, which are equal in the closed form.
    a_hat, beta : float
        ``beta`` follows from the mean losses of generated rows or, if the stream has none, from
        the losses of the labelled rows, which overestimate it: E l(s_i)² >= a_i².
    condition_delta1 : bool
        Whether δ1 > exp(-½ g β / a_hat²).
    assumption_met : bool
        Whether F - eps >= B.
    empty : int
        Regions into which no generated row fell.
    method : str
        ``osyn`` or ``osyn_closed``.
    level : float
        1 - δ1 - δ2.
    C_h : float
        Bound of the loss.
    """

    bound: float
    F_minus_eps: float
    B: float
    D: float
    weights: np.ndarray
    g: int
    g_star: int
    a_hat: float
    beta: float
    condition_delta1: bool
    assumption_met: bool
    empty: int
    method: str
    level: float
    C_h: float


def target_loss(loss_u: np.ndarray, loss_s: np.ndarray) -> np.ndarray:
    """Return l(u) - |l(u) - l(s)|, which Algorithm 1 maximises (section 4).

    Parameters
    ----------
    loss_u, loss_s : ndarray
        Of one shape, or of shapes that broadcast.

    Examples
    --------
    >>> target_loss(np.array([0.0, 0.5, 1.0]), 0.5)  # never above .5, and .5 from l(u) = .5 on
    array([-0.5,  0.5,  0.5])
    """
    u = np.asarray(loss_u, dtype=float)
    # Of the two forms the one without a difference is exact where l(u) >= l(s).
    return np.minimum(loss_s, 2 * u - loss_s)


def clip_counts(counts: np.ndarray, g: int, b: float) -> np.ndarray:
    """Return g*, counts clipped to g (1 ± b) / K (section 4); a large b clips nothing.

    NOTE[DIFF] the paper does not specify the rounding; here the limits are rounded inwards.

    Raises
    ------
    ConfigError
        There is no whole number within the limits.

    Examples
    --------
    >>> clip_counts(np.array([90, 10]), 100, 0.2)  # 40..60
    array([60, 40])
    """
    share = g / len(counts)
    # The small term allows for rounding: 1.2 * 100 is a little below 120.
    low = max(0, math.ceil(share * (1 - b) - 1e-9))
    high = math.floor(min(share * (1 + b), g) + 1e-9)
    if low > high:
        raise ConfigError(
            f"no whole number within {share:.3g} (1 ± {b})",
            "raise g above K, or raise b",
        )
    return np.clip(counts, low, high)


def theorem_bound(
    F_minus_eps: float,
    w: np.ndarray,
    a_hat: float,
    g: int,
    delta1: float | np.ndarray,
    delta2: float | np.ndarray,
    C_h: float = 1.0,
) -> BoundParts:
    """Return the bound of Theorem 1, (1), or 0 if its assumption F - eps >= B fails.

    Parameters
    ----------
    F_minus_eps : float
    w : ndarray of shape (K,)
        Weights g_i / g.
    a_hat : float
    g : int
        Rows selected.
    delta1, delta2 : float or ndarray
        Of one shape, which the parts of the answer have, too.
    C_h : float

    Returns
    -------
    BoundParts

    Examples
    --------
    B = sqrt(.5 * 2 * .01) = .1 and D = 1 * 3 / 300 = .01, so sqrt(.25 - .1 + .01) - .1 = .3:

    >>> w = np.full(100, 0.01)
    >>> [round(float(v), 4) for v in theorem_bound(0.25, w, 1.0, 300, np.exp(-3), np.exp(-2))]
    [0.09, 0.1, 0.01, 1.0]
    """
    B = C_h * np.sqrt(0.5 * np.log(1 / np.asarray(delta2)) * np.square(w).sum())
    D = a_hat * np.log(1 / np.asarray(delta1)) / g
    is_met = F_minus_eps >= B
    excess = np.where(is_met, F_minus_eps - B, 0.0)
    root = np.sqrt(excess + D) - np.sqrt(D)
    return BoundParts(bound=np.where(is_met, root**2, 0.0), B=B, D=D, met=is_met)


def checked_masses(p: np.ndarray) -> np.ndarray:
    """Return masses scaled to sum 1, shape (K,)."""
    p = np.asarray(p, dtype=float)
    is_finite = p.ndim == 1 and np.isfinite(p).all()
    if not is_finite or (p < 0).any() or p.sum() <= 0:
        raise DataError(
            "region masses are missing, negative or sum to 0",
            "give counts of generated rows",
        )
    return p / p.sum()


#: What the bound assumes, for the table of estimates.
ASSUMES = (
    "labelled rows are independent draws from the population; the generator has the population's "
    "region masses; b, δ1 and δ2 were chosen before seeing any bound; even so it does not hold "
    "strictly, since the regions are centred on the labelled rows"
)


def osyn_closed(
    loss_s: np.ndarray,
    generated: RegionTally,
    settings: OsynSettings | None = None,
    rng: np.random.Generator | None = None,
    g_star: np.ndarray | None = None,
) -> OsynBound:
    """Return the limit of Algorithm 1 without running it: F - eps = Σ w_i l(s_i).

    A region without any generated row (``empty``) has the weight that clipping gives it, 0 for
    b >= 1, although Algorithm 1 could not fill it. The second of two equal labelled rows has such
    a region.

    Parameters
    ----------
    loss_s : ndarray of shape (K,)
        Losses of the labelled rows.
    generated : RegionTally
        Of a large stream. It gives p and, if its rows have losses, a_hat="paper".
    settings : OsynSettings, optional
    rng : Generator, optional
        Draws g*; by default seeded with 0.
    g_star : ndarray of shape (K,), optional
        Counts to use instead of a draw.

    Returns
    -------
    OsynBound

    Raises
    ------
    DataError
        Losses of another length than K, or outside 0..C_h.

    Examples
    --------
    One region in five is wrong; a_hat = 1, g = 50,000, K = 100, b = 0, so w = .01 and
    B = sqrt(.5 * 1.609 * .01) = .0897, D = 4.605 / 50,000:

    >>> even = RegionTally(np.full(100, 10), np.full(100, 2.0), 0, True)
    >>> r = osyn_closed(np.arange(100) % 5 == 0, even, OsynSettings(b=0))
    >>> round(r.F_minus_eps, 4), round(r.B, 4), round(r.bound, 4), r.condition_delta1
    (0.2, 0.0897, 0.1041, True)
    """
    settings, loss_s, g_star = _prepare_inputs(
        loss_s, generated, settings=settings, rng=rng, g_star=g_star
    )
    return bound_of_selected(
        "osyn_closed",
        float(g_star @ loss_s),
        selected=g_star,
        g_star=g_star,
        generated=generated,
        masses=generated,
        loss_s=loss_s,
        settings=settings,
    )


def osyn_iterative(
    stream: Iterable[Placed],
    loss_s: np.ndarray,
    masses: RegionTally,
    settings: OsynSettings | None = None,
    rng: np.random.Generator | None = None,
    g_star: np.ndarray | None = None,
) -> OsynBound:
    """Run Algorithm 1: in each region keep the g*_i generated rows with the largest Targets.

    Each batch of the stream is one iteration, and the result does not depend on how the stream is
    cut. Memory holds the selected rows and one batch. Rows with a negative Target are kept if a
    region has no others, as in the paper.

    Parameters
    ----------
    stream : iterable of (regions, losses)
        The region of each row, -1 for none, see
        :func:`~amlb_ext.estimate.osyn.regions.place_rows`; of a 0-1 loss
        :meth:`~amlb_ext.estimate.osyn.regions.RegionTally.rows` will do.
    loss_s : ndarray of shape (K,)
        Losses of the centres.
    masses : RegionTally
        Of a stream of the same generator, for p.
    settings, rng, g_star
        See :func:`osyn_closed`.

    Returns
    -------
    OsynBound

    Raises
    ------
    DataError
        Losses that are missing or outside 0..C_h, an empty stream, and those of
        :func:`osyn_closed`.

    Examples
    --------
    >>> even = RegionTally(np.array([5, 5]), None, 0, False)
    >>> rows = [(np.array([0, 0, 1, 1, -1]), np.array([0.1, 0.3, 0.9, 0.6, 0.5]))]
    >>> r = osyn_iterative(rows, np.array([0.2, 0.8]), even, OsynSettings(g=2, b=0))
    >>> r.g, float(r.F_minus_eps)
    (2, 0.5)

    Two regions with 2 wanted rows each: the first, l(s) = 1, has one row of loss 1 (Target 1) and
    one of loss 0 (Target -1); the second, l(s) = 0, has Targets 0 only.

    >>> seen = RegionTally(np.array([2, 9]), np.array([1.0, 4.0]), 0, True)
    >>> osyn_iterative(seen.rows(), np.array([1, 0]), seen, g_star=np.array([2, 2])).F_minus_eps
    0.0
    """
    settings, loss_s, g_star = _prepare_inputs(
        loss_s, masses, settings=settings, rng=rng, g_star=g_star
    )
    K = len(loss_s)
    selected = _SelectedRows(np.empty(0, dtype=np.int64), np.empty(0))
    counts = np.zeros(K, dtype=np.int64)
    loss_sums = np.zeros(K)
    outside = 0
    zero_one = True
    # Selected rows with the largest possible Target, l(s_i), by region.
    filled = np.zeros(K, dtype=np.int64)
    for region, loss, missed in rows_inside(stream, settings.C_h):
        if loss is None:
            raise DataError("rows without losses", "let the stream give losses as well")
        counts += np.bincount(region, minlength=K)
        loss_sums += np.bincount(region, loss, minlength=K)
        outside += missed
        zero_one = zero_one and is_zero_one(loss)
        # A region that is filled with such rows cannot gain.
        can_gain = filled[region] < g_star[region]
        region = region[can_gain]
        targets = target_loss(loss[can_gain], loss_s[region])
        selected = selected.with_rows(region, targets, g_star)
        is_largest = selected.targets >= loss_s[selected.regions]
        filled = np.bincount(selected.regions[is_largest], minlength=K)
    if len(selected.targets) == 0:
        raise DataError(
            f"none of {outside} generated rows was selected",
            "generate rows inside the regions",
        )
    return bound_of_selected(
        "osyn",
        float(selected.targets.sum()),
        selected=np.bincount(selected.regions, minlength=K),
        g_star=g_star,
        generated=RegionTally(
            counts=counts, loss_sums=loss_sums, outside=outside, zero_one=zero_one
        ),
        masses=masses,
        loss_s=loss_s,
        settings=settings,
    )


@dataclass(frozen=True)
class _SelectedRows:
    """The rows that Algorithm 1 has selected so far: their regions and their Targets."""

    regions: np.ndarray
    targets: np.ndarray

    def with_rows(
        self, regions: np.ndarray, targets: np.ndarray, g_star: np.ndarray
    ) -> _SelectedRows:
        """Return the g*_i largest of these and of other rows, region by region."""
        regions = np.concatenate([self.regions, regions])
        targets = np.concatenate([self.targets, targets])
        # By region, then by falling Target; stable, so that of equal rows the earlier one stays.
        order = np.lexsort((-targets, regions))
        regions = regions[order]
        targets = targets[order]
        sizes = np.bincount(regions, minlength=len(g_star))
        starts = np.cumsum(sizes) - sizes
        rank_in_region = np.arange(len(targets)) - np.repeat(starts, sizes)
        is_best = rank_in_region < g_star[regions]
        return _SelectedRows(regions[is_best], targets[is_best])


def osyn_estimate(result: OsynBound) -> ErrorEstimate:
    """Return a bound as a row of the table of estimates, with its failures as the reason.

    Examples
    --------
    >>> few = RegionTally(np.array([5, 0]), np.array([1.0, 0.0]), 0, True)
    >>> row = osyn_estimate(osyn_closed(np.array([0.0, 1.0]), few))
    >>> row.name, row.low, row.high, row.check
    ('osyn_closed', 0.0, 1.0, 'failed')
    >>> row.reason
    'F - eps = 0 is below B = 0.897: the bound is 0; 1 of 2 regions without a generated row'
    """
    K = len(result.weights)
    failures = []
    if not result.assumption_met:
        failures.append(
            f"F - eps = {result.F_minus_eps:.3g} is below B = {result.B:.3g}: the bound is 0"
        )
    if not result.condition_delta1:
        failures.append("δ1 is too small for g: it must exceed exp(-½ g β / a_hat²)")
    if result.empty:
        failures.append(f"{result.empty} of {K} regions without a generated row")
    if result.g < result.g_star:
        failures.append(f"{result.g} of {result.g_star} rows found")
    row = ErrorEstimate(
        name=result.method,
        point=math.nan,
        low=result.bound,
        high=result.C_h,
        level=result.level,
        n=K,
        assumes=ASSUMES,
        reason="; ".join(failures),
    )
    # Nothing can pass: the masses and the draw of the labelled rows stay unchecked.
    has_failed = not (result.assumption_met and result.condition_delta1)
    return replace(row, check=FAILED) if has_failed else row


def _prepare_inputs(
    loss_s: np.ndarray,
    masses: RegionTally,
    *,
    settings: OsynSettings | None,
    rng: np.random.Generator | None,
    g_star: np.ndarray | None,
) -> tuple[OsynSettings, np.ndarray, np.ndarray]:
    """Return the settings, checked losses of the labelled rows, and g*."""
    settings = settings or OsynSettings()
    loss_s = checked_losses(loss_s, settings.C_h)
    if len(loss_s) != len(masses.counts):
        raise DataError(
            f"{len(loss_s)} labelled losses for {len(masses.counts)} regions",
            "give the losses of the rows that are the centres",
        )
    if g_star is None:
        rng = rng or np.random.default_rng(0)
        drawn = rng.multinomial(settings.g, checked_masses(masses.masses))
        g_star = clip_counts(drawn, settings.g, settings.b)
    return settings, loss_s, np.asarray(g_star, dtype=np.int64)


def bound_of_selected(
    method: str,
    total: float,
    *,
    selected: np.ndarray,
    g_star: np.ndarray,
    generated: RegionTally,
    masses: RegionTally,
    loss_s: np.ndarray,
    settings: OsynSettings,
) -> OsynBound:
    """Return the bound from the sum of the Targets of the selected rows.

    Both forms of OSYN share this step.

    Parameters
    ----------
    method : str
    total : float
        Sum of the Targets.
    selected, g_star : ndarray of shape (K,)
        Numbers of rows selected and wanted, by region.
    generated, masses : RegionTally
        Of the rows to select from, and of the rows that give p.
    loss_s : ndarray of shape (K,)
    settings : OsynSettings
    """
    g = int(selected.sum())
    weights = selected / g
    F_minus_eps = total / g
    # Without losses of generated rows those of the labelled rows stand in for a_i.
    means = loss_s if generated.means is None else generated.means
    # The paper bounds the region means of the population by those of the generator.
    if settings.a_hat == "paper":
        if generated.means is None:
            raise ConfigError(
                "a_hat = 'paper' without generated losses", "give the stream losses"
            )
        a_hat = float(means.max())
    else:
        a_hat = settings.C_h if settings.a_hat is None else float(settings.a_hat)
    parts = theorem_bound(
        F_minus_eps,
        weights,
        a_hat,
        g=g,
        delta1=settings.delta1,
        delta2=settings.delta2,
        C_h=settings.C_h,
    )
    beta = 2 * float(masses.masses @ means**2)
    # A generator on which the model never errs gives a_hat = 0 and beta = 0: not met.
    condition_holds = False
    if a_hat > 0:
        condition_holds = settings.delta1 > math.exp(-0.5 * g * beta / a_hat**2)
    return OsynBound(
        bound=float(parts.bound),
        F_minus_eps=F_minus_eps,
        B=float(parts.B),
        D=float(parts.D),
        weights=weights,
        g=g,
        g_star=int(g_star.sum()),
        a_hat=a_hat,
        beta=beta,
        condition_delta1=condition_holds,
        assumption_met=bool(parts.met),
        empty=int((generated.counts == 0).sum()),
        method=method,
        level=1 - settings.delta1 - settings.delta2,
        C_h=settings.C_h,
    )
