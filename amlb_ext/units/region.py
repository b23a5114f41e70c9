"""Where F fails, learnt from other units: the fifth of them where that is foreseen most.

The chance of a unit comes from a model that has not seen it, nor what belongs to it, so that no
unit is placed by its own error (cross-fitting). Some hundred units teach it only roughly
where F fails. What is said is therefore said of the group that it finds, not of the place that
unlimited units would teach: an interval for that held in .80 of cases where .95 was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import mannwhitneyu

from amlb_ext.core.rng import derive_int_seed
from amlb_ext.hardening.weights import (
    calibrate,
    fit_platt_sigmoid,
    learn_failures,
    votes_of,
)

#: Groups of units; the weights of each come from the others.
GROUPS = 5
#: Share of the units that the place where F fails holds.
PLACE_SHARE = 0.2
#: Largest p-value of models that foresee. On noise 2 to 5 % of 300 tables pass, since the models of
#: the parts share most of their units: .05 would let 10 % pass.
CHANCE = 0.01


@dataclass(frozen=True, kw_only=True)
class RegionWeights:
    """Each unit's chance that F fails on it.

    Attributes
    ----------
    weights : ndarray of shape (n,) or None
        ``P(bad | what is known beforehand)``, 0 where nothing tells of it; None where failures are
        not foreseen.
    part : ndarray of shape (n,), int, or None
        What was weighed by one model; units of two parts are on two scales.
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
    known : ndarray of int, optional
        Units that the part's model has not seen and whose failures may be looked at, to see whether
        it foresees any; the held ones if it is left out.
    """

    group: int
    learnt: np.ndarray
    held: np.ndarray
    known: np.ndarray | None = None


def cross_fit(
    Z: np.ndarray,
    is_bad: np.ndarray,
    parts: Sequence[Part],
    seed: int,
    *,
    unforeseen: str,
    is_forward: bool = False,
) -> RegionWeights:
    """Return the chances of the held units, 0 of all others.

    One sigmoid makes chances of what the models of all parts say; it changes no order. Forward in
    time there is none: it would tell earlier units of later failures.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        What is known beforehand.
    is_bad : ndarray of shape (n,), bool
    parts : sequence of Part
    seed : int
    unforeseen : str
        The reason where there are no weights: a part lacks a model that it must have, or failures
        are not foreseen, since bad units rank no higher than others by models that have seen
        neither.
    is_forward : bool
        Whether parts learn from earlier ones: the first have little to learn from, and may lack a
        model.

    Examples
    --------
    >>> Z = np.linspace(0, 1, 60)[:, None]
    >>> k = np.arange(60) % 2
    >>> parts = [
    ...     Part(group=g, learnt=np.flatnonzero(k != g), held=np.flatnonzero(k == g))
    ...     for g in (0, 1)]
    >>> found = cross_fit(Z, Z[:, 0] > 0.7, parts, 0, unforeseen="")
    >>> found.part[:4].tolist(), bool(found.weights[:30].mean() < found.weights[45:].mean())
    ([0, 1, 0, 1], True)
    """
    chance = np.zeros(len(Z))
    part_of = np.full(len(Z), -1)
    kept: list[Part] = []
    votes, failed = [], []
    for number, part in enumerate(parts):
        part_of[part.held] = number
        known = part.held if part.known is None else part.known
        learnt_bad = is_bad[part.learnt]
        # of one kind of units alone nothing is learnt
        if learnt_bad.all() or not learnt_bad.any():
            if kept or not is_forward:
                return RegionWeights(reason=unforeseen)
            continue
        kept.append(part)
        own_seed = derive_int_seed(seed, "region", part.group)
        model = learn_failures(Z[part.learnt], learnt_bad, own_seed)
        if len(part.held):
            chance[part.held] = votes_of(model, Z[part.held])
        if len(known):
            votes.append(votes_of(model, Z[known]))
            failed.append(is_bad[known])
    if not votes or not _foretells(np.concatenate(votes), np.concatenate(failed)):
        return RegionWeights(reason=unforeseen)
    if not is_forward:
        sigmoid = fit_platt_sigmoid(np.concatenate(votes), np.concatenate(failed))
        held = np.concatenate([part.held for part in kept])
        chance[held] = calibrate(sigmoid, chance[held])
    return RegionWeights(weights=chance, part=part_of)


def _foretells(chance: np.ndarray, is_bad: np.ndarray) -> bool:
    """Whether bad units rank higher than others, by models that have seen neither.

    A one-sided test of Mann and Whitney; see :data:`CHANCE`.
    """
    if not is_bad.any() or is_bad.all():
        return False
    test = mannwhitneyu(chance[is_bad], chance[~is_bad], alternative="greater")
    return bool(test.pvalue < CHANCE)
