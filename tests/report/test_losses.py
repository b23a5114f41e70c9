"""The report by another loss: the numbers of compare, every table by it, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from sample_reports import row_of

import amlb_ext as hs
from amlb_ext.cli import main
from amlb_ext.core.errors import ConfigError
from amlb_ext.gate.suites import check_suite
from amlb_ext.report import build_report, report_tables
from amlb_ext.report.losses import measure_losses
from amlb_ext.report.predictions import read_task_predictions
from amlb_ext.runner import read_jobs
from amlb_ext.suite import SuiteFiles

CANDIDATE, TASK = "HardsynthCandidate", "titanic"

pytestmark = pytest.mark.usefixtures("light_models")


@pytest.fixture(scope="module")
def full(scored):
    """The untouched rows of titanic."""
    suite = SuiteFiles.load(scored.suite)
    jobs = read_jobs(suite, scored.results).table
    return read_task_predictions(suite, f"{TASK}_full", jobs)[0]


@pytest.fixture(scope="module")
def features(scored, full):
    suite = SuiteFiles.load(scored.suite)
    coding = suite.coding(full.name)
    tests = [suite.pair(full.name, fold)[1] for fold in range(2)]
    read = [coding.decode(coding.read_csv(path))[0] for path in tests]
    return pd.concat(read, ignore_index=True)


def costs_of(full):
    """A dear and a cheap mistake."""
    first, second = full.labels
    return {first: {second: 7}, second: {first: 1}}


def tables_of(scored, loss, **more):
    built = build_report(
        scored.suite, [scored.results], loss=loss, charts=False, **more
    )
    return built, report_tables(built)


@pytest.fixture(scope="module")
def by_costs(scored, full):
    return tables_of(scored, costs_of(full), segments=["sex"])


def test_an_auc_of_a_rare_class_leaves_the_task_to_the_suites_loss(full, monkeypatch):
    assert not measure_losses(full, "auc").is_own
    monkeypatch.setattr("amlb_ext.core.losses.FEWEST_OF_CLASS", 10**6)
    losses = measure_losses(full, "auc")
    assert losses.is_own
    assert "an AUC needs 1000000 of each" in losses.notes[0]


def test_costs_are_judged_as_compare_judges_them(scored, full, features, by_costs):
    _, tables = by_costs
    answer = hs.compare(
        full.own(),
        {"mine": full.f[CANDIDATE]},
        features,
        np.array(full.labels)[full.y],
        groups=full.rows["source_row"].to_numpy(),
        loss=costs_of(full),
        segments="sex",
        seed=SuiteFiles.load(scored.suite).manifest.seed,
    )
    overall = row_of(
        tables["contrasts"], task=TASK, framework=CANDIDATE, where="all rows"
    )
    told = row_of(answer.contrasts, model="mine", question="overall")
    for column in ("loss", "loss_f", "difference", "low", "high", "p"):
        assert overall[column] == pytest.approx(told[column]), column
    harm = row_of(tables["harm"], task=TASK, framework=CANDIDATE)
    swap = answer.harm["mine"]
    expected = swap.to_dict()["groups"]["worst fifth"]
    assert harm["worst_fifth"] == pytest.approx(expected["change"])
    assert harm["bound"] == pytest.approx(swap.share(swap.bound))
    own = tables["segments"].query("framework == @CANDIDATE")
    for column in ("loss", "difference", "low", "high"):
        assert own[column].tolist() == pytest.approx(answer.segments[column].tolist())


def test_every_table_is_by_that_loss_and_bad_rows_stay(scored, full, by_costs):
    report, tables = by_costs
    (task,) = [task for task in report.tasks if task.name == TASK]
    assert task.loss == "cost of decisions, in the unit of your costs"
    (plain,) = [
        task
        for task in build_report(
            scored.suite, [scored.results], charts=False, swaps=False
        ).tasks
        if task.name == TASK
    ]
    # where F fails is the suite's: slices and rows are the same, their losses are not
    pd.testing.assert_frame_equal(task.slices, plain.slices)
    assert task.rows == plain.rows
    measured = measure_losses(full, costs_of(full))
    assert set(np.unique(measured.f)) == {0.0, 1.0, 7.0}
    mean = float(measured.f.mean())
    overall = row_of(
        tables["contrasts"], task=TASK, framework=CANDIDATE, where="all rows"
    )
    assert overall["loss_f"] == pytest.approx(mean)
    region = row_of(tables["contrasts"], task=TASK, framework=CANDIDATE, where="region")
    assert region["verdict"] != "better"  # no re-fits by this loss
    assert any("null control is missing" in warning for warning in task.warnings)
    # other tasks do not have these labels
    (toy,) = [task for task in report.tasks if task.name == "toy"]
    assert toy.loss == "squared error of the scaled target"
    assert any("judged by the suite's own loss" in note for note in toy.notes)


def test_numbers_are_in_the_targets_own_unit(scored):
    suite = SuiteFiles.load(scored.suite)
    jobs = read_jobs(suite, scored.results).table
    toy = read_task_predictions(suite, "toy_full", jobs)[0]
    _, tables = tables_of(scored, "absolute", swaps=False)
    overall = row_of(
        tables["contrasts"], task="toy", framework=CANDIDATE, where="all rows"
    )
    assert overall["loss_f"] == pytest.approx(np.abs(toy.own() - toy.y).mean())


@pytest.fixture(scope="module")
def labels_alone(scored, full, tmp_path_factory):
    """A file that names classes and has no probabilities."""
    table = pd.DataFrame(
        {
            "task": full.name,
            "fold": full.rows["amlb_fold"],
            "row": full.rows["row"],
            "prediction": np.array(full.labels)[full.f[CANDIDATE].argmax(axis=1)],
        }
    )
    path = tmp_path_factory.mktemp("labels") / "labels.csv"
    table.to_csv(path, index=False)
    return path


def test_labels_alone_are_compared_by_decisions(scored, full, labels_alone):
    report, tables = tables_of(scored, None, predictions={"labels": labels_alone})
    (task,) = [task for task in report.tasks if task.name == TASK]
    assert task.loss == "share of wrong decisions"
    assert any("labels names labels" in note for note in task.notes)
    overall = row_of(
        tables["contrasts"], task=TASK, framework="labels", where="all rows"
    )
    wrong = full.f[CANDIDATE].argmax(axis=1) != full.y
    assert overall["loss"] == pytest.approx(wrong.mean())
    with pytest.raises(ConfigError, match="needs probabilities, and labels names"):
        tables_of(scored, "log_loss", predictions={"labels": labels_alone})


def test_a_gate_is_held_by_that_loss(scored, full, by_costs):
    result, _ = check_suite(
        scored.suite,
        need="not-worse",
        where="overall",
        margin=0.05,
        results=[str(scored.results)],
        loss=costs_of(full),
        tasks=[TASK],
    )
    (check,) = [check for check in result.checks if check.candidate == CANDIDATE]
    overall = row_of(
        by_costs[1]["contrasts"], task=TASK, framework=CANDIDATE, where="all rows"
    )
    assert check.change == pytest.approx(overall["relative"])


@pytest.mark.parametrize(
    ("loss", "culprit"),
    [
        ("brierr", "did you mean 'brier'"),
        ("f1", "no loss of single rows"),
        ("pinball:2", "no quantile"),
        ("missing.csv", "cannot read the costs of missing.csv"),
        ("negative.csv", "a cost is negative: -3"),
        ("unknown.csv", "names 'maybe'"),
    ],
)
def test_a_loss_of_no_task_is_status_2(
    scored, loss, culprit, refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "negative.csv").write_text(",0,1\n0,0,-3\n1,1,0\n")
    (tmp_path / "unknown.csv").write_text(",0,maybe\n0,0,3\nmaybe,1,0\n")
    words = ["report", str(scored.suite), "--results", str(scored.results), "-q"]
    assert culprit in refused(words, "--text -j 1 --loss", [loss])


def test_a_file_of_costs_is_read_by_the_shell(scored, full, by_costs, tmp_path, capsys):
    first, second = full.labels
    costs = tmp_path / "costs.csv"
    costs.write_text(f",{first},{second}\n{first},0,7\n{second},1,0\n")
    words = ["report", str(scored.suite), "--results", str(scored.results), "--json"]
    assert main([*words, "-j", "1", "-q", "--loss", str(costs)]) in (0, 1)
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    (contrasts,) = (task["contrasts"] for task in tasks if task["name"] == TASK)
    asked = {"framework": CANDIDATE, "where": "all rows"}
    told = row_of(pd.DataFrame(contrasts), **asked)
    expected = row_of(by_costs[1]["contrasts"], task=TASK, **asked)
    assert told["difference"] == pytest.approx(expected["difference"])
