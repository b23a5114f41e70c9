"""No made row repeats a real row or another made one, whatever makes it; read from the files."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planted_copies import (
    QUICK,
    audit,
    balance,
    balance_label,
    chess,
    chess_label,
    harden,
    nominal_target,
    numeric,
    written,
)

from amlb_ext.core.config import SplitConfig, build_config
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Fold, Origin
from amlb_ext.hardening.assemble import separate_sides
from amlb_ext.hardening.fold import harden_group
from amlb_ext.hardening.split import split_task
from amlb_ext.models.checks import count_copies
from amlb_ext.sources.files import to_tasks
from amlb_ext.sources.table import Table
from amlb_ext.suite import Rows, fit_to_train

FORBIDDEN = ("copies", "contradictions", "repeated", "repeated_hard", "hard_is_test")


def check(task, hard, folder):
    counts = audit(written(task, hard, folder))
    assert {name: counts[name] for name in FORBIDDEN} == dict.fromkeys(FORBIDDEN, 0), (
        counts
    )
    return counts


def wrong_labels(hard, label):
    """Count made rows with another label than the known function gives them, and all of them."""
    blocks = [part.test for name, part in hard.parts.items() if name == "synthetic"]
    if "hard" in hard.parts:
        rows = hard.parts["hard"].train
        blocks.append(rows.take((rows.provenance["source_row"] == -1).to_numpy()))
    wrong = [
        (label(b.features) != b.target.astype(str).to_numpy()).sum() for b in blocks
    ]
    return int(sum(wrong)), sum(len(block) for block in blocks)


def test_the_table_is_complete_so_nothing_can_be_made(tmp_path):
    task = balance()
    hard = harden(task)
    counts = check(task, hard, tmp_path)
    assert counts["made"] == 0 < counts["hard"]
    assert set(hard.parts) == {"full", "bad", "region", "hard"}
    dropped = hard.summary["dropped"]["synthetic"]
    assert dropped["real_row"] > 0
    assert hard.summary["synthetic"] == 0 < hard.summary["synthetic_asked"]
    assert dropped["made_row"] == dropped["good"] == dropped["label"] == 0
    assert ("nothing to search", "test") in {
        (note.kind, note.side) for note in hard.notes
    }


@pytest.mark.parametrize("preset", ["literal", "stress"])
def test_positions_on_a_board(tmp_path, preset):
    task = chess(300)
    operators = {"population": 6, "generations": 2}
    layer = {"search": {"kappa": 0.02, "copies": 2, "operators": operators}}
    hard = harden(
        task, preset=preset, synthesizer={"name": "vae", "epochs": 5}, **layer
    )
    counts = check(task, hard, tmp_path)
    assert counts["hard"] > 10
    if preset == "literal":  # no agreement filter: what is not known may be made
        assert counts["made"] > 5


def test_nominal_columns_and_a_number_to_predict(tmp_path):
    task = nominal_target()
    hard = harden(task)
    check(task, hard, tmp_path)
    left_out = hard.summary["hard_train"]["left_out"]
    assert left_out["train_real"] > 0
    [note] = [note for note in hard.notes if note.kind == "real training rows met"]
    assert note.counts == {"rows": left_out["train_real"]}
    # the plain training file stays the rows F was trained on
    assert len(hard.train) == hard.summary["train"] == 280


def test_several_targets_with_the_same_rows(tmp_path):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 3, (200, 4))
    table = pd.DataFrame(np.char.add("v", codes.astype(str)), columns=list("uvwx"))
    table["n"] = rng.integers(0, 4, 200)
    noise = rng.normal(0, 0.5, (2, 200))
    table["a"], table["b"] = codes[:, 0] ** 2 + noise[0], codes[:, 1] ** 2 + noise[1]
    config = build_config({**QUICK, "baseline": {"model": "ridge"}})
    about = {"kind": None, "origin": Origin("t")}
    tasks = to_tasks(Table("t", table), name="t", targets=["a", "b"], **about)
    tasks = [split_task(task, config.split, config.seed) for task in tasks]
    for number, (task, hard) in enumerate(
        zip(tasks, harden_group(tasks, 0, config), strict=True)
    ):
        counts = check(task, hard, tmp_path / str(number))
    assert counts["made"] > 0


def test_a_numeric_table_loses_nothing(tmp_path):
    task = numeric()
    hard = harden(task)
    counts = check(task, hard, tmp_path)
    assert counts["made"] > 300
    for summary in (hard.summary, hard.summary["hard_train"]):
        for dropped in summary["dropped"].values():
            assert dropped["real_row"] == dropped["made_row"] == 0
    assert hard.summary["hard_train"]["left_out"]["train_real"] == 0


def test_a_table_whose_rows_were_copied_says_so():
    task = numeric(200)
    table = task.features.assign(y=task.target)
    stacked = pd.concat([table, table.iloc[::2]], ignore_index=True)
    copied = split_task(make_task(stacked, "y", name="copied"), SplitConfig(), 0)
    [test, train] = [
        stacked.iloc[rows] for rows in (copied.folds[0].test, copied.folds[0].train)
    ]
    n_copies = len(test.merge(train.drop_duplicates()))
    assert count_copies(copied, 0) == n_copies > 20
    [note] = [note for note in harden(copied).notes if note.kind == "copies"]
    assert "drop them first" in note.text
    # copies that a group keeps together
    folds = (Fold(train=np.arange(100, 200), test=np.r_[0:100, 200:250]),)
    assert count_copies(replace(copied, folds=folds), 0) == 0


@pytest.mark.parametrize("drawn", [False, True])
def test_few_copies_are_told_where_no_chance_makes_them(drawn):
    table = numeric(400).features.assign(y=numeric(400).target)
    more = table.iloc[:20]
    if drawn:
        # with replacement, as a bootstrap does
        table, more = table.sample(400, replace=True, random_state=0), table.iloc[:0]
    stacked = pd.concat([table, more], ignore_index=True)
    task = split_task(make_task(stacked, "y", name="few"), SplitConfig(), 0)
    fold = task.folds[0]
    train = stacked.iloc[fold.train].drop_duplicates()
    assert count_copies(task, 0) == len(stacked.iloc[fold.test].merge(train)) > 3


def test_a_row_that_marks_a_state_is_no_copy():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1000, 3)), columns=list("abc"))
    table["y"] = np.where(table["a"] + rng.normal(size=1000) > 0, "p", "q")
    # a sensor that is switched off
    table.loc[rng.random(1000) < 0.08, ["a", "b", "c", "y"]] = [0.0, 0.0, 0.0, "q"]
    task = split_task(make_task(table, "y", name="off"), SplitConfig(), 0)
    assert count_copies(task, 0) == 0


@pytest.mark.parametrize("task", [chess(700), chess(700, 7), chess(2000, 7)])
def test_rows_that_repeat_by_chance_are_no_copies(task):
    task = split_task(task, SplitConfig(), 0)
    features = task.features
    test = features.iloc[task.folds[0].test]
    assert len(test.merge(features.iloc[task.folds[0].train])) > 20
    assert count_copies(task, 0) == 0


def test_pairs_that_chance_makes_of_rounded_numbers_are_no_copies():
    told = 0
    for draw in range(60):
        rng = np.random.default_rng(draw)
        table = pd.DataFrame({"a": rng.normal(size=600).round(3)})
        table["y"] = rng.choice(["no", "yes"], 600)
        task = split_task(make_task(table, "y", name="t"), SplitConfig(), draw)
        told += count_copies(task, 0) > 0
    assert told <= 1


@pytest.mark.exhaustive
def test_labels_of_cells_are_right_more_often_than_not():
    """Of those made before, more than half were wrong; what cannot be vouched for is not made."""
    hard = harden(chess(1500, 12), light=False)
    assert 0.5 < hard.summary["least_support"] < 1
    assert "least support" in {note.kind for note in hard.notes}
    wrong, made = wrong_labels(hard, chess_label)
    assert made >= 5
    assert wrong <= 0.3 * made
    wrong, made = wrong_labels(harden(balance(300), light=False), balance_label)
    assert wrong <= max(1, 0.5 * made)


def test_rows_that_become_alike_in_hard_alone_are_left_out():
    """Test rows are fitted to the training rows of _hard, which know fewer categories."""
    table = pd.DataFrame(
        {
            "c": ["a"] * 12 + ["b"] * 12 + ["z"] * 6,
            "n": np.arange(30.0),
            "y": [0.0, 1, 2] * 10,
        }
    )
    table.loc[24, "n"] = 3.0  # a test row that is training row 3 once its z is an a
    task = make_task(table, "y", name="alike")
    task = task.with_folds((Fold(np.arange(24), np.arange(24, 30)),))

    def rows(index, source):
        index = np.asarray(index)
        about = pd.DataFrame({"source_row": source})
        return Rows(
            task.features.iloc[index].reset_index(drop=True),
            task.target.iloc[index].reset_index(drop=True),
            about,
        )

    train = rows(np.arange(12), np.arange(12))
    made = rows([24, 24, 29], [24, -1, -1])
    made.features.loc[1, "n"] = (
        4.5  # made rows: of z and of a, the same where z is an a
    )
    made.features.loc[2, "n"] = 4.5
    made.features.loc[2, "c"] = "a"
    tested = task.features.iloc[task.folds[0].test]
    written = fit_to_train(task.features.iloc[:24], tested, task.columns).features
    pair, left_out = separate_sides(
        train,
        made,
        real=(task.features, written),
        tested=(tested, written),
        fit=lambda known, asked: fit_to_train(known, asked, task.columns),
    )
    assert left_out == {"train_real": 1, "train_made": 0, "test_made": 1}
    assert 3.0 not in set(pair.train.features["n"])
    assert pair.test.provenance["source_row"].tolist() == [24, -1]
    assert pair.test.features["c"].tolist() == [
        "z",
        "a",
    ]  # the row that stands as it was made


def test_hard_rows_that_all_equal_test_rows_leave_nothing_to_train_on():
    table = pd.DataFrame(
        {"c": ["a", "b"] * 15, "n": [1.0, 2.0] * 15, "y": [0.0, 1, 2] * 10}
    )
    task = make_task(table, "y", name="alike")
    task = task.with_folds((Fold(np.arange(20), np.arange(20, 30)),))
    train, test = (
        Rows(
            task.features.iloc[i], task.target.iloc[i], pd.DataFrame({"source_row": i})
        )
        for i in (np.arange(4), np.arange(20, 25))
    )
    tested = task.features.iloc[task.folds[0].test]
    pair, left_out = separate_sides(
        train,
        test,
        real=(task.features,),
        tested=(tested,),
        fit=lambda known, asked: fit_to_train(known, asked, task.columns),
    )
    assert (len(pair.train), len(pair.test), left_out["train_real"]) == (0, 5, 4)
