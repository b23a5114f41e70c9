"""Theorem 1 and Algorithm 1: identities, cases worked by hand, monotonicity."""

import dataclasses
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn.bound import (
    OsynSettings,
    clip_counts,
    osyn_closed,
    osyn_estimate,
    osyn_iterative,
    theorem_bound,
)
from amlb_ext.estimate.osyn.regions import (
    Regions,
    RegionTally,
    place_rows,
    tally_regions,
)
from amlb_ext.estimate.osyn.run import sweep_settings

unit = st.floats(0, 1)
seeds = st.integers(0, 10**6)


def generator(seed, zero_one, d=2):
    rng = np.random.default_rng(seed)

    def draw(n):
        X = rng.random((n, d))
        loss = rng.random(n)
        return X, (loss < 0.4).astype(float) if zero_one else loss

    return draw


def problem(seed, K=12, n=6000, zero_one=False):
    """Return cells, losses of the centres and a stream, as one batch."""
    rng = np.random.default_rng(seed + 1)
    loss_s = (rng.random(K) < 0.5).astype(float) if zero_one else 0.8 * rng.random(K)
    return Regions(rng.random((K, 2))), loss_s, generator(seed, zero_one)(n)


def drawn_batches(draw, n, size):
    """Yield n rows of a function that draws a given number of them."""
    for start in range(0, n, size):
        yield draw(min(size, n - start))


def cut(batch, size):
    X, loss = batch
    for a in range(0, len(X), size):
        part = slice(a, a + size)
        yield X[part], loss[part]


def assert_same(a, b):
    for field in dataclasses.fields(a):
        np.testing.assert_array_equal(
            getattr(a, field.name), getattr(b, field.name), field.name
        )


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_closed_form_is_the_converged_optimum(seed):
    cells, loss_s, batch = problem(seed)
    seen = tally_regions([batch], cells)
    of = cells.assign(batch[0])
    above = np.bincount(of[batch[1] >= loss_s[of]], minlength=12)
    # no more rows than a region has with l(u) >= l(s): then each Target reaches l(s)
    g_star = np.minimum(above, 30)
    found = osyn_iterative(
        place_rows(cut(batch, 500), cells), loss_s, seen, g_star=g_star
    )
    closed = osyn_closed(loss_s, seen, g_star=g_star)
    assert found.F_minus_eps == pytest.approx(closed.F_minus_eps, abs=1e-12)
    assert found.bound == pytest.approx(closed.bound, abs=1e-12)
    assert found.g == closed.g == g_star.sum()
    np.testing.assert_array_equal(found.weights, closed.weights)


@given(seeds, st.integers(50, 3000))
@settings(max_examples=15, deadline=None)
def test_never_above_the_closed_form_of_its_own_weights(seed, n):
    cells, loss_s, batch = problem(seed, n=n)
    seen = tally_regions([batch], cells)
    placed = place_rows([batch], cells)
    found = osyn_iterative(placed, loss_s, seen, OsynSettings(g=600))
    assert found.F_minus_eps <= found.weights @ loss_s + 1e-12
    assert found.g <= found.g_star


@given(seeds, st.integers(20, 2000), st.sampled_from([0.0, 0.3, 1.0, 5.0]))
@settings(max_examples=25, deadline=None)
def test_counts_give_exactly_the_general_result(seed, n, b):
    cells, loss_s, batch = problem(seed, n=n, zero_one=True)
    seen, setting = (
        tally_regions([batch], cells),
        OsynSettings(g=600, b=b, a_hat="paper"),
    )
    general = osyn_iterative(place_rows(cut(batch, 111), cells), loss_s, seen, setting)
    assert_same(general, osyn_iterative(seen.rows(), loss_s, seen, setting))


@pytest.mark.parametrize("zero_one", [True, False])
def test_how_the_stream_is_cut_does_not_matter(zero_one):
    cells, loss_s, batch = problem(3, n=2500, zero_one=zero_one)
    seen, setting = tally_regions([batch], cells), OsynSettings(g=1500)
    whole = osyn_iterative(place_rows([batch], cells), loss_s, seen, setting)
    for size in (1, 37, 1000):
        parts = osyn_iterative(
            place_rows(cut(batch, size), cells), loss_s, seen, setting
        )
        assert parts.F_minus_eps == whole.F_minus_eps
        assert parts.bound == whole.bound
        assert parts.beta == pytest.approx(
            whole.beta, rel=1e-12
        )  # a sum in another order
        np.testing.assert_array_equal(
            tally_regions(cut(batch, size), cells).counts, seen.counts
        )


def test_algorithm_by_hand():
    # centres 0 and 10 with losses .5 and .2; rows around 0: .1 .4 .9, around 10: .0 .3
    X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0]])
    batch = X, np.array([0.1, 0.4, 0.9, 0.0, 0.3])
    cells, loss_s = Regions(np.array([[0.0], [10.0]])), np.array([0.5, 0.2])
    seen = tally_regions([batch], cells)
    # Targets .1 - .4 = -.3, .4 - .1 = .3, .9 - .4 = .5; 0 - .2 = -.2, .3 - .1 = .2
    got = osyn_iterative(
        place_rows(cut(batch, 2), cells), loss_s, seen, g_star=np.array([2, 1])
    )
    assert got.F_minus_eps == pytest.approx((0.5 + 0.3 + 0.2) / 3)
    np.testing.assert_allclose(got.weights, [2 / 3, 1 / 3])
    # a_1 = 1.4 / 3, a_2 = .15; p = .6, .4; β = 2 (.6 * .2178 + .4 * .0225)
    assert got.beta == pytest.approx(2 * (0.6 * (1.4 / 3) ** 2 + 0.4 * 0.15**2))
    # the closed form: every Target at l(s), (2 * .5 + .2) / 3
    closed = osyn_closed(loss_s, seen, g_star=np.array([2, 1]))
    assert closed.F_minus_eps == pytest.approx(0.4)
    # asked for more than there are, negative Targets enter: (-.3 + .3 + .5 - .2 + .2) / 5
    every = osyn_iterative(
        place_rows([batch], cells), loss_s, seen, g_star=np.array([9, 9])
    )
    assert (every.g, every.g_star) == (5, 18)
    assert every.F_minus_eps == pytest.approx(0.1)


def test_bound_by_hand():
    # Σ w² = 4 / 16, so B = 2 sqrt(.5 * 2 * .25) = 1; D = .5 * 4 / 8 = .25
    w, four, two = np.full(4, 0.25), math.exp(-4), math.exp(-2)
    got = theorem_bound(1.75, w, 0.5, 8, four, two, C_h=2.0)
    assert (pytest.approx(1), pytest.approx(0.25)) == (got.B, got.D)
    assert got.bound == pytest.approx((1 - 0.5) ** 2)  # (sqrt(.75 + .25) - sqrt(.25))²
    assert got.met
    # below B there is none
    assert theorem_bound(0.99, w, 0.5, 8, four, two, C_h=2.0)[0::3] == (0.0, False)


@given(
    unit,
    st.floats(0.05, 1),
    st.integers(10, 10**6),
    st.floats(1e-4, 0.4),
    st.floats(1e-4, 0.4),
)
def test_bound_is_monotone(F, a_hat, g, d1, d2):
    w = np.full(50, 0.02)
    base = theorem_bound(F, w, a_hat, g, d1, d2).bound
    slack = 1e-12
    assert theorem_bound(min(F + 0.1, 1), w, a_hat, g, d1, d2).bound >= base - slack
    assert theorem_bound(F, w, a_hat, g, d1 * 1.5, d2).bound >= base - slack  # D falls
    assert theorem_bound(F, w, a_hat, g, d1, d2 * 1.5).bound >= base - slack  # B falls
    assert theorem_bound(F, w, a_hat / 2, g, d1, d2).bound >= base - slack
    assert theorem_bound(F, w, a_hat, 2 * g, d1, d2).bound >= base - slack
    assert theorem_bound(F, np.full(100, 0.01), a_hat, g, d1, d2).bound >= base - slack
    assert 0 <= base <= F + slack


@given(seeds, st.integers(1, 40), st.floats(0.05, 9))
@settings(deadline=None)
def test_adjusted_counts_stay_within_their_limits(seed, K, b):
    rng = np.random.default_rng(seed)
    p, g = rng.dirichlet(np.full(K, 0.3)), 4000
    got = clip_counts(rng.multinomial(g, p), g, b)
    assert (np.abs(got / g - 1 / K) <= b / K + 1e-12).all()
    with pytest.raises(ConfigError, match="raise g above K"):
        clip_counts(np.array([2, 1]), 3, 0.1)  # 1.35..1.65


def test_empty_regions_and_flags():
    cells = Regions(np.array([[0.0], [1.0], [50.0]]))
    rows = np.linspace(0, 1, 40)[:, None]
    seen = tally_regions([(rows, np.ones(40))], cells)
    np.testing.assert_array_equal(seen.masses, [0.5, 0.5, 0])
    got = osyn_iterative(seen.rows(), np.ones(3), seen, OsynSettings(g=30, b=0))
    # 10 each asked for, none for the third, in which no row fell
    assert (got.g, got.g_star, got.empty) == (20, 30, 1)
    assert got.F_minus_eps == 1
    # w = .5, .5, 0 and δ2 = .2: B = sqrt(.5 ln 5 * .5) = .634
    assert pytest.approx(math.sqrt(0.25 * math.log(5))) == got.B
    row = osyn_estimate(got)
    assert (row.name, row.low, row.high, row.n) == ("osyn", got.bound, 1.0, 3)
    assert math.isnan(row.point)
    assert row.check == "not checked"
    assert row.reason == "1 of 3 regions without a generated row; 20 of 30 rows found"
    none = osyn_closed(np.zeros(3), seen)
    assert (none.bound, none.assumption_met) == (0, False)
    assert osyn_estimate(none).check == "failed"


def test_a_hat():
    seen = RegionTally(np.array([10, 10]), np.array([5.0, 2.0]), 0, True)
    got = {
        a: osyn_closed(np.ones(2), seen, OsynSettings(a_hat=a))
        for a in (None, 0.3, "paper")
    }
    assert [r.a_hat for r in got.values()] == [1.0, 0.3, 0.5]
    assert osyn_closed(np.ones(2), seen, OsynSettings(C_h=3)).a_hat == 3


def test_masses_alone_are_enough():
    cells, loss_s, (X, loss) = problem(5)
    seen, blind = (
        tally_regions([(X, loss)], cells),
        tally_regions([(X, None)], cells),
    )
    assert blind.means is None
    a, b = osyn_closed(loss_s, seen), osyn_closed(loss_s, blind)
    assert (a.bound, a.F_minus_eps) == (b.bound, b.F_minus_eps)
    # β is from the labelled losses then
    assert b.beta == pytest.approx(2 * seen.masses @ loss_s**2)
    with pytest.raises(ConfigError, match="give the stream losses"):
        osyn_closed(loss_s, blind, OsynSettings(a_hat="paper"))
    with pytest.raises(DataError, match="rows without losses"):
        osyn_iterative(place_rows([(X, None)], cells), loss_s, blind)


@pytest.mark.parametrize("loss", [[0.2, np.nan], [0.2, 1.2], [-0.1, 0.2]])
def test_losses_outside_their_bound(loss):
    cells = Regions(np.array([[0.0], [1.0]]))
    with pytest.raises(
        DataError, match=r"a missing or infinite loss|with a bound of 1"
    ):
        tally_regions([(np.zeros((2, 1)), np.array(loss))], cells)


@pytest.mark.parametrize(
    "wrong",
    [
        {"g": 0},
        {"b": -1},
        {"delta1": 0},
        {"delta2": 0.99},
        {"a_hat": 2.0},
        {"a_hat": "x"},
    ],
)
def test_settings_out_of_range(wrong):
    with pytest.raises(ConfigError):
        OsynSettings(**wrong)


def test_explore_is_the_closed_form_everywhere():
    cells, loss_s, batch = problem(11, K=200)
    seen = tally_regions([batch], cells)
    sweep = sweep_settings(
        seen.counts,
        loss_s,
        np.random.default_rng(4),
        b=(0, 0.5, 2),
        delta2=(0.02, 0.07),
        delta=0.1,
    )
    assert len(sweep) == 6
    for row in sweep.itertuples():
        setting = OsynSettings(b=row.b, delta1=row.delta1, delta2=row.delta2)
        one = osyn_closed(loss_s, seen, setting, np.random.default_rng(4))
        assert row.bound == pytest.approx(one.bound, abs=1e-12)
        assert (row.g_star, row.assumption_met) == (one.g_star, one.assumption_met)
    assert (
        len(sweep_settings(seen.counts, loss_s, np.random.default_rng(4))) == 71 * 199
    )
    with pytest.raises(ConfigError, match="below delta"):
        sweep_settings(seen.counts, loss_s, np.random.default_rng(4), delta2=[0.1])


def test_memory_does_not_grow_with_the_stream():
    cells, loss_s, batch = problem(2)
    seen, peaks = tally_regions([batch], cells), []
    for n in (20_000, 200_000):
        stream = drawn_batches(generator(0, False), n, 5000)
        tracemalloc.start()
        osyn_iterative(place_rows(stream, cells), loss_s, seen, OsynSettings(g=2000))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
