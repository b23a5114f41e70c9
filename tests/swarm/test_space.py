"""Mixtures of generators that share a start make rows of the table."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_swarms import SMALL, two_groups

from amlb_ext.swarm.initial import make_generators
from amlb_ext.swarm.space import FlatWeights


def test_the_decoder_is_that_of_the_network(space):
    """The numpy decoder says of a latent vector what torch says."""
    from amlb_ext.synthesizers.tuned_copies import FittedRows, decoder_weights
    from amlb_ext.synthesizers.vae import VAE

    X, y = two_groups(120)
    model = VAE(epochs=2, latent=4, decoder=16, max_steps=20, device="cpu")
    model.fit(X, y, cards=(3,), n_classes=2, rng=np.random.default_rng(0))
    network = FittedRows(model, X, y).network
    z = np.random.default_rng(1).standard_normal((7, 4))
    labels = np.array([0, 1, 0, 1, 1, 0, 1])
    with torch.no_grad():
        expected = network.decode(torch.tensor(z).float(), torch.tensor(labels))
    v_hat, log_p = space._decode(decoder_weights(network), z, labels)
    assert np.allclose(v_hat, expected[0].numpy(), atol=1e-4)
    assert np.allclose(log_p, expected[1].numpy(), atol=1e-4)


def test_rows_are_rows_of_the_table(space):
    c = np.array([1.5, -0.5, 0.5, -0.5])
    X, y = space.sample(c, 200, np.random.default_rng(0))
    assert set(X[:, 0]) <= {0.0, 1.0, 2.0}
    assert X[:, 1:].min() >= 0
    assert X[:, 1:].max() <= 1
    assert set(y) <= {0, 1}


def test_generators_differ_and_the_same_stream_gives_the_same_rows(space):
    means = []
    for corner in np.eye(space.n_generators):
        first, _ = space.sample(corner, 300, np.random.default_rng(3))
        again, _ = space.sample(corner, 300, np.random.default_rng(3))
        assert np.array_equal(first, again)
        means.append(first[:, 1:].mean(axis=0))
    assert np.ptp(means, axis=0).max() > 0.1


def test_the_base_has_the_margins_of_the_table(space):
    X, y = two_groups(400)
    made, labels = space.sample_weights(space.base, 2000, np.random.default_rng(0))
    assert abs(made[:, 1].mean() - X[:, 1].mean()) < 0.06
    assert abs(labels.mean() - y.mean()) < 0.06


@pytest.mark.parametrize("n_classes", [0, 3])
def test_regression_and_several_classes(n_classes):
    X, y = two_groups(300, n_classes=n_classes)
    space = make_generators(
        X, y, cards=(3,), n_classes=n_classes, settings=SMALL, seed=1, key=("t",)
    )
    made, targets = space.sample_weights(space.base, 500, np.random.default_rng(0))
    assert made.shape == (500, 3)
    assert targets.min() >= y.min()
    assert targets.max() <= y.max()
    # the made target follows the made columns as the real one does
    correlation = np.corrcoef(made[:, 1], targets)[0, 1]
    assert correlation > 0.3


def test_constant_columns_are_refused():
    from amlb_ext.core.errors import DataError

    X = np.ones((60, 2))
    with pytest.raises(DataError, match="constant"):
        make_generators(
            X, np.arange(60) % 2, cards=(), n_classes=2, settings=SMALL, seed=0, key=()
        )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use")
def test_generators_of_a_gpu_are_those_of_the_processor():
    """Both see the same rows and noise in each step, so they part by rounding alone."""
    X, y = two_groups(300)
    bases = []
    for device in ("auto", "cpu"):
        # rounding grows with the steps, so they are few
        settings = replace(SMALL, base_steps=20, device=device)
        space = make_generators(
            X, y, cards=(3,), n_classes=2, settings=settings, seed=1, key=("t",)
        )
        bases.append(space.base)
    assert np.allclose(*bases, atol=1e-3)


def test_flat_weights_come_back():
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([7.0])}
    flat = FlatWeights(arrays)
    back = flat.split(flat.join(arrays))
    assert all(np.array_equal(back[name], arrays[name]) for name in arrays)
