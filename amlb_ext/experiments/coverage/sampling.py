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

import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from tqdm import tqdm

from amlb_ext.core.display import markdown_table
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.answers import EstimateAnswers
from amlb_ext.estimate.inputs import EstimateRequest, read_inputs
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
#: Rows of the training set, without labels, to draw S from, and to measure the true error on.
TRAIN, UNLABELLED, POOL, TRUTH = 800, 2_000, 4_000, 20_000
#: Of the regression target.
RANGE = (-12.0, 30.0)
#: The times of ``early`` and ``outdated``.
EARLY = 0.3
COLUMNS = ["kind", "loss", "design", "given", "draws", "refused", "coverage", "width"]


@dataclass(frozen=True)
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
    records: list[dict[str, Any]] = []
    chosen = {
        kind: [d for d in DESIGNS[kind] if designs is None or d in designs]
        for kind in kinds
    }
    total = draws * sum(len(some) for some in chosen.values())
    with (
        tqdm(total=total, desc="sampling", unit="draw", disable=quiet) as bar,
        tempfile.TemporaryDirectory() as folder,
    ):
        for kind in kinds:
            for design in chosen[kind]:
                for r in range(draws):
                    rng = random_stream(seed, "sampling", kind, design, r)
                    records += _one_draw(Path(folder), kind, design, n, level, rng)
                    bar.update()
    table = pd.DataFrame(records)
    rows = []
    for key, part in table.groupby(["kind", "loss", "design", "given"], sort=False):
        quoted = part[~part["refused"]]
        row = dict(zip(COLUMNS, key, strict=False))
        row["draws"] = len(part)
        row["refused"] = part["refused"].mean()
        row["coverage"] = quoted["covers"].mean() if len(quoted) else np.nan
        row["width"] = quoted["width"].mean() if len(quoted) else np.nan
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
    lines = []
    for (kind, loss), part in table.groupby(["kind", "loss"], sort=False):
        given = list(dict.fromkeys(part["given"]))
        rows = []
        for design, group in part.groupby("design", sort=False):
            by_given = {row.given: row for row in group.itertuples()}
            cells = [
                _refusal_text(by_given[name]) if name in by_given else ""
                for name in given
            ]
            rows.append([design, *cells])
        lines += [
            f"## {kind}, {loss}",
            "",
            markdown_table(["design", *given], rows),
            "",
        ]
    return "\n".join(lines)


def _refusal_text(row: Any) -> str:
    told = f"{100 * row.refused:.0f} % refused"
    if np.isnan(row.coverage):
        return told
    return f"{told}, {f'{row.coverage:.2f}'.removeprefix('0')}"


def _one_draw(
    folder: Path, kind: str, design: str, n: int, level: float, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return a record per loss and per what is given beside S."""
    scene = _scene(kind, design, rng)
    _draw(scene, design, n, rng).to_csv(folder / "labelled.csv", index=False)
    scene.train.to_csv(folder / "train.csv", index=False)
    scene.unlabelled.drop(columns="y").to_csv(folder / "unlabelled.csv", index=False)
    (folder / "model.pkl").write_bytes(pickle.dumps(scene.model))
    records = []
    for train in (None, folder / "train.csv"):
        if design == "by_class, priors" and train is None:
            continue
        asked = EstimateRequest(
            model=str(folder / "model.pkl"),
            data=folder / "labelled.csv",
            train=train,
            target="y",
            target_range=RANGE if kind == "numbers" else None,
            class_prior="train" if design == "by_class, priors" else {},
            trust_pickle=True,
        )
        work = EstimateAnswers(read_inputs(asked), level, 0)
        work.from_labels()
        alone, both = GIVEN[:2] if train is None else GIVEN[2:]
        records += _answers(work, scene, kind, design=design, given=alone)
        work.compare_unlabelled(folder / "unlabelled.csv")
        records += _answers(work, scene, kind, design=design, given=both)
    return records


def _answers(
    work: EstimateAnswers, scene: Scene, kind: str, *, design: str, given: str
) -> list[dict[str, Any]]:
    """Return for each loss whether something is quoted, and whether that holds."""
    records = []
    for loss in _losses(kind):
        best = work.with_loss(loss).report("", "").recommended
        theta = scene.errors[loss.name]
        records.append(
            {
                "kind": kind,
                "loss": loss.name,
                "design": design,
                "given": given,
                "refused": best is None,
                "covers": best is not None and best.low <= theta <= best.high,
                "width": np.nan if best is None else best.width,
            }
        )
    return records


def _losses(kind: str) -> list[BoundedLoss]:
    if kind == "classes":
        return [LOSSES["zero_one"], LOSSES["brier"], LOSSES["log"]]
    return [squared_loss(*RANGE), absolute_loss(*RANGE)]


def _true_error(model: Any, rows: pd.DataFrame, loss: BoundedLoss) -> float:
    X, y = rows.drop(columns="y"), rows["y"]
    if loss.needs == "numbers":
        return float(loss(y.to_numpy(), model.predict(X)).mean())
    codes = np.searchsorted(model.classes_, y.to_numpy())
    return float(loss(codes, model.predict_proba(X)).mean())


def _scene(kind: str, design: str, rng: np.random.Generator) -> Scene:
    """Draw all rows and fit the model."""
    make = _classes if kind == "classes" else _numbers
    outdated = design == "outdated"
    is_early = outdated or design == "early"
    train = make(TRAIN, rng, 0.0, EARLY if outdated else 1.0)
    pool = make(POOL, rng, 0.0, EARLY if is_early else 1.0)
    later = EARLY if outdated else 0.0
    X, y = train.drop(columns="y"), train["y"]
    if kind == "classes":
        model = make_pipeline(StandardScaler(), LogisticRegression())
    else:
        model = make_pipeline(PolynomialFeatures(2), StandardScaler(), Ridge())
    model.fit(X, y)
    unlabelled = make(UNLABELLED, rng, later, 1.0)
    truth = make(TRUTH, rng, later, 1.0)
    errors = {loss.name: _true_error(model, truth, loss) for loss in _losses(kind)}
    return Scene(model, train, pool, unlabelled, errors)


def _draw(scene: Scene, design: str, n: int, rng: np.random.Generator) -> pd.DataFrame:
    pool, X = scene.pool, scene.pool.drop(columns="y")
    weight = np.ones(len(pool))
    if design.startswith("by_class"):
        is_yes = (pool["y"] == "yes").to_numpy()
        weight = np.where(is_yes, 1 / is_yes.sum(), 1 / (~is_yes).sum())
    elif design == "by_target":
        weight = np.exp((pool["y"] - pool["y"].mean()) / pool["y"].std()).to_numpy()
    elif design == "by_score" and hasattr(scene.model, "predict_proba"):
        weight = (1.02 - scene.model.predict_proba(X).max(axis=1)) ** 2
    elif design == "by_score":
        f = scene.model.predict(X)
        weight = (f - np.median(f)) ** 2
    rows = rng.choice(len(pool), n, replace=False, p=weight / weight.sum())
    return pool.iloc[rows]


def _classes(
    n: int, rng: np.random.Generator, first: float, last: float
) -> pd.DataFrame:
    """Rows of two classes, about 22 % yes; the small class moves closer with the time."""
    t = rng.uniform(first, last, n)
    y = rng.random(n) < 0.22
    X = rng.standard_normal((n, 5))
    X[:, 0] += 2.0 * y * (1 - 0.5 * t)
    X[:, 1] += 1.0 * y + 1.2 * t
    table = pd.DataFrame(X, columns=list("abcde"))
    kind = np.where(rng.random(n) < 0.3 + 0.4 * y, 1, 0)
    return table.assign(kind=kind, y=np.where(y, "yes", "no"))


def _numbers(
    n: int, rng: np.random.Generator, first: float, last: float
) -> pd.DataFrame:
    """Rows of a regression whose noise grows with a column and with the time."""
    t = rng.uniform(first, last, n)
    X = rng.uniform(-1.5, 1.5, (n, 5))
    X[:, 1] += t
    noise = (0.3 + 0.5 * np.abs(X[:, 0]) + 0.8 * t) * rng.standard_normal(n)
    y = 3 * X[:, 0] + 2 * X[:, 1] + X[:, 2] ** 2 + noise
    return pd.DataFrame(X, columns=list("abcde")).assign(y=y)
