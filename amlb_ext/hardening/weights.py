"""Region weights: where failures are likely, by features alone, and what is drawn by them.

``w(x) = P(bad | x)``, a calibrated random forest on the training rows' out-of-fold bad flags. It
never sees F's output on the row it weighs, so weighted real rows keep unbiased labels. The other
kind of weight, reducible hardness ``v(x) = (T(x) - F(x))^2``, is the rule ``reducible`` of
:mod:`amlb_ext.hardening.hardness`.

The test file of a task's main part consists of real test rows, each repeated by how likely F fails
there, and of made rows that stand for the same population: these carry the order of models, while
rows that K has chosen show failures. The mixture is settled per task on training rows
(:mod:`amlb_ext.validity.composition`) or named by the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from amlb_ext.core.config import CompositionPart
from amlb_ext.hardening.baseline import forests
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.split import CvSplits

#: Keeps every row of the test fold in play.
SMALLEST = 1e-4
#: Rows that the region is learnt from at most.
MOST_ROWS = 20_000


class Region:
    """``P(bad | x)``, learnt from the training rows.

    The forest's probabilities are calibrated by a sigmoid on its own out-of-bag output (Platt,
    1999), which few bad rows suffice for. A forest that is no better than chance out of bag knows
    of no region: all weights are then equal. Beyond :data:`MOST_ROWS` rows a random part of them
    is learnt from.

    Parameters
    ----------
    seed : int

    Attributes
    ----------
    out_of_bag_ : ndarray of shape (n,)
        w of the rows that :meth:`fit` was given, by the trees that have not seen the row; rows
        beyond :data:`MOST_ROWS` were seen by none.

    Examples
    --------
    >>> Z = np.linspace(0, 1, 60)[:, None]
    >>> w = Region(0).fit(Z, Z[:, 0] > 0.7).weights(np.array([[0.1], [0.9]]))
    >>> bool(w[0] < w[1])
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(
        self,
        Z: np.ndarray,
        bad: np.ndarray,
        parts: CvSplits | None = None,
        *,
        weigh_beyond: bool = True,
    ) -> Region:
        """Learn from encoded training rows ``(n, d)`` and their out-of-fold bad flags ``(n,)``.

        Parameters
        ----------
        Z, bad : ndarray
        parts : sequence of (ndarray, ndarray), optional
            Positions to learn from and to predict, of rows with groups or times: trees know a row
            by its neighbours, so what is out of their bag is not unseen. The sigmoid is then
            fitted on the votes of forests of other parts, and rows that no part predicts are
            weighted as new rows are.
        weigh_beyond : bool
            Whether ``out_of_bag_`` has the weights of rows beyond :data:`MOST_ROWS`; else they
            are 1 there, at no cost.
        """
        self.forest_: RandomForestClassifier | None = None
        # without a forest all rows weigh alike, see weights
        self.out_of_bag_ = np.ones(len(Z))
        all_rows = Z
        learnt = np.arange(len(Z))
        if parts is not None:
            return self._fit_in_order(Z, bad, parts)
        if len(Z) > MOST_ROWS:
            rng = np.random.default_rng(self.seed)
            learnt = rng.choice(len(Z), MOST_ROWS, replace=False)
            Z = Z[learnt]
            bad = bad[learnt]
        if bad.all() or not bad.any():
            return self
        forest = self._fit_forest(Z, bad, with_oob=True)
        out_of_bag = forest.oob_decision_function_[:, 1]
        sigmoid = fit_platt_sigmoid(out_of_bag, bad)
        # a falling sigmoid means that the forest is worse than chance out of bag
        slope = sigmoid.coef_[0, 0]
        if slope > 0:
            self.forest_ = forest
            self.sigmoid_ = sigmoid
            self.out_of_bag_[learnt] = self._calibrate(out_of_bag)
            if len(learnt) < len(all_rows) and weigh_beyond:
                others = np.ones(len(all_rows), dtype=bool)
                others[learnt] = False
                self.out_of_bag_[others] = self.weights(all_rows[others])
        return self

    def _fit_in_order(self, Z: np.ndarray, bad: np.ndarray, parts: CvSplits) -> Region:
        """Learn from rows with groups or times; see :meth:`fit`."""
        votes = np.full(len(Z), np.nan)
        for learnt, held in parts:
            own_bad = bad[learnt]
            # of one kind of rows alone nothing is learnt
            if own_bad.all() or not own_bad.any():
                continue
            forest = self._fit_forest(Z[learnt], own_bad, with_oob=False)
            chances = forests.predict_proba(forest, fill_missing(Z[held]))
            votes[held] = chances[:, 1]
        voted = np.flatnonzero(np.isfinite(votes))
        voted_bad = bad[voted]
        if voted_bad.all() or not voted_bad.any():
            return self
        sigmoid = fit_platt_sigmoid(votes[voted], voted_bad)
        if sigmoid.coef_[0, 0] > 0:
            self.forest_ = self._fit_forest(Z, bad, with_oob=False)
            self.sigmoid_ = sigmoid
            self.out_of_bag_ = self.weights(Z)
            self.out_of_bag_[voted] = self._calibrate(votes[voted])
        return self

    def _fit_forest(
        self, Z: np.ndarray, bad: np.ndarray, *, with_oob: bool
    ) -> RandomForestClassifier:
        # leaves of 15 rows smooth, but a few bad rows would vanish in them
        half_of_bad = int(bad.sum()) // 2
        leaf = max(2, min(15, half_of_bad))
        forest = RandomForestClassifier(
            100,
            min_samples_leaf=leaf,
            max_features="sqrt",
            max_samples=min(MOST_ROWS, len(Z)) if len(Z) > MOST_ROWS else None,
            oob_score=with_oob,
            random_state=self.seed,
            n_jobs=1,
        )
        return forest.fit(fill_missing(Z), bad)

    @property
    def is_found(self) -> bool:
        """Whether features foresee failures at all."""
        return self.forest_ is not None

    def weights(self, Z: np.ndarray) -> np.ndarray:
        """Return w for any rows, ``(m,)``.

        All equal when no or every training row was bad: there is no region to weigh.
        """
        if self.forest_ is None:
            return np.ones(len(Z))
        votes = forests.predict_proba(self.forest_, fill_missing(Z))
        return self._calibrate(votes[:, 1])

    def _calibrate(self, scores: np.ndarray) -> np.ndarray:
        """Return the weights of rows with these shares of votes, ``(m,)`` each."""
        # the sigmoid reads a matrix of one column
        calibrated = self.sigmoid_.predict_proba(scores[:, None])
        return calibrated[:, 1] + SMALLEST


def fit_platt_sigmoid(scores: np.ndarray, bad: np.ndarray) -> LogisticRegression:
    """Fit the sigmoid that turns scores ``(n,)`` into probabilities of ``bad`` ``(n,)``.

    Targets are ``(n_1 + 1) / (n_1 + 2)`` and ``1 / (n_0 + 2)`` in place of 1 and 0, as weights of
    both labels of every row. Source: Platt (1999), Probabilistic outputs for support vector
    machines, equation 14.

    Examples
    --------
    >>> scores = np.linspace(0, 1, 50)
    >>> model = fit_platt_sigmoid(scores, scores > 0.5)
    >>> model.predict_proba([[0.1], [0.9]])[:, 1].round(1).tolist()
    [0.0, 1.0]
    """
    n1 = int(bad.sum())
    n0 = len(bad) - n1
    target_of_bad = (n1 + 1) / (n1 + 2)
    target_of_good = 1 / (n0 + 2)
    target = np.where(bad, target_of_bad, target_of_good)
    # logistic regression takes labels: each row comes with both, weighted by its target
    scores_twice = np.concatenate([scores, scores])
    labels = np.repeat([True, False], len(scores))
    weight = np.concatenate([target, 1 - target])
    # C so large that nothing is shrunk: Platt's sigmoid has no penalty
    sigmoid = LogisticRegression(C=1e6)
    return sigmoid.fit(scores_twice[:, None], labels, sample_weight=weight)


def draw_region(
    weights: np.ndarray, rng: np.random.Generator, smallest: int = 30
) -> tuple[np.ndarray, bool]:
    """Draw test rows in proportion to their weights.

    Systematic sampling without replacement of ``floor(sum w / max w)`` rows has inclusion
    probabilities exactly proportional to the weights (Madow, 1949, Ann. Math. Stat. 20).
    Where that gives fewer than ``smallest`` rows, they are drawn with replacement instead.

    Parameters
    ----------
    weights : ndarray of shape (n,)
    rng : Generator
    smallest : int
        Fewest rows worth a sample without replacement (or n, when smaller).

    Returns
    -------
    rows : ndarray of int
        Positions, ascending.
    replaced : bool
        Whether rows may repeat.
    """
    n = len(weights)
    total = weights.sum()
    fewest = min(smallest, n)
    # the heaviest row is taken for sure; 1e-9 keeps equal weights from losing a row to rounding
    heaviest = weights.max()
    size = int(np.floor(total / heaviest + 1e-9))
    if size < fewest:
        chances = weights / total
        rows = rng.choice(n, size=fewest, replace=True, p=chances)
        return np.sort(rows), True
    return _systematic_sample(weights, size, rng), False


def _systematic_sample(
    weights: np.ndarray, size: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the rows under evenly spaced points: one due c times comes floor(c) or ceil(c) times.

    Source: Madow (1949), Ann. Math. Stat. 20.
    """
    # in random order, since neighbours in the file must not share their rounding
    order = rng.permutation(len(weights))
    # rows lie on a line, each as long as its weight; every unit takes the row under one offset
    ends = np.cumsum(weights[order]) * (size / weights.sum())
    offsets = rng.random() + np.arange(size)
    picks = np.searchsorted(ends, offsets, side="left")
    # the last offset may lie beyond the last end by rounding
    picks = np.minimum(picks, len(weights) - 1)
    return np.sort(order[picks])


def mixed_weights(weights: np.ndarray, region_share: float) -> np.ndarray:
    """Return u: region weights mixed with equal ones, mean 1.

    Learnt weights are uncertain, and uneven ones are worth fewer rows. Half and half keeps most
    of the aim and most of the rows.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        ``P(bad | x)``.
    region_share : float
        lambda: 0 counts all rows alike, 1 counts them by their weights alone.

    Examples
    --------
    >>> mixed_weights(np.array([1.0, 3.0]), 0.5).tolist()
    [0.75, 1.25]
    """
    return region_share * weights / weights.mean() + (1 - region_share)


# What the test file of a main task is made of.


#: Region share and share of made rows where the user names the parts and nothing is measured.
USUAL_REGION_SHARE, USUAL_MADE_SHARE = 0.5, 0.5
#: A weighted real row comes this often on average, so that few weights are lost to rounding.
REPEATS = 2
#: Most made rows of the population in a test file.
MOST_POPULATION = 5000


@dataclass(frozen=True, kw_only=True)
class Composition:
    """The parts of a main test file, and how much each counts.

    Attributes
    ----------
    parts : tuple of str
        Of ``weighted``, ``population``, ``bad``, ``ga`` and ``synthetic``.
    region_share : float
        lambda of :func:`amlb_ext.hardening.weights.mixed_weights`: 0 leaves every real row once.
    made_share : float
        Share of ``population`` rows in the file; 0 for none.
    reason : str
        How it was settled, one sentence.
    """

    parts: tuple[CompositionPart, ...]
    region_share: float = USUAL_REGION_SHARE
    made_share: float = USUAL_MADE_SHARE
    reason: str = ""

    @classmethod
    def of_parts(
        cls, parts: Sequence[CompositionPart], reason: str = ""
    ) -> Composition:
        """Return the composition of named parts; ``auto`` stands for the whole fold.

        Examples
        --------
        >>> Composition.of_parts(["auto"]).is_whole
        True
        """
        if "auto" in parts:
            return cls(
                parts=("weighted",), region_share=0.0, made_share=0.0, reason=reason
            )
        return cls(parts=tuple(parts), reason=reason)

    @property
    def is_whole(self) -> bool:
        """Whether it holds the whole test fold as it is."""
        return self.parts == ("weighted",) and self.region_share == 0

    @property
    def made_from_failures(self) -> tuple[CompositionPart, ...]:
        """The parts that K has chosen; bad and synthetic rows where there are none."""
        chosen = [part for part in self.parts if part in ("bad", "ga", "synthetic")]
        return tuple(chosen) or ("bad", "synthetic")

    def population_wanted(self, n_real: int) -> int:
        """Return how many ``population`` rows are asked for beside n real rows."""
        if "population" not in self.parts:
            return 0
        share = self.made_share
        beside = REPEATS * n_real if "weighted" in self.parts else n_real
        return min(MOST_POPULATION, round(beside * share / (1 - share)))

    def importance(self, weights: np.ndarray) -> np.ndarray:
        """Return u of rows with these region weights."""
        return mixed_weights(weights, self.region_share)

    def pick_real_rows(
        self, weights: np.ndarray, n_made: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Return the positions of the weighted real rows, ascending, with repeats.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            ``P(bad | x)`` of all test rows.
        n_made : int
            Population rows beside them: with fewer than were asked for real rows are repeated
            less, so that each side keeps its share.
        rng : Generator
        """
        n = len(weights)
        size = REPEATS * n
        if n_made:
            beside = round(n_made * (1 - self.made_share) / self.made_share)
            size = min(max(beside, n), REPEATS * n)
        u = self.importance(weights)
        # equal weights need no repeats, and no rounding
        if np.allclose(u, 1.0) and not n_made:
            return np.arange(n)
        return _systematic_sample(u, size, rng)

    def to_json(self) -> dict[str, Any]:
        """Return plain mappings and lists."""
        entry: dict[str, Any] = {"parts": list(self.parts)}
        if "weighted" in self.parts:
            entry["region_share"] = self.region_share
        if "population" in self.parts:
            entry["made_share"] = self.made_share
        return entry | {"reason": self.reason}
