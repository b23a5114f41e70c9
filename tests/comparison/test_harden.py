"""hs.harden: a table and a model in memory become a suite."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import amlb_ext as hs
from amlb_ext.core.errors import ModelError
from amlb_ext.suite import SuiteFiles
from amlb_ext.validity.evaluation import measure_evaluation
from amlb_ext.validity.task_evaluation import evaluate_task
from amlb_ext.validity.task_rows import read_task


def test_a_table_and_a_fitted_model_become_a_suite(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    table["label"] = np.where(table["a"] * table["b"] > 0, "yes", "no")
    F = LogisticRegression().fit(table[["a", "b"]], table["label"])
    suite = hs.harden(
        table,
        "label",
        model=F,
        out=tmp_path / "hard",
        settings={
            "split": {"folds": 1},
            "synthesizer": {"name": "local"},
            "search": {"copies": 1},
        },
        certificate="none",
    )
    assert suite.tasks["target"].tolist() == ["label"]
    assert suite.tasks["full"].tolist() == [40]
    # F is cloned and fitted again on the table's rows: the null control comes with the suite
    rows = read_task(SuiteFiles.load(tmp_path / "hard"), "table")
    assert rows.count_refits(9) == 5
    [train, parts] = rows.folds[0]
    # on training rows F is judged by the clone that has not seen the row, not by itself
    unseen = train.provenance["oof_loss"]
    p = F.predict_proba(train.features)[:, 1]
    brier = 2 * (p - (train.target == "yes")) ** 2
    assert len(unseen) == 160
    assert not np.allclose(unseen, brier)
    losses = parts["full"].provenance
    assert not np.allclose(losses["loss"], losses["null_0"])
    evaluation = evaluate_task(rows, size="quick", refits=7, seed=1)
    assert evaluation.parts["full"].twins.shape == (40, 5)
    [note] = [note for note in evaluation.notes if "fitted elsewhere" in note]
    assert "its 5 re-fits are clones of it, each fitted on 128 training rows" in note
    found, _ = measure_evaluation(evaluation, 1, of_files=[], looks=[])
    names = [measure.name for measure in found]
    assert "null on region" in names
    with pytest.raises(ModelError, match="has no predict"):
        hs.harden(table, "label", model=3, out=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    with pytest.raises(ModelError, match="'b', which the table lacks"):
        hs.harden(table.drop(columns="b"), "label", model=F, out=tmp_path / "other")
    # neither a suite nor its inputs
    assert list(tmp_path.glob("other*")) == []
