"""Identifier-like columns and folds of a source's own, from the command line to the suite."""

import json

import numpy as np
import pandas as pd
import pytest
from commands import BRIEF, hardsynth, words_of

from amlb_ext.cli.main import main
from amlb_ext.suite import SuiteFiles, verify_suite

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")

QUICK = words_of(BRIEF, "--baseline ridge --folds 1 --kappa 0")
#: F of the test that compares accuracies: one that could learn the identifiers by heart.
FOREST = ["--baseline", "random_forest", "--baseline-params", "n_estimators=20"]


def table(rows=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["u", "v", "w"])
    score = frame["u"] + frame["v"] ** 2 - frame["w"] + rng.normal(0, 0.3, rows)
    frame["y"] = np.where(score > score.median(), "yes", "no")
    return frame


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain" / "cells.csv"
    path.parent.mkdir()
    table().to_csv(path, index=False)
    return path


@pytest.fixture
def with_id(tmp_path):
    frame = table()
    order = np.random.default_rng(1).permutation(len(frame))
    frame.insert(0, "id", [f"patient {k}" for k in order])
    path = tmp_path / "ids" / "cells.csv"
    path.parent.mkdir()
    frame.to_csv(path, index=False)
    return path


def generate(source, out, *more):
    return main(["generate", str(source), "-o", str(out), *QUICK, *more])


def of_fold(out):
    return SuiteFiles.load(out).tasks["cells"].folds[0].summary


def test_an_id_column_changes_neither_f_nor_its_failures(
    tmp_path, plain, with_id, capsys
):
    assert generate(plain, tmp_path / "a", *FOREST, "-q") == 0
    capsys.readouterr()
    assert generate(with_id, tmp_path / "b", *FOREST) == 0
    printed = capsys.readouterr().out
    assert "'id' (one value per row)" in printed
    assert "--keep id" in printed
    ours, theirs = of_fold(tmp_path / "b"), of_fold(tmp_path / "a")
    assert abs(ours["score"]["brier"] - theirs["score"]["brier"]) <= 0.03
    assert ours["bad"] == theirs["bad"]
    suite = SuiteFiles.load(tmp_path / "b")
    train, test = suite.pair("cells_full", 0)
    assert "id" not in pd.read_csv(train)
    assert "id" not in pd.read_csv(test)
    assert any("'id'" in note for note in suite.tasks["cells"].notes)
    assert not verify_suite(tmp_path / "b")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--keep", "idd"], "did you mean 'id'"),
        (["--drop", "vv"], "did you mean 'v'"),
        (["--drop", "y"], "the target of cells"),
        (["--keep", "y"], "only as the target"),
        (["--keep", "id", "--drop", "id"], "both name 'id'"),
        (["--drop", "u", "--drop", "v", "--drop", "w", "--drop", "id"], "every column"),
    ],
)
def test_a_wrong_name_ends_before_anything_is_written(
    tmp_path, with_id, capsys, flags, said
):
    assert generate(with_id, tmp_path / "out", *flags) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_repair_makes_the_same_columns_again(tmp_path, with_id):
    out = tmp_path / "out"
    assert generate(with_id, out, "-q", "--keep", "id", "--drop", "w") == 0
    files = SuiteFiles.load(out).manifest.files
    for name in ("data/cells/cells_train_0.csv", "hardsynth/manifest.json"):
        (out / name).unlink()
        assert hardsynth("verify", out, "--repair --source", with_id, "-q") == 0
        assert SuiteFiles.load(out).manifest.files == files
    train = pd.read_csv(SuiteFiles.load(out).pair("cells_full", 0)[0])
    assert "id" in train
    assert "w" not in train


def test_another_choice_of_columns_does_not_replace_a_suite_unasked(
    tmp_path, plain, capsys
):
    assert generate(plain, tmp_path / "out", "-q") == 0
    assert generate(plain, tmp_path / "out", "--drop", "w") == 2
    assert "other settings (source" in capsys.readouterr().err
    assert generate(plain, tmp_path / "out", "--drop", "w", "--force", "-q") == 0


def test_settings_of_a_file_keep_and_drop_too(tmp_path, with_id, capsys):
    config = tmp_path / "settings.yaml"
    config.write_text("source:\n  keep: [id]\n  drop: [w]\n")
    assert (
        generate(
            with_id, tmp_path / "out", "--config", str(config), "--dry-run", "--json"
        )
        == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["tasks"][0]["columns"] == 3
    assert any("left out as you say: 'w'" in note for note in report["notes"])


def test_several_targets_lose_the_same_columns(tmp_path):
    frame = table().drop(columns="y")
    frame["id"] = [f"row {k}" for k in range(len(frame))]
    frame["a"], frame["b"] = frame["u"] ** 2, frame["u"] * frame["v"]
    frame.to_csv(tmp_path / "pair.csv", index=False)
    out = tmp_path / "out"
    flags = ["--targets", "a", "b", "--alpha", "0.1", "-q"]
    assert generate(tmp_path / "pair.csv", out, *flags) == 0
    for name in ("pair_a_full", "pair_b_full"):
        assert list(pd.read_csv(SuiteFiles.load(out).pair(name, 0)[0]))[:-1] == [
            "u",
            "v",
            "w",
        ]


def test_a_model_file_keeps_the_columns_it_was_fitted_on(tmp_path, with_id, capsys):
    import joblib
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.read_csv(with_id)
    coded = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("id", coded, ["id"])], remainder="passthrough")
    model = make_pipeline(columns, LogisticRegression()).fit(
        frame.drop(columns="y"), frame["y"]
    )
    joblib.dump(model, tmp_path / "f.joblib")
    flags = ["--baseline", str(tmp_path / "f.joblib"), "--trust-pickle", "--dry-run"]
    assert generate(with_id, tmp_path / "out", *flags) == 0
    printed = capsys.readouterr().out
    assert "kept because F, the file f.joblib, was fitted on it: 'id'" in printed


@pytest.fixture
def own_folds(tmp_path):
    """A definition of AMLB whose files hold three folds of the same rows."""
    frame = table(150)
    files = {"train": [], "test": []}
    for k in range(3):
        held = np.arange(len(frame)) % 3 == k
        for side, rows in (("train", ~held), ("test", held)):
            path = tmp_path / f"{side}_{k}.csv"
            frame[rows].to_csv(path, index=False)
            files[side].append(str(path))
    path = tmp_path / "mine.yaml"
    entry = {"train": files["train"], "test": files["test"], "target": "y"}
    path.write_text(json.dumps([{"name": "cells", "dataset": entry}]))
    return path


def test_folds_of_its_own_are_cut_to_the_first_and_it_is_said(
    tmp_path, own_folds, output_of
):
    place = QUICK.index("--folds")
    quick = ["generate", str(own_folds), *QUICK[:place], *QUICK[place + 2 :]]
    assert main([*quick, "-o", str(tmp_path / "all"), "-q"]) == 0
    said = " ".join(output_of(quick, "-o", tmp_path / "two", "--folds 2").split())
    assert "3 folds of its own, of which --folds 2 takes the first 2: " in said
    assert "rows are tested, so a change must be 1.2 times as large to be shown" in said
    every, first = (
        SuiteFiles.load(tmp_path / n).tasks["cells"].folds for n in ("all", "two")
    )
    assert sorted(every) == [0, 1, 2]
    assert sorted(first) == [0, 1]
    for fold in first:
        assert first[fold].key == every[fold].key
