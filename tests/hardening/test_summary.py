"""What the summary of a fold says: the unit of an rmse, and what was done without a kappa."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core.config import build_config
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind
from amlb_ext.hardening.fold import harden_fold
from amlb_ext.hardening.split import split_task
from amlb_ext.pipeline.folds import harden_calibrated
from amlb_ext.pipeline.summary import kappa_note

QUICK = {
    "baseline": {"model": "ridge"},
    "synthesizer": {"name": "local"},
    "split": {"folds": 1},
    "train_hard": False,
}


def prices(rows=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((rows, 2)), columns=["a", "b"])
    frame["price"] = 1e5 * (frame["a"] ** 3 + 0.3 * rng.random(rows))
    return frame


def test_an_rmse_is_in_the_targets_own_unit():
    config = build_config(QUICK, {"search": {"kappa": 0.0}})
    task = split_task(make_task(prices(), "price", name="t"), config.split, 1)
    hard = harden_fold(task, 0, config)
    for score, part in (("rmse", "full"), ("bad", "bad"), ("ga", "ga")):
        rows = hard.parts[part].test
        error = rows.target.to_numpy() - rows.provenance["f"].to_numpy()
        expected = np.sqrt(np.mean(error**2))
        assert hard.summary["score"][score] == pytest.approx(expected)
    assert hard.summary["score"]["rmse"] > 1000


def test_rows_of_a_table_without_numbers_are_not_said_to_be_jittered():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(list("abcd"), (150, 3)), columns=["u", "v", "w"])
    frame["y"] = np.where((frame["u"] == "a") ^ (rng.random(150) < 0.1), "yes", "no")
    settings = {"baseline": {"model": "logistic"}, "hardness": {"rule": "wrong"}}
    config = build_config(QUICK, settings)
    task = split_task(
        make_task(frame, "y", name="t", kind=Kind.BINARY), config.split, 1
    )
    (hard,) = harden_calibrated((task,), 0, config)
    assert not hard.summary["calibration"]["passed"]
    assert hard.summary["bad"]
    assert any(note.kind.startswith("kappa") for note in hard.notes)
    assert not hard.summary["jittered"]
    assert "jittered" not in kappa_note([hard.summary])
