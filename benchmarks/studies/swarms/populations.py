"""Simulated tables of which P(y | x) is known, so that the teacher can be the truth itself.

five_gaussians : five classes in the plane, see :mod:`benchmarks.studies.five_gaussians`
interaction : two classes; in a third of the rows the product of two columns decides
clusters : two classes, the corners of a cube dealt among them, as ``make_classification`` does
friedman : a regression with a product, a square and two straight lines (Friedman 1991)
toy : a straight line with noise; a linear taker *is* the truth there, so nothing can be found
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from amlb_ext.core.config import SourceConfig, SplitConfig
from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Kind, Task
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.hardening.split import split_task
from amlb_ext.sources import open_specs
from benchmarks.studies.files import FILES as UCI_FILES
from benchmarks.studies.files import find_data_file, keep_rows, load_uci
from benchmarks.studies.five_gaussians import (
    SHARES,
    draw_class_rows,
    log_densities,
)
from benchmarks.studies.swarms.choices import SwarmChoice

#: Rows of a table that is drawn.
DRAWN_ROWS = 4000
#: Corners of the cube of ``clusters`` that have class 1, the spread around a corner, and the
#: columns beside the cube that say nothing.
_ODD_CORNERS, _CORNER_SPREAD, _IDLE_COLUMNS = (0, 3, 5, 6), 0.6, 3
#: Standard deviation of the noise of the regressions.
_FRIEDMAN_NOISE, _TOY_NOISE = 1.0, 0.1


@dataclass(frozen=True, kw_only=True)
class KnownTable:
    """A table with its truth.

    Attributes
    ----------
    kind : Kind
    draw : callable
        From a number of rows and a stream to features.
    truth : callable
        From features to class probabilities ``(n, C)``, or to the expected target ``(n,)``.
    noise : float
        Standard deviation of a regression's target around the truth.
    """

    kind: Kind
    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    truth: Callable[[pd.DataFrame], np.ndarray]
    noise: float = 0.0


def draw_task(name: str, seed: int, n: int = DRAWN_ROWS) -> Task:
    """Draw a simulated table, without folds.

    Parameters
    ----------
    name : str
        A key of :data:`POPULATIONS`.
    seed : int
    n : int

    Examples
    --------
    >>> len(draw_task("interaction", seed=0, n=50)), draw_task("toy", seed=0, n=50).kind.value
    (50, 'regression')
    """
    population = POPULATIONS[name]
    rng = random_stream(seed, "swarm populations", name)
    table = population.draw(n, rng)
    truth = population.truth(table)
    if population.kind is Kind.REGRESSION:
        table["y"] = truth + population.noise * rng.standard_normal(n)
    else:
        edges = truth.cumsum(axis=1)[:, :-1]
        codes = (rng.random(n)[:, None] > edges).sum(axis=1)
        table["y"] = codes.astype(str)
    # a class that no row has would be missing among the truth's columns
    categories = None
    if population.kind is not Kind.REGRESSION:
        categories = {"y": [str(code) for code in range(truth.shape[1])]}
    return make_task(table, "y", name=name, kind=population.kind, categories=categories)


class TrueTeacher:
    """The truth as a teacher of encoded rows.

    Parameters
    ----------
    name : str
        A key of :data:`POPULATIONS`.
    encoder : Encoder
    scale : TargetEncoder
    """

    def __init__(self, name: str, encoder: Encoder, scale: TargetEncoder) -> None:
        self.population = POPULATIONS[name]
        self.encoder = encoder
        self.scale = scale

    def predict(self, Z: np.ndarray) -> np.ndarray:
        """Return class probabilities, ``(n, C)``, or scaled expectations, ``(n,)``."""
        truth = self.population.truth(self.encoder.inverse(Z))
        if truth.ndim == 1:
            return np.asarray(self.scale.transform(pd.Series(truth)), dtype=float)
        return truth


def _draw_gaussians(n: int, rng: np.random.Generator) -> pd.DataFrame:
    classes = rng.choice(len(SHARES), n, p=SHARES)
    return pd.DataFrame(draw_class_rows(classes, rng), columns=["u", "v"])


def _gaussian_truth(table: pd.DataFrame) -> np.ndarray:
    X = table[["u", "v"]].to_numpy(dtype=float)
    return np.asarray(softmax(log_densities(X), axis=1))


def _draw_interaction(n: int, rng: np.random.Generator) -> pd.DataFrame:
    table = pd.DataFrame(rng.random((n, 4)), columns=["a", "b", "c", "d"])
    table["group"] = np.array(["one", "two", "three"])[rng.integers(3, size=n)]
    return table


def is_interaction(table: pd.DataFrame) -> np.ndarray:
    """Return the rows in which the product of two columns decides, ``(n,)`` bool."""
    return (table["group"].astype(str) == "one").to_numpy()


def _interaction_truth(table: pd.DataFrame) -> np.ndarray:
    a, b, c = (table[name].to_numpy(dtype=float) for name in "abc")
    product = np.sign(b - 0.5) * np.sign(c - 0.5)
    score = np.where(is_interaction(table), 3 * product, 8 * (a - 0.5))
    chance = expit(score)
    return np.column_stack([1 - chance, chance])


def _cube_corners() -> np.ndarray:
    signs = (np.arange(8)[:, None] >> np.arange(3)) & 1
    return 2.0 * signs - 1.0


def _draw_clusters(n: int, rng: np.random.Generator) -> pd.DataFrame:
    corners = _cube_corners()[rng.integers(8, size=n)]
    informative = corners + _CORNER_SPREAD * rng.standard_normal((n, 3))
    idle = rng.standard_normal((n, _IDLE_COLUMNS))
    names = [f"x{position}" for position in range(3 + _IDLE_COLUMNS)]
    return pd.DataFrame(np.column_stack([informative, idle]), columns=names)


def _cluster_truth(table: pd.DataFrame) -> np.ndarray:
    X = table[["x0", "x1", "x2"]].to_numpy(dtype=float)
    distance = ((X[:, None, :] - _cube_corners()) ** 2).sum(axis=2)
    weights = softmax(-distance / (2 * _CORNER_SPREAD**2), axis=1)
    chance = weights[:, list(_ODD_CORNERS)].sum(axis=1)
    return np.column_stack([1 - chance, chance])


def _draw_unit_cube(n: int, rng: np.random.Generator) -> pd.DataFrame:
    names = [f"x{position}" for position in range(1, 7)]
    return pd.DataFrame(rng.random((n, len(names))), columns=names)


def _friedman_truth(table: pd.DataFrame) -> np.ndarray:
    x = table.to_numpy(dtype=float).T
    curve = 10 * np.sin(np.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2
    return np.asarray(curve + 10 * x[3] + 5 * x[4])


def _toy_truth(table: pd.DataFrame) -> np.ndarray:
    x = table.to_numpy(dtype=float).T
    return np.asarray(2 * x[0] + 3 * x[1] + 7)


POPULATIONS: dict[str, KnownTable] = {
    "five_gaussians": KnownTable(
        kind=Kind.MULTICLASS, draw=_draw_gaussians, truth=_gaussian_truth
    ),
    "interaction": KnownTable(
        kind=Kind.BINARY, draw=_draw_interaction, truth=_interaction_truth
    ),
    "clusters": KnownTable(kind=Kind.BINARY, draw=_draw_clusters, truth=_cluster_truth),
    "friedman": KnownTable(
        kind=Kind.REGRESSION,
        draw=_draw_unit_cube,
        truth=_friedman_truth,
        noise=_FRIEDMAN_NOISE,
    ),
    "toy": KnownTable(
        kind=Kind.REGRESSION,
        draw=_draw_unit_cube,
        truth=_toy_truth,
        noise=_TOY_NOISE,
    ),
}


#: Parquet files and their targets.
PARQUET = {"letter": "class", "kin8nm": "y"}


def load_swarm_table(
    name: str, choice: SwarmChoice, folder: Path | None
) -> Task | None:
    """Return a table without folds; None where each draw simulates its own.

    Parameters
    ----------
    name : str
    choice : SwarmChoice
        How many rows are kept, drawn at random.
    folder : Path or None
        With the files of the tables that need one.

    Raises
    ------
    SourceError
        No such file.

    Examples
    --------
    >>> len(load_swarm_table("breast_cancer", SwarmChoice(most_rows=500), None))
    500
    """
    if name in POPULATIONS:
        return None
    if name in UCI_FILES:
        return load_uci(name, folder, choice.most_rows)
    spec, target = f"bundled/{name}", None
    if name in PARQUET:
        spec = str(find_data_file(folder, name, [f"{name}.parquet"]))
        target = PARQUET[name]
    [ref] = open_specs([spec], SourceConfig(target=target))
    return keep_rows(ref.load().renamed(name), choice.most_rows, "swarm rows")


def split_draw(task: Task | None, name: str, seed: int, most_rows: int) -> Task:
    """Return the table of one draw with its one fold, simulated where there is none."""
    if task is None:
        task = draw_task(name, seed, min(most_rows, 4000))
    without_folds = dataclasses.replace(task, folds=())
    return split_task(without_folds, SplitConfig(folds=1), seed)
