"""The report on ordinary results of AMLB: one framework is F, nothing is run again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from amlb_ext.cli import main
from amlb_ext.comparison.compare import compare
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, RunError, SourceError
from amlb_ext.report.results_folder import build_results_report
from amlb_ext.runner.results import RunWriter

FOLDS = 3
#: By the name that AMLB has for it.
FRAMEWORKS = ("linear", "tree", "constant")


class Made(NamedTuple):
    """A definition, and results as AMLB writes them."""

    definition: Path
    results: Path

    def run(self, framework):
        """Return the folder of a framework's run."""
        (found,) = self.results.glob(f"{framework}.*")
        return found

    def predictions(self, framework, task, fold):
        """Return where a job's predictions stand."""
        folder = self.run(framework) / "predictions" / task / str(fold)
        return folder / "predictions.csv"

    def edit(self, framework, task, fold, change):
        """Write predictions anew as ``change`` makes them."""
        path = self.predictions(framework, task, fold)
        change(pd.read_csv(path)).to_csv(path, index=False)

    def fail(self, framework, task, fold):
        """Take the result of a job, as AMLB writes one that failed."""
        path = self.run(framework) / "scores" / "results.csv"
        rows = pd.read_csv(path)
        is_job = (rows["task"] == task) & (rows["fold"] == fold)
        rows.loc[is_job, "result"] = np.nan
        rows["info"] = np.where(is_job, "TimeoutError: too slow", "")
        rows.to_csv(path, index=False)

    def report(self, baseline="tree", **options):
        """Build the report without charts."""
        options = {"benchmark": str(self.definition), "charts": False} | options
        return build_results_report([self.results], baseline, **options)


def _table(task, n):
    """Return a table in which failures have a place: where x0 is large, the target is noise."""
    rng = np.random.default_rng(sum(map(ord, task)))
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x0", "x1", "x2"])
    signal = X["x1"] + X["x2"] / 2
    noise = np.where(X["x0"] > 0.5, 2.0, 0.3) * rng.normal(size=n)
    if task == "amount":
        return X.assign(y=(signal + noise).round(4))
    bounds = [-np.inf, 0, np.inf] if task == "two" else [-np.inf, -0.6, 0.6, np.inf]
    labels = ["no", "yes"] if task == "two" else ["b_mid", "a_low", "c_high"]
    return X.assign(y=pd.cut(signal + noise, bounds, labels=labels).astype(str))


def _predict(framework, train, test):
    """Return predictions as AMLB writes them."""
    X, y = train.drop(columns="y"), train["y"]
    is_class = y.dtype == object or isinstance(y.dtype, pd.StringDtype)
    if framework == "constant":
        if not is_class:
            return pd.DataFrame({"predictions": y.mean(), "truth": test["y"]})
        shares = y.value_counts(normalize=True).sort_index()
        table = pd.DataFrame([shares] * len(test), index=test.index)
        return table.assign(predictions=shares.idxmax(), truth=test["y"])
    makers = {
        ("linear", True): LogisticRegression(),
        ("linear", False): Ridge(),
        ("tree", True): DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        ("tree", False): DecisionTreeRegressor(min_samples_leaf=5, random_state=0),
    }
    model = makers[framework, is_class].fit(X, y)
    named = model.predict(test.drop(columns="y"))
    if not is_class:
        return pd.DataFrame({"predictions": named, "truth": test["y"]})
    p = model.predict_proba(test.drop(columns="y"))
    table = pd.DataFrame(p, columns=list(model.classes_), index=test.index)
    return table.assign(predictions=named, truth=test["y"])


def _make(root, tasks=("two", "three", "amount"), n=300):
    """Write tables, a definition of them, and what three frameworks predict."""
    entries = []
    writer = RunWriter(root / "out", "mine")
    for task in tasks:
        table = _table(task, n)
        kind = {"two": "binary", "three": "multiclass"}.get(task, "regression")
        files: dict[str, list[str]] = {"train": [], "test": []}
        fold_of = np.arange(len(table)) % FOLDS
        for fold in range(FOLDS):
            parts = {"train": table[fold_of != fold], "test": table[fold_of == fold]}
            for part, rows in parts.items():
                path = root / f"{task}_{part}_{fold}.csv"
                rows.to_csv(path, index=False)
                files[part].append(str(path))
            for framework in FRAMEWORKS:
                row = {
                    "amlb_task": task,
                    "amlb_fold": fold,
                    "framework": framework,
                    "type": kind,
                    "metric": "brier",
                    "loss": 0.5,
                }
                writer.add(row, _predict(framework, *parts.values()))
        dataset = {**files, "target": "y", "type": kind}
        entries.append({"name": task, "folds": FOLDS, "dataset": dataset})
    writer.finish()
    definition = root / "mine.yaml"
    definition.write_text(json.dumps(entries))  # JSON is YAML
    return Made(definition, root / "out")


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Three tasks, three frameworks, three folds."""
    return _make(tmp_path_factory.mktemp("ordinary"))


@pytest.fixture(scope="session")
def found(made):
    """The report on them, with the tree as F."""
    return made.report()


@pytest.fixture
def one(tmp_path):
    """One small task, which a test may spoil."""
    return _make(tmp_path, tasks=("two",), n=66)


def _stacked(made, framework, task):
    return pd.concat(
        [pd.read_csv(made.predictions(framework, task, k)) for k in range(FOLDS)],
        ignore_index=True,
    )


def test_the_verdict_is_of_a_candidate_on_a_task(found):
    assert found.noun == "benchmark"
    assert found.is_complete
    assert [task.name for task in found.tasks] == ["two", "three", "amount"]
    assert found.about["Baseline F"] == "tree"
    two = found.tasks[0].contrasts
    of_linear = two[(two["framework"] == "linear") & (two["where"] == "all rows")]
    assert of_linear["verdict"].item() == "better"
    assert set(two["framework"]) == {"linear", "constant"}  # F is no candidate


def test_losses_are_those_of_the_files(made, found):
    brier = {}
    for name in ("tree", "linear"):
        said = _stacked(made, name, "three")
        p = said[["a_low", "b_mid", "c_high"]].to_numpy()
        is_true = np.array(["a_low", "b_mid", "c_high"]) == said[["truth"]].to_numpy()
        brier[name] = ((p - is_true) ** 2).sum(axis=1).mean()
    table = found.tasks[1].contrasts
    row = table[(table["framework"] == "linear") & (table["where"] == "all rows")]
    assert row["loss_f"].item() == pytest.approx(brier["tree"])
    assert row["difference"].item() == pytest.approx(brier["linear"] - brier["tree"])


def test_it_says_what_compare_says_of_the_same_predictions(made, found):
    test = pd.concat(
        [
            pd.read_csv(made.definition.with_name(f"two_test_{k}.csv"))
            for k in range(FOLDS)
        ],
        ignore_index=True,
    )
    said = {name: _stacked(made, name, "two") for name in FRAMEWORKS}
    given = {name: table[["no", "yes"]] for name, table in said.items()}
    result = compare(
        given.pop("tree"),
        {name: given[name] for name in ("constant", "linear")},
        test.drop(columns="y"),
        test["y"],
        refits=0,
        cv=np.repeat(range(FOLDS), len(test) // FOLDS),
    )
    ours = found.tasks[0].contrasts
    theirs = result.contrasts
    for where, question in (("all rows", "overall"), ("region", "where F fails")):
        left = ours[ours["where"] == where].set_index("framework").loc["linear"]
        right = theirs[theirs["question"] == question].set_index("model")
        for column in ("difference", "low", "high"):
            assert left[column] == pytest.approx(right.loc["linear", column])
        assert left["verdict"] == right.loc["linear", "verdict"]
    # scores are of the same rows
    inside = result.rows["where_f_fails"].to_numpy()
    scores = found.tasks[0].scores.query("part == 'region' and metric == 'brier'")
    for name, shown in (("tree", "F"), ("linear", "linear")):
        error = said[name]["yes"] - (said[name]["truth"] == "yes")
        brier = 2 * (error[inside] ** 2).mean()
        value = scores.set_index("framework").loc[shown, "value"]
        assert value == pytest.approx(brier)


def test_nothing_is_judged_where_f_fails_but_it_is_described(found):
    region = found.tasks[0].asked("region")
    assert set(region["verdict"]) == {"no claim"}
    assert region["reason"].str.contains("F was not fitted again").all()
    assert np.isfinite(region["low"]).all()
    linear = found.overall.set_index("framework").loc["linear"]
    assert linear["withheld"] == 3
    assert linear["better"] == 0
    assert np.isfinite(linear["relative"])
    harm = next(s for s in found.tasks[0].sections if s.key == "harm")
    assert set(harm.table["verdict"]) == {"no verdict"}
    assert np.isfinite(harm.table["worst_low"]).all()
    assert "hardsynth compare" in harm.about


def test_wins_are_counted_from_verdicts(found):
    wins = next(s for s in found.sections if s.key == "wins")
    table = wins.table.set_index(["framework", "other"])
    verdicts = [
        task.asked("all rows").set_index("framework").loc["linear", "verdict"]
        for task in found.tasks
    ]
    of_linear = table.loc[("linear", "F")]
    assert of_linear["tasks"] == 3
    assert of_linear["better"] == verdicts.count("better") > 0
    turned = table.loc[("F", "linear")]
    assert turned["worse"] == of_linear["better"]
    assert turned["share"] == pytest.approx(1 - of_linear["share"])
    # all three: the exact interval of 3 of 3
    assert table.loc[("linear", "constant"), "share_low"] == pytest.approx(
        0.025 ** (1 / 3)
    )
    assert next(iter(wins.readable["framework"])) == "linear"


def test_the_page_and_the_files_for_a_paper(made, tmp_path, output_of):
    flags = ["--benchmark", str(made.definition), "-j", "1", "-o", str(tmp_path)]
    command = ["report", "-r", str(made.results), "--baseline", "tree", *flags]
    assert "F is beaten on" in output_of(command)
    page = (tmp_path / "report.html").read_text()
    assert '<h2 id="suite">Benchmark</h2>' in page
    assert "Certificate" not in page.partition('id="method"')[0]
    for name in ("ranks.svg", "left_to_gain.svg"):
        picture = (tmp_path / "report" / name).read_text()
        assert ET.fromstring(picture).tag.endswith("svg")
        assert "var(" not in picture
        assert f"report/{name}" in page
    latex = (tmp_path / "report" / "wins.tex").read_text()
    assert r"\toprule" in latex
    assert r"100 \%" in latex
    assert (tmp_path / "report" / "wins.csv").is_file()


def test_a_failed_fold_is_named_and_its_predictions_are_not_used(one, capsys):
    one.fail("linear", "two", 1)
    report = one.report()
    table = report.tasks[0].asked("all rows").set_index("framework")
    assert table.loc["linear", "verdict"] == "incomplete"
    assert "fold 1 failed (TimeoutError: too slow)" in table.loc["linear", "reason"]
    assert table.loc["linear", "folds"] == "2/3"
    assert table.loc["constant", "verdict"] != "incomplete"
    assert not report.is_complete
    flags = ["--benchmark", str(one.definition), "--text", "-j", "1"]
    assert main(["report", "-r", str(one.results), "--baseline", "tree", *flags]) == 1
    # its scores are of fewer rows than F's
    scores = capsys.readouterr().out.partition("is better\n  framework ")[2]
    assert re.search(r"linear +[\d.]+ \(2 of 3 folds\)", scores)
    assert re.search(r"F +[\d.]+  ", scores)


def test_without_a_fold_of_f_nobody_has_a_verdict(tmp_path):
    made = _make(tmp_path, tasks=("two",), n=90)
    made.fail("tree", "two", 1)
    report = made.report()
    table = report.tasks[0].asked("all rows")
    assert set(table["verdict"]) == {"incomplete"}
    assert "F, tree, lacks fold 1 failed" in table["reason"].iloc[0]
    assert report.tasks[0].rows["full"] == 60


def test_rows_in_another_order_are_refused(one):
    one.edit("linear", "two", 0, lambda table: table.iloc[::-1])
    report = one.report()
    reason = report.jobs.set_index("framework").loc["linear", "reason"]
    assert "stand in another order" in reason
    assert report.jobs["status"].tolist() == ["refused"]


def test_results_of_amlb_before_2_are_read(one):
    for framework in FRAMEWORKS:
        run = one.run(framework)
        former = run.with_name(f"{framework}_mine_score_local_20200101T000000")
        for fold in range(FOLDS):
            source = one.predictions(framework, "two", fold)
            source.rename(run / "predictions" / f"{framework}_two_{fold}.csv")
        shutil.rmtree(run / "predictions" / "two")
        scores = run / "scores" / "results.csv"
        scores.rename(scores.with_name(f"{framework}_benchmark_mine.csv"))
        run.rename(former)
    with pytest.raises(RunError, match="does not say which benchmark"):
        one.report(benchmark=None)
    assert set(one.report().tasks[0].contrasts["framework"]) == {"linear", "constant"}


def test_results_of_two_definitions(one):
    run = one.run("linear")
    shutil.copytree(run, run.with_name(run.name.replace(".mine.", ".small.")))
    with pytest.raises(RunError, match="of 2 benchmarks: mine, small"):
        one.report(benchmark=None)
    assert one.report().notes == ("Results of other benchmarks were left out: small.",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "No columns to parse"),
        ("no,yes,predictions,truth\n", "cannot be joined: 0 predictions"),
        ("no,yes,predictions,truth\n0.5,0.5,no,no\n0.5", "they were cut off"),
        ("\0\1\n", "has no column 'predictions'"),
    ],
)
def test_predictions_that_were_cut_off_are_refused(one, content, told):
    one.predictions("linear", "two", 1).write_text(content)
    report = one.report()
    (warning,) = [text for text in report.warnings if "refused" in text]
    assert told in warning
    overall = report.tasks[0].asked("all rows").set_index("framework")
    assert overall.loc["linear", "verdict"] == "incomplete"


@pytest.mark.parametrize("end", ["two,", "two,linear", "two,linear,x"])
def test_scores_that_were_cut_off_are_one_line(one, end):
    scores = one.run("linear") / "scores" / "results.csv"
    scores.write_text(f"task,framework,fold,result\ntwo,linear,0,1\n{end}")
    with pytest.raises(RunError, match="line 3 has no number of a fold"):
        one.report()


def test_versions_of_amlb_are_told_where_they_differ(one):
    assert not any("versions of AMLB" in note for note in one.report().notes)
    scores = one.run("linear") / "scores" / "results.csv"
    pd.read_csv(scores).assign(app_version="1.5").to_csv(scores, index=False)
    (note,) = [note for note in one.report().notes if "versions of AMLB" in note]
    assert "1.5 (linear)" in note


def test_a_task_without_results_is_named(one):
    entries = json.loads(one.definition.read_text())
    entries.append({**entries[0], "name": "absent"})
    one.definition.write_text(json.dumps(entries))
    warnings = " ".join(one.report().warnings)
    assert "1 of 2 tasks of mine have no result: absent." in warnings


def test_a_task_that_cannot_be_read_costs_itself_only(tmp_path):
    made = _make(tmp_path, tasks=("two", "amount"), n=66)
    made.definition.with_name("amount_test_0.csv").unlink()
    report = made.report()
    assert [task.name for task in report.tasks] == ["two"]
    assert any("amount is left out" in text for text in report.warnings)


def test_what_cannot_be_meant_is_one_line(one, tmp_path, refused):
    with pytest.raises(ConfigError, match="did you mean 'linear'"):
        one.report("liner")
    with pytest.raises(SourceError, match="give the definition that was run"):
        one.report(benchmark=None, options=SourceConfig(userdir=str(tmp_path)))
    for framework in ("linear", "constant"):
        shutil.rmtree(one.run(framework))
    with pytest.raises(RunError, match="no framework but tree"):
        one.report()
    empty = tmp_path / "empty"
    empty.mkdir()
    for words, told in (
        (["--baseline", "tree"], "no results were named"),
        ([], "neither a suite nor --baseline"),
        (["-r", str(empty), "--baseline", "tree"], "holds no AMLB results"),
        (["-r", "x", "--baseline", "t", "--predictions", "a=b"], "goes with a suite"),
        ([str(empty), "--benchmark", "mine"], "holds no suite"),
    ):
        assert told in refused("report", words)


def test_the_definition_is_found_by_the_name_of_the_runs(one):
    options = SourceConfig(userdir=str(one.definition.parent))
    folder = one.definition.parent / "benchmarks"
    folder.mkdir()
    shutil.copy(one.definition, folder / "Mine.yaml")
    assert one.report(benchmark=None, options=options).name == "Mine"


def test_a_loss_of_the_users(one):
    report = one.report(loss="zero_one")
    row = report.tasks[0].asked("all rows").set_index("framework").loc["linear"]
    wrong = [
        np.mean(table["predictions"] != table["truth"])
        for table in (_stacked(one, name, "two") for name in ("linear", "tree"))
    ]
    assert (row["loss"], row["loss_f"]) == pytest.approx(wrong)
    with pytest.raises(ConfigError, match="absolute"):
        one.report(loss="absolute")


def test_results_of_another_benchmark(one):
    for run in one.results.iterdir():
        path = run / "scores" / "results.csv"
        path.write_text(path.read_text().replace("two", "other"))
        (run / "predictions" / "two").rename(run / "predictions" / "other")
    with pytest.raises(RunError, match="is of mine, whose tasks are two"):
        one.report()
