"""The sound bound: by hand, and covering where it promises to."""

import math

import numpy as np
import pytest

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.estimate.partition import (
    independent_cells,
    partition_bound,
)

W = np.array([0.4, 0.3, 0.2, 0.08, 0.02])
#: Mean losses of the cells.
A = np.array([0.02, 0.1, 0.3, 0.6, 0.9])
TRUTH = float(W @ A)
BY_POPULATION = W
BIASED = np.array([0.05, 0.05, 0.1, 0.4, 0.4])
LACKING = np.array([0.5, 0.5, 0.0, 0.0, 0.0])


def bounds(sampling, delta=0.1, n=150, N=None, repeats=1000):
    """Return how often the bound holds, and the mean bound."""
    rng = np.random.default_rng(0)
    low = np.empty(repeats)
    for r in range(repeats):
        cells = rng.choice(5, n, p=sampling)
        loss = (rng.random(n) < A[cells]).astype(float)
        masses = W if N is None else rng.multinomial(N, W)
        low[r] = partition_bound(loss, cells, masses, delta, n_masses=N).low
    return (low <= TRUTH).mean(), low.mean()


@pytest.mark.parametrize("sampling", [BY_POPULATION, BIASED, LACKING])
@pytest.mark.parametrize("N", [None, 60])
def test_covers_even_when_cells_are_sampled_unequally(sampling, N):
    low, _ = bounds(sampling, N=N)
    # 1,000 draws: three standard errors of .9 are .03
    assert low >= 0.9 - 0.03


def test_is_not_vacuous():
    low, mean_low = bounds(BY_POPULATION, n=2000, repeats=200)
    assert low > 0.9
    # W A = .008 + .03 + .06 + .048 + .018 = .164; B = sqrt(.5 ln 10 / 2000) = .024
    assert pytest.approx(0.164) == TRUTH
    assert mean_low == pytest.approx(TRUTH - 0.024, abs=0.003)


def test_the_bias_it_does_not_survive():
    # wrong rows are preferred within a cell: the bound must not be expected to hold
    rng = np.random.default_rng(1)
    cells = rng.choice(5, 40_000, p=W)
    loss = (rng.random(len(cells)) < A[cells]).astype(float)
    chosen = rng.choice(len(cells), 1500, p=(1 + 9 * loss) / (1 + 9 * loss).sum())
    assert partition_bound(loss[chosen], cells[chosen], W).low > TRUTH


def test_without_bias_is_hoeffding_on_one_cell():
    loss = np.tile([1.0, 0.0, 0.0, 0.0], 25)
    one = partition_bound(loss, np.zeros(100, dtype=int), np.ones(1), 0.05)
    # B = sqrt(.5 ln 20 / 100) = .1224
    assert one.low == pytest.approx(0.25 - math.sqrt(0.5 * math.log(20) / 100))
    # cells in proportion, 20 of 100 each: no wider, no narrower
    five = partition_bound(loss, np.arange(100) % 5, np.ones(5), 0.05)
    assert five.low == pytest.approx(one.low)


def test_estimated_masses_cost_a_term():
    loss, cells = np.ones(200), np.zeros(200, dtype=int)
    exact = partition_bound(loss, cells, np.ones(1), 0.1)
    counted = partition_bound(loss, cells, np.ones(1), 0.1, n_masses=5000)
    # a tenth of δ for the masses: sqrt(.5 ln 100 / 5000) = .0215, and ln(1 / .09) for the rest
    wider = math.sqrt(0.5 * math.log(1 / 0.09) / 200) + math.sqrt(
        0.5 * math.log(100) / 5000
    )
    assert counted.low == pytest.approx(1 - wider)
    assert counted.low < exact.low


def test_cells_cover_the_space_and_repeat():
    rows = np.random.default_rng(0).standard_normal((400, 3))
    one, two = (independent_cells(rows, 6, np.random.default_rng(5)) for _ in range(2))
    X = np.random.default_rng(1).standard_normal((1000, 3)) * 4
    np.testing.assert_array_equal(one.assign(X), two.assign(X))
    assert set(one.assign(X)) == set(range(6))
    assert isinstance(one, Regions)


def test_end_to_end_on_a_biased_sample():
    """Rows with large x are labelled nine times as often; the model errs there."""
    rng = np.random.default_rng(2)
    centres = rng.standard_normal((8, 2))
    cells = Regions(centres)
    population = rng.standard_normal((50_000, 2))
    wrong = (population[:, 0] > 1).astype(float)
    of = cells.assign(population)
    often = np.where(centres[:, 0] > 0, 9.0, 1.0)[of]
    chosen = rng.choice(len(population), 3000, p=often / often.sum())
    got = partition_bound(wrong[chosen], of[chosen], np.bincount(of, minlength=8))
    truth = wrong.mean()
    naive = wrong[chosen].mean() - math.sqrt(0.5 * math.log(10) / 3000)
    assert naive > truth  # ignoring the bias fails
    assert 0.05 < got.low <= truth <= got.high


def test_refusals():
    loss, cells = np.ones(3), np.zeros(3, dtype=int)
    with pytest.raises(ConfigError, match="delta"):
        partition_bound(loss, cells, np.ones(1), 1.0)
    with pytest.raises(ConfigError, match="n_masses"):
        partition_bound(loss, cells, np.ones(1), n_masses=0)
    with pytest.raises(DataError, match="cover the whole space"):
        partition_bound(loss, cells - 1, np.ones(1))
    with pytest.raises(DataError, match="one cell a labelled row"):
        partition_bound(loss[:0], cells[:0], np.ones(1))
    with pytest.raises(DataError, match="sum to 0"):
        partition_bound(loss, cells, np.zeros(1))
    with pytest.raises(ConfigError, match="choose m"):
        independent_cells(np.zeros((3, 1)), 4, np.random.default_rng(0))


def test_cells_without_rows():
    # masses .5, .3, .2, the last without rows; means .5 and 1, C_h = 2
    got = partition_bound(
        np.array([0.0, 1.0, 1.0]),
        np.array([0, 0, 1]),
        np.array([5, 3, 2]),
        0.1,
        C_h=2.0,
    )
    # L = .5 * .5 + .3 lies below B = 2 sqrt(.5 log(10) (.25 / 2 + .09)), so nothing is shown
    assert (got.low, got.high, got.level, got.n) == (0.0, 2.0, 0.9, 3)
    assert math.isnan(got.point)
    assert got.reason == "1 of 3 cells without labelled rows, 20% of the population"
