"""Were the labelled rows drawn as other rows were? Comparisons that may refute it.

Notation
--------
y, y_train : class codes, or targets;  Z, Z_other : encoded rows, category codes first
p : p-value of a comparison

The rows at hand decide which comparisons are made: classes or target, columns, and the confidence
and errors of a second model against training rows; predictions, confidence and columns against
rows without labels. All of them share one level: each refutes at ``REFUTED`` divided by their
number (Bonferroni), so that together they wrongly refute one sound sample in a hundred.

Columns, confidence and errors are compared *given the class*: training rows are left out until
their classes have the shares of the labelled rows. So rows drawn class by class differ in their
classes alone, and any other difference is a fault of the draws within a class.

A model's confidence in the rows that it was fitted on is too high to compare. So a second model is
fitted on one half of the training rows and applied to the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from threadpoolctl import threadpool_limits

from amlb_ext.core.rng import derive_int_seed, random_stream

# Checks that may refute what an interval assumes of the labelled rows.
#
# Passing a check proves nothing. Each refutes at the level REFUTED, so each wrongly refutes one
# sound sample in a hundred; the comparisons of :mod:`~amlb_ext.estimate.drawing` share that level.


#: p-value below which an assumption counts as refuted.
REFUTED = 0.01
#: Expected count in every cell from which the chi-square distribution is close enough.
EXPECTED = 5
#: Tables to draw where it is not.
TABLES = 9_999


@dataclass(frozen=True)
class Finding:
    """The outcome of a check: ``refuted``, and one sentence."""

    refuted: bool
    text: str


def class_shares(codes: np.ndarray, priors: np.ndarray) -> Finding:
    """Compare the classes of the labelled rows with the population's known shares.

    The test is chi-square or, if a class is expected in fewer than five rows, exact over draws of
    the multinomial distribution.

    Parameters
    ----------
    codes : ndarray of shape (n,)
    priors : ndarray of shape (C,)

    Examples
    --------
    >>> class_shares(np.repeat([0, 1], [300, 200]), np.array([0.9, 0.1])).refuted
    True
    """
    counts = np.bincount(codes.astype(int), minlength=len(priors))
    # An impossible class needs no test, and chi-square could not divide by its share.
    if counts[priors == 0].any():
        return Finding(
            True, "labelled rows of a class that the population does not have"
        )
    has_share = priors > 0
    counts = counts[has_share]
    shares = priors[has_share] / priors[has_share].sum()
    n = int(counts.sum())
    expected = shares * n
    if expected.min() >= EXPECTED:
        p = float(stats.chisquare(counts, expected).pvalue)
    else:
        # A fixed seed: the same rows must get the same verdict.
        drawn = np.random.default_rng(0).multinomial(n, shares, TABLES)
        observed = _chi_square(counts, expected)
        p = _share_as_extreme(observed, _chi_square(drawn, expected))
    if p < REFUTED:
        return Finding(
            True,
            f"the classes of the labelled rows do not match the priors ({p_text(p)})",
        )
    return Finding(
        False, f"the classes of the labelled rows match the priors ({p_text(p)})"
    )


def chi_square_or_exact(counts: np.ndarray) -> float:
    """Return the p-value for two rows of counts with the same shares.

    The test is chi-square or, if fewer than five are expected in some cell, exact over permutations
    of the rows (draws with the same margins). The p-value is 1 if only one column has counts.

    Parameters
    ----------
    counts : ndarray of shape (2, C)

    Examples
    --------
    >>> chi_square_or_exact(np.array([[3, 1], [300, 100]]))
    1.0
    >>> chi_square_or_exact(np.array([[100, 100], [780, 220]])) < 1e-9
    True
    """
    table = np.asarray(counts)
    table = table[:, table.sum(axis=0) > 0]
    row_sums = table.sum(axis=1)
    column_sums = table.sum(axis=0)
    if table.shape[1] < 2 or (row_sums == 0).any():
        return 1.0
    expected = np.outer(row_sums, column_sums) / column_sums.sum()
    if expected.min() >= EXPECTED:
        return float(stats.chi2_contingency(table, correction=False).pvalue)
    # With both margins fixed the first row is a draw without replacement, the second the rest.
    rng = np.random.default_rng(0)
    first_rows = rng.multivariate_hypergeometric(
        column_sums, int(row_sums[0]), TABLES, method="marginals"
    )
    second_rows = column_sums - first_rows
    drawn = _chi_square(first_rows, expected[0]) + _chi_square(second_rows, expected[1])
    observed = _chi_square(table[0], expected[0]) + _chi_square(table[1], expected[1])
    return _share_as_extreme(observed, drawn)


def _chi_square(counts: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the chi-square statistic of each row of counts."""
    terms = (counts - expected) ** 2 / expected
    return np.asarray(terms.sum(axis=-1))


def _share_as_extreme(observed: np.ndarray, drawn: np.ndarray) -> float:
    """Return the p-value of a statistic from draws of it under the null hypothesis."""
    # Statistics of equal tables may differ in the last bits.
    n_as_extreme = (drawn >= observed - 1e-9).sum()
    # The observed table counts as a draw, without which p could be 0.
    return float((1 + n_as_extreme) / (1 + len(drawn)))


def absent_classes(
    codes: np.ndarray, train: np.ndarray, labels: Sequence[str]
) -> Finding:
    """Check whether the labelled rows lack a class of the training rows, and not by chance.

    A different share is no finding, since training rows may be drawn differently. A class without
    any labelled row is one, if chance leaves it out in less than one case in a hundred.

    Parameters
    ----------
    codes, train : ndarray of shape (n,), (n_train,)
    labels : sequence of str

    Examples
    --------
    >>> absent_classes(np.zeros(60), np.repeat([0, 1], [80, 20]), ["no", "yes"]).text
    'no labelled row of yes (20.0% of the training rows)'
    """
    counts = np.bincount(codes.astype(int), minlength=len(labels))
    train_counts = np.bincount(train.astype(int), minlength=len(labels))
    shares = train_counts / max(len(train), 1)
    chance_of_none = (1 - shares) ** len(codes)
    is_absent = (counts == 0) & (chance_of_none < REFUTED)
    if not is_absent.any():
        return Finding(False, "every class of the training rows has labelled rows")
    listed = []
    for code in np.flatnonzero(is_absent):
        listed.append(f"{labels[int(code)]} ({shares[code]:.1%} of the training rows)")
    return Finding(True, f"no labelled row of {', '.join(listed)}")


def join_findings(findings: Sequence[Finding]) -> Finding | None:
    """Return all findings as one, refuted if any of them is; None without any."""
    if not findings:
        return None
    refuted = [finding for finding in findings if finding.refuted]
    # What passed is of no interest beside what refutes.
    decisive = refuted or findings
    text = "; ".join(finding.text for finding in decisive)
    return Finding(bool(refuted), text)


def p_text(p: float) -> str:
    """Return a p-value as papers print it.

    Examples
    --------
    >>> p_text(0.0312), p_text(1e-9)
    ('p = .031', 'p < .001')
    """
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


Against = Literal["training rows", "rows without labels"]
#: Subject of a finding: known priors correct ``labels``, nothing corrects ``features``, and a draw
#: by class may explain the ``place`` of rows.
About = Literal["labels", "features", "place"]
#: Categories with fewer expected rows are joined.
LEAST_EXPECTED = 5
#: Smallest number of rows to fit a second model on.
LEAST_LEARN = 100
#: Largest number of rows to fit it on, and to apply it to.
MOST_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A test of whether labelled and other rows are draws from one population.

    Attributes
    ----------
    what : str
        ``classes``, ``target``, ``columns``, ``confidence``, ``errors`` or ``predictions``.
    against : str
    p : float
    detail : str
        The difference in a few words; empty if there is nothing to add.
    """

    what: str
    against: Against
    p: float
    detail: str = ""

    @property
    def about(self) -> About:
        """What it is a comparison of."""
        return "labels" if self.what in ("classes", "target") else "features"

    def finding(self, level: float) -> Finding:
        """Return the finding at a level.

        Examples
        --------
        >>> c = Comparison(what="classes", against="training rows", p=0.0001)
        >>> c.finding(0.01).text
        'classes of the labelled rows and of the training rows differ (p < .001)'
        """
        both = f"{self.what} of the labelled rows and of the {self.against}"
        if self.p >= level:
            return Finding(False, f"{both}: no contradiction ({p_text(self.p)})")
        detail = f": {self.detail}" if self.detail else ""
        return Finding(True, f"{both} differ ({p_text(self.p)}){detail}")


def level_of_each(comparisons: Sequence[Comparison]) -> float:
    """Return the level at which each comparison refutes.

    Examples
    --------
    >>> c = Comparison(what="target", against="training rows", p=0.5)
    >>> level_of_each([c, c])
    0.005
    """
    return REFUTED / max(len(comparisons), 1)


def compare_classes(
    y: np.ndarray, y_train: np.ndarray, labels: Sequence[str]
) -> Comparison:
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
    n_classes = len(labels)
    counts = np.stack([_class_counts(y, n_classes), _class_counts(y_train, n_classes)])
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(totals, 1)
    # The detail names the class of which there are most too many.
    most_in_excess = int(np.argmax(shares[0] - shares[1]))
    share, share_train = shares[:, most_in_excess]
    return Comparison(
        what="classes",
        against="training rows",
        p=chi_square_or_exact(counts),
        detail=(
            f"{labels[most_in_excess]} {share:.1%} of the labelled rows and {share_train:.1%} of "
            "the training rows"
        ),
    )


def compare_targets(y: np.ndarray, y_train: np.ndarray) -> Comparison:
    """Compare the distributions of a regression target with the Kolmogorov–Smirnov test.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> compare_targets(rng.random(100) + 0.4, rng.random(500)).p < 0.001
    True
    """
    return Comparison(
        what="target",
        against="training rows",
        p=_kolmogorov(y, y_train),
        detail=f"median {np.median(y):.4g} and {np.median(y_train):.4g}",
    )


def compare_columns(
    Z: np.ndarray,
    Z_other: np.ndarray,
    names: Sequence[str],
    n_categorical: int,
    against: Against,
) -> Comparison:
    """Compare the rows column by column: Kolmogorov–Smirnov, or chi-square for categories.

    ``p`` is the smallest of all columns times their number; ``detail`` names the column.

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
        return Comparison(what="columns", against=against, p=1.0)
    p_values = []
    for j in range(len(names)):
        compare = _compare_categories if j < n_categorical else _compare_numbers
        p_values.append(compare(Z[:, j], Z_other[:, j]))
    most_different = int(np.argmin(p_values))
    direction = ""
    if most_different >= n_categorical:
        mean = np.nanmean(Z[:, most_different])
        mean_other = np.nanmean(Z_other[:, most_different])
        # without any value on one side the gap is NaN, which counts as 0
        gap = np.nan_to_num(mean - mean_other)
        direction = " (higher)" if gap > 0 else " (lower)"
    return Comparison(
        what="columns",
        against=against,
        # Bonferroni: one of many columns is small by chance
        p=min(1.0, p_values[most_different] * len(p_values)),
        detail=f"most in {names[most_different]}{direction}",
    )


def compare_predictions(f: np.ndarray, far: np.ndarray) -> list[Comparison]:
    """Compare the model's predictions on labelled rows and on rows without labels.

    Predicted numbers are compared with the Kolmogorov–Smirnov test. Of predicted classes the shares
    are compared (chi-square) and, if the model gives probabilities, the largest one: its
    confidence.

    Parameters
    ----------
    f, far : ndarray of shape (n,) or (n, C), (N,) or (N, C)
        On labelled rows, and on rows without labels.

    Examples
    --------
    >>> sure, unsure = np.tile([0.9, 0.1], (80, 1)), np.tile([0.6, 0.4], (80, 1))
    >>> [(found.what, found.p < 0.001) for found in compare_predictions(unsure, sure)]
    [('predicted classes', False), ('confidence', True)]
    """
    if f.ndim == 1:
        what, p = "predictions", _kolmogorov(f, far)
    else:
        n_classes = f.shape[1]
        counts = [_class_counts(rows.argmax(axis=1), n_classes) for rows in (f, far)]
        what, p = "predicted classes", chi_square_or_exact(np.stack(counts))
    detail = "they are not draws from one population"
    against: Against = "rows without labels"
    comparisons = [Comparison(what=what, against=against, p=p, detail=detail)]
    if f.ndim == 1:
        return comparisons
    confidence = f.max(axis=1)
    confidence_far = far.max(axis=1)
    # A model without probabilities gives 0 and 1, which say nothing of its confidence.
    has_probabilities = min(confidence.min(), confidence_far.min()) < 1
    if has_probabilities:
        comparisons.append(_compare_confidence(confidence, confidence_far, against))
    return comparisons


def compare_second_model(
    Z: np.ndarray,
    y: np.ndarray,
    Z_train: np.ndarray,
    y_train: np.ndarray,
    is_class: bool,
    seed: int,
) -> list[Comparison]:
    """Compare the predictions and errors of a second model, fitted on half of the training rows.

    For classes these are its confidence and the probability of the true class. They detect rows
    that were chosen for labelling because a model is unsure, or sure, of them, and rows whose
    labels depend on their columns in another way. For numbers they are its predictions and the
    size of its errors.

    Parameters
    ----------
    Z, y : ndarray
        Labelled rows.
    Z_train, y_train : ndarray
        Training rows, in the same units.
    is_class : bool
    seed : int

    Returns
    -------
    list of Comparison
        Empty with fewer than ``2 * LEAST_LEARN`` training rows or a single class among them.
    """
    rng = random_stream(seed, "estimate", "second model")
    # Two halves at random: one to fit the model on, one that it has not seen.
    order = rng.permutation(len(Z_train))[: 2 * MOST_ROWS]
    learn = order[: len(order) // 2]
    ask = order[len(order) // 2 :]
    if len(learn) < LEAST_LEARN or len(np.unique(y_train[learn])) < 2:
        return []
    # Given the class: a draw by class must not count as a difference here.
    if is_class:
        ask = ask[same_shares(y_train[ask], y, rng)]
        if not len(ask):
            return []
    learner = (
        HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    )
    # quick, and takes categories and missing values as they are; it need not be good: it only has
    # to err in the same way on both sides
    model = learner(
        max_iter=50,
        max_leaf_nodes=8,
        min_samples_leaf=10,
        early_stopping=False,
        random_state=derive_int_seed(seed, "estimate", "second model"),
    )
    # More threads are slower on so few rows.
    with threadpool_limits(1):
        model.fit(Z_train[learn], y_train[learn])
    Z_ask = Z_train[ask]
    y_ask = y_train[ask]
    against: Against = "training rows"
    if is_class:
        f = model.predict_proba(Z)
        f_ask = model.predict_proba(Z_ask)
        of_predictions = _compare_confidence(f.max(axis=1), f_ask.max(axis=1), against)
        errors = _true_probability(model.classes_, f, y)
        errors_ask = _true_probability(model.classes_, f_ask, y_ask)
    else:
        f = model.predict(Z)
        f_ask = model.predict(Z_ask)
        of_predictions = Comparison(
            what="predictions",
            against=against,
            p=_kolmogorov(f, f_ask),
            detail="by a second model",
        )
        errors = np.abs(y - f)
        errors_ask = np.abs(y_ask - f_ask)
    of_errors = Comparison(
        what="errors",
        against=against,
        p=_kolmogorov(errors, errors_ask),
        detail="of a second model",
    )
    return [of_predictions, of_errors]


def _true_probability(classes: np.ndarray, f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the probability of the true class; 0 for a class that the model does not know."""
    # (n, C): at most one column of each row is true
    is_true = classes[None] == y[:, None]
    return np.asarray((f * is_true).sum(axis=1))


def same_shares(
    codes: np.ndarray, like: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return positions of as many rows as possible whose classes have the shares of other rows.

    Parameters
    ----------
    codes : ndarray of shape (N,)
        Class codes of the rows to choose from.
    like : ndarray of shape (n,)
        Class codes of the other rows.
    rng : Generator

    Examples
    --------
    >>> kept = same_shares(np.repeat([0, 1], [90, 10]), np.array([0, 1]), np.random.default_rng(0))
    >>> np.bincount(np.repeat([0, 1], [90, 10])[kept]).tolist()
    [10, 10]
    """
    n_classes = int(max(codes.max(), like.max())) + 1
    available = _class_counts(codes, n_classes)
    wanted = _class_counts(like, n_classes)
    # A class on one side only is left to compare_classes.
    is_shared = (wanted > 0) & (available > 0)
    if not is_shared.any():
        return np.zeros(0, dtype=int)
    return like_priors(codes, np.where(is_shared, wanted, 0), rng)


def like_priors(
    codes: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return positions of as many rows as possible whose class counts are as the weights.

    Weights are shares of the classes that are known, or counts of other rows.
    """
    available = _class_counts(codes, len(weights))
    can_take = (weights > 0) & (available > 0)
    # The scarcest class, relative to its weight, is taken whole and sets the scale.
    scale = (available[can_take] / weights[can_take]).min()
    kept = []
    for code in np.flatnonzero(can_take):
        rows = rng.permutation(np.flatnonzero(codes == code))
        n_kept = round(scale * weights[code])
        kept.append(rows[:n_kept])
    return np.sort(np.concatenate(kept))


def _compare_confidence(
    confidence: np.ndarray, confidence_other: np.ndarray, against: Against
) -> Comparison:
    # The test has no direction; the medians say which way it went.
    is_lower = np.median(confidence) < np.median(confidence_other)
    degree = "less" if is_lower else "more"
    return Comparison(
        what="confidence",
        against=against,
        p=_kolmogorov(confidence, confidence_other),
        detail=f"a model is {degree} sure of the labelled rows",
    )


def _class_counts(codes: np.ndarray, n_classes: int) -> np.ndarray:
    return np.bincount(codes.astype(int), minlength=n_classes)


def _kolmogorov(a: np.ndarray, b: np.ndarray) -> float:
    """Return the p-value of the two-sample Kolmogorov–Smirnov test."""
    # scipy's exact distribution for small samples is slow, and assumes that there are no ties.
    return float(stats.ks_2samp(a, b, method="asymp").pvalue)


def _compare_numbers(a: np.ndarray, b: np.ndarray) -> float:
    """Return the p-value for a numeric column; a missing number counts as the smallest."""
    return _kolmogorov(np.nan_to_num(a, nan=-np.inf), np.nan_to_num(b, nan=-np.inf))


def _compare_categories(a: np.ndarray, b: np.ndarray) -> float:
    """Return the p-value of a chi-square test; rare categories are joined."""
    n_categories = int(max(a.max(), b.max())) + 1
    counts = np.stack([_class_counts(a, n_categories), _class_counts(b, n_categories)])
    n_smaller = min(len(a), len(b))
    expected_in_smaller = counts.sum(axis=0) * n_smaller / (len(a) + len(b))
    # Chi-square is off where few are expected, and a rare category says little on its own.
    is_rare = expected_in_smaller < LEAST_EXPECTED
    rare_counts = counts[:, is_rare].sum(axis=1)
    joined = np.column_stack([counts[:, ~is_rare], rare_counts])
    joined = joined[:, joined.sum(axis=0) > 0]
    if joined.shape[1] < 2:
        return 1.0
    return chi_square_or_exact(joined)
