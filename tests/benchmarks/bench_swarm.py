"""An iteration of a swarm, all of its particles in one predict, beside one predict for each.

OMP_NUM_THREADS=1 python -m pytest tests/benchmarks/bench_swarm.py --benchmark-json=raw.json \
  --benchmark-timer=time.process_time

Both sides draw
the same rows and give the same values.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from amlb_ext.core.config import SplitConfig
from amlb_ext.hardening.split import split_task
from amlb_ext.swarm.arena import Arena
from amlb_ext.swarm.initial import InitialSettings
from amlb_ext.swarm.prepare import SwarmRequest, prepare_swarm
from benchmarks.studies.swarms.populations import draw_task

#: Particles, and rows of each, as ``hardsynth swarm`` has them.
PARTICLES = 8


@cache
def make_arena() -> Arena:
    """Return a fold with takers, teacher and short-trained generators."""
    task = split_task(draw_task("interaction", seed=1), SplitConfig(folds=1), 1)
    # how well the generators are trained does not change what they cost
    initial = InitialSettings(
        n_generators=PARTICLES, steps=10, base_steps=50, device="cpu"
    )
    # nor does whether there is anything to find for them
    request = SwarmRequest(initial=initial, anyway=True)
    return prepare_swarm(task, 0, request).arena


def one_predict(arena: Arena, points: np.ndarray) -> np.ndarray:
    return arena.values(points)


def one_predict_each(arena: Arena, points: np.ndarray) -> np.ndarray:
    return np.concatenate([arena.values(point[None]) for point in points])


@pytest.mark.parametrize("role", ["ours", "one predict each"])
def test_iteration(benchmark, role):
    arena = make_arena()
    points = np.eye(PARTICLES)
    ask = one_predict if role == "ours" else one_predict_each
    assert np.array_equal(ask(arena, points), one_predict(arena, points))
    benchmark.group = f"swarm, {PARTICLES} particles of {arena.n_rows} rows"
    benchmark.extra_info.update(role=role)
    benchmark.pedantic(ask, (arena, points), rounds=15, warmup_rounds=2)
