"""How often is harm called in a suite, where nothing harms and where harm is planted?

A suite's test rows are those of K folds, each predicted by models of its own fold. F's re-fits are
fitted on bootstrap samples of each fold's training rows, as ``report --refits`` fits them.

Notation
--------
n : rows of a table, all of them tested once;  K : folds
candidates : as the pairs of :mod:`benchmarks.studies.swap.study`
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.model_selection import KFold

from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.swap.harm import bootstrap_rows, find_harm
from benchmarks.studies.engine import Rows, Seeded, Study, flat_rows, grid
from benchmarks.studies.page import Part, Table
from benchmarks.studies.swap.study import (
    FILES,
    REFITS,
    Population,
    Predictions,
    make_model,
    make_population,
    nearer,
    predict_all,
    with_noise,
)


class FoldSettings(Seeded):
    """What the study of harm in suites may be told.

    Attributes
    ----------
    draws : int
        Tables of each population.
    n : int
        Rows of each.
    folds : int
    tables : tuple of str
    loss : str
        The Brier loss or the squared error when empty.
    seed : int
    """

    n: int = 1500
    folds: int = Field(5, ge=2)
    tables: tuple[str, ...] = ("made", "made classes", *FILES)
    loss: str = ""


def predict_folds(
    own: Population, kind: str, settings: FoldSettings, seed: int, sample: int = -1
) -> np.ndarray:
    """Return what models of K folds predict for the rows that they are tested on.

    ``sample`` numbers the bootstrap sample that each of them is fitted on; -1 for all rows.
    """
    f = np.zeros((len(own.y), own.n_classes) if own.n_classes else len(own.y))
    splitter = KFold(settings.folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(splitter.split(own.y)):
        if sample >= 0:
            rng = random_stream(seed, "suite", "bootstrap", number, sample)
            train = train[bootstrap_rows(len(train), rng)]
        model_seed = derive_int_seed(seed, "model", number, sample)
        model = make_model(kind, own.X, own.n_classes > 0, model_seed)
        model.fit(own.X.iloc[train], own.y[train])
        f[test] = predict_all(model, own.X.iloc[test], own.n_classes)
    return f


def judge_in_folds(
    settings: FoldSettings, population: Population, *, table: str, draw: int
) -> Rows:
    """Return the verdicts on harm of each candidate in place of a forest and a linear model."""
    seed = derive_int_seed(settings.seed, table, "suite", draw)
    chosen = random_stream(seed, "rows").permutation(len(population.y))[: settings.n]
    X, y = population.X.iloc[chosen].reset_index(drop=True), population.y[chosen]
    own = Population(X=X, y=y, n_classes=population.n_classes)
    truth = np.eye(own.n_classes)[y] if own.n_classes else y
    boosting = predict_folds(own, "boosting", settings, seed)
    records: Rows = []
    for kind in ("forest", "linear"):
        f = predict_folds(own, kind, settings, seed)
        again = [
            predict_folds(own, kind, settings, seed, sample=number)
            for number in range(REFITS + 1)
        ]
        candidates = {
            "fitted again": again.pop(),
            "boosting": boosting,
            "better everywhere": nearer(f, truth),
            "planted": with_noise(X, y, f, 1.0, random_stream(seed, "planted")),
        }
        if kind == "forest":
            other = predict_folds(own, kind, settings, derive_int_seed(seed, "other"))
            candidates["other folds and seed"] = other
        p = Predictions(
            X=X,
            y=y,
            f=f,
            refits=again,
            loss_name=settings.loss or ("brier" if own.n_classes else "squared"),
            n=len(y),
        )
        refits = p.worst_of_refits(seed)
        for name, g in candidates.items():
            contrast = p.contrast(g, p.at_hand)
            verdict = find_harm(contrast, p.columns(g), seed, refits).verdict
            records += flat_rows({verdict: 1.0}, "measure", pair=f"{kind}: {name}")
    return records


def _summarize(rows: pd.DataFrame, settings: FoldSettings) -> list[Part]:
    counts = rows.pivot_table(
        index="pair", columns="measure", values="value", aggfunc="sum", fill_value=0
    ).astype(int)
    return [Table(heading="Verdicts", frame=counts.reset_index())]


STUDIES = [
    Study(
        name="swap-folds",
        title="How often is harm called in a suite?",
        group="swap",
        settings=FoldSettings(draws=5),
        cells=grid(draw="draws", table="tables"),
        load=make_population,
        names="table",
        compute=judge_in_folds,
        summarize=_summarize,
        small={"draws": 1, "n": 300, "folds": 2, "tables": ("made",)},
        files=True,
    )
]
