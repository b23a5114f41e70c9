"""Regions against brute force, with ties, classes and spheres."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.osyn import regions as module
from amlb_ext.estimate.osyn.regions import Regions


def brute(X, S):
    """The first of the nearest, in whole numbers where X and S are."""
    return ((X[:, None] - S[None]) ** 2).sum(axis=2).argmin(axis=1)


def one_hot(codes, m):
    return (np.eye(m) / np.sqrt(2))[codes].reshape(len(codes), -1)


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_equals_brute_force_with_many_ties(seed, K, d):
    # on a grid of 0..3 most rows are equally far from several centres, and centres repeat
    rng = np.random.default_rng(seed)
    S, X = rng.integers(0, 4, (K, d)), rng.integers(0, 4, (200, d))
    np.testing.assert_array_equal(Regions(S).assign(X), brute(X, S))
    offset = 1000.0  # far from 0, where single precision is coarse
    np.testing.assert_array_equal(Regions(S + offset).assign(X + offset), brute(X, S))


def test_equals_brute_force_on_numbers_and_one_hot():
    rng = np.random.default_rng(0)
    codes_S, codes_X = rng.integers(0, 5, (60, 8)), rng.integers(0, 5, (3000, 8))
    S, X = rng.standard_normal((60, 3)), rng.standard_normal((3000, 3))
    np.testing.assert_array_equal(Regions(S).assign(X), brute(X, S))
    # two categories are one apart, so squared distance counts the differing ones
    differing = (codes_X[:, None] != codes_S[None]).sum(axis=2).argmin(axis=1)
    cells = Regions(one_hot(codes_S, 5))
    np.testing.assert_array_equal(cells.assign(one_hot(codes_X, 5)), differing)
    single = one_hot(codes_X, 5).astype(np.float32)
    np.testing.assert_array_equal(cells.assign(single), differing)


def test_batches_do_not_matter(monkeypatch):
    rng = np.random.default_rng(1)
    codes_S, codes_X = rng.integers(0, 3, (50, 6)), rng.integers(0, 3, (700, 6))
    S, X = one_hot(codes_S, 3), one_hot(codes_X, 3)
    whole = Regions(S, k=4).assign(X)
    parts = [Regions(S, k=4).assign(x) for x in np.array_split(X, 13)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr(module, "CHUNK", 1)
    np.testing.assert_array_equal(Regions(S, k=4).assign(X), whole)
    assert Regions(S).assign(X[:0]).shape == (0,)


def test_memory_is_bounded():
    rng = np.random.default_rng(0)
    X, S = (
        rng.standard_normal((8000, 20), dtype=np.float32),
        rng.standard_normal((5000, 20)),
    )
    cells = Regions(S, k=3)
    tracemalloc.start()
    cells.assign(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # all products at once would be 8,000 x 5,000 x 4 bytes = 153 MiB
    assert peak < 16 * 2**20


def test_sphere_by_hand():
    # centres 0, 1, 3; nearest others at 1, 1, 2; second nearest at 3, 2, 3
    S = np.array([[0.0], [1.0], [3.0]])
    X = np.array([[-1.0], [-1.1], [-3.0], [-3.1], [5.0], [5.1], [6.1]])
    np.testing.assert_array_equal(Regions(S, k=1).assign(X), [0, -1, -1, -1, 2, -1, -1])
    np.testing.assert_array_equal(Regions(S, k=2).assign(X), [0, 0, 0, -1, 2, 2, -1])


@pytest.mark.parametrize("k", [0, 3])
def test_k_out_of_range(k):
    with pytest.raises(ConfigError, match="choose k from 1 to 2"):
        Regions(np.zeros((3, 1)), k=k)


def test_refusals():
    cells = Regions(np.zeros((3, 2)))
    with pytest.raises(DataError, match="same encoder"):
        cells.assign(np.zeros((4, 3)))
    with pytest.raises(DataError, match="missing"):
        cells.assign(np.array([[0.0, np.nan]]))
    with pytest.raises(DataError, match="one encoded row or more"):
        Regions(np.zeros((0, 2)))
