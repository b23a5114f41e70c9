"""Rows of two groups and settings of the smallest swarms, for the tests of the wing."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_models import lighten

from amlb_ext.core.config import SourceConfig
from amlb_ext.swarm.initial import InitialSettings
from amlb_ext.swarm.prepare import SwarmRequest
from amlb_ext.swarm.run import SwarmRun, swarm_suite
from amlb_ext.swarm.search import make_plan

SMALL = InitialSettings(
    n_generators=4, latent=4, width=16, steps=20, base_steps=300, device="cpu"
)
#: The least search that gives every file of a suite.
REQUEST = SwarmRequest(
    plan=make_plan("literal", iterations=1),
    initial=replace(SMALL, n_generators=3, steps=5, base_steps=60),
    takers=("linear", "tree_3"),
    rows=40,
    least_rows=100,
    with_baselines=False,
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


def write_groups(path, y=None):
    """Write a table of two groups, or one with other targets; return its path as text."""
    X, classes = two_groups(600)
    table = pd.DataFrame({"g": np.array(list("abc"))[X[:, 0].astype(int)]})
    table["u"] = X[:, 1].round(3)
    table["v"] = X[:, 2].round(3)
    table["y"] = np.where(classes if y is None else y, "yes", "no")
    table.to_csv(path, index=False)
    return str(path)


def small_run(table, out, request=REQUEST, **changes):
    """Return the run of a table that :func:`write_groups` wrote."""
    options = SourceConfig(target="y")
    return SwarmRun(source=table, out=out, request=request, options=options, **changes)


if __name__ == "__main__":
    # a process of its own, with light models, which a test may kill
    table, folder, folds = sys.argv[1:]
    lighten(pytest.MonkeyPatch())
    swarm_suite(small_run(table, Path(folder), folds=int(folds)))
