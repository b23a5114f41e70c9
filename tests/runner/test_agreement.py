"""Whether the F that was run is the F of the suite: planted fits of F, and of another model."""

import importlib

import numpy as np
import pytest
import yaml
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from amlb_ext.core.config import build_config
from amlb_ext.core.estimators import import_packaged
from amlb_ext.core.row_losses import brier_loss
from amlb_ext.pipeline import Request, generate_suite
from amlb_ext.runner.agreement import (
    ComparedRows,
    alarm_text,
    find_disagreements,
)
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.reader import stored_predictions


def fitted(model, X, y, rows):
    return model.fit(X[rows], y[rows])


def compared(make, other=None, test=60):
    """Rows of two folds: F, its re-fits without a part each, and what ``other`` predicts."""
    parts = []
    for number in range(2):
        X, y = make_classification(300 + test, 6, random_state=number, flip_y=0.2)
        train, held = np.arange(300), np.arange(300, 300 + test)
        fits = [fitted(make(9), X, y, train).predict_proba(X[held])]
        for part in range(5):
            own = fitted(make(part), X, y, train[train % 5 != part])
            fits.append(own.predict_proba(X[held]))
        shown = other(X) if other else X
        run = fitted(make(77), shown, y, train).predict_proba(X[held])
        losses = [brier_loss(y[held], f) for f in (run, *fits)]
        parts.append(
            ComparedRows(
                fold=np.full(test, number),
                f=run,
                own=fits[0],
                loss=losses[0],
                loss_f=losses[1],
                null=np.column_stack(losses[2:]),
                span=np.ones(test),
            )
        )
    return ComparedRows.join(parts)


def forest(seed):
    return RandomForestClassifier(30, random_state=seed)


@pytest.fixture(scope="module")
def same_forest():
    """Rows of the same forest, with another seed."""
    return compared(forest)


@pytest.fixture(scope="module")
def other_forest():
    """Rows of a forest that saw its columns in another order."""
    return compared(forest, other=lambda X: X[:, ::-1])


def test_another_seed_is_still_f(same_forest):
    assert not find_disagreements("t_full", same_forest)


def test_the_same_model_with_noise_of_versions_is_f():
    rows = compared(lambda _: LogisticRegression())
    assert not find_disagreements("t_full", rows)
    noisy = ComparedRows(**{**vars(rows), "f": rows.f + 1e-9, "loss": rows.loss + 1e-9})
    assert not find_disagreements("t_full", noisy)


def test_a_model_that_saw_its_columns_in_another_order_is_not(other_forest):
    found = find_disagreements("t_full", other_forest)
    assert [one.fold for one in found] == [0, 1]
    rows = [one.compared for one in found]
    assert all(one.differing.sum() > 20 and one.distance.max() > 0.3 for one in rows)
    text = alarm_text("HardsynthBaseline", found)
    assert "t_full fold 1: " in text
    assert "ignore its contrasts" in text


def test_three_rows_of_a_fold_are_judged_with_the_other_folds(other_forest):
    rows = other_forest
    few = rows.take(np.arange(len(rows.fold)) % 30 == 0)
    one_by_one = ComparedRows(**{**vars(few), "fold": np.arange(len(few.fold))})
    assert not any(
        find_disagreements("t", one_by_one.take(one_by_one.fold == k))
        for k in one_by_one.fold
    )
    assert len(find_disagreements("t", one_by_one)) == len(few.fold)


def test_a_suite_without_refits_is_held_to_a_plain_limit(other_forest, same_forest):
    for rows, is_other in ((other_forest, True), (same_forest, False)):
        bare = ComparedRows(**{**vars(rows), "null": rows.null[:, :0]})
        assert bool(find_disagreements("t_full", bare)) is is_other


@pytest.mark.exhaustive
@pytest.mark.usefixtures("light_models")
def test_f_fitted_again_predicts_what_the_suite_keeps(tmp_path):
    """A forest, whose trees are drawn by its seed, of classes and of numbers."""
    suite = tmp_path / "suite"
    model = {"model": "random_forest", "params": {"n_estimators": 5}}
    made = {"composition": ["weighted"], "synthesizer": {"name": "local", "times": 1}}
    config = build_config(
        {"baseline": model, "split": {"folds": 2}, "train_hard": False, **made}
    )
    sources = ("bundled/wine", "bundled/diabetes")
    generate_suite(Request(sources, config, suite, certificate="none", quiet=True))
    files = SuiteFiles.load(suite)
    params = yaml.safe_load((suite / "frameworks.yaml").read_text())
    package = import_packaged("HardsynthSklearn")
    pipeline = importlib.import_module(f"{package}.pipeline")
    for task in ("wine_full", "diabetes_full"):
        coding = files.coding(task)
        train, test = files.pair(task, 1)
        settings = pipeline.Settings.from_params(params["HardsynthBaseline"]["params"])
        # whatever AMLB's seed is
        seed = settings.seed_of(task, 1, 77)
        assert seed == settings.seed_of(task, 1, 1)
        model = pipeline.Model(settings, classes=bool(coding.labels), seed=seed)
        model.fit(*coding.decode(coding.read_csv(train)))
        features, _ = coding.decode(coding.read_csv(test))
        predicted, p = model.predict(features)
        kept = stored_predictions(files.provenance(task, 1), len(coding.labels))
        assert np.array_equal(kept, predicted if p is None else p)
