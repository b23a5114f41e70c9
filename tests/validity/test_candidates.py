import numpy as np
import pytest

from amlb_ext.core.task import Kind
from amlb_ext.models.registry import ModelSpec
from amlb_ext.validity.candidates import (
    JUDGES,
    QUICK_ROWS,
    WHOLE,
    candidate_zoo,
    candidates_beside,
    fit_zoo,
    names_like,
)


def table(kind, n=120):
    rng = np.random.default_rng(0)
    Z = np.column_stack(
        [rng.integers(0, 4, n), rng.random((n, 2))]
    )  # one categorical, two numbers
    Z[::11, 1] = np.nan
    if kind is Kind.REGRESSION:
        return Z, Z[:, 2] + 0.1 * rng.normal(size=n), 0
    classes = 2 if kind is Kind.BINARY else 3
    return Z, np.clip((Z[:, 2] * classes).astype(int), 0, classes - 1), classes


@pytest.mark.parametrize("size", ["quick", "full"])
@pytest.mark.parametrize("kind", list(Kind))
def test_every_candidate_fits_and_predicts(kind, size):
    Z, y, classes = table(kind)
    specs = candidate_zoo(kind, size)
    small = {
        n: ModelSpec(
            s.path,
            {**s.params, **({"n_estimators": 5} if "n_estimators" in s.params else {})},
            s.encoding,
        )
        for n, s in specs.items()
    }
    fitted, failed = fit_zoo(small, kind, classes, 1, Z, y, seed=1)
    assert (len(fitted), failed) == (12, {})
    for model in fitted.values():
        f = model.predict(Z)
        assert f.shape == ((len(y), classes) if classes else (len(y),))
        assert np.isfinite(f).all()
    assert set(JUDGES) <= set(specs)


def test_some_candidates_see_every_row_whatever_the_limit():
    Z, y, classes = table(Kind.BINARY)
    specs = {name: candidate_zoo(Kind.BINARY)[name] for name in ("forest", "tree_8")}
    shape = (Kind.BINARY, classes, 1, Z, y)
    limited, _ = fit_zoo(specs, *shape, seed=1, most=50, whole=("tree_8",))
    everything, _ = fit_zoo(specs, *shape, seed=1, most=None)
    alike = {
        name: np.array_equal(limited[name].predict(Z), everything[name].predict(Z))
        for name in specs
    }
    assert alike == {"forest": False, "tree_8": True}


@pytest.mark.parametrize("kind", list(Kind))
def test_boosting_has_the_rounds_of_f(kind):
    family = "Regressor" if kind is Kind.REGRESSION else "Classifier"
    rounds = {}
    for name, params in (
        ("RandomForest", {"n_estimators": 500}),
        ("HistGradientBoosting", {"max_iter": 250}),
        ("GradientBoosting", {"n_estimators": 150}),
        ("HistGradientBoosting", {"max_iter": 20}),
        ("GradientBoosting", {"n_estimators": 9000}),
    ):
        specs = candidates_beside(
            ModelSpec(f"sklearn.ensemble.{name}{family}", params), kind
        )
        assert set(specs) == set(candidate_zoo(kind))
        found = {
            specs[boosting].params["max_iter"]
            for boosting in ("boosting", "boosting_slow")
        }
        rounds[(name, *params.values())] = found
    assert list(rounds.values()) == [{100}, {250}, {150}, {100}, {1000}]
    assert set(WHOLE) & set(candidate_zoo(kind)) >= {
        "linear",
        "boosting",
        "boosting_slow",
    }


@pytest.mark.parametrize("kind", list(Kind))
def test_an_f_that_saw_more_rows_than_its_family_gets_a_match(kind):
    family = "Regressor" if kind is Kind.REGRESSION else "Classifier"

    def joining(name, **params):
        spec = ModelSpec(f"sklearn.{name}{family}", params)
        beside = candidates_beside(spec, kind, train_rows=QUICK_ROWS + 1)
        [new] = set(beside) - set(candidate_zoo(kind))
        assert names_like(spec) == (new,)
        assert new in WHOLE
        assert candidates_beside(spec, kind, train_rows=QUICK_ROWS).get(new) is None
        assert candidates_beside(spec, kind, "full", train_rows=9999).get(new) is None
        return beside[new].params

    assert joining("ensemble.RandomForest", n_estimators=70)["n_estimators"] == 70
    assert joining("ensemble.ExtraTrees")["n_estimators"] == 100
    assert joining("neighbors.KNeighbors", n_neighbors=3)["n_neighbors"] == 25
    assert joining("neural_network.MLP", max_iter=9000)["max_iter"] == 1000
    for name in ("ensemble.HistGradientBoosting", "tree.DecisionTree"):
        spec = ModelSpec(f"sklearn.{name}{family}")
        assert set(names_like(spec)) <= set(WHOLE) & set(candidate_zoo(kind))
        assert names_like(spec)
    assert names_like(None) == names_like(ModelSpec("sklearn.svm.SVC")) == ()


def test_too_many_neighbours_leave_the_zoo_with_a_reason():
    Z, y, classes = table(Kind.BINARY, 20)
    _, failed = fit_zoo(
        candidate_zoo(Kind.BINARY), Kind.BINARY, classes, 1, Z, y, seed=1
    )
    assert failed == {"neighbours_25": "25 neighbours, 20 training rows"}


def test_many_classes_have_fewer_rounds_unless_f_has_more():
    few = candidates_beside(None, Kind.MULTICLASS, n_classes=30)
    assert few == candidates_beside(None, Kind.MULTICLASS)
    many = candidates_beside(None, Kind.MULTICLASS, n_classes=120)
    assert many["boosting"].params["max_iter"] == 25
    assert many["boosting_slow"].params["max_iter"] == 25
    assert many["forest"] == few["forest"]
    F = ModelSpec("sklearn.ensemble.HistGradientBoostingClassifier", {"max_iter": 80})
    beside = candidates_beside(F, Kind.MULTICLASS, n_classes=199)
    assert beside["boosting"].params["max_iter"] == 80


def test_of_very_many_classes_boosting_is_no_candidate():
    zoo = candidate_zoo(Kind.MULTICLASS, n_classes=199)
    assert set(candidate_zoo(Kind.MULTICLASS)) - set(zoo) == {
        "boosting",
        "boosting_slow",
    }
    assert candidates_beside(None, Kind.MULTICLASS, n_classes=199) == zoo
