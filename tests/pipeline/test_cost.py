"""What a run is said to cost before it begins. Counts, never times."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.core.tables import make_task
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.split import split_task
from amlb_ext.pipeline import cost


def task_of(rows, config, classes=2):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((rows, 3)), columns=list("abc"))
    table["y"] = rng.integers(0, classes, rows).astype(str)
    return split_task(make_task(table, "y", name="t"), config.split, config.seed)


@pytest.fixture
def fitted(monkeypatch):
    """Rows of each fit of F."""
    rows = []
    fit = EstimatorBaseline.fit

    def counted(self, Z, y, seed):
        rows.append(len(y))
        return fit(self, Z, y, seed)

    monkeypatch.setattr(EstimatorBaseline, "fit", counted)
    return rows


def test_f_is_fitted_on_two_samples_of_the_largest_task(fitted):
    config = build_config({"baseline": {"model": "ridge"}})
    small, large = task_of(100, config), task_of(400, config)
    text = cost.cost_text([small, large], config)
    assert fitted == [80, 320]
    assert text.startswith("10 folds, the largest with 320 training rows")
    assert text.endswith("cheaper: --folds 1, --certificate none")


def test_samples_stay_small_where_rows_columns_or_classes_are_many(monkeypatch, fitted):
    config = build_config({"baseline": {"model": "ridge"}})
    monkeypatch.setattr(cost, "FEWEST_ROWS", 50)
    monkeypatch.setattr(cost, "MOST_CELLS", 600)
    cost.cost_text([task_of(2000, config, classes=4)], config)
    assert fitted == [25, 100]


def test_an_f_whose_answers_cost_is_not_asked(fitted):
    config = build_config({"baseline": {"model": "ridge", "ask_at_most": 5000}})
    assert cost.probe(task_of(200, config), config, 160).baseline == 0
    assert not fitted


@pytest.mark.parametrize(
    ("classes", "quicker"), [(3, cost.QUICKER), (160, cost.QUICKER_OF_MANY)]
)
def test_a_quicker_f_is_named_where_the_fits_are_dear(monkeypatch, classes, quicker):
    config = build_config({"baseline": {"model": "ridge"}})
    dear = cost.Cost(baseline=100.0, oracle=1.0, gb=50.0)
    monkeypatch.setattr(cost, "probe", lambda *given: dear)
    text = cost.cost_text([task_of(1600, config, classes=classes)], config)
    assert "50 GB of memory" in text
    assert f"cheaper: --baseline {quicker}" in text
