"""Do intervals from cross-validation cover the difference of two recipes?

Notation
--------
n : rows of a table; K : folds
theta : mean difference of loss, on rows of the population, of both recipes fitted on tables of n
    rows; the mean over all draws
naive : the t interval over rows; widened : its variance times 1 + K n_test / n_train
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.stats import t as student
from sklearn.model_selection import KFold, cross_val_predict

from amlb_ext.core.rng import derive_int_seed
from amlb_ext.core.row_losses import row_loss
from benchmarks.studies.engine import Rows, Seeded, Study, flat_rows, grid
from benchmarks.studies.page import Part, Table
from benchmarks.studies.swap.study import (
    FILES,
    Population,
    make_model,
    make_population,
    predict_all,
)

PAIRS = {
    "linear, boosting": ("linear", "boosting"),
    "forest, boosting": ("forest", "boosting"),
    "forest, linear": ("forest", "linear"),
}


class CrossValidationSettings(Seeded):
    """What the study of cross-validation may be told.

    Attributes
    ----------
    draws : int
        Tables of each population.
    n : tuple of int
    folds : int
    tables : tuple of str
    seed : int
    """

    n: tuple[int, ...] = (300, 800)
    folds: int = Field(5, ge=2)
    tables: tuple[str, ...] = ("made", "made classes", *FILES)


def cross_validate(
    settings: CrossValidationSettings,
    population: Population,
    *,
    table: str,
    n: int,
    draw: int,
) -> Rows:
    """Return both recipes' difference by cross-validation and on the population."""
    seed = derive_int_seed(settings.seed, table, "cross-validation", draw)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(population.y))
    own, pool = order[:n], order[n : n + 4000]
    n_classes = population.n_classes

    X, y = population.X, population.y
    asks = "predict_proba" if n_classes else "predict"
    splitter = KFold(settings.folds, shuffle=True, random_state=0)
    out_of_fold: dict[str, np.ndarray] = {}
    whole: dict[str, float] = {}
    for kind in ("linear", "forest", "boosting"):
        model = make_model(kind, X, n_classes > 0, 0)
        f = cross_val_predict(model, X.iloc[own], y[own], cv=splitter, method=asks)
        out_of_fold[kind] = row_loss(y[own], f)
        f = predict_all(model.fit(X.iloc[own], y[own]), X.iloc[pool], n_classes)
        whole[kind] = float(row_loss(y[pool], f).mean())
    records: Rows = []
    for pair, (first, second) in PAIRS.items():
        d = out_of_fold[second] - out_of_fold[first]
        said = {
            "mean": d.mean(),
            "variance": d.var(ddof=1) / n,
            "true": whole[second] - whole[first],
        }
        records += flat_rows(said, "measure", pair=pair)
    return records


def _summarize(rows: pd.DataFrame, settings: CrossValidationSettings) -> list[Part]:
    wide = rows.pivot_table(
        index=["table", "pair", "n", "draw"], columns="measure", values="value"
    ).reset_index()
    # 1 + K n_test / n_train
    widening = 1 + settings.folds / (settings.folds - 1)
    records = []
    for (table, pair, n), part in wide.groupby(["table", "pair", "n"]):
        theta = part["true"].mean()
        record = {"table": table, "pair": pair, "n": n}
        for name, factor in (("naive", 1.0), ("widened", widening)):
            half = student.ppf(0.975, int(n) - 1) * np.sqrt(factor * part["variance"])
            record[name] = float(((part["mean"] - theta).abs() <= half).mean())
            record[f"{name}, of these fits"] = float(
                ((part["mean"] - part["true"]).abs() <= half).mean()
            )
        records.append(record)
    frame = pd.DataFrame(records)
    means = frame.groupby("n").mean(numeric_only=True).reset_index()
    return [
        Table(heading="Coverage of the recipes' difference", frame=means.round(3)),
        Table(
            heading="By table", frame=frame.round(3), file="coverage.csv", data=frame
        ),
    ]


STUDIES = [
    Study(
        name="swap-cv",
        title="Do intervals from cross-validation cover the difference of two recipes?",
        group="swap",
        settings=CrossValidationSettings(draws=60),
        cells=grid(table="tables", n="n", draw="draws"),
        load=make_population,
        names="table",
        compute=cross_validate,
        summarize=_summarize,
        small={"draws": 2, "n": (300,), "tables": ("made",)},
        files=True,
    )
]
