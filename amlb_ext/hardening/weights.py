"""Region weights: where failures are likely, by features alone, and what is drawn by them.

``w(x) = P(bad | x)``, calibrated boosting on the training rows' out-of-fold bad flags. It
never sees F's output on the row it weighs, so weighted real rows keep unbiased labels. The other
kind of weight, reducible hardness ``v(x) = (T(x) - F(x))^2``, is the rule ``reducible`` of
:mod:`amlb_ext.hardening.hardness`.

"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.baseline.forests import boosting_bins
from amlb_ext.hardening.split import CvSplits

#: Keeps every row of the test fold in play.
SMALLEST = 1e-4
#: Rows that the region is learnt from at most, ...
MOST_ROWS = 20_000
#: ... and cells, where columns are many.
MOST_CELLS = 10_000_000
#: Parts of rows without an order; each is weighed by what the others teach.
PARTS = 5


def learn_failures(
    Z: np.ndarray, bad: np.ndarray, seed: int, rows: np.ndarray | None = None
) -> HistGradientBoostingClassifier:
    """Learn where rows are bad, from rows of both kinds.

    On ten tables, two kinds of F and 300, 1,000, 4,000 and 8,000 rows, the fifth of new rows that
    it ranks highest held 4.4 ± 2.0, 4.8 ± 1.6, 3.4 ± 1.0 and 2.8 ± .6 % more of F's loss than
    with a random forest of 100 trees, which takes 3 to 11 times as long.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Encoded rows. Beyond :data:`MOST_ROWS` rows, or :data:`MOST_CELLS` cells, a random part of
        them is learnt from.
    bad : ndarray of shape (n,), bool
        Some, not all.
    seed : int
    rows : ndarray of int, optional
        Positions of the rows to learn from; all when omitted.
    """
    if rows is None:
        rows = np.arange(len(Z))
    most = max(PARTS * 100, min(MOST_ROWS, MOST_CELLS // max(1, Z.shape[1])))
    if len(rows) > most:
        drawn = np.random.default_rng(seed).permutation(len(rows))[:most]
        # a rare kind of row may be missing from the part
        drawn[:2] = np.argmax(bad[rows]), np.argmin(bad[rows])
        rows = rows[drawn]
    # picked once: of a large table some rows are learnt from, and a copy of all is never held
    Z, bad = Z[rows], bad[rows]
    # leaves of 15 rows smooth, but a few bad rows would vanish in them
    half_of_bad = int(bad.sum()) // 2
    model = HistGradientBoostingClassifier(
        max_iter=50,
        max_leaf_nodes=16,
        min_samples_leaf=max(2, min(15, half_of_bad)),
        early_stopping=False,
        random_state=seed,
        **boosting_bins(Z.shape[1]),
    )
    # scikit-learn cannot bin a column of which a part of the rows has no value
    return model.fit(fill_missing(Z), bad)


def votes_of(model: HistGradientBoostingClassifier, Z: np.ndarray) -> np.ndarray:
    """Return how much a model holds rows ``(m, d)`` for bad ones, ``(m,)`` from 0 to 1."""
    return np.asarray(model.predict_proba(fill_missing(Z))[:, 1])


class Region:
    """``P(bad | x)``, learnt from the training rows.

    Boosting's probabilities are calibrated by a sigmoid on what it says of rows that it has not
    learnt from (Platt, 1999), which few bad rows suffice for. If it is no better than chance on
    them, it knows of no region: all weights are then equal.

    Parameters
    ----------
    seed : int

    Attributes
    ----------
    out_of_fold_ : ndarray of shape (n,)
        w of the rows that :meth:`fit` was given, by what rows of other parts teach.

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
        self, Z: np.ndarray, bad: np.ndarray, parts: CvSplits | None = None
    ) -> Region:
        """Learn from encoded training rows ``(n, d)`` and their out-of-fold bad flags ``(n,)``.

        Parameters
        ----------
        Z, bad : ndarray
        parts : sequence of (ndarray, ndarray), optional
            Positions to learn from and to predict, of rows with groups or times; random parts
            else. Rows that no part predicts are weighted as new rows are.
        """
        self.model_: HistGradientBoostingClassifier | None = None
        # without a model all rows weigh alike, see weights
        self.out_of_fold_ = np.ones(len(Z))
        n_parts = min(PARTS, int(bad.sum()), int((~bad).sum()))
        if n_parts < (2 if parts is None else 1):
            return self
        if parts is None:
            folds = StratifiedKFold(n_parts, shuffle=True, random_state=self.seed)
            parts = list(folds.split(Z, bad))
        votes = np.full(len(Z), np.nan)
        for learnt, held in parts:
            own_bad = bad[learnt]
            # of one kind of rows alone nothing is learnt
            if own_bad.all() or not own_bad.any():
                continue
            model = learn_failures(Z, bad, self.seed, learnt)
            votes[held] = votes_of(model, Z[held])
        voted = np.flatnonzero(np.isfinite(votes))
        voted_bad = bad[voted]
        if voted_bad.all() or not voted_bad.any():
            return self
        sigmoid = fit_platt_sigmoid(votes[voted], voted_bad)
        # a falling sigmoid means that the model is worse than chance on rows it has not seen
        if sigmoid.coef_[0, 0] > 0:
            self.model_ = learn_failures(Z, bad, self.seed)
            self.sigmoid_ = sigmoid
            if len(voted) < len(Z):
                self.out_of_fold_ = self.weights(Z)
            self.out_of_fold_[voted] = calibrate(sigmoid, votes[voted])
        return self

    def weights(self, Z: np.ndarray) -> np.ndarray:
        """Return w for any rows, ``(m,)``.

        All equal when no or every training row was bad: there is no region to weigh.
        """
        if self.model_ is None:
            return np.ones(len(Z))
        return calibrate(self.sigmoid_, votes_of(self.model_, Z))


def calibrate(sigmoid: LogisticRegression, votes: np.ndarray) -> np.ndarray:
    """Return the weights of rows with these votes, ``(m,)`` each."""
    # the sigmoid reads a matrix of one column
    return np.asarray(sigmoid.predict_proba(votes[:, None])[:, 1] + SMALLEST)


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
    target = np.where(bad, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
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
    total = weights.sum()
    fewest = min(smallest, len(weights))
    # the heaviest row is taken for sure; 1e-9 keeps equal weights from losing a row to rounding
    size = int(np.floor(total / weights.max() + 1e-9))
    if size < fewest:
        rows = rng.choice(len(weights), size=fewest, p=weights / total)
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


#: A row of the main task comes this often on average, so that few weights are lost to rounding.
REPEATS = 2


def repeat_by_weight(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the positions of all rows, ascending, repeated by half their region weight.

    Learnt weights are uncertain, and uneven ones are worth fewer rows: mixed half and half with
    equal ones they keep most of the aim and most of the rows.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        ``P(bad | x)``.
    rng : Generator

    Examples
    --------
    >>> rows = repeat_by_weight(np.array([0.1, 0.1, 0.4, 0.2]), np.random.default_rng(0))
    >>> np.bincount(rows).tolist()
    [2, 1, 3, 2]
    """
    half_weights = (weights / weights.mean() + 1) / 2
    # equal weights need no repeats, and no rounding
    if np.allclose(half_weights, 1.0):
        return np.arange(len(weights))
    return _systematic_sample(half_weights, REPEATS * len(weights), rng)
