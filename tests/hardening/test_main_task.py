"""The main task holds the parts that the settings name, and never the rows of the whole fold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.core.task import Fold, Origin
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.weights import REPEATS, Region
from amlb_ext.pipeline.folds import harden_calibrated
from amlb_ext.sources.files import to_tasks
from amlb_ext.sources.table import Table

# what is planted here is plain to a few trees, too
pytestmark = pytest.mark.usefixtures("light_models")

LIGHT = {
    "baseline": {"model": "ridge"},
    "search": {"copies": 0},
    "synthesizer": {"name": "local", "times": 1.0},
    "train_hard": False,
    "hardness": {"rule": "paper"},
}


def bent_task(n_train=240, n_test=80):
    """Return a regression that a line misses in one corner, with one fold."""
    rng = np.random.default_rng(0)
    x = rng.random((n_train + n_test, 3))
    y = x[:, 0] + 4 * (x[:, 1] > 0.7) * x[:, 2] + 0.05 * rng.standard_normal(len(x))
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(y=y)
    about = {"kind": None, "origin": Origin("bent")}
    [task] = to_tasks(Table("bent", frame), name="bent", targets=["y"], **about)
    rows = np.arange(n_train + n_test)
    return task.with_folds((Fold(rows[:n_train], rows[n_train:]),))


def harden(*composition):
    return harden_fold(
        bent_task(), 0, build_config({**LIGHT, "composition": composition})
    )


@pytest.mark.parametrize("named", [(), ("weighted",), ("bad", "synthetic")])
def test_no_main_task_holds_the_rows_of_the_whole_fold(named):
    hard = harden(*named)
    assert ("" in hard.parts) == bool(named)
    tests = [part.test.provenance for part in hard.parts.values()]
    full = hard.parts["full"].test.provenance
    assert sum(each.equals(full) for each in tests) == 1
    assert {"bad", "synthetic", "region"} <= set(hard.parts)
    assert hard.summary["composition"] == list(named)


def test_rows_where_f_is_likelier_to_fail_come_more_often():
    hard = harden("weighted")
    times = hard.parts[""].test.provenance["source_row"].value_counts()
    full = hard.parts["full"].test.provenance.set_index("source_row")["weight"]
    assert times.sum() == REPEATS * len(full)
    heavy, light = full.sort_values().index[-10:], full.sort_values().index[:10]
    assert times.reindex(heavy).mean() > times.reindex(light, fill_value=0).mean()


def test_a_fold_learns_its_region_once(monkeypatch):
    fits = []
    fit = Region.fit
    monkeypatch.setattr(
        Region, "fit", lambda region, *args: fits.append(0) or fit(region, *args)
    )
    config = build_config({**LIGHT, "search": {"copies": 0, "kappa": 0.1}})
    harden_calibrated((bent_task(),), 0, config)
    assert len(fits) == 1
