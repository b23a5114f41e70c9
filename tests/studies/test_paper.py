"""The paper's tables: data, settings, one split, and cells beside the printed ones."""

import dataclasses

import numpy as np
import pytest

from amlb_ext.core.config import SplitConfig
from amlb_ext.hardening.split import split_task
from benchmarks.studies.files import load_diabetes, write_stand_ins
from benchmarks.studies.paper.chain import (
    Split,
)
from benchmarks.studies.paper.data import PaperSettings, make_toy
from benchmarks.studies.paper.settings import (
    PATIENTS,
    TOYS,
    row_settings,
)


def stand_ins(folder):
    write_stand_ins(folder)
    return folder


def quick(data, search=None, hardness=None, **readings):
    """Return the last row of a data set's table, with little to fit and to search."""
    config = {
        "synthesizer": {"epochs": 1, "times": 1},
        "search": {"copies": 1, **(search or {})},
        "hardness": hardness or {},
    }
    rows = (TOYS | PATIENTS)[data]
    return row_settings(rows, data, PaperSettings(config=config, **readings))[0]


class TestData:
    def test_the_toy_has_the_laws_and_the_shares_it_says(self):
        task = make_toy("56")
        x, z = task.features["x1"], task.features["x2"]
        inner = ((x >= 0.1) & (x <= 0.3) & (z >= 0.5) & (z <= 0.8)) | (
            (x >= 0.5) & (x <= 0.8) & (z >= 0.3) & (z <= 0.5)
        )
        assert inner.sum() == 140
        law = np.where(inner, -2 * x + x**2 - 8 * z**4, 2 * x + 3 * z + 7)
        assert np.std(task.target - law) == pytest.approx(0.1, rel=0.1)

    def test_no_column_that_gives_the_label_away(self, tmp_path):
        task = load_diabetes(stand_ins(tmp_path))
        assert len(task.columns) == 12
        assert sum(not c.is_numeric for c in task.columns) == 4
        assert not {"hba1c", "diabetes_stage", "diabetes_risk_score"} & set(
            task.features
        )


class TestSettings:
    def test_table_2_by_row(self):
        rows = {
            s.name: s.config
            for s in row_settings(PATIENTS["diabetes"], "diabetes", PaperSettings())
        }
        assert [rows[a].synthesizer.params["batch"] for a in rows] == [64, 128, 256]
        assert [rows[a].synthesizer.epochs for a in rows] == [100, 100, 200]
        assert [rows[a].search.copies for a in rows] == [8, 5, 3]
        # of classes the rule paper is band
        assert {c.hardness.rule for c in rows.values()} == {"paper"}
        assert [c.hardness.alpha for c in rows.values()] == [0.501, 0.502, 0.505]
        toy_row = row_settings(TOYS["toy_10"], "toy_10", PaperSettings())[
            0
        ].config.synthesizer
        assert toy_row.params == {
            "hidden": 16,
            "latent": 64,
            "decoder": 32,
            "batch": 16,
        }


@pytest.fixture(scope="module")
def fitted():
    setting = quick("toy_75")
    return Split(
        split_task(make_toy("75"), SplitConfig(folds=2), 1), 0, setting
    ), setting


class TestSplit:
    def test_bad_rows_are_those_f_misses_by_alpha(self, fitted):
        split, setting = fitted
        outcome = split.run_setting(setting)
        bad = outcome.parts["bad"]
        assert np.all(np.abs(bad.f - bad.y) >= 0.1 - 1e-9)
        rest = np.abs(split.test.f - split.test.y) < 0.1 - 1e-9
        assert outcome.counts["bad"] + rest.sum() == outcome.counts["test"]

    def test_each_augmented_row_gives_so_many_synthetic_ones_with_its_target(
        self, fitted
    ):
        split, setting = fitted
        config = setting.config.synthesizer.model_copy(update={"times": 3.0})
        more = dataclasses.replace(
            setting, config=setting.config.model_copy(update={"synthesizer": config})
        )
        parts = split.run_setting(more).parts
        assert np.array_equal(parts["synthetic"].y, np.repeat(parts["ga"].y, 3))

    def test_classification_lowers_the_positive_class(self, tmp_path):
        task = split_task(load_diabetes(stand_ins(tmp_path)), SplitConfig(folds=1), 1)
        search = {
            "operators": {"generations": 5, "flip": 0.0, "reapply": False},
        }
        setting = quick("diabetes", hardness={"alpha": 0.7}, search=search)
        split = Split(task, 0, setting)
        parts = split.run_setting(setting).parts
        assert parts["ga"].f[:, 1].mean() < parts["bad"].f[:, 1].mean() - 0.01
        by_label = dataclasses.replace(setting, readings=PaperSettings(fitness="label"))
        own = split.run_setting(by_label).parts
        y = own["bad"].y.astype(int)
        before = own["bad"].f[np.arange(len(y)), y].mean()
        copied = own["ga"].y.astype(int)
        assert own["ga"].f[np.arange(len(copied)), copied].mean() < before
