"""AMLB itself loads, encodes and scores what the writer wrote.

Skips where AMLB cannot be had. It is never imported here: a script runs in its own Python.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from amlb_scripts import ask_amlb
from random_tasks import random_task, split
from written_suites import put_fold

from amlb_ext.amlb.loader_rules import has_cells_of
from amlb_ext.suite import Coding, Layout, Part, check_pair, metrics_for

pytestmark = pytest.mark.amlb
NIGHTLY = bool(os.environ.get("HARDSYNTH_NIGHTLY"))

SCRIPT = r"""
from amlb.results import ClassificationResult, RegressionResult, save_predictions

def load(case):
    return FileLoader(tempfile.mkdtemp()).load(
        ns(train=[case["train"]], test=[case["test"]], target=case["target"],
           type=case["type"], features=None, timestamp_column=None), fold=0)

def check(case):
    raw, enc = load(case), load(case)
    names = case["names"]
    assert [f.name for f in raw.predictors] == names, "columns"
    assert raw.target.name == case["target"], "target"
    train, test = raw.train.X, raw.test.X
    raw.train.data_path("parquet"), raw.test.data_path("parquet")  # as AutoGluon asks for them
    assert list(train.dtypes.astype(str)) == list(test.dtypes.astype(str)), "dtypes"
    for split, X in (("train", train), ("test", test)):
        text = pd.read_csv(case[split], dtype=str, keep_default_na=False)
        for name, form in zip(names, case["forms"]):
            absent = (text[name] == "").to_numpy()
            assert (X[name].isna().to_numpy() == absent).all(), "missing in " + repr(name)
            kind = X[name].dtype
            if form == "text" and not (text[name] == "").all() and X[name].notna().any():
                assert str(kind) == "category", (name, kind)
                assert list(X[name][~absent].astype(str)) == list(text[name][~absent]), name
            if form != "text":
                wanted = {"float": "float64", "integer": "int64", "boolean": "bool"}[form]
                assert kind == wanted, (name, kind)
    sizes = len(raw.train.X), len(raw.test.X)
    encoded = {}
    for split, n in zip(("train", "test"), sizes):
        part = getattr(enc, split)
        encoded[split] = part.X_enc, part.y_enc
        assert part.X_enc.shape == (n, len(names)), "X_enc shape"
        X = getattr(raw, split).X
        assert (np.isnan(part.X_enc.astype(float)) == X.isna().to_numpy()).all(), "X_enc missing"
        for j, name in enumerate(names):
            if str(X[name].dtype) == "category":
                seen = pd.DataFrame({"e": part.X_enc[:, j], "r": X[name].astype(object)}).dropna()
                assert (seen.groupby("e").r.nunique() == 1).all(), "merged " + repr(name)
    folder = tempfile.mkdtemp()
    results = {}
    for way in ("raw", "enc"):
        out = os.path.join(folder, way, "predictions.csv")
        os.makedirs(os.path.dirname(out))
        if case["type"] == "regression":
            y = raw.test.y.squeeze(axis=1).to_numpy() if way == "raw" else encoded["test"][1]
            save_predictions(raw, out, predictions=y, truth=y, target_is_encoded=way == "enc",
                             preview=False)
        elif way == "raw":
            y = raw.test.y.iloc[:, 0].to_numpy()
            classes = sorted(set(raw.train.y.iloc[:, 0]))
            p = np.equal.outer(np.asarray(y, object), np.asarray(classes, object)).astype(float)
            save_predictions(raw, out, predictions=y, truth=y, probabilities=p,
                             probabilities_labels=classes, preview=False)
        else:
            y = encoded["test"][1].astype(int)
            k = len(raw.target.label_encoder.classes)
            labels = raw.target.label_encoder.classes if case["seed"] % 2 else raw.target.values
            p = np.eye(k)[y]
            if case["seed"] % 2 == 0:
                assert list(labels) == list(raw.target.label_encoder.classes), "label order"
            save_predictions(raw, out, predictions=y, truth=y, probabilities=p,
                             probabilities_labels=list(labels), target_is_encoded=True,
                             preview=False)
        frame = pd.read_csv(out, dtype=object)
        assert len(frame) == sizes[1], "rows of predictions"
        if case["type"] == "regression":
            result = RegressionResult(frame)
            assert result.truth.shape == (sizes[1],)
            assert result.evaluate("rmse").value == 0.0, "rmse"
            continue
        result = ClassificationResult(frame)
        for metric in case["metric"] or {"binary": ["auc", "logloss", "acc"],
                                         "multiclass": ["logloss", "acc", "balacc"]}[case["type"]]:
            value = result.evaluate(metric).value
            best = 0.0 if metric == "logloss" else 1.0
            assert abs(value - best) < 1e-6, (way, metric, value)

answers = []
for case in cases:
    try:
        check(case)
        answers.append("")
    except BaseException as error:
        answers.append(type(error).__name__ + ": " + str(error)[:300])
"""


def case_of(folder, seed):
    """Write a random pair; None where no part was legal."""
    task, layout = random_task(seed), Layout(folder / str(seed))
    coding = Coding.of(task)
    train, test = split(task, seed)
    record = put_fold(layout, task, train, {"": Part(test)})
    if "" not in record.parts:
        return None
    part = record.parts[""]
    return {
        "seed": seed,
        "train": str(layout.at(part.train)),
        "test": str(layout.at(part.test)),
        "target": coding.written_target,
        "type": task.kind.value,
        "names": [column.written for column in coding.columns],
        "forms": [column.form for column in coding.columns],
        "metric": metrics_for(task.kind, [part.labels], task.labels),
    }


def test_amlb_loads_encodes_and_scores_every_pair(amlb, tmp_path):
    count = 1000 if NIGHTLY else 30
    cases = [case for seed in range(count) if (case := case_of(tmp_path, seed))]
    assert len(cases) > count / 2
    wrong = {
        c["seed"]: said
        for c, said in zip(cases, ask_amlb(amlb, SCRIPT, cases, tmp_path), strict=True)
        if said
    }
    assert wrong == {}
    for table in [Path(case[side]) for case in cases for side in ("train", "test")]:
        assert has_cells_of(table.with_suffix(".parquet"), table), table


@pytest.mark.exhaustive  # random cells; the one before asks AMLB, too
def test_what_amlb_stumbles_over_check_pair_names(amlb, tmp_path):
    """Break one cell of the test file at random: where AMLB fails, check_pair says why."""
    cases = []
    for seed in range(1000 if NIGHTLY else 40):
        case = case_of(tmp_path, seed)
        if case is None:
            continue
        rng = np.random.default_rng(seed)
        path = Path(case["test"])
        coding = Coding.of(random_task(seed))
        frame = coding.read_csv(path).astype(object).fillna("")
        junk = ["", "x", "7", "2.5", "True", "inf", "1e300", "nan", "?", "None", "0"]
        row, column = rng.integers(len(frame)), rng.integers(frame.shape[1])
        frame.iloc[row, column] = junk[rng.integers(len(junk))]
        if rng.random() < 0.1:
            frame = frame.iloc[:, ::-1]
        frame.to_csv(path, index=False)
        cases.append(case)
    blind = {}
    for case, said in zip(cases, ask_amlb(amlb, SCRIPT, cases, tmp_path), strict=True):
        pair = Path(case["train"]), Path(case["test"])
        fails = said and not said.startswith(
            "AssertionError"
        )  # ours, of values we changed
        if fails and not check_pair(*pair, case["target"], case["type"]):
            blind[case["seed"]] = said
    assert blind == {}
