"""Does what is said of a swap hold? Coverage, false alarms and power, where the truth is known.

Notation
--------
n : labelled rows that no model has seen; the pool holds as many others as the table has
d : change of loss, G minus F; the truth is its mean over the pool
pairs : ``linear to boosting`` and ``forest to boosting``, which differ; ``forest again``, an
    exchangeable bootstrap re-fit, ``forest, other seed``, and ``better``, which is nearer to the
    target on every row: no harm to be found; ``planted``, F with noise in one named group
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.row_losses import row_loss
from amlb_ext.stats.bounded_loss import NO_CAP, ErrorCap, cap_from_baseline
from amlb_ext.swap.contrast import Contrast, RowContrast
from amlb_ext.swap.foresee import (
    TableCoder,
    foreseen_change,
    make_trees,
    predictions_as_columns,
)
from amlb_ext.swap.harm import GROUPS, find_harm, rows_needed, worst_of_refit
from amlb_ext.swap.remedy import find_remedy
from amlb_ext.swap.segments import Segment, judge_segments, read_segments
from amlb_ext.swap.words import BOUND_SHARE, bound_harm, find_words, list_conditions
from benchmarks.studies.engine import Cell, Plan, Rows, Settings, Study
from benchmarks.studies.page import Part, Table, mean_and_error

PAIRS = (
    "linear to boosting",
    "forest to boosting",
    "forest again",
    "forest, other seed",
    "better",
    "planted",
)
#: Rows that models are fitted on, and of the pool.
FITTED, POOL = 3000, 8000
REFITS = 5
#: Tables of a folder: file, target, columns that are left out.
FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "bank": ("bank-full.csv", "y", ()),
    "bike": ("hour.csv", "cnt", ("instant", "dteday", "casual", "registered")),
    "housing": ("housing.csv", "median_house_value", ()),
    "cpu_act": ("cpu_act.parquet", "", ()),
    "elevators": ("elevators.parquet", "", ()),
    "kin8nm": ("kin8nm.parquet", "", ()),
    "letter": ("letter.parquet", "", ()),
    "nursery": ("nursery.parquet", "", ()),
    "pendigits": ("pendigits.parquet", "", ()),
}


class SwapSettings(Settings):
    """What the study of the safe swap may be told.

    Attributes
    ----------
    draws : int
        Divisions of each table into fitted, labelled and pool rows.
    n : tuple of int
        Labelled rows.
    tables : tuple of str
        ``made`` and ``made classes``, which need no file, and those of ``--data``.
    pairs : tuple of str
    size : float
        Planted harm, as a share of F's mean loss.
    seed : int
    """

    draws: int = Field(20, ge=1)
    n: tuple[int, ...] = (500, 1500)
    tables: tuple[str, ...] = ("made", "made classes", *FILES)
    pairs: tuple[str, ...] = PAIRS
    size: float = 1.0
    seed: int = Field(0, ge=0)


@dataclass(frozen=True, kw_only=True)
class Population:
    """A table: X, and y as numbers or class codes."""

    X: pd.DataFrame
    y: np.ndarray
    n_classes: int = 0


@cache
def make_population(name: str, folder: str) -> Population:
    """Return a table, made or read."""
    if name in ("made", "made classes"):
        rng = random_stream(0, "swap study", name)
        numbers = rng.normal(size=(12_500, 6))
        X = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(6)])
        X["region"] = rng.choice(["north", "south", "east", "west", "sea"], len(X))
        signal = X["x0"] + np.where(X["region"] == "sea", 2, 0.5) * X["x1"] ** 2
        signal = signal + np.sin(2 * X["x2"]) * X["x3"]
        y = (signal + rng.normal(size=len(X))).to_numpy()
        if name == "made":
            return Population(X=X, y=y)
        codes = np.digitize(y, np.quantile(y, [0.4, 0.8]))
        return Population(X=X, y=codes, n_classes=3)
    file, target, dropped = FILES[name]
    found = sorted(Path(folder).rglob(file)) if folder else []
    if not found:
        raise SourceError(f"{name} needs a file, {file}", "give its folder as --data")
    frame = (
        pd.read_parquet(found[0]) if file.endswith("parquet") else pd.read_csv(found[0])
    )
    target = target or str(frame.columns[-1])
    frame = frame[frame[target].notna()].sample(frac=1, random_state=0)
    frame = frame.iloc[:20_000].reset_index(drop=True)
    y, X = frame[target], frame.drop(columns=[target, *dropped])
    if pd.api.types.is_numeric_dtype(y) and y.nunique() > 30:
        return Population(X=X, y=y.to_numpy(dtype=float))
    codes, classes = pd.factorize(y, sort=True)
    return Population(X=X, y=codes, n_classes=len(classes))


def make_model(kind: str, X: pd.DataFrame, is_classification: bool, seed: int) -> Any:
    """Return an unfitted model: ``linear``, ``forest`` or ``boosting``."""
    texts = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    numbers = [c for c in X if c not in texts]
    coded = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), texts),
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    )
    models: dict[str, Callable[[], Any]] = {
        "linear": lambda: (
            LogisticRegression(max_iter=300) if is_classification else Ridge()
        ),
        "forest": lambda: (
            RandomForestClassifier(50, min_samples_leaf=2, random_state=seed)
            if is_classification
            else RandomForestRegressor(50, min_samples_leaf=2, random_state=seed)
        ),
        "boosting": lambda: (
            HistGradientBoostingClassifier(max_iter=80, random_state=seed)
            if is_classification
            else HistGradientBoostingRegressor(random_state=seed)
        ),
    }
    return make_pipeline(coded, models[kind]())


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """What F, G and F's bootstrap re-fits predict for all rows but the fitted ones."""

    X: pd.DataFrame
    y: np.ndarray
    f: np.ndarray
    g: np.ndarray
    refits: list[np.ndarray]
    cap: ErrorCap = NO_CAP

    def loss(self, f: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return losses of some rows, squared errors capped as ``compare`` caps them."""
        return self.cap.apply(row_loss(self.y[rows], f[rows]))


def predict_pair(
    population: Population, pair: str, size: float, seed: int
) -> Predictions:
    """Fit F, G and the re-fits on one division of a table."""
    rng = random_stream(seed, "swap study", "division")
    order = rng.permutation(len(population.y))
    fitted, rest = order[:FITTED], order[FITTED : FITTED + POOL + 1500]
    X, y = population.X.iloc[fitted], population.y[fitted]
    X_rest, y_rest = population.X.iloc[rest].reset_index(drop=True), population.y[rest]

    def answer(kind: str, rows: np.ndarray, model_seed: int) -> np.ndarray:
        model = make_model(kind, X, population.n_classes > 0, model_seed)
        model.fit(X.iloc[rows], y[rows])
        if not population.n_classes:
            return np.asarray(model.predict(X_rest))
        p = np.zeros((len(X_rest), population.n_classes))
        p[:, model.classes_] = model.predict_proba(X_rest)
        return p

    kind = "linear" if pair.startswith("linear") else "forest"
    every = np.arange(FITTED)
    f = answer(kind, every, 0)
    refits = []
    for number in range(REFITS + (pair == "forest again")):
        rows = rng.integers(0, FITTED, FITTED)
        refits.append(answer(kind, rows, derive_int_seed(seed, "refit", number)))
    if pair == "forest again":
        g = refits.pop()
    elif pair == "forest, other seed":
        g = answer(kind, every, 1)
    elif pair in ("better", "planted"):
        truth = y_rest if f.ndim == 1 else np.eye(population.n_classes)[y_rest]
        g = f + 0.2 * (truth - f)
        if pair == "planted":
            g = _planted(X_rest, y_rest, f, size, rng)
    else:
        g = answer("boosting", every, 0)
    return Predictions(X=X_rest, y=y_rest, f=f, g=g, refits=refits)


def planted_group(X: pd.DataFrame) -> np.ndarray:
    """Return a group of a fifth of the rows, by the table's first number of many values."""
    for name in X:
        if pd.api.types.is_numeric_dtype(X[name]) and X[name].nunique() > 20:
            return (X[name] <= X[name].quantile(0.2)).to_numpy()
    first = X.iloc[:, 0]
    return (first == first.iloc[0]).to_numpy()


def _planted(
    X: pd.DataFrame, y: np.ndarray, f: np.ndarray, size: float, rng: np.random.Generator
) -> np.ndarray:
    """Return F with noise in one group, so that its loss there rises by ``size`` of F's mean."""
    inside = planted_group(X)
    wanted = size * row_loss(y, f).mean()
    g = f.copy()
    if f.ndim == 1:
        g[inside] += rng.normal(size=inside.sum()) * np.sqrt(wanted)
        return g
    # towards a class at random
    other = np.eye(f.shape[1])[rng.integers(0, f.shape[1], inside.sum())]
    for share in np.linspace(0.02, 1, 50):
        g[inside] = (1 - share) * f[inside] + share * other
        if (row_loss(y, g) - row_loss(y, f))[inside].mean() >= wanted:
            break
    return g


def _contrast(p: Predictions, g: np.ndarray, rows: np.ndarray) -> Contrast:
    return RowContrast(p.loss(p.f, rows), p.loss(g, rows))


def judge_swap(
    table: str, pair: str, n: int, draw: int, settings: SwapSettings, folder: str
) -> Rows:
    """Return what is said of one swap, and whether it is true."""
    population = make_population(table, folder)
    seed = derive_int_seed(settings.seed, table, pair, draw)
    p = predict_pair(population, pair, settings.size, seed)
    if not population.n_classes:
        p = replace(p, cap=cap_from_baseline(row_loss(p.y[:n], p.f[:n])))
    at_hand, pool = np.arange(n), np.arange(1500, len(p.y))
    coder = TableCoder().fit(p.X.iloc[at_hand])
    columns = coder.transform(p.X)

    def columns_with(g: np.ndarray) -> np.ndarray:
        return np.column_stack([columns, predictions_as_columns(p.f, g)])

    Z = columns_with(p.g)
    contrast = _contrast(p, p.g, at_hand)
    truth = _contrast(p, p.g, pool).d
    unit = float(p.loss(p.f, pool).mean())
    refits = [
        worst_of_refit(_contrast(p, g, at_hand), columns_with(g)[at_hand], seed)
        for g in p.refits
    ]
    harm = find_harm(contrast, Z[at_hand], seed, refits)
    measured: dict[str, float] = {f"verdict {harm.verdict}": 1.0}
    scores = [model.predict(Z[pool]) for each in harm.passes for model in each.models]
    for name, (low, high) in GROUPS.items():
        true = float(
            np.mean([_true_change(score, truth, low, high) for score in scores])
        )
        interval = harm.groups[name].interval()
        measured[f"covered {name}"] = float(interval[0] <= true <= interval[1])
        measured[f"true {name}"] = true / unit
        measured[f"said {name}"] = harm.groups[name].value / unit
    table_at_hand = p.X.iloc[at_hand]
    conditions = list_conditions(table_at_hand)
    bound = bound_harm(contrast, harm, conditions)
    measured["bound"] = bound / unit
    worst = _worst_found(p, Z, truth, pool)
    measured["bound covers"] = float(bound >= worst)
    measured["worst found by a learner of the pool"] = worst / unit
    words = find_words(contrast, harm, conditions, seed)
    if words is not None:
        inside = _meets_words(words.text, p.X.iloc[pool])
        if inside.any():
            low, high = words.change.interval()
            true = truth[inside].mean()
            measured["covered words"] = float(low <= true <= high)
            measured["said words"] = words.change.value / unit
            measured["true words"] = true / unit
    measured |= _segments(p, contrast, truth, at_hand, pool)
    measured |= _remedy(p, harm.passes, at_hand, pool, Z, unit)
    needed = rows_needed(harm, n)
    measured["rows needed over n"] = needed / n
    return [{"measure": name, "value": value} for name, value in measured.items()]


def _true_change(score: np.ndarray, d: np.ndarray, low: float, high: float) -> float:
    """Return the change of the pool's rows between two ranks of a score."""
    worst_first = np.argsort(-score, kind="stable")
    n = len(d)
    return float(d[worst_first[int(low * n) : int(high * n)]].mean())


def _worst_found(
    p: Predictions, Z: np.ndarray, truth: np.ndarray, pool: np.ndarray
) -> float:
    """Return the change of the worst fifth that trees find on half of the pool, on the other."""
    half = len(pool) // 2
    trees = make_trees(0).fit(Z[pool[:half]], truth[:half])
    score = trees.predict(Z[pool[half:]])
    return _true_change(score, truth[half:], 0.0, BOUND_SHARE)


def _meets_words(text: str, X: pd.DataFrame) -> np.ndarray:
    """Return which rows the words hold for; none where they hold for all of these, or for none."""
    try:
        return read_segments({"words": text}, X)[0].inside
    except DataError:
        return np.zeros(len(X), dtype=bool)


def _segments(
    p: Predictions,
    contrast: Contrast,
    truth: np.ndarray,
    at_hand: np.ndarray,
    pool: np.ndarray,
) -> dict[str, float]:
    """Return whether the intervals of segments hold together, and what is claimed of them."""
    conditions = list_conditions(p.X)
    chosen = np.linspace(0, len(conditions.texts) - 1, 12).astype(int)
    masks = [conditions.met[:, k].astype(bool) for k in np.unique(chosen)]
    masks.append(planted_group(p.X))
    segments = [
        Segment(name=str(k), inside=mask[at_hand]) for k, mask in enumerate(masks)
    ]
    loss_f = p.loss(p.f, at_hand)
    table = judge_segments(segments, {"G": contrast}, loss_f)
    true = np.array([truth[mask[pool]].mean() for mask in masks])
    judged = table["low"].notna().to_numpy()
    inside = (table["low"] <= true) & (true <= table["high"])
    worse = (table["verdict"] == "worse").to_numpy()
    return {
        "segments hold together": float(inside[judged].all()),
        "segment falsely worse": float((worse & (true <= 0)).any()),
        "planted segment worse": float(worse[-1]),
    }


def _remedy(
    p: Predictions,
    passes: Any,
    at_hand: np.ndarray,
    pool: np.ndarray,
    Z: np.ndarray,
    unit: float,
) -> dict[str, float]:
    """Return what the proposed mixture gains on the pool, beside F, G and each other mixture."""

    def loss_of(rows: np.ndarray, weight: Any) -> np.ndarray:
        mixed = weight * p.g[rows] + (1 - weight) * p.f[rows]
        return p.cap.apply(row_loss(p.y[rows], mixed))

    remedy = find_remedy(lambda weight: loss_of(at_hand, weight), passes, None)
    score = foreseen_change(passes, Z[pool])
    weight = np.where(score >= 0, remedy.weight_bad, remedy.weight)
    own = weight if p.f.ndim == 1 else weight[:, None]
    loss_f = loss_of(pool, 0.0)
    change = loss_of(pool, own) - loss_f
    low, high = remedy.change.interval()
    better = min(0.0, float((loss_of(pool, 1.0) - loss_f).mean()))
    worst_fifth = np.argsort(-score, kind="stable")[: len(pool) // 5]
    return {
        "remedy covers": float(low <= change.mean() <= high),
        "remedy gain": -float(change.mean()) / unit,
        "gain of the better of F and G": -better / unit,
        "worst fifth under the remedy": float(change[worst_fifth].mean()) / unit,
        "worst fifth under G": float((loss_of(pool, 1.0) - loss_f)[worst_fifth].mean())
        / unit,
        f"remedy is {remedy.kind}": 1.0,
    }


def _plan(settings: SwapSettings, folder: Path | None) -> Plan:
    cells, left_out = [], {}
    where = str(folder or "")
    for table in settings.tables:
        try:
            make_population(table, where)
        except SourceError as error:
            left_out[table] = str(error)
            continue
        for pair in settings.pairs:
            for n in settings.n:
                for draw in range(settings.draws):
                    labels = {"table": table, "pair": pair, "n": n, "draw": draw}
                    arguments = (table, pair, n, draw, settings, where)
                    cells.append(
                        Cell(labels=labels, compute=judge_swap, arguments=arguments)
                    )
    return Plan(cells=cells, left_out=left_out)


def _summarize(rows: pd.DataFrame, settings: SwapSettings) -> list[Part]:
    del settings
    n_cells = rows.groupby(["pair", "n"])[["table", "draw"]].apply(
        lambda part: len(part.drop_duplicates())
    )
    parts: list[Part] = []
    for n, part in rows.groupby("n"):
        table: dict[str, dict[str, str]] = {}
        for (measure, pair), cell in part.groupby(["measure", "pair"], sort=False):
            is_count = str(measure).startswith(("verdict ", "remedy is "))
            if is_count:
                text = f"{len(cell)} of {n_cells[(pair, n)]}"
            else:
                values = cell["value"].replace(np.inf, np.nan)
                text = mean_and_error(values)
            table.setdefault(measure, {})[pair] = text
        frame = pd.DataFrame.from_dict(table, orient="index").rename_axis("measure")
        frame = frame.reindex(columns=[p for p in PAIRS if p in frame]).fillna("")
        parts.append(Table(heading=f"{n} labelled rows", frame=frame.reset_index()))
    parts.append(
        Table(heading="Every cell", file="swap.csv", data=rows, note="All digits.")
    )
    return parts


STUDIES = [
    Study(
        name="swap",
        title="The safe swap: coverage, false alarms, power",
        group="swap",
        settings=SwapSettings(),
        plan=_plan,
        summarize=_summarize,
        small={"draws": 1, "n": (500,), "tables": ("made",), "pairs": ("planted",)},
        files=True,
    )
]
