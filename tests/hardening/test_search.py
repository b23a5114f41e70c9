import numpy as np
import pytest

from amlb_ext.core.config import Operators, SearchConfig
from amlb_ext.hardening.search import Domain, genetic_search, learn_domain
from amlb_ext.hardening.search.deap_engine import genetic_search_deap
from amlb_ext.hardening.search.domain import distance_term, fitness, linear_slopes
from amlb_ext.hardening.search.operators import (
    Genes,
    RandomWords,
    cross_over,
    mutate_categories,
    mutate_numbers,
    mutation_steps,
    points_in_block,
    tournament,
)

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
    return Z, y, predict, learn_domain(Z, Z, y, n_classes=0, n_categorical=M)


def settings(**changes):
    operators = {"strength": 0.1, "categoricals": "free", "start": "unique"}
    operators |= {"population": 12, "generations": 6}
    for name in set(changes) & set(Operators.model_fields):
        operators[name] = changes.pop(name)
    return SearchConfig(**({"kappa": 0.5} | changes), operators=operators)


def bits(kind, *shape):
    return np.random.default_rng(0).integers(0, 2**kind, shape, dtype=f"uint{kind}")


def unit_genes(pools, n_categorical, n):
    """Columns between 0 and 1, prepared for n points."""
    d = len(pools)
    domain = Domain(
        pools=pools,
        low=np.zeros(d),
        high=np.ones(d),
        omega=np.zeros((1, d)),
        n_categorical=n_categorical,
        frozen=np.zeros(d, dtype=bool),
    )
    return Genes.of(domain, n)


def search(world, n=None, *, engine=genetic_search, seed=1, **more):
    """Search from the first n points; what is not a name of the engine is a setting."""
    Z, y, predict, domain = world
    given = {"predict": predict, "bad": Z[:n], "y": y[:n], "oracle": None}
    for name in set(given) & set(more):
        given[name] = more.pop(name)
    return engine(**given, domain=domain, config=settings(**more), seed=seed)


def test_distance_counts_categories_and_missing_once():
    bad = np.array([[1.0, 2.0, 0.5, np.nan]])
    P = np.array(
        [
            [[1.0, 0.0, 0.5, np.nan]],
            [[1.0, 2.0, np.nan, 0.3]],
            [[1.0, 2.0, 0.0, np.nan]],
        ]
    )
    # one category differs: 1/4; two one-sided missing: 2/4; .5^2 / 4
    np.testing.assert_allclose(distance_term(P, bad, 2), [[0.25], [0.5], [0.0625]])
    # without categories and missing numbers: (2^2 + .5^2) / 3
    assert distance_term(P[:1, :, :3], np.array([[1.0, 2.0, 0.0]]), 0).tolist() == [
        [4.25 / 3]
    ]


def test_tournament_prefers_the_fittest():
    f = np.array([[0.0], [1.0], [2.0], [3.0]])
    u = np.array([[0.0, 0.3, 0.99], [0.0, 0.0, 0.3], [0.0, 0.0, 0.0], [0.5, 0.3, 0.0]])
    u = (u.T[:, :, None] * 2**32).astype(np.uint32)
    # drawn: (0, 1, 3), (0, 0, 1), (0, 0, 0), (2, 1, 0)
    assert tournament(f, u).tolist() == [[3], [1], [0], [2]]


def test_zero_rates_return_the_parents(world):
    Z, _, _, domain = world
    P = Z[:10].reshape(5, 2, D)
    same = P.copy()
    cross_over(
        same,
        bits(16, 2, 2),
        bits(16, 2, 2, D),
        rate=0.0,
        genes=Genes.of(domain, 2),
        mixes_missing=True,
    )
    np.testing.assert_array_equal(same, P)
    mutate_numbers(
        same, bits(16, 5, 2, D), steps=mutation_steps(0.0), direction=np.ones((2, D))
    )
    mutate_categories(same, bits(32, 5, 2, M), rate=0.0, genes=Genes.of(domain, 2))
    np.testing.assert_array_equal(same, P)


@pytest.mark.parametrize(
    "rows", [slice(0, 20), slice(1, 17)], ids=["missing", "complete"]
)
def test_crossing_keeps_sums_and_never_invents_missing(world, rows):
    Z, _, _, domain = world
    P = Z[rows].reshape(-1, 2, D)
    pairs, missing = len(P) // 2, bool(np.isnan(P).any())
    assert missing == (rows.start == 0)
    C = P.copy()
    genes = Genes.of(domain, 2)
    cross_over(
        C,
        bits(16, pairs, 2),
        bits(16, pairs, 2, D),
        rate=1.0,
        genes=genes,
        mixes_missing=missing,
    )
    # blend: w a + (1 - w) b and its mirror add up to a + b; a swap does too
    np.testing.assert_allclose(
        np.nansum([C[:pairs], C[pairs:]], axis=0),
        np.nansum([P[:pairs], P[pairs:]], axis=0),
    )
    assert np.isnan(C).sum() == np.isnan(P).sum()
    # categories are one parent's or the other's, and some were swapped
    kept, swapped = C[..., :M] == P[..., :M], C[:pairs, :, :M] == P[pairs:, :, :M]
    assert np.all(kept[:pairs] | swapped)
    assert not kept.all()


def test_a_missing_number_is_swapped_for_the_others_value():
    P = np.array([[[np.nan, 0.2]], [[0.7, np.nan]]])
    pools = [np.array([0.0, 1.0])] * 2
    genes = unit_genes(pools, 0, 1)
    u = np.array([[[2**16 - 1, 0]]], dtype=np.uint16)  # weight 1.5: swap; -.5: stay
    cross_over(
        P, np.zeros((1, 1), np.uint16), u, rate=1.0, genes=genes, mixes_missing=True
    )
    np.testing.assert_array_equal(P, [[[0.7, 0.2]], [[np.nan, np.nan]]])


def test_blend_weights_are_uniform_in_their_range():
    """Parents 0 and 1: the first child is the weight itself, U(-.5, 1.5), with a mean of .5."""
    n = 20_000
    P = np.stack([np.zeros((n, 1)), np.ones((n, 1))])
    genes = unit_genes([np.zeros(1)], 0, n)
    cross_over(
        P, bits(16, 1, n), bits(16, 1, n, 1), rate=1.0, genes=genes, mixes_missing=False
    )
    weight = P[0, :, 0]
    assert -0.5 < weight.min() < -0.499
    assert 1.499 < weight.max() < 1.5
    # the variance of U(-.5, 1.5) is 2^2 / 12; standard errors: .58 / sqrt(n) = .004, .002
    assert abs(weight.mean() - 0.5) < 0.012
    assert abs(weight.var() - 1 / 3) < 0.006


@pytest.mark.parametrize("rate", [0.025, 0.2, 1.0])
def test_mutation_steps_are_half_normal_at_their_rate(rate):
    steps = mutation_steps(rate)
    moved = steps[steps > 0]
    assert abs(len(moved) / len(steps) - rate) <= 1 / 65_536
    # |N(0, 1)| has the mean sqrt(2 / pi) and the mean square 1; with 1,638 steps .5 % lack of it
    np.testing.assert_allclose(moved.mean(), np.sqrt(2 / np.pi), rtol=1e-3)
    np.testing.assert_allclose((moved**2).mean(), 1.0, rtol=6e-3)


def test_category_mutation_draws_evenly_from_the_whole_pool():
    """More values than 16 bits tell apart: every tenth of the pool gets a tenth of the draws."""
    pool = np.arange(200_000.0)
    genes = unit_genes([pool], 1, 50)
    P = np.full((400, 50, 1), -1.0)
    mutate_categories(P, bits(32, 400, 50, 1), rate=0.5, genes=genes)
    drawn = P[P >= 0]
    # 20,000 draws at 1/2: standard error 71
    assert abs(len(drawn) - 10_000) < 300
    # a tenth of 10,000: standard error 30
    assert (
        np.abs(np.histogram(drawn, 10, (0, 200_000))[0] - len(drawn) / 10).max() < 120
    )
    assert np.mean(drawn % 2 == 1) == pytest.approx(0.5, abs=0.02)


def test_draws_are_pinned():
    """The stream is part of a result: numpy 2.4.6, SFC64(derive_seed(1, "block", 0))."""
    assert RandomWords(1, 0).bits16(4).tolist() == [51703, 65060, 29815, 53421]
    assert RandomWords(1, 0).bits32(2).tolist() == [4263823863, 3501028471]


@pytest.mark.parametrize("start", ["near", "unique"])
@pytest.mark.parametrize("population", [12, 1500])
def test_result_does_not_depend_on_chunks_or_neighbours(
    world, start, population, monkeypatch
):
    more = {"start": start, "population": population, "generations": 2, "seed": 5}
    block = points_in_block(population, D)
    n = 2 * block + 3  # two full blocks and a part of one
    bad, y = np.resize(world[0], (n, D)), np.resize(world[1], n)
    whole, value = search(world, bad=bad, y=y, **more)
    for rows in (1, block * population, 2 * block * population + 1):
        monkeypatch.setattr("amlb_ext.hardening.search.search.CHUNK_ROWS", rows)
        chunked, same = search(world, bad=bad, y=y, **more)
        np.testing.assert_array_equal(whole, chunked)
        np.testing.assert_array_equal(value, same)
    for some in (1, block, block + 1):
        alone, _ = search(world, bad=bad[:some], y=y[:some], **more)
        np.testing.assert_array_equal(whole[:some], alone)


@pytest.mark.parametrize("population", [2, 3, 7])
def test_odd_and_small_populations_keep_the_best(world, population):
    values = [
        search(world, 9, population=population, generations=generations, seed=3)[1]
        for generations in (0, 1, 5, 10)
    ]
    # the same stream: more generations only add to what was found
    assert np.all(np.diff(values, axis=0) >= 0)


def test_search_stays_in_the_domain_and_improves(world):
    Z, y, predict, domain = world
    bad = Z[:30]
    best, value = search(world, 30, seed=2)
    f = predict(bad)[None]
    start = fitness(f, y[:30], bad[None], bad=bad, kappa=0.5, n_categorical=M)[0]
    assert np.all(value >= start)
    assert value.mean() > start.mean() + 0.01
    assert np.nanmin(best[:, M:] - domain.low[M:]) >= 0
    assert np.nanmin(domain.high[M:] - best[:, M:]) >= 0
    assert set(np.unique(best[:, :M])) <= {0.0, 1.0, 2.0, 3.0}


def test_frozen_categories_never_change(world):
    for start in ("near", "unique"):
        best, _ = search(world, 10, categoricals="frozen", start=start, seed=2)
        np.testing.assert_array_equal(best[:, :M], world[0][:10, :M])


@pytest.mark.exhaustive
def test_both_engines_search_equally_well(world):
    """d = 8: the mean fitness found differs by less than a tenth of what the search gains."""
    Z, y, predict, _ = world
    bad, target = np.repeat(Z[:24], 4, axis=0), np.repeat(y[:24], 4)
    more = {"bad": bad, "y": target, "population": 20, "generations": 15, "seed": 7}
    _, batched = search(world, **more)
    _, reference = search(world, engine=genetic_search_deap, **more)
    start = fitness(
        predict(bad)[None], target, bad[None], bad=bad, kappa=0.5, n_categorical=M
    )[0]
    gain = (reference - start).mean()
    assert gain > 0.02
    assert abs((batched - reference).mean()) < 0.1 * gain


def test_reducible_fitness_climbs_where_the_oracle_departs(world):
    """T = F + x_7: the search must raise x_7, whatever the label says."""
    Z, y, predict, _ = world

    def oracle(rows):
        return predict(rows) + rows[:, 7]

    # some points find one of two hills: each is searched ten times
    bad, target = np.repeat(Z[(Z[:, 7] < 0.5)][:10], 10, axis=0), np.repeat(y[:10], 10)
    more = {"bad": bad, "y": target, "oracle": oracle, "seed": 3}
    more |= {"kappa": 1.0, "start": "near", "generations": 10}
    best, value = search(world, **more)
    # L = x_7^2 - distance at the optimum; where direction_7 is downwards it cannot move up
    np.testing.assert_allclose(
        value, best[:, 7] ** 2 - distance_term(best[None], bad, M)[0], atol=1e-9
    )
    assert best[:, 7].mean() > bad[:, 7].mean() + 0.05
    _, for_deap = search(world, engine=genetic_search_deap, **more)
    assert abs(for_deap.mean() - value.mean()) < 0.25 * value.mean()


def test_deap_engine_gives_the_global_stream_back(world):
    import random

    random.seed(1)
    expected = random.random()
    random.seed(1)
    search(world, 1, engine=genetic_search_deap, population=4, generations=1, seed=7)
    assert random.random() == expected


def test_mutation_moves_numbers_only_in_their_direction(world):
    Z, _, _, _ = world
    rng = np.random.default_rng(0)
    P = Z[:40].reshape(10, 4, D)
    direction = np.where(rng.random((4, D)) < 0.5, 1.0, -1.0)
    direction[:, :M] = 0.0
    C = P.copy()
    mutate_numbers(
        C, bits(16, 10, 4, D), steps=mutation_steps(0.5), direction=0.1 * direction
    )
    moved = (C - P)[..., M:] * direction[:, M:]
    assert np.nanmin(moved) >= 0
    np.testing.assert_array_equal(C[..., :M], P[..., :M])
    np.testing.assert_array_equal(np.isnan(C), np.isnan(P))


def test_classification_fitness_pushes_every_class():
    # the row's own class loses probability from top to bottom: fitness must rise, for both
    f = np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.1, 0.9]]])
    P, bad = np.zeros((3, 1, 1)), np.zeros((1, 1))
    for label, p in ((0, f), (1, f[..., ::-1])):
        y = np.array([label])
        L = fitness(p, y, P, bad=bad, kappa=1.0, n_categorical=0)
        assert np.all(np.diff(L[:, 0]) > 0)


def test_no_steps_near_a_point_returns_something_as_fit(world):
    best, value = search(world, 5, generations=0, start="near", kappa=0.0)
    # with kappa 0 the bad point itself is the optimum, and it is in the first population
    np.testing.assert_array_equal(best, world[0][:5])
    np.testing.assert_array_equal(value, np.zeros(5))


def test_the_slopes_of_many_columns_are_those_of_least_squares(monkeypatch):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 60)) * 10.0 ** rng.integers(-3, 4, 60)
    Z[rng.random(Z.shape) < 0.02] = np.nan
    Z[:, 7] = 5.0  # a constant column has no slope
    y = np.nan_to_num(Z[:, 0] / np.nanstd(Z[:, 0])) + rng.normal(size=400)
    for targets, n_classes in ((y, 0), (np.digitize(y, (-0.5, 0.5)), 3)):
        few = linear_slopes(Z, targets, n_classes)
        with monkeypatch.context() as patch:
            patch.setattr("amlb_ext.hardening.search.domain.MANY_COLUMNS", 50)
            many = linear_slopes(Z, targets, n_classes)
        assert many.shape == few.shape
        # per spread of each column
        spread = np.nanstd(Z, axis=0)
        np.testing.assert_allclose(many * spread, few * spread, atol=1e-5)
        assert not many[:, 7].any()
