"""Predictions joined to the rows of a suite: what is joined, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext.core import row_losses
from amlb_ext.core.errors import RunError
from amlb_ext.core.task import Kind
from amlb_ext.report import build_report
from amlb_ext.report.predictions import (
    ReadPredictions,
    TaskPredictions,
    read_task_predictions,
)
from amlb_ext.runner import read_jobs
from amlb_ext.suite import SuiteFiles

FRAMEWORKS = {"HardsynthBaseline", "HardsynthNull", "HardsynthCandidate"}
CANDIDATE = "HardsynthCandidate"


def read(scored, name):
    suite = SuiteFiles.load(scored.suite)
    jobs = read_jobs(suite, scored.results).table
    predicted, refused = read_task_predictions(suite, name, jobs)
    return predicted, {
        (jobs.loc[index, "framework"], int(jobs.loc[index, "fold"])): reason
        for index, reason in refused.items()
    }


def change_scores(scored, change):
    path = scored.run_dir(CANDIDATE) / "scores" / "results.csv"
    change(pd.read_csv(path, dtype=str, keep_default_na=False)).to_csv(
        path, index=False
    )


def hand_made(labels, y, f, low=0.0, span=1.0):
    n = len(y)
    kind = Kind.BINARY if labels else Kind.REGRESSION
    rows = pd.DataFrame({"fold": 0, "amlb_fold": 0, "row": np.arange(n)})
    y = np.array(y)
    return TaskPredictions(
        name="t",
        suffix="full",
        kind=kind,
        labels=labels,
        rows=rows,
        y=y,
        low=np.full(n, low),
        span=np.full(n, span),
        f={"G": np.array(f)},
    )


def test_squared_errors_of_the_scaled_target_by_hand():
    p = hand_made((), [12.0, 10.0, 14.0], [11.0, 10.0, np.nan], low=10.0, span=4.0)
    # (12 - 10) / 4 = .5 against (11 - 10) / 4 = .25: .0625
    np.testing.assert_allclose(p.loss("G"), [0.0625, 0.0, np.nan])
    assert p.scored("G").tolist() == [True, True, False]
    assert p.own() is None


@pytest.mark.parametrize(
    "suffix", ["_full", "", "_ga", "_synthetic", "_bad", "_region"]
)
@pytest.mark.parametrize("task", ["toy", "wine", "titanic"])
def test_every_row_is_joined_and_own_is_what_f_lost(scored, task, suffix):
    predicted, refused = read(scored, task + suffix)
    suite = SuiteFiles.load(scored.suite)
    entry = suite.amlb_task(task + suffix)
    assert not refused
    assert set(predicted.f) == FRAMEWORKS
    assert len(predicted) == sum(entry.test_rows)
    assert all(predicted.scored(name).all() for name in FRAMEWORKS)
    at = 0
    for index, fold in enumerate(entry.folds):
        about = suite.provenance(entry.name, index)
        here = predicted.rows.iloc[at : at + len(about)]
        pd.testing.assert_frame_equal(here[about.columns].reset_index(drop=True), about)
        assert (here["fold"] == fold).all()
        assert (here["amlb_fold"] == index).all()
        assert here["row"].tolist() == list(range(len(about)))
        truth = pd.read_csv(suite.pair(entry.name, index)[1], dtype=str)[entry.target]
        y = predicted.y[at : at + len(about)]
        if predicted.labels:
            written = suite.coding(entry.name).written_labels
            assert [written[code] for code in y] == truth.tolist()
        else:
            np.testing.assert_array_equal(y, truth.astype(float))
        at += len(about)
    predicted.f["own"] = predicted.own()
    np.testing.assert_allclose(
        predicted.loss("own"), predicted.rows["loss"], rtol=0, atol=1e-9
    )


def test_predictions_in_another_order_are_refused(copied):
    truth = pd.read_csv(copied.predictions(CANDIDATE, "titanic_full", 0), dtype=str)[
        "truth"
    ]
    first = int(np.flatnonzero(truth.to_numpy() != truth[::-1].to_numpy())[0])
    copied.edit(CANDIDATE, "titanic_full", 0, lambda t: t[::-1])
    predicted, refused = read(copied, "titanic_full")
    assert set(refused) == {(CANDIDATE, 0)}
    reason = refused[CANDIDATE, 0]
    assert (
        f"row {first} of the predictions is not row {first} of the test file" in reason
    )
    assert (
        f"its truth is {truth.iloc[-1 - first]}, the test file has {truth[first]}"
        in reason
    )
    # its other fold, and the other frameworks, stay
    fold = predicted.rows["amlb_fold"].to_numpy()
    assert (predicted.scored(CANDIDATE) == (fold == 1)).all()
    assert (predicted.chosen[CANDIDATE][fold == 0] == -1).all()
    assert predicted.scored("HardsynthBaseline").all()


def _set(row, column, value):
    def change(table):
        table.iloc[
            row, table.columns.get_loc(column) if isinstance(column, str) else column
        ] = value
        return table

    return change


def _zeros(table):
    table.iloc[4, :2] = "0"
    return table


DAMAGES = {
    "a row too few": (
        lambda t: t[:-1],
        "rows cannot be joined: 261 predictions, 262 rows",
    ),
    "no probability": (
        _set(5, 0, ""),
        "1 of 262 predictions are no finite numbers, the first in row 5",
    ),
    "NaN": (_set(7, 1, "nan"), "the first in row 7"),
    "infinite": (_set(0, 1, "inf"), "the first in row 0"),
    "unknown class": (
        _set(3, "predictions", "drowned"),
        "row 3 predicts 'drowned', which is no class of the task",
    ),
    "columns of other names": (
        lambda t: t.rename(columns={"0": "class_0"}),
        "nothing can be read from its columns class_0",
    ),
    "columns headed the wrong way round": (
        lambda t: t.rename(columns={"0": "1", "1": "0"}),
        "is not the most probable one in 262 of 262 rows",
    ),
    "negative": (
        _set(2, 0, "-0.25"),
        "the probabilities of row 2 are negative or all zero",
    ),
    "all zero": (_zeros, "the probabilities of row 4 are negative or all zero"),
    "no truth": (lambda t: t.drop(columns="truth"), "has no column 'truth'"),
    "empty": (lambda t: t[:0], "rows cannot be joined: 0 predictions, 262 rows"),
}


def test_damaged_probabilities_are_refused_with_the_reason(copied):
    good = copied.predictions(CANDIDATE, "titanic_full", 0).read_bytes()
    for name, (change, expected) in DAMAGES.items():
        copied.predictions(CANDIDATE, "titanic_full", 0).write_bytes(good)
        copied.edit(CANDIDATE, "titanic_full", 0, change)
        predicted, refused = read(copied, "titanic_full")
        assert set(refused) == {(CANDIDATE, 0)}, name
        assert expected in refused[CANDIDATE, 0], name
        assert not predicted.scored(CANDIDATE)[
            predicted.rows["amlb_fold"] == 0
        ].any(), name


def test_labels_alone_are_read_by_the_kind_of_the_task(copied):
    before, _ = read(copied, "titanic_full")
    for fold in (0, 1):
        copied.edit(
            CANDIDATE, "titanic_full", fold, lambda t: t[["predictions", "truth"]]
        )
    after, refused = read(copied, "titanic_full")
    assert not refused
    assert after.only_labels == {CANDIDATE}
    np.testing.assert_array_equal(after.chosen[CANDIDATE], before.chosen[CANDIDATE])


def test_a_threshold_of_its_own_is_no_contradiction():
    p = np.linspace(0.05, 0.95, 20)
    table = pd.DataFrame({"a": 1 - p, "b": p, "truth": "a"})
    read = ReadPredictions()
    for threshold in (0.5, 0.1, 0.9):
        table["predictions"] = np.where(p > threshold, "b", "a")
        read.add("G", 0, table, ("a", "b"), {})
    # two of three classes changed places: one is right, most rows are not
    table = pd.DataFrame({"a": 1.0, "b": 0.0, "c": 0.0, "predictions": "a"}, range(9))
    table.loc[:6, ["a", "b", "predictions"]] = 0.0, 1.0, "c"
    table.loc[:2, ["b", "c", "predictions"]] = 0.0, 1.0, "b"
    with pytest.raises(RunError, match="probable one in 7 of 9 rows"):
        read.add("G", 0, table.assign(truth="a"), ("a", "b", "c"), {})


def test_predictions_of_another_framework_are_refused(copied):
    """By AMLB's notes; where its scores alone tell, that is said."""
    for name in ("metadata.json", "predictions.csv"):
        path = copied.predictions(CANDIDATE, "toy_full", 0).with_name(name)
        other = copied.predictions("HardsynthNull", "toy_full", 0).with_name(name)
        path.write_bytes(other.read_bytes())
    change_scores(copied, lambda rows: rows.assign(metric="neg_mae"))
    predicted, refused = read(copied, "toy_full")
    assert "are those of HardsynthNull" in refused[CANDIDATE, 0]
    (warning,) = predicted.warnings
    assert warning.startswith(f"{CANDIDATE}: on fold 1 AMLB wrote mae")


def test_a_framework_called_f_is_not_the_baseline(small):
    change_scores(small, lambda rows: rows.assign(framework="F", constraint="1h"))
    for path in small.run_dir(CANDIDATE).glob("predictions/*/*/metadata.json"):
        path.unlink()
    report = build_report(small.suite, [small.results], charts=False)
    assert "F (1h)" in set(report.overall["framework"])


@pytest.mark.parametrize("value", ["", "nan", "inf", "much"])
def test_damaged_numbers_are_refused_with_the_reason(copied, value):
    copied.edit(CANDIDATE, "toy_full", 1, _set(9, "predictions", value))
    _, refused = read(copied, "toy_full")
    expected = "1 of 200 predictions are no finite numbers, the first in row 9"
    assert expected in refused[CANDIDATE, 1]


def test_predictions_that_vanish_are_refused(copied):
    """Between the list of jobs and the reading of them."""
    suite = SuiteFiles.load(copied.suite)
    jobs = read_jobs(suite, copied.results).table
    copied.predictions(CANDIDATE, "toy_full", 0).unlink()
    _, refused = read_task_predictions(suite, "toy_full", jobs)
    (reason,) = refused.values()
    assert "holds no predictions of fold 0 of toy_full" in reason


def test_probabilities_are_normalised(copied):
    before, _ = read(copied, "titanic_full")

    def thrice(table):
        table[["0", "1"]] = (3 * table[["0", "1"]].astype(float)).astype(str)
        return table

    copied.edit(CANDIDATE, "titanic_full", 0, thrice)
    after, refused = read(copied, "titanic_full")
    assert not refused
    assert any("sum to 3. Each row is divided" in text for text in after.warnings)
    assert before.warnings == ()
    np.testing.assert_allclose(after.f[CANDIDATE], before.f[CANDIDATE], rtol=1e-12)
    np.testing.assert_allclose(after.f[CANDIDATE].sum(axis=1), 1.0)


def test_labels_named_like_columns_of_the_provenance(made_of, tmp_path):
    """Classes may have any name, columns of the provenance and of AMLB's files included."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(120), "b": rng.random(120)})
    labels = np.array(["fold", "loss", "weight"])
    frame["y"] = labels[
        np.clip((3 * frame["a"] + rng.normal(0, 0.3, 120)).astype(int), 0, 2)
    ]
    frame.to_csv(tmp_path / "t.csv", index=False)
    made = made_of(tmp_path / "t.csv")
    before, refused = read(made, "t_full")
    assert not refused
    assert before.labels == ("fold", "loss", "weight")
    assert set(before.rows["fold"]) == {0, 1}
    np.testing.assert_allclose(
        before.loss("HardsynthBaseline"), before.rows["loss"], atol=1e-6
    )

    def shouted(table):
        """As frameworks that get encoded data may write them."""
        table.columns = [
            name.upper() if name in labels else name for name in table.columns
        ]
        for name in ("predictions", "truth"):
            table[name] = " " + table[name].str.upper() + " "
        return table

    made.edit(CANDIDATE, "t_full", 0, shouted)
    after, refused = read(made, "t_full")
    assert not refused
    np.testing.assert_array_equal(after.f[CANDIDATE], before.f[CANDIDATE])
    np.testing.assert_array_equal(after.chosen[CANDIDATE], before.chosen[CANDIDATE])


def test_brier_losses_by_hand():
    f = [[0.25, 0.75], [0.6, 0.4], [np.nan, np.nan]]
    p = hand_made(("a", "b"), [1, 0, 1], f)
    # 2 (1/4)^2 = .125; 2 (.4)^2 = .32
    np.testing.assert_allclose(p.loss("G"), [0.125, 0.32, np.nan])
    np.testing.assert_allclose(
        p.loss("G")[:2], row_losses.brier_loss(p.y[:2], p.f["G"][:2])
    )
    assert p.scored("G").tolist() == [True, True, False]


def test_the_baseline_is_f(scored):
    """HardsynthBaseline, fitted on the training files, predicts what F predicted."""
    for task in ("toy", "titanic", "wine"):
        predicted, _ = read(scored, f"{task}_full")
        np.testing.assert_allclose(
            predicted.loss("HardsynthBaseline"), predicted.rows["loss"], atol=1e-6
        )


def test_a_fold_that_the_suite_lacks_is_refused(scored):
    suite = SuiteFiles.load(scored.suite)
    jobs = read_jobs(suite, scored.results).table
    jobs = jobs[
        (jobs["amlb_task"] == "toy_full") & (jobs["framework"] == CANDIDATE)
    ].copy()
    jobs["fold"] += 1  # 1 and 2
    _, refused = read_task_predictions(suite, "toy_full", jobs)
    assert "the suite has 2 folds of toy_full, this is fold 2" in refused.values()
