"""Theorem 1 of OSYN: its settings, the counts that it needs, and the bound that it gives.

Notation
--------
l : loss in [0, C_h];  s_1..s_K labelled rows, each the centre of region i;  u : generated row
p : (K,) region masses;  g_i ~ Multinomial(g, p), clipped to g* (K,);  w = g* / sum(g*)
Target_i(u) = l(u) - |l(u) - l(s_i)| = min(l(s_i), 2 l(u) - l(s_i))
F - eps : mean Target of the selected rows;  a_i : mean loss of region i, at most a_hat
B = C_h sqrt(½ ln(1/δ2) Σ w²);  D = a_hat ln(1/δ1) / g;  β = 2 Σ p_i a_i²
bound = (sqrt(F - eps - B + D) - sqrt(D))², with probability 1 - δ1 - δ2

References
----------
Seed paper "Using Synthetic Data to estimate the True Error is theoretically and practically
doable": Theorem 1, section 4, Appendix A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from amlb_ext.core.errors import ConfigError, DataError


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
        if not self._is_valid_a_hat():
            raise ConfigError(
                f"a_hat = {self.a_hat!r}",
                f"give a number in 0..{self.C_h}, 'paper' or None",
            )

    def _is_valid_a_hat(self) -> bool:
        if self.a_hat is None or self.a_hat == "paper":
            return True
        # any other text; written so that NaN fails as well
        return not isinstance(self.a_hat, str) and 0 <= self.a_hat <= self.C_h


class BoundParts(NamedTuple):
    """The bound of Theorem 1, its terms B and D, and whether F - eps is at least B."""

    bound: float
    B: float
    D: float
    met: bool


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


def adjusted_counts(
    p: np.ndarray, g: int, b: float, rng: np.random.Generator
) -> np.ndarray:
    """Return g*, a multinomial draw clipped to g (1 ± b) / K (section 4).

    NOTE[DIFF] the paper does not specify the rounding; here the limits are rounded inwards.

    Parameters
    ----------
    p : ndarray of shape (K,)
        Region masses; scaled to sum 1.
    g : int
        Rows to draw.
    b : float
        A large value clips nothing.
    rng : Generator

    Returns
    -------
    ndarray of shape (K,), int64

    Raises
    ------
    DataError
        Masses that are negative or sum to 0.
    ConfigError
        There is no whole number within the limits.

    Examples
    --------
    >>> adjusted_counts(np.array([0.9, 0.1]), 100, 0.2, np.random.default_rng(0))  # 40..60
    array([60, 40])
    """
    return clip_counts(rng.multinomial(g, checked_masses(p)), g, b)


def clip_counts(counts: np.ndarray, g: int, b: float) -> np.ndarray:
    """Return counts clipped to g (1 ± b) / K; see :func:`adjusted_counts`."""
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
    delta1: float,
    delta2: float,
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
    delta1, delta2 : float
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
    sum_of_squares = float(np.sum(np.square(w)))
    B = C_h * math.sqrt(0.5 * math.log(1 / delta2) * sum_of_squares)
    D = a_hat * math.log(1 / delta1) / g
    is_met = bool(F_minus_eps >= B)
    bound = 0.0
    if is_met:
        root = math.sqrt(F_minus_eps - B + D) - math.sqrt(D)
        bound = root**2
    return BoundParts(bound=bound, B=B, D=D, met=is_met)


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
