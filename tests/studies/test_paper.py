"""The paper's experiments: settings, one split, resuming, cells, page, command."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from amlb_ext.cli import main
from amlb_ext.core.config import SplitConfig
from amlb_ext.core.errors import ConfigError, DataError, SourceError
from amlb_ext.experiments import EXPERIMENTS, page, reproduce
from amlb_ext.experiments.paper import cells, run
from amlb_ext.experiments.paper.chain import Split, run_split
from amlb_ext.experiments.paper.data import (
    DATA,
    DIABETES,
    load_diabetes,
    load_housing,
    make_simulated,
    make_toy,
)
from amlb_ext.experiments.paper.measures import (
    mean_smape,
    score_predictions,
    wasserstein_distances,
)
from amlb_ext.experiments.paper.readings import Readings
from amlb_ext.experiments.paper.settings import read_changes, settings_of
from amlb_ext.hardening.split import split_task

QUICK = {"synthesizer.epochs": 1, "synthesizer.times": 1, "search.copies": 1}


def flats(folder: Path, n: int = 300) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((n, 3)), columns=["rooms", "age", "income"])
    table["near"] = rng.choice(["sea", "hill"], n)
    table["median_house_value"] = (
        table["income"] ** 2 + (table["near"] == "sea") * table["age"]
    )
    table.loc[::20, "rooms"] = np.nan
    table.to_csv(folder / "housing.csv", index=False)
    return folder


def patients(folder: Path, n: int = 400) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {name: rng.choice(["a", "b"], n) for name in DIABETES["categorical"]}
    )
    for name in (*DIABETES["numeric"], *DIABETES["chosen"]):
        table[name] = rng.random(n)
    table["diagnosed_diabetes"] = (rng.random(n) < 0.3 + 0.5 * table["age"]).astype(int)
    table["hba1c"] = table["diagnosed_diabetes"] * 10  # gives the label away
    table.to_csv(folder / "diabetes_dataset.csv", index=False)
    return folder


def quick(data: str, table: str, **changes):
    return settings_of(EXPERIMENTS[table], data, {**QUICK, **changes})


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

    def test_by_area_chance_decides(self):
        x = make_toy("56", by_area=True).features
        assert not x.equals(make_toy("56").features)

    def test_simulated_has_the_paper_s_form(self):
        task = make_simulated(5000)
        assert task.features.shape == (5000, 16)
        assert [c.name for c in task.columns if not c.is_numeric] == ["building"]

    def test_no_column_that_gives_the_label_away(self, tmp_path):
        task = load_diabetes(patients(tmp_path))
        assert len(task.columns) == 12
        assert sum(not c.is_numeric for c in task.columns) == 4
        assert not {"hba1c", "diabetes_stage", "diabetes_risk_score"} & set(
            task.features
        )

    def test_as_many_with_diabetes_as_without(self, tmp_path):
        counts = load_diabetes(patients(tmp_path)).target.value_counts()
        assert counts["yes"] == counts["no"]
        assert len(load_diabetes(tmp_path, balanced=False)) == 400

    def test_a_file_is_found_in_the_folder_or_one_of_its_name(self, tmp_path):
        (tmp_path / "housing").mkdir()
        flats(tmp_path / "housing")
        assert len(load_housing(tmp_path)) == 300

    def test_what_is_wrong_is_said(self, tmp_path):
        with pytest.raises(SourceError, match=r"give its folder as --data"):
            load_housing(None)
        with pytest.raises(SourceError, match=r"holds no housing\.csv"):
            load_housing(tmp_path)
        pd.DataFrame({"age": [1]}).to_csv(tmp_path / "diabetes_dataset.csv")
        with pytest.raises(DataError, match="no column 'gender'"):
            load_diabetes(tmp_path)


class TestSettings:
    def test_table_2_by_row(self):
        rows = {
            s.name: s.config for s in settings_of(EXPERIMENTS["table-a3"], "diabetes")
        }
        assert [rows[a].synthesizer.batch for a in rows] == [64, 128, 256]
        assert [rows[a].synthesizer.epochs for a in rows] == [100, 100, 200]
        assert [rows[a].search.copies for a in rows] == [8, 5, 3]
        assert {c.hardness.rule for c in rows.values()} == {"band"}
        toy_row = settings_of(EXPERIMENTS["table-a1"], "toy_10")[0].config.synthesizer
        assert (toy_row.latent, toy_row.decoder, toy_row.batch) == (64, 32, 16)

    def test_levels_are_standard_deviations(self):
        found = [
            s.config.search.sigma2
            for s in settings_of(EXPERIMENTS["table-1"], "housing")
        ]
        assert found == pytest.approx([0.005**2, 0.02**2, 0.05**2, 0.1**2])

    def test_changes_reach_settings_and_readings(self):
        changed = quick("toy_10", "table-a1", pool="test", **{"search.kappa": 0.3})[0]
        assert (changed.readings.pool, changed.config.search.kappa) == ("test", 0.3)

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"pol": "bad"}, "did you mean 'pool'"),
            ({"pool": "all"}, "one of bad, test is wanted"),
            ({"search.kapa": 1}, "did you mean 'kappa'"),
        ],
    )
    def test_unknown_changes_are_refused(self, changes, told):
        with pytest.raises(ConfigError, match=re.escape(told)):
            settings_of(EXPERIMENTS["table-a1"], "toy_10", changes)

    def test_words_need_a_sign(self):
        with pytest.raises(ConfigError, match="KEY=VALUE"):
            read_changes(["kappa"])

    def test_without_xgboost_scikit_learn_stands_for_g(self, monkeypatch):
        from amlb_ext.experiments.paper import settings

        monkeypatch.setattr(settings, "find_spec", lambda name: None)
        g = settings.candidate_config("toy", Readings())
        assert (g.model, g.params["learning_rate"]) == ("gradient_boosting", 0.3)

    def test_keys_follow_what_decides_a_result(self):
        one, other = (
            quick("toy_10", "table-a1"),
            quick("toy_10", "table-a1", with_bad=True),
        )
        settled = {"number": 0, "is_drawn": False}
        key = run.split_key(one, "x", **settled)
        assert key == run.split_key(one, "x", **settled)
        assert key != run.split_key(other, "x", **settled)
        assert key != run.split_key(one, "y", **settled)


class TestMeasures:
    def test_smape_by_hand(self):
        # |3 - 1| / (3 + 1) = 1/2, |1 - 1| / 2 = 0; twice their mean
        assert mean_smape(np.array([1.0, 1.0]), np.array([3.0, 1.0])) == pytest.approx(
            0.5
        )

    def test_one_class_has_no_auc(self):
        p = np.array([[0.4, 0.6], [0.7, 0.3]])
        found = score_predictions(np.array([1, 1]), p)
        assert np.isnan(found["auc"])
        assert found["f1"] == pytest.approx(2 / 3)

    def test_residual_variance_and_targets(self):
        y, f = np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])
        found = score_predictions(y, f)
        assert (found["mse"], found["residual_variance"], found["w_target"]) == (
            1.0,
            0.0,
            1.0,
        )

    def test_missing_numbers_are_left_out(self):
        A, B = np.array([[np.nan, 1.0], [0.5, 1.0]]), np.array([[0.0, 1.0]])
        assert wasserstein_distances(A, B)["w_features"] == pytest.approx(0.25)


@pytest.fixture(scope="module")
def fitted():
    setting = quick("toy_75", "table-a1")[0]
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

    def test_k_is_applied_again(self, fitted):
        split, setting = fitted
        made = split.run_setting(setting).parts["ga"]
        assert np.all(np.abs(made.f - made.y) >= 0.1 - 1e-9)

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

    def test_x_ga_with_the_bad_rows_themselves(self, fitted):
        split, setting = fitted
        both = dataclasses.replace(setting, readings=Readings(with_bad=True))
        parts = split.run_setting(both).parts
        n = len(parts["bad"].y)
        assert np.array_equal(parts["ga"].Z[:n], parts["bad"].Z)
        assert len(parts["ga"].y) > n

    def test_the_pool_bounds_the_search(self, fitted):
        split, setting = fitted
        parts = split.run_setting(setting).parts
        low, high = parts["bad"].Z.min(axis=0), parts["bad"].Z.max(axis=0)
        made = parts["ga"].Z
        assert made.min(axis=0) == pytest.approx(np.maximum(made.min(axis=0), low))
        assert made.max(axis=0) == pytest.approx(np.minimum(made.max(axis=0), high))

    def test_copies_up_to_max_rows(self, fitted):
        split, _ = fitted
        setting = quick(
            "toy_75", "table-a1", **{"search.copies": 20, "search.reapply": False}
        )[0]
        outcome = split.run_setting(setting)
        wanted = outcome.counts["bad"] * (400 // outcome.counts["bad"])
        assert outcome.counts["ga"] == wanted

    def test_no_bad_row_no_cell(self, fitted):
        split, _ = fitted
        setting = quick("toy_75", "table-a1", **{"hardness.alpha": 5.0})[0]
        outcome = split.run_setting(setting)
        assert outcome.counts == {"test": 200, "bad": 0, "ga": 0, "synthetic": 0}
        assert not outcome.scores

    def test_classification_lowers_the_positive_class(self, tmp_path):
        task = split_task(load_diabetes(patients(tmp_path)), SplitConfig(folds=1), 1)
        changes = {"hardness.alpha": 0.7, "search.flip": 0.0, "search.reapply": False}
        setting = quick("diabetes", "table-a3", **changes, **{"search.generations": 5})[
            0
        ]
        split = Split(task, 0, setting)
        parts = split.run_setting(setting).parts
        assert parts["ga"].f[:, 1].mean() < parts["bad"].f[:, 1].mean() - 0.01
        by_label = dataclasses.replace(setting, readings=Readings(fitness="label"))
        own = split.run_setting(by_label).parts
        y = own["bad"].y.astype(int)
        before = own["bad"].f[np.arange(len(y)), y].mean()
        copied = own["ga"].y.astype(int)
        assert own["ga"].f[np.arange(len(copied)), copied].mean() < before


class TestRun:
    def test_finished_splits_are_not_made_again(self, tmp_path, monkeypatch):
        reproduce(
            ["table-a1"], tmp_path, splits=1, changes=QUICK, certify=False, workers=1
        )
        files = sorted((tmp_path / "table-a1" / "splits").glob("*.json"))
        before = [file.read_bytes() for file in files]
        asked = []
        monkeypatch.setattr(
            run, "run_split", lambda *a: asked.append(a[3]) or run_split(*a)
        )
        results = reproduce(
            ["table-a1"], tmp_path, splits=2, changes=QUICK, certify=False, workers=1
        )
        assert asked == [1, 1, 1]
        assert [file.read_bytes() for file in files] == before
        assert results[0].splits == 2

    def test_what_cannot_be_had_is_named_and_the_rest_is_run(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.setitem(
            DATA,
            "simulated",
            dataclasses.replace(
                DATA["simulated"], load=lambda _, __: make_simulated(3000)
            ),
        )
        result = reproduce(
            ["table-1"], tmp_path, splits=1, changes=QUICK, certify=False, workers=1
        )[0]
        assert "housing" in result.left_out
        assert set(result.cells["data"]) == {"simulated"}
        text = (tmp_path / "index.html").read_text()
        assert "housing needs a file" in text

    def test_nothing_can_be_had(self, tmp_path):
        with pytest.raises(SourceError, match="--data"):
            reproduce(["table-a3"], tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_bad_words(self, tmp_path, capsys):
        out = str(tmp_path / "out")
        assert main(["reproduce", "table-a4", "-o", out]) == 2
        assert "did you mean 'table-a" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main(["reproduce", "table-a1", "-o", out, "--splits", "0"])
        assert main(["reproduce", "table-a1", "-o", out, "--set", "pool=all"]) == 2
        assert not Path(out).exists()


class TestCells:
    def done(self, values, name="table-a1"):
        rows = {
            "10": {
                "counts": {"test": 200, "bad": 20, "ga": 20, "synthetic": 100},
                "scores": {"bad": {"F": {"mse": 0.0, "smape": 0.0}}},
            }
        }
        out = []
        for k, value in enumerate(values):
            scored = json.loads(json.dumps(rows))
            scored["10"]["scores"]["bad"]["F"]["mse"] = value
            out.append(
                run.SplitResult(
                    data="toy_10",
                    split=k,
                    rows=scored,
                    seconds=1.0,
                    candidate="xgboost",
                    arrays=Path(),
                )
            )
        return out

    def table(self, values):
        e = EXPERIMENTS["table-a1"]
        e = dataclasses.replace(e, rows={"toy_10": e.rows["toy_10"]})
        found = cells.compare_cells(e, self.done(values))
        return found[(found["model"] == "F") & (found["part"] == "bad")].set_index(
            "measure"
        )

    def test_two_printed_deviations(self):
        # printed: .3655 ± .1099
        assert self.table([0.3655 + 0.21, 0.3655 + 0.22]).loc["mse", "within"]
        assert not self.table([0.3655 + 0.22, 0.3655 + 0.23]).loc["mse", "within"]
        assert self.table([0.3, 0.5]).loc["mse", "ours_std"] == pytest.approx(
            0.2 / 2**0.5
        )

    def test_no_number_of_ours_is_no_verdict(self):
        assert self.table([None]).loc["mse", "within"] is None

    def test_every_printed_cell_has_a_row_of_an_experiment(self):
        for name, table in cells.printed_numbers().items():
            rows = {row for rows in EXPERIMENTS[name].rows.values() for row in rows}
            assert set(table) - {"initial"} == rows

    def test_printed_means_are_as_in_the_paper(self):
        told = cells.printed_numbers()
        assert told["table-a1"]["75"]["G"]["synthetic"]["mse"] == [0.1552, 0.0178]
        assert told["table-a2"]["0.3"]["F"]["synthetic"]["wasserstein"] == [
            0.0882,
            0.0550,
        ]
        assert told["table-a3"]["0.505"]["G"]["synthetic"]["f1"] == [0.1168, 0.0867]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduced")
    data = patients(flats(tmp_path_factory.mktemp("data")))
    words = [
        "table-a1",
        "figure-3",
        "figure-8",
        "figure-7",
        "-j",
        "1",
        "-q",
        "--data",
        str(data),
    ]
    changes = [f"--set={key}={value}" for key, value in QUICK.items()]
    changes += ["--set=search.generations=0"]
    words += ["-o", str(out), "--splits", "1", "--no-certificates", *changes]
    assert main(["reproduce", *words]) == 0
    return out


class TestPageAndCommand:
    def test_csv_markdown_and_page(self, folder):
        table = pd.read_csv(folder / "table-a1" / "cells.csv")
        assert len(table) == 39
        assert set(table["splits"]) == {1}
        text = (folder / "table-a1" / "cells.md").read_text()
        assert "| 10 | F | X_b | MSE | 0.3655 ± 0.1099 |" in text
        html = (folder / "index.html").read_text()
        assert "0.3655 ± 0.1099" in html
        assert "://" not in html

    def test_pictures_are_drawn(self, folder):
        pictures = sorted(path.name for path in folder.rglob("*.svg"))
        assert "figure-3_toy_10.svg" in pictures
        assert "figure-8_housing.svg" in pictures
        assert (
            (folder / "figure-3" / "figure-3_toy_10.svg")
            .read_text()
            .startswith("<?xml")
        )
        assert (folder / "index.html").read_text().count("<img") == len(pictures)

    def test_json(self, folder, capsys):
        changes = [f"--set={k}={v}" for k, v in QUICK.items()] + [
            "--set=search.generations=0"
        ]
        words = ["table-a1", "-o", str(folder), "--splits", "1", "--no-certificates"]
        assert main(["reproduce", *words, "--json", *changes]) == 0
        result = json.loads(capsys.readouterr().out)[0]
        assert sum(result["verdict"].values()) == 39
        assert result["splits"] == 1

    def test_an_empty_folder_says_so(self, tmp_path):
        page.write_page(tmp_path)
        assert "Nothing was reproduced" in (tmp_path / "index.html").read_text()
