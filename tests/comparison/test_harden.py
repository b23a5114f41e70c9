"""hs.harden: a table and a model in memory become a suite."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import amlb_ext as hs
from amlb_ext.core.errors import ConfigError


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
    with pytest.raises(ConfigError, match="has no predict"):
        hs.harden(table, "label", model=3, out=tmp_path / "other")
    assert not (tmp_path / "other").exists()
