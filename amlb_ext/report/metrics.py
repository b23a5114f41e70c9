r"""Every metric of one model on some rows, pooled, under the names that AMLB gives them.

Where AMLB has the metric, the number is AMLB's (``amlb/results.py``, v2.1.7, scikit-learn
1.2.2) to the digits that it writes. ``brier``, and ``smape`` of a regression, are not AMLB's;
``f1`` of three classes or more is the macro mean here, and AMLB's support-weighted mean is
``f1_weighted``.

Notation
--------
y : (n,) true targets: the target's own unit for regression, class codes 0..C-1 otherwise
f : (n,) predictions, or (n, C) class probabilities in label order
w : (n,) weights, sample_weight of scikit-learn
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn import config_context
from sklearn import metrics as sk

from amlb_ext.core.row_losses import brier_loss, symmetric_percentage_error
from amlb_ext.stats.window_losses import OWN_LOSS, WINDOW_LOSSES

#: Which way each metric is better.
DIRECTION: dict[str, Literal["lower", "higher"]] = {
    "mse": "lower",
    "rmse": "lower",
    "mae": "lower",
    "r2": "higher",
    "smape": "lower",
    "rmsle": "lower",
    "acc": "higher",
    "balacc": "higher",
    "logloss": "lower",
    "auc": "higher",
    "auc_ovo": "higher",
    "auc_ovr": "higher",
    "f1": "higher",
    "f1_weighted": "higher",
    "brier": "lower",
}
#: Classes whose curves are drawn pair by pair; of more the area is the same but for last digits.
MOST_DRAWN = 20
#: The metric that goes with the verdict, whose losses are Brier losses and squared errors: one for
#: each kind of task, shown first wherever scores are.
VERDICT_METRIC: dict[str, str] = {
    "regression": "rmse",
    "binary": "brier",
    "multiclass": "brier",
    "forecasting": "mase",
}
#: What metrics that have a unit are measured in.
UNITS = {
    "rmse": "rmse in the target's own unit",
    "mae": "mae in the target's own unit",
    "mse": "mse in the square of the target's unit",
    "brier": "brier, the mean squared distance from the true class, 0 to 2",
    "logloss": "logloss in nats",
    **{
        loss.name: f"{loss.title}, the {loss.meaning}"
        for loss in WINDOW_LOSSES.values()
        if loss.name != "mae"
    },
    OWN_LOSS: "own, the loss that you gave",
    "acc": "accuracy",
}

#: A metric whose arguments are bound: computed only where it is wanted.
_Metric = Callable[[], Any]


def score_rows(
    y: np.ndarray,
    f: np.ndarray,
    weights: np.ndarray | None = None,
    predicted: np.ndarray | None = None,
    names: Collection[str] = tuple(DIRECTION),
) -> dict[str, float]:
    r"""Return every metric of one model on some rows.

    Regression: ``mse``, ``rmse``, ``mae``, ``r2``, ``smape``, ``rmsle``. Binary: ``acc``,
    ``balacc``, ``logloss`` (nats), ``auc`` and ``f1`` of the last label, ``brier``. Multiclass:
    the same with ``auc_ovo`` and ``auc_ovr`` (both weighted by prevalence, as AMLB does)
    for ``auc``, ``f1`` as the macro mean over the classes that occur in truth or predictions,
    and ``f1_weighted``, which is what AMLB calls ``f1``.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Targets in their own unit, or codes 0..C-1.
    f : ndarray of shape (n,) or (n, C)
        Predictions in the target's unit, or class probabilities in label order.
    weights : ndarray of shape (n,), optional
        Not negative and known; rows of weight 0 do not count. Their scale does not matter.
    predicted : ndarray of shape (n,), optional
        Codes of the labels that the model named, where they may differ from the most
        probable ones; for ``acc``, ``balacc`` and the F scores. Any other code is an error
        of the model. Defaults to the first class of largest probability.
    names : collection of str
        The metrics that are wanted, of those that there are.

    Returns
    -------
    dict of str to float
        NaN where a metric is undefined: no rows; predictions that are not finite (for what
        is made of them); one class only (AUC); a constant target or a single row (``r2``); a
        negative target or prediction (``rmsle``); no positive row and none predicted
        (``f1``); weights with ``auc_ovo``, which scikit-learn does not offer.

    Notes
    -----
    ``smape`` is the paper's, from 0 to 2 (AMLB's of time series likewise):

    .. math:: \mathrm{SMAPE} = \frac{2}{N} \sum_i \frac{|f_i - y_i|}{|f_i| + |y_i|}

    (Zakharov & Boukhanovsky, section 5.2). NOTE[DIFF]: a row with f = y = 0, where the paper
    divides 0 by 0, counts 0. It depends on where the unit has its zero, so its value here and
    that of a scaled target differ.

    ``logloss`` clips probabilities to [e, 1 - e], e = 2.2e-16, then makes each row sum to 1, as
    the scikit-learn of AMLB does.

    NOTE[DIFF]: ``r2`` of a constant target is NaN; scikit-learn, and so AMLB, say 0 or 1.

    References
    ----------
    Zakharov & Boukhanovsky, Model-Aware Automatic Benchmark Generation with Self-Error
    Instructions for Data-Driven Models, 2025, section 5.2 "Evaluation Scores".

    Examples
    --------
    >>> scores = score_rows(np.array([1.0, 3.0]), np.array([1.0, 1.0]))
    >>> scores["mse"], scores["mae"], scores["smape"]  # smape: 2/2 (0/2 + 2/4)
    (2.0, 1.0, 0.5)
    >>> scores = score_rows(np.array([0, 1]), np.array([[0.75, 0.25], [0.5, 0.5]]))
    >>> scores["acc"], scores["auc"], scores["brier"]  # brier: (2/16 + 2/4) / 2
    (0.5, 1.0, 0.3125)
    """
    y = np.asarray(y)
    f = np.asarray(f, dtype=float)
    if predicted is None and f.ndim == 2:
        predicted = f.argmax(axis=1)
    if weights is not None:
        weights = np.asarray(weights, dtype=float)
        # Taken out, for some metrics of scikit-learn see rows of weight 0: a class, a range.
        has_weight = weights > 0
        y = y[has_weight]
        f = f[has_weight]
        weights = weights[has_weight]
        if predicted is not None:
            predicted = np.asarray(predicted)[has_weight]
    if f.ndim == 1:
        metrics = _regression_metrics(y.astype(float), f, weights)
    else:
        named = np.asarray(predicted).astype(int)
        metrics = _class_metrics(y.astype(int), f, named=named, weights=weights)
    values = {name: float("nan") for name in metrics if name in names}
    if not len(y):
        return values
    # Rows are whole, and to check them in each metric takes most of the time.
    unchecked = config_context(skip_parameter_validation=True)
    with unchecked, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in values:
            # what scikit-learn refuses is undefined
            with suppress(ValueError, ZeroDivisionError):
                values[name] = float(metrics[name]())
    return values


def _regression_metrics(
    y: np.ndarray, f: np.ndarray, weights: np.ndarray | None
) -> dict[str, _Metric]:
    def r2() -> float:
        # scikit-learn says 0 or 1 of a constant target; see the note of `score_rows`.
        if len(y) < 2 or y.min() == y.max():
            return float("nan")
        return float(sk.r2_score(y, f, sample_weight=weights))

    def rmsle() -> float:
        if min(y.min(), f.min()) < 0:  # recent scikit-learn starts at -1, AMLB's at 0
            return float("nan")
        return float(np.sqrt(sk.mean_squared_log_error(y, f, sample_weight=weights)))

    def smape() -> float:
        return float(np.average(symmetric_percentage_error(y, f), weights=weights))

    mse = partial(sk.mean_squared_error, y, f, sample_weight=weights)
    return {
        "mse": mse,
        "rmse": lambda: np.sqrt(mse()),
        "mae": partial(sk.mean_absolute_error, y, f, sample_weight=weights),
        "r2": r2,
        "smape": smape,
        "rmsle": rmsle,
    }


def _class_metrics(
    y: np.ndarray,
    probabilities: np.ndarray,
    *,
    named: np.ndarray,
    weights: np.ndarray | None,
) -> dict[str, _Metric]:
    labels = np.arange(probabilities.shape[1])
    f1 = partial(sk.f1_score, y, named, sample_weight=weights, zero_division=np.nan)

    def logloss() -> float:
        # As in AMLB's scikit-learn; recent ones clip at another bound.
        tiny = np.finfo(float).eps
        clipped = np.clip(probabilities, tiny, 1 - tiny)
        clipped /= clipped.sum(axis=1, keepdims=True)
        return float(sk.log_loss(y, clipped, labels=labels, sample_weight=weights))

    def auc() -> float:
        return float(sk.roc_auc_score(y, probabilities[:, 1], sample_weight=weights))

    def auc_of_pairs(scheme: str) -> float:
        if scheme == "ovo" and len(labels) > MOST_DRAWN and weights is None:
            return area_of_pairs(y, probabilities)
        area = sk.roc_auc_score(
            y,
            probabilities,
            labels=labels,
            multi_class=scheme,
            average="weighted",
            sample_weight=weights,
        )
        return float(area)

    def brier() -> float:
        # scikit-learn refuses what is not finite; this mean would take it.
        if not np.isfinite(probabilities).all():
            return float("nan")
        return float(np.average(brier_loss(y, probabilities), weights=weights))

    metrics: dict[str, _Metric] = {
        "acc": partial(sk.accuracy_score, y, named, sample_weight=weights),
        "balacc": partial(sk.balanced_accuracy_score, y, named, sample_weight=weights),
        "logloss": logloss,
        "brier": brier,
    }
    if len(labels) == 2:
        return metrics | {"auc": auc, "f1": partial(f1, labels=[1], average="macro")}
    return metrics | {
        "auc_ovo": partial(auc_of_pairs, "ovo"),
        "auc_ovr": partial(auc_of_pairs, "ovr"),
        "f1": partial(f1, labels=labels, average="macro"),
        "f1_weighted": partial(f1, labels=labels, average="weighted"),
    }


def area_of_pairs(y: np.ndarray, probabilities: np.ndarray) -> float:
    r"""Return the mean area under the ROC curve over pairs of classes, weighted by their rows.

    .. math::
        A_{ij} = \frac{1}{n_i n_j} \sum_{r \in i} \sum_{s \in j}
            \left( 1[p_{ri} > p_{si}] + \tfrac 1 2 1[p_{ri} = p_{si}] \right), \quad
        A = \frac{\sum_{i < j} (n_i + n_j) (A_{ij} + A_{ji}) / 2}{\sum_{i < j} (n_i + n_j)}

    The number of :func:`sklearn.metrics.roc_auc_score` (``ovo``, ``weighted``), which draws a curve
    for each pair: 39,402 of 199 classes. Here each class is sorted once.

    Source: Hand & Till (2001), Machine Learning 45, 171-186; weights as scikit-learn has them.

    Parameters
    ----------
    y : ndarray of shape (n,), int
        Class codes; classes without a row have no pairs.
    probabilities : ndarray of shape (n, C)

    Returns
    -------
    float
        NaN for fewer than two classes, and where a row is no distribution.

    Examples
    --------
    >>> p = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.1, 0.4], [0.7, 0.2, 0.1]])
    >>> area_of_pairs(np.array([0, 1, 2, 1]), p)
    0.8125
    """
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_distribution = np.isfinite(probabilities).all() and np.allclose(
        1, probabilities.sum(axis=1)
    )
    if len(classes) < 2 or not is_distribution:
        return float("nan")
    areas = np.empty((len(classes), len(classes)))
    for place, one in enumerate(classes):
        scores = probabilities[:, one]
        own = np.sort(scores[codes == place])
        # of each row, how many rows of this class have more of it; those with as much count half
        up_to = np.searchsorted(own, scores, "left") + np.searchsorted(
            own, scores, "right"
        )
        beaten_by = counts[place] - up_to / 2
        areas[place] = np.bincount(codes, beaten_by) / (counts * counts[place])
    first, second = np.triu_indices(len(classes), 1)
    means = (areas[first, second] + areas[second, first]) / 2
    return float(np.average(means, weights=counts[first] + counts[second]))
