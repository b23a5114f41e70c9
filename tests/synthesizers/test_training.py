"""Optimizer, early stopping, and what the default does from a handful of rows to many."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from amlb_ext.core.config import SynthesizerConfig
from amlb_ext.synthesizers import make_synthesizer
from amlb_ext.synthesizers.training import (
    CHECKS,
    CLIP,
    PATIENCE,
    FlatAdamW,
    train_network,
)
from amlb_ext.synthesizers.vae import VAE

TINY = {"latent": 4, "decoder": 16}


def table(n, seed=0):
    """Two categories and three numbers that hang together, and their class."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal(n)
    numbers = factor[:, None] + 0.5 * rng.standard_normal((n, 3))
    numbers = (numbers - numbers.min(axis=0)) / np.ptp(numbers, axis=0).clip(1e-9)
    codes = np.column_stack([factor > 0, rng.integers(0, 4, n)])
    return np.column_stack([codes, numbers]), (factor > 0.5).astype(int)


def fitted(n, kind=VAE, **settings):
    X, y = table(n)
    model = kind(**{**TINY, **settings})
    return model.fit(X, y, cards=(2, 4), n_classes=2, rng=np.random.default_rng(1)), X


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_flat_adamw_is_torch_s(scale):
    # the same gradients, small ones and ones that are clipped, for ten steps of two optimizers
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 2))
    theirs = nn.Sequential(nn.Linear(3, 5), nn.SiLU(), nn.Linear(5, 2))
    theirs.load_state_dict(ours.state_dict())
    flat, adamw = FlatAdamW(ours), torch.optim.AdamW(theirs.parameters(), 1e-2)
    for _ in range(10):
        x = scale * torch.randn(7, 3)
        ours(x).square().mean().backward()
        flat.step(1e-2)
        adamw.zero_grad()
        theirs(x).square().mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), CLIP)
        adamw.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.exhaustive
def test_learning_does_not_import_torch_s_compiler():
    # a second and 70 MB in every worker
    code = (
        "import sys, numpy as np\n"
        "from amlb_ext.synthesizers.vae import VAE\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.random((40, 3))\n"
        "model = VAE(epochs=2, latent=4, decoder=16)\n"
        "model.fit(X, rng.random(40), cards=(), n_classes=0, rng=rng).sample(5, rng)\n"
        "assert 'torch' in sys.modules and 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_weights_of_the_best_look_are_kept():
    # learning pulls w from 0 to 1; held-out rows want w = .3, so it is best on the way
    torch.manual_seed(0)
    network = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(network.weight)

    def loss(rows, done):
        goal = 0.3 if int(rows[0]) >= 90 else 1.0
        return (network.weight - goal).square().sum()

    learn, held = torch.arange(90), torch.arange(90, 100)
    steps = 800  # 1e-3 a step: .3 after some 300, beyond it from half of the steps on
    kept = train_network(network, loss, learn=learn, held=held, batch=90, steps=steps)
    assert kept == steps // 2  # the first look that counts is the best
    at_best = float(network.weight.detach())
    assert 0.3 < at_best < 0.5
    nn.init.zeros_(network.weight)
    assert (
        train_network(network, loss, learn=learn, held=held[:0], batch=90, steps=steps)
        == steps
    )
    assert float(network.weight.detach()) > at_best


def test_training_ends_after_looks_without_a_gain():
    network, calls = nn.Linear(1, 1, bias=False), []

    def loss(rows, done):
        calls.append(len(rows))
        return network.weight.square().sum() * 0 + (1.0 if len(rows) == 7 else 0.0)

    learn, held = torch.arange(30), torch.arange(30, 37)
    train_network(network, loss, learn=learn, held=held, batch=30, steps=400)
    # looks at step 200 (the best: no other is less), then every 400 / CHECKS
    assert calls.count(30) == 200 + PATIENCE * (400 // CHECKS)


def arrays(thing, seen):
    """Every array and tensor that can be reached from an object."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray | torch.Tensor):
        yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from arrays(value, seen)
    elif isinstance(thing, list | tuple):
        for value in thing:
            yield from arrays(value, seen)
    elif hasattr(thing, "__dict__"):
        yield from arrays(vars(thing), seen)


@pytest.mark.parametrize("name", ["vae", "copula"])
def test_a_fitted_model_holds_no_rows(name):
    # single columns (margins, the targets) may have one value per row; nothing may have two
    n = 211
    X, y = table(n)
    model = make_synthesizer(SynthesizerConfig(name=name, epochs=2))
    model.fit(X, y, cards=(2, 4), n_classes=2, rng=np.random.default_rng(0))
    found = list(arrays(model, set()))
    assert len(found) > 5
    assert not [a.shape for a in found if a.ndim > 1 and n in a.shape]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use")
def test_a_model_from_a_gpu_samples_without_one():
    model, X = fitted(200, epochs=2)
    assert {p.device.type for p in model.network_.parameters()} == {"cpu"}
    thawed = pickle.loads(pickle.dumps(model))
    first = model.sample(9, np.random.default_rng(0))[0]
    np.testing.assert_array_equal(first, thawed.sample(9, np.random.default_rng(0))[0])
    assert first.shape == (9, X.shape[1])
