"""Tables beyond a sum of bytes lie on disk; nothing else about them changes."""

import errno
import os
import pickle

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core import spill as module
from amlb_ext.core.config import build_config
from amlb_ext.core.parallel import Execution
from amlb_ext.core.spill import Spill
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold
from amlb_ext.pipeline import Request, generate, generate_suite


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


def test_several_files(task, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SEGMENT", 2048)
    spill = Spill(tmp_path, in_memory=0)
    assert [spill.keep(task).content_hash for _ in range(3)] == [task.content_hash] * 3


def test_a_full_disk_leaves_the_task_in_memory(task, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    spill = Spill(tmp_path, in_memory=0)
    assert spill.keep(task).content_hash == task.content_hash
    assert spill.on_disk == 0


def test_a_suite_made_of_spilled_tables_has_the_same_bytes(tmp_path, monkeypatch):
    cheap = {
        "baseline": {"model": "ridge"},
        "synthesizer": {"name": "local", "times": 1},
        "split": {"folds": 1},
        "search": {"kappa": 0.005, "copies": 1},
        "composition": ["weighted"],
        "train_hard": False,
    }
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(60), "c": rng.choice(["u", "v"], 60)})
    table["y"] = 3 * table["x"] + rng.normal(0, 0.3, 60)
    table.to_csv(tmp_path / "t.csv", index=False)
    made, spills = {}, []
    for in_memory in (0, 1 << 30):

        def keeper(folder, most=in_memory):
            spills.append(Spill(folder, in_memory=most))
            return spills[-1]

        monkeypatch.setattr(generate, "Spill", keeper)
        out = tmp_path / str(in_memory)
        source = (str(tmp_path / "t.csv"),)
        generate_suite(
            Request(
                source,
                build_config(cheap),
                out,
                Execution(1, ""),
                quiet=True,
                certificate="none",
            )
        )
        made[in_memory] = {
            path.relative_to(out): path.read_bytes()
            for path in out.rglob("*")
            if path.is_file()
        }
    assert [spill.on_disk > 0 for spill in spills] == [True, False]
    assert made[0] == made[1 << 30]
