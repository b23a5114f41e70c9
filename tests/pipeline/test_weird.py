"""The folder of weird tasks: what stands in it, that it is whole, and what its report says."""

import html
import json
import re
import shutil
from dataclasses import replace
from functools import partial
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
import yaml

from amlb_ext.cli import main
from amlb_ext.core.errors import ConfigError, RunError, SuiteError
from amlb_ext.pipeline.weird import WeirdRequest, write_weird_tasks
from amlb_ext.report import report_tables, report_text, write_report
from amlb_ext.report.runs import build_run_report
from amlb_ext.suite import verify_suite
from amlb_ext.suite.reader import WeirdSuite
from amlb_ext.tasks import TASKS, draw_fold
from amlb_ext.tasks.digits import draw_digits
from amlb_ext.tasks.drop4 import draw_games

SMALL = (
    replace(TASKS["drop4_winners"], draw=partial(draw_games, rows=60)),
    replace(TASKS["digits_few"], draw=partial(draw_digits, unlabelled=30)),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("weird") / "w"
    write_weird_tasks(root, SMALL, WeirdRequest(folds=3, models=("a/b-1",)))
    return root


def test_the_folder_is_an_amlb_user_directory_with_side_files(made):
    folder = WeirdSuite.load(made).manifest
    assert [task.name for task in folder.tasks] == ["drop4_winners", "digits_few"]
    games, digits = folder.tasks
    train = pd.read_csv(made / games.folds[1].train)
    lines = (made / games.folds[1].train_text).read_text().splitlines()
    assert len(train) == len(lines) == 60
    # the text is what the columns say
    moves = train.loc[7, [f"move{ply:02d}" for ply in range(42)]]
    assert lines[7].split() == [str(move) for move in moves if move]
    spare = pd.read_csv(made / digits.folds[0].unlabelled)
    assert len(spare) == 30
    assert "target" not in spare

    definition = yaml.safe_load((made / "benchmarks" / "weird.yaml").read_text())
    # no number of folds: the constraint's holds, which is the number that there is
    assert all("folds" not in entry for entry in definition)
    constraints = yaml.safe_load((made / "constraints.yaml").read_text())
    assert constraints["weirdml"]["folds"] == 3
    assert constraints["weirdml_quick"]["folds"] == 2
    frameworks = yaml.safe_load((made / "frameworks.yaml").read_text())
    assert frameworks["LLMCoder_a_b_1"]["params"] == {"model": "a/b-1"}
    assert (made / "extensions" / "LLMCoder" / "confine.py").is_file()
    assert not (made / "extensions" / "HardsynthSklearn").exists()


def test_the_same_request_gives_the_same_bytes(made, tmp_path):
    request = WeirdRequest(folds=3, models=("a/b-1",))
    salt = WeirdSuite.load(made).manifest.salt
    again = tmp_path / "again"
    write_weird_tasks(again, SMALL, replace(request, salt=salt))
    assert WeirdSuite.load(again).manifest == WeirdSuite.load(made).manifest
    # a folder keeps its own
    write_weird_tasks(again, SMALL, request)
    assert WeirdSuite.load(again).manifest == WeirdSuite.load(made).manifest
    literal = write_weird_tasks(
        tmp_path / "l", SMALL[:1], WeirdRequest(folds=2, literal=True)
    )
    [first, second] = literal.tasks[0].folds
    assert literal.files[first.train] == literal.files[second.train]
    folds = WeirdSuite.load(made).manifest.tasks[0].folds
    files = WeirdSuite.load(made).manifest.files
    assert len({files[fold.train] for fold in folds}) == 3


def test_test_rows_cannot_be_drawn_again_from_what_is_public(made, tmp_path):
    salt = WeirdSuite.load(made).manifest.salt
    assert len(salt) == 32
    for task in SMALL:
        fold = next(
            t for t in WeirdSuite.load(made).manifest.tasks if t.name == task.name
        ).folds[0]
        written = pd.read_csv(made / fold.test)
        assert draw_fold(task, 0, salt=salt).test.frame.equals(written)
        for seed in range(3):
            assert not draw_fold(task, 0, seed=seed).test.frame.equals(written)
    # another folder has other data, and nothing that AMLB or a program reads names the salt
    other = write_weird_tasks(tmp_path / "other", SMALL[:1], WeirdRequest(folds=1))
    assert other.salt != salt
    for path in made.rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            assert salt.encode() not in path.read_bytes()


def test_what_cannot_be_written_is_said(made, tmp_path, capsys):
    with pytest.raises(ConfigError, match="--folds is 0"):
        write_weird_tasks(tmp_path / "w", SMALL, WeirdRequest(folds=0))
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(SuiteError, match="holds something else"):
        write_weird_tasks(tmp_path, SMALL, WeirdRequest())
    copy = shutil.copytree(made, tmp_path / "copy")
    assert main(["verify", str(copy), "--repair", "-q"]) == 0
    (copy / "config.yaml").unlink()
    assert main(["verify", str(copy), "--repair"]) == 2
    assert "the order of these weird tasks was not kept" in capsys.readouterr().err


def predicted(test, share):
    """Labels of which a share is right."""
    wrong = np.arange(len(test)) >= round(share * len(test))
    return test["target"].mask(wrong, "nothing")


def add_job(
    out, framework, fold, result, made, reasons=None, accuracies=(), accuracy=None
):
    """Write what AMLB and the integration write of one job of drop4_winners."""
    run = out / f"{framework}.weird".lower()
    scores = run / "scores" / "results.csv"
    row = ["drop4_winners", "drop4_winners", framework, "weirdml", fold, result]
    header = "id,task,framework,constraint,fold,result\n"
    scores.parent.mkdir(parents=True, exist_ok=True)
    old = scores.read_text() if scores.exists() else header
    scores.write_text(old + ",".join(map(str, row)) + "\n")
    test = pd.read_csv(
        made / f"data/drop4_winners/drop4_winners_test_{fold}.csv", dtype=str
    )
    if result != "":
        said = predicted(test, result if accuracy is None else accuracy)
        kept = run / "predictions" / "drop4_winners" / str(fold) / "predictions.csv"
        kept.parent.mkdir(parents=True)
        table = pd.DataFrame({"predictions": said, "truth": test["target"]})
        table.to_csv(kept, index=False)
    if reasons is None:
        return
    folder = run / "llm" / "drop4_winners" / str(fold)
    folder.mkdir(parents=True)
    for number, (reason, share) in enumerate(
        zip(reasons, accuracies, strict=True), start=1
    ):
        if not reason:
            predicted(test, share).to_frame("predictions").to_csv(
                folder / f"predictions_{number}.csv", index=False
            )
    entry = {
        "framework": framework,
        "task": "drop4_winners",
        "fold": fold,
        "wanted": 5,
        "submissions": [
            {"number": number, "reason": reason}
            for number, reason in enumerate(reasons, start=1)
        ],
        "cost": 0.25 if fold == 0 else None,
        "spent": 0.0,
        "sandbox": "none",
    }
    (folder / "run.json").write_text(json.dumps(entry))


@pytest.fixture(scope="module")
def results(made, tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    for fold, result in enumerate([0.5, 0.6, 0.7]):
        add_job(out, "Forest", fold, result, made)
    reasons = ["no code", "", "", "", "error"]
    shares = [0, 0.5, 0.9, 0.7, 0]
    add_job(out, "Coder", 0, 0.7, made, reasons, shares)
    # five programs, no predictions: AMLB has no result, and the score is nothing
    add_job(out, "Coder", 1, "", made, ["no predictions"] * 5, [0] * 5)
    # nothing of this is the model's
    add_job(out, "Coder", 2, "", made, ["harness", "harness"], [0] * 2)
    return out


def tables_of(made, results):
    """Return the report on results, and its tables by name."""
    built = build_run_report(made, [results], charts=False)
    return built, report_tables(built)


def test_what_is_no_accuracy_is_none(made, tmp_path):
    for framework, columns in (
        ("Log", {"metric": "neg_logloss", "acc": 0.75}),
        ("Area", {"metric": "auc"}),
    ):
        for fold in range(3):
            add_job(tmp_path, framework, fold, -0.2, made, accuracy=0.75)
        (path,) = tmp_path.glob(f"{framework.lower()}.*/scores/results.csv")
        pd.read_csv(path).assign(**columns).to_csv(path, index=False)
    report, tables = tables_of(made, tmp_path)
    assert tables["scores"].set_index("framework")["value"]["Log"] == 0.75
    jobs = report.jobs.set_index("framework").loc["Area"]
    assert jobs["status"].tolist() == ["refused"] * 3
    assert jobs["reason"].iloc[0].startswith("AMLB scored it by auc")


def test_selected_and_best_on_test_stand_in_columns_of_their_own(made, results):
    report, tables = tables_of(made, results)
    scores = tables["scores"].set_index("framework")
    coder = tables["coders"].set_index("framework").loc["Coder"]
    # (0.7 + 0) / 2, not 0.9: that one was found by the labels of the test rows
    assert scores.loc["Coder", "value"] == coder["selected"] == pytest.approx(0.35)
    assert coder["max_on_test"] == pytest.approx(0.45)
    spread = tables["spread"].set_index("framework").loc["Coder"]
    assert (spread["runs"], spread["unscored"]) == (2, 1)
    # two of five failed, then five of five; the harness's two count nowhere
    assert coder["failed"] == pytest.approx(7 / 10)
    # of one run the cost is unknown, so that of all is
    assert np.isnan(coder["cost"])
    assert coder["spent"] == 0.0
    # of three equal submissions: .8463 sd, sd = sqrt(.9 * .1 / 60)
    assert coder["luck"] == pytest.approx(0.8463 * np.sqrt(0.09 / 60) / 2)
    # t with two degrees of freedom: .6 ± 4.303 * .1 / sqrt(3)
    low = scores.loc["Forest", "low"]
    assert low == pytest.approx(0.6 - 4.3027 * 0.1 / np.sqrt(3), abs=1e-3)
    assert scores["high"].max() <= 1
    curve = tables["curve"]["max_on_test"].tolist()
    assert curve == pytest.approx([0.0, 0.25, 0.45, 0.45, 0.45])
    shares = tables["failures"].set_index("reason")["share"]
    assert shares["no predictions"] == pytest.approx(0.5)
    assert np.isnan(shares["harness"])
    assert not report.is_complete


def test_what_the_endpoint_breaks_is_unscored(made, tmp_path):
    add_job(tmp_path, "Coder", 0, 0.7, made, ["", "", "", "", ""], [0.7] * 5)
    # three programs failed, then no further answer came; and one that had a score by then
    add_job(tmp_path, "Coder", 1, "", made, ["error"] * 3, [0] * 3)
    add_job(tmp_path, "Coder", 2, 0.1, made, ["", "error"], [0.1, 0])
    for file in tmp_path.rglob("run.json"):
        entry = json.loads(file.read_text())
        entry["is_broken"] = entry["fold"] > 0
        file.write_text(json.dumps(entry))
    report, tables = tables_of(made, tmp_path)
    [spread] = tables["spread"].to_dict("records")
    assert (spread["runs"], spread["unscored"], spread["best"]) == (1, 2, 0.7)
    assert tables["curve"]["max_on_test"].tolist() == pytest.approx([0.7] * 5)
    assert tables["failures"].empty
    assert "2 runs ended before all submissions" in report_text(report)
    [headline] = tables["headline"].to_dict("records")
    assert (headline["tasks"], headline["selected"], headline["failed"]) == (1, 0.7, 0)


def test_the_text_says_what_is_not_comparable(made, results, capsys):
    text = " ".join(report_text(tables_of(made, results)[0]).split())
    assert "Never compare max@5 on test with another framework" in text
    assert "without confinement" in text
    assert "2 submissions were lost by the harness" in text
    assert "WeirdML asks for 15" in text
    assert main(["report", str(made), "--results", str(results), "--text"]) == 1
    assert " ".join(capsys.readouterr().out.split()) == text.strip()
    assert main(["report", str(made), "--results", str(results), "-q"]) == 1
    runs = pd.read_csv(made / "hardsynth" / "report" / "runs.csv")
    assert runs["transcript"].str.endswith("transcript.json").all()
    assert all(said.startswith("warning: ") for said in verify_suite(made))


def test_folds_that_were_not_run_are_named(made, tmp_path):
    add_job(tmp_path, "Forest", 1, 0.5, made)
    report, tables = tables_of(made, tmp_path)
    assert tables["jobs"][["fold", "status"]].values.tolist() == [
        [0, "not run"],
        [2, "not run"],
    ]
    # what is missing is said, and is no failure
    assert report.is_complete


def test_predictions_of_other_data_or_scores_are_refused(made, tmp_path):
    """As after the folder was drawn again, while the results stayed."""
    for fold, result in enumerate([0.5, 0.6, 0.7]):
        add_job(tmp_path, "Forest", fold, result, made)
    kept = tmp_path / "forest.weird" / "predictions" / "drop4_winners"
    other = pd.read_csv(kept / "0" / "predictions.csv")
    other["truth"] = other["truth"].to_numpy()[::-1]
    other.to_csv(kept / "0" / "predictions.csv", index=False)
    (kept / "1" / "predictions.csv").unlink()
    scores = tmp_path / "forest.weird" / "scores" / "results.csv"
    scores.write_text(scores.read_text().replace("0.7", "0.95"))
    report, tables = tables_of(made, tmp_path)
    assert tables["jobs"]["status"].tolist() == ["refused"] * 3
    first, second, third = tables["jobs"]["reason"]
    assert first == "its predictions are of other data than the folder's"
    assert "holds no predictions of fold 1" in second
    assert third == "AMLB wrote acc 0.95 where the predictions have 0.7"
    assert not report.is_complete


def test_a_fold_that_is_left_out_wins_no_headline(tmp_path):
    root = tmp_path / "w"
    write_weird_tasks(root, SMALL[:1], WeirdRequest(folds=2))
    for name, results in (("Whole", [0.5, 0.6]), ("Half", [0.9])):
        for fold, result in enumerate(results):
            add_job(tmp_path / "results", name, fold, result, root)
    report, _ = tables_of(root, tmp_path / "results")
    assert "systems Whole has the highest accuracy" in report.verdict[0]


def test_a_folder_is_replaced_by_no_other_tasks(made, tmp_path):
    copy = shutil.copytree(made, tmp_path / "copy")
    request = WeirdRequest(folds=3, models=("a/b-1",))
    write_weird_tasks(copy, SMALL, request)
    others = [{"seed": 7}, {"folds": 2}, {"literal": True}, {"salt": "another"}]
    for tasks, other in ((SMALL[:1], {}), *((SMALL, other) for other in others)):
        with pytest.raises(SuiteError, match="other weird tasks, or other draws"):
            write_weird_tasks(copy, tasks, replace(request, **other))
    with pytest.raises(ConfigError, match="two tasks are called drop4_winners"):
        write_weird_tasks(tmp_path / "v", SMALL[:1] * 2, request)
    assert not (tmp_path / "v").exists()


def test_without_results_the_tasks_are_told(made):
    report = build_run_report(made)
    assert report.verdict[0].startswith("There are no results yet")
    assert [task.name for task in report.tasks] == ["drop4_winners", "digits_few"]
    assert report_text(report)


def test_results_of_something_else_are_said(made, tmp_path):
    with pytest.raises(ConfigError, match="holds no suite of tables"):
        build_run_report(made, predictions={"mine": tmp_path / "mine.csv"})
    with pytest.raises(ConfigError, match="--segment"):
        build_run_report(made, segments=["age < 25"])
    add_job(tmp_path, "Coder", 0, 0.5, made, [""], [0.5])
    [file] = tmp_path.rglob("run.json")
    file.write_text("{")
    with pytest.raises(RunError, match="cannot read"):
        build_run_report(made, [tmp_path])


def test_the_page_keeps_both_scores_apart_and_links_transcripts(
    made, results, tmp_path
):
    page = write_report(build_run_report(made, [results]), tmp_path / "out")
    text = page.read_text(encoding="utf-8")
    # what held-out rows chose is compared, and nothing else
    assert "0.350 (2 runs)" in html.unescape(re.sub(r"<.*?>", "", text))
    # transcripts are linked where they stand, not copied
    links = re.findall(r'href="([^"]*transcript.json)"', text)
    assert len(links) == 3
    run_file = (page.parent / unquote(links[0])).resolve().with_name("run.json")
    assert run_file.is_file()
    assert not list(page.parent.rglob("transcript.json"))
    assert "without confinement" in text
