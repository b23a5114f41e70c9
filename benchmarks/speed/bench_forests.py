"""A forest's predictions by our short way and by scikit-learn's own ``predict``."""

from __future__ import annotations

import pytest

from amlb_ext.hardening.baseline import forests
from benchmarks.speed.problems import search_problem

ROWS = (500, 10_000)


@pytest.mark.parametrize("role", ["ours", "scikit-learn"])
@pytest.mark.parametrize("rows", ROWS)
def test_forest(benchmark, rows, role):
    asked = search_problem("random forest 200x3", 1)
    Z = asked.bad.repeat(rows, axis=0)
    predict = forests.predict if role == "ours" else type(asked.model).predict
    benchmark.group = f"forest 200x3, predict {rows:,} rows"
    benchmark.extra_info.update(role=role)
    benchmark.pedantic(predict, (asked.model, Z), rounds=15, warmup_rounds=2)
