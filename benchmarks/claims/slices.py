"""How often slices are found in noise, and how often a planted one is.

python -m benchmarks.claims.slices --draws 200 --seed 0
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from tqdm import tqdm

from amlb_ext.core.rng import random_stream
from amlb_ext.core.task import Column
from amlb_ext.units.slices import search_and_judge

COLUMNS = (
    Column("x1", "numeric"),
    Column("x2", "numeric"),
    Column("x3", "integer"),
    Column("c", "categorical", tuple("abcd")),
    Column("k", "categorical", tuple(f"k{i}" for i in range(300))),
)


def rows(n: int, rng: np.random.Generator) -> pd.DataFrame:
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


def find_in_groups(draws: int, seed: int) -> None:
    """Print how often a slice is found where groups fail, and where a slice fails, too."""
    columns = [Column(name, "numeric") for name in ("g1", "g2", "g3", "g4")]
    found = {0.0: 0, 2.0: 0}
    for draw in tqdm(range(draws), desc="groups"):
        for effect in found:
            rng = random_stream(seed, "benchmark", "slices", "groups", draw)
            x, groups = grouped_rows(rng)
            logit = rng.normal(size=150)[groups] - 2 + effect * (x["g1"] > 0.8)
            bad = (rng.random(len(x)) < 1 / (1 + np.exp(-logit))).to_numpy()
            table = search_and_judge(x, columns, bad, groups, rng).table
            found[effect] += len(table) > 0
    print(
        f"150 groups: a slice in noise {share(found[0.0], draws)}; one where a slice is planted "
        f"{share(found[2.0], draws)}"
    )


def share(found: int, draws: int) -> str:
    """Return a share and its standard error."""
    p = found / draws
    return f"{p:.3f} +- {np.sqrt(p * (1 - p) / draws):.3f}"


def main() -> None:
    """Draw, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for n in (200, 400, 1000):
        noise = planted = both = 0
        for draw in tqdm(range(arguments.draws), desc=f"n = {n}"):
            rng = random_stream(arguments.seed, "benchmark", "slices", n, draw)
            x, once = rows(n, rng), np.arange(n)
            blind = rng.random(n) < 0.06
            noise += len(search_and_judge(x, COLUMNS, blind, once, rng).table) > 0
            inside = ((x["x1"] > 0.7) & (x["c"] == "a")).to_numpy()
            bad = rng.random(n) < np.where(inside, 0.5, 0.06)
            found = search_and_judge(x, COLUMNS, bad, once, rng)
            slices = found.table["slice"].tolist()
            planted += bool(slices)
            both += bool(slices) and "x1" in slices[0] and "c is a" in slices[0]
        print(
            f"n = {n}: a slice in noise {share(noise, arguments.draws)}; one in a planted region "
            f"{share(planted, arguments.draws)}; naming both its columns "
            f"{share(both, arguments.draws)}"
        )
    find_in_groups(arguments.draws, arguments.seed)


if __name__ == "__main__":
    main()
