"""Random tables through the whole way: hardened, written, and held to AMLB's rules."""

import pytest
from exhaustive import first_of
from random_tasks import random_task
from written_suites import put_fold

from amlb_ext.core.config import build_config
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.split import split_task
from amlb_ext.suite import Coding, Layout, check_pair

BASELINES = [
    {"model": "ridge"},
    {"model": "random_forest", "params": {"n_estimators": 5}},
    {"model": "hist_gradient_boosting", "params": {"max_iter": 5}},
    {"model": "knn", "params": {"n_neighbors": 3}},
]
SYNTHESIZERS = ["local", "copula", "vae"]
pytestmark = pytest.mark.usefixtures("light_models")

PRESETS = ["faithful", "faithful", "stress", "literal"]


# 6: every synthesizer and every preset; 12: each with each
@pytest.mark.parametrize("seed", first_of(range(12), 6))
def test_any_table_becomes_pairs_that_amlb_can_read(seed, tmp_path):
    config = build_config(
        {
            "preset": PRESETS[seed % 4],
            "baseline": BASELINES[seed // 2 % 4],
            "synthesizer": {"name": SYNTHESIZERS[seed % 3], "epochs": 2, "times": 1},
            "search": {
                "copies": 2,
                "operators": {"population": 4, "generations": 2},
            },
            "split": {"folds": 1, "test_size": 0.3},
        }
    )
    task = split_task(random_task(seed), config.split, seed)
    hard = harden_fold(task, 0, config)
    coding, layout = Coding.of(task), Layout(tmp_path)
    record = put_fold(layout, task, hard.train, hard.parts, summary=hard.summary)
    assert "full" in record.parts or record.notes
    for part in record.parts.values():
        pair = layout.at(part.train), layout.at(part.test)
        assert check_pair(*pair, coding.written_target, task.kind.value) == []
    if hard.summary["bad"]:
        made = hard.parts["bad"].test
        assert made.features.dtypes.equals(task.features.dtypes)
