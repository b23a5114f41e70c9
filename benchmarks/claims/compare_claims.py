"""What `compare` claims, held against the truth of simulated populations.

    python -m benchmarks.claims.compare_claims [DRAWS] [SEED]

Each draw fits F and three candidates on 400 rows and compares them on 600 others. The truth is the
mean over 60,000 further rows of the expected loss, since P(y | x) is known: over all of them, and
weighted by P(bad | x) as a forest learns it from 8,000 others. (A mean over 8,000 labelled rows is
no truth: its own noise took .05 from the coverage.) Printed: how often a verdict is wrong, in how
many draws any is, how often intervals hold the truth, and how often gains are found, beside a
paired t test with Holm's adjustment.
"""

import sys

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from amlb_ext.comparison import compare
from amlb_ext.core.row_losses import brier_loss
from amlb_ext.stats.weighted_mean import holm_adjusted

TRAIN, TEST, LEARN, TRUTH = 400, 600, 8_000, 60_000


def draw_rows(n, turned, rng):
    """Return rows whose label turns round in a corner of the features, labels and P(y = 1 | x)."""
    X = pd.DataFrame(rng.normal(size=(n, 6)), columns=list("abcdef"))
    sign = np.where(X["a"] > 0.5, 1 - 2 * turned, 1)
    score = 1.5 * sign * X["c"] + X["d"] - 0.5 * X["e"]
    chance = 1 / (1 + np.exp(-score))
    return X, (rng.random(n) < chance).astype(int), chance


def expected_loss(probabilities, chance):
    """Return the Brier loss of each row, expected over its label."""
    ones = np.ones(len(chance), dtype=int)
    loss_of_one = brier_loss(ones, probabilities)
    loss_of_zero = brier_loss(0 * ones, probabilities)
    return chance * loss_of_one + (1 - chance) * loss_of_zero


def draw_models(rng):
    """Return how far the corner is turned, F, the candidates, and training and test rows."""
    # in a third of the draws no model can gain anything from the corner
    turned = rng.choice([0.0, 0.5, 1.0])
    X, y, _ = draw_rows(TRAIN + TEST, turned, rng)
    X0, y0, X1, y1 = X[:TRAIN], y[:TRAIN], X[TRAIN:], y[TRAIN:]
    F = LogisticRegression().fit(X0, y0)
    half = rng.permutation(TRAIN)[: TRAIN * 4 // 5]
    candidates = {
        "twin of F": LogisticRegression().fit(X0.iloc[half], y0[half]),
        "forest": RandomForestClassifier(60, min_samples_leaf=5, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    }
    for name in ("forest", "boosting"):
        candidates[name].fit(X0, y0)
    return turned, F, candidates, (X0, y0, X1, y1)


def run_draw(seed):
    """Return one row for each candidate and question: what was claimed, and what is true."""
    rng = np.random.default_rng(seed)
    turned, F, candidates, (X0, y0, X1, y1) = draw_models(rng)
    result = compare(F, candidates, X1, y1, train=(X0, y0), rule="band", seed=seed)

    alpha = float(result.rule.rsplit("alpha ", 1)[1])
    learnt, _, _ = draw_rows(LEARN, turned, rng)
    bad = F.predict_proba(learnt).max(axis=1) <= alpha
    forest = RandomForestClassifier(60, min_samples_leaf=25, random_state=0)
    forest.fit(learnt, bad)
    rows, _, chance = draw_rows(TRUTH, turned, rng)
    loss_f = expected_loss(F.predict_proba(rows), chance)
    weights = forest.predict_proba(rows)[:, 1] + 1e-4
    weights_by_question = {"overall": np.ones(TRUTH), "where F fails": weights}
    differences = pd.DataFrame(
        {
            name: brier_loss(y1, model.predict_proba(X1))
            - brier_loss(y1, F.predict_proba(X1))
            for name, model in candidates.items()
        }
    )
    p_values = [ttest_rel(d, np.zeros(TEST)).pvalue for d in differences.to_numpy().T]
    t_test = dict(zip(candidates, holm_adjusted(np.array(p_values)), strict=True))

    records = []
    for name, model in candidates.items():
        gap = expected_loss(model.predict_proba(rows), chance) - loss_f
        for question, w in weights_by_question.items():
            row = result.row(name, question)
            truth = float(w @ gap / w.sum())
            t_better = t_test[name] < 0.05 and differences[name].mean() < 0
            records.append(
                {
                    "model": name,
                    "question": question,
                    "truth": truth,
                    "draw": seed,
                    "has_interval": np.isfinite(row["low"]),
                    "covered": row["low"] <= truth <= row["high"],
                    "claims": row["verdict"] in ("better", "worse"),
                    "false": (row["verdict"] == "better" and truth >= 0)
                    or (row["verdict"] == "worse" and truth <= 0),
                    "better": row["verdict"] == "better",
                    "t_better": t_better,
                    "gains": truth < -0.003,
                }
            )
    return records


def main(draws=200, seed=0):
    """Run the draws and print the table."""
    rows = []
    for number in range(draws):
        rows += run_draw(seed + number)
    table = pd.DataFrame(rows)
    print(f"{draws} draws, seeds {seed} to {seed + draws - 1}")
    for question, part in table.groupby("question"):
        n = len(part)
        answered = part[part["has_interval"]]
        share = answered["covered"].mean()
        error = np.sqrt(share * (1 - share) / len(answered))
        gaining = part[part["gains"]]
        print(
            f"{question}: {int(part['false'].sum())} false of {int(part['claims'].sum())} claims "
            f"in {n} comparisons ({part['false'].mean():.1%}); coverage {share:.3f} ± {error:.3f} "
            f"of {len(answered)} intervals; gains found {gaining['better'].mean():.0%} "
            f"(paired t test on all rows {gaining['t_better'].mean():.0%}) of {len(gaining)}"
        )
        by_model = part.groupby("model")[["false", "better"]].mean()
        by_model["covered"] = answered.groupby("model")["covered"].mean()
        print(by_model.round(3).to_string())
    gaining = table[table["gains"]].groupby(["draw", "model"])
    found = gaining[["better", "t_better"]].max().mean()
    any_false = table.groupby("draw")["false"].max().mean()
    print(
        f"gains overall or where F fails: {len(gaining)}, shown by either question "
        f"{found['better']:.0%}, by the paired t test {found['t_better']:.0%}; draws with any "
        f"false claim {any_false:.1%}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
