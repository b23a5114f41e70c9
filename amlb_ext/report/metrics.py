r"""Every metric of one model on some rows, pooled, under the names that AMLB gives them.

Where AMLB has the metric, the number is AMLB's (``amlb/results.py``, v2.1.7, scikit-learn
1.2.2) to the digits that it writes. ``brier``, and ``smape`` of a regression, are not AMLB's;
``f1`` of three classes or more is the macro mean here, and AMLB's support-weighted mean is
``f1_weighted``. They are computed here, for a report asks for thousands of them, each on few rows,
and what scikit-learn checks at every call takes a hundred times as long.

Notation
--------
y : (n,) true targets: the target's own unit for regression, class codes 0..C-1 otherwise
f : (n,) predictions, or (n, C) class probabilities in label order
w : (n,) weights, sample_weight of scikit-learn
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np

from amlb_ext.core.errors import DataError
from amlb_ext.core.losses import brier

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
#: AMLB's first metric by kind of task, the one its ``result`` is made of.
MAIN: dict[str, str] = {"regression": "rmse", "binary": "auc", "multiclass": "logloss"}

_Weights = np.ndarray | None
_NAN = float("nan")


def score_rows(
    y: np.ndarray,
    f: np.ndarray,
    weights: np.ndarray | None = None,
    n_classes: int = 0,
    predicted: np.ndarray | None = None,
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
        Not negative; rows of weight 0 do not count. Their scale is of no matter.
    n_classes : int
        C, as a check on ``f``; 0 takes it from ``f``.
    predicted : ndarray of shape (n,), optional
        Codes of the labels that the model named, where they may differ from the most
        probable ones; for ``acc``, ``balacc`` and the F scores. Any other code is an error
        of the model. Defaults to the first class of largest probability.

    Returns
    -------
    dict of str to float
        NaN where a metric is undefined: no rows; predictions that are not finite (for what
        is made of them); one class only (AUC); a constant target or a single row (``r2``); a
        negative target or prediction (``rmsle``); no positive row and none predicted
        (``f1``); weights with ``auc_ovo``, which scikit-learn does not offer; probabilities that
        do not sum to 1 (AUC of three classes or more).

    Raises
    ------
    DataError
        Shapes that do not agree, codes outside 0..C-1, or weights that are negative or NaN.

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
    y, f = np.asarray(y), np.asarray(f, dtype=float)
    if predicted is None and f.ndim == 2 and f.shape[1]:
        predicted = f.argmax(axis=1)
    _check(y, f, weights, n_classes, predicted)
    if weights is not None:
        weights = np.asarray(weights, dtype=float)
        counts = weights > 0
        y, f, weights = y[counts], f[counts], weights[counts]
        predicted = predicted if predicted is None else np.asarray(predicted)[counts]
    if f.ndim == 1:
        return _regression(y.astype(float), f, weights)
    named = f.argmax(axis=1) if predicted is None else np.asarray(predicted).astype(int)
    return _classes(y.astype(int), f, weights, named)


def _check(
    y: np.ndarray, f: np.ndarray, weights: _Weights, n_classes: int, predicted: _Weights
) -> None:
    columns = f.shape[1] if f.ndim == 2 else 0
    if f.ndim not in (1, 2) or columns == 1 or (n_classes and columns != n_classes):
        wanted = f"(n, {n_classes})" if n_classes else "(n,) or (n, C)"
        raise DataError(
            f"predictions have the shape {f.shape}, wanted {wanted}",
            "hand in one column of probabilities per label",
        )
    for name, values in (("y", y), ("weights", weights), ("predicted", predicted)):
        if values is not None and np.shape(values) != (len(f),):
            raise DataError(f"{name} has the shape {np.shape(values)}, wanted ({len(f)},)")
    if columns and len(y) and not (np.isin(y, np.arange(columns))).all():
        raise DataError(f"a class code is not among 0..{columns - 1}", "encode the labels first")
    if weights is not None and not (np.asarray(weights) >= 0).all():
        raise DataError("a weight is negative or missing", "hand in one weight >= 0 per row")


def _regression(y: np.ndarray, f: np.ndarray, w: _Weights) -> dict[str, float]:
    nothing = dict.fromkeys(("mse", "rmse", "mae", "r2", "smape", "rmsle"), _NAN)
    if not len(y):
        return nothing
    with np.errstate(all="ignore"):
        known = {"smape": _mean(_smape(y, f), w)}
        if not (np.isfinite(y).all() and np.isfinite(f).all()):
            return nothing | known
        mse = _mean((y - f) ** 2, w)
        known |= {"mse": mse, "rmse": float(np.sqrt(mse)), "mae": _mean(np.abs(y - f), w)}
        variance = _mean((y - _mean(y, w)) ** 2, w) if y.min() < y.max() else 0.0
        if variance > 0:
            known["r2"] = 1 - mse / variance
        if min(y.min(), f.min()) >= 0:  # recent scikit-learn starts at -1, AMLB's at 0
            known["rmsle"] = float(np.sqrt(_mean((np.log1p(y) - np.log1p(f)) ** 2, w)))
    return nothing | known


def _smape(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    error, size = np.abs(f - y), np.abs(f) + np.abs(y)
    out: np.ndarray = 2.0 * np.divide(error, size, out=np.zeros_like(size), where=size != 0)
    return out


def _classes(y: np.ndarray, p: np.ndarray, w: _Weights, named: np.ndarray) -> dict[str, float]:
    two = p.shape[1] == 2
    more = ("auc", "f1") if two else ("auc_ovo", "auc_ovr", "f1", "f1_weighted")
    scores = dict.fromkeys(("acc", "balacc", "logloss", "brier", *more), _NAN)
    if not len(y):
        return scores
    labels = np.arange(p.shape[1])
    hits = np.bincount(y[y == named], None if w is None else w[y == named], len(labels))
    true = np.bincount(y, w, len(labels))
    some = (named >= 0) & (named < len(labels))
    called = np.bincount(named[some], None if w is None else w[some], len(labels))
    scores["acc"] = _mean((y == named).astype(float), w)
    scores["balacc"] = float((hits[true > 0] / true[true > 0]).mean())
    sizes = true + called
    f1 = np.divide(2 * hits, sizes, out=np.full(len(labels), _NAN), where=sizes > 0)
    if two:
        scores["f1"] = float(f1[1])
    elif (sizes > 0).any():
        scores["f1"] = _mean(f1[sizes > 0])
        scores["f1_weighted"] = _mean(f1[sizes > 0], true[sizes > 0])
    if not np.isfinite(p).all():
        return scores
    scores["logloss"], scores["brier"] = _log_loss(y, p, w), _mean(brier(y, p), w)
    if two:
        scores["auc"] = _auc(y == 1, p[:, 1], w)
    elif np.allclose(1, p.sum(axis=1)):
        present = np.flatnonzero(true > 0)
        each = [_auc(y == label, p[:, label], w) for label in present]
        scores["auc_ovr"] = _mean(np.array(each), true[present])
        if w is None:
            scores["auc_ovo"] = _one_versus_one(y, p, present)
    return scores


def _log_loss(y: np.ndarray, p: np.ndarray, w: _Weights) -> float:
    tiny = np.finfo(float).eps
    clipped = np.clip(p, tiny, 1 - tiny)
    own = clipped[np.arange(len(y)), y] / clipped.sum(axis=1)
    return _mean(-np.log(np.clip(own, tiny, 1 - tiny)), w)


def _auc(hit: np.ndarray, score: np.ndarray, w: _Weights) -> float:
    """Return the area under the ROC curve; NaN where all cases are of one kind."""
    if hit.all() or not hit.any():
        return _NAN
    order = np.argsort(-score, kind="stable")
    hit, score = hit[order], score[order]
    weight = np.ones(len(hit)) if w is None else w[order]
    ends = np.r_[np.flatnonzero(np.diff(score)), len(score) - 1]  # cases of one score are one step
    right = np.r_[0.0, np.cumsum(weight * hit)[ends]]
    wrong = np.r_[0.0, np.cumsum(weight * ~hit)[ends]]
    area = (np.diff(wrong) * (right[1:] + right[:-1])).sum() / 2
    return float(area / (right[-1] * wrong[-1]))


def _one_versus_one(y: np.ndarray, p: np.ndarray, present: np.ndarray) -> float:
    """Return the mean AUC over pairs of classes, weighted by prevalence (Hand & Till 2001)."""
    values, counts = [], []
    for one, two in combinations(present, 2):
        both = (y == one) | (y == two)
        pair = [_auc(y[both] == label, p[both, label], None) for label in (one, two)]
        values.append(np.mean(pair))
        counts.append(both.sum())
    return _mean(np.array(values), np.array(counts)) if values else _NAN


def _mean(values: np.ndarray, w: _Weights = None) -> float:
    return float(np.average(values, weights=w))
