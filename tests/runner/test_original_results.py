"""Results of the original, which stand for the untouched test folds of its hard twin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from written_suites import entry_of, finish, put_fold

from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Origin
from amlb_ext.runner.jobs import jobs_for_verdict, read_jobs
from amlb_ext.runner.original_results import read_job_predictions
from amlb_ext.suite import (
    Layout,
    Part,
    Rows,
    SuiteFiles,
    SuiteRequest,
    begin_suite,
)
from amlb_ext.suite.twin import Original

#: Folds of the source; the first has no failures, so that it is not in the suite.
FOLDS = (1, 2)
#: The last test row has a class that no training row has.
LABELS = ["Yes", "no"] * 30
ALONE = {1: "odd"}


def frame_of(fold):
    rng = np.random.default_rng(fold)
    labels = list(LABELS)
    labels[-1] = ALONE.get(fold, labels[-1])
    return pd.DataFrame(
        {
            "x": rng.normal(size=60),
            "y": rng.permuted(labels[:40]).tolist() + labels[40:],
        }
    )


def take(task, positions):
    positions = np.asarray(positions)
    about = pd.DataFrame({"origin": "good", "source_row": task.row_ids[positions]})
    return Rows(task.features.iloc[positions], task.target.iloc[positions], about)


@pytest.fixture
def suite(tmp_path):
    """The hard twin of ``mine``, whose one task is called ``My toy``."""
    layout = Layout(tmp_path / "suite")
    begin_suite(layout, {})
    every_label = pd.concat([frame_of(1), frame_of(2)], ignore_index=True)
    task = make_task(every_label, "y", name="My toy")
    records = []
    for position, fold in enumerate(FOLDS):
        start = 60 * position
        # AMLB cannot score a class that was never seen, so the suite leaves its row out.
        end = start + (59 if fold in ALONE else 60)
        full = Part(take(task, range(start + 40, end)))
        hard = Part(take(task, range(start + 40, start + 50)))
        train = take(task, range(start, start + 40))
        parts = {"": hard, "full": full}
        records.append(put_fold(layout, task, train, parts, name="My_toy", fold=fold))
    source = Origin("openml/t/31", {"task_id": "31"})
    finish(
        layout,
        [entry_of(task, records, name="My_toy", origin=source)],
        name="hardsynth_mine",
        request=SuiteRequest(command="hardsynth harden mine.yaml -o DIR", twin=True),
        original=Original("mine", {"My_toy": {"name": "My toy"}}),
    )
    return SuiteFiles.load(layout.root)


def write_run(out, folds, *, definition="mine", task="My_toy", truths=None, **columns):
    """Write what AMLB does when it ran the original; labels are in lower case, as it has them."""
    run = out / f"flaml.{definition}.1h.local.20250301T100000"
    (run / "scores").mkdir(parents=True)
    rows = []
    for fold in folds:
        row = {
            "id": "openml.org/t/31",
            "task": task,
            "framework": "flaml",
            "fold": fold,
        }
        row |= {"constraint": "1h", "result": 0.5, "metric": "auc", "version": "2.1"}
        rows.append(row | columns)
        if truths is None:
            truth = frame_of(fold)["y"][40:].str.lower()
        else:
            truth = pd.Series(truths)
        table = pd.DataFrame({"no": 0.2, "odd": 0.0, "yes": 0.8}, index=truth.index)
        table = table.assign(predictions="yes", truth=truth)
        path = run / "predictions" / task / str(fold) / "predictions.csv"
        path.parent.mkdir(parents=True)
        table.to_csv(path, index=False)
    pd.DataFrame(rows).to_csv(run / "scores" / "results.csv", index=False)
    return run


def test_they_stand_for_the_folds_of_the_suite(suite, tmp_path):
    write_run(tmp_path / "out", [0, 1, 2])
    found = read_jobs(suite, tmp_path / "out")
    jobs = found.table[found.table["status"] == "scored"]
    assert jobs["amlb_task"].tolist() == ["My_toy_full", "My_toy_full"]
    assert jobs["fold"].tolist() == [0, 1]
    assert jobs["original_fold"].tolist() == [1, 2]
    used, left_out = found.notes
    assert used.startswith("2 results of mine, the benchmark whose hard twin")
    assert "the truth of every row agrees" in used
    assert "The first: My_toy, fold 0: the suite has not this fold" in left_out
    assert len(found.rows) == 0  # their rows have the names of the hard ones
    assert len(jobs_for_verdict(found.table, suite)) == 0


def test_predictions_come_with_the_suites_labels_and_rows(suite, tmp_path):
    write_run(tmp_path / "out", [1, 2])
    table = read_jobs(suite, tmp_path / "out").table
    coding = suite.coding("My_toy_full")
    for job in table.to_dict("records"):
        predictions = read_job_predictions(suite, job)
        _, test = suite.pair("My_toy_full", job["fold"])
        wanted = pd.read_csv(test, dtype=str)[coding.written_target]
        assert predictions["truth"].tolist() == wanted.tolist()
        assert set(predictions["predictions"]) <= set(coding.written_labels)


def test_classes_that_amlb_mixed_up_are_read_by_position(suite, tmp_path):
    """Encoded in OpenML's order, decoded in that of the text: no, odd, yes."""
    labels = [label.lower() for label in suite.coding("My_toy_full").labels]
    mixed_up = dict(zip(labels, sorted(labels), strict=True))
    assert mixed_up["yes"] != "yes"
    truth = frame_of(2)["y"][40:].str.lower()
    write_run(tmp_path / "out", [2], truths=truth.map(mixed_up).to_numpy())
    found = read_jobs(suite, tmp_path / "out")
    assert "In 1 of them AMLB has mixed the names" in found.notes[1]
    (job,) = found.table.to_dict("records")
    predictions = read_job_predictions(suite, job)
    _, test = suite.pair("My_toy_full", 1)
    coding = suite.coding("My_toy_full")
    wanted = pd.read_csv(test, dtype=str)[coding.written_target]
    assert predictions["truth"].tolist() == wanted.tolist()
    # What the file calls "yes" is the class at the place of "yes" among the sorted names.
    named = coding.written_labels[sorted(labels).index("yes")]
    assert set(predictions["predictions"]) == {named}
    assert set(predictions[named]) == {0.8}


def test_other_rows_are_left_out_with_the_reason(suite, tmp_path):
    truth = frame_of(2)["y"][40:].str.lower().to_numpy().copy()
    truth[[3, 4]] = truth[[4, 3]]
    run = write_run(tmp_path / "out", [2], truths=truth)
    with pytest.raises(Exception, match="its test rows are not those of the suite"):
        read_jobs(suite, tmp_path / "out")
    (run / "predictions" / "My_toy" / "2" / "predictions.csv").unlink()
    with pytest.raises(Exception, match="its predictions file is missing"):
        read_jobs(suite, tmp_path / "out")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"id": "openml.org/t/59"}, "the OpenML task 59, the suite's is 31"),
        ({"result": None}, "the job failed"),
        ({"task": "other"}, "the suite has no such task"),
    ],
)
def test_jobs_that_stand_for_none(suite, tmp_path, more, reason):
    write_run(tmp_path / "out", [2], **more)
    with pytest.raises(Exception, match=reason):
        read_jobs(suite, tmp_path / "out")


def test_the_suites_own_results_come_first(suite, tmp_path):
    write_run(tmp_path / "out", [2])
    own = write_run(
        tmp_path / "own", [1], definition="hardsynth_mine", task="My_toy_full", id="x"
    )
    table = read_jobs(suite, tmp_path / "out", tmp_path / "own").table
    scored = table[(table["status"] == "scored") & (table["fold"] == 1)]
    assert scored["run"].tolist() == [str(own)]
