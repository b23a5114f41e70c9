"""A swarm: rows of mixtures, what is found where something is planted, what is said where not."""

import pickle

import numpy as np
import pytest
import torch
from exhaustive import first_of

from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers.base import Judges
from amlb_ext.synthesizers.prep import TablePrep
from amlb_ext.synthesizers.swarm.objectives import SupportGuard
from amlb_ext.synthesizers.swarm.space import (
    FittedRows,
    decoder_weights,
    make_generators,
)
from amlb_ext.synthesizers.swarm.synthesizer import Swarm
from amlb_ext.synthesizers.vae import VAE

#: Trained so little that rows have the form of the table and nothing else.
SMALL = {"epochs": 40, "latent": 4, "decoder": 16, "device": "cpu"}


def two_groups(n, n_classes=2, seed=0):
    """Rows with one category and two numbers, whose target follows them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n).astype(float)
    numbers = rng.random((n, 2))
    X = np.column_stack([codes, numbers])
    score = numbers[:, 0] + 0.3 * (codes == 1) + 0.1 * rng.standard_normal(n)
    if not n_classes:
        return X, (score - score.min()) / np.ptp(score)
    edges = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, score)


def flipping_rows(n, n_classes, seed=0):
    """Rows whose target follows the second column upwards, in group 1 downwards; and the truth.

    Of class 1 the truth is the chance, of a regression the expectation.
    """
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 3, n), rng.random((n, 2))])
    truth = truth_of(X)
    if not n_classes:
        return X, np.clip(truth + 0.05 * rng.standard_normal(n), 0, 1)
    return X, (rng.random(n) < truth).astype(int)


def truth_of(X):
    return np.where(X[:, 0] == 1, 0.95 - 0.9 * X[:, 1], 0.05 + 0.9 * X[:, 1])


def judges_of(X, y, n_classes):
    """A model that overlooks the group, as do quick takers that hardly see it, and the truth."""

    def ask(rows):
        truth = truth_of(rows)
        if not n_classes:
            return rows[:, 1], truth
        return (rows[:, 1] > 0.5).astype(int), np.column_stack([1 - truth, truth])

    f, t = ask(X)
    return Judges(X=X, y=y, f=f, t=t, ask=ask, user_rows=X[X[:, 0] == 1])


def fit_swarm(X, y, n_classes, judges=None, **settings):
    settings = {"generators": 4, "iterations": 3, **SMALL, **settings}
    return Swarm(**settings).fit(
        X,
        y,
        cards=(3,),
        n_classes=n_classes,
        rng=np.random.default_rng(3),
        judges=judges,
    )


@pytest.fixture
def _only_lines(monkeypatch):
    """Quick takers that see numbers alone: all overlook the group that F overlooks."""
    monkeypatch.setattr(
        "amlb_ext.synthesizers.swarm.synthesizer.QuickTakers", OverlookingTakers
    )


class OverlookingTakers:
    def __init__(self, inputs, y, n_classes, seed):
        self.n_classes = n_classes

    def predict(self, inputs):
        score = inputs[:, -2]
        if self.n_classes:
            return np.array([score > 0.1, score > -0.1]).astype(int)
        return np.array([0.5 + 0.25 * score, 0.5 + 0.2 * score])


# --- the space of mixtures ---


@pytest.fixture(scope="module")
def space():
    X, y = two_groups(400)
    model = VAE(max_steps=300, **SMALL)
    model.fit(X, y, cards=(3,), n_classes=2, rng=np.random.default_rng(0))
    return make_generators(model, X, y, n_generators=4, steps=20, seed=0)


def test_the_decoder_is_that_of_the_network(space):
    """The numpy decoder says of a latent vector what torch says."""
    X, y = two_groups(400)
    network = FittedRows(space.model, X, y).network
    z = np.random.default_rng(1).standard_normal((7, 4))
    labels = np.array([0, 1, 0, 1, 1, 0, 1])
    with torch.no_grad():
        expected = network.decode(torch.tensor(z).float(), torch.tensor(labels))
    v_hat, log_p = space.decode(decoder_weights(network), z, labels)
    assert np.allclose(v_hat, expected[0].numpy(), atol=1e-4)
    assert np.allclose(log_p, expected[1].numpy(), atol=1e-4)


@pytest.mark.parametrize("n_classes", [0, 3])
def test_the_target_follows_the_columns(n_classes):
    X, y = two_groups(300, n_classes)
    model = VAE(**{**SMALL, "epochs": 150})
    model.fit(X, y, cards=(3,), n_classes=n_classes, rng=np.random.default_rng(0))
    space = make_generators(model, X, y, n_generators=3, steps=5, seed=1)
    made, targets = space.sample(space.base, 500, np.random.default_rng(0))
    assert set(targets) <= set(y)
    assert np.corrcoef(made[:, 1], targets)[0, 1] > 0.3


def test_support_is_where_real_rows_are():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 1000)
    # category 0 has small numbers, category 1 large ones
    real = np.column_stack([codes, rng.random(1000) * 0.4 + 0.6 * codes])
    guard = SupportGuard(TablePrep().fit(real, 1, rng), real)
    supported, nearest = guard.nearest(real)
    assert supported.all()
    assert np.array_equal(real[nearest], real)
    supported, _ = guard.nearest(np.array([[0.0, 0.2], [0.0, 0.9], [1.0, 0.1]]))
    assert supported.tolist() == [True, False, False]


# --- the search ---


@pytest.mark.usefixtures("_only_lines")
@pytest.mark.parametrize("n_classes", first_of([2, 0], 1))
def test_planted_truth_is_found(n_classes):
    """Rows of the group that all models overlook: twice as many as the base makes."""
    X, y = flipping_rows(1200, n_classes)
    judges = judges_of(X, y, n_classes)
    settings = {"epochs": 150, "decoder": 32, "iterations": 10, "search": "cma"}
    model = fit_swarm(X, y, n_classes, judges, **settings)
    assert model.theta_ is not None
    made, targets = model.sample(1000, np.random.default_rng(0))
    assert (made[:, 0] == 1).mean() > 1.5 / 3
    assert set(targets) <= set(y)
    [note] = model.notes_
    assert note.kind == "searched"
    assert note.words == {"search": "cma", "objective": "difficult"}
    assert note.counts["fresh"] > note.counts["base"]
    # a figure of a regression is no rounding
    assert note.counts["seen"] > 0.02


@pytest.mark.parametrize("n_classes", [0, 2])
def test_where_no_model_can_be_beaten_nothing_is_searched(n_classes):
    X, _ = flipping_rows(600, n_classes)
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 2, len(X)) if n_classes else rng.random(len(X))
    model = fit_swarm(X, noise, n_classes, judges_of(X, noise, n_classes))
    assert model.theta_ is None
    [note] = model.notes_
    assert note.kind == "nothing to beat"
    assert note.counts["rows"] == 300


@pytest.mark.parametrize(
    ("n", "wanted"), [(20, "cannot be clustered"), (60, "cannot be tested")]
)
def test_few_rows_are_no_ground_for_a_search(n, wanted):
    X, y = flipping_rows(n, 2)
    model = fit_swarm(X, y, 2, judges_of(X, y, 2))
    assert wanted in model.notes_[0].text


@pytest.mark.parametrize("search", first_of(["pso", "cma", "soups", "pso_code"], 2))
def test_literal_searches_keep_the_contract(search):
    X, y = flipping_rows(400, 2)
    judges = judges_of(X, y, 2)
    settings = {"search": search, "labels": "literal", "iterations": 1, "epochs": 5}
    model = fit_swarm(X, y, 2, judges, **settings)
    assert model.theta_ is not None
    again = fit_swarm(X, y, 2, judges, **settings)
    rows, labels = model.sample(30, np.random.default_rng(0))
    assert np.array_equal(rows, again.sample(30, np.random.default_rng(0))[0])
    assert set(rows[:, 0]) <= {0.0, 1.0, 2.0}
    assert set(labels) <= {0, 1}
    # a fitted swarm travels, without the models that judged it
    thawed = pickle.loads(pickle.dumps(model))
    assert thawed.judges_ is None
    assert np.array_equal(rows, thawed.sample(30, np.random.default_rng(0))[0])


@pytest.mark.parametrize("labels", first_of(["honest", "literal"], 1))
@pytest.mark.usefixtures("_only_lines")
def test_every_objective_and_a_mixture_can_be_searched(labels):
    X, y = flipping_rows(400, 2)
    for objective in (
        ("separate",),
        ("novel",),
        ("consistent",),
        ("personalised",),
        ("difficult", "novel"),
    ):
        settings = {"objective": objective, "labels": labels, "iterations": 1}
        model = fit_swarm(X, y, 2, judges_of(X, y, 2), epochs=5, **settings)
        assert model.notes_[0].words["objective"] == ", ".join(objective)


def test_without_a_search_it_is_the_vae():
    X, y = two_groups(200)
    rows = []
    for model in (Swarm(search="none", **SMALL), VAE(**SMALL)):
        rng = np.random.default_rng(0)
        model.fit(X, y, cards=(3,), n_classes=2, rng=rng)
        rows.append(model.sample(50, rng)[0])
    assert np.array_equal(*rows)


def test_an_unknown_objective_names_the_nearest():
    X, y = two_groups(50)
    with pytest.raises(ConfigError, match=r"'dificult'.*did you mean 'difficult'"):
        fit_swarm(X, y, 2, objective=("dificult",))
