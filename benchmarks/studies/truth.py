"""Is what `compare` says true, and of its own? Measured on one table whose rest is the truth.

Notation
--------
n : labelled rows that no model has seen; the pool holds up to 8,000 others
place : the fifth of rows where F is foreseen to fail most; in the pool, the fifth by each model
    that placed the labelled rows
d : change of loss, candidate minus F, squared errors capped as `compare` caps them
proven : an effect on the pool of more than three of its standard errors

Candidates differ from F, but for `re-fit`, F's recipe on a bootstrap sample of its rows: as a model
it is another one, as a recipe it is not. Beside the product's answer stand other ways to look for
gains where F fails, all of them from the same arrays: smooth weights P(F fails | x), three groups
of risk with simultaneous intervals, and the place with unlabelled rows as a control variate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import t as student
from scipy.stats import ttest_1samp
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from amlb_ext.comparison import compare
from amlb_ext.comparison.models import choose_loss, predict_rows
from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.config import HardnessConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.row_losses import row_loss
from amlb_ext.hardening.weights import learn_failures, votes_of
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.claims import CONCENTRATED, CONCENTRATIONS, OVERALL, REGION
from amlb_ext.stats.weighted_mean import holm_adjusted, weighted_mean_interval
from amlb_ext.units import region as region_module
from amlb_ext.units.labelled import read_labelled_rows
from amlb_ext.units.region import place_of_failure
from amlb_ext.units.rows import judge_rows
from benchmarks.studies.engine import Rows, Seeded, Study, flat_rows, grid
from benchmarks.studies.page import Part, Table, mean_and_error, means_table
from benchmarks.studies.swap.study import (
    FITTED,
    POOL,
    Population,
    make_model,
    make_population,
    predict_all,
    read_file,
)

#: Of each model, on the labelled rows and on the pool.
Losses = dict[str, tuple[np.ndarray, np.ndarray]]
#: Standard errors of an effect that the pool proves.
PROVEN = 3.0
#: Shares of the rows in three groups of risk, from the riskiest on.
RISK_GROUPS = ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0))


class TruthSettings(Seeded):
    """What the study of truth may be told.

    Attributes
    ----------
    draws : int
        Divisions of the table into fitted, labelled and pool rows.
    table : str
        A file (.csv or .parquet) of at least 12,000 rows whose last column is the target, or
        FILE:TARGET; or the name of a table of the study ``swap``.
    n : tuple of int
        Labelled rows.
    f : tuple of str
        Kinds of F: linear, forest.
    seed : int
    """

    table: str = "made"
    n: tuple[int, ...] = (300, 1000)
    f: tuple[str, ...] = ("linear", "forest")

    @property
    def part(self) -> str:
        """A folder for each table."""
        return Path(self.table.partition(":")[0]).stem


def read_population(
    table: str, settings: TruthSettings, folder: Path | None
) -> Population:
    """Return a table of one's own, or one of the study of the swap."""
    path, _, target = table.partition(":")
    if not Path(path).is_file():
        return make_population(table, settings, folder)
    population = read_file(Path(path), target)
    if len(population.y) < FITTED + POOL + 1000:
        raise SourceError(f"{path} has {len(population.y)} rows", "12,000 are needed")
    return population


def make_models(X: pd.DataFrame, is_class: bool) -> dict[str, Any]:
    """Return unfitted models, by name."""
    models = {
        kind: make_model(kind, X, is_class, 0)
        for kind in ("linear", "forest", "boosting")
    }
    others = {
        "neighbours": KNeighborsClassifier(15) if is_class else KNeighborsRegressor(10),
        "simple": GaussianNB()
        if is_class
        else DecisionTreeRegressor(min_samples_leaf=10, random_state=0),
    }
    for name, model in others.items():
        models[name] = clone(models["linear"])
        models[name].steps[-1] = (name, model)
    return models


def judge_table(
    settings: TruthSettings,
    population: Population,
    *,
    table: str,
    F: str,
    n: int,
    draw: int,
) -> Rows:
    """Return what is said of all candidates on one division, and whether it is true."""
    is_class = population.n_classes > 0
    seed = derive_int_seed(settings.seed, table, F, draw)
    rng = random_stream(seed, "truth study", "division")
    order = rng.permutation(len(population.y))[: FITTED + n + POOL]
    fitted, here, pool = np.split(order, [FITTED, FITTED + n])
    X, y = population.X, population.y
    models = make_models(X, is_class)
    for model in models.values():
        model.fit(X.iloc[fitted], y[fitted])
    baseline = models.pop(F)
    sample = fitted[rng.integers(0, FITTED, FITTED)]
    models["re-fit"] = clone(baseline).fit(X.iloc[sample], y[sample])
    how: dict[str, Any] = {"train": (X.iloc[fitted], y[fitted]), "seed": seed}
    result = compare(baseline, models, X.iloc[here], y[here], **how)
    again = {"re-fit": models["re-fit"]}
    recipes = compare(baseline, again, X.iloc[here], y[here], claim="recipes", **how)
    losses = _losses({"F": baseline, **models}, population, here, pool)
    places = _places_of_pool(
        baseline, X.iloc[here], y[here], X.iloc[pool], losses["F"][0], seed
    )
    t_tests = [
        ttest_1samp(losses[name][0] - losses["F"][0], 0).pvalue for name in models
    ]
    p_of_t = dict(zip(models, holm_adjusted(np.array(t_tests)), strict=True))
    measured: Rows = []
    for name in models:
        found = _claims(result, name, losses, places)
        found["overall, Holm t: claims"] = float(p_of_t[name] < 0.05)
        found |= _own_gains(result, name, losses, places)
        if name == "re-fit":
            verdict = recipes.row(name, OVERALL)["verdict"]
            found["recipe called"] = float(verdict in ("better", "worse"))
        measured += flat_rows(found, "measure", candidate=name)
    return measured


def _losses(
    models: dict[str, Any],
    population: Population,
    here: np.ndarray,
    pool: np.ndarray,
) -> Losses:
    """Return each model's losses on the labelled rows and on the pool, as `compare` caps them."""
    X, y = population.X, population.y
    rows = np.concatenate([here, pool])
    losses: dict[str, np.ndarray] = {}
    for name, model in models.items():
        f = predict_all(model, X.iloc[rows], population.n_classes)
        losses[name] = row_loss(y[rows], f)
    cap = NO_CAP
    if not population.n_classes:
        cap = cap_from_baseline(losses["F"][: len(here)])
    capped = {name: cap.apply(values) for name, values in losses.items()}
    return {name: (v[: len(here)], v[len(here) :]) for name, v in capped.items()}


def _places_of_pool(
    F: Any,
    X: pd.DataFrame,
    y: np.ndarray,
    X_pool: pd.DataFrame,
    loss_f: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Return each model's P(F fails | x) of the pool, ``(models, rows)``; empty without any."""
    model = ModelAdapter(F, "F")
    rows = read_labelled_rows(X, y, models=[model])
    answers = predict_rows(model, rows)
    loss = choose_loss(rows, {"F": answers})
    learnt = []

    def keep(*args: Any) -> Any:
        learnt.append(learn_failures(*args))
        return learnt[-1]

    with patch.object(region_module, "learn_failures", keep):
        judge_rows(rows, answers, loss_f, HardnessConfig(), loss=loss, seed=seed)
    # text that the labelled rows lack is missing for their encoder
    Z = rows.encoder.transform(X_pool.astype(rows.task.features.dtypes.to_dict()))
    return np.array([votes_of(model, Z) for model in learnt])


def _mean_in_places(values: np.ndarray, places: np.ndarray) -> tuple[float, float]:
    """Return the mean over the place of each model, and its standard error."""
    means, errors = [], []
    for risk in places:
        inside = place_of_failure(risk) > 0
        means.append(values[inside].mean())
        errors.append(values[inside].std(ddof=1) / np.sqrt(inside.sum()))
    return float(np.mean(means)), float(np.mean(errors))


def _claims(
    result: ModelComparison, name: str, losses: Losses, places: np.ndarray
) -> dict[str, float]:
    """Return what the product claims of one candidate, and whether it is true."""
    d, loss_f = losses[name][1] - losses["F"][1], losses["F"][1]
    found: dict[str, float] = {}
    questions = {"overall": (OVERALL, d.mean(), d.std(ddof=1) / np.sqrt(len(d)))}
    if len(places):
        questions["where F fails"] = (REGION, *_mean_in_places(d, places))
    for label, (question, truth, error) in questions.items():
        row = result.row(name, question)
        claims = row["verdict"] in ("better", "worse")
        is_wrong = claims and (row["verdict"] == "better") != (truth < 0)
        found[f"{label}: claims"] = float(claims)
        found[f"{label}: false by sign"] = float(is_wrong)
        if np.isfinite(row["low"]):
            # the pool's own error is part of the distance
            half = (row["high"] - row["low"]) / 2
            wide = np.hypot(half, 1.96 * error)
            found[f"{label}: covered"] = float(abs(row["difference"] - truth) <= wide)
        if abs(truth) > PROVEN * error:
            found[f"{label}: proven, found"] = float(claims)
    row = result.row(name, CONCENTRATED)
    if row and len(places):
        there = truth / _mean_in_places(loss_f, places)[0]
        outside = [place_of_failure(risk) == 0 for risk in places]
        elsewhere = np.mean([d[o].mean() / loss_f[o].mean() for o in outside])
        said = row["verdict"] in CONCENTRATIONS
        found["differs from elsewhere: claims"] = float(said)
        if said:
            is_lower = row["difference"] < 0
            found["differs from elsewhere: false by sign"] = float(
                is_lower != (there < elsewhere)
            )
    if result.capping:
        row = result.row(name, OVERALL)
        plain = (row["rmse"] / row["rmse_f"]) ** 2 - 1
        found["plain and capped differ in sign"] = float(plain * row["relative"] < 0)
    return found


def _own_gains(
    result: ModelComparison, name: str, losses: Losses, places: np.ndarray
) -> dict[str, float]:
    """Return whether some ways find a gain where F fails that is none over all rows.

    Of gains that all rows have, too, nothing is asked: the first question finds those.
    """
    risk = result.rows["risk"].to_numpy()
    if not len(places) or not np.isfinite(risk).all():
        return {}
    d, pool_d = (losses[name][k] - losses["F"][k] for k in (0, 1))
    truth, error = _mean_in_places(pool_d, places)
    if truth < 0 and (truth > -PROVEN * error or pool_d.mean() < 0):
        return {}
    ways = {
        "the place": _one_sided(d, place_of_failure(risk)),
        "smooth weights": _one_sided(d, risk),
        "three groups, simultaneous": _best_of_groups(d, risk),
        "unlabelled rows": _with_unlabelled(d, risk, places),
    }
    key = "own gain there, found by" if truth < 0 else "no gain there, one claimed by"
    return {f"{key} {way}": float(p < 0.05) for way, p in ways.items()}


def _one_sided(d: np.ndarray, weights: np.ndarray) -> float:
    """Return the one-sided p-value of a weighted mean below 0."""
    estimate = weighted_mean_interval(d, weights)
    return float(student.cdf(estimate.point / estimate.se, estimate.df))


def _best_of_groups(d: np.ndarray, risk: np.ndarray) -> float:
    """Return the smallest p-value of three groups of risk, times three."""
    rank = (np.argsort(np.argsort(-risk, kind="stable")) + 0.5) / len(risk)
    groups = [
        ((rank >= low) & (rank < high)).astype(float) for low, high in RISK_GROUPS
    ]
    return 3 * min(_one_sided(d, group) for group in groups)


def _with_unlabelled(d: np.ndarray, risk: np.ndarray, places: np.ndarray) -> float:
    """Return the p-value with the share of risk among unlabelled rows as a control variate."""
    inside = place_of_failure(risk)
    slope = np.cov(d[inside > 0], risk[inside > 0])
    beta = slope[0, 1] / slope[1, 1] if slope[1, 1] > 0 else 0.0
    there = np.mean(
        [risk_of[place_of_failure(risk_of) > 0].mean() for risk_of in places]
    )
    return _one_sided(d - beta * (risk - there), inside)


def _summarize(rows: pd.DataFrame, settings: TruthSettings) -> list[Part]:
    rows = rows.assign(who=np.where(rows["candidate"] == "re-fit", "re-fit", "others"))
    frame = means_table(
        rows.assign(of="n = " + rows["n"] + ", " + rows["who"]),
        "measure",
        "of",
        text=lambda values: f"{mean_and_error(values)} of {len(values)}",
    )
    note = "Shares, with standard errors; draws of one table share its rows."
    return [Table(heading="Claims and truth", frame=frame, note=note)]


STUDIES = [
    Study(
        name="truth",
        title="Is what compare says true, and of its own? One table, its rest as the truth",
        group="truth",
        settings=TruthSettings(draws=5),
        cells=grid(table=lambda asked: (asked.table,), F="f", n="n", draw="draws"),
        load=read_population,
        names="table",
        compute=judge_table,
        summarize=_summarize,
        small={"draws": 1, "n": (300,), "f": ("linear",)},
        files=True,
    )
]
