"""Does what is said of a swap hold? Coverage, false alarms and power, where the truth is known.

Notation
--------
n : labelled rows that no model has seen; the pool holds as many others as the table has
d : change of loss, G minus F; the truth is its mean over the pool
pairs : ``linear to boosting`` and ``forest to boosting``, which differ; ``forest again``, an
    exchangeable bootstrap re-fit, ``forest, other seed``, and ``better``, which is nearer to the
    target on every row: no harm to be found; ``planted``, F with noise in one named group

A cell is one division of one table: all pairs share its fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
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

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.losses import LOSSES, Predicted
from amlb_ext.core.rng import derive_int_seed, random_stream
from amlb_ext.core.row_losses import row_loss
from amlb_ext.stats.bounded_loss import NO_CAP, ErrorCap, cap_from_baseline
from amlb_ext.swap.contrast import Change, Contrast, RowContrast
from amlb_ext.swap.foresee import (
    TableCoder,
    draw_folds,
    foreseen_change,
    make_trees,
    mean_of_passes,
    predictions_as_columns,
)
from amlb_ext.swap.harm import GROUPS, Harm, find_harm, rows_needed, worst_of_refit
from amlb_ext.swap.remedy import find_remedy
from amlb_ext.swap.segments import Segment, judge_segments, read_segments
from amlb_ext.swap.words import (
    BOUND_SHARE,
    Conditions,
    best_pair,
    bound_harm,
    find_words,
    list_conditions,
)
from benchmarks.studies.engine import Rows, Seeded, Settings, Study, flat_rows, grid
from benchmarks.studies.files import BIKE_DROPPED, find_data_file
from benchmarks.studies.page import Part, Table, mean_and_error

PAIRS = (
    "linear to boosting",
    "forest to boosting",
    "forest again",
    "forest, other seed",
    "better",
    "planted",
)
#: Rows that models are fitted on, at most the labelled ones, and those of the pool.
FITTED, MOST_LABELLED, POOL = 3000, 1500, 8000
REFITS = 5
#: Folds and passes in which words are judged.
WORD_FOLDS, WORD_PASSES = 5, 2
#: Tables of a folder: file, target, columns that are left out.
FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "bank": ("bank-full.csv", "y", ()),
    "bike": ("hour.csv", "cnt", BIKE_DROPPED),
    "housing": ("housing.csv", "median_house_value", ()),
    "cpu_act": ("cpu_act.parquet", "", ()),
    "elevators": ("elevators.parquet", "", ()),
    "kin8nm": ("kin8nm.parquet", "", ()),
    "letter": ("letter.parquet", "", ()),
    "nursery": ("nursery.parquet", "", ()),
    "pendigits": ("pendigits.parquet", "", ()),
}


class SwapSettings(Seeded):
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
    loss : str
        A name of :data:`amlb_ext.core.losses.LOSSES`; the Brier loss or the squared error when
        empty.
    seed : int
    """

    n: tuple[int, ...] = (500, 1500)
    tables: tuple[str, ...] = ("made", "made classes", *FILES)
    pairs: tuple[str, ...] = PAIRS
    size: float = 1.0
    loss: str = ""


@dataclass(frozen=True, kw_only=True)
class Population:
    """A table: X, and y as numbers or class codes."""

    X: pd.DataFrame
    y: np.ndarray
    n_classes: int = 0


def make_population(name: str, _: Settings, folder: Path | None) -> Population:
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
    return read_file(find_data_file(folder, name, [file]), target, dropped)


def read_file(
    path: Path, target: str = "", dropped: tuple[str, ...] = ()
) -> Population:
    """Return up to 20,000 rows of a file, in random order; its last column is the target.

    Raises
    ------
    ConfigError
        It has no such target.
    """
    is_parquet = path.suffix == ".parquet"
    frame = pd.read_parquet(path) if is_parquet else pd.read_csv(path)
    target = target or str(frame.columns[-1])
    if target not in frame:
        raise ConfigError(f"{path} has no column {target!r}", "write FILE:TARGET")
    frame = frame[frame[target].notna()].sample(frac=1, random_state=0)
    frame = frame.iloc[:20_000].reset_index(drop=True)
    y, X = frame[target], frame.drop(columns=[target, *dropped])
    if pd.api.types.is_numeric_dtype(y) and y.nunique() > 30:
        return Population(X=X, y=y.to_numpy(dtype=float))
    codes, classes = pd.factorize(y, sort=True)
    return Population(X=X, y=codes, n_classes=len(classes))


#: Kind → classifier and regressor.
MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (LogisticRegression(max_iter=300), Ridge()),
    "forest": (
        RandomForestClassifier(50, min_samples_leaf=2),
        RandomForestRegressor(50, min_samples_leaf=2),
    ),
    "boosting": (
        HistGradientBoostingClassifier(max_iter=80),
        HistGradientBoostingRegressor(),
    ),
}


def make_model(kind: str, X: pd.DataFrame, is_classification: bool, seed: int) -> Any:
    """Return an unfitted model of a kind, a key of :data:`MODELS`."""
    texts = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    numbers = [c for c in X if c not in texts]
    coded = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), texts),
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    )
    classifier, regressor = MODELS[kind]
    model = clone(classifier if is_classification else regressor)
    # a linear one draws nothing
    return make_pipeline(coded, model.set_params(random_state=seed))


def predict_all(model: Any, X: pd.DataFrame, n_classes: int) -> np.ndarray:
    """Return predicted numbers, or probabilities of all classes, also of those never fitted on."""
    if not n_classes:
        return np.asarray(model.predict(X))
    p = np.zeros((len(X), n_classes))
    p[:, model.classes_] = model.predict_proba(X)
    return p


@dataclass(frozen=True, kw_only=True)
class Predictions:
    """What F and its bootstrap re-fits predict for rows that none of them was fitted on.

    The first ``n`` rows are labelled; squared errors are capped by F's there, as ``compare`` caps
    them.
    """

    X: pd.DataFrame
    y: np.ndarray
    f: np.ndarray
    refits: list[np.ndarray]
    loss_name: str
    n: int

    @property
    def at_hand(self) -> np.ndarray:
        """Positions of the labelled rows."""
        return np.arange(self.n)

    @property
    def pool(self) -> np.ndarray:
        """Positions of the rows on which the truth is measured."""
        return np.arange(MOST_LABELLED, len(self.y))

    @cached_property
    def cap(self) -> ErrorCap:
        """What squared errors are capped at."""
        if self.loss_name != "squared":
            return NO_CAP
        return cap_from_baseline(self._losses(self.f, self.at_hand))

    def loss(self, f: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return losses of some rows, capped."""
        return self.cap.apply(self._losses(f, rows))

    def _losses(self, f: np.ndarray, rows: np.ndarray) -> np.ndarray:
        own = f[rows]
        decided = None if own.ndim == 1 else own.argmax(axis=1)
        said = Predicted(y=self.y[rows], f=own, decided=decided)
        return LOSSES[self.loss_name](said)

    def contrast(self, g: np.ndarray, rows: np.ndarray) -> Contrast:
        """Return the losses of F and of another model on some rows."""
        return RowContrast(self.loss(self.f, rows), self.loss(g, rows))

    def columns(self, g: np.ndarray) -> np.ndarray:
        """Return what a change of loss is foreseen from, of all rows."""
        columns = TableCoder().fit(self.X.iloc[: self.n]).transform(self.X)
        return np.column_stack([columns, predictions_as_columns(self.f, g)])

    def worst_of_refits(self, seed: int) -> list[Change]:
        """Return what harm each re-fit seems to do on the labelled rows."""
        return [
            worst_of_refit(
                self.contrast(g, self.at_hand), self.columns(g)[self.at_hand], seed
            )
            for g in self.refits
        ]


def predict_pairs(
    population: Population, settings: SwapSettings, n: int, seed: int
) -> Iterator[tuple[str, Predictions, np.ndarray]]:
    """Yield each pair with F's predictions and G's, fitted on one division of a table."""
    rng = random_stream(seed, "swap study", "division")
    order = rng.permutation(len(population.y))
    fitted = order[:FITTED]
    rest = order[FITTED : FITTED + MOST_LABELLED + POOL]
    X, y = population.X.iloc[fitted], population.y[fitted]
    X_rest, y_rest = population.X.iloc[rest].reset_index(drop=True), population.y[rest]
    is_class = population.n_classes > 0

    @cache
    def answer(kind: str, model_seed: int, bootstrap: int = -1) -> np.ndarray:
        """Return predictions of a model that was fitted on all rows, or on a sample of them."""
        model = make_model(kind, X, is_class, model_seed)
        rows = np.arange(FITTED)
        if bootstrap >= 0:
            drawn = random_stream(seed, "swap study", "bootstrap", bootstrap)
            rows = drawn.integers(0, FITTED, FITTED)
        model.fit(X.iloc[rows], y[rows])
        return predict_all(model, X_rest, population.n_classes)

    def again(kind: str, number: int) -> np.ndarray:
        return answer(kind, derive_int_seed(seed, "refit", number), number)

    for pair in settings.pairs:
        kind = "linear" if pair.startswith("linear") else "forest"
        f = answer(kind, 0)
        truth = y_rest if f.ndim == 1 else np.eye(population.n_classes)[y_rest]
        candidates: dict[str, Callable[[], np.ndarray]] = {
            "forest again": lambda: again("forest", REFITS),
            "forest, other seed": lambda: answer("forest", 1),
            "better": partial(nearer, f, truth),
            "planted": partial(with_noise, X_rest, y_rest, f, settings.size, rng),
        }
        p = Predictions(
            X=X_rest,
            y=y_rest,
            f=f,
            refits=[again(kind, number) for number in range(REFITS)],
            loss_name=settings.loss or ("brier" if is_class else "squared"),
            n=n,
        )
        yield pair, p, candidates.get(pair, lambda: answer("boosting", 0))()


def nearer(f: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return F's predictions a fifth of the way to the truth."""
    return np.asarray(f + 0.2 * (truth - f))


def planted_group(X: pd.DataFrame) -> np.ndarray:
    """Return a group of a fifth of the rows, by the table's first number of many values."""
    for name in X:
        if pd.api.types.is_numeric_dtype(X[name]) and X[name].nunique() > 20:
            return (X[name] <= X[name].quantile(0.2)).to_numpy()
    first = X.iloc[:, 0]
    return (first == first.iloc[0]).to_numpy()


def with_noise(
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


def judge_swaps_of(
    settings: SwapSettings, population: Population, *, table: str, n: int, draw: int
) -> Rows:
    """Return what is said of the swap of each pair, and whether it is true."""
    seed = derive_int_seed(settings.seed, table, draw)
    records: Rows = []
    worst_of_refits: dict[str, list[Change]] = {}
    for pair, p, g in predict_pairs(population, settings, n, seed):
        # pairs of one F share its re-fits
        kind = pair.split()[0] if pair.startswith("linear") else "forest"
        if kind not in worst_of_refits:
            worst_of_refits[kind] = p.worst_of_refits(seed)
        measured = _judge_swap(p, g, seed, worst_of_refits[kind])
        records += flat_rows(measured, "measure", pair=pair)
    return records


def _judge_swap(
    p: Predictions, g: np.ndarray, seed: int, refits: list[Change]
) -> dict[str, float]:
    """Return what is said of one swap, and whether it is true."""
    at_hand, pool = p.at_hand, p.pool
    Z = p.columns(g)
    contrast = p.contrast(g, at_hand)
    truth = p.contrast(g, pool).d
    unit = float(p.loss(p.f, pool).mean())
    harm = find_harm(contrast, Z[at_hand], seed, refits)
    measured: dict[str, float] = {f"verdict {harm.verdict}": 1.0}
    scores = [model.predict(Z[pool]) for each in harm.passes for model in each.models]
    for name, (low, high) in GROUPS.items():
        true = float(
            np.mean([_true_change(score, truth, low, high) for score in scores])
        )
        measured |= _covers(name, harm.groups[name], true)
        measured[f"true {name}"] = true / unit
        measured[f"said {name}"] = harm.groups[name].value / unit
    conditions = list_conditions(p.X.iloc[at_hand])
    bound = bound_harm(contrast, harm, conditions)
    if np.isfinite(bound):
        measured["bound"] = bound / unit
    worst = _worst_found(Z, truth, pool)
    measured["bound covers"] = float(bound >= worst)
    measured["worst found by a learner of the pool"] = worst / unit
    words = find_words(harm, conditions)
    if words is not None:
        inside = _meets_words(words.text, p.X.iloc[pool])
        if inside.any():
            true = float(truth[inside].mean())
            change = _change_in_words(contrast, harm, conditions, seed)
            measured |= _covers("words", change, true)
            measured["said words"] = change.value / unit
            measured["true words"] = true / unit
    measured |= _segments(p, contrast, truth)
    measured |= _remedy(p, g, harm.passes, foreseen_change(harm.passes, Z[pool]))
    measured["rows needed over n"] = rows_needed(harm, p.n) / p.n
    return measured


def _change_in_words(
    contrast: Contrast, harm: Harm, conditions: Conditions, seed: int
) -> Change:
    """Return the change of a group in words, each fold judged by words found without its rows."""
    rng = random_stream(seed, "swap", "words")
    changes = []
    for _ in range(WORD_PASSES):
        fold = draw_folds(len(contrast), WORD_FOLDS, rng, contrast.clusters)
        told = np.zeros(len(contrast))
        for left_out in range(WORD_FOLDS):
            learnt = fold != left_out
            known = replace(conditions, met=conditions.met[learnt])
            _, rows = conditions.pair(*best_pair(known, harm.score[learnt]))
            told[~learnt] = rows[~learnt]
        changes.append(contrast.change(told))
    return mean_of_passes(changes)


def _covers(name: str, change: Change, true: float) -> dict[str, float]:
    """Return whether a change has an interval, and whether that holds the truth."""
    if not np.isfinite(change.se):
        return {f"has interval, {name}": 0.0}
    low, high = change.interval()
    return {
        f"has interval, {name}": 1.0,
        f"covered {name}": float(low <= true <= high),
    }


def _true_change(score: np.ndarray, d: np.ndarray, low: float, high: float) -> float:
    """Return the change of the pool's rows between two ranks of a score."""
    worst_first = np.argsort(-score, kind="stable")
    n = len(d)
    return float(d[worst_first[int(low * n) : int(high * n)]].mean())


def _worst_found(Z: np.ndarray, truth: np.ndarray, pool: np.ndarray) -> float:
    """Return the change of the worst fifth that trees find on half of the pool, on the other."""
    half = len(pool) // 2
    trees = make_trees(0, half).fit(Z[pool[:half]], truth[:half])
    score = trees.predict(Z[pool[half:]])
    return _true_change(score, truth[half:], 0.0, BOUND_SHARE)


def _meets_words(text: str, X: pd.DataFrame) -> np.ndarray:
    """Return which rows the words hold for; none where they hold for all of these, or for none."""
    try:
        return read_segments({"words": text}, X)[0].inside
    except DataError:
        return np.zeros(len(X), dtype=bool)


def _segments(
    p: Predictions, contrast: Contrast, truth: np.ndarray
) -> dict[str, float]:
    """Return whether the intervals of segments hold together, and what is claimed of them."""
    conditions = list_conditions(p.X)
    chosen = np.linspace(0, len(conditions.texts) - 1, 12).astype(int)
    masks = [conditions.met[:, k].astype(bool) for k in np.unique(chosen)]
    masks.append(planted_group(p.X))
    segments = [
        Segment(name=str(k), inside=mask[p.at_hand]) for k, mask in enumerate(masks)
    ]
    table = judge_segments(segments, {"G": contrast})
    true = np.array([truth[mask[p.pool]].mean() for mask in masks])
    judged = table["low"].notna().to_numpy()
    inside = (table["low"] <= true) & (true <= table["high"])
    worse = (table["verdict"] == "worse").to_numpy()
    return {
        "segments hold together": float(inside[judged].all()),
        "segment falsely worse": float((worse & (true <= 0)).any()),
        "planted segment worse": float(worse[-1]),
    }


def _remedy(
    p: Predictions, g: np.ndarray, passes: Any, score: np.ndarray
) -> dict[str, float]:
    """Return what the proposed mixture gains on the pool, beside F, G and each other mixture.

    ``score`` is the change of loss that is foreseen for the pool.
    """

    def loss_of(rows: np.ndarray, weight: Any) -> np.ndarray:
        mixed = p.f.copy()
        mixed[rows] = weight * g[rows] + (1 - weight) * p.f[rows]
        return p.loss(mixed, rows)

    remedy = find_remedy(lambda weight: loss_of(p.at_hand, weight), passes, None)
    weight = np.where(score >= 0, remedy.weight_bad, remedy.weight)
    own = weight if p.f.ndim == 1 else weight[:, None]
    loss_f = loss_of(p.pool, 0.0)
    unit = float(p.loss(p.f, p.pool).mean())
    change, change_g = loss_of(p.pool, own) - loss_f, loss_of(p.pool, 1.0) - loss_f
    low, high = remedy.change.interval()
    worst_fifth = np.argsort(-score, kind="stable")[: len(p.pool) // 5]
    return {
        "remedy covers": float(low <= change.mean() <= high),
        "remedy gain": -float(change.mean()) / unit,
        "gain of the better of F and G": -min(0.0, float(change_g.mean())) / unit,
        "worst fifth under the remedy": float(change[worst_fifth].mean()) / unit,
        "worst fifth under G": float(change_g[worst_fifth].mean()) / unit,
        f"remedy is {remedy.kind}": 1.0,
    }


def _summarize(rows: pd.DataFrame, settings: SwapSettings) -> list[Part]:
    parts: list[Part] = []
    for n, of_size in rows.groupby("n"):
        n_cells = of_size.groupby("pair").apply(
            lambda pair: len(pair[["table", "draw"]].drop_duplicates())
        )
        texts: dict[str, dict[str, str]] = {}
        for (measure, pair), cell in of_size.groupby(["measure", "pair"], sort=False):
            text = mean_and_error(cell["value"].replace(np.inf, np.nan))
            if str(measure).startswith(("verdict ", "remedy is ")):
                text = f"{len(cell)} of {n_cells[pair]}"
            texts.setdefault(pair, {})[measure] = text
        frame = pd.DataFrame({pair: texts[pair] for pair in PAIRS if pair in texts})
        shown = frame.fillna("").rename_axis("measure").reset_index()
        parts.append(Table(heading=f"{n} labelled rows", frame=shown))
    return parts


STUDIES = [
    Study(
        name="swap",
        title="The safe swap: coverage, false alarms, power",
        group="swap",
        settings=SwapSettings(draws=20),
        # a study that is stopped has whole rounds of all tables
        cells=grid(draw="draws", n="n", table="tables"),
        load=make_population,
        names="table",
        compute=judge_swaps_of,
        summarize=_summarize,
        small={"draws": 1, "n": (500,), "tables": ("made",), "pairs": ("planted",)},
        files=True,
    )
]
