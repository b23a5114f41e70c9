"""Synthesizers beside ctgan's TVAE and CTGAN and SDV's Gaussian copula, in one run.

OMP_NUM_THREADS=1 python -m pytest benchmarks/speed/bench_synthesizers.py --benchmark-json=raw.json

One simulated table of 2,000 rows and 16 columns, equal epochs for all that have any. Beside the
seconds each bench keeps what the rows are worth: ``w1``, ``tv``, ``corr`` and ``near``, the
distances to the learnt rows of ``benchmarks/speed/synthesizers.py``, and as ``real_w1``, ... those
of held-out real rows.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from amlb_ext.core.rng import random_stream
from benchmarks.speed.synthesizers import Rows, distances, make_rows, missing_package

ROWS, EPOCHS = 2000, 100
#: Codes of the four categories; twelve numbers make it 16 columns.
CARDS = (2, 5, 10, 40)
ROLES = {
    "vae": "ours",
    "copula": "ours, copula",
    "tvae": "TVAE",
    "ctgan": "CTGAN",
    "sdv_copula": "SDV copula",
}


@pytest.fixture(scope="module")
def tables() -> tuple[Rows, Rows]:
    """Rows to learn from and held-out ones: five factors, mixed, cut, rounded and skewed."""
    rng = random_stream(7, "benchmark", "synthesizers")
    n = 2 * ROWS
    factors = rng.standard_normal((n, 5))
    numbers = factors @ rng.standard_normal((5, 12)) + 0.5 * rng.standard_normal(
        (n, 12)
    )
    numbers[:, 0] = numbers[:, 0].clip(0)  # half of it is zero
    numbers[:, 1] = np.rint(numbers[:, 1])
    numbers[:, 2] = np.exp(numbers[:, 2] / 2)
    numbers[:, 3] += factors[:, 0] ** 2
    numbers = (numbers - numbers[:ROWS].min(axis=0)) / np.ptp(numbers[:ROWS], axis=0)
    codes = [
        np.clip(
            (factors[:, j] + 0.3 * rng.standard_normal(n)) * card / 4 + card / 2,
            0,
            card - 1,
        )
        for j, card in enumerate(CARDS)
    ]
    X = np.column_stack([np.floor(codes).T, numbers])
    y = (factors[:, 0] + factors[:, 1] ** 2 + 0.3 * rng.standard_normal(n) > 0).astype(
        int
    )
    rows = Rows(X, y, CARDS, 2)
    return rows.take(np.arange(ROWS)), rows.take(np.arange(ROWS, n))


@pytest.mark.parametrize("name", list(ROLES))
def test_synthesizer(benchmark, tables, name):
    package = missing_package(name)
    if package:
        pytest.skip(
            f"{package} is not installed: pip install {package} (needs pandas < 3)"
        )
    learn, held = tables
    benchmark.group = "synthesizer"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the references warn of is theirs
        make_rows(name, learn.take(np.arange(500)), 1, 0)  # imports are not timed
        made = benchmark.pedantic(make_rows, (name, learn, EPOCHS, 1), rounds=1)
    torch.set_num_threads(threads)
    quality = {}
    for prefix, rows in (("", made), ("real_", held)):
        for measure, value in distances(learn, rows.X, rows.y).items():
            quality[prefix + measure.lower()] = value
    benchmark.extra_info.update(role=ROLES[name], rows=ROWS, epochs=EPOCHS, **quality)
