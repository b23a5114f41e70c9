"""How often F is asked in one fold, and about how many rows: counts, the same on every machine.

An F that declares what its rows cost, as models in context and services do, against one that does
not; see :mod:`calls`.
"""

from __future__ import annotations

import pytest

from benchmarks.speed.calls import COLUMNS, ROWS, count
from benchmarks.speed.whole import simulate


@pytest.mark.parametrize("asked_at_most", [None, 100_000])
def test_calls(benchmark, asked_at_most):
    found = {}

    def once():
        table = simulate(ROWS, COLUMNS, "binary", seed=0)
        baseline = {"ask_at_most": asked_at_most} if asked_at_most else {}
        found.update(count(table, "y", {"baseline": baseline}))

    limit = f"{asked_at_most:,} rows at most" if asked_at_most else "no limit"
    benchmark.group = f"calls of F, {limit}"
    benchmark.pedantic(once, rounds=1)
    benchmark.extra_info.update(
        role="ours", calls=found["calls"], asked_rows=found["rows"]
    )
