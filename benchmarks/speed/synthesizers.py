"""How near are synthetic rows to real ones? The tables of ``docs/evidence/synthesizers.md``.

    python -m benchmarks.speed.synthesizers bundled/titanic bundled/diabetes --rows 400 --seeds 5
    python -m benchmarks.speed.synthesizers adult.csv --target income --bad 0.2 --seeds 10 \
      --epochs 100 --names vae copula tvae ctgan sdv_copula --raw adult.jsonl

For each source and seed, ``rows`` rows are drawn to learn from and as many others are held out.
Each synthesizer makes as many rows again. Printed per synthesizer, mean ± standard error over
seeds: W1, the mean 1-D Wasserstein distance per numeric column (min-max scaled); TV, the mean
total variation distance per categorical column; corr, the mean absolute difference of pairwise
correlations, target included; NN, the median distance of a made row to the nearest row learned
from, as a ratio to the same for the held-out real rows (1 is what real rows have, 0 is copying);
the processor's seconds for fit and sample; and these as a ratio to fitting a random forest of 100
trees on the same rows. One thread. Missing numbers become the column's median, for all alike.

``tvae``, ``ctgan`` (package ctgan) and ``sdv_copula`` (package sdv) run where they are installed.
``--bad SHARE`` draws the rows from the worst share of a cross-fitted random forest: the least
confident (classification, the rule ``band``) or those of largest residual (regression).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import wasserstein_distance
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from amlb_ext.core.config import SourceConfig, SynthesizerConfig
from amlb_ext.core.rng import draw_int_seed, random_stream
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.baseline.forests import class_probabilities
from amlb_ext.hardening.split import cross_folds
from amlb_ext.sources import open_specs
from amlb_ext.synthesizers import SYNTHESIZERS, make_synthesizer
from benchmarks.studies.encoded import EncodedTask

#: Reference → the package it needs.
REFERENCES = {"tvae": "ctgan", "ctgan": "ctgan", "sdv_copula": "sdv"}
NAMES = ("vae", "copula", "local", "vae_paper")
MEASURES = ("W1", "TV", "corr", "NN", "seconds", "forests")


@dataclass(frozen=True)
class Rows:
    """Encoded rows: X (n, d), categories first; y (n,); ``n_classes`` 0 is regression."""

    X: np.ndarray
    y: np.ndarray
    cards: tuple[int, ...]
    n_classes: int

    def take(self, part: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.X[part], self.y[part], self.cards, self.n_classes)


def wasserstein(real: np.ndarray, made: np.ndarray, m: int) -> float:
    pairs = [(real[:, j], made[:, j]) for j in range(m, real.shape[1])]
    distances = [
        wasserstein_distance(a[~np.isnan(a)], b[~np.isnan(b)])
        for a, b in pairs
        if not (np.isnan(a).all() or np.isnan(b).all())
    ]
    return float(np.mean(distances)) if distances else 0.0


def total_variation(
    real: np.ndarray, made: np.ndarray, cards: tuple[int, ...]
) -> float:
    distances = []
    for j, card in enumerate(cards):
        shares = [
            np.bincount(x[:, j].astype(int), minlength=card) / len(x)
            for x in (real, made)
        ]
        distances.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return float(np.mean(distances)) if distances else 0.0


def correlations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        matrix = np.nan_to_num(np.corrcoef(np.column_stack([np.nan_to_num(X), y]).T))
    return matrix[np.triu_indices(len(matrix), 1)]


def one_hot(X: np.ndarray, cards: tuple[int, ...]) -> np.ndarray:
    """Rows in which a differing category counts 1, a number its difference."""
    blocks = [0.5 * (X[:, [j]] == np.arange(card)) for j, card in enumerate(cards)]
    return np.hstack([*blocks, fill_missing(X[:, len(cards) :])])


def nearest(made: np.ndarray, real: np.ndarray, cards: tuple[int, ...]) -> float:
    model = NearestNeighbors(n_neighbors=1, metric="manhattan", algorithm="brute")
    return float(
        np.median(model.fit(one_hot(real, cards)).kneighbors(one_hot(made, cards))[0])
    )


def distances(learn: Rows, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return W1, TV, corr and the median nearest distance of rows made from ``learn``."""
    drift = np.abs(correlations(learn.X, learn.y) - correlations(X, y)).mean()
    return {
        "W1": wasserstein(learn.X, X, len(learn.cards)),
        "TV": total_variation(learn.X, X, learn.cards),
        "corr": float(drift),
        "near": nearest(X, learn.X, learn.cards),
    }


def missing_package(name: str) -> str | None:
    """Return the package that a reference needs and that is not here."""
    package = REFERENCES.get(name)
    return package if package and find_spec(package) is None else None


def make_rows(name: str, learn: Rows, epochs: int | None, seed: int) -> Rows:
    """Fit the synthesizer and sample as many rows as it learned from."""
    if name in REFERENCES:
        return _reference_rows(name, learn, epochs or 300, seed)
    settings = {} if epochs is None else {"epochs": epochs}
    rng = random_stream(seed, "benchmark", name)
    model = make_synthesizer(SynthesizerConfig(name=name, **settings))
    model.fit(learn.X, learn.y, cards=learn.cards, n_classes=learn.n_classes, rng=rng)
    X, y = model.sample(len(learn.y), rng)
    return Rows(X, y, learn.cards, learn.n_classes)


def _reference_rows(name: str, learn: Rows, epochs: int, seed: int) -> Rows:
    """Run a reference at its own defaults, on one thread.

    Categories, class labels and numbers of at most two values are announced as discrete; a number
    with missing values is refused by ctgan, which is why the script fills them for all.
    """
    table = pd.DataFrame(learn.X, columns=[f"x{j}" for j in range(learn.X.shape[1])])
    table["y"] = learn.y.astype(float)
    m = len(learn.cards)
    discrete = [c for j, c in enumerate(table) if j < m or table[c].nunique() <= 2]
    if learn.n_classes and "y" not in discrete:
        discrete.append("y")
    levels = {c: dict(enumerate(np.unique(table[c]))) for c in discrete}
    for c in discrete:
        table[c] = "c" + pd.Series(
            np.searchsorted(np.unique(table[c]), table[c])
        ).astype(str)
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (the references draw from global streams)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = _run_reference(name, table, discrete, epochs)
    for c in discrete:
        made[c] = made[c].str[1:].astype(int).map(levels[c])
    values = made.to_numpy(dtype=float)
    y = values[:, -1].astype(learn.y.dtype)
    return Rows(values[:, :-1], y, learn.cards, learn.n_classes)


def _run_reference(
    name: str, table: pd.DataFrame, discrete: list[str], epochs: int
) -> pd.DataFrame:
    if name == "sdv_copula":
        from sdv.metadata import Metadata
        from sdv.single_table import GaussianCopulaSynthesizer

        kinds = {
            c: {"sdtype": "categorical" if c in discrete else "numerical"}
            for c in table.columns
        }
        metadata = Metadata.load_from_dict({"tables": {"rows": {"columns": kinds}}})
        copula = GaussianCopulaSynthesizer(metadata)
        copula.fit({"rows": table})
        return copula.sample(len(table))["rows"][table.columns]
    import ctgan

    kind = {"tvae": ctgan.TVAE, "ctgan": ctgan.CTGAN}[name]
    model = kind(epochs=epochs, enable_gpu=False)
    model.fit(table, discrete)
    return model.sample(len(table))[table.columns]


def hardest(task, share: float) -> np.ndarray:
    """Return the positions of the worst ``share`` of rows of a cross-fitted random forest."""
    everything = np.arange(len(task))
    encoded = EncodedTask(task, everything)
    Z, y = encoded.rows(everything)
    Z, n_classes = fill_missing(Z), encoded.scale.n_classes
    hardness = np.zeros(len(y))
    for train, held in cross_folds(y, n_classes, 5, seed=0):
        kind = RandomForestClassifier if n_classes else RandomForestRegressor
        model = kind(50, min_samples_leaf=3, random_state=0).fit(Z[train], y[train])
        if n_classes:
            p = class_probabilities(model, Z[held], n_classes)
            hardness[held] = 1 - p.max(axis=1)
        else:
            hardness[held] = np.abs(y[held] - model.predict(Z[held]))
    return np.argsort(-hardness, kind="stable")[: round(share * len(y))]


def draw(task, among: np.ndarray, rows: int, seed: int) -> tuple[Rows, Rows]:
    """Return rows to learn from, and as many held out, encoded by the first."""
    order = random_stream(seed, "benchmark", "rows").permutation(among)
    rows = min(rows, len(among) // 2)
    learn, held = order[:rows], order[rows : 2 * rows]
    encoded = EncodedTask(task, learn)
    (X, y), (H, yh) = encoded.rows(learn), encoded.rows(held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value: 0
        middle = np.nan_to_num(np.nanmedian(X, axis=0))
    cards, n_classes = encoded.encoder.cards_, encoded.scale.n_classes
    both = [
        Rows(np.where(np.isnan(A), middle, A), t, cards, n_classes)
        for A, t in ((X, y), (H, yh))
    ]
    return both[0], both[1]


def measure(
    learn: Rows, held: Rows, names: list[str], epochs: int | None, seed: int
) -> Iterator[dict]:
    """Yield the measures of the held-out rows and of each synthesizer's."""
    kind = RandomForestClassifier if learn.n_classes else RandomForestRegressor
    unit = _cpu(lambda: kind(100, random_state=0).fit(learn.X, learn.y))[1]
    real = distances(learn, held.X, held.y)
    for name in ["held-out real", *names]:
        made, seconds = held, 0.0
        if name != "held-out real":
            made, seconds = _cpu(lambda name=name: make_rows(name, learn, epochs, seed))
        found = distances(learn, made.X, made.y)
        found["NN"] = found.pop("near") / max(real["near"], 1e-12)
        yield {
            "synthesizer": name,
            **found,
            "seconds": seconds,
            "forests": seconds / unit,
        }


def _cpu(work: Callable):
    """Return what ``work`` returns and its processor time, which other processes do not touch."""
    start = time.process_time()
    return work(), time.process_time() - start


def print_tables(lines: list[dict]) -> None:
    """Print one line per source and synthesizer, in order of appearance."""
    # the held-out rows stand in every file of raw numbers
    table = pd.DataFrame(lines).drop_duplicates(
        ["source", "rows", "seed", "synthesizer"]
    )
    table["place"] = table["source"].map(
        {s: i for i, s in enumerate(table["source"].unique())}
    )
    table = table.sort_values("place", kind="stable")
    print("| source | rows | seeds | synthesizer | " + " | ".join(MEASURES) + " |")
    print("|---|---|---|---|" + "---|" * len(MEASURES))
    for (source, rows, name), runs in table.groupby(
        ["source", "rows", "synthesizer"], sort=False
    ):
        values = runs[list(MEASURES)]
        error = values.sem().fillna(0.0)
        cells = [f"{values[c].mean():.4f} ± {error[c]:.4f}" for c in MEASURES[:3]]
        cells.append(f"{values['NN'].mean():.2f} ± {error['NN']:.2f}")
        cells += [f"{values[c].mean():.2f}" for c in MEASURES[4:]]
        print(
            f"| {source} | {rows} | {len(runs)} | {name} | " + " | ".join(cells) + " |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--target")
    parser.add_argument("--drop", nargs="+", default=[], help="columns to leave out")
    parser.add_argument(
        "--bad", type=float, help="share of rows, the worst of a baseline"
    )
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument(
        "--epochs", type=int, help="the same for all; default: each one's own"
    )
    parser.add_argument(
        "--names", nargs="+", default=NAMES, choices=[*SYNTHESIZERS, *REFERENCES]
    )
    parser.add_argument("--raw", type=Path, help="append one JSON line per run")
    parser.add_argument(
        "--read", type=Path, nargs="+", help="only print the tables of such files"
    )
    given = parser.parse_args()
    if given.read:
        print_tables([json.loads(line) for file in given.read for line in file.open()])
        return
    names = [name for name in given.names if not missing_package(name)]
    for name in set(given.names) - set(names):
        print(
            f"{name} is left out: pip install {missing_package(name)} (needs pandas < 3)"
        )
    lines = []
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for ref in open_specs(given.sources, SourceConfig(target=given.target)):
            task = ref.load()
            columns = tuple(c for c in task.columns if c.name not in given.drop)
            task = type(task)(**{**vars(task), "columns": columns})
            among = hardest(task, given.bad) if given.bad else np.arange(len(task))
            for seed in range(given.first_seed, given.first_seed + given.seeds):
                learn, held = draw(task, among, given.rows, seed)
                about = {"source": task.name, "rows": len(learn.y), "seed": seed}
                about["epochs"] = given.epochs
                for run in measure(
                    learn, held, names, given.epochs, draw_int_seed(random_stream(seed))
                ):
                    lines.append({**about, **run})
                    if given.raw:
                        with given.raw.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(lines[-1]) + "\n")
    print_tables(lines)


if __name__ == "__main__":
    main()
