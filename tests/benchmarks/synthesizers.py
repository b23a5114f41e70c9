"""How near are synthetic rows to real ones? The table of ``docs/synthesizers.md``.

    python tests/benchmarks/synthesizers.py bundled/titanic bundled/diabetes --rows 400 --seeds 5

For each source and seed, ``rows`` rows are drawn to learn from and as many others are held out.
Each synthesizer makes as many rows again. Printed per synthesizer, mean ± standard error over
seeds: W1, the mean 1-D Wasserstein distance per numeric column (min-max scaled); TV, the mean
total variation distance per categorical column; corr, the mean absolute difference of pairwise
correlations, target included; NN, the median distance of a made row to the nearest row learned
from, as a ratio to the same for the held-out real rows (1 is what real rows have, 0 is copying);
and seconds, as a ratio to fitting a random forest on the same rows. One thread.
"""

import argparse
import time

import numpy as np
from scipy.stats import wasserstein_distance
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from amlb_ext.core.config import SourceConfig, SynthesizerConfig
from amlb_ext.hardening.baseline import fill_missing
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.sources import open_specs
from amlb_ext.synthesizers import make_synthesizer

NAMES = ("vae", "copula", "local", "vae_paper")
MEASURES = ("W1", "TV", "corr", "NN", "seconds")


def wasserstein(real, made, m):
    pairs = [(real[:, j], made[:, j]) for j in range(m, real.shape[1])]
    distances = [
        wasserstein_distance(a[~np.isnan(a)], b[~np.isnan(b)])
        for a, b in pairs
        if not (np.isnan(a).all() or np.isnan(b).all())
    ]
    return np.mean(distances) if distances else 0.0


def total_variation(real, made, cards):
    distances = []
    for j, card in enumerate(cards):
        shares = [np.bincount(x[:, j].astype(int), minlength=card) / len(x) for x in (real, made)]
        distances.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return np.mean(distances) if distances else 0.0


def correlations(X, y):
    with np.errstate(all="ignore"):
        matrix = np.nan_to_num(np.corrcoef(np.column_stack([np.nan_to_num(X), y]).T))
    return matrix[np.triu_indices(len(matrix), 1)]


def one_hot(X, cards):
    """Rows in which a differing category counts 1, a number its difference."""
    blocks = [0.5 * (X[:, [j]] == np.arange(card)) for j, card in enumerate(cards)]
    return np.hstack([*blocks, fill_missing(X[:, len(cards) :])])


def nearest(made, real, cards):
    model = NearestNeighbors(n_neighbors=1, metric="manhattan", algorithm="brute")
    return np.median(model.fit(one_hot(real, cards)).kneighbors(one_hot(made, cards))[0])


def measure(task, rows, seed, names):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(task))
    rows = min(rows, len(task) // 2)
    learn, held = order[:rows], order[rows : 2 * rows]
    encoder = Encoder(task.columns).fit(task.features.iloc[learn])
    target = TargetEncoder(task.kind, task.labels, task.target.iloc[learn])
    X, H = (encoder.transform(task.features.iloc[part]) for part in (learn, held))
    y, yh = (target.transform(task.target.iloc[part]) for part in (learn, held))
    cards, m = encoder.cards_, encoder.n_categorical_
    forest_class = RandomForestClassifier if target.n_classes else RandomForestRegressor
    start = time.perf_counter()
    forest_class(100, random_state=0).fit(fill_missing(X), y)
    unit = time.perf_counter() - start
    far = nearest(H, X, cards)

    def row(made, labels, seconds):
        drift = np.abs(correlations(X, y) - correlations(made, labels)).mean()
        near = nearest(made, X, cards) / far
        return (wasserstein(X, made, m), total_variation(X, made, cards), drift, near, seconds)

    out = {"held-out real": row(H, yh, 0.0)}
    for name in names:
        start = time.perf_counter()
        model = make_synthesizer(SynthesizerConfig(name=name))
        model.fit(X, y, cards=cards, n_classes=target.n_classes, rng=rng)
        made, labels = model.sample(rows, rng)
        out[name] = row(made, labels, (time.perf_counter() - start) / unit)
    return rows, out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--target")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--names", nargs="+", default=NAMES, choices=NAMES)
    given = parser.parse_args()
    print("| source | rows | synthesizer | " + " | ".join(MEASURES) + " |")
    print("|---|---|---|" + "---|" * len(MEASURES))
    for ref in open_specs(given.sources, SourceConfig(target=given.target)):
        task = ref.load()
        runs = []
        with threadpool_limits(1):
            for seed in range(given.first_seed, given.first_seed + given.seeds):
                rows, out = measure(task, given.rows, seed, given.names)
                runs.append(out)
        for name in runs[0]:
            values = np.array([run[name] for run in runs])
            error = (
                values.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else 0 * values[0]
            )
            cells = [f"{v:.4f} ± {e:.4f}" for v, e in zip(values.mean(axis=0), error, strict=True)]
            cells[3:] = [f"{v:.2f}" for v in values.mean(axis=0)[3:]]
            print(f"| {task.name} | {rows} | {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
