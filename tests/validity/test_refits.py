"""F, fitted again, must not pass for a better model; see benchmarks/claims/null_control.py."""

import numpy as np
import pytest

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig
from amlb_ext.core.task import Kind
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.models.registry import resolve_model
from amlb_ext.validity.ranking_measures import measure_null
from amlb_ext.validity.task_rows import NULL_SHARE, refit_baseline, refit_rows


def fitted(kind, rng, model="ridge", params=None):
    """F of a draw, its training rows, test rows, and weights by features near F's doubt."""
    Z = rng.random((300, 5))
    truth = 3 * (Z[:, 0] - 0.5) + np.sin(6 * Z[:, 1]) * Z[:, 2]
    if kind is Kind.BINARY:
        y = (rng.random(300) < 1 / (1 + np.exp(-3 * truth))).astype(int)
    else:
        y = truth + rng.normal(0, 0.3, 300)
    spec = resolve_model(BaselineConfig(model=model, params=params or {}), kind)
    F = EstimatorBaseline(spec, kind, 2 if kind is Kind.BINARY else 0, 0).fit(
        Z[:200], y[:200], 1
    )
    return F, Z[:200], y[:200], Z[200:], y[200:], np.exp(-4 * np.abs(Z[200:, 0] - 0.5))


def null_of(twins, loss_f, folds=1, weights=None, came_fitted=False):
    """The null control of independent rows, dealt out to the folds."""
    rows = np.arange(len(loss_f))
    return measure_null(
        twins,
        loss_f,
        clusters=rows,
        fold=rows % folds,
        weights=np.ones(len(rows)) if weights is None else weights,
        where="region",
        unit=ROW,
        came_fitted=came_fitted,
    )


@pytest.mark.parametrize("kind", [Kind.BINARY, Kind.REGRESSION])
def test_a_linear_F_fitted_again_is_seldom_flagged_on_a_region(kind):
    flags = []
    for draw in range(40):
        F, Z, y, Z_test, y_test, w = fitted(kind, np.random.default_rng(draw))
        twins, _ = refit_baseline(F, Z, y, 3, draw, ("draw",))
        again = np.column_stack(
            [row_losses.row_loss(y_test, t.predict(Z_test)) for t in twins]
        )
        loss = row_losses.row_loss(y_test, F.predict(Z_test))
        flags.append(not null_of(again, loss, weights=w).passed)
    assert np.mean(flags) <= 0.15  # 5 %, and three standard errors of 40 draws


def test_rounding_is_no_win():
    # the same fit again, its losses off by one bit in one direction, in six folds
    F = np.random.default_rng(0).random(120) + 0.1
    twins = np.column_stack([np.nextafter(F, 0)] * 3)
    found = null_of(twins, F, folds=6)
    assert (found.value, found.passed) == (0.0, True)
    assert "win 0 and lose 0 of 18" in found.text


def test_twins_differ_from_each_other_and_come_again():
    forest = {"model": "random_forest", "params": {"n_estimators": 5}}
    F, Z, y, Z_test, *_ = fitted(Kind.BINARY, np.random.default_rng(0), **forest)
    twins, reason = refit_baseline(F, Z, y, 3, 1, ("task", 0))
    again, _ = refit_baseline(F, Z, y, 3, 1, ("task", 0))
    assert (len(twins), reason) == (3, "")
    outputs = [twin.predict(Z_test) for twin in twins]
    assert not np.array_equal(outputs[0], outputs[1])
    for output, twin in zip(outputs, again, strict=True):
        assert np.array_equal(output, twin.predict(Z_test))


def test_refit_rows_hold_every_class_where_they_can():
    y = np.zeros(50, dtype=int)
    y[:2] = 1
    rng = np.random.default_rng(0)
    drawn = [refit_rows(y, 2, rng) for _ in range(20)]
    assert all(len(rows) == NULL_SHARE * 50 for rows in drawn)
    assert all(y[rows].any() for rows in drawn)


def test_one_unlucky_F_for_all_folds_is_no_finding_by_fold():
    rng = np.random.default_rng(0)
    rows, folds, refits = 600, 6, 5
    loss = rng.random(rows) + 0.2
    # twins scatter by .02 between fits; F itself was unlucky by .01, in every fold the same
    luck = rng.normal(0, 0.02, (folds, refits))
    luck -= luck.mean(axis=1, keepdims=True)
    noise = rng.normal(0, 0.02, (rows, refits))
    twins = loss[:, None] - 0.01 + luck[np.arange(rows) % folds] + noise
    fitted_here = null_of(twins, loss, folds=folds)
    came_fitted = null_of(twins, loss, folds=folds, came_fitted=True)
    assert (fitted_here.passed, came_fitted.passed) == (False, True)
    assert came_fitted.value > fitted_here.value
    assert "on this table's training rows" in came_fitted.text
    assert "mean difference -0.0" in came_fitted.text
    # yet clones that are better by far more than fits scatter are told of
    assert not null_of(twins - 0.1, loss, folds=folds, came_fitted=True).passed
