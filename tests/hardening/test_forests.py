"""The short way through a forest gives scikit-learn's own bits, or takes scikit-learn's way."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
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


def test_what_cannot_be_asked_is_refused_as_before():
    model = fitted(RandomForestRegressor)
    with pytest.raises(ValueError, match="features"):
        forests.predict(model, FRESH[:, :3])
    with pytest.raises(ValueError, match="0 sample"):
        forests.predict(model, FRESH[:0])


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


@pytest.mark.parametrize("kind", [ExtraTreesClassifier, RandomForestClassifier])
@pytest.mark.parametrize("rows", [1, 57, 3000])
def test_many_classes_have_the_same_bits(kind, rows):
    y = np.r_[np.arange(60), RNG.integers(0, 60, 540)]
    Z = RNG.normal(size=(60, 4))[y] + 0.5 * RNG.normal(size=(600, 4))
    model = kind(20, min_samples_leaf=3, random_state=0).fit(Z, y)
    fresh = RNG.normal(size=(rows, 4))
    expected = model.predict_proba(fresh)
    np.testing.assert_array_equal(forests.predict_proba(model, fresh), expected)
