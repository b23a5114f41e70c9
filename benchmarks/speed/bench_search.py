"""The genetic search beside F's own ``predict`` and beside textbook DEAP, in one run.

OMP_NUM_THREADS=1 python -m pytest benchmarks/speed/bench_search.py --benchmark-json=raw.json \
  --benchmark-timer=time.process_time

Processor time: with one thread that is the time the machine was really given. What is measured
beside is taken by the same clock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import tracemalloc
from functools import partial

import numpy as np
import pytest

from amlb_ext.hardening.search import genetic_search
from amlb_ext.hardening.search.deap_engine import genetic_search_deap
from benchmarks.speed.problems import MODELS, Search, search_problem

POINTS = 200
#: Bad points that DEAP is given; its cost is linear in them, so the rest is arithmetic.
DEAP_POINTS = {
    "ridge": 4,
    "logistic regression": 4,
    "gradient boosting 100x3": 2,
    "random forest 200x3": 1,
}
#: Rows drawn at once, about as many as the search has in hand.
DRAWN = 800
#: Rounds of a search: neighbours on the machine disturb the shortest most.
ROUNDS = {"ridge": 21, "logistic regression": 21}


@pytest.fixture(params=list(MODELS), scope="module")
def problem(request: pytest.FixtureRequest) -> tuple[str, Search]:
    return request.param, search_problem(request.param, POINTS)


def only_predict(asked: Search, calls: list[np.ndarray]) -> None:
    """Predict the rows that the search asked for: copies of one row take trees half the time."""
    for rows in calls:
        asked.own_predict(rows)


def only_draw(rows: int) -> None:
    """Draw twelve 16-bit words a row, as the search does: so much of its time is drawing."""
    generator = np.random.Generator(np.random.SFC64(0))
    for _ in range(0, rows, DRAWN):
        generator.integers(0, 2**16, (DRAWN, 12), dtype=np.uint16)


class OwnCalls:
    """Counts calls of functions, but those within F's predictions, while it is the profiler."""

    def __init__(self, asked: Search) -> None:
        self.asked = asked
        self.count = 0

    def __call__(self, frame: object, event: str, argument: object) -> None:
        """Count one more call."""
        if event in ("call", "c_call"):
            self.count += 1

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Ask F, uncounted."""
        sys.setprofile(None)
        try:
            return self.asked.predict(Z)
        finally:
            sys.setprofile(self)


def count_own_work(asked: Search) -> dict[str, float]:
    """Return what a search takes on any machine: calls beyond predict, and bytes at its peak."""
    settings = {"domain": asked.domain, "config": asked.config, "seed": 1}
    own = OwnCalls(asked)
    sys.setprofile(own)
    try:
        genetic_search(own.predict, asked.bad, asked.y, **settings)
    finally:
        sys.setprofile(None)
    tracemalloc.start()
    genetic_search(asked.predict, asked.bad, asked.y, **settings)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    population = asked.bad.nbytes * asked.config.operators.population
    return {"own_calls": own.count, "bytes": peak, "population_bytes": population}


def test_batched(benchmark, problem):
    """The search; before each round, so that a busy moment meets all, what it is measured by."""
    name, asked = problem
    others = {"predict": partial(only_predict, asked, asked.asked())}
    if name in ROUNDS:  # where predict takes next to nothing
        others["drawing"] = partial(only_draw, asked.rows)
    beside: dict[str, list[float]] = {role: [] for role in others}

    def measure_beside() -> None:
        for role, other in others.items():
            start = time.process_time()
            other()
            beside[role].append(time.process_time() - start)

    benchmark.group = f"search, {name}"
    benchmark.pedantic(
        genetic_search,
        (asked.predict, asked.bad, asked.y),
        {"domain": asked.domain, "config": asked.config, "seed": 1},
        setup=measure_beside,
        rounds=ROUNDS.get(name, 9),
        warmup_rounds=1,
    )
    medians = {role: float(np.median(seconds)) for role, seconds in beside.items()}
    counts = count_own_work(asked) if name in ROUNDS else {}
    benchmark.extra_info.update(role="ours", rows=asked.rows, **medians, **counts)


@pytest.mark.parametrize("name", list(DEAP_POINTS))
def test_textbook_deap(benchmark, name):
    few = search_problem(name, DEAP_POINTS[name])
    benchmark.group = f"search, {name}"
    benchmark.extra_info.update(role="deap", scale=POINTS / DEAP_POINTS[name])
    benchmark.pedantic(
        genetic_search_deap,
        (few.own_predict, few.bad, few.y),
        {"domain": few.domain, "config": few.config, "seed": 1},
        rounds=3 if name in ROUNDS else 1,
    )


@pytest.mark.parametrize("name", ["ridge", "histogram boosting 100"])
def test_memory_of_50_000_points(name):
    """50,000 points x 50 individuals x 16 columns stay within 1 GB, in a process of their own."""
    code = (
        "from benchmarks.speed.memory_peak import peak_mb\n"
        "from benchmarks.speed.problems import search_problem\n"
        "from amlb_ext.hardening.search import genetic_search\n"
        f"a = search_problem({name!r}, 50_000, generations=1)\n"
        "before = peak_mb()\n"
        "genetic_search(a.predict, a.bad, a.y, domain=a.domain, config=a.config, seed=1)\n"
        "print(before / 1024, peak_mb() / 1024)"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    before, peak = map(float, done.stdout.split())
    print(f"{name}: peak {peak:.2f} GiB, {before:.2f} before the search")
    assert peak < 1
