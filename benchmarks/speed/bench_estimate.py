"""The estimate wing's searches beside a library's and beside what they cannot avoid, in one run.

OMP_NUM_THREADS=1 python -m pytest benchmarks/speed/bench_estimate.py --benchmark-json=raw.json \
  --benchmark-timer=time.process_time

"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import NearestNeighbors

from amlb_ext.estimate.osyn.bound import OsynSettings, osyn_iterative
from amlb_ext.estimate.osyn.regions import Batch, Regions, place_rows, tally_regions

#: Labelled rows.
K = 500
#: Iterations of Algorithm 1 and rows of each.
T, N = 4, 25_000


def rows_of(n: int, numbers: int, categories: int, seed: int) -> np.ndarray:
    """Draw numbers and one-hot columns of 12 categories each, in single precision."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, (n, categories))
    hot = (np.eye(12, dtype=np.float32) / np.float32(np.sqrt(2)))[codes].reshape(n, -1)
    return np.hstack([rng.standard_normal((n, numbers), dtype=np.float32), hot])


TABLES = {"102 columns, mostly one-hot": (6, 8), "2 columns": (2, 0)}


@pytest.mark.parametrize("table", list(TABLES))
def test_regions(benchmark, table):
    X, cells = rows_of(T * N, *TABLES[table], 0), Regions(rows_of(K, *TABLES[table], 1))
    benchmark.group = f"regions, K = {K}, {table}"
    benchmark.extra_info.update(role="ours")
    benchmark.pedantic(cells.assign, (X,), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("table", list(TABLES))
def test_scikit_learn(benchmark, table):
    X, S = rows_of(T * N, *TABLES[table], 0), rows_of(K, *TABLES[table], 1)
    search = NearestNeighbors(n_neighbors=1, n_jobs=1).fit(S)
    benchmark.group = f"regions, K = {K}, {table}"
    benchmark.extra_info.update(role="scikit-learn")
    benchmark.pedantic(search.kneighbors, (X,), rounds=5, warmup_rounds=1)


class Problem:
    """A forest, K labelled rows and T batches of rows to search."""

    def __init__(self) -> None:
        train, S = rows_of(2000, 6, 8, 2), rows_of(K, 6, 8, 1)
        self.model = RandomForestClassifier(100, max_depth=10, random_state=0, n_jobs=1)
        self.model.fit(train, train[:, 0] + train[:, 1] > 0.5)
        self.cells = Regions(S)
        self.loss_s = self.losses(S)
        self.batches = [rows_of(N, 6, 8, 10 + t) for t in range(T)]
        self.seen = tally_regions(((X, None) for X in self.batches), self.cells)

    def losses(self, X: np.ndarray) -> np.ndarray:
        return (self.model.predict(X) != (X[:, 0] + X[:, 1] + X[:, 2] > 0.5)).astype(
            float
        )

    def stream(self) -> Iterator[Batch]:
        for X in self.batches:
            yield X, self.losses(X)

    def iterate(self) -> None:
        placed = place_rows(self.stream(), self.cells)
        osyn_iterative(placed, self.loss_s, self.seen, OsynSettings(g=20_000))

    def predict_and_place(self) -> None:
        for X in self.batches:
            self.losses(X)
            self.cells.assign(X)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem()


def test_iterative(benchmark, problem):
    benchmark.group = "osyn, iterative"
    benchmark.extra_info.update(role="ours")
    benchmark.pedantic(problem.iterate, rounds=5, warmup_rounds=1)


def test_predict_and_place(benchmark, problem):
    """What no implementation of Algorithm 1 can do without."""
    benchmark.group = "osyn, iterative"
    benchmark.extra_info.update(role="predict and nearest")
    benchmark.pedantic(problem.predict_and_place, rounds=5, warmup_rounds=1)
