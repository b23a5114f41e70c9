"""Were the labelled rows drawn as other rows were? Comparisons that may refute it.

Notation
--------
y, y_train : class codes, or targets;  Z, Z_other : encoded rows, category codes first
p : p-value of a comparison

A :class:`Comparison` is made of whatever the rows at hand allow: classes or target, columns, and a
second model's confidence and errors against training rows; predictions, confidence and columns
against rows without labels. All that are made share one level: each is refuted at ``REFUTED``
divided by their number (Bonferroni), so that together they refute one sound sample in a hundred.

Columns, confidence and errors are compared *given the class*: training rows are left out until
the classes have the labelled rows' shares. So rows drawn class by class differ in their classes
alone, and what is found beside that is a fault of the draws within a class.

The model's own confidence in rows that it was fitted on says nothing, being too high. A second
model serves, fitted on one half of the training rows and asked about the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.estimate.checks import REFUTED, Finding, chi_square_or_exact, p_text

Against = Literal["training rows", "rows without labels"]
#: What a comparison is about: ``labels`` are put right by known priors, ``features`` by nothing.
About = Literal["labels", "features"]
#: Cells of a table with fewer rows expected are joined.
LEAST_EXPECTED = 5
#: Rows from which a second classifier is learnt, and most rows that it is asked about.
LEAST_LEARN, MOST_ROWS = 100, 10_000


@dataclass(frozen=True)
class Comparison:
    """A test of whether labelled and other rows are draws from one population.

    Attributes
    ----------
    what : str
        ``classes``, ``target``, ``columns``, ``confidence``, ``errors`` or ``predictions``.
    against : str
    about : str
    p : float
    detail : str
        What differs, in a few words; empty where there is nothing to add.
    """

    what: str
    against: Against
    about: About
    p: float
    detail: str = ""

    def finding(self, level: float) -> Finding:
        """Return what it says at a level.

        Examples
        --------
        >>> Comparison("classes", "training rows", "labels", 0.0001).finding(0.01).text
        'classes of the labelled rows and of the training rows differ (p < .001)'
        """
        both = f"{self.what} of the labelled rows and of the {self.against}"
        if self.p >= level:
            return Finding(False, f"{both}: no contradiction ({p_text(self.p)})")
        told = f": {self.detail}" if self.detail else ""
        return Finding(True, f"{both} differ ({p_text(self.p)}){told}")


def level_of_each(comparisons: Sequence[Comparison]) -> float:
    """Return the level at which each is refuted.

    Examples
    --------
    >>> level_of_each([Comparison("target", "training rows", "labels", 0.5)] * 2)
    0.005
    """
    return REFUTED / max(len(comparisons), 1)


def compare_classes(y: np.ndarray, y_train: np.ndarray, labels: Sequence[str]) -> Comparison:
    """Compare class shares: chi-square, or its exact permutation test where counts are small.

    Parameters
    ----------
    y, y_train : ndarray of shape (n,), (n_train,)
        Codes.
    labels : sequence of str

    Examples
    --------
    >>> y, y_train = np.repeat([0, 1], 100), np.repeat([0, 1], [780, 220])
    >>> compare_classes(y, y_train, ["no", "yes"]).detail
    'yes 50.0% of the labelled rows and 22.0% of the training rows'
    """
    counts = np.stack([_counts(y, len(labels)), _counts(y_train, len(labels))])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    excess = shares[0] - shares[1]
    c = int(np.argmax(excess))
    detail = (
        f"{labels[c]} {shares[0, c]:.1%} of the labelled rows and {shares[1, c]:.1%} of the "
        "training rows"
    )
    return Comparison("classes", "training rows", "labels", chi_square_or_exact(counts), detail)


def compare_targets(y: np.ndarray, y_train: np.ndarray) -> Comparison:
    """Compare the distributions of a regression target by Kolmogorov and Smirnov's test.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> compare_targets(rng.random(100) + 0.4, rng.random(500)).p < 0.001
    True
    """
    detail = f"median {np.median(y):.4g} and {np.median(y_train):.4g}"
    return Comparison("target", "training rows", "labels", _kolmogorov(y, y_train), detail)


def compare_columns(
    Z: np.ndarray, Z_other: np.ndarray, names: Sequence[str], n_categorical: int, against: Against
) -> Comparison:
    """Compare the rows column by column: Kolmogorov and Smirnov, or chi-square for categories.

    ``p`` is the least of all columns times their number; ``detail`` names the column.

    Parameters
    ----------
    Z, Z_other : ndarray of shape (n, d), (N, d)
        The first ``n_categorical`` columns are codes; a missing number is NaN.
    names : sequence of str
    n_categorical : int
    against : str

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z, other = rng.random((200, 2)) + [0, 0.5], rng.random((900, 2))
    >>> compare_columns(Z, other, ["age", "pay"], 0, "training rows").detail
    'most in pay (higher)'
    """
    if not len(names):
        return Comparison("columns", against, "features", 1.0)
    values = []
    for j in range(len(names)):
        both = Z[:, j], Z_other[:, j]
        values.append(_categories(*both) if j < n_categorical else _numbers(*both))
    j = int(np.argmin(values))
    way = ""
    if j >= n_categorical:
        gap = np.nan_to_num(np.nanmean(Z[:, j]) - np.nanmean(Z_other[:, j]))
        way = " (higher)" if gap > 0 else " (lower)"
    p = min(1.0, values[j] * len(values))
    return Comparison("columns", against, "features", p, f"most in {names[j]}{way}")


def compare_predictions(f: np.ndarray, far: np.ndarray) -> list[Comparison]:
    """Compare the model's predictions on labelled rows and on rows without labels.

    Numbers by Kolmogorov and Smirnov's test; of classes their shares (chi-square) and, where the
    model gives probabilities, the largest one: how sure it is.

    Parameters
    ----------
    f, far : ndarray of shape (n,) or (n, C), (N,) or (N, C)

    Examples
    --------
    >>> sure, unsure = np.tile([0.9, 0.1], (80, 1)), np.tile([0.6, 0.4], (80, 1))
    >>> [(found.what, found.p < 0.001) for found in compare_predictions(unsure, sure)]
    [('predicted classes', False), ('confidence', True)]
    """
    against: Against = "rows without labels"
    one = "they are not draws from one population"
    if f.ndim == 1:
        return [Comparison("predictions", against, "features", _kolmogorov(f, far), one)]
    C = f.shape[1]
    counts = np.stack([_counts(part.argmax(axis=1), C) for part in (f, far)])
    found = [Comparison("predicted classes", against, "features", chi_square_or_exact(counts), one)]
    sure, sure_far = f.max(axis=1), far.max(axis=1)
    if min(sure.min(), sure_far.min()) < 1:  # class labels alone come as 0 and 1
        found.append(_confidence(sure, sure_far, against))
    return found


def compare_second_model(
    Z: np.ndarray,
    y: np.ndarray,
    Z_train: np.ndarray,
    y_train: np.ndarray,
    is_class: bool,
    seed: int,
) -> list[Comparison]:
    """Compare what a second model, learnt on half of the training rows, makes of the rows.

    Of classes: how sure it is, and the probability that it gives to the true class. This finds
    rows that were labelled where a model is unsure, or sure, and rows whose labels hang otherwise
    on their columns. Of numbers: its predictions, and the size of its errors.

    Parameters
    ----------
    Z, y : ndarray
        Labelled rows.
    Z_train, y_train : ndarray
        In the same units.
    is_class : bool
    seed : int

    Returns
    -------
    list of Comparison
        Empty with fewer than ``2 * LEAST_LEARN`` training rows or a single class among them.
    """
    rng = random_stream(seed, "estimate", "second model")
    order = rng.permutation(len(Z_train))[: 2 * MOST_ROWS]
    learn, ask = order[: len(order) // 2], order[len(order) // 2 :]
    if len(learn) < LEAST_LEARN or len(np.unique(y_train[learn])) < 2:
        return []
    settings = {
        "max_iter": 50,
        "max_leaf_nodes": 8,
        "min_samples_leaf": 10,
        "early_stopping": False,
        "random_state": derive_seed(seed, "estimate", "second model") % 2**31,
    }
    against: Against = "training rows"
    if not is_class:
        with threadpool_limits(1):  # more threads are slower on so few rows
            number = HistGradientBoostingRegressor(**settings).fit(Z_train[learn], y_train[learn])
        f, f_ask = number.predict(Z), number.predict(Z_train[ask])
        errors, errors_ask = np.abs(y - f), np.abs(y_train[ask] - f_ask)
        p, p_errors = _kolmogorov(f, f_ask), _kolmogorov(errors, errors_ask)
        return [
            Comparison("predictions", against, "features", p, "by a second model"),
            Comparison("errors", against, "features", p_errors, "of a second model"),
        ]
    ask = ask[same_shares(y_train[ask], y, rng)]
    if not len(ask):
        return []
    with threadpool_limits(1):
        second = HistGradientBoostingClassifier(**settings).fit(Z_train[learn], y_train[learn])
    f, f_ask = second.predict_proba(Z), second.predict_proba(Z_train[ask])
    p_errors = _kolmogorov(
        _given_to(second.classes_, f, y), _given_to(second.classes_, f_ask, y_train[ask])
    )
    return [
        _confidence(f.max(axis=1), f_ask.max(axis=1), against),
        Comparison("errors", against, "features", p_errors, "of a second model"),
    ]


def _given_to(classes: np.ndarray, f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the probability given to the true class; 0 for one that the model does not know."""
    return np.asarray((f * (classes[None] == y[:, None])).sum(axis=1))


def same_shares(codes: np.ndarray, like: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return positions, as many as possible, of rows whose classes have the shares of others.

    Parameters
    ----------
    codes, like : ndarray of shape (N,), (n,)
    rng : Generator

    Examples
    --------
    >>> kept = same_shares(np.repeat([0, 1], [90, 10]), np.array([0, 1]), np.random.default_rng(0))
    >>> np.bincount(np.repeat([0, 1], [90, 10])[kept]).tolist()
    [10, 10]
    """
    C = int(max(codes.max(), like.max())) + 1
    have, want = _counts(codes, C), _counts(like, C)
    use = (want > 0) & (have > 0)  # a class that only one side has is for compare_classes
    if not use.any():
        return np.zeros(0, dtype=int)
    return _take_shares(codes, np.where(use, want, 0), rng)


def like_priors(codes: np.ndarray, priors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return positions, as many as possible, of rows whose classes have known shares."""
    return _take_shares(codes, priors, rng)


def _take_shares(codes: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    have = _counts(codes, len(weights))
    use = (weights > 0) & (have > 0)
    scale = (have[use] / weights[use]).min()
    kept = []
    for c in np.flatnonzero(use):
        rows = rng.permutation(np.flatnonzero(codes == c))
        kept.append(rows[: round(scale * weights[c])])
    return np.sort(np.concatenate(kept))


def _confidence(sure: np.ndarray, other: np.ndarray, against: Against) -> Comparison:
    way = "less" if np.median(sure) < np.median(other) else "more"
    text = f"a model is {way} sure of the labelled rows"
    return Comparison("confidence", against, "features", _kolmogorov(sure, other), text)


def _counts(codes: np.ndarray, C: int) -> np.ndarray:
    return np.bincount(codes.astype(int), minlength=C)


def _kolmogorov(a: np.ndarray, b: np.ndarray) -> float:
    return float(stats.ks_2samp(a, b, method="asymp").pvalue)


def _numbers(a: np.ndarray, b: np.ndarray) -> float:
    """Return the p-value for a numeric column; a missing number counts as the least of all."""
    return _kolmogorov(np.nan_to_num(a, nan=-np.inf), np.nan_to_num(b, nan=-np.inf))


def _categories(a: np.ndarray, b: np.ndarray) -> float:
    """Return the p-value of a chi-square test; rare categories are joined."""
    C = int(max(a.max(), b.max())) + 1
    counts = np.stack([_counts(a, C), _counts(b, C)])
    pooled = counts.sum(axis=0)
    expected = pooled * min(len(a), len(b)) / (len(a) + len(b))
    is_rare = expected < LEAST_EXPECTED
    joined = np.column_stack([counts[:, ~is_rare], counts[:, is_rare].sum(axis=1)])
    joined = joined[:, joined.sum(axis=0) > 0]
    if joined.shape[1] < 2:
        return 1.0
    return chi_square_or_exact(joined)
