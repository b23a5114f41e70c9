"""One small swarm from a table to a suite, and the sources that are refused in a sentence."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_faults import contents
from small_swarms import REQUEST, small_run, write_groups

from amlb_ext.cli.main import main
from amlb_ext.core.errors import ConfigError, DataError, ModelError, SuiteError
from amlb_ext.runner.run import run_benchmark
from amlb_ext.suite import SuiteFiles, verify_suite
from amlb_ext.swarm import run
from amlb_ext.swarm.run import objective_slug, swarm_suite
from amlb_ext.swarm.search import make_plan
from amlb_ext.validity.certificate_store import read_certificates

# what is written matters here, not how good it is
pytestmark = pytest.mark.usefixtures("light_models")

CONSTANT = "sklearn.dummy.DummyClassifier"
FAILING = "sklearn.tree.DecisionTreeClassifier:max_depth=-1"


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_groups(tmp_path_factory.mktemp("table") / "groups.csv")


@pytest.fixture(scope="module")
def suite(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("swarm") / "s"
    report = swarm_suite(small_run(table, out))
    return out, report


def test_the_suite_is_whole_and_amlb_can_load_it(suite):
    out, report = suite
    assert verify_suite(out) == []
    files = SuiteFiles.load(out)
    name = "groups_swarm_difficult"
    assert set(files.amlb_tasks) == {name, f"{name}_full"}
    _, test = files.pair(name, 0)
    rows = pd.read_csv(test)
    assert len(rows) == 40
    assert set(rows["g"]) <= set("abc")
    assert set(files.provenance(name, 0)["origin"]) == {"swarm"}
    assert (out / "swarm.md").read_text() == report.page


def test_the_certificate_is_no_licence_to_rank(suite):
    out, report = suite
    [verdict] = report.verdicts.values()
    assert not verdict.startswith("rank")
    [certificate] = read_certificates(SuiteFiles.load(out)).values()
    assert certificate.verdict in ("describe", "stress-test only")
    assert certificate.rows["synthetic"] == 40


def test_the_record_sets_the_search_beside_an_audit(suite):
    _, report = suite
    [[record]] = report.records.values()
    assert record["evaluations"] == 6
    assert sum(record["coefficients"]) == pytest.approx(1, abs=1e-3)
    assert set(record["unseen"]).isdisjoint(record["takers"])
    for who in ("seen", "refits", "unseen"):
        assert 0 <= record["chosen"][who]["difficult"] <= 1
    assert record["real_rows_by_x"]["rows"] > 0
    json.dumps(record, allow_nan=False)


def test_a_second_run_searches_nothing_and_leaves_every_byte(suite, table, monkeypatch):
    out, _ = suite
    before = contents(out)
    monkeypatch.setattr("amlb_ext.swarm.run.swarm_fold", None)
    swarm_suite(small_run(table, out))
    assert contents(out) == before


def test_coin_flips_are_refused(tmp_path):
    coins = np.random.default_rng(5).random(600) < 0.5
    table = write_groups(tmp_path / "coins.csv", coins)
    honest = replace(REQUEST, plan=make_plan("honest", iterations=1))
    out = tmp_path / "s"
    with pytest.raises(DataError, match=r"no taker can be beaten here.*--anyway"):
        swarm_suite(small_run(table, out, honest))
    assert not out.exists()


def test_a_refused_search_leaves_the_suite_that_was_there(table, suite, tmp_path):
    out = tmp_path / "s"
    shutil.copytree(suite[0], out)
    before = contents(out)
    with pytest.raises(DataError, match=r"too few"):
        swarm_suite(small_run(table, out, replace(REQUEST, least_rows=300), force=True))
    assert contents(out) == before


def test_half_of_a_task_is_no_suite(table, tmp_path, monkeypatch):
    search = run.swarm_fold

    def refuse_second(task, fold, request):
        if fold:
            raise DataError("nothing can be found here")
        return search(task, fold, request)

    monkeypatch.setattr(run, "swarm_fold", refuse_second)
    with pytest.raises(DataError, match="nothing can be found here"):
        swarm_suite(small_run(table, tmp_path / "s", folds=2))
    assert not (tmp_path / "s").exists()


def test_a_folder_of_something_else_is_refused_before_the_search(
    table, tmp_path, monkeypatch
):
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.setattr(run, "swarm_fold", None)
    with pytest.raises(SuiteError, match="not empty and no suite"):
        swarm_suite(small_run(table, tmp_path))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"least_rows": 300}, DataError, r"480 training rows are too few"),
        ({"objective": "hard"}, ConfigError, r"no objective 'hard'"),
        ({"objective": "personalised"}, ConfigError, r"--user-rows FILE"),
        ({"takers": ("linear", "no_such")}, ModelError, r"no_such"),
        ({"takers": ("linear", CONSTANT)}, ModelError, r"Dummy.* answers the same on"),
        (
            {"takers": ("linear", FAILING)},
            ModelError,
            r"DecisionTree.*cannot be fitted",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    table, tmp_path, changes, error, message
):
    out = tmp_path / "s"
    with pytest.raises(error, match=message):
        swarm_suite(small_run(table, out, replace(REQUEST, **changes)))
    assert not out.exists()


def test_user_rows_with_other_columns(table, tmp_path):
    other = tmp_path / "user.csv"
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_csv(other, index=False)
    request = replace(REQUEST, objective="personalised")
    with pytest.raises(DataError, match=r"user\.csv"):
        swarm_suite(small_run(table, tmp_path / "s", request, user_rows=other))
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--preset", "honesty"], "no preset 'honesty'"),
        (["--search", "ga"], "no search 'ga'"),
        (["--labels", "mine"], "no labels 'mine'"),
        (["--objective", "difficult=.6,novel=.6"], "add up to 1.2"),
    ],
)
def test_the_command_refuses_in_one_line(table, tmp_path, capsys, flags, message):
    status = main(["swarm", table, "-o", str(tmp_path / "s"), *flags])
    lines = capsys.readouterr().err.strip().splitlines()
    assert status == 2
    assert len(lines) == 1
    assert message in lines[0]


def test_an_objective_becomes_part_of_a_name():
    assert objective_slug("difficult=.6,novel=.4") == "difficult_6_novel_4"


@pytest.mark.amlb
def test_amlb_runs_and_scores_both_tasks(suite, amlb, tmp_path):
    out, report = suite
    outcome = run_benchmark(
        "constantpredictor",
        report.manifest.name,
        "hardsynth_quick",
        userdir=out,
        outdir=tmp_path,
        amlb=amlb,
        quiet=True,
    )
    assert outcome.ok, outcome.summary()
    scores = outcome.rows.set_index("task")["result"]
    name = "groups_swarm_difficult"
    assert scores.to_dict() == {name: 0.5, f"{name}_full": 0.5}
