"""The paper's data sets, or what stands in for them.

==========  =====================================================================================
toy         section 5.1: two features, two regions with another law; made here
simulated   as large as the paper's private prices of flats in Moscow: 253,000 × 16; made here
housing     public stand-in for the same: California housing, 20,640 × 9 (``--data``)
diabetes    the paper's own: Kaggle, Diabetes Health Indicators, 100,000 rows (``--data``)
==========  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import Task
from amlb_ext.experiments.paper.readings import Readings

#: Where the toy's second law holds, by row of Table A1: [x1 from, to, x2 from, to].
REGIONS: dict[str, tuple[tuple[float, float, float, float], ...]] = {
    "10": ((0.1, 0.3, 0.6, 0.8), (0.6, 0.8, 0.3, 0.5)),
    "56": ((0.1, 0.3, 0.5, 0.8), (0.5, 0.8, 0.3, 0.5)),
    "75": ((0.1, 0.3, 0.2, 0.9), (0.3, 0.8, 0.3, 0.5)),
}
#: Share of the points in the regions. NOTE[DIFF]: by area, as for points drawn evenly, it would be
#: .08, .12, .24, and the shares of bad points 11, 30 and 69 % in place of the printed ones.
IN_REGIONS = {"10": 0.08, "56": 0.14, "75": 0.30}
#: The columns of Table A3: named in section 5.1, or ("and others") chosen here.
DIABETES = {
    "categorical": ("gender", "ethnicity", "income_level", "smoking_status"),
    "numeric": ("age", "insulin_level", "bmi"),
    "chosen": (
        "family_history_diabetes",
        "systolic_bp",
        "cholesterol_total",
        "hdl_cholesterol",
        "triglycerides",
    ),
}


@dataclass(frozen=True)
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

    load: Callable[[Path | None, Readings], Task]
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
    n = 1000
    points = rng.random((40 * n, 2))
    inside = np.zeros(len(points), dtype=bool)
    for a, b, c, d in REGIONS[row]:
        x, z = points.T
        inside |= (a <= x) & (x <= b) & (c <= z) & (z <= d)
    if by_area:
        X, within = points[:n], inside[:n]
    else:
        k = round(IN_REGIONS[row] * n)
        X = np.vstack([points[inside][:k], points[~inside][: n - k]])
        within = np.arange(n) < k
    inner = -2 * X[:, 0] + X[:, 0] ** 2 - 8 * X[:, 1] ** 4
    outer = 2 * X[:, 0] + 3 * X[:, 1] + 7
    y = np.where(within, inner, outer) + 0.1 * rng.standard_normal(n)
    return _task(f"toy_{row}", pd.DataFrame(X, columns=["x1", "x2"]).assign(y=y), "y")


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
    rng = random_stream(0, "simulated")
    X = rng.random((rows, 15))
    kind = rng.integers(0, 3, rows)
    level = 0.6 * X[:, 0] + 0.4 * X[:, 1] - 0.5 * X[:, 2] + 0.2 * X[:, 3:8].sum(axis=1)
    level = level + np.array([0.0, 0.25, 0.6])[kind]
    # the centre is dear for new buildings only: an interaction
    level = level + 2.2 * np.maximum(0, X[:, 8] - 0.7) * (X[:, 9] > 0.6) * (kind == 2)
    price = np.exp(0.8 * level + 0.08 * rng.standard_normal(rows))
    dear = (X[:, 10] > 0.97) & (X[:, 11] > 0.9) & (kind == 2)
    price = price * np.where(dear, 1.0 + 3.0 * rng.random(rows), 1.0)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(15)])
    table["building"] = pd.Categorical(
        np.array(["economy", "comfort", "business"])[kind]
    )
    return _task("simulated", table.assign(price=price), "price")


def load_housing(folder: Path | None) -> Task:
    """Return California housing from ``housing.csv``, categories as text, missing values kept."""
    path = _find(folder, "housing", ("housing.csv",))
    return _task("housing", pd.read_csv(path), "median_house_value")


def load_diabetes(folder: Path | None, balanced: bool = True) -> Task:
    """Return the paper's classification data: 12 features, of which 4 are categories.

    Columns that give the label away (stage, hba1c, risk score, glucose) are not among them.
    NOTE[DIFF]: as many rows with diabetes as without: with the 60 % of the file, G calls nearly
    every row of X_b healthy, and its F1 is .1 in place of the printed .43.

    Raises
    ------
    SourceError
        No such file.
    DataError
        A column is missing.
    """
    path = _find(
        folder, "diabetes", ("diabetes_dataset.parquet", "diabetes_dataset.csv")
    )
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    wanted = [name for names in DIABETES.values() for name in names]
    lacking = [name for name in (*wanted, "diagnosed_diabetes") if name not in table]
    if lacking:
        raise DataError(
            f"{path.name} has no column {lacking[0]!r}", "use Kaggle's file as it is"
        )
    table = table[[*wanted, "diagnosed_diabetes"]]
    if balanced:
        rng, y = random_stream(0, "diabetes"), table["diagnosed_diabetes"].to_numpy()
        sides = [np.flatnonzero(y == label) for label in (0, 1)]
        few = min(map(len, sides))
        kept = np.sort(np.concatenate([rng.permutation(side)[:few] for side in sides]))
        table = table.iloc[kept].reset_index(drop=True)
    labels = np.where(table["diagnosed_diabetes"] == 1, "yes", "no")
    return _task(
        "diabetes", table.assign(diagnosed_diabetes=labels), "diagnosed_diabetes"
    )


def _task(name: str, table: pd.DataFrame, target: str) -> Task:
    return make_task(table, target, name=name)


def _find(folder: Path | None, name: str, files: tuple[str, ...]) -> Path:
    """Return the first of the files, in the folder or in one of the data set's name."""
    if folder is None:
        raise SourceError(
            f"{name} needs a file, {' or '.join(files)}", "give its folder as --data"
        )
    for place in (folder / name, folder):
        for file in files:
            if (place / file).is_file():
                return place / file
    raise SourceError(
        f"{folder} holds no {' or '.join(files)}, nor {name}/{files[0]}",
        "see docs/reproduce.md for where to get it",
    )


def _toy_set(row: str) -> DataSet:
    return DataSet(
        lambda _, read: make_toy(row, read.by_area, read.sample),
        f"toy, {row} % bad",
        True,
        "toy",
    )


DATA: dict[str, DataSet] = {
    **{f"toy_{row}": _toy_set(row) for row in REGIONS},
    "housing": DataSet(
        lambda folder, _: load_housing(folder),
        "California housing in place of the paper's private prices",
        False,
        "regression",
    ),
    "simulated": DataSet(
        lambda _, __: make_simulated(),
        "simulated, as large as the paper's prices",
        False,
        "regression",
    ),
    "diabetes": DataSet(
        lambda folder, read: load_diabetes(folder, read.balanced),
        "the paper's diabetes data",
        True,
        "classification",
    ),
}
