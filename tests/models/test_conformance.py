"""The same model gives the same answer at every door, in whatever form it comes.

Some forty models of six libraries, each fitted on classes or on numbers; each is asked fitted, from
a file, as predictions by name, as a bare array, with the columns shuffled, with the classes
declared in another order. What the doors print is held against scikit-learn's own formulas on the
model's own answers.
"""

import functools
import importlib

import joblib
import numpy as np
import pandas as pd
import pytest
from conformance_models import MODELS, Counted, build, is_classifier_name
from sklearn.metrics import mean_squared_error

import amlb_ext as hs
from amlb_ext.cli import main
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.models.answers import Answers, Labels
from amlb_ext.models.columns import columns_of_model
from amlb_ext.models.given_table import GivenTable
from amlb_ext.suite import SuiteFiles

pytestmark = pytest.mark.usefixtures("light_models")

LABELS = ("no", "yes")
N_TRAIN, N = 160, 120


@functools.cache
def table(kind: str):
    """Numbers of different sizes, so that a column in another's place shows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N_TRAIN + N).astype(float),
            "customer income": rng.normal(30, 10, N_TRAIN + N).round(2),
            "debt": rng.exponential(2, N_TRAIN + N).round(3),
        }
    )
    signal = X["age"] / 20 - X["debt"] + rng.normal(0, 0.7, len(X))
    y = pd.Series(np.where(signal > 1.5, "yes", "no"), name="bought")
    if kind == "regression":
        y = (10 * signal).round(3).rename("cost")
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


@functools.cache
def fitted(name: str):
    X0, y0, _, _ = table("classification" if is_classifier_name(name) else "regression")
    return build(name, X0, y0)


def rows_of(name: str):
    return table("classification" if is_classifier_name(name) else "regression")


def answers(model, X, name: str) -> Answers:
    labels = Labels(LABELS) if is_classifier_name(name) else Labels(())
    return ModelAdapter(model, "F").answer(GivenTable.of(X), labels)


def named(said: Answers, X, name: str) -> pd.DataFrame:
    if is_classifier_name(name) and said.only_labels:
        return pd.DataFrame(
            {"prediction": np.array(LABELS)[said.decided]}, index=X.index
        )
    if is_classifier_name(name):
        p = pd.DataFrame(said.f, columns=list(LABELS), index=X.index)
        return p.assign(prediction=np.array(LABELS)[said.decided])[
            ["yes", "prediction", "no"]
        ]
    return pd.DataFrame({"prediction": said.f}, index=X.index)


def plain_rows(said: Answers, y, name: str) -> np.ndarray:
    """Return the loss of each row by the model's own answers."""
    if not is_classifier_name(name):
        return (y.to_numpy() - said.f) ** 2
    truth = np.column_stack([y == label for label in LABELS])
    return ((said.f - truth) ** 2).sum(axis=1)


def plain_loss(said: Answers, y, name: str) -> float:
    """Return the loss that scikit-learn's formulas give for the model's own answers."""
    if not is_classifier_name(name):
        return mean_squared_error(y, said.f)
    truth = np.column_stack([y == label for label in LABELS])
    if said.only_labels:
        return float((np.array(LABELS)[said.decided] != y).mean())
    return float(((said.f - truth) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("name", MODELS)
def test_a_model_answers_alike_in_every_form(name, tmp_path):
    model = fitted(name)
    _, _, X, _ = rows_of(name)
    said = answers(model, X, name)
    # columns in another order, for a model that knows their names
    if columns_of_model(model)[0] is not None:
        shuffled = answers(model, X[["debt", "age", "customer income"]], name)
        np.testing.assert_allclose(shuffled.f, said.f)
    if "array" in name:
        np.testing.assert_allclose(answers(model, X.to_numpy(), name).f, said.f)
    # as predictions by name, in any order of the columns and of the rows
    by_name = named(said, X, name)
    again = answers(by_name, X, name)
    np.testing.assert_allclose(again.f, said.f)
    if is_classifier_name(name):
        np.testing.assert_array_equal(again.decided, said.decided)
    moved = by_name.sample(frac=1, random_state=0)
    np.testing.assert_allclose(answers(moved, X, name).f, said.f)
    # and as a bare array, in the order of sklearn.unique_labels
    if not said.only_labels:
        np.testing.assert_allclose(answers(said.f, X, name).f, said.f)
    # from a file, where the library can be written to one
    path = tmp_path / "F.joblib"
    try:
        joblib.dump(model, path)
    except Exception:
        return
    np.testing.assert_allclose(answers(joblib.load(path), X, name).f, said.f, rtol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_what_the_doors_print_is_what_the_model_says(name):
    model = fitted(name)
    X0, y0, X, y = rows_of(name)
    said = answers(model, X, name)
    result = hs.compare(
        model, {"same": named(said, X, name), "other": model}, X, y, refits=2
    )
    # F and its own answers are one
    assert result.table["overall_change"].abs().max() == pytest.approx(0, abs=1e-9)
    row = result.row("other", "overall")
    if not result.capping:
        assert row["loss_f"] == pytest.approx(plain_loss(said, y, name))
    failing = hs.failures(model, X, y.sample(frac=1, random_state=1))
    report = hs.estimate_error(model, X, y, train=(X0, y0))
    t = next(row for row in report.rows if row.name in ("t", "wilson"))
    if is_classifier_name(name):
        wrong = (np.array(LABELS)[said.decided] != y).mean()
        assert failing.rows["is_bad"].mean() == pytest.approx(min(wrong, 0.5), abs=0.01)
        assert t.point == pytest.approx(wrong)
    else:
        assert failing.rows["is_bad"].mean() <= 0.1 + 1 / len(y)
        assert failing.rows["loss"].mean() == pytest.approx(plain_loss(said, y, name))
    gate = hs.check_gate(result, need="not-worse", margin=0.1)
    assert gate.outcome in ("met", "no claim")


HARDENED = [
    "sklearn.FixedThresholdClassifier",
    "xgboost.XGBRegressor",
    "catboost.CatBoostClassifier yes first",
    "hand-made.regressor",
]


@pytest.mark.parametrize("name", HARDENED)
def test_a_suite_holds_what_the_model_gets_wrong(name, tmp_path):
    model = fitted(name)
    _, _, X, y = rows_of(name)
    rows = X.assign(**{y.name: y})
    settings = {
        "split": {"folds": 1},
        "search": {"copies": 0},
        "synthesizer": {"times": 0.0},
        "composition": ["bad"],
        "train_hard": False,
    }
    hs.harden(
        rows,
        y.name,
        model=model,
        out=tmp_path / "suite",
        settings=settings,
        certificate="none",
    )
    suite = SuiteFiles.load(tmp_path / "suite")
    [task] = [task for task in suite.amlb_tasks if task.endswith("_full")]
    full = suite.provenance(task, 0)
    said = answers(model, X, name)
    tested = full["source_row"].to_numpy()
    loss = full["loss"] * (
        1.0 if is_classifier_name(name) else _range_of_train(suite, task) ** 2
    )
    own = plain_rows(said, y, name)[tested]
    np.testing.assert_allclose(loss, own, rtol=1e-5, atol=1e-9)
    if is_classifier_name(name):
        wrong = (np.array(LABELS)[said.decided] != y.to_numpy())[tested]
        np.testing.assert_array_equal(full["origin"] == "bad", wrong)


def _range_of_train(suite, task) -> float:
    train, _ = suite.pair(task, 0)
    coding = suite.coding(task)
    _, target = coding.decode(coding.read_csv(train))
    return float(np.ptp(target.to_numpy(dtype=float)))


FROM_FILES = [
    name for name in MODELS if name.startswith(("sklearn", "lightgbm", "xgb"))
]


@pytest.mark.parametrize("name", FROM_FILES[::8])
def test_files_say_what_python_says(name, tmp_path, capsys):
    model = fitted(name)
    _, _, X, y = rows_of(name)
    said = answers(model, X, name)
    new = X.assign(**{y.name: y, "id": range(N)})
    new.to_csv(tmp_path / "new.csv", index=False)
    joblib.dump(model, tmp_path / "F.joblib")
    # rows in another order, told apart by a column that both have
    by_name = named(said, X, name).assign(id=range(N))
    by_name.sample(frac=1, random_state=2).to_csv(tmp_path / "p.csv", index=False)
    words = (
        f"compare {tmp_path}/new.csv --target {y.name} --trust-pickle --json --drop id"
    )
    status = main(
        [
            *words.split(),
            *("--baseline", str(tmp_path / "F.joblib")),
            *("--candidate", f"same={tmp_path}/p.csv", "--refits", "2"),
        ]
    )
    assert status == 0
    printed = importlib.import_module("json").loads(capsys.readouterr().out)
    contrasts = pd.DataFrame(printed["contrasts"])
    assert contrasts["difference"].astype(float).abs().max() < 1e-9


def test_a_model_cannot_change_the_rows_of_the_next():
    _, _, X, y = rows_of("sklearn.Ridge")
    before = X.copy()
    model = Counted(fitted("sklearn.Ridge"))
    result = hs.compare(model, {"same": model}, X, y)
    pd.testing.assert_frame_equal(X, before)
    assert result.table["overall_change"].abs().max() == 0
    # the index reaches the model, and all rows in one call
    assert model.seen_index.equals(X.index)
