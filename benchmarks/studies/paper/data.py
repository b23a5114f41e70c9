"""The paper's data sets, or what stands in for them, and what one may set in its tables.

==========  =====================================================================================
toy         section 5.1: two features, two regions with another law; made here
simulated   as large as the paper's private prices of flats in Moscow: 253,000 × 16; made here
housing     public stand-in for the same: California housing, 20,640 × 9 (``--data``)
diabetes    the paper's own: Kaggle, Diabetes Health Indicators, 100,000 rows (``--data``)
==========  =====================================================================================

What the paper leaves open is told in ``docs/evidence/readings.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Task
from benchmarks.studies.engine import Settings
from benchmarks.studies.files import load_diabetes, load_housing


class PaperSettings(Settings):
    """One choice for each ambiguity of the paper, and other settings of the pipeline.

    Attributes
    ----------
    draws : int
        Splits.
    pool : {'bad', 'test'}
        Rows whose values the initial population is drawn from (section 4.3.1).
    with_bad : bool
        Whether X_ga holds X_b besides the augmented points (section 4.1).
    fitness : {'printed', 'label'}
        Classification: lower the probability of the positive class of every row (section 4.3.2),
        or that of the row's own label.
    learning_rate : float
        Of gradient boosting as G.
    sample : int
        Which draw of the toy's 1,000 points.
    by_area : bool
        The toy: as many points in the regions as chance puts there, or the shares under which the
        shares of bad points are the printed ones.
    balanced : bool
        The diabetes data: as many rows with diabetes as without, or the file's 60 %.
    simulated_rows : int
        Of the prices that are made here.
    data : tuple of str
        Some of the data sets; empty for all.
    config : dict
        Section → key → value of the configuration, as in ``--set search.kappa=0.3``.
    """

    chooses: ClassVar[frozenset[str]] = frozenset({"draws", "data"})

    draws: int = Field(31, ge=0)
    pool: Literal["bad", "test"] = "bad"
    with_bad: bool = False
    fitness: Literal["printed", "label"] = "printed"
    learning_rate: float = Field(0.3, gt=0)
    sample: int = 0
    by_area: bool = False
    balanced: bool = True
    simulated_rows: int = Field(253_000, ge=100)
    data: tuple[str, ...] = ()
    config: dict[str, dict[str, Any]] = Field(default_factory=dict)


# Dense lines below: regions and laws stand as section 5.1 writes them, one number or term each.

#: Where the toy's second law holds, by row of Table A1: [x1 from, to, x2 from, to].
REGIONS: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "10": ((0.1, 0.3, 0.6, 0.8), (0.6, 0.8, 0.3, 0.5)),
    "56": ((0.1, 0.3, 0.5, 0.8), (0.5, 0.8, 0.3, 0.5)),
    "75": ((0.1, 0.3, 0.2, 0.9), (0.3, 0.8, 0.3, 0.5)),
}
#: Share of the points in the regions. NOTE[DIFF]: by area, as for points drawn evenly, it would be
#: .08, .12, .24, and the shares of bad points 11, 30 and 69 % in place of the printed ones.
IN_REGIONS = {"10": 0.08, "56": 0.14, "75": 0.30}
#: Points of the toy.
TOY_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """One data set: how to load it, and whether the printed numbers are of it.

    Attributes
    ----------
    load : callable
        From the folder of files (None: no folder was given) and the readings to a task without
        folds.
    text : str
    printed : bool
        Whether the paper used these very data (or the same recipe).
    family : str
        Of Table 2's columns: ``toy``, ``regression`` or ``classification``.
    """

    load: Callable[[Path | None, PaperSettings], Task]
    text: str
    printed: bool
    family: str


def make_toy(row: str, by_area: bool = False, sample: int = 0) -> Task:
    """Return the toy of one row of Table A1 (section 5.1): 1,000 points, split 31 times.

    NOTE[DIFF]: minus signs were lost in the text at hand: the outer law is read as
    ``2 x1 + 3 x2 + 7``, the inner as ``-2 x1 + x1^2 - 8 x2^4``, both plus noise of std .1.

    Parameters
    ----------
    row : {'10', '56', '75'}
    by_area : bool
        Let chance decide how many points fall into the regions.
    sample : int
        Another one gives other points.

    Examples
    --------
    >>> make_toy("10").features.shape
    (1000, 2)
    """
    rng = random_stream(sample, "toy", row)
    # more points than are needed, so that enough of them fall into the small regions
    points = rng.random((40 * TOY_ROWS, 2))
    is_inside = _is_in_regions(points, row)
    if by_area:
        X = points[:TOY_ROWS]
        follows_inner = is_inside[:TOY_ROWS]
    else:
        n_inside = round(IN_REGIONS[row] * TOY_ROWS)
        inside = points[is_inside][:n_inside]
        outside = points[~is_inside][: TOY_ROWS - n_inside]
        X = np.vstack([inside, outside])
        follows_inner = np.arange(TOY_ROWS) < n_inside
    x1, x2 = X.T
    inner = -2 * x1 + x1**2 - 8 * x2**4
    outer = 2 * x1 + 3 * x2 + 7
    noise = 0.1 * rng.standard_normal(TOY_ROWS)
    y = np.where(follows_inner, inner, outer) + noise
    table = pd.DataFrame(X, columns=["x1", "x2"]).assign(y=y)
    return make_task(table, "y", name=f"toy_{row}")


def _is_in_regions(points: np.ndarray, row: str) -> np.ndarray:
    """Return which points lie in the regions of the second law, ``(n,)`` bool."""
    x1, x2 = points.T
    is_inside = np.zeros(len(points), dtype=bool)
    for x1_from, x1_to, x2_from, x2_to in REGIONS[row]:
        is_in_x1 = (x1_from <= x1) & (x1 <= x1_to)
        is_in_x2 = (x2_from <= x2) & (x2 <= x2_to)
        is_inside |= is_in_x1 & is_in_x2
    return is_inside


def make_simulated(rows: int = 253_000) -> Task:
    """Return a regression of the paper's size: 15 numeric columns and a category of three.

    Prices per square metre: a linear part, an interaction that a linear model cannot see, and a
    few very dear flats, so that a linear model misses 1.2 % of the rows by .05 of the range or
    more, .2 % by .1 and .02 % by .3 (the paper: 4 % by .05, .02 % by .3).

    Examples
    --------
    >>> make_simulated(1000).features.shape
    (1000, 16)
    """
    # one stream, so the order of the draws below decides every number
    rng = random_stream(0, "simulated")
    X = rng.random((rows, 15))
    building = rng.integers(0, 3, rows)
    is_new = building == 2  # "business"

    # the logarithm of a price, up to noise: what a linear model can see
    level = 0.6 * X[:, 0]
    level = level + 0.4 * X[:, 1]
    level = level - 0.5 * X[:, 2]
    level = level + 0.2 * X[:, 3:8].sum(axis=1)
    building_levels = np.array([0.0, 0.25, 0.6])
    level = level + building_levels[building]
    # the centre is dear for new buildings only: an interaction
    centrality = np.maximum(0, X[:, 8] - 0.7)
    level = level + 2.2 * centrality * (X[:, 9] > 0.6) * is_new
    price = np.exp(0.8 * level + 0.08 * rng.standard_normal(rows))

    # some three new flats in a thousand cost up to four times as much
    is_rare = (X[:, 10] > 0.97) & (X[:, 11] > 0.9)
    is_dear = is_rare & is_new
    factor = 1.0 + 3.0 * rng.random(rows)
    price = price * np.where(is_dear, factor, 1.0)

    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(15)])
    names = np.array(["economy", "comfort", "business"])
    table["building"] = pd.Categorical(names[building])
    return make_task(table.assign(price=price), "price", name="simulated")


def _toy_data_set(row: str) -> DataSet:
    return DataSet(
        load=lambda _, readings: make_toy(row, readings.by_area, readings.sample),
        text=f"toy, {row} % bad",
        printed=True,
        family="toy",
    )


DATA: dict[str, DataSet] = {f"toy_{row}": _toy_data_set(row) for row in REGIONS}
DATA["housing"] = DataSet(
    load=lambda folder, _: load_housing(folder),
    text="California housing in place of the paper's private prices",
    printed=False,
    family="regression",
)
DATA["simulated"] = DataSet(
    load=lambda _, settings: make_simulated(settings.simulated_rows),
    text="simulated, as large as the paper's prices",
    printed=False,
    family="regression",
)
DATA["diabetes"] = DataSet(
    load=lambda folder, readings: load_diabetes(folder, readings.balanced),
    text="the paper's diabetes data",
    printed=True,
    family="classification",
)
