"""Rows made from the whole population and not from few failures, with labels of the oracle's own.

A handful of failures tells little of where F fails. The training rows tell more: rows are
resampled from *them*, and each gets a target drawn from the oracle T *given that F is bad
there*; a row is kept with a chance in proportion to ``P_T(bad | x)``. Such rows carry what the
best model of the data at hand expects of F's failures, its errors included: they rank, they give
no interval. How well they rank is measured by ``python -m benchmarks.studies fidelity``.

Notation
--------
q : outcomes per row: the classes, or quantiles of the residual
s(x) : expected |y - T(x)|, by boosting on out-of-fold residuals (regression)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.hardness import BadRule
from amlb_ext.hardening.judged_rows import FoldModels, JudgedRows
from amlb_ext.hardening.made_rows.screening import TakenRows
from amlb_ext.hardening.oracle import Oracle
from amlb_ext.hardening.weights import draw_region

#: Quantiles of the standardised residual.
QUANTILES = 41
#: Least probability of a class: no outcome is impossible.
FLOOR = 0.005
#: Rows of the population proposed per failure wanted, and at most: about one in ten is bad.
PROPOSED_PER_ROW, MOST_PROPOSED = 15, 20_000


class Teacher:
    """The oracle T with a spread: which targets a row may have, and how probable.

    Classification: the oracle's class probabilities. Regression: ``T(x) + s(x) e`` with e the
    quantiles of the out-of-fold residuals over their expected size.

    Parameters
    ----------
    oracle : Oracle
        Fitted on ``Z, y``.
    Z, y : ndarray of shape (n, d), (n,)
        Encoded training rows and their targets.
    """

    def __init__(self, oracle: Oracle, Z: np.ndarray, y: np.ndarray) -> None:
        self.n_classes = oracle.n_classes
        if self.n_classes:
            return
        # in regression the oracle says where y lies, and is asked how far from it y may lie
        judged = oracle.judged_
        Z, y = Z[judged], y[judged]
        residual = y - oracle.out_of_fold_[judged]
        regressor = HistGradientBoostingRegressor(
            max_iter=40, max_leaf_nodes=8, min_samples_leaf=40, early_stopping=False
        )
        self.size_ = regressor.fit(fill_missing(Z), np.abs(residual))
        # where the oracle seems to be exact, a tenth of its usual error is left to it
        usual_error = float(np.abs(residual).mean())
        self.least_ = max(1e-6, 0.1 * usual_error)
        self.low_ = float(y.min())
        self.high_ = float(y.max())
        # the middles of equal shares, so that each quantile stands for as much
        mid_ranks = (np.arange(QUANTILES) + 0.5) / QUANTILES
        standardised = residual / self.spread(Z)
        self.residuals_ = np.quantile(standardised, mid_ranks)

    def spread(self, Z: np.ndarray) -> np.ndarray:
        """Return s(x), regression only."""
        expected = self.size_.predict(fill_missing(Z))
        return np.maximum(expected, self.least_)

    def outcomes(self, Z: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return possible targets and their probabilities, ``(n, q)`` each.

        Parameters
        ----------
        Z : ndarray of shape (n, d)
        t : ndarray of shape (n,) or (n, C)
            The oracle's predictions there.
        """
        if self.n_classes:
            codes = np.broadcast_to(np.arange(self.n_classes), t.shape)
            p = np.clip(t, FLOOR, None)
            return codes, p / p.sum(axis=1, keepdims=True)
        # T(x) + s(x) e: rows against quantiles of e
        y = t[:, None] + self.spread(Z)[:, None] * self.residuals_
        # no outcome lies beyond the targets that were seen
        y = np.clip(y, self.low_, self.high_)
        return y, np.full(y.shape, 1 / QUANTILES)


def failing_chance(
    rule: BadRule,
    f: np.ndarray,
    t: np.ndarray,
    outcomes: np.ndarray,
    chance: np.ndarray,
) -> np.ndarray:
    """Return the probability of each outcome *and* of F being bad under it, ``(n, q)``.

    Parameters
    ----------
    rule : BadRule
        Over a single target.
    f, t : ndarray of shape (n,) or (n, C)
    outcomes, chance : ndarray of shape (n, q)
    """
    is_bad = np.empty(outcomes.shape, dtype=bool)
    for number in range(outcomes.shape[1]):
        # rules read rows with an axis of targets, and here there is one
        hardness = rule.hardness(outcomes[:, [number]], f[:, None], t[:, None])
        is_bad[:, number] = rule.select(hardness)
    return chance * is_bad


def draw_outcomes(
    outcomes: np.ndarray,
    chance: np.ndarray,
    rng: np.random.Generator,
    most: int,
    mass: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows in proportion to their mass, without repeats, and one outcome for each.

    Parameters
    ----------
    outcomes, chance : ndarray of shape (n, q)
        Rows whose chances add up to nothing are never drawn.
    rng : Generator
    most : int
    mass : ndarray of shape (n,), optional
        The sums of ``chance`` when omitted.

    Returns
    -------
    rows : ndarray of int
        Ascending; fewer than ``most`` where the masses differ much.
    y : ndarray
        Their outcomes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows, y = draw_outcomes(np.tile([0, 1], (4, 1)), np.tile([0.0, 0.3], (4, 1)), rng, 9)
    >>> rows.tolist(), y.tolist()
    ([0, 1, 2, 3], [1, 1, 1, 1])
    """
    total_chance = chance.sum(axis=1)
    if mass is None:
        mass = total_chance
    able = np.flatnonzero((mass > 0) & (total_chance > 0))
    if not len(able):
        return able, outcomes[able, 0]
    drawn, _ = draw_region(mass[able], rng, smallest=1)
    kept = able[drawn]
    if len(kept) > most:
        kept = np.sort(rng.choice(kept, most, replace=False))
    # an outcome by inversion: the first step of the cumulated chances above a uniform height
    steps = np.cumsum(chance[kept], axis=1)
    total = steps[:, -1:]
    height = rng.random((len(kept), 1)) * total
    which = (height > steps).sum(axis=1)
    # rounding may lift the height above the last step
    which = np.minimum(which, steps.shape[1] - 1)
    return kept, outcomes[kept, which]


# Rows drawn from the population, of which the teacher keeps failures.


class Sample(NamedTuple):
    """Encoded rows, their targets, and how many were dropped before they had a target."""

    Z: np.ndarray
    y: np.ndarray
    dropped: Mapping[str, int]


#: Draws some n rows.
Sampler = Callable[[int], Sample]


def sample_expected_failures(
    population: Sampler,
    models: FoldModels,
    real: JudgedRows,
    *,
    taken: TakenRows,
    find_nearest_parents: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> Sampler:
    """Return what draws rows on which the oracle expects F to fail, with targets it draws.

    A group of tasks never comes here: the teacher knows the spread of one target.

    Parameters
    ----------
    population : callable
        Draws rows that resemble the training rows.
    models : FoldModels
    real : JudgedRows
        The real rows of the side.
    taken : TakenRows
    find_nearest_parents : callable
        Encoded rows to positions of the bad rows they descend from.
    rng : Generator
    """
    teacher = Teacher(models.targets[0].oracle, models.Z, models.y[:, 0])

    def draw(n: int) -> Sample:
        proposed = population(min(MOST_PROPOSED, PROPOSED_PER_ROW * n))
        features = models.encoder.inverse(proposed.Z)
        dropped = {}
        if models.relations is not None:
            n_proposed = len(features)
            if n_proposed:
                # the rows have no targets yet; those of their parents stand in
                parent = find_nearest_parents(proposed.Z)
                corrected = models.correct(
                    features, real.y[parent], real=real, parent=parent, repairs=False
                )
                feasible = corrected.features[~corrected.is_broken]
                features = feasible.reset_index(drop=True)
            dropped["relation"] = n_proposed - len(features)
        repeats_real, repeats_made = taken.repeated(features)
        # a row that repeats both is counted once
        repeats_made = repeats_made & ~repeats_real
        dropped["real_row"] = int(repeats_real.sum())
        dropped["made_row"] = int(repeats_made.sum())
        # a copy must not take the place of a row that may be kept, so it is not even drawn
        is_new = ~repeats_real & ~repeats_made
        Z = models.encoder.transform(features)[is_new]
        if not len(Z):
            return Sample(Z, np.empty((0, 1)), dropped)
        t = models.predict_oracle(Z)[:, 0]
        f = models.predict_baseline(Z)[:, 0]
        outcomes, chance = teacher.outcomes(Z, t)
        failing = failing_chance(models.rule, f, t, outcomes, chance)
        kept, targets = draw_outcomes(outcomes, failing, rng, n)
        return Sample(Z[kept], targets[:, None], dropped)

    return draw
