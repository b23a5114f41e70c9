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
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from amlb_ext.core.display import markdown_table
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.answers import EstimateAnswers
from amlb_ext.estimate.inputs import EstimateRequest, read_inputs
from benchmarks.studies.engine import (
    Repetition,
    hash_key,
    open_results_folder,
    run_repetitions,
)
from amlb_ext.stats.bounded_loss import LOSSES, BoundedLoss, absolute_loss, squared_loss

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
COLUMNS = ["kind", "loss", "design", "given", "draws", "refused", "coverage", "width"]
#: Folder of the results of :class:`Draw`.
DRAWS = "draws"


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One draw of training rows, a model and S: one repetition of the engine.

    Attributes
    ----------
    kind : {'classes', 'numbers'}
    design : str
    n : int
        Rows of S.
    level : float
    seed, number : int
    """

    kind: str
    design: str
    n: int
    level: float
    seed: int
    number: int


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A model, the rows around it, and its true errors by loss; S is drawn from ``pool``."""

    model: Any
    train: pd.DataFrame
    pool: pd.DataFrame
    unlabelled: pd.DataFrame
    errors: dict[str, float]


def sampling_study(
    draws: int = 100,
    n: int = 200,
    level: float = 0.95,
    seed: int = 0,
    kinds: Sequence[str] = ("classes", "numbers"),
    designs: Sequence[str] | None = None,
    *,
    out: Path | None = None,
    workers: int = 0,
    quiet: bool = False,
) -> pd.DataFrame:
    """Return how often samples are refused, and how often what is quoted holds.

    Parameters
    ----------
    draws : int
        Per design; each has its own training rows and model.
    n : int
        Labelled rows.
    level : float
    seed : int
    kinds : sequence of str
        ``classes``, ``numbers``.
    designs : sequence of str, optional
        All when omitted.
    out : Path, optional
        Folder that keeps the results, so that the same call continues a study that was stopped.
    workers : int
        Processes; 0 for every core.
    quiet : bool

    Returns
    -------
    DataFrame
        One row per kind, loss, design and what is given beside the labelled rows.

    Raises
    ------
    ConfigError
        For fewer than one draw.
    """
    if draws < 1:
        raise ConfigError(f"{draws} draws", "give at least 1")
    planned = []
    for kind in kinds:
        for design in DESIGNS[kind]:
            if designs is not None and design not in designs:
                continue
            for number in range(draws):
                draw = Draw(
                    kind=kind,
                    design=design,
                    n=n,
                    level=level,
                    seed=seed,
                    number=number,
                )
                planned.append(draw)
    with open_results_folder(out) as folder:
        repetitions = [_repeat_draw(draw, folder) for draw in planned]
        results = run_repetitions(
            repetitions,
            name="sampling",
            unit="draw",
            workers=workers,
            quiet=quiet,
        )
    records: list[dict[str, Any]] = []
    for result in results:
        records += result["records"]
    return _summarize_records(pd.DataFrame(records))


def _repeat_draw(draw: Draw, folder: Path) -> Repetition:
    # a design's name has a comma and a space, which a file's name should not have
    design = draw.design.replace(", ", "_")
    return Repetition(
        path=folder / DRAWS / f"{draw.kind}_{design}_{draw.number}.json",
        key=hash_key(asdict(draw)),
        compute=compute_draw,
        arguments=(draw,),
    )


def _summarize_records(records: pd.DataFrame) -> pd.DataFrame:
    """Return shares refused, coverages and widths over the draws, in order of appearance."""
    rows = []
    keys = ["kind", "loss", "design", "given"]
    for key, group in records.groupby(keys, sort=False):
        # only what is quoted can hold
        quoted = group[~group["refused"].astype(bool)]
        row = dict(zip(keys, key, strict=True))
        row |= {
            "draws": len(group),
            "refused": group["refused"].mean(),
            "coverage": quoted["covers"].mean() if len(quoted) else math.nan,
            "width": quoted["width"].mean() if len(quoted) else math.nan,
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def sampling_markdown(table: pd.DataFrame) -> str:
    """Return the study as Markdown: share refused, coverage among those quoted.

    Examples
    --------
    >>> row = ["classes", "brier", "random", "train", 100, 0.01, 0.95, 0.1]
    >>> print(sampling_markdown(pd.DataFrame([row], columns=COLUMNS)))
    ## classes, brier
    <BLANKLINE>
    | design | train |
    | --- | --- |
    | random | 1 % refused, .95 |
    <BLANKLINE>
    """
    lines: list[str] = []
    for (kind, loss), part in table.groupby(["kind", "loss"], sort=False):
        given = list(dict.fromkeys(part["given"]))
        rows = []
        for design, group in part.groupby("design", sort=False):
            row_by_given = {row.given: row for row in group.itertuples()}
            texts = [design]
            for name in given:
                # class priors need the training rows, so this design lacks two columns
                is_run = name in row_by_given
                texts.append(_refusal_text(row_by_given[name]) if is_run else "")
            rows.append(texts)
        headers = ["design", *given]
        lines += [f"## {kind}, {loss}", "", markdown_table(headers, rows), ""]
    return "\n".join(lines)


def _refusal_text(row: Any) -> str:
    refused = f"{100 * row.refused:.0f} % refused"
    if np.isnan(row.coverage):
        return refused
    coverage = f"{row.coverage:.2f}".removeprefix("0")
    return f"{refused}, {coverage}"


def compute_draw(draw: Draw) -> dict[str, Any]:
    """Return one record per loss and per what is given beside S, under ``records``."""
    key = ("sampling", draw.kind, draw.design, draw.number)
    rng = random_stream(draw.seed, *key)
    scene = _make_scene(draw.kind, draw.design, rng)
    labelled = _draw_labelled(scene, draw.design, draw.n, rng)
    # the command reads files, and so does this study of it
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        labelled.to_csv(folder / "labelled.csv", index=False)
        scene.train.to_csv(folder / "train.csv", index=False)
        unlabelled = scene.unlabelled.drop(columns="y")
        unlabelled.to_csv(folder / "unlabelled.csv", index=False)
        (folder / "model.pkl").write_bytes(pickle.dumps(scene.model))
        return {"records": _estimate_from_files(folder, scene, draw)}


def _estimate_from_files(
    folder: Path, scene: Scene, draw: Draw
) -> list[dict[str, Any]]:
    """Return the records of ``hardsynth estimate`` without and with training rows."""
    takes_priors = draw.design == "by_class, priors"
    records = []
    for train in (None, folder / "train.csv"):
        if takes_priors and train is None:
            continue
        request = EstimateRequest(
            model=str(folder / "model.pkl"),
            data=folder / "labelled.csv",
            train=train,
            target="y",
            target_range=RANGE if draw.kind == "numbers" else None,
            class_prior="train" if takes_priors else {},
            trust_pickle=True,  # written above
        )
        answers = EstimateAnswers(read_inputs(request), draw.level, 0)
        answers.from_labels()
        without_rows, with_rows = GIVEN[:2] if train is None else GIVEN[2:]
        records += _judge_answers(answers, scene, draw, given=without_rows)
        answers.compare_unlabelled(folder / "unlabelled.csv")
        records += _judge_answers(answers, scene, draw, given=with_rows)
    return records


def _judge_answers(
    answers: EstimateAnswers, scene: Scene, draw: Draw, *, given: str
) -> list[dict[str, Any]]:
    """Return for each loss whether something is quoted, and whether that holds."""
    records = []
    for loss in _losses_of_kind(draw.kind):
        quoted = answers.with_loss(loss).report("", "").recommended
        theta = scene.errors[loss.name]
        records.append(
            {
                "kind": draw.kind,
                "loss": loss.name,
                "design": draw.design,
                "given": given,
                "refused": quoted is None,
                "covers": quoted is not None and quoted.low <= theta <= quoted.high,
                "width": math.nan if quoted is None else quoted.width,
            }
        )
    return records


def _losses_of_kind(kind: str) -> list[BoundedLoss]:
    if kind == "classes":
        return [LOSSES["zero_one"], LOSSES["brier"], LOSSES["log"]]
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
    for loss in _losses_of_kind(kind):
        errors[loss.name] = _true_error(model, truth, loss)
    return Scene(
        model=model,
        train=train,
        pool=pool,
        unlabelled=unlabelled,
        errors=errors,
    )


def _draw_labelled(
    scene: Scene, design: str, n: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Draw S from the pool, without repeats."""
    weights = _design_weights(scene, design)
    chances = weights / weights.sum()
    rows = rng.choice(len(scene.pool), n, replace=False, p=chances)
    return scene.pool.iloc[rows]


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
