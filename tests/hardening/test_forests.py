"""The short way through a forest gives scikit-learn's own bits, or takes scikit-learn's way."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from amlb_ext.hardening.baseline import forests

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
NUMBERS = X[:, 0] + X[:, 1] * X[:, 2]
CLASSES = np.digitize(X[:, 0], [-0.5, 0.5])
FRESH = RNG.normal(size=(57, 4))


def fitted(kind):
    model = kind(20, random_state=0)
    return model.fit(X, CLASSES if hasattr(model, "predict_proba") else NUMBERS)


def own(model):
    return "predict_proba" if hasattr(model, "predict_proba") else "predict"


@pytest.mark.parametrize("kind", forests.FORESTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("rows", [1, 2, 57])
def test_the_same_bits(kind, rows):
    model = fitted(kind)
    ask = getattr(forests, own(model))
    expected = getattr(model, own(model))(FRESH[:rows])
    np.testing.assert_array_equal(ask(model, FRESH[:rows]), expected)


def test_trees_are_asked_past_the_dispatch(monkeypatch):
    model = fitted(RandomForestRegressor)
    expected = model.predict(FRESH)
    monkeypatch.setattr(RandomForestRegressor, "predict", None)
    np.testing.assert_array_equal(forests.predict(model, FRESH), expected)


def test_behind_preprocessing():
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    model = make_pipeline(SimpleImputer(), RandomForestRegressor(10, random_state=0))
    model.fit(holes, NUMBERS)
    fresh = np.where(RNG.random(FRESH.shape) < 0.2, np.nan, FRESH)
    np.testing.assert_array_equal(forests.predict(model, fresh), model.predict(fresh))


def test_missing_values_go_scikit_learns_way():
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    reads = RandomForestClassifier(10, random_state=0).fit(holes, CLASSES)
    np.testing.assert_array_equal(
        forests.predict_proba(reads, holes), reads.predict_proba(holes)
    )
    with pytest.raises(ValueError, match="infinity"):
        forests.predict(fitted(RandomForestRegressor), np.full((2, 4), np.inf))


def test_a_subclass_and_other_models_predict_themselves():
    class Doubled(RandomForestRegressor):
        def predict(self, X):
            return 2 * super().predict(X)

    model = Doubled(5, random_state=0).fit(X, NUMBERS)
    np.testing.assert_array_equal(forests.predict(model, FRESH), model.predict(FRESH))
    dummy = DummyClassifier().fit(X, CLASSES)
    np.testing.assert_array_equal(
        forests.predict_proba(dummy, FRESH), dummy.predict_proba(FRESH)
    )
