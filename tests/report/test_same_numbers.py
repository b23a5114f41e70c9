"""A suite, ``hs.compare`` and ``hardsynth compare`` give one answer to one question.

The question that all three answer is whether a model is better than F over all untouched rows.
What "where F fails" weighs is learnt from other rows in a suite than in ``compare``: there the two
differ.
"""

import json

import numpy as np
import pandas as pd
import pytest

import amlb_ext as hs
from amlb_ext.cli import main
from amlb_ext.runner import read_predictions
from amlb_ext.suite import SuiteFiles

F, CANDIDATE = "HardsynthBaseline", "HardsynthCandidate"


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


@pytest.mark.parametrize("task", ["titanic", "wine"])
def test_the_gain_over_all_untouched_rows_is_the_same_at_three_doors(
    scored, task, tmp_path, capsys
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
    assert main(command) == 0
    records = json.loads(capsys.readouterr().out)["contrasts"]
    (on_console,) = [
        record["difference"] for record in records if record["question"] == "overall"
    ]

    assert np.isfinite(of_suite)
    assert in_python == pytest.approx(of_suite, rel=1e-9)
    assert on_console == pytest.approx(of_suite, rel=1e-9)
