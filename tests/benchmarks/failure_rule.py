"""What the default rule changes: the paper's band and threshold against real failures.

    python tests/benchmarks/failure_rule.py DATA [DRAWS] [SEED]

DATA is a folder with adult/adult.data, bank/bank-full.csv, bike/hour.csv, housing/housing.csv and
diabetes/diabetes_dataset.parquet. Of each table 1,000 rows train, 1,000 are given to ``compare``,
and up to 8,000 others tell the truth. Two F, four candidates. Printed for each rule, with standard
errors over draws:

- bad: share of rows called bad; right: share of these that F decides rightly (classes);
  elsewhere: share of F's wrong rows, or of its squared error, that lies outside of the bad ones;
- auc: how well the region foretells, on the other rows, where F decides wrongly, or errs more than
  on nine of ten rows;
- found: how often features foretell the bad rows at all;
- said: verdicts where F fails, of all that could be given; own: those that differ from the verdict
  over all rows; false: those against the sign that the other rows show beyond two standard errors.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from amlb_ext.comparison.compare import compare_labelled
from amlb_ext.comparison.failures import failures
from amlb_ext.comparison.models import choose_loss, predict_rows
from amlb_ext.core.config import HardnessConfig
from amlb_ext.models.adapter import ModelAdapter
from amlb_ext.units.labelled import read_labelled_rows
from amlb_ext.units.rows import judge_rows

RULES = {
    "classification": {
        "band": HardnessConfig(rule="band", most=1.0),
        "wrong": HardnessConfig(),
    },
    "regression": {
        "absolute": HardnessConfig(rule="absolute", most=1.0),
        "worst tenth": HardnessConfig(share=0.1),
        "worst fifth": HardnessConfig(share=0.2),
    },
}


def read_tables(folder: Path):
    """Yield the name, the features, the target and the kind of each table."""
    adult = pd.read_csv(
        folder / "adult" / "adult.data", header=None, skipinitialspace=True
    )
    yield "adult", adult.drop(columns=14).add_prefix("c"), adult[14], "classification"
    bank = pd.read_csv(folder / "bank" / "bank-full.csv")
    yield "bank", bank.drop(columns="y"), bank["y"], "classification"
    sick = pd.read_parquet(folder / "diabetes" / "diabetes_dataset.parquet")
    told = sick.filter(regex="diabetes|hba1c|glucose").columns
    yield (
        "diabetes",
        sick.drop(columns=told),
        sick["diagnosed_diabetes"],
        "classification",
    )
    bike = pd.read_csv(folder / "bike" / "hour.csv")
    parts = ["cnt", "casual", "registered", "dteday", "instant"]
    yield "bike", bike.drop(columns=parts), bike["cnt"], "regression"
    housing = pd.read_csv(folder / "housing" / "housing.csv")
    price = "median_house_value"
    yield "housing", housing.drop(columns=price), housing[price], "regression"


def make_models(kind: str, seed: int):
    """Return two F and four candidates, unfitted."""
    encode = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore", sparse_output=False),
            make_column_selector(dtype_exclude=np.number),
        ),
        remainder=make_pipeline(SimpleImputer(), StandardScaler()),
    )
    is_class = kind == "classification"
    linear = LogisticRegression(max_iter=1000) if is_class else Ridge()
    forest = RandomForestClassifier if is_class else RandomForestRegressor
    extra = ExtraTreesClassifier if is_class else ExtraTreesRegressor
    boosting = (
        HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    )
    tree = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    own = {"random_state": seed}
    baselines = {"linear": linear, "forest": forest(100, **own)}
    candidates = {
        "boosting": boosting(**own),
        "extra": extra(100, min_samples_leaf=3, **own),
        "tree": tree(max_depth=5, **own),
        "small forest": forest(30, min_samples_leaf=10, **own),
    }
    return (
        {name: make_pipeline(encode, model) for name, model in group.items()}
        for group in (baselines, candidates)
    )


def measure(F, candidates, train, rows, pool, kind, config, seed):
    """Return the measures of one rule on one draw."""
    result = compare_labelled(
        F,
        candidates,
        *rows,
        train=train,
        kind=None,
        config=config,
        null="auto",
        refits=5,
        level=0.95,
        seed=seed,
        order=None,
        train_order=None,
    )
    adapter = ModelAdapter(F, "F")
    known = read_labelled_rows(*pool, models=[adapter])
    said = predict_rows(adapter, known)
    _, row_loss = choose_loss(known, [said])
    loss_f = row_loss(said)
    judged = judge_rows(known, said, loss_f, config, seed=seed, with_jackknife=False)
    is_bad, weights = judged.is_bad, judged.compared.weights
    wrong = (
        said.decided != known.y
        if kind == "classification"
        else loss_f > np.quantile(loss_f, 0.9)
    )
    share_of_loss = wrong if kind == "classification" else loss_f
    out = {
        "bad": is_bad.mean(),
        "right": 1 - wrong[is_bad].mean() if is_bad.any() else np.nan,
        "elsewhere": 1 - share_of_loss[is_bad].sum() / share_of_loss.sum(),
        "found": float(weights is not None),
        "auc": np.nan,
    }
    if weights is not None:
        out["auc"] = roc_auc_score(wrong, weights)
    verdicts = result.table["where_f_fails"]
    out["said"] = verdicts.isin(("better", "worse")).mean()
    out["own"] = (
        verdicts.isin(("better", "worse")) & (verdicts != result.table["overall"])
    ).mean()
    out["false"] = 0.0
    for name, model in candidates.items():
        if weights is None or verdicts[name] not in ("better", "worse"):
            continue
        d = row_loss(predict_rows(ModelAdapter(model, name), known)) - loss_f
        mean = np.average(d, weights=weights)
        se = np.sqrt((weights**2 * (d - mean) ** 2).sum()) / weights.sum()
        against = mean > 2 * se if verdicts[name] == "better" else mean < -2 * se
        out["false"] += against / len(candidates)
    return out


def noise(draws: int = 40) -> float:
    """Return how often a region is found where F is a constant and y has nothing to do with X."""
    found = 0
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
        y = (rng.random(600) < 0.4).astype(int)
        F = DummyClassifier().fit(X[:200], y[:200])
        found += not failures(F, X[200:], y[200:]).problem
    return found / draws


def main(folder: str, draws: int = 3, seed: int = 0) -> None:
    """Measure both rules on all tables."""
    warnings.simplefilter("ignore")
    records = []
    for table, X, y, kind in read_tables(Path(folder)):
        for draw in range(draws):
            order = np.random.default_rng([seed, draw]).permutation(len(X))
            old, new, others = order[:1000], order[1000:2000], order[2000:10000]
            baselines, candidates = make_models(kind, draw)
            for group in (baselines, candidates):
                for model in group.values():
                    model.fit(X.iloc[old], y.iloc[old])
            for name, F in baselines.items():
                for rule, config in RULES[kind].items():
                    found = measure(
                        F,
                        candidates,
                        (X.iloc[old], y.iloc[old]),
                        (X.iloc[new], y.iloc[new]),
                        (X.iloc[others], y.iloc[others]),
                        kind,
                        config,
                        draw,
                    )
                    records.append({"table": table, "F": name, "rule": rule, **found})
            print(table, draw, file=sys.stderr)
    measures = pd.DataFrame(records)
    print(f"regions found on noise: {noise():.3f}")
    by_rule = measures.drop(columns=["table", "F"]).groupby("rule")
    mean, error = by_rule.mean(), by_rule.sem()
    print(
        (mean.round(3).astype(str) + " ± " + error.round(3).astype(str)).T.to_string()
    )
    print(
        measures.groupby(["table", "rule"]).mean(numeric_only=True).round(3).to_string()
    )


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
