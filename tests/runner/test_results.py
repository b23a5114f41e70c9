"""Reading AMLB's output, and joining it to provenance."""

from __future__ import annotations

import pandas as pd
import pytest

from amlb_ext.core.errors import RunError
from amlb_ext.runner.results import (
    find_predictions,
    join_predictions,
    read_predictions,
    read_results,
)


@pytest.fixture
def out(tmp_path):
    """An output folder with two runs, the second without results of its own."""
    header = "id,task,framework,constraint,fold,result,metric,seed,info,auc\n"
    for run in ("fw.b.c.local.1", "fw.b.c.local.2"):
        folder = tmp_path / run / "scores"
        folder.mkdir(parents=True)
        (folder / "results.csv").write_text(
            header + "x,NA,Fw,c,0,0.5,auc,7,,0.5\nx,NA,Fw,c,1,,auc,,ValueError: no,\n"
        )
    files = {
        "two/0": "c00_no,c01_yes,predictions,truth\n0.25,0.75,c01_yes,c00_no\n",
        "num/3": "predictions,truth\n1.5,2.0\n,3.0\n",
        "two/backup": "",
    }
    for name, text in files.items():
        folder = tmp_path / "fw.b.c.local.1" / "predictions" / name
        folder.mkdir(parents=True)
        (folder / "predictions.csv").write_text(text)
        (folder / "metadata.json").write_text('{"framework": "Fw"}')
    return tmp_path


def test_scores(out):
    frame = read_results(out)
    assert len(frame) == 4
    assert frame["run"].nunique() == 2
    assert frame["task"].tolist() == ["NA"] * 4  # not a missing value
    assert frame["fold"].tolist() == [0, 1, 0, 1]
    assert frame["result"].isna().tolist() == [False, True] * 2
    assert frame["info"].tolist()[1] == "ValueError: no"
    assert frame["seed"].dtype == float
    assert len(read_results(out / "fw.b.c.local.1", out)) == 6


def test_predictions(out):
    found = list(find_predictions(out))
    assert [(p.framework, p.task, p.fold) for p in found] == [
        ("Fw", "num", 3),
        ("Fw", "two", 0),
    ]
    run = out / "fw.b.c.local.1"
    two = read_predictions(run, "two", 0)
    assert two["c01_yes"].tolist() == [0.75]
    assert two["truth"].tolist() == ["c00_no"]
    number = read_predictions(run, "num", 3)
    assert number["truth"].tolist() == [2.0, 3.0]
    assert number["predictions"].isna().tolist() == [False, True]
    with pytest.raises(RunError, match="no predictions of fold 1 of two"):
        read_predictions(run, "two", 1)


def classes(*truth):
    return pd.DataFrame({"a": 0.5, "b": 0.5, "predictions": "a", "truth": list(truth)})


def test_join_of_classes():
    provenance = pd.DataFrame({"origin": ["bad", "ga"]}, index=[7, 9])
    joined = join_predictions(
        classes("a", "b"), provenance, pd.Series([" A", "b"], index=[3, 4])
    )
    assert joined.columns.tolist() == ["origin", "a", "b", "predictions", "truth"]
    assert joined["origin"].tolist() == ["bad", "ga"]
    with pytest.raises(RunError, match=r"row 1 .* its truth is b, the test file has a"):
        join_predictions(classes("a", "b"), provenance, ["a", "a"])
    with pytest.raises(RunError, match="2 predictions, 3 rows in the test file"):
        join_predictions(classes("a", "b"), provenance, ["a", "b", "a"])
    with pytest.raises(RunError, match="both tables have a column 'truth'"):
        join_predictions(classes("a"), pd.DataFrame({"truth": ["a"]}), ["a"])


def test_join_of_numbers():
    table = pd.DataFrame({"predictions": [0.0, 0.0, 0.0], "truth": [1e6, 0.0, -2.0]})
    origin = pd.DataFrame({"origin": ["bad"] * 3})
    # 1e6 (1 + 5e-7) is within a relative 1e-6; 5e-4 is within 1e-9 of the largest, 1e6
    assert len(join_predictions(table, origin, ["1000000.5", 5e-4, -2])) == 3
    with pytest.raises(
        RunError, match=r"row 2 .* truth is -2.0, the test file has -2.1"
    ):
        join_predictions(table, origin, [1e6, 0, -2.1])
    with pytest.raises(RunError, match="row 1"):
        join_predictions(table, origin, [1e6, "c00_no", -2])
