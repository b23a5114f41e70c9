"""Tables beyond a sum of bytes lie on disk; nothing else about them changes."""

import errno
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core import spill as module
from amlb_ext.core.spill import Spill
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(200), "c": rng.choice(["u", "v", None], 200)})
    table["n"] = [None, *range(199)]
    table["y"] = rng.choice(["no", "yes"], 200)
    task = make_task(table, "y", name="t")
    return task.with_folds((Fold(np.arange(150), np.arange(150, 200)),))


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, memoryview | module.mmap.mmap | pickle.PickleBuffer)


def values(task):
    columns = [task.features[name] for name in task.features] + [task.target]
    stored = [getattr(column.array, "codes", column.to_numpy()) for column in columns]
    return [*stored, task.row_ids, task.folds[0].train, task.folds[0].test]


def test_what_does_not_fit_is_mapped_and_the_same(task, tmp_path):
    spill = Spill(tmp_path / "not" / "there", in_memory=0)
    kept = spill.keep_folds(spill.keep(task))
    assert all(map(is_mapped, values(kept)))
    assert spill.on_disk >= sum(array.nbytes for array in values(task))
    pd.testing.assert_frame_equal(kept.features, task.features)
    pd.testing.assert_series_equal(kept.target, task.target)
    assert kept.content_hash == task.content_hash
    sent = pickle.loads(
        pickle.dumps(kept)
    )  # as to a worker; its hash is kept, so look at the rows
    pd.testing.assert_frame_equal(sent.features, task.features)
    assert (sent.folds[0].train == task.folds[0].train).all()
    assert list(tmp_path.iterdir()) == []  # no name, so nothing to leave behind
    kept.features.loc[0, "x"] = 7.0  # as any other frame
    assert kept.features.loc[0, "x"] == 7.0


def test_what_fits_is_left_alone(task, tmp_path):
    spill = Spill(tmp_path, in_memory=1 << 20)
    kept = spill.keep(task)
    assert kept.features is task.features
    assert kept.target is task.target
    assert spill.on_disk == 0


def test_a_shared_table_stays_shared(task, tmp_path):
    spill = Spill(tmp_path, in_memory=0)
    first, second = spill.keep(task), spill.keep(task.renamed("u"))
    assert first.features is second.features


def test_a_full_disk_leaves_the_task_in_memory(task, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    spill = Spill(tmp_path, in_memory=0)
    assert spill.keep(task).content_hash == task.content_hash
    assert spill.on_disk == 0
