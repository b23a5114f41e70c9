"""A window moves as a whole: its order in time stays, and its past knows nothing of its future."""

import numpy as np
import pytest

from amlb_ext.making.window_moves import (
    SPREADS,
    WindowMove,
    draw_move,
    move_window,
    one_step_noise,
)
from amlb_ext.stats.window_losses import scaled_errors, seasonal_scale
from amlb_ext.units.past_features import autocorrelation

SEASON = 12


def move_of(**genes):
    """Return a move with some genes at 1, in their order: scale, slope, noise, warp."""
    values = np.zeros(len(SPREADS))
    for name, value in genes.items():
        position = {"scale": 0, "slope": 1, "noise": 2}[name]
        values[position] = value
    return WindowMove(genes=values, noise_key=7)


def moved(past, future, move):
    scale = seasonal_scale(past, SEASON)
    return move_window(past, future, move, season=SEASON, scale=scale)


@pytest.fixture(scope="module")
def smooth():
    """Return a series whose changes follow each other, as those of hours do."""
    rng = np.random.default_rng(0)
    time = np.arange(132)
    slow = np.cumsum(np.convolve(rng.normal(0, 0.3, 140), np.ones(9) / 9, "valid"))
    y = 50 + 8 * np.sin(2 * np.pi * time / SEASON) + 3 * slow
    return y[:120], y[120:]


def test_a_move_without_genes_leaves_the_window_as_it_is(smooth):
    past, future = moved(*smooth, move_of())
    assert past == pytest.approx(smooth[0])
    assert future == pytest.approx(smooth[1])


def test_scale_and_slope_are_those_computed_by_hand():
    past = np.tile([1.25, 3.0], 8)
    future = np.array([5.0])
    scale = 0.5
    move = WindowMove(genes=np.eye(1, len(SPREADS))[0], noise_key=0)
    by_scale = move_window(past, future, move, season=2, scale=scale)[1]
    centre = 2.125
    assert by_scale == pytest.approx(centre + np.exp(0.1) * (5 - centre), abs=0.005)
    slope = WindowMove(genes=np.eye(2, len(SPREADS))[1], noise_key=0)
    sloped, ahead = move_window(past, future, slope, season=2, scale=scale)
    # half a scale over 16 values: nothing at the cutoff, one step more behind it
    assert sloped[-1] == past[-1]
    assert ahead == pytest.approx(future + 0.5 * 0.5 / 16, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_in_time_stays_where_white_noise_destroys_it(smooth, seed):
    rng = np.random.default_rng(seed)
    past, future = smooth
    kept = moved(past, future, draw_move(rng))[0]
    white = past + rng.normal(0, 0.025 * 50, len(past))
    real, by_move, by_noise = (
        autocorrelation(np.diff(values), 1) for values in (past, kept, white)
    )
    assert abs(by_move - real) < 0.1
    assert by_noise < real - 0.2


def test_the_moved_past_does_not_depend_on_the_future(smooth):
    past, future = smooth
    move = draw_move(np.random.default_rng(3))
    spiked = future + 1e6
    assert np.array_equal(moved(past, future, move)[0], moved(past, spiked, move)[0])


def test_the_future_moves_by_the_map_of_the_past(smooth):
    """A forecaster that is right stays right: noise and warp touch the past alone."""
    past, future = smooth
    move = move_of(scale=1.5, slope=-1.0)
    new_past, new_future = moved(past, future, move)
    # the value of a season before, moved as the past is
    naive = past[-SEASON:][: len(future)]
    new_naive = new_past[-SEASON:][: len(future)]
    before = scaled_errors(future[None], naive[None], np.array([1.0]))
    after = scaled_errors(new_future[None], new_naive[None], np.array([1.0]))
    slope_over_a_season = 0.5 * seasonal_scale(past, SEASON) * SEASON / len(past)
    assert after == pytest.approx(before * np.exp(0.15), abs=slope_over_a_season)


def test_counts_near_zero_never_fall_below():
    rng = np.random.default_rng(0)
    hours = np.arange(120)
    past = np.round(40 * np.clip(np.sin(hours / 6), 0.02, None) + rng.random(120) * 4)
    for _ in range(10):
        new_past, new_future = moved(past, past[:12], draw_move(rng))
        assert min(new_past.min(), new_future.min()) >= 0
        assert np.corrcoef(new_past, past)[0, 1] > 0.6


def test_zeros_of_demand_stay_zeros_and_counts_stay_counts():
    rng = np.random.default_rng(0)
    past = rng.poisson(3, 96) * (rng.random(96) < 0.5).astype(float)
    future = np.array([0.0, 4.0, 0.0])
    for _ in range(10):
        new_past, new_future = moved(past, future, draw_move(rng))
        assert (new_past[past == 0] == 0).all()
        assert new_future[0] == new_future[2] == 0
        assert new_past.min() >= 0
        assert np.array_equal(new_past, np.rint(new_past))


def test_noise_is_as_large_as_the_series_own_and_zero_at_the_cutoff(smooth):
    past, future = smooth
    noisy = moved(past, future, move_of(noise=1.0))[0]
    assert noisy[-1] == pytest.approx(past[-1])
    size = (noisy - past).std()
    assert 0.1 * one_step_noise(past, SEASON) < size < 3 * one_step_noise(past, SEASON)
