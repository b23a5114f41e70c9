"""The sound bound: by hand, and covering where it promises to."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.estimate.partition import (
    independent_cells,
    partition_bound,
    partition_estimate,
)

W = np.array([0.4, 0.3, 0.2, 0.08, 0.02])
#: Mean losses of the cells.
A = np.array([0.02, 0.1, 0.3, 0.6, 0.9])
TRUTH = float(W @ A)
BY_POPULATION = W
BIASED = np.array([0.05, 0.05, 0.1, 0.4, 0.4])
LACKING = np.array([0.5, 0.5, 0.0, 0.0, 0.0])


def both(sampling, delta=0.1, n=150, N=None, repeats=2000):
    """Return how often each side of the bound holds, and the mean bounds."""
    rng = np.random.default_rng(0)
    low, high = np.empty(repeats), np.empty(repeats)
    for r in range(repeats):
        cells = rng.choice(5, n, p=sampling)
        loss = (rng.random(n) < A[cells]).astype(float)
        masses = W if N is None else rng.multinomial(N, W)
        got = partition_bound(loss, cells, masses, delta, n_masses=N)
        low[r], high[r] = got.low, got.high
    return (low <= TRUTH).mean(), (high >= TRUTH).mean(), low.mean(), high.mean()


@pytest.mark.parametrize("sampling", [BY_POPULATION, BIASED, LACKING])
@pytest.mark.parametrize("N", [None, 60])
def test_covers_even_when_cells_are_sampled_unequally(sampling, N):
    low, high, _, _ = both(sampling, N=N)
    # 2,000 draws: three standard errors of .9 are .02
    assert low >= 0.9 - 0.02
    assert high >= 0.9 - 0.02


def test_is_not_vacuous():
    low, high, mean_low, mean_high = both(BY_POPULATION, n=2000, repeats=200)
    assert low > 0.9
    assert high > 0.9
    # W A = .008 + .03 + .06 + .048 + .018 = .164; B = sqrt(.5 ln 10 / 2000) = .024
    assert pytest.approx(0.164) == TRUTH
    assert mean_low == pytest.approx(TRUTH - 0.024, abs=0.003)
    assert mean_high == pytest.approx(TRUTH + 0.024, abs=0.003)


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
    assert pytest.approx(math.sqrt(0.5 * math.log(20) / 100)) == one.B
    assert one.low == pytest.approx(0.25 - 0.1224, abs=1e-4)
    # cells in proportion, 20 of 100 each: no wider, no narrower
    five = partition_bound(loss, np.arange(100) % 5, np.ones(5), 0.05)
    assert pytest.approx(one.B) == five.B


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(0, 10**6))
def test_never_narrower_than_one_cell(n, seed):
    masses = np.random.default_rng(seed).random(len(n)) + 0.01
    cells = np.repeat(np.arange(len(n)), n)
    loss = np.zeros(len(cells))
    one = partition_bound(loss, np.zeros_like(cells), np.ones(1))
    assert partition_bound(loss, cells, masses).B >= one.B - 1e-12


def test_cells_without_rows():
    # masses .5, .3, .2, the last without rows; means .5 and 1, C_h = 2
    got = partition_bound(
        np.array([0.0, 1.0, 1.0]),
        np.array([0, 0, 1]),
        np.array([5, 3, 2]),
        0.1,
        C_h=2.0,
    )
    B = 2 * math.sqrt(0.5 * math.log(10) * (0.25 / 2 + 0.09))
    assert (got.empty, got.empty_mass) == (1, pytest.approx(0.2))
    assert got.weighted == pytest.approx(0.5 * 0.5 + 0.3)
    assert pytest.approx(B) == got.B
    assert got.low == 0
    assert got.high == pytest.approx(min(2, 0.55 + 2 * 0.2 + B))
    np.testing.assert_array_equal(got.counts, [2, 1, 0])
    row = partition_estimate(got)
    assert (row.high, row.level, row.n) == (2.0, 0.9, 3)
    assert math.isnan(row.point)
    assert row.reason == "1 of 3 cells without labelled rows, 20% of the population"


def test_estimated_masses_cost_a_term():
    loss, cells = np.ones(200), np.zeros(200, dtype=int)
    exact = partition_bound(loss, cells, np.ones(1), 0.1)
    counted = partition_bound(loss, cells, np.ones(1), 0.1, n_masses=5000)
    # a tenth of δ for the masses: sqrt(.5 ln 100 / 5000) = .0215, and ln(1 / .09) for the rest
    wider = math.sqrt(0.5 * math.log(1 / 0.09) / 200) + math.sqrt(
        0.5 * math.log(100) / 5000
    )
    assert pytest.approx(wider) == counted.B
    assert counted.B > exact.B


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
