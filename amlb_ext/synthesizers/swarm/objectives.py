"""Who answers made rows, what is right of them, and what is searched for by it.

Notation
--------
X : (n, d) rows;  y : (n,) their own labels
T : teacher, (n,) predictions or (n, C) probabilities
yhat_m : label (class code or number) that taker m predicts
s : (M, n) performance of M takers on n rows, within 0..1; 1 is a row answered right
p : (M,) mean performance, p_m = mean_i s_mi
S(x) : whether x is supported, that is as near to a real row as real rows are to each other

Labels
------
literal : the row's own label, as in the paper; s = [yhat = y]
honest : s = 1 - (max_c T - T(yhat)), the regret under T alone. With the identity
    1 - T(yhat) = (1 - max_c T) + (max_c T - T(yhat)), noise + excess, it is what is left of
    difficulty when noise that no model could mend is taken off.
Regression: s = 1 - (yhat - right)^2 / variance of real targets, at least 0, with y or T right.

The five objectives of Data Swarms stand here by the paper's letter and honestly, and mixtures of
them. How each literal one is gamed, and what the honest form does about it, stands in
``docs/explanation/swarms.md``. The gap between neighbours of the sorted p telescopes:
sum_i (p_(i+1) - p_(i)) = max p - min p, so the paper's ``separate`` looks at two models only, and
breaking one of them is its optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.stats import kendalltau
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.synthesizers.prep import TablePrep

Labels = Literal["honest", "literal"]
#: Real rows among which the nearest is sought, and the share of real rows that counts as supported.
REFERENCE_ROWS, SUPPORTED_SHARE = 2000, 0.95


def performance(
    predicted: np.ndarray,
    labels: Labels,
    *,
    y: np.ndarray,
    t: np.ndarray,
    variance: float = 1.0,
) -> np.ndarray:
    """Return s, how well each taker does on each row.

    Parameters
    ----------
    predicted : ndarray of shape (M, n)
        Class codes or numbers.
    labels : {'honest', 'literal'}
    y : ndarray of shape (n,)
        The rows' own labels.
    t : ndarray of shape (n,) or (n, C)
        The teacher's predictions.
    variance : float
        Of the target of real rows, for a regression: an error as large as the target's spread
        counts as a wrong class does.

    Returns
    -------
    ndarray of shape (M, n)
        Within 0..1.

    Examples
    --------
    >>> t = np.array([[0.6, 0.4], [0.1, 0.9]])
    >>> yhat = np.array([[1, 1]])
    >>> performance(yhat, "honest", y=np.array([1, 0]), t=t).round(6).tolist()
    [[0.8, 1.0]]
    >>> performance(yhat, "literal", y=np.array([1, 0]), t=t).tolist()
    [[1.0, 0.0]]
    """
    if t.ndim == 1:
        right = y if labels == "literal" else t
        return np.clip(1 - (predicted - right) ** 2 / variance, 0.0, 1.0)
    if labels == "literal":
        return (predicted == y).astype(float)
    of_prediction = t[np.arange(len(t)), predicted.astype(int)]
    return 1 - (t.max(axis=1) - of_prediction)


def own_performance(
    predicted: np.ndarray, y: np.ndarray, n_classes: int, variance: float = 1.0
) -> np.ndarray:
    """Return s by the rows' own labels, ``(M, n)``; of a regression C is 0."""
    # literal labels ask nothing of the teacher but what kind of target it is
    t = np.zeros((len(y), n_classes)) if n_classes else np.zeros(len(y))
    return performance(predicted, "literal", y=y, t=t, variance=variance)


def mendable(
    s: np.ndarray, auditor: np.ndarray, weights: np.ndarray | None = None
) -> tuple[float, float]:
    """Return by how much an auditor beats the best taker on real rows, and its standard error.

    Above zero there is something that a better model could mend.

    Parameters
    ----------
    s : ndarray of shape (M, r)
        Performance of the takers.
    auditor : ndarray of shape (r,)
        The auditor's.
    weights : ndarray of shape (r,), optional

    Examples
    --------
    >>> s = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
    >>> mendable(s, np.array([1.0, 1.0, 0.0, 1.0]))[0]
    0.25
    """
    best = int(np.average(s, axis=1, weights=weights).argmax())
    estimate = weighted_mean_interval(auditor - s[best], weights)
    return float(estimate.point), float(estimate.se)


class SupportGuard:
    """Whether rows stand where real ones do: nearest real row within the .95 quantile.

    The quantile is that of the distances from each real row to the nearest other one. Categories
    lie one apart, numbers are normal scores.

    Parameters
    ----------
    prep : TablePrep
        Fitted on rows that have every code of those that are asked about.
    X : ndarray of shape (r, d)
        Real rows; at most :data:`REFERENCE_ROWS`, the first, are kept.

    Attributes
    ----------
    rows : int
        Real rows that were kept.
    radius : float
    copy_radius : float
        Only one real row in twenty is nearer to another one.
    """

    def __init__(self, prep: TablePrep, X: np.ndarray) -> None:
        self.prep = prep
        real = self.metric(X[:REFERENCE_ROWS])
        self.rows = len(real)
        # brute force: one-hot columns are too many for a tree, and few rows are asked at once
        self._search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(real)
        distance, _ = self._search.kneighbors()
        self.radius = float(np.quantile(distance[:, 0], SUPPORTED_SHARE))
        self.copy_radius = float(np.quantile(distance[:, 0], 1 - SUPPORTED_SHARE))

    def nearest(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each row is supported, ``(n,)``, and its nearest real row, ``(n,)``."""
        distance, position = self._search.kneighbors(self.metric(X))
        # rows that repeat make a radius of 0, which rounding must not lose
        return distance[:, 0] <= self.radius + 1e-9, position[:, 0]

    def metric(self, X: np.ndarray) -> np.ndarray:
        """Return rows as vectors in which distance is meant, ``(n, e)``."""
        return self.prep.metric_rows(X).toarray()


class QuickTakers:
    """A line, neighbours, a tree and boosting: other families than the model that is tested.

    Parameters
    ----------
    inputs : ndarray of shape (n, e)
        Rows in a metric, see :meth:`SupportGuard.metric`.
    y : ndarray of shape (n,)
    n_classes : int
        C, or 0 for a regression.
    seed : int
    """

    def __init__(
        self, inputs: np.ndarray, y: np.ndarray, n_classes: int, seed: int
    ) -> None:
        neighbours = {"n_neighbors": min(25, len(y))}
        tree = {"max_depth": 8, "min_samples_leaf": 5, "random_state": seed}
        boosting = {
            "max_iter": 40,
            "max_leaf_nodes": 4,
            "learning_rate": 0.05,
            "early_stopping": False,
            "random_state": seed,
        }
        models: list[Any] = [
            Ridge(),
            KNeighborsRegressor(**neighbours),
            DecisionTreeRegressor(**tree),
            HistGradientBoostingRegressor(**boosting),
        ]
        if n_classes:
            models = [
                LogisticRegression(max_iter=200),
                KNeighborsClassifier(**neighbours),
                DecisionTreeClassifier(**tree),
                HistGradientBoostingClassifier(**boosting),
            ]
        self.models = [model.fit(inputs, y) for model in models]

    def predict(self, inputs: np.ndarray) -> np.ndarray:
        """Return each taker's labels, ``(4, n)``."""
        return np.array([model.predict(inputs) for model in self.models])


# What is searched for.


#: Agreement that real rows of the region must show before novelty counts: the certificate's.
CONFIRMED_TAU = 0.8
#: Standard errors by which two takers must differ.
PAIR_ERRORS = 2.0
#: Parts into which rows are dealt for ``consistent``.
DRAWS = 5
#: Nearest rows of a user to which a made row is likened, as in the paper's code.
NEAREST_USER_ROWS = 5


@dataclass(frozen=True, kw_only=True)
class ScoredRows:
    """Made rows of one generator and how takers do on them.

    Attributes
    ----------
    s : ndarray of shape (M, n)
        Performance; on unsupported rows 1 where a guard is on.
    real : ndarray of shape (M, r)
        The same takers on real rows, with true labels.
    nearest : ndarray of shape (n,)
        The real row nearest to each made one.
    supported : ndarray of shape (n,)
    metric_rows : ndarray of shape (n, e)
        The made rows in a metric.
    user_rows : ndarray of shape (u, e) or None
        Rows of a user in the same metric.
    """

    s: np.ndarray
    real: np.ndarray
    nearest: np.ndarray
    supported: np.ndarray
    metric_rows: np.ndarray
    user_rows: np.ndarray | None = None

    @property
    def real_of_region(self) -> np.ndarray:
        """Mean performance on real rows nearest to supported made ones, ``(M,)``, or NaN."""
        rows = self.nearest[self.supported]
        if not len(rows):
            return np.full(len(self.s), np.nan)
        return self.real[:, rows].mean(axis=1)


# --- difficult and separate ---


def difficult(rows: ScoredRows) -> float:
    """Return one minus the best taker's performance.

    With ``own`` labels it is the paper's; with ``excess`` and a guard it is the least regret of
    any taker on supported rows.
    """
    return float(1 - rows.s.mean(axis=1).max())


def separate(rows: ScoredRows) -> float:
    """Return the mean gap between neighbours of the sorted performances, the paper's."""
    p = rows.s.mean(axis=1)
    return float(np.ptp(p) / (len(p) - 1))


def separate_pairs(rows: ScoredRows) -> float:
    """Return the mean gap over pairs, a pair that is unsure or not confirmed counting nothing.

    A pair counts where its gap is larger than two standard errors (of the paired difference) and
    has the sign that it has on real rows of the region.
    """
    n_takers, n = rows.s.shape
    confirmed = rows.real_of_region
    gaps = []
    for a in range(n_takers):
        for b in range(a + 1, n_takers):
            difference = rows.s[a] - rows.s[b]
            gap = difference.mean()
            error = difference.std(ddof=1) / np.sqrt(n)
            real_gap = confirmed[a] - confirmed[b]
            is_sure = abs(gap) > PAIR_ERRORS * error
            # a comparison with NaN, of a region without real rows, is false
            gaps.append(abs(gap) if is_sure and gap * real_gap > 0 else 0.0)
    return float(np.mean(gaps))


# --- novel ---


def novel(rows: ScoredRows) -> float:
    """Return KL(p' || q') of normalised performances on made (p') and on real rows (q')."""
    p = _as_shares(rows.s.mean(axis=1))
    q = _as_shares(rows.real.mean(axis=1))
    return float((p * np.log(p / q)).sum())


def novel_confirmed(rows: ScoredRows) -> float:
    """Return 1 - tau(made, all real rows) where real rows of the region confirm it, else 0.

    They do where tau(made, real rows of the region) is at least :data:`CONFIRMED_TAU`.
    """
    p = rows.s.mean(axis=1)
    region = rows.real_of_region
    if not np.isfinite(region).all() or _tau(p, region) < CONFIRMED_TAU:
        return 0.0
    return 1 - _tau(p, rows.real.mean(axis=1))


def _as_shares(p: np.ndarray) -> np.ndarray:
    # no performance is exactly zero: a logarithm of it would be all that counts
    positive = p.clip(1e-6)
    return positive / positive.sum()


def _tau(first: np.ndarray, second: np.ndarray) -> float:
    value = kendalltau(first, second).statistic
    # takers that all do alike have no order, so they confirm none
    return float(value) if np.isfinite(value) else 0.0


# --- consistent ---


def consistent(rows: ScoredRows) -> float:
    """Return one minus the mean standard deviation of performance over draws, the paper's."""
    return float(1 - _draw_deviations(rows.s).mean())


def consistent_as_sample(rows: ScoredRows) -> float:
    """Return how near the deviation over draws is to that of an independent sample, 1 at best.

    The paper's form grows with the number of rows and with the sameness of rows; this one is 1
    where draws vary as independent rows do, and less where they vary less, too.
    """
    return 1 - abs(1 - sample_ratio(rows))


def sample_ratio(rows: ScoredRows) -> float:
    """Return sd over draws / sd of a mean of as many independent rows; below .8 is suspicious."""
    n = rows.s.shape[1] // DRAWS
    expected = np.sqrt(rows.s.var(axis=1, ddof=1) / n)
    observed = _draw_deviations(rows.s)
    varies = expected > 0
    if not varies.any():
        return 0.0
    return float(observed[varies].mean() / expected[varies].mean())


def _draw_deviations(s: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each taker's performance over draws, ``(M,)``."""
    means = [part.mean(axis=1) for part in np.array_split(s, DRAWS, axis=1)]
    return np.std(means, axis=0, ddof=1)


# --- personalised ---


def personalised(rows: ScoredRows) -> float:
    """Return the mean likeness, 1 / (1 + distance), to the five nearest rows of the user."""
    user = rows.user_rows
    assert user is not None
    k = min(NEAREST_USER_ROWS, len(user))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(user)
    distance, _ = search.kneighbors(rows.metric_rows)
    return float((1 / (1 + distance)).mean())


def personalised_as_sample(rows: ScoredRows) -> float:
    """Return 1 - 2 |accuracy - 1/2| of the nearest-neighbour test between made and user's rows.

    1 where the two cannot be told apart. Copies are found out as well: the nearest neighbour of a
    copy is its original, of the other sample, so the accuracy falls below one half.

    Source: Lopez-Paz & Oquab, Revisiting Classifier Two-Sample Tests, ICLR 2017.
    """
    user = rows.user_rows
    assert user is not None
    n = min(len(user), len(rows.metric_rows))
    both = np.vstack([rows.metric_rows[:n], user[:n]])
    is_user = np.repeat([False, True], n)
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(both)
    nearest = search.kneighbors(return_distance=False)[:, 0]
    accuracy = (is_user[nearest] == is_user).mean()
    return float(1 - 2 * abs(accuracy - 0.5))


# --- by name, and mixed ---

OBJECTIVES: Mapping[str, Mapping[Labels, Callable[[ScoredRows], float]]] = {
    "difficult": {"literal": difficult, "honest": difficult},
    "separate": {"literal": separate, "honest": separate_pairs},
    "novel": {"literal": novel, "honest": novel_confirmed},
    "consistent": {"literal": consistent, "honest": consistent_as_sample},
    "personalised": {"literal": personalised, "honest": personalised_as_sample},
}


class MixedObjective:
    """A weighted sum of objectives, each in units of its spread over the initial generators.

    Unscaled, an objective of small numbers (KL is 10 to 100 times smaller than the others) would
    never count. A single objective is left as it is.

    Parameters
    ----------
    weights : mapping of str to float
        By the names of :data:`OBJECTIVES`.
    form : {'honest', 'literal'}

    Attributes
    ----------
    units : dict of str to float
        Spread of each objective over the initial generators; 1 before :meth:`settle_units`.
    """

    def __init__(self, weights: Mapping[str, float], form: Labels) -> None:
        self.weights = dict(weights)
        self.form = form
        self.units = dict.fromkeys(self.weights, 1.0)

    def settle_units(self, initial: list[ScoredRows]) -> None:
        """Measure each objective's spread over the initial generators."""
        if len(self.weights) == 1:
            return
        for name in self.weights:
            values = [OBJECTIVES[name][self.form](rows) for rows in initial]
            # an objective that is the same for all of them stays as it is
            self.units[name] = float(np.std(values)) or 1.0

    def __call__(self, rows: ScoredRows) -> float:
        """Return the value of one generator's rows."""
        total = 0.0
        for name, weight in self.weights.items():
            value = OBJECTIVES[name][self.form](rows)
            total += weight * value / self.units[name]
        return total
