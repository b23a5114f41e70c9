"""The Diebold-Mariano test over origins: its arithmetic, and that it holds its level."""

import numpy as np
import pytest

from amlb_ext.stats.diebold_mariano import diebold_mariano


def test_the_correction_is_that_computed_by_hand():
    d = np.sin(np.arange(40.0)) + 0.2
    centred = d - d.mean()
    gamma = [centred[k:] @ centred[: 40 - k] / 40 for k in range(3)]
    statistic = d.mean() / np.sqrt((gamma[0] + 2 * gamma[1] + 2 * gamma[2]) / 40)
    corrected = statistic * np.sqrt((40 + 1 - 2 * 3 + 3 * 2 / 40) / 40)
    estimate = diebold_mariano(d, 3)
    assert estimate.point / estimate.se == pytest.approx(corrected)
    assert estimate.df == 39


def test_overlapping_windows_hold_their_level():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        noise = rng.normal(0, 1, 63)
        d = np.convolve(noise, np.ones(4), mode="valid")  # windows of four steps
        estimate = diebold_mariano(d, 4)
        held += estimate.low <= 0 <= estimate.high
    assert 0.88 < held / 400 < 0.99


def test_few_origins_have_no_interval():
    assert not diebold_mariano(np.arange(20.0), 1).has_interval
