"""Who loses where F is replaced, in the report of a suite: planted harm, as compare tells it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sample_reports import row_of

import amlb_ext as hs
from amlb_ext.core import row_losses
from amlb_ext.report import (
    build_report,
    refits,
    report_tables,
    report_text,
    write_report,
)
from amlb_ext.report.losses import measure_losses
from amlb_ext.report.predictions import read_task_predictions
from amlb_ext.report.refits import fit_baseline_again
from amlb_ext.runner import read_jobs
from amlb_ext.suite import SuiteFiles

CANDIDATE, TASK = "HardsynthCandidate", "titanic"
SEGMENTS = ["sex", "age < 25"]

pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def rows(scored):
    """The untouched rows of titanic: predictions, and features, folds stacked."""
    suite = SuiteFiles.load(scored.suite)
    full, _ = read_task_predictions(
        suite, f"{TASK}_full", read_jobs(suite, scored.results).table
    )
    coding = suite.coding(full.name)
    tests = [suite.pair(full.name, fold)[1] for fold in range(2)]
    features = [coding.decode(coding.read_csv(path))[0] for path in tests]
    return full, pd.concat(features, ignore_index=True)


@pytest.fixture(scope="module")
def planted(rows):
    """Probabilities that are F's, wrong for women and better for men."""
    full, X = rows
    truth = np.eye(2)[full.y]
    is_harmed = (X["sex"] == "female").to_numpy()[:, None]
    return np.where(is_harmed, 0.5 * (1 - truth), 0.5 * truth) + 0.5 * full.own()


@pytest.fixture(scope="module")
def file(rows, planted, scored, tmp_path_factory):
    """The same as a file of predictions, of this task alone."""
    full, _ = rows
    suite = SuiteFiles.load(scored.suite)
    labels = suite.coding(full.name).written_labels
    table = pd.DataFrame(planted, columns=labels).assign(
        task=full.name,
        fold=full.rows["amlb_fold"],
        row=full.rows["row"],
        truth=np.array(labels)[full.y],
    )
    path = tmp_path_factory.mktemp("planted") / "mine.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def built(scored, file):
    return build_report(
        scored.suite,
        [scored.results],
        predictions={"mine": file},
        segments=SEGMENTS,
        charts=False,
    )


@pytest.fixture(scope="module")
def found(built):
    return report_tables(built)


def test_planted_harm_is_found_and_is_that_of_compare(
    scored, rows, planted, found, built
):
    full, X = rows
    harm = row_of(found["harm"], task=TASK, framework="mine")
    assert 0 < harm["worst_low"] < harm["worst_fifth"] < harm["bound"]
    assert harm["best_high"] < 0
    assert "sex = female" in harm["where"]
    assert harm["negative_flips"] > 0
    # nobody asked for re-fits of F to hold harm against
    assert harm["verdict"] == "no verdict"

    answer = hs.compare(
        full.own(),
        {"mine": planted},
        X,
        np.array(full.labels)[full.y],
        groups=full.rows["source_row"].to_numpy(),
        seed=SuiteFiles.load(scored.suite).manifest.seed,
    )
    swap = answer.harm["mine"]
    expected = swap.to_dict()["groups"]
    for fifth in ("worst", "best"):
        told = [harm[f"{fifth}_{name}"] for name in ("fifth", "low", "high")]
        assert told == pytest.approx(list(expected[f"{fifth} fifth"].values()))
    assert harm["loss_f"] == pytest.approx(swap.base)
    assert harm["bound"] == pytest.approx(swap.share(swap.bound))
    assert harm["proposal"] == swap.remedy.formula("mine")
    assert harm["where"] == swap.words.text
    flips = row_of(answer.flips, model="mine", segment="all rows")
    assert harm["negative_flips"] == flips["negative"]
    assert harm["positive_flips"] == flips["positive"]
    assert harm["p_flips"] == pytest.approx(flips["p"])


def test_segments_are_those_of_compare_losses(rows, planted, found):
    full, X = rows
    loss_f, loss = (row_losses.brier_loss(full.y, f) for f in (full.own(), planted))
    answer = hs.compare_losses(
        loss_f,
        {"mine": loss},
        X,
        groups=full.rows["source_row"].to_numpy(),
        segments=SEGMENTS,
    )
    told = found["segments"].query("framework == 'mine'").reset_index(drop=True)
    assert set(told["task"]) == {TASK}
    expected = answer.segments.rename(columns={"model": "framework"})
    pd.testing.assert_frame_equal(told[expected.columns], expected)
    assert told["verdict"].tolist()[:2] == ["worse", "better"]
    women = (X["sex"] == "female").to_numpy()
    right_f, right = (f.argmax(axis=1) == full.y for f in (full.own(), planted))
    assert told.loc[0, "negative_flips"] == (right_f & ~right & women).sum()


def test_who_is_judged_on_which_task(found):
    """F's controls are no candidates, 72 rows of wine are too few, mine ran on one task."""
    harm = found["harm"]
    assert " ".join(harm.columns) == (
        "task framework verdict rows loss_f worst_fifth worst_low worst_high best_fifth best_low "
        "best_high refits p p_refits bound negative_flips positive_flips p_flips where proposal"
    )
    pairs = set(zip(harm["task"], harm["framework"], strict=True))
    assert pairs == {("toy", CANDIDATE), (TASK, CANDIDATE), (TASK, "mine")}
    # the same rows and the same capped losses as in contrasts
    overall = found["contrasts"].query("where == 'all rows'")
    for row in harm.to_dict("records"):
        contrast = row_of(overall, task=row["task"], framework=row["framework"])
        assert row["rows"] == contrast["rows"]
        assert row["loss_f"] == pytest.approx(contrast["loss_f"])
    # numbers are not decided
    assert np.isnan(row_of(harm, task="toy")["negative_flips"])


def test_it_stands_in_every_form(built, scored, file, tmp_path, found):
    """Tables in the terminal, on the page and beside it, records in JSON."""
    text = report_text(built)
    assert text.count("Who loses where F is replaced") == 2
    assert "Segments that you named" in text
    page = write_report(built, tmp_path)
    for name in ("harm", "segments"):
        assert f'href="report/{name}.csv"' in page.read_text()
        kept = pd.read_csv(tmp_path / "report" / f"{name}.csv")
        assert list(kept.columns) == list(found[name].columns)
        assert len(kept) == len(found[name])
    (task,) = [task for task in built.tasks if task.name == TASK]
    written = json.loads((tmp_path / "report" / "report.json").read_text())
    (of_task,) = [each for each in written["tasks"] if each["name"] == TASK]
    assert [each["key"] for each in of_task["sections"]] == ["harm", "segments"]
    assert len(of_task["sections"][0]["table"]) == len(task.sections[0].table)
    suite = hs.Suite.load(scored.suite)
    table = suite.table("harm", scored.results, {"mine": file})
    pd.testing.assert_frame_equal(table, found["harm"])
    told = suite.table("segments", predictions={"mine": file}, segments="sex")
    assert told["segment"].tolist() == ["sex = female", "sex = male"]

    # a table of an earlier report would be taken for one of this
    plain = build_report(scored.suite, [scored.results], charts=False, swaps=False)
    write_report(plain, tmp_path)
    assert not {"harm", "segments"} & set(report_tables(plain))
    assert not list(Path(tmp_path / "report").glob("harm.csv"))
    assert not list(Path(tmp_path / "report").glob("segments.csv"))


def test_a_task_without_a_segment_says_so(built):
    notes = {task.name: task.notes for task in built.tasks}
    missing = "segment 'age < 25': there is no column 'age', so it is not judged here"
    assert missing in notes["toy"]
    assert missing in notes["wine"]
    assert missing not in notes[TASK]


@pytest.mark.parametrize(
    ("segment", "culprit"),
    [
        ("sexx", "did you mean 'sex'"),
        ("age > 1000", "none of the"),
        ("sex < 3", "compare numbers and dates by <"),
    ],
)
def test_a_segment_of_no_task_is_status_2(scored, segment, culprit, refused):
    words = ["report", str(scored.suite), "--text", "-q", "-j", "1"]
    assert culprit in refused(words, "--segment", [segment])


@pytest.fixture(scope="module")
def refitted(scored, rows, file, tmp_path_factory):
    """The report with three re-fits of F, and one more re-fit as a candidate."""
    full, _ = rows
    suite = SuiteFiles.load(scored.suite)
    (again,), why = fit_baseline_again(suite, TASK, full, measure_losses(full).loss, 1)
    assert not why
    labels = suite.coding(full.name).written_labels
    table = pd.read_csv(file)
    table[list(labels)] = again.predicted.f
    path = tmp_path_factory.mktemp("again") / "again.csv"
    table.to_csv(path, index=False)
    return build_report(
        scored.suite,
        predictions={"mine": file, "again": path},
        refits=3,
        charts=False,
    )


def test_harm_is_held_against_re_fits_of_f(refitted):
    harm = report_tables(refitted)["harm"]
    mine = row_of(harm, framework="mine")
    assert mine["verdict"] == "harms"
    assert 0 < mine["refits"] < mine["worst_fifth"]
    assert mine["p"] < 0.05
    assert mine["p_refits"] < 0.03
    # the first of the three is this very fit
    again = row_of(harm, framework="again")
    assert again["verdict"] in ("ordinary", "not shown")
    assert again["p_refits"] > 0.03
    assert "harms" in report_text(refitted)


@pytest.fixture
def refit(scored, rows):
    """A function: so many re-fits of F on titanic."""
    full, _ = rows
    suite = SuiteFiles.load(scored.suite)
    loss = measure_losses(full).loss
    return lambda count: fit_baseline_again(suite, TASK, full, loss, count)[0]


def test_a_re_fit_on_all_rows_is_f_itself(rows, refit, monkeypatch):
    """F has no randomness of its own here, so what differs is the sample alone."""
    full, _ = rows
    monkeypatch.setattr(refits, "bootstrap_rows", lambda n, rng, group: np.arange(n))
    (again,) = refit(1)
    assert again.predicted.f == pytest.approx(full.own())
    assert again.losses == pytest.approx(full.rows["loss"])


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("f.csv", "predictions"),
        ("http://models.org/f", "service"),
        ("gone.skops", "not there as it was"),
    ],
)
def test_an_f_that_cannot_be_fitted_again_says_why(copied, rows, model, why):
    full, _ = rows
    suite = SuiteFiles.load(copied.suite)
    suite.manifest.config["baseline"] = {"model": model, "sha256": "0"}
    loss = measure_losses(full).loss
    sides, reason = fit_baseline_again(suite, TASK, full, loss, 2)
    assert not sides
    assert why in reason


def test_a_gate_on_a_suite_holds_harm_flips_and_segments(scored, file, output_of):
    words = ["gate", str(scored.suite), "--predictions", f"mine={file}"]
    words += ["--need", "not-worse", "--margin", ".9", "--task", TASK, "-j", "1"]
    words += ["--no-harm", "--refits", "3", "--max-flips", "1%", "--segment", "sex"]
    lines = output_of(words, status=1).splitlines()
    assert lines[0].startswith("met ")
    assert f"mine on {TASK}, sex = female" in lines[1]
    assert f"mine on {TASK}: HARMS" in lines[3]
    assert "right under F and wrong under it" in lines[4]
    assert lines[-1].startswith("gate not met: 2 of 5")


@pytest.mark.parametrize(
    ("words", "culprit"),
    [
        (["--need", "not-worse", "--segment", "sexx"], "did you mean 'sex'"),
        (["--max-flips", "2"], "--max-flips"),
        (["--refits", "-1", "--no-harm"], "refits"),
    ],
)
def test_what_a_gate_on_a_suite_cannot_use_is_status_2(scored, words, culprit, refused):
    gate = ["gate", str(scored.suite), "--results", str(scored.results), "-q"]
    assert culprit in refused(gate, words)
