"""One small swarm from a table to a suite, and the sources that are refused in a sentence."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from small_swarms import SMALL, two_groups

from amlb_ext.cli.main import main
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError, DataError, ModelError
from amlb_ext.suite import SuiteFiles, verify_suite
from amlb_ext.swarm.prepare import SwarmRequest
from amlb_ext.swarm.run import SwarmRun, objective_slug, swarm_suite
from amlb_ext.swarm.search import make_plan
from amlb_ext.validity.certificate_store import read_certificates

REQUEST = SwarmRequest(
    plan=make_plan("literal", iterations=1),
    initial=replace(SMALL, n_generators=3, steps=5, base_steps=60),
    takers=("linear", "tree_3"),
    rows=40,
    least_rows=100,
    with_baselines=False,
)


def write_table(path, y=None):
    X, classes = two_groups(600)
    table = pd.DataFrame({"g": np.array(list("abc"))[X[:, 0].astype(int)]})
    table["u"] = X[:, 1].round(3)
    table["v"] = X[:, 2].round(3)
    table["y"] = np.where(classes if y is None else y, "yes", "no")
    table.to_csv(path, index=False)
    return str(path)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "groups.csv")


def a_run(table, out, request=REQUEST, **changes):
    options = SourceConfig(target="y")
    return SwarmRun(source=table, out=out, request=request, options=options, **changes)


@pytest.fixture(scope="module")
def suite(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("swarm") / "s"
    report = swarm_suite(a_run(table, out))
    return out, report


def digests(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != ".lock"
    }


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
    before = digests(out)
    monkeypatch.setattr("amlb_ext.swarm.run.swarm_fold", None)
    swarm_suite(a_run(table, out))
    assert digests(out) == before


def test_coin_flips_are_refused(tmp_path):
    coins = np.random.default_rng(5).random(600) < 0.5
    table = write_table(tmp_path / "coins.csv", coins)
    honest = replace(REQUEST, plan=make_plan("honest", iterations=1))
    with pytest.raises(DataError, match=r"no taker can be beaten here.*--anyway"):
        swarm_suite(a_run(table, tmp_path / "s", honest))
    assert not (tmp_path / "s" / "hardsynth.yaml").exists()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"least_rows": 300}, DataError, r"480 training rows are too few"),
        ({"objective": "hard"}, ConfigError, r"no objective 'hard'"),
        ({"objective": "personalised"}, ConfigError, r"--user-rows FILE"),
        ({"takers": ("linear", "no_such")}, ModelError, r"no_such"),
    ],
)
def test_bad_input_is_one_line(table, tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        swarm_suite(a_run(table, tmp_path / "s", replace(REQUEST, **changes)))


def test_user_rows_with_other_columns(table, tmp_path):
    other = tmp_path / "user.csv"
    pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}).to_csv(other, index=False)
    request = replace(REQUEST, objective="personalised")
    with pytest.raises(DataError, match=r"user\.csv"):
        swarm_suite(a_run(table, tmp_path / "s", request, user_rows=other))


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
