"""The swarm never leaves the hull of its start, in coefficients and in weights alike."""

import numpy as np
import pytest

from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers.swarm.particles import (
    CmaSearch,
    CodeSwarm,
    PaperSwarm,
    RandomSoups,
    SwarmSettings,
)

N, D = 8, 300
RNG = np.random.default_rng(0)
THETA = RNG.standard_normal((N, D))
GOAL = RNG.standard_normal(D)
SWARMS = [PaperSwarm, CodeSwarm]


def value_of(points):
    return -((points - GOAL) ** 2).sum(axis=1)


def run_search(search, f):
    visited = []
    while len(batch := search.ask()):
        visited.append(batch)
        search.tell(f(batch))
    return np.concatenate(visited)


@pytest.mark.parametrize("swarm_class", SWARMS)
def test_no_point_leaves_the_hull(swarm_class):
    visited = run_search(swarm_class(THETA, np.random.default_rng(1)), value_of)
    assert len(visited) > 5 * N
    singular = np.linalg.svd(visited - THETA[0], compute_uv=False)
    assert (singular > 1e-9 * singular[0]).sum() <= N - 1


@pytest.mark.parametrize("swarm_class", SWARMS)
def test_weights_and_coefficients_are_one_search(swarm_class):
    weights = run_search(swarm_class(THETA, np.random.default_rng(1)), value_of)
    coefficients = run_search(
        swarm_class(np.eye(N), np.random.default_rng(1)), lambda c: value_of(c @ THETA)
    )
    assert np.abs(coefficients.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(weights - coefficients @ THETA).max() < 1e-10


def test_step_zero_returns_the_start():
    settings = SwarmSettings(step=0.0)
    swarm = PaperSwarm(np.eye(N), np.random.default_rng(0), settings)
    visited = run_search(swarm, lambda c: value_of(c @ THETA))
    assert np.array_equal(visited[-N:], np.eye(N))
    best = value_of(THETA).argmax()
    assert np.array_equal(swarm.best, np.eye(N)[best])
    # patience: the start and five iterations without a gain
    assert len(visited) == N * (1 + settings.patience)


@pytest.mark.parametrize("search_class", [RandomSoups, CmaSearch])
def test_rivals_keep_the_sum_the_budget_and_the_corners(search_class):
    search = search_class(N, np.random.default_rng(0), evaluations=5 * N)
    visited = run_search(search, lambda c: value_of(c @ THETA))
    assert len(visited) == 5 * N
    assert np.array_equal(visited[:N], np.eye(N))
    assert np.abs(visited.sum(axis=1) - 1).max() < 1e-12


def test_cma_climbs_and_leaves_the_global_stream_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    search = CmaSearch(N, np.random.default_rng(0), evaluations=40 * N)
    visited = run_search(search, lambda c: value_of(c @ THETA))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert value_of(visited[-N:] @ THETA).max() > value_of(THETA).max()


def test_two_generators_are_refused():
    with pytest.raises(
        ConfigError, match="2 initial generators, a swarm needs 3 or more"
    ):
        PaperSwarm(np.eye(2), np.random.default_rng(0))


def test_a_random_number_per_coordinate_would_leave_the_hull():
    """The check can fail: the usual swarm, with its random vectors, does."""

    class Usual(PaperSwarm):
        def _move_particle(self, i):
            pull = self.rng.random((2, D)) * 1.5
            towards = np.stack([self.p[i] - self.x[i], self.best - self.x[i]])
            self.v[i] = 0.7 * self.v[i] + (pull * towards).sum(axis=0)
            self.x[i] = self.x[i] + self.v[i]

    visited = run_search(Usual(THETA, np.random.default_rng(1)), value_of)
    assert np.linalg.matrix_rank(visited - THETA[0]) > 2 * N
