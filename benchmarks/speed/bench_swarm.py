"""An iteration of a swarm, all of its particles in one predict, beside one predict for each.

OMP_NUM_THREADS=1 python -m pytest benchmarks/speed/bench_swarm.py --benchmark-json=raw.json \
  --benchmark-timer=time.process_time

Both sides draw
the same rows and give the same values.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from amlb_ext.synthesizers.swarm.arena import Arena
from benchmarks.studies.swarms.choices import SwarmChoice
from benchmarks.studies.swarms.prepare import prepare_draw

#: Particles, as ``--synthesizer swarm`` has them.
PARTICLES = 8


@cache
def make_arena() -> Arena:
    """Return a draw with takers, teacher and short-trained generators."""
    # how well the generators are trained does not change what they cost
    choice = SwarmChoice(generators=PARTICLES, steps=10, base_steps=50)
    prepared = prepare_draw(None, "interaction", 0, choice, user=False)
    return prepared.arena.settle("honest", choice, {"difficult": 1.0})


def one_predict(arena: Arena, points: np.ndarray) -> np.ndarray:
    return arena.values(points @ arena.space.initial)


def one_predict_each(arena: Arena, points: np.ndarray) -> np.ndarray:
    return np.concatenate([one_predict(arena, point[None]) for point in points])


@pytest.mark.parametrize("role", ["ours", "one predict each"])
def test_iteration(benchmark, role):
    arena = make_arena()
    points = np.eye(PARTICLES)
    ask = one_predict if role == "ours" else one_predict_each
    assert np.array_equal(ask(arena, points), one_predict(arena, points))
    benchmark.group = f"swarm, {PARTICLES} particles of {arena.n_rows} rows"
    benchmark.extra_info.update(role=role)
    benchmark.pedantic(ask, (arena, points), rounds=15, warmup_rounds=2)
