"""The models of SDV, beyond the contract; what needs no SDV comes first."""

import numpy as np
import pandas as pd
import pytest

from amlb_ext import synthesizers
from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers import SYNTHESIZERS, make_synthesizer
from amlb_ext.synthesizers.sdv import CLASS_DRAWS, CTGAN, TVAE, CopulaGAN, SDVCopula

NAMES = [name for name, entry in SYNTHESIZERS.items() if entry.package == "sdv"]
KINDS = [CTGAN, TVAE, CopulaGAN, SDVCopula]


def rng(seed=0):
    return np.random.default_rng(seed)


def table(n=60):
    """Class 0 around .2 with code 0, class 1 around .8 with code 1."""
    y = rng().integers(0, 2, n)
    x = np.where(y == 0, 0.2, 0.8) + 0.05 * rng(1).standard_normal(n)
    return np.column_stack([y, x, rng(2).random(n)]), y


def without_sdv(monkeypatch):
    monkeypatch.setattr(synthesizers, "find_spec", lambda name: None)


# ---------------------------------------------------------------- without SDV


@pytest.mark.parametrize("name", NAMES)
def test_asked_for_without_the_package(name, monkeypatch):
    without_sdv(monkeypatch)
    says = r"sdv is not installed \(pip install 'hardsynth\[sdv\]'.*Business Source License 1\.1"
    with pytest.raises(ConfigError, match=says):
        make_synthesizer(SynthesizerConfig(name=name))
    X, y = table()
    with pytest.raises(ConfigError, match=says):
        SYNTHESIZERS[name].load()().fit(X, y, cards=(2,), n_classes=2, rng=rng())


@pytest.mark.parametrize("kind", KINDS[:3])
@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch": -1}, {"device": "cuda"}])
def test_refused_parameters(kind, wrong):
    X, y = table()
    with pytest.raises(ConfigError, match="must be"):
        kind(**wrong).fit(X, y, cards=(2,), n_classes=2, rng=rng())


class Planted:
    """Stands in for SDV's model: rows whose number says which target they were drawn with."""

    def __init__(self, draw):
        self.draw, self.draws = draw, 0

    def reset_sampling(self):
        pass

    def _set_random_state(self, seed):
        pass

    def sample(self, n):
        self.draws += 1
        return {"rows": pd.DataFrame(self.draw(n))}


def planted(draw, y, n_classes=0):
    """A fitted CTGAN with one number as its table, and a planted model of it."""
    model = CTGAN()
    model.fit(np.full((len(y), 1), 0.5), y, cards=(), n_classes=n_classes, rng=rng())
    model.low_, model.high_ = np.array([0.0]), np.array([1.0])
    model.prep_.fit(np.linspace(0, 1, len(y))[:, None], 0, rng())
    model.columns_, model.model_ = ["v0", "t0"], Planted(draw)
    return model


@pytest.fixture
def sdv_or_not(monkeypatch):
    monkeypatch.setattr(synthesizers, "find_spec", lambda name: True)


@pytest.mark.usefixtures("sdv_or_not")
def test_a_number_gets_the_nearest_rows_each_once():
    # the pool's row i has the number i / (n - 1) and the same target
    def line(n):
        return {"v0": np.linspace(0, 1, n), "t0": np.linspace(0, 1, n)}

    model = planted(line, np.linspace(0, 1, 10))
    asked = np.array([0.5, 0.0, 0.5, 1.0, 0.5, -3.0, 0.25])
    new, _ = model.sample(7, rng(), y=asked)
    # 200 rows, 1/199 apart: three for .5 lie within 1.5 steps, one for each other within half
    np.testing.assert_allclose(new[:, 0], np.clip(asked, 0, 1), atol=1.5 / 199 + 1e-9)
    assert len(set(new[[0, 2, 4], 0])) == 3
    assert model.model_.draws == 1


@pytest.mark.usefixtures("sdv_or_not")
def test_a_class_gets_its_rows_in_a_bounded_number_of_draws():
    # one row in a hundred is of class 1 and has the number 1
    def rare(n):
        flag = np.arange(n) % 100 == 0
        return {"v0": flag.astype(float), "t0": np.where(flag, "c1", "c0")}

    model = planted(rare, np.arange(10) % 3, n_classes=3)
    y = np.r_[np.ones(5), np.zeros(5)].astype(int)
    new, _ = model.sample(10, rng(), y=y)
    assert new[:, 0].tolist() == y.tolist()
    assert model.model_.draws == 3  # two rare rows in each draw of 200
    with pytest.warns(
        UserWarning, match="CTGAN drew no row of class 2 in 10 draws of 200 rows"
    ):
        model.sample(2, rng(), y=np.array([2, 0]))
    assert model.model_.draws == 3 + CLASS_DRAWS


# ---------------------------------------------------------------- with SDV


@pytest.fixture
def sdv():
    return pytest.importorskip("sdv", reason="sdv is an optional extra")


@pytest.mark.usefixtures("sdv")
@pytest.mark.parametrize(
    "model", [SDVCopula(), TVAE(epochs=50, batch=50)], ids=["copula", "tvae"]
)
def test_rows_of_a_class_hang_with_it_as_in_the_models_own_draws(model):
    X, y = table(200)
    model.fit(X, y, cards=(2,), n_classes=2, rng=rng())
    drawn, t = model._draw_pool(1000, rng())
    own = np.corrcoef(drawn[:, 1], t[:, 0])[0, 1]
    new, labels = model.sample(1000, rng(), y=np.arange(1000) % 2)
    assert own > 0.3
    # the error of a correlation of 1,000 rows is .03, and twice that for the other share of classes
    assert np.corrcoef(new[:, 1], labels)[0, 1] == pytest.approx(own, abs=0.15)
