"""How often the interval by class holds in OSYN's Tables 3 and 7, over many draws of S.

    python tests/benchmarks/by_class.py --data DIR [--draws 2000]

A repetition of these tables draws S once for all models, so what the models say of it is one
observation, not eight. Here split and models are those of the first repetition, and S is drawn
anew again and again. Per model: its true loss, and the share of draws whose interval held it at
the tables' level (.8) and at .95. Then: for how many models at once the interval held in a draw,
and how often five draws give no more than the tables' count. ``--models`` names others (the SVM
and the SVR are left out by default: they take most of the time). One thread, 3 minutes.
"""

import argparse
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from amlb_ext.stats.stratified_mean import stratified_interval
from benchmarks.studies.files import load_uci
from benchmarks.studies.osyn.case import CLASSIFIERS, MINORITY, REGRESSORS, Case, Choice

CASES = (("bank", False), ("adult", False), ("adult", True))
SLOW = {"SVM", "SVR"}
LEVELS = (1 - Choice().delta, 0.95)
REPETITIONS = 10


def labelled(classes, size, rng):
    """Positions of three rows of the majority for two of the minority."""
    rare = int(np.argmin(np.bincount(classes)))
    minor = round(MINORITY * size)
    sides = ((classes == rare, minor), (classes != rare, size - minor))
    return np.concatenate(
        [rng.permutation(np.flatnonzero(side))[:k] for side, k in sides]
    )


def study(data, regression, folder, draws, models):
    case = Case(load_uci(data, folder), Choice(), 0, regression)
    of = case.y[case.oracle]
    X = case.model_inputs(case.Z[case.oracle])
    names = [m for m in (REGRESSORS if regression else CLASSIFIERS) if m in models]
    lost = {m: case.model_losses(case.fit_model(m), X, of) for m in names}
    classes = of.astype(int)
    held = np.empty((draws, len(names), len(LEVELS)), bool)
    for r in range(draws):
        S = labelled(classes, case.choice.size, np.random.default_rng([r, 0]))
        for j, m in enumerate(names):
            for i, level in enumerate(LEVELS):
                e = stratified_interval(
                    lost[m][S],
                    classes[S],
                    case.class_shares,
                    level,
                    binary=not regression,
                )
                held[r, j, i] = e.low <= lost[m].mean() <= e.high
    print(f"\n{data}, {'absolute error' if regression else '0-1'}, {draws} draws of S")
    print(
        f"{'model':<8}{'true':>8}"
        + "".join(f"{f'held at {v:.2g}':>18}" for v in LEVELS)
    )
    for j, m in enumerate(names):
        rates = held[:, j].mean(0)
        cells = (f"{p:.3f} ± {(p * (1 - p) / draws) ** 0.5:.3f}" for p in rates)
        print(
            f"{m:<8}{lost[m].mean():>8.4f}" + "".join(f"{cell:>18}" for cell in cells)
        )
    share = held[:, :, 0].mean(1)
    print(
        f"share of the models held in a draw: mean {share.mean():.3f}, sd {share.std():.3f}"
    )
    rng = np.random.default_rng(0)
    tables = share[rng.integers(0, draws, (20_000, REPETITIONS))].mean(1)
    low, high = np.quantile(tables, [0.025, 0.975])
    print(f"of {REPETITIONS} draws: from {low:.2f} to {high:.2f} in 95% of tables")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=2000)
    every = sorted({*CLASSIFIERS, *REGRESSORS} - SLOW)
    parser.add_argument(
        "--models", nargs="+", default=every, choices=[*every, *sorted(SLOW)]
    )
    given = parser.parse_args()
    with threadpool_limits(1):
        for data, regression in CASES:
            study(data, regression, given.data, given.draws, given.models)


if __name__ == "__main__":
    main()
