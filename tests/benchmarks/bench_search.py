"""The genetic search beside F's own ``predict`` and beside textbook DEAP, in one run.

OMP_NUM_THREADS=1 python -m pytest tests/benchmarks/bench_search.py --benchmark-json=raw.json
"""

from __future__ import annotations

import numpy as np
import pytest
from problems import MODELS, Search, search_problem

from amlb_ext.hardening.deap_engine import search_deap
from amlb_ext.hardening.genetic import search

POINTS = 200
#: Bad points that DEAP is given; its cost is linear in them, so the rest is arithmetic.
DEAP_POINTS = {"ridge": 4, "gradient boosting 100x3": 2, "random forest 200x3": 1}


@pytest.fixture(params=list(MODELS), scope="module")
def problem(request: pytest.FixtureRequest) -> tuple[str, Search]:
    return request.param, search_problem(request.param, POINTS)


def only_predict(asked: Search) -> None:
    """Predict as many rows as the search does, in as many calls."""
    rows = np.repeat(asked.bad, asked.config.population, axis=0)
    for _ in range(asked.config.generations + 1):
        asked.predict(rows)


def test_batched(benchmark, problem):
    name, asked = problem
    benchmark.group = f"search, {name}"
    benchmark.extra_info.update(role="ours", rows=asked.rows)
    benchmark.pedantic(
        search,
        (asked.predict, asked.bad, asked.y, asked.domain, asked.config, 1),
        rounds=7,
        warmup_rounds=1,
    )


def test_predict_alone(benchmark, problem):
    name, asked = problem
    benchmark.group = f"search, {name}"
    benchmark.extra_info.update(role="predict", rows=asked.rows)
    benchmark.pedantic(only_predict, (asked,), rounds=7, warmup_rounds=1)


@pytest.mark.parametrize("name", list(DEAP_POINTS))
def test_textbook_deap(benchmark, name):
    few = search_problem(name, DEAP_POINTS[name])
    benchmark.group = f"search, {name}"
    benchmark.extra_info.update(role="deap", scale=POINTS / DEAP_POINTS[name])
    benchmark.pedantic(
        search_deap,
        (few.predict, few.bad, few.y, few.domain, few.config, 1),
        rounds=1 if name != "ridge" else 3,
    )
