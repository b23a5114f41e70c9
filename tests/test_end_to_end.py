"""Any task → hard suite → the real, unchanged AutoML Benchmark; every prediction is joined."""

import pandas as pd
import pytest
from amlb_runs import run_benchmark
from commands import words_of
from exhaustive import count_of, first_of

from amlb_ext.cli import main
from amlb_ext.runner import (
    find_predictions,
    join_predictions,
    read_predictions,
)
from amlb_ext.suite import SuiteFiles, verify_suite

pytestmark = pytest.mark.amlb

FRAMEWORKS = ["constantpredictor", "DecisionTree"]
QUICK = words_of(
    "--baseline ridge --synthesizer copula --copies 1 --times 1 -q --certificate none"
)
BUNDLED = ["bundled/toy", "bundled/wine", "bundled/diabetes_gaps"]
REAL = {
    "credit-g": 31,
    "vineyard": 631,
    "vehicle": 53,
    "Titanic": 9000021,
    "anneal": 1882,
}


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    root = tmp_path_factory.mktemp("bundled") / "hard"
    words = words_of("generate", BUNDLED, "--folds 1 --composition weighted -o", root)
    words += words_of("--kappa .005", QUICK)
    assert main(words) == 0
    return root


def run_and_join(root, outdir, framework, amlb, definition):
    """Run a framework; every job must be scored and every row must find its provenance."""
    suite = SuiteFiles.load(root)
    outcome = run_benchmark(
        framework,
        definition,
        "hardsynth_quick",
        userdir=root,
        outdir=outdir,
        amlb=amlb,
        quiet=True,
    )
    assert outcome.ok, outcome.summary()
    assert outcome.rows["result"].notna().all()
    joined = 0
    for found in find_predictions(outcome.run_dir):
        coding = suite.coding(found.task)
        rows = coding.read_csv(suite.pair(found.task, found.fold)[1])
        provenance = suite.provenance(found.task, found.fold)
        table = join_predictions(
            read_predictions(outcome.run_dir, found.task, found.fold),
            provenance,
            rows[coding.written_target],
        )
        assert len(table) == len(rows)
        joined += 1
    assert joined == len(outcome.expected) == len(outcome.rows)
    return outcome


# a tree learns what each pair's types are; HardsynthBaseline does so below, on all of them, too
@pytest.mark.parametrize("framework", first_of(FRAMEWORKS, 1))
def test_bundled_tasks(bundled, amlb, tmp_path, framework):
    run_and_join(bundled, tmp_path, framework, amlb, "hardsynth_all")


def test_a_moved_suite_runs_again(bundled, amlb, tmp_path):
    moved = bundled.rename(tmp_path / "moved suite")
    try:
        assert verify_suite(moved) == []
        run_and_join(moved, tmp_path / "out", "constantpredictor", amlb, "hardsynth")
    finally:
        moved.rename(bundled)


def test_f_in_amlb_is_f_of_the_suite(bundled, amlb, tmp_path):
    """HardsynthBaseline's Brier loss in AMLB is what the manifest says of F."""
    outcome = run_and_join(
        bundled, tmp_path, "HardsynthBaseline", amlb, "hardsynth_all"
    )
    suite = SuiteFiles.load(bundled)
    said = suite.tasks["wine"].folds[0].summary["score"]
    # logistic regression is deterministic; versions of scikit-learn differ by far less
    for task, name, tolerance in (
        ("wine_full", "brier", 0.03),
        ("wine_bad", "bad", 0.26),
    ):
        predicted = read_predictions(outcome.run_dir, task, 0)
        labels = list(suite.coding(task).written_labels)
        one_hot = pd.get_dummies(predicted["truth"].astype(str)).reindex(columns=labels)
        errors = predicted[labels].to_numpy(float) - one_hot.fillna(0).to_numpy(float)
        brier = (errors**2).sum(axis=1).mean()
        assert brier == pytest.approx(said[name], abs=tolerance)


def test_real_openml_tasks(openml_cache, amlb, tmp_path):
    root, source = tmp_path / "hard", tmp_path / "real.yaml"
    # one of their ten folds: all of them take as long as every other test together
    tasks = dict(list(REAL.items())[: count_of(2, len(REAL))])
    entries = [
        f"- {{name: {name}, openml_task_id: {n}, folds: 1}}"
        for name, n in tasks.items()
    ]
    source.write_text("\n".join(entries), encoding="utf-8")
    words = words_of(
        "generate", source, "--openml-cache", openml_cache, "-o", root, QUICK
    )
    assert main(words) == 0
    for framework in FRAMEWORKS[1:]:
        outcome = run_and_join(root, tmp_path / "out", framework, amlb, "hardsynth")
        assert {f"{name}_full" for name in tasks} <= set(outcome.rows["task"])
    scores = pd.read_csv(tmp_path / "out" / "results.csv")
    assert scores["result"].notna().all()
