"""How often the largest errors decide, so that capped losses give no verdict.

    python tests/benchmarks/heavy_tails.py hour.csv cnt casual registered instant dteday
    python tests/benchmarks/heavy_tails.py housing.csv median_house_value

A table, its target, and columns to leave out. Nine models are fitted on 2,000 rows. Four of them
are F in turn, the others are compared with it over all rows, on 15 samples of each size; then the
same for exp(3 z), z the standardised target, which is a heavy tail. Printed for each size:
questions without a verdict, and how many of these had one by the capped losses alone.
"""

import sys

import numpy as np
import pandas as pd
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from amlb_ext.stats.bounded_loss import cap_from_baseline
from amlb_ext.stats.claims import OVERALL, answer_questions
from amlb_ext.stats.contrasts import ComparedRows

SIZES, SAMPLES, TRAIN = (100, 300, 1000, 3000), 15, 2000
MODELS = {
    "ridge": make_pipeline(StandardScaler(), Ridge()),
    "tree": DecisionTreeRegressor(max_depth=5, random_state=0),
    "forest": RandomForestRegressor(40, random_state=0),
    "median": DummyRegressor(strategy="median"),
    "mean": DummyRegressor(),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor()),
    "extra": ExtraTreesRegressor(40, random_state=0),
    "boosting": HistGradientBoostingRegressor(random_state=0),
    "absolute": HistGradientBoostingRegressor(loss="absolute_error", random_state=0),
}
BASELINES = ("ridge", "tree", "forest", "median")


def verdicts(losses, loss_f, cap):
    table = answer_questions(losses, ComparedRows(loss_f=loss_f), cap=cap)
    return table.loc[table["question"] == OVERALL, "verdict"].to_numpy()


def count_withheld(X, y):
    """Return, for each size, questions, those without a verdict, and those that lost one."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    train, rest = order[:TRAIN], order[TRAIN:]
    span = np.ptp(y[rest])
    losses = pd.DataFrame(
        {
            name: ((model.fit(X[train], y[train]).predict(X[rest]) - y[rest]) / span)
            ** 2
            for name, model in MODELS.items()
        }
    )
    counts = {}
    for size in SIZES:
        counts[size] = np.zeros(3, dtype=int)
        for _ in range(SAMPLES):
            drawn = losses.iloc[rng.choice(len(rest), size, replace=False)]
            for name in BASELINES:
                loss_f, others = drawn[name].to_numpy(), drawn.drop(columns=name)
                cap = cap_from_baseline(loss_f)
                withheld = verdicts(others, loss_f, cap) == "no claim"
                by_cap = answer_questions(
                    cap.apply(others), ComparedRows(loss_f=cap.apply(loss_f))
                )
                by_cap = by_cap.loc[by_cap["question"] == OVERALL, "verdict"]
                had = (by_cap != "undecided").to_numpy() & withheld
                counts[size] += [len(withheld), withheld.sum(), had.sum()]
    return counts


def main(path, target, *left_out):
    table = pd.read_csv(path).dropna().drop(columns=list(left_out))
    y = table.pop(target).to_numpy(dtype=float)
    X = pd.get_dummies(table).to_numpy(dtype=float)
    for name, given in (("as is", y), ("exp", np.exp(3 * (y - y.mean()) / y.std()))):
        for size, (asked, withheld, had) in count_withheld(X, given).items():
            print(f"{name} {size} rows: {withheld} of {asked}, {had} had a verdict")


if __name__ == "__main__":
    main(*sys.argv[1:])
