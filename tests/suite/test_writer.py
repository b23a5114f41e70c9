"""Folds, a whole suite, and what verify says of damage."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
import yaml
from folders import contents
from hostile_files import reseal
from written_suites import entry_of, finish, put_fold

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.tables import make_task
from amlb_ext.suite import (
    Layout,
    Part,
    Rows,
    SuiteFiles,
    begin_suite,
    read_finished_fold,
    verify_suite,
)
from amlb_ext.suite.definition import yaml_text


def toy():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=60),
            "c": np.resize(["u", "v", "1"], 60),
            "y": ["Yes", "no"] * 30,
        }
    )
    return make_task(frame, "y", name="toy set")


def rows(task, index):
    index = np.asarray(index, dtype=np.int64)
    origin = np.where(index < 50, "bad", "good")
    about = pd.DataFrame({"origin": origin, "source_row": task.row_ids[index]})
    return Rows(task.features.iloc[index], task.target.iloc[index], about)


def parts_of(task):
    return {
        "": Part(rows(task, range(40, 50))),
        "full": Part(rows(task, range(40, 60))),
        "hard": Part(rows(task, range(40, 50)), train=rows(task, range(10))),
    }


def put_toy(layout, fold, parts=None, train=range(40)):
    task = toy()
    chosen = parts_of(task) if parts is None else parts
    about = {"name": "toy", "fold": fold, "summary": {"bad": 10}}
    return put_fold(layout, task, rows(task, train), chosen, **about)


def make_suite(root, folds=(0, 2), **changes):
    layout, task = Layout(root), toy()
    begin_suite(layout, {"sources": ["toy"]})
    records = tuple(
        read_finished_fold(layout, "toy", k, key="k") or put_toy(layout, k)
        for k in folds
    )
    entry = entry_of(task, records, name="toy", notes=("said",))
    failures = [{"task": "other", "reason": "no rows"}]
    return finish(layout, [entry], **{"failures": failures, **changes})


def test_a_fold_is_written_recorded_and_found_again(tmp_path):
    layout = Layout(tmp_path)
    record = put_toy(layout, 3)
    trained = {suffix: part.train for suffix, part in record.parts.items()}
    own, hard = "data/toy/toy_train_3.csv", "data/toy_hard/toy_hard_train_3.csv"
    assert trained == {"": own, "full": own, "hard": hard}
    assert record.parts["full"].test == "data/toy_full/toy_full_test_3.csv"
    assert record.parts["full"].labels == ("Yes", "no")
    assert record.summary == {"bad": 10}
    assert read_finished_fold(layout, "toy", 3, key="k") == record
    assert read_finished_fold(layout, "toy", 3, key="other") is None
    assert read_finished_fold(layout, "toy", 4, key="k") is None
    layout.test("toy", 3).write_text("changed")
    assert read_finished_fold(layout, "toy", 3, key="k") is None


def test_a_killed_fold_is_not_finished_and_derived_files_go(tmp_path, monkeypatch):
    layout = Layout(tmp_path)
    put_toy(layout, 0)
    derived = layout.test("toy", 0).with_suffix(".parquet")
    derived.write_text("what AMLB made of an older file")
    task = toy()
    odd = Rows(task.features[["x"]], task.target, pd.DataFrame(index=range(60)))
    with pytest.raises((SuiteError, KeyError)):
        put_toy(layout, 0, {"full": Part(odd)}, range(9))
    assert read_finished_fold(layout, "toy", 0, key="k") is None
    put_toy(layout, 0)
    assert not derived.exists()


def test_what_amlb_cannot_use_is_left_out_and_said(tmp_path):
    task = toy()
    even, odd = np.arange(0, 60, 2), np.arange(1, 60, 2)  # Yes, no
    parts = {
        "": Part(rows(task, [])),
        "bad": Part(rows(task, even[:3])),
        "hard": Part(rows(task, odd[:3]), train=rows(task, even)),
    }
    record = put_toy(Layout(tmp_path), 0, parts)
    assert list(record.parts) == ["bad"]
    assert [(note.part, note.text) for note in record.notes] == [
        ("toy", "left out, no test rows"),
        ("toy_hard", "left out, training rows of 1 class"),
    ]
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.resize(["a", "b", "z"], 60)})
    three = make_task(frame, "y", name="three")
    train = rows(three, np.flatnonzero(frame["y"] != "z"))
    part = {"": Part(rows(three, range(9)))}
    record = put_fold(Layout(tmp_path), three, train, part, name="three")
    assert record.parts[""].dropped == 3
    assert record.parts[""].test_rows == 6


def test_substituted_cells_are_in_the_provenance(tmp_path):
    layout, task = Layout(tmp_path), toy()
    train = [i for i in range(40) if i % 3 != 1]  # no 'v'
    record = put_toy(layout, 0, {"": Part(rows(task, range(40, 46)))}, train)
    about = pd.read_parquet(layout.provenance("toy", 0))
    # rows 40 and 43 hold 'v'
    assert list(about["substituted"]) == ["c", "", "", "c", "", ""]
    assert record.parts[""].substituted == {"c": 2}


def test_a_suite_is_whole_relative_and_movable(tmp_path):
    manifest = make_suite(tmp_path / "hard")
    assert verify_suite(tmp_path / "hard") == []
    text = (tmp_path / "hard" / "hardsynth" / "manifest.json").read_text()
    assert str(tmp_path) not in text
    shutil.move(tmp_path / "hard", tmp_path / "moved")
    assert verify_suite(tmp_path / "moved") == []
    suite = SuiteFiles.load(tmp_path / "moved")
    assert suite.manifest.amlb_tasks == manifest.amlb_tasks
    assert list(suite.amlb_tasks) == ["toy", "toy_full", "toy_hard"]
    assert suite.amlb_task("toy").folds == [0, 2]
    train, test = suite.pair("toy_full", 1)
    assert (train.name, test.name) == ("toy_train_2.csv", "toy_full_test_2.csv")
    about = suite.provenance("toy_full", 1)
    coding = suite.coding("toy_full")
    features, target = coding.decode(coding.read_csv(test))
    assert len(about) == len(features) == 20
    assert list(target) == list(toy().target.iloc[40:])
    with pytest.raises(SuiteError, match="did you mean 'toy'"):
        suite.pair("toi", 0)
    with pytest.raises(SuiteError, match="use 0 to 1"):
        suite.pair("toy", 2)


def test_texts_stay_texts_in_yaml_and_bytes_ascii():
    content = [
        {"name": text} for text in ("1e5", "yes", "007", "null", "~", "é: #", "a\nb")
    ]
    text = yaml_text(content)
    assert text.isascii()
    assert yaml.safe_load(text) == content


def test_the_same_request_gives_the_same_bytes_and_a_second_run_changes_none(tmp_path):
    make_suite(tmp_path / "a")
    make_suite(tmp_path / "b")
    first = contents(tmp_path / "a")
    assert first == contents(tmp_path / "b")
    make_suite(tmp_path / "a")
    assert contents(tmp_path / "a") == first


def test_a_smaller_generation_removes_ours_and_keeps_the_users(tmp_path):
    make_suite(tmp_path, name="bigger")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "data" / "mine.csv").write_text("mine")
    (tmp_path / "data" / "toy" / "toy_test_2.parquet").write_text("made by AMLB")
    make_suite(tmp_path, folds=(0,))
    left = set(contents(tmp_path))
    assert {"notes.txt", "data/mine.csv", "data/toy/toy_test_0.csv"} <= left
    assert not any(
        "_2." in path or "fold_2" in path or "bigger" in path for path in left
    )
    assert verify_suite(tmp_path) == [
        "data/mine.csv is not part of the suite.",
        "warning: notes.txt is not part of the suite.",
    ]


DAMAGE = {
    "changed": (
        lambda s: s.test("toy", 0).write_text("x,c,y\n1.0,u,c1_no\n"),
        "was changed",
    ),
    "missing": (lambda s: s.test("toy", 0).unlink(), "toy_test_0.csv is missing"),
    "provenance": (
        lambda s: shutil.copy(s.provenance("toy_full", 0), s.provenance("toy", 0)),
        "the provenance has 20 rows",
    ),
    "unreadable": (lambda s: s.provenance("toy", 0).write_text("?"), "cannot be read"),
    "definition": (
        lambda s: s.definition("hardsynth").write_text("---\n- name: other\n"),
        "benchmarks/hardsynth.yaml was changed",
    ),
    "entry": (
        lambda s: s.definition("hardsynth").write_text("---\n- name: toy\n"),
        "benchmarks/hardsynth.yaml was changed",
    ),
    "format": (
        lambda s: reseal(s.root, lambda e: e.update(format=9)),
        "has format 9",
    ),
    "pair": (
        lambda s: s.test("toy", 0).write_text(
            s.test("toy", 0).read_text().replace("c1_no", "maybe")
        ),
        "class 'maybe'",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(tmp_path, name):
    make_suite(tmp_path)
    damage, said = DAMAGE[name]
    damage(Layout(tmp_path))
    found = verify_suite(tmp_path)
    assert any(said in sentence for sentence in found), found


@pytest.mark.parametrize("name", ["changed", "missing", "pair"])
def test_whoever_reads_a_damaged_file_is_told(tmp_path, name):
    """``report`` and ``score`` took what stood there."""
    make_suite(tmp_path)
    suite = SuiteFiles.load(tmp_path)
    DAMAGE[name][0](suite.layout)
    with pytest.raises(
        SuiteError, match=r"toy_test_0.csv of the suite .*hardsynth verify"
    ):
        suite.pair("toy", 0)


def test_what_cannot_be_written_is_refused(tmp_path):
    task = toy()
    (tmp_path / "config.yaml").write_text("someone's")
    config = {"sources": []}
    for refused, said in (
        (
            lambda: Rows(task.features, task.target, pd.DataFrame({"a": [1]})),
            "and 1 of",
        ),
        (
            lambda: put_toy(Layout(tmp_path), 0, {"odd": Part(rows(task, [1]))}),
            "'odd'",
        ),
        (
            lambda: begin_suite(Layout(tmp_path), config),
            "choose another folder",
        ),
        (
            lambda: begin_suite(Layout(tmp_path / "config.yaml"), config),
            "is a file",
        ),
        (lambda: make_suite(tmp_path / "a", tasks=[]), "there is no benchmark"),
        (lambda: make_suite(tmp_path / "b", name="my suite"), "--name my_suite"),
        (lambda: SuiteFiles.load(tmp_path), "holds no suite"),
        (lambda: SuiteFiles.load(tmp_path / "a"), "unfinished"),
    ):
        with pytest.raises(SuiteError, match=said):
            refused()
