"""``hs.compare`` beside its models' own fits and predictions, and what importing it takes.

OMP_NUM_THREADS=1 python -m pytest benchmarks/speed/bench_compare.py --benchmark-json=raw.json \
  --benchmark-timer=time.process_time

"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from amlb_ext.comparison import compare
from amlb_ext.models.adapter import ModelAdapter

COLUMNS = 20
#: What a user of scikit-learn who has models to compare has imported.
FLOOR = (
    "import pandas, sklearn.compose, sklearn.ensemble, sklearn.impute, sklearn.linear_model, "
    "sklearn.metrics, sklearn.model_selection, sklearn.pipeline, sklearn.preprocessing"
)
IMPORTS = {"ours": "import hardsynth; hardsynth.compare", "pandas, sklearn": FLOOR}
#: Rows that trees of F are grown on at most: the models' own time is not what is measured.
TREES_ROWS = 5000


class OwnTime:
    """Seconds that a method takes, of all calls."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.seconds = 0.0

    def timed(self) -> Callable[..., Any]:
        """Return the method, timed."""

        def call(*args: Any, **named: Any) -> Any:
            start = time.process_time()
            try:
                return self.method(*args, **named)
            finally:
                self.seconds += time.process_time() - start

        return call


@pytest.mark.parametrize("rows", [1500, 5000, 100_000])
def test_compare(benchmark, monkeypatch, rows):
    """A forest as F, two candidates, five re-fits."""
    X, y = make_classification(
        2 * rows, COLUMNS, n_informative=8, flip_y=0.1, random_state=0
    )
    train, here = slice(0, rows), slice(rows, None)
    share = min(rows, TREES_ROWS)
    F = RandomForestClassifier(max_samples=share, random_state=0)
    candidates = {
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "linear": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    for model in (F, *candidates.values()):
        model.fit(X[train], y[train])
    own = {
        name: OwnTime(getattr(ModelAdapter, name)) for name in ("fit_again", "answer")
    }
    for name, method in own.items():
        monkeypatch.setattr(ModelAdapter, name, method.timed())
    benchmark.group = f"compare, {rows:,} rows"
    start = time.process_time()
    benchmark.pedantic(
        compare,
        (F, candidates, X[here], y[here]),
        {"train": (X[train], y[train])},
        rounds=1,
    )
    seconds = time.process_time() - start
    models = sum(method.seconds for method in own.values())
    benchmark.extra_info.update(
        role="ours", fitted=models, beyond_models=seconds - models
    )


@pytest.mark.parametrize("role", list(IMPORTS))
def test_import(benchmark, role):
    """In a process of its own; the least of many, which nothing else disturbed."""
    report = (
        "\nimport resource; used = resource.getrusage(resource.RUSAGE_SELF)"
        "\nfrom benchmarks.speed.memory_peak import peak_mb"
        "\nprint(used.ru_utime + used.ru_stime, peak_mb())"
    )

    def start() -> list[float]:
        command = [sys.executable, "-c", IMPORTS[role] + report]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [float(number) for number in done.stdout.split()]

    benchmark.group = "import of compare"
    used = np.array(
        [benchmark.pedantic(start, rounds=1)] + [start() for _ in range(10)]
    )
    benchmark.extra_info.update(role=role, least=used[:, 0].min(), mb=used[:, 1].max())
