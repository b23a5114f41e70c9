"""Where F fails, learnt from other units: the fifth of them where that is foreseen most.

The chance of a unit comes from a forest that has not seen it, nor what belongs to it, so that no
unit is placed by its own error (cross-fitting). Some hundred units teach a forest only roughly
where F fails. What is said is therefore said of the group that it finds, not of the place that
unlimited units would teach: an interval for that held in .80 of cases where .95 was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from amlb_ext.hardening.weights import Region

#: Groups of units; the weights of each come from the others.
GROUPS = 5
#: Share of the units that the place where F fails holds.
PLACE_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class RegionWeights:
    """Each unit's chance that F fails on it.

    Attributes
    ----------
    weights : ndarray of shape (n,) or None
        ``P(bad | what is known beforehand)``, 0 where nothing tells of it; None where failures are
        not foreseen.
    part : ndarray of shape (n,), int, or None
        What was weighed by one forest; units of two parts are on two scales.
    reason : str
        Why there are none; empty where there are.
    """

    weights: np.ndarray | None = None
    part: np.ndarray | None = None
    reason: str = ""

    @property
    def inside(self) -> np.ndarray | None:
        """See :func:`place_of_failure`; None without weights."""
        if self.weights is None:
            return None
        return place_of_failure(self.weights, self.part)


def place_of_failure(chance: np.ndarray, part: np.ndarray | None = None) -> np.ndarray:
    """Return 1.0 for the units where F is foreseen to fail most, a fifth of each part, else 0.0.

    Parameters
    ----------
    chance : ndarray of shape (n,)
        Of F to fail; 0 for units that nothing tells of, which are in no place.
    part : ndarray of shape (n,), int, optional
        Chances are compared within a part only.

    Examples
    --------
    >>> place_of_failure(np.array([0.1, 0.5, 0.2, 0.1, 0.3])).tolist()
    [0.0, 1.0, 0.0, 0.0, 0.0]
    """
    known = np.asarray(chance, dtype=float) > 0
    inside = np.zeros(len(known))
    codes = np.zeros(len(known), dtype=int) if part is None else part
    for number in np.unique(codes[known]):
        own = np.flatnonzero(known & (codes == number))
        highest = np.argsort(-chance[own], kind="stable")
        inside[own[highest[: max(1, round(PLACE_SHARE * len(own)))]]] = 1.0
    return inside


@dataclass(frozen=True, kw_only=True)
class Part:
    """Units that are weighed by what others teach.

    Attributes
    ----------
    group : int
        That the held units are of.
    learnt, held : ndarray of int
        Positions of the units that teach, and of those that are weighed.
    """

    group: int
    learnt: np.ndarray
    held: np.ndarray


class Learn(Protocol):
    """Learns a region from some units, for those of a group."""

    def __call__(self, learnt: np.ndarray, own: int) -> Region | None:
        """Return the region; None where these units tell of none.

        Parameters
        ----------
        learnt : ndarray of int
            Positions.
        own : int
            Group of the units that will be weighed.
        """


def forest_learner(
    Z: np.ndarray, is_bad: np.ndarray, seed_of: Callable[[int], int]
) -> Learn:
    """Return what learns a forest from units whose order is no matter.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
    is_bad : ndarray of shape (n,), bool
    seed_of : callable
        From the group that is left out to a seed.
    """

    def learn(learnt: np.ndarray, own: int) -> Region | None:
        region = Region(seed_of(own))
        region.fit(Z[learnt], is_bad[learnt], weigh_beyond=False)
        return region if region.is_found else None

    return learn


def cross_fit(
    Z: np.ndarray, parts: Sequence[Part], learn: Learn, *, is_forward: bool = False
) -> tuple[np.ndarray, list[Part]]:
    """Return the weights of the held units, 0 of all others, and the parts with a region.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        What is known beforehand.
    parts : sequence of Part
    learn : callable
    is_forward : bool
        Whether parts learn from earlier ones: the first have little to learn from, and may lack a
        region.

    Returns
    -------
    weights : ndarray of shape (n,)
    parts : list of Part
        Empty where a part lacks a region that it must have: its units would be weighed on another
        scale than the others.

    Examples
    --------
    >>> Z = np.linspace(0, 1, 60)[:, None]
    >>> learn = forest_learner(Z, Z[:, 0] > 0.7, lambda group: group)
    >>> k = np.arange(60) % 2
    >>> parts = [
    ...     Part(group=g, learnt=np.flatnonzero(k != g), held=np.flatnonzero(k == g))
    ...     for g in (0, 1)]
    >>> weights, kept = cross_fit(Z, parts, learn)
    >>> len(kept), bool(weights[:30].mean() < weights[45:].mean())
    (2, True)
    """
    weights = np.zeros(len(Z))
    kept: list[Part] = []
    for part in parts:
        region = learn(part.learnt, part.group)
        if region is None:
            if kept or not is_forward:
                return weights, []
            continue
        kept.append(part)
        if len(part.held):
            weights[part.held] = region.weights(Z[part.held])
    return weights, kept
