import io

import numpy as np
import pandas as pd
import pytest

from amlb_ext.report.amlb_csv import FIXED, ScoredJob, amlb_rows, write_amlb_csv
from amlb_ext.runner.results import read_results

# Written by AMLB v2.1.7 (python runbenchmark.py FRAMEWORK hardsynth hardsynth_quick ...) on a
# suite of bundled/cpu, bundled/titanic and bundled/penguins; some rows. By hand: 12.5 seconds,
# the parameters, and that the last failed.
AMLB = """\
id,task,framework,constraint,fold,type,result,metric,mode,version,params,app_version,utc,\
duration,training_duration,predict_duration,models_count,seed,info,acc,auc,balacc,logloss,mae,\
r2,rmse
cpu,cpu,constantpredictor,hardsynth_quick,0,regression,-182.346,neg_rmse,local,1.2.2,,2.1.7,\
2026-11-21T19:34:12,0.03,0.0004,3e-05,1,1,,,,,,161.01,-3.53872,182.346
cpu_full,cpu_full,DecisionTree,hardsynth_quick,0,regression,-16.5831,neg_rmse,local,1.2.2,,2.1.7,\
2026-11-21T19:34:20,0.04,0.005,0.0001,1,1,,,,,,7.14286,0.944351,16.5831
cpu_full,cpu_full,DecisionTree,hardsynth_quick,1,regression,-17.6844,neg_rmse,local,1.2.2,,2.1.7,\
2026-11-21T19:34:21,12.5,0.0008,0.0002,1,1,,,,,,7.35714,0.952306,17.6844
titanic_full,titanic_full,DecisionTree,hardsynth_quick,0,binary,0.733364,auc,local,1.2.2,,2.1.7,\
2026-11-21T19:34:20,0.07,0.01,0.0002,1,1,,0.763359,0.733364,0.734012,7.75956,,,
penguins_full,penguins_full,DecisionTree,hardsynth_quick,0,multiclass,-0.522372,neg_logloss,local,\
1.2.2,"{'max_depth': 3, 'x': ""y""}",2.1.7,2026-11-21T19:34:21,0.05,0.0009,0.0001,1,1,,0.985507,,\
0.986667,0.522372,,,
penguins_full,penguins_full,DecisionTree,hardsynth_quick,1,multiclass,,neg_logloss,local,1.2.2,,\
2.1.7,2026-11-21T19:34:21,,,,,1,"CalledProcessError: no, really",,,,,,,
"""
NAMES = ["amlb_task", "part", "type", "metric", "value"]


@pytest.fixture
def results(tmp_path):
    (tmp_path / "results.csv").write_text(AMLB, encoding="utf-8")
    return read_results(tmp_path)


def scores(*rows, framework="DecisionTree", constraint="hardsynth_quick", fold=0):
    frame = pd.DataFrame(rows, columns=NAMES)
    return frame.assign(framework=framework, constraint=constraint, fold=fold)


def jobs_of(frame):
    """Return the scores as a report has them, those of a job together."""
    jobs = []
    names = ["amlb_task", "part", "framework", "constraint", "fold", "type"]
    for key, own in frame.groupby(names, sort=False):
        source, part, framework, constraint, fold, kind = key
        jobs.append(
            ScoredJob(
                source=source,
                part=part,
                framework=framework,
                constraint=constraint,
                fold=fold,
                kind=kind,
                metrics=dict(zip(own["metric"], own["value"], strict=True)),
            )
        )
    return jobs


def written(frame, path):
    write_amlb_csv(frame, path)
    return path.read_text(encoding="utf-8")


def test_amlbs_rows_come_back_byte_for_byte(results, tmp_path):
    frame = amlb_rows(results, jobs_of(scores()))
    assert written(frame, tmp_path / "out.csv") == AMLB
    assert "run" not in frame.columns
    pd.testing.assert_frame_equal(amlb_rows(results, []), frame)


def test_new_metrics_stand_beside_amlbs_rows_and_change_nothing_else(results, tmp_path):
    added = scores(
        ("cpu", "full", "regression", "mse", 275.0),
        ("cpu", "full", "regression", "smape", 0.25),
        ("cpu", "full", "regression", "rmse", 16.58312395),  # AMLB's own: stays
        ("titanic", "full", "binary", "brier", 1 / 3),
        ("titanic", "full", "binary", "f1", 0.7),
    )
    frame = amlb_rows(results, jobs_of(added))
    assert list(frame.columns) == [
        *FIXED,
        *("acc", "auc", "balacc", "f1", "logloss", "mae", "mse", "r2", "rmse"),
        *("brier", "smape"),  # not among AMLB's: behind them
    ]
    old = frame.drop(columns=["f1", "mse", "brier", "smape"])
    assert written(old, tmp_path / "out.csv") == AMLB
    assert frame["mse"].tolist()[1] == 275
    assert frame["f1"].notna().tolist() == [False, False, False, True, False, False]
    assert "0.333333,\n" in written(frame, tmp_path / "out.csv")


def test_a_part_that_amlb_did_not_run_is_a_row_of_its_own(results):
    added = scores(
        ("cpu", "weighted", "regression", "rmse", 30.0),
        ("cpu", "weighted", "regression", "smape", 0.5),
        ("titanic", "bad", "binary", "auc", 0.4),
        ("penguins", "synthetic", "multiclass", "logloss", 1.5),
    )
    frame = amlb_rows(results, jobs_of(added))
    new = frame.iloc[6:]
    assert new["task"].tolist() == ["cpu_weighted", "titanic_bad", "penguins_synthetic"]
    assert new["id"].tolist() == ["hardsynth/" + task for task in new["task"]]
    assert new["metric"].tolist() == ["neg_rmse", "auc", "neg_logloss"]
    assert new["result"].tolist() == [-30.0, 0.4, -1.5]  # higher is better
    assert new["rmse"].tolist()[0] == 30
    assert set(new["info"]) == {""}
    # of the framework's own job on the same source and fold
    assert new["utc"].tolist() == [
        *("2026-11-21T19:34:20", "2026-11-21T19:34:20", "2026-11-21T19:34:21"),
    ]
    assert new["params"].tolist() == ["", "", "{'max_depth': 3, 'x': \"y\"}"]
    assert set(new["seed"]) == {1}
    assert new[["duration", "training_duration", "models_count"]].isna().all(axis=None)


def test_a_framework_without_rows_and_a_part_without_scores(results):
    added = scores(
        ("cpu", "bad", "regression", "rmse", 2.0),
        ("cpu", "ga", "regression", "rmse", np.nan),
        framework="Other",
    )
    new = amlb_rows(results, jobs_of(added)).iloc[6:]
    assert new["task"].tolist() == ["cpu_bad"]
    assert new["mode"].tolist() == [""]
    assert new["result"].tolist() == [-2.0]


def test_one_metric_per_task_even_where_auc_is_undefined(results):
    def bad(fold, framework, auc, logloss):
        rows = [("titanic", "bad", "binary", "auc", auc)]
        rows += [("titanic", "bad", "binary", "logloss", logloss)]
        return scores(*rows, fold=fold, framework=framework)

    # no framework has an AUC in fold 1, which has one class: log loss tells the task
    one_class = [bad(0, "A", 0.4, 0.9), bad(1, "A", np.nan, 0.8)]
    new = amlb_rows(results, jobs_of(pd.concat(one_class))).iloc[6:]
    assert new["metric"].tolist() == ["neg_logloss"] * 2
    assert new["result"].tolist() == [-0.9, -0.8]
    # only B has none in fold 1: its own failure
    failure = [bad(0, "A", 0.4, 0.9), bad(1, "A", 0.5, 0.8), bad(1, "B", np.nan, 0.7)]
    new = amlb_rows(results, jobs_of(pd.concat(failure))).iloc[6:]
    assert new["metric"].tolist() == ["auc"] * 3
    assert new["result"].isna().tolist() == [False, False, True]


def test_f1_of_many_classes_goes_by_amlbs_name(results):
    added = scores(
        ("penguins", "full", "multiclass", "f1", 0.25),
        ("penguins", "full", "multiclass", "f1_weighted", 0.75),
    )
    frame = amlb_rows(results, jobs_of(added))
    assert frame.loc[4, ["f1", "f1_macro"]].tolist() == [0.75, 0.25]


def test_scores_of_other_predictions_do_not_touch_amlbs_row(results):
    added = scores(
        ("cpu", "full", "regression", "rmse", 17.0),  # AMLB's row has 16.5831
        ("cpu", "full", "regression", "mse", 289.0),
    )
    frame = amlb_rows(results, jobs_of(added))
    assert len(frame) == 6
    assert "mse" not in frame.columns


def test_the_file_comes_back(results, tmp_path):
    added = scores(
        ("cpu", "weighted", "regression", "rmse", 1 / 3),
        ("titanic", "bad", "binary", "auc", 2 / 3),
    )
    path = tmp_path / "export" / "results.csv"
    frame = amlb_rows(results, jobs_of(added))
    assert len(write_amlb_csv(frame, path)) == 64
    back = amlb_rows(read_results(path.parent), [])
    pd.testing.assert_frame_equal(back, frame, rtol=5e-6)
    table = pd.read_csv(
        io.StringIO(path.read_text(encoding="utf-8"))
    )  # as AMLB reads it
    assert table["result"].tolist()[-2:] == [-0.333333, 0.666667]
    assert table["info"].notna().sum() == 1  # what AMLB's report counts as failed
    assert not table.duplicated(["task", "fold", "framework"]).any()
    assert table.drop_duplicates(["id", "task"])["id"].is_unique


def test_two_versions_of_a_framework_have_one_row_for_a_part(results):
    """AMLB names both alike: the row has the scores of the one that comes last."""
    old = scores(("cpu", "bad", "regression", "rmse", 2.0))
    new = amlb_rows(results, jobs_of(pd.concat([old, old.assign(value=3.0)]))).iloc[6:]
    assert new[["task", "result"]].values.tolist() == [["cpu_bad", -3.0]]
