"""The suite that every registered synthesizer inherits: says whether it keeps the contract."""

import inspect
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.synthesizers import SYNTHESIZERS, describe_synthesizers, make_synthesizer

SMALL = {"latent": 4, "hidden": 4, "decoder": 16}
NAMES = sorted(SYNTHESIZERS)
#: Models of optional packages are asked where the package is installed.
INSTALLED = [
    name
    for name in NAMES
    if not SYNTHESIZERS[name].package or find_spec(SYNTHESIZERS[name].package)
]
#: With three epochs models of optional packages may miss a class, and say so.
EVERY = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=[
                pytest.mark.filterwarnings(
                    "ignore:.* drew no row of class:UserWarning"
                ),
                # the same class as vae, with other settings
                *([pytest.mark.exhaustive] if name == "vae_paper" else []),
            ],
        )
        for name in INSTALLED
    ],
)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(INSTALLED)))
def test_contract_of_an_optional_package(name):
    pytest.skip(f"{SYNTHESIZERS[name].package} is an optional extra")


def make(name, epochs=3, **settings):
    accepted = inspect.signature(SYNTHESIZERS[name].load()).parameters
    wanted = {**SMALL, **settings}
    params = {key: value for key, value in wanted.items() if key in accepted}
    return make_synthesizer(SynthesizerConfig(name=name, epochs=epochs, params=params))


def table(n, kind, seed=0):
    """Two or three categories, an integer, a flag, holes, a constant: whatever tables hold."""
    rng = np.random.default_rng(seed)
    columns = {
        "cat": rng.integers(0, 3, n),
        "text": rng.integers(0, 5000, n),
        "one": np.full(n, 2),
        "x": rng.random(n),
        "count": rng.integers(0, 4, n) / 3,
        "holes": np.where(rng.random(n) < 0.4, np.nan, rng.random(n)),
        "same": np.full(n, 0.5),
        "empty": np.full(n, np.nan),
    }
    cards = {"cat": 3, "text": 5000, "one": 7}
    kept = {
        "mixed": list(columns),
        "categorical": list(cards),
        "numeric": [c for c in columns if c not in cards],
        "constant": ["one", "same", "empty"],
        "text": ["text"],
    }[kind]
    X = np.column_stack([columns[c] for c in kept]).astype(float)
    return X, tuple(cards[c] for c in kept if c in cards)


def target(n, n_classes, seed=1):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, n) if n_classes else rng.random(n)


def fitted(name, n=40, kind="mixed", n_classes=2, seed=3, **settings):
    X, cards = table(n, kind)
    y = target(n, n_classes)
    rng = np.random.default_rng(seed)
    model = make(name, **settings).fit(X, y, cards=cards, n_classes=n_classes, rng=rng)
    return model, X, y, rng


def check(model, X, cards, new, labels, n_classes, n):
    assert new.shape == (n, X.shape[1])
    assert new.dtype == np.float64
    assert labels.shape == (n,)
    assert labels.dtype == (np.int64 if n_classes else np.float64)
    differ = (
        len({row.tobytes() for row in np.nan_to_num(X, nan=-1.0)}) > 1
    )  # else local widens its bounds
    for j in range(X.shape[1]):
        if j < len(cards):
            assert set(new[:, j]) <= set(X[:, j]), "only codes that fitted rows have"
            continue
        here, fit = new[~np.isnan(new[:, j]), j], X[~np.isnan(X[:, j]), j]
        if len(fit) == len(X):
            assert len(here) == n, "NaN only where fitted rows had NaN"
        if len(fit) == 0:
            assert len(here) == 0
            continue
        low, high = model.low_[j - len(cards)], model.high_[j - len(cards)]
        assert here.min(initial=low) >= low
        assert here.max(initial=high) <= high
        if differ:
            assert (low, high) == (fit.min(), fit.max())
        if differ and fit.min() == fit.max():
            assert (here == fit[0]).all(), "constant columns stay constant"


@EVERY
@pytest.mark.parametrize("n_classes", [0, 3])
@pytest.mark.parametrize("n", [1, 11, 150])
def test_rows_keep_the_contract(name, n, n_classes):
    model, X, y, rng = fitted(name, n, n_classes=n_classes)
    _, cards = table(n, "mixed")
    new, labels = model.sample(30, rng)
    check(model, X, cards, new, labels, n_classes, 30)
    assert set(labels) <= set(y)


@EVERY
@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.parametrize("kind", ["categorical", "numeric", "constant", "text"])
def test_tables_of_one_kind(name, kind, n_classes):
    for n in (1, 130):
        model, X, _, rng = fitted(name, n, kind, n_classes)
        check(model, X, table(n, kind)[1], *model.sample(20, rng), n_classes, 20)


@EVERY
@pytest.mark.parametrize("k", [1, 2])
def test_what_is_asked_of_a_fitted_model(name, k):
    """Targets come back as given, also between and beyond the fitted ones; others are refused."""
    y = np.random.default_rng(1).random((40, k)).squeeze()
    model, X, _, _, rng = fitted_for_two(name, y=y)
    wanted = np.array([[-0.5, 0.5], [0.51, 2.0], [0.2, 0.2]])[:, :k].squeeze()
    np.testing.assert_array_equal(model.sample(3, rng, y=wanted)[1], wanted)
    new, labels = model.sample(0, rng)
    assert (new.shape, labels.shape) == ((0, X.shape[1]), (0, *y.shape[1:]))
    for wrong in (np.zeros(2), np.full(y[:3].shape, np.nan)):
        with pytest.raises(DataError, match=r"expected 3 targets|missing or infinite"):
            model.sample(3, rng, y=wrong)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError, match="call fit first"):
        copy.sample(3, rng)


@EVERY
def test_streams_are_those_that_are_handed_in(name):
    """The same stream gives the same bytes, whatever the global ones hold, which are left alone."""
    import torch

    def global_state():
        numpy_state = np.random.get_state()[1].tolist()  # noqa: NPY002
        return numpy_state, torch.get_rng_state().tolist(), torch.get_num_threads()

    draws = []
    for seed, global_seed in ((3, 1), (3, 2), (4, 2)):
        np.random.seed(global_seed)  # noqa: NPY002
        torch.manual_seed(global_seed)
        before = global_state()
        model, *_, rng = fitted(name, seed=seed)
        draws.append(model.sample(25, rng)[0].tobytes())
        assert global_state() == before
    assert draws[0] == draws[1] != draws[2]
    # sampling moves on, and changes nothing in the model
    assert model.sample(25, rng)[0].tobytes() != draws[2]
    first = model.sample(20, np.random.default_rng(8))[0].tobytes()
    thawed = pickle.loads(pickle.dumps(model))
    assert thawed.sample(20, np.random.default_rng(8))[0].tobytes() == first


@EVERY
def test_a_class_without_fitted_rows_is_served(name):
    X, cards = table(20, "mixed")
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(19), 2]  # class 1 has no row, class 2 has one
    model = make(name).fit(X, y, cards=cards, n_classes=4, rng=rng)
    wanted = np.array([1, 2, 3, 0])
    check(model, X, cards, *model.sample(4, rng, y=wanted), 4, 4)


@EVERY
def test_one_constant_target(name):
    X, cards = table(20, "mixed")
    for n_classes in (0, 2):
        rng = np.random.default_rng(0)
        model = make(name).fit(
            X, np.zeros(20), cards=cards, n_classes=n_classes, rng=rng
        )
        check(model, X, cards, *model.sample(9, rng), n_classes, 9)


@EVERY
def test_fit_changes_neither_its_input_nor_its_parameters(name):
    X, cards = table(30, "mixed")
    y = target(30, 2)
    kept = X.copy(), y.copy()
    model = make(name)
    parameters = dict(model.get_params())
    model.fit(X, y, cards=cards, n_classes=2, rng=np.random.default_rng(0))
    model.sample(5, np.random.default_rng(0))
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(y, kept[1])
    assert model.get_params() == parameters


@EVERY
@pytest.mark.parametrize(
    ("X", "y", "cards", "says"),
    [
        (np.zeros((0, 2)), np.zeros(0), (), "at least one row"),
        (np.zeros(3), np.zeros(3), (), "at least one row"),
        (
            np.zeros((2, 1)),
            np.zeros(2),
            (2, 2),
            "cards names 2 categorical columns, but X has 1 columns",
        ),
        (np.array([[2.0]]), np.zeros(1), (2,), "codes 0..card-1"),
        (np.array([[np.nan]]), np.zeros(1), (2,), "codes 0..card-1"),
        (np.array([[0.5]]), np.zeros(1), (2,), "codes 0..card-1"),
        (np.array([[np.inf]]), np.zeros(1), (), "infinite value"),
        (np.zeros((2, 1)), np.zeros(3), (), "expected 2 targets, got"),
        (np.zeros((2, 1)), np.array([0, 2]), (), "whole numbers from 0 to 1"),
        (np.zeros((2, 1)), np.array([0, np.nan]), (), "missing or infinite"),
    ],
)
def test_tables_that_break_the_notation(name, X, y, cards, says):
    with pytest.raises(DataError, match=says):
        make(name).fit(X, y, cards=cards, n_classes=2, rng=np.random.default_rng(0))


@EVERY
def test_settings_reach_the_model(name):
    model = make(name, epochs=7, latent=5)
    known = model.get_params()
    assert known.get("epochs", 7) == 7
    assert known.get("latent", 5) == 5
    assert describe_synthesizers()[name]
    with pytest.raises(ConfigError, match="no parameter 'latnet'"):
        make_synthesizer(SynthesizerConfig(name=name, params={"latnet": 5}))
    if "latent" in known:
        with pytest.raises(ConfigError, match=r"params\.latent = 'abc'"):
            make_synthesizer(SynthesizerConfig(name=name, params={"latent": "abc"}))


def test_unknown_name_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'vae'"):
        make_synthesizer(SynthesizerConfig(name="vea"))


@pytest.mark.parametrize("name", ["vae", "copula", "local"])
def test_planted_clusters_stay_with_their_class(name):
    # class 0 around (.2, .2) with code 0, class 1 around (.8, .8) with code 1; a row belongs to
    # the cluster whose centre is nearer, i.e. x1 + x2 < 1 is cluster 0
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    centre = np.where(y == 0, 0.2, 0.8)[:, None]
    X = np.column_stack([y, centre + 0.05 * rng.standard_normal((300, 2))])
    model = make(name, epochs=40, latent=8, hidden=8, decoder=32)
    model.fit(X, y, cards=(2,), n_classes=2, rng=rng)
    new, labels = model.sample(1000, rng)
    assert np.mean((new[:, 1] + new[:, 2] > 1) == labels) >= 0.95
    assert np.mean(new[:, 0] == labels) >= 0.95


@pytest.mark.parametrize("name", ["vae", "copula", "local"])
def test_planted_correlation_is_kept(name):
    # x2 = x1 + noise of a quarter of its spread: correlation 1 / sqrt(1 + 1/16) = .970;
    # x3 is independent; y = x1
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 3)) @ np.array([[1, 1, 0], [0, 0.25, 0], [0, 0, 1.0]])
    X = (x - x.min(axis=0)) / np.ptp(x, axis=0)
    y = X[:, 0]
    model = make(name, epochs=40, latent=8, hidden=8, decoder=32)
    model.fit(X, y, cards=(), n_classes=0, rng=rng)
    new, labels = model.sample(2000, rng)
    found = np.corrcoef(np.column_stack([new, labels]).T)
    truth = np.corrcoef(np.column_stack([X, y]).T)
    np.testing.assert_allclose(found, truth, atol=0.12)


def fitted_for_two(name, n=40, kind="mixed", seed=3, y=None):
    X, cards = table(n, kind)
    y = np.column_stack([target(n, 0), target(n, 0, seed=2)]) if y is None else y
    rng = np.random.default_rng(seed)
    return make(name).fit(X, y, cards=cards, n_classes=0, rng=rng), X, cards, y, rng


def check_two(model, X, cards, new, labels, n):
    assert labels.shape == (n, 2)
    check(model, X, cards, new, labels[:, 0], 0, n)


@EVERY
@pytest.mark.parametrize("n", [1, 2, 150])
def test_two_targets_at_once_keep_the_contract(name, n):
    model, X, cards, y, rng = fitted_for_two(name, n)
    new, labels = model.sample(30, rng)
    check_two(model, X, cards, new, labels, 30)
    assert {tuple(row) for row in labels} <= {tuple(row) for row in y}, (
        "both of one row"
    )
    # pairs between and beyond the fitted ones are served too
    wanted = np.array([[-0.5, 0.5], [0.51, 2.0]])
    new, labels = model.sample(2, rng, y=wanted)
    check_two(model, X, cards, new, labels, 2)
    np.testing.assert_array_equal(labels, wanted)
    assert model.sample(0, rng)[1].shape == (0, 2)


@EVERY
@pytest.mark.parametrize("kind", ["categorical", "numeric", "constant", "text"])
def test_two_targets_with_tables_of_one_kind(name, kind):
    model, X, cards, _, rng = fitted_for_two(name, 130, kind)
    check_two(model, X, cards, *model.sample(20, rng), 20)


@pytest.mark.parametrize("name", ["vae", "copula", "local"])
def test_each_target_moves_its_own_column(name):
    # a follows the first target, b the second, and the two targets are independent: rows drawn
    # for (.2, .8) must have a near .2 and b near .8
    rng = np.random.default_rng(0)
    y = rng.random((500, 2))
    X = np.clip(y + 0.03 * rng.standard_normal(y.shape), 0, 1)
    model = make(name, epochs=60, latent=8, decoder=32)
    model.fit(X, y, cards=(), n_classes=0, rng=rng)
    for wanted in ([0.2, 0.8], [0.7, 0.3]):
        new, _ = model.sample(300, rng, y=np.tile(wanted, (300, 1)))
        np.testing.assert_allclose(np.median(new, axis=0), wanted, atol=0.1)
