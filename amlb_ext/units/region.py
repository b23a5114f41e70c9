"""Where F fails, learnt from other units: what each counts there, by what is known beforehand.

The weight of a unit comes from a forest that has not seen it, nor what belongs to it, so that no
unit is weighted by its own error (cross-fitting). Some hundred units teach a forest only roughly
where F fails. How roughly is seen by learning once more without each group of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from amlb_ext.hardening.weights import Region

#: Groups of units; the weights of each come from the others.
GROUPS = 5


@dataclass(frozen=True, kw_only=True)
class RegionWeights:
    """What units count where F fails.

    Attributes
    ----------
    weights : ndarray of shape (n,) or None
        ``P(bad | what is known beforehand)``; None where that does not foresee failures.
    reweighted : ndarray of shape (G, n) or None
        The same, learnt without each group.
    reason : str
        Why there are none; empty where there are.
    """

    weights: np.ndarray | None = None
    reweighted: np.ndarray | None = None
    reason: str = ""


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

    def __call__(
        self, learnt: np.ndarray, own: int, without: int | None = None
    ) -> Region | None:
        """Return the region; None where these units tell of none.

        Parameters
        ----------
        learnt : ndarray of int
            Positions.
        own : int
            Group of the units that will be weighed.
        without : int, optional
            Group that is left out beside it.
        """


def forest_learner(
    Z: np.ndarray, is_bad: np.ndarray, seed_of: Callable[..., int]
) -> Learn:
    """Return what learns a forest from units whose order is no matter.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
    is_bad : ndarray of shape (n,), bool
    seed_of : callable
        From the groups that are left out to a seed.
    """
    waiting: dict[bytes, Region | None] = {}

    def learn(
        learnt: np.ndarray, own: int, without: int | None = None
    ) -> Region | None:
        # what is left for a without b is left for b without a: one forest serves both
        key = learnt.tobytes()
        if key in waiting:
            return waiting.pop(key)
        groups = (own,) if without is None else sorted((own, without))
        region = Region(seed_of(*groups))
        region.fit(Z[learnt], is_bad[learnt], weigh_beyond=False)
        found = region if region.is_found else None
        if without is not None:
            waiting[key] = found
        return found

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


def jackknife(
    Z: np.ndarray,
    parts: Sequence[Part],
    learn: Learn,
    *,
    weights: np.ndarray,
    group_of: np.ndarray,
) -> np.ndarray:
    """Return the weights as they are without each group of the units that they were learnt from.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
    parts : sequence of Part
    learn : callable
    weights : ndarray of shape (n,)
    group_of : ndarray of shape (n,), int
        Negative for units of no group.

    Returns
    -------
    ndarray of shape (G, n)
    """
    n_groups = int(group_of.max()) + 1
    reweighted = np.tile(weights, (n_groups, 1))
    for part in parts:
        if not len(part.held):
            continue
        for left_out in range(n_groups):
            fewer = part.learnt[group_of[part.learnt] != left_out]
            # a part keeps the weights that it owes nothing of to the group that is left out
            if left_out == part.group or len(fewer) == len(part.learnt):
                continue
            region = learn(fewer, part.group, left_out)
            # without a region all units of the part count alike, on the scale of the others
            values = np.full(len(part.held), weights[part.held].mean())
            if region is not None:
                values = region.weights(Z[part.held])
            reweighted[left_out, part.held] = values
    return reweighted
