"""The bundled tasks are what they say."""

import numpy as np
import pytest

from amlb_ext.core.errors import SourceError
from amlb_ext.sources import bundles, open_specs
from amlb_ext.sources.openml import tabarena_task_ids

EXPECTED = {
    "diabetes": ("regression", 442, 10),
    "breast_cancer": ("binary", 569, 30),
    "wine": ("multiclass", 178, 13),
    "digits": ("multiclass", 1797, 64),
    "diabetes_gaps": ("regression", 442, 10),
    "toy": ("regression", 1000, 2),
    "titanic": ("binary", 1309, 8),
    "penguins": ("multiclass", 344, 6),
    "cpu": ("regression", 209, 7),
}


def one(name):
    return next(open_specs([f"bundled/{name}"])).load()


@pytest.mark.parametrize("name", EXPECTED)
def test_shape_kind_and_credit(name):
    if not bundles.BUNDLES[name].is_installed:
        pytest.skip("this scikit-learn was installed without its test data")
    task = one(name)
    assert (task.kind.value, len(task), len(task.columns)) == EXPECTED[name]
    assert task.folds == ()
    assert task.origin.licence
    assert task.origin.citation


def test_without_the_wheels_files_the_rest_is_offered(monkeypatch):
    monkeypatch.setattr(bundles, "_wheel_file", lambda file: None)
    names = [ref.name for ref in open_specs(["bundled"])]
    assert names == list(EXPECTED)[:6]
    left = one("diabetes_gaps").columns
    assert any(c.has_missing for c in left)
    assert any(c.type == "categorical" for c in left)
    with pytest.raises(SourceError, match="lacks the data of 'titanic'") as caught:
        one("titanic")
    assert "bundled/diabetes_gaps" in caught.value.remedy


def test_toy_follows_its_formula():
    """The noise that remains is .1, inside and outside of the regions."""
    task = one("toy")
    x1, x2 = (task.features[name].to_numpy() for name in ("x1", "x2"))
    y = task.target.to_numpy()
    inside = (abs(x1 - 0.2) <= 0.1) & (abs(x2 - 0.7) <= 0.1)
    inside |= (abs(x1 - 0.7) <= 0.1) & (abs(x2 - 0.4) <= 0.1)
    # two squares of .2 x .2 cover .08; binomial sd of 1000 rows is .0086
    assert abs(inside.mean() - 0.08) < 0.03
    rest = y - np.where(inside, -2 * x1 + x1**2 - 8 * x2**4, 2 * x1 + 3 * x2 + 7)
    assert abs(rest.std() - 0.1) < 0.01
    assert abs(rest[inside].std() - 0.1) < 0.03


@pytest.mark.parametrize(
    ("spec", "nearest"),
    [
        ("bundled/digit", "digits"),
        ("tabarena/annael", "anneal"),
        ("weird/digit_few", "digits_few"),
    ],
)
def test_an_unknown_name_of_a_collection_gets_the_nearest(spec, nearest):
    with pytest.raises(SourceError, match=f"did you mean '{nearest}'"):
        list(open_specs([spec]))


def test_all_51_tasks_of_tabarena_have_an_id_of_their_own():
    assert len({ref.spec for ref in open_specs(["tabarena"])}) == 51
    assert len(set(tabarena_task_ids().values())) == 51
