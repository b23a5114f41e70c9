import numpy as np
import pytest

from amlb_ext.core.config import SearchConfig
from amlb_ext.hardening.deap_engine import search_deap
from amlb_ext.hardening.genetic import fitness, make_domain, search
from amlb_ext.hardening.operators import cross, distance, mutate, tournament

D, M = 8, 2


@pytest.fixture
def world():
    """A linear F over two categorical and six numeric columns, one with missing values."""
    rng = np.random.default_rng(3)
    Z = np.column_stack([rng.integers(0, 4, (300, M)), rng.random((300, D - M))])
    Z[::17, 5] = np.nan
    coefficients = rng.normal(size=D) / 3

    def predict(rows):
        return np.nan_to_num(rows) @ coefficients

    y = predict(Z) + 0.1 * rng.normal(size=300)
    return Z, y, predict, make_domain(Z, Z, y, 0, M)


def settings(**changes):
    base = {"population": 12, "generations": 6, "kappa": 0.5, "strength": 0.1}
    return SearchConfig(**(base | {"categoricals": "free", "start": "unique"} | changes))


def test_distance_counts_categories_and_missing_once():
    bad = np.array([[1.0, 2.0, 0.5, np.nan]])
    P = np.array([[[1.0, 0.0, 0.5, np.nan], [1.0, 2.0, np.nan, 0.3], [1.0, 2.0, 0.0, np.nan]]])
    # one category differs: 1/4; two one-sided missing: 2/4; .5^2 / 4
    np.testing.assert_allclose(distance(P, bad, 2), [[0.25, 0.5, 0.0625]])


def test_tournament_prefers_the_fittest():
    f = np.array([[0.0, 1.0, 2.0, 3.0]])
    u = np.array([[[0.0, 0.3, 0.99], [0.0, 0.0, 0.3], [0.0, 0.0, 0.0], [0.5, 0.3, 0.0]]])
    # drawn: (0, 1, 3), (0, 0, 1), (0, 0, 0), (2, 1, 0)
    assert tournament(f, u).tolist() == [[3, 1, 0, 2]]


def test_zero_rates_return_the_parents(world):
    Z, _, _, domain = world
    rng = np.random.default_rng(0)
    P = Z[:10].reshape(2, 5, D)
    same = cross(P, rng.random((2, 2)), rng.random((2, 2, D)), 0.0, M)
    np.testing.assert_array_equal(same, P)
    u = rng.random((2, 5, D))
    still = mutate(P, u, u, np.ones((2, D)), domain.pools, 0.0, 0.1, M, False)
    np.testing.assert_array_equal(still, P)


def test_crossing_keeps_sums_and_never_invents_missing(world):
    Z, _, _, _ = world
    rng = np.random.default_rng(0)
    P = Z[:20].reshape(2, 10, D)
    C = cross(P, rng.random((2, 5)), rng.random((2, 5, D)), 1.0, M)
    # blend: w a + (1 - w) b and its mirror add up to a + b; a swap does too
    np.testing.assert_allclose(
        np.nansum(C[:, 0::2] + C[:, 1::2], axis=1), np.nansum(P[:, 0::2] + P[:, 1::2], axis=1)
    )
    assert np.isnan(C).sum() == np.isnan(P).sum()


def test_mutation_moves_numbers_only_in_their_direction(world):
    Z, _, _, domain = world
    rng = np.random.default_rng(0)
    P = Z[:40].reshape(4, 10, D)
    direction = np.where(rng.random((4, D)) < 0.5, 1.0, -1.0)
    u = rng.random((4, 10, D))
    C = mutate(P, u, rng.random((4, 10, D)), direction, domain.pools, 0.5, 0.1, M, True)
    moved = (C - P)[..., M:] * direction[:, None, M:]
    assert np.nanmin(moved) >= 0
    np.testing.assert_array_equal(C[..., :M], P[..., :M])
    np.testing.assert_array_equal(np.isnan(C), np.isnan(P))


def test_classification_fitness_pushes_every_class():
    # the row's own class loses probability from left to right: fitness must rise, for both
    f = np.array([[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]])
    P, bad = np.zeros((1, 3, 1)), np.zeros((1, 1))
    assert np.all(np.diff(fitness(f, np.array([0]), P, bad, 1.0, 0)[0]) > 0)
    assert np.all(np.diff(fitness(f[:, ::-1], np.array([1]), P, bad, 1.0, 0)[0]) > 0)


def test_no_steps_near_a_point_returns_something_as_fit(world):
    Z, y, predict, domain = world
    best, value = search(
        predict, Z[:5], y[:5], domain, settings(generations=0, start="near", kappa=0.0), 1
    )
    # with kappa 0 the bad point itself is the optimum, and it is in the first population
    np.testing.assert_array_equal(best, Z[:5])
    np.testing.assert_array_equal(value, np.zeros(5))


@pytest.mark.parametrize("start", ["near", "unique"])
def test_result_does_not_depend_on_chunks_or_neighbours(world, start):
    Z, y, predict, domain = world
    whole, _ = search(predict, Z[:9], y[:9], domain, settings(start=start), 5)
    chunked, _ = search(predict, Z[:9], y[:9], domain, settings(start=start, chunk_rows=25), 5)
    np.testing.assert_array_equal(whole, chunked)
    alone, _ = search(predict, Z[:1], y[:1], domain, settings(start=start), 5)
    np.testing.assert_array_equal(whole[:1], alone)


def test_search_stays_in_the_domain_and_improves(world):
    Z, y, predict, domain = world
    bad = Z[:30]
    best, value = search(predict, bad, y[:30], domain, settings(), 2)
    f = predict(bad)[:, None]
    start = fitness(f, y[:30], bad[:, None, :], bad, 0.5, M)[:, 0]
    assert np.all(value >= start)
    assert value.mean() > start.mean() + 0.01
    assert np.nanmin(best[:, M:] - domain.low[M:]) >= 0
    assert np.nanmin(domain.high[M:] - best[:, M:]) >= 0
    assert set(np.unique(best[:, :M])) <= {0.0, 1.0, 2.0, 3.0}


def test_frozen_categories_never_change(world):
    Z, y, predict, domain = world
    for start in ("near", "unique"):
        best, _ = search(
            predict, Z[:10], y[:10], domain, settings(categoricals="frozen", start=start), 2
        )
        np.testing.assert_array_equal(best[:, :M], Z[:10, :M])


def test_both_engines_search_equally_well(world):
    """d = 8: the mean fitness found differs by less than a tenth of what the search gains."""
    Z, y, predict, domain = world
    bad, target = Z[:24], y[:24]
    config = settings(population=20, generations=15)
    _, batched = search(predict, bad, target, domain, config, 7)
    _, reference = search_deap(predict, bad, target, domain, config, 7)
    start = fitness(predict(bad)[:, None], target, bad[:, None, :], bad, 0.5, M)[:, 0]
    gain = (reference - start).mean()
    assert gain > 0.02
    assert abs((batched - reference).mean()) < 0.1 * gain


def test_reducible_fitness_climbs_where_the_oracle_departs(world):
    """T = F + x_7: the search must raise x_7, whatever the label says."""
    Z, y, predict, domain = world

    def oracle(rows):
        return predict(rows) + rows[:, 7]

    bad = Z[(Z[:, 7] < 0.5)][:10]
    config = settings(kappa=1.0, start="near", generations=10)
    best, value = search(predict, bad, y[:10], domain, config, 3, oracle)
    # L = x_7^2 - distance at the optimum; where direction_7 is downwards it cannot move up
    np.testing.assert_allclose(
        value, best[:, 7] ** 2 - distance(best[:, None, :], bad, M)[:, 0], atol=1e-9
    )
    assert best[:, 7].mean() > bad[:, 7].mean() + 0.05
    for_deap = search_deap(predict, bad, y[:10], domain, config, 3, oracle)[1]
    assert abs(for_deap.mean() - value.mean()) < 0.25 * value.mean()


def test_deap_engine_gives_the_global_stream_back(world):
    import random

    Z, y, predict, domain = world
    random.seed(1)
    expected = random.random()
    random.seed(1)
    search_deap(predict, Z[:1], y[:1], domain, settings(population=4, generations=1), 7)
    assert random.random() == expected
