"""What holds for one synthesizer, beyond the contract."""

import numpy as np
import pytest
import torch

from amlb_ext.core.errors import ConfigError
from amlb_ext.synthesizers.copula import GaussianCopula
from amlb_ext.synthesizers.latent import LatentMixture
from amlb_ext.synthesizers.local import LocalResampler
from amlb_ext.synthesizers.network import Network
from amlb_ext.synthesizers.vae import VAE
from amlb_ext.synthesizers.vae_paper import PaperVAE

TINY = {"latent": 4, "decoder": 16}


def rng(seed=0):
    return np.random.default_rng(seed)


def nearest(A, B, skip=0):
    D = np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))
    return np.sort(D, axis=1)[:, skip]


# ---------------------------------------------------------------- local


def test_local_jitters_a_single_row_but_not_its_bounds():
    X = np.array([[1.0, 0.3, 0.0, 1.0]])
    model = LocalResampler().fit(X, [0.5], cards=(2,), n_classes=0, rng=rng())
    new, _ = model.sample(500, rng())
    assert new[:, 1].std() == pytest.approx(0.025, rel=0.15)
    assert np.abs(new[:, 1] - 0.3).max() <= 0.075 + 1e-12  # three times the jitter
    np.testing.assert_array_equal(
        new[:, [0, 2, 3]], np.repeat(X[:, [0, 2, 3]], 500, axis=0)
    )


def test_local_keeps_atoms_and_makes_new_numbers():
    zeros = np.r_[np.zeros(30), rng().random(20)]
    X = np.column_stack([zeros, rng(1).random(50)])
    model = LocalResampler().fit(X, np.zeros(50), cards=(), n_classes=2, rng=rng())
    new, _ = model.sample(400, rng())
    assert 0.4 < np.mean(new[:, 0] == 0) < 0.75
    assert np.isin(new[:, 1], X[:, 1]).mean() < 0.05  # clipped ones only


def test_local_takes_the_parent_nearest_in_the_target():
    y = np.linspace(0, 1, 101)
    model = LocalResampler(jitter=0, neighbours=1).fit(
        y[:, None], y, cards=(), n_classes=0, rng=rng()
    )
    wanted = np.array([-1.0, 0.314, 0.5, 7.0])
    new, _ = model.sample(4, rng(), y=wanted)
    # the mate is the next row, .01 away, and w is at most 1/2
    np.testing.assert_allclose(new[:, 0], [0, 0.31, 0.5, 1.0], atol=0.005 + 1e-9)


@pytest.mark.parametrize("wrong", [{"jitter": -1}, {"neighbours": 0}])
def test_local_refuses(wrong):
    with pytest.raises(ConfigError, match="must be at least"):
        LocalResampler(**wrong).fit(
            np.zeros((2, 1)), np.zeros(2), cards=(), n_classes=0, rng=rng()
        )


# ---------------------------------------------------------------- copula


def test_copula_follows_a_category_whatever_its_coding():
    # code c has mean level[c]; the coding is not monotone, the ordering has to find it
    level = np.array([0.5, 0.9, 0.1])
    code = rng().integers(0, 3, 900)
    X = np.column_stack([code, level[code] + 0.02 * rng(1).standard_normal(900)])
    model = GaussianCopula().fit(X, np.zeros(900), cards=(3,), n_classes=2, rng=rng())
    new, _ = model.sample(3000, rng())
    # thresholds blur what a category says of a number: .1 of slack
    for c in range(3):
        assert new[new[:, 0] == c, 1].mean() == pytest.approx(level[c], abs=0.1)


# ---------------------------------------------------------------- latent mixture


def test_mixture_conditions_on_a_regression_target():
    # z1 = y + .1 eps: given y, mean y and standard deviation .1
    y = rng().standard_normal(2000)
    mu = np.column_stack(
        [y + 0.1 * rng(1).standard_normal(2000), rng(2).standard_normal(2000)]
    )
    mixture = LatentMixture().fit(mu, np.zeros(2), y, 0, rng())
    for at in (-1.0, 0.5):
        z = mixture.sample(np.full(4000, at), rng())
        assert z[:, 0].mean() == pytest.approx(at, abs=0.05)
        assert z[:, 0].std() == pytest.approx(0.1, abs=0.03)
        assert z[:, 1].std() == pytest.approx(1, abs=0.15)


def test_mixture_conditions_on_two_regression_targets():
    # z1 = y1 - y2 + .1 eps, z2 independent of both; 600 rows make two components
    y = rng().standard_normal((600, 2))
    z1 = y[:, 0] - y[:, 1] + 0.1 * rng(1).standard_normal(600)
    mu = np.column_stack([z1, rng(2).standard_normal(600)])
    mixture = LatentMixture().fit(mu, np.zeros(2), y, 0, rng())
    assert len(mixture.mixtures_[0].weights) == 2
    for at in ([-1.0, 0.5], [0.3, 0.3]):
        z = mixture.sample(np.tile(at, (4000, 1)), rng())
        assert z[:, 0].mean() == pytest.approx(at[0] - at[1], abs=0.05)
        assert z[:, 0].std() == pytest.approx(0.1, abs=0.03)
        assert z[:, 1].std() == pytest.approx(1, abs=0.15)


def test_the_mixture_of_all_classes_is_fitted_for_a_class_of_one_row_alone():
    y = np.repeat([0, 1], 100)
    mu = rng(1).standard_normal((200, 2)) + 4 * y[:, None]
    known = LatentMixture().fit(mu, np.zeros(2), y, 2, rng())
    assert sorted(known.mixtures_) == [0, 1]
    rare = LatentMixture().fit(mu, np.zeros(2), y, 3, rng())
    assert sorted(rare.mixtures_) == [-1, 0, 1]
    # what is drawn of the known classes does not depend on it
    assert known.sample(y, rng()).tolist() == rare.sample(y, rng()).tolist()
    assert rare.sample(np.array([2]), rng()).shape == (1, 2)


def test_a_vector_of_one_target_is_that_target():
    y = rng().random(600)
    mu = np.column_stack(
        [y + 0.1 * rng(1).standard_normal(600), rng(2).standard_normal(600)]
    )
    at = np.linspace(-1, 1, 50)
    one, same = (
        LatentMixture().fit(mu, np.ones(2), t, 0, rng()).sample(a, rng())
        for t, a in ((y, at), (y[:, None], at[:, None]))
    )
    np.testing.assert_allclose(one, same, atol=1e-9)
    one, same = (
        GaussianCopula()
        .fit(mu, t, cards=(), n_classes=0, rng=rng())
        .sample(50, rng(), a)[0]
        for t, a in ((y, at), (y[:, None], at[:, None]))
    )
    np.testing.assert_allclose(one, same, atol=1e-9)


# ---------------------------------------------------------------- vae


def test_network_is_the_paper_s_at_table_2():
    # 16 columns, one of 3 categories: ℓ = 15 + 4 = 19, flattened 16 · 19 = 304
    network = Network((3,), 15, 0, latent=256, hidden=16, decoder=512)
    assert (network.length, network.channels) == (19, 16)
    assert network.mu.weight.shape == (256, 304)
    assert isinstance(network.narrow, torch.nn.Identity)
    k, v, y = torch.zeros(5, 1, dtype=torch.long), torch.rand(5, 15), torch.rand(5)
    mu, log_s2 = network.encode(k, v, y)
    v_hat, log_p = network.decode(mu, y)
    assert v_hat.shape == (5, 15)
    assert mu.shape == log_s2.shape == (5, 256)
    torch.testing.assert_close(log_p.exp().sum(dim=1), torch.ones(5))


def test_a_wide_table_is_learned():
    X = np.hstack([rng().integers(0, 3, (30, 150)), rng(1).random((30, 350))])
    model = VAE(epochs=2).fit(
        X, rng(2).random(30), cards=(3,) * 150, n_classes=0, rng=rng()
    )
    assert model.sample(10, rng())[0].shape == (10, 500)


def test_steps_are_capped():
    X, y = rng().random((64, 2)), rng(1).random(64)
    for settings, steps in [
        ({"epochs": 3}, 12),  # batches of 16: 4 steps an epoch
        ({"epochs": 3, "batch": 64}, 3),
        ({"epochs": 3, "max_steps": 5}, 5),
        ({"epochs": 3, "max_steps": 0}, 12),
    ]:
        model = VAE(**TINY, **settings).fit(X, y, cards=(), n_classes=0, rng=rng())
        assert model.n_steps_ == steps


def test_vae_margins_are_calibrated():
    X = np.column_stack(
        [rng().choice(3, 400, p=[0.8, 0.15, 0.05]), rng(1).random(400) ** 3]
    )
    model = VAE(**TINY, epochs=5).fit(
        X, rng(2).random(400), cards=(3,), n_classes=0, rng=rng()
    )
    new, _ = model.sample(8000, rng())
    share = np.bincount(X[:, 0].astype(int)) / 400
    np.testing.assert_allclose(
        np.bincount(new[:, 0].astype(int)) / 8000, share, atol=0.03
    )
    quantiles = np.linspace(0.02, 0.98, 25)
    np.testing.assert_allclose(
        np.quantile(new[:, 1], quantiles), np.quantile(X[:, 1], quantiles), atol=0.04
    )


def test_vae_does_not_copy_rows():
    x = rng().random((150, 4))
    X = np.column_stack([x, x @ rng(1).random((4, 2)) / 3])
    model = VAE(latent=8, decoder=32, epochs=60)
    new, _ = model.fit(X, X[:, 4], cards=(), n_classes=0, rng=rng()).sample(300, rng())
    # as far from the fitted rows as these are from one another, or farther
    assert np.median(nearest(new, X)) > 0.8 * np.median(nearest(X, X, skip=1))


def test_the_papers_is_the_papers():
    model = PaperVAE()
    assert (model.latent, model.decoder, model.max_steps) == (256, 512, 0)
    X = np.column_stack([rng().choice(2, 200, p=[0.9, 0.1]), rng(1).random(200)])
    model = PaperVAE(**TINY, hidden=4, epochs=3).fit(
        X, rng(2).random(200), cards=(2,), n_classes=0, rng=rng()
    )
    new, _ = model.sample(500, rng())
    assert np.mean(new[:, 0] == 0) > 0.95  # argmax loses the rare category


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"latent": 0}, {"batch": -1}, {"max_steps": -1}, {"device": "tpu"}],
)
def test_vae_refuses(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        VAE(**wrong).fit(
            np.zeros((2, 1)), np.zeros(2), cards=(), n_classes=0, rng=rng()
        )


def test_copula_margins_are_exact():
    X = np.column_stack(
        [rng().choice(3, 600, p=[0.7, 0.25, 0.05]), rng(1).random(600) ** 3]
    )
    model = GaussianCopula().fit(X, np.zeros(600), cards=(3,), n_classes=2, rng=rng())
    new, _ = model.sample(20_000, rng())
    share = np.bincount(X[:, 0].astype(int)) / 600
    np.testing.assert_allclose(
        np.bincount(new[:, 0].astype(int)) / 20_000, share, atol=0.012
    )
    quantiles = np.linspace(0.02, 0.98, 25)
    np.testing.assert_allclose(
        np.quantile(new[:, 1], quantiles), np.quantile(X[:, 1], quantiles), atol=0.02
    )
