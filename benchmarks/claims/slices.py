"""How often slices are found in noise, and how often a planted one is."""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.units.slices import search_and_judge
from benchmarks.studies.engine import Rows, Seeded, Study, flat_rows, grid
from benchmarks.studies.page import summarize_means

COLUMNS = (
    Column("x1", "numeric"),
    Column("x2", "numeric"),
    Column("x3", "integer"),
    Column("c", "categorical", tuple("abcd")),
    Column("k", "categorical", tuple(f"k{i}" for i in range(300))),
)
#: Rows of a table whose rows come in groups.
GROUPS = "150 groups"
#: By whether a slice fails, too: what is told, and by how much its rows fail more.
EFFECTS = {"a slice in noise": 0.0, "one where a slice is planted": 2.0}


def draw_rows(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return ``n`` rows of five columns, one with 300 categories."""
    return pd.DataFrame(
        {
            "x1": rng.random(n),
            "x2": rng.normal(size=n),
            "x3": rng.integers(0, 50, n).astype(float),
            "c": pd.Categorical(rng.choice(list("abcd"), n), categories=list("abcd")),
            "k": pd.Categorical(
                rng.choice(COLUMNS[4].categories, n), COLUMNS[4].categories
            ),
        }
    )


def grouped_rows(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows of 150 groups, whose features are half the group's, and the groups."""
    groups = np.repeat(np.arange(150), rng.integers(1, 9, 150))
    shared = rng.normal(size=(150, 4))[groups]
    own = rng.normal(size=shared.shape)
    return pd.DataFrame(0.7 * (shared + own), columns=["g1", "g2", "g3", "g4"]), groups


def find_slices(settings: Seeded, *, rows: int | str, draw: int) -> Rows:
    """Return whether slices are found on one table: in noise, and where one is planted."""
    if rows == GROUPS:
        return list(flat_rows(_find_in_groups(settings.seed, draw), "figure"))
    n = int(rows)
    rng = random_stream(settings.seed, "benchmark", "slices", n, draw)
    x, once = draw_rows(n, rng), np.arange(n)
    blind = rng.random(n) < 0.06
    noise = search_and_judge(x, COLUMNS, blind, once, rng).table
    inside = ((x["x1"] > 0.7) & (x["c"] == "a")).to_numpy()
    bad = rng.random(n) < np.where(inside, 0.5, 0.06)
    found = search_and_judge(x, COLUMNS, bad, once, rng).table["slice"].tolist()
    is_both = bool(found) and "x1" in found[0] and "c is a" in found[0]
    told = dict(zip(EFFECTS, (len(noise) > 0, bool(found)), strict=True))
    return list(flat_rows({**told, "naming both its columns": is_both}, "figure"))


def _find_in_groups(seed: int, draw: int) -> dict[str, bool]:
    """Return whether a slice is found where groups fail, and where a slice fails, too."""
    columns = [Column(name, "numeric") for name in ("g1", "g2", "g3", "g4")]
    found = {}
    for name, effect in EFFECTS.items():
        rng = random_stream(seed, "benchmark", "slices", "groups", draw)
        x, groups = grouped_rows(rng)
        logit = rng.normal(size=150)[groups] - 2 + effect * (x["g1"] > 0.8)
        bad = (rng.random(len(x)) < 1 / (1 + np.exp(-logit))).to_numpy()
        found[name] = len(search_and_judge(x, columns, bad, groups, rng).table) > 0
    return found


STUDIES = (
    Study(
        name="slices",
        title="How often slices are found in noise, and how often a planted one is",
        group="claims",
        settings=Seeded(draws=200),
        cells=grid(rows=(200, 400, 1000, GROUPS), draw="draws"),
        compute=find_slices,
        summarize=summarize_means("rows"),
        small={"draws": 1},
    ),
)
