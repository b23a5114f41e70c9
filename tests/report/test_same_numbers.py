"""A suite, ``hs.compare`` and ``hardsynth compare`` give one answer to one question.

All three answer whether a model is better than F over all untouched rows. What "where F fails"
weighs is learnt from other rows in a suite than in ``compare``: given the suite's weights and its
re-fits of F, ``compare`` gives the suite's numbers there as well.
"""

import importlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exhaustive import first_of

import amlb_ext as hs
from amlb_ext.core.unit import ROW
from amlb_ext.report.compare import WHERE, compare_frameworks
from amlb_ext.report.predictions import read_task_predictions
from amlb_ext.runner import read_jobs, read_predictions
from amlb_ext.suite import SuiteFiles
from amlb_ext.swap.answer import Side
from amlb_ext.validity import Certificate
from amlb_ext.validity.certify import read_null

#: The package has a function of the module's name.
compare_module = importlib.import_module("amlb_ext.comparison.compare")
F, CANDIDATE = "HardsynthBaseline", "HardsynthCandidate"


pytestmark = pytest.mark.usefixtures("light_models")


def untouched_rows(scored, task):
    """Return features, targets, and probabilities of F and of the candidate, all folds pooled."""
    suite = SuiteFiles.load(scored.suite)
    target = suite.coding(f"{task}_full").written_target
    tables = []
    probabilities = {F: [], CANDIDATE: []}
    for fold in range(2):
        _, test = suite.pair(f"{task}_full", fold)
        tables.append(pd.read_csv(test, dtype={target: str}))
        for name, kept in probabilities.items():
            run = scored.run_dir(name)
            predicted = read_predictions(run, f"{task}_full", fold)
            kept.append(predicted.drop(columns=["predictions", "truth"]))
    rows = pd.concat(tables, ignore_index=True)
    pooled = {
        name: pd.concat(parts, ignore_index=True)
        for name, parts in probabilities.items()
    }
    return rows, target, pooled


@pytest.mark.parametrize("task", first_of(["wine", "titanic"], 1))
def test_the_gain_over_all_untouched_rows_is_the_same_at_three_doors(
    scored, task, tmp_path, output_of
):
    scores = hs.Suite.load(scored.suite).table("scores", scored.results)
    brier = scores[
        (scores["task"] == task)
        & (scores["part"] == "full")
        & (scores["metric"] == "brier")
    ].set_index("framework")["value"]
    of_suite = brier[CANDIDATE] - brier[F]

    rows, target, predicted = untouched_rows(scored, task)
    X, y = rows.drop(columns=target), rows[target]
    answer = hs.compare(
        predicted[F].to_numpy(), {"other": predicted[CANDIDATE].to_numpy()}, X, y
    )
    in_python = answer.row("other", "overall")["difference"]

    rows.to_csv(tmp_path / "rows.csv", index=False)
    predicted[F].to_csv(tmp_path / "f.csv", index=False)
    predicted[CANDIDATE].to_csv(tmp_path / "other.csv", index=False)
    command = ["compare", str(tmp_path / "rows.csv"), "--target", target, "--json"]
    command += ["--baseline", str(tmp_path / "f.csv")]
    command += ["--candidate", str(tmp_path / "other.csv")]
    records = json.loads(output_of(command))["contrasts"]
    (on_console,) = [
        record["difference"] for record in records if record["question"] == "overall"
    ]

    assert np.isfinite(of_suite)
    assert in_python == pytest.approx(of_suite, rel=1e-9)
    assert on_console == pytest.approx(of_suite, rel=1e-9)


@pytest.mark.parametrize("task", ["titanic", "wine"])
def test_with_the_suites_weights_every_answer_is_the_same(scored, task, monkeypatch):
    suite = SuiteFiles.load(scored.suite)
    jobs = read_jobs(suite, scored.results).table
    full, _ = read_task_predictions(suite, f"{task}_full", jobs)
    # rows that stand in both folds are two rows to compare, which knows of no folds
    full.rows["source_row"] = np.arange(len(full))
    null = read_null(suite, task)
    certificate = Certificate(
        task, full.kind.value, "rank", "so that claims are made", (), ROW
    )
    of_suite = compare_frameworks(task, full, certificate, null, {}, 2)
    judge_rows = compare_module.judge_rows

    def with_suites_weights(*arguments, **more):
        judged = judge_rows(*arguments, **more)
        compared = replace(judged.compared, weights=of_suite.judged.compared.weights)
        return replace(judged, compared=compared, no_claim="")

    refits = [Side(losses=null[name].to_numpy()) for name in null.filter(like="refit_")]
    monkeypatch.setattr(compare_module, "judge_rows", with_suites_weights)
    monkeypatch.setattr(
        compare_module._Again, "fits_of_f", lambda *_: (refits, "the suite's")
    )
    rows, target, predicted = untouched_rows(scored, task)
    answer = hs.compare(
        predicted[F].to_numpy(),
        {"other": predicted[CANDIDATE].to_numpy()},
        rows.drop(columns=target),
        rows[target],
    )
    contrasts = of_suite.contrasts.query("framework == @CANDIDATE").set_index("where")
    names = ["loss", "loss_f", "difference", "low", "high", "p", "p_null", "null_se"]
    for question, where in WHERE.items():
        there = answer.row("other", question)
        assert bool(there) == (where in contrasts.index)
        if there:
            expected = contrasts.loc[where]
            told = [there[name] for name in names]
            assert told == pytest.approx(
                expected[names].tolist(), rel=1e-6, abs=1e-12, nan_ok=True
            )
            assert there["verdict"] == expected["verdict"]
            # draws of equal correlations but for rounding
            assert there["p_adjusted"] == pytest.approx(
                expected["p_adjusted"], abs=0.003, nan_ok=True
            )
