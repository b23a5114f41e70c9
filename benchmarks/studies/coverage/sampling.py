"""How often ``hardsynth estimate`` is told a sample that was not drawn at random.

Notation
--------
t : (n,) time of a row, uniform on [0, 1]; columns and target drift with it
S : n labelled rows by one of the ``designs``; the training rows and the rows without labels are
    drawn at random over all times unless a design says otherwise
refused : share of the draws of S for which nothing is quoted
coverage : share of the quoted intervals that hold the true error

Designs: ``random``; ``by_class`` half of the rows from each class (of a regression ``by_target``,
mostly large targets), without and with ``--class-prior train``; ``by_score`` rows of which the
model is unsure (of a regression, those with extreme predictions); ``early`` rows of the first three
tenths of the time; ``outdated`` the same, with the training rows of that time, too, and the error
asked for on the others: training rows cannot tell that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.answers import EstimateAnswers
from amlb_ext.estimate.inputs import EstimateRequest, read_inputs
from amlb_ext.sources.table import Table as RowTable
from amlb_ext.stats.bounded_loss import LOSSES, BoundedLoss, absolute_loss, squared_loss
from benchmarks.studies.engine import (
    Labels,
    Rows,
    Seeded,
    Study,
    asked_of,
    flat_rows,
    grid,
)
from benchmarks.studies.page import Part, Table, text_tables

#: What is given beside the labelled rows.
GIVEN = ("nothing", "unlabelled", "train", "train and unlabelled")
DESIGNS = {
    "classes": (
        "random",
        "by_class",
        "by_class, priors",
        "by_score",
        "early",
        "outdated",
    ),
    "numbers": ("random", "by_target", "by_score", "early", "outdated"),
}
#: Rows of the training set, and without labels.
TRAIN, UNLABELLED = 800, 2_000
#: Rows to draw S from, and to measure the true error on.
POOL, TRUTH = 4_000, 20_000
#: Of the regression target.
RANGE = (-12.0, 30.0)
#: The times of ``early`` and ``outdated``.
EARLY = 0.3


class SamplingSettings(Seeded):
    """What the study of samples may be told.

    Attributes
    ----------
    draws : int
        Per design; each has its own training rows and model.
    rows : int
        Labelled rows.
    level : float
    seed : int
    kinds : tuple of str
    designs : tuple of str
        Some of the designs; empty for all.
    """

    chooses: ClassVar[frozenset[str]] = frozenset({"draws", "kinds", "designs"})

    rows: int = Field(200, ge=1)
    level: float = Field(0.95, gt=0, lt=1)
    kinds: tuple[Literal["classes", "numbers"], ...] = ("classes", "numbers")
    designs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A model, the rows around it, and its true errors by loss; S is drawn from ``pool``."""

    model: Any
    train: pd.DataFrame
    pool: pd.DataFrame
    unlabelled: pd.DataFrame
    errors: dict[str, float]


def _cells(settings: SamplingSettings, _: Path | None) -> Iterator[Labels]:
    for kind in settings.kinds:
        designs = asked_of(DESIGNS[kind], settings.designs)
        yield from grid(kind=(kind,), design=designs, draw="draws")(settings)


def _summarize(rows: pd.DataFrame, settings: SamplingSettings) -> list[Part]:
    """Return shares refused, coverages and widths over the draws."""
    keys = ["kind", "loss", "design", "given"]
    wide = rows.pivot_table(
        index=[*keys, "draw"], columns="figure", values="value", sort=False
    ).reset_index()
    # only what is quoted can hold
    quoted = wide.reindex(columns=[*wide.columns.union(["width"])])
    for figure in ("covers", "width"):
        quoted.loc[quoted["refused"] == 1, figure] = np.nan
    means = quoted.groupby(keys, sort=False).agg(
        draws=("refused", "size"),
        refused=("refused", "mean"),
        coverage=("covers", "mean"),
        width=("width", "mean"),
    )
    figures = means.reset_index()
    note = "Share of draws for which nothing is quoted, and how often what is quoted holds."
    texts = []
    for row in figures.itertuples():
        text = f"{row.refused:.0%} refused"
        texts.append(text if np.isnan(row.coverage) else f"{text}, {row.coverage:.2f}")
    by = ["kind", "loss"]
    return [
        Table(heading="Samples", note=note, data=figures, file="sampling.csv"),
        # class priors need the training rows, so this design lacks two columns
        *text_tables(figures, texts, by, index="design", columns="given"),
    ]


def judge_sample(
    settings: SamplingSettings, *, kind: str, design: str, draw: int
) -> Rows:
    """Return, by loss and what is given beside S, whether something is quoted and holds."""
    rng = random_stream(settings.seed, "sampling", kind, design, draw)
    scene = _make_scene(kind, design, rng)
    # S, without repeats
    weights = _design_weights(scene, design)
    chances = weights / weights.sum()
    rows = rng.choice(len(scene.pool), settings.rows, replace=False, p=chances)
    labelled = RowTable("labelled", scene.pool.iloc[rows].reset_index(drop=True))
    unlabelled = RowTable("unlabelled", scene.unlabelled.drop(columns="y"))
    takes_priors = design == "by_class, priors"
    records: Rows = []
    for train in (None, RowTable("train", scene.train)):
        if takes_priors and train is None:
            continue
        request = EstimateRequest(
            model=scene.model,
            data=labelled,
            train=train,
            target="y",
            target_range=None if kind == "classes" else RANGE,
            class_prior="train" if takes_priors else {},
        )
        answers = EstimateAnswers(read_inputs(request), settings.level, 0)
        answers.from_labels()
        without_rows, with_rows = GIVEN[:2] if train is None else GIVEN[2:]
        records += _judge_answers(answers, scene, given=without_rows)
        answers.compare_unlabelled(unlabelled)
        records += _judge_answers(answers, scene, given=with_rows)
    return records


def _judge_answers(answers: EstimateAnswers, scene: Scene, *, given: str) -> Rows:
    """Return for each loss whether something is quoted, and whether that holds."""
    records: Rows = []
    for loss in _losses_of(scene.model):
        quoted = answers.with_loss(loss).report("", "").recommended
        theta = scene.errors[loss.name]
        figures = {
            "refused": quoted is None,
            "covers": quoted is not None and quoted.low <= theta <= quoted.high,
            "width": math.nan if quoted is None else quoted.width,
        }
        records += flat_rows(figures, "figure", loss=loss.name, given=given)
    return records


def _losses_of(model: Any) -> list[BoundedLoss]:
    if hasattr(model, "predict_proba"):
        return [LOSSES["zero_one"], LOSSES["brier"], LOSSES["log_loss"]]
    return [squared_loss(*RANGE), absolute_loss(*RANGE)]


def _true_error(model: Any, rows: pd.DataFrame, loss: BoundedLoss) -> float:
    X = rows.drop(columns="y")
    y = rows["y"].to_numpy()
    if loss.needs == "numbers":
        return float(loss(y, model.predict(X)).mean())
    # losses of probabilities take the codes of the labels, in the model's order
    codes = np.searchsorted(model.classes_, y)
    return float(loss(codes, model.predict_proba(X)).mean())


def _make_scene(kind: str, design: str, rng: np.random.Generator) -> Scene:
    """Draw all rows and fit the model."""
    draw_rows = _draw_classes if kind == "classes" else _draw_numbers
    is_outdated = design == "outdated"
    last_train = EARLY if is_outdated else 1.0
    last_pool = EARLY if is_outdated or design == "early" else 1.0
    # the error is asked for on the times that an outdated sample has not seen
    first_truth = EARLY if is_outdated else 0.0
    # one stream, so the order of the draws below is part of every number
    train = draw_rows(TRAIN, rng, first=0.0, last=last_train)
    pool = draw_rows(POOL, rng, first=0.0, last=last_pool)
    unlabelled = draw_rows(UNLABELLED, rng, first=first_truth, last=1.0)
    truth = draw_rows(TRUTH, rng, first=first_truth, last=1.0)

    if kind == "classes":
        model = make_pipeline(StandardScaler(), LogisticRegression())
    else:
        model = make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge())
    model.fit(train.drop(columns="y"), train["y"])
    errors = {}
    for loss in _losses_of(model):
        errors[loss.name] = _true_error(model, truth, loss)
    return Scene(
        model=model,
        train=train,
        pool=pool,
        unlabelled=unlabelled,
        errors=errors,
    )


def _design_weights(scene: Scene, design: str) -> np.ndarray:
    """Return how likely a design labels each row of the pool, up to a factor."""
    y = scene.pool["y"]
    if design.startswith("by_class"):
        # both classes have the same weight in all
        is_yes = (y == "yes").to_numpy()
        return np.where(is_yes, 1 / is_yes.sum(), 1 / (~is_yes).sum())
    if design == "by_target":
        return np.exp((y - y.mean()) / y.std()).to_numpy()
    if design == "by_score":
        X = scene.pool.drop(columns="y")
        if hasattr(scene.model, "predict_proba"):
            # 1.02, so that rows of which the model is certain stay possible
            return (1.02 - scene.model.predict_proba(X).max(axis=1)) ** 2
        f = scene.model.predict(X)
        return (f - np.median(f)) ** 2
    return np.ones(len(scene.pool))


def _draw_classes(
    n: int, rng: np.random.Generator, *, first: float, last: float
) -> pd.DataFrame:
    """Draw rows of two classes, about 22 % yes; the small class moves closer with the time."""
    t = rng.uniform(first, last, n)
    is_yes = rng.random(n) < 0.22
    X = rng.standard_normal((n, 5))
    # time halves what the first column tells of the class, and moves the second
    X[:, 0] += 2.0 * is_yes * (1 - 0.5 * t)
    X[:, 1] += 1.0 * is_yes + 1.2 * t
    table = pd.DataFrame(X, columns=list("abcde"))
    # a category that tells the classes apart a little
    chance = 0.3 + 0.4 * is_yes
    kind = np.where(rng.random(n) < chance, 1, 0)
    return table.assign(kind=kind, y=np.where(is_yes, "yes", "no"))


def _draw_numbers(
    n: int, rng: np.random.Generator, *, first: float, last: float
) -> pd.DataFrame:
    """Draw rows of a regression whose noise grows with a column and with the time."""
    t = rng.uniform(first, last, n)
    X = rng.uniform(-1.5, 1.5, (n, 5))
    X[:, 1] += t
    scale = 0.3 + 0.5 * np.abs(X[:, 0]) + 0.8 * t
    noise = scale * rng.standard_normal(n)
    y = 3 * X[:, 0] + 2 * X[:, 1] + X[:, 2] ** 2 + noise
    return pd.DataFrame(X, columns=list("abcde")).assign(y=y)


STUDIES = (
    Study(
        name="sampling",
        title="How often estimate detects labelled rows that were not drawn at random",
        group="intervals",
        settings=SamplingSettings(draws=100),
        cells=_cells,
        compute=judge_sample,
        summarize=_summarize,
        small={"draws": 2, "designs": ("random", "by_class, priors")},
    ),
)
