"""verify finds rows that are repeated: damage where the rule was held to, else a warning."""

import numpy as np
import pandas as pd
import pytest
from written_suites import entry_of, finish, put_fold

from amlb_ext.core.tables import make_task
from amlb_ext.suite import (
    WARNING,
    Layout,
    Part,
    Rows,
    SuiteFiles,
    begin_suite,
    verify_suite,
)
from amlb_ext.suite.copy_counts import fold_copies, fold_reader


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=60), "c": np.resize(["u", "v", "w"], 60)}
    )
    return make_task(frame.assign(y=["Yes", "no"] * 30), "y", name="toy")


def real(task, index):
    about = pd.DataFrame({"source_row": task.row_ids[np.asarray(index)]})
    return Rows(
        task.features.iloc[index].reset_index(drop=True),
        task.target.iloc[index].reset_index(drop=True),
        about,
    )


def made(task, values, like=0):
    """Made rows with these numbers; everything else is that of one real row."""
    rows = real(task, [like] * len(values))
    return Rows(
        rows.features.assign(x=values),
        rows.target,
        rows.provenance.assign(source_row=-1),
    )


def joined(*blocks):
    columns = (
        pd.concat([getattr(block, name) for block in blocks], ignore_index=True)
        for name in ("features", "target", "provenance")
    )
    return Rows(*columns)


def make_suite(root, synthetic, hard_train, summary):
    layout, task = Layout(root), table()
    begin_suite(layout, {"sources": ["toy"]})
    test = real(task, range(40, 60))
    parts = {
        "": Part(synthetic),
        "full": Part(test),
        "synthetic": Part(synthetic),
        "hard": Part(synthetic, train=hard_train),
    }
    about = {"name": "toy", "key": "key", "summary": summary}
    record = put_fold(layout, task, real(task, range(40)), parts, **about)
    finish(layout, [entry_of(task, [record])])


HELD, OLD = {"dropped": {}}, {"bad": 3}


@pytest.mark.parametrize("summary", [HELD, OLD])
def test_a_suite_without_copies_is_whole(tmp_path, summary):
    task = table()
    hard = joined(real(task, range(12)), made(task, [7.0, 7.5]))
    make_suite(tmp_path, made(task, [5.0, 6.0], like=41), hard, summary)
    assert verify_suite(tmp_path) == []


@pytest.mark.parametrize(("summary", "begins"), [(HELD, ""), (OLD, WARNING)])
def test_what_is_repeated_is_counted(tmp_path, summary, begins):
    task = table()
    x = task.features["x"]
    other = x[40]  # of v and Yes, while rows like 1 are of v and no
    synthetic = made(task, [other, 5.0, 5.0, 6.0], like=1)
    # of the training rows of _hard one is made, twice the same, and one is a test row
    hard = joined(
        real(task, range(12)), made(task, [8.0, 8.0, 6.0], like=1), real(task, [45])
    )
    make_suite(tmp_path, synthetic, hard, summary)
    found = fold_copies(fold_reader(SuiteFiles.load(tmp_path), "toy", 0))
    counts = (found.made, found.copies, found.contradictions, found.repeated)
    assert counts == (7, 1, 1, 3)
    assert (found.hard_training, found.on_both_sides) == (16, 2)
    assert verify_suite(tmp_path) == [
        f"{begins}toy: of 7 made rows 1 repeat the features of a real row (1 with another target) "
        "and 3 those of another made row. toy_hard: 2 of 16 training rows have the features of a "
        "test row."
    ]
