"""Rows of two groups and settings of the smallest swarms, for the tests of the wing."""

import numpy as np

from amlb_ext.swarm.initial import InitialSettings

SMALL = InitialSettings(
    n_generators=4, latent=4, width=16, steps=20, base_steps=300, device="cpu"
)


def two_groups(n, seed=0, n_classes=2):
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
