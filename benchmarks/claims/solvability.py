"""Does the interval of solvability cover what the best candidate saves?

    python -m benchmarks.claims.solvability --draws 400 --seed 70000
    python -m benchmarks.claims.solvability --capped --draws 300 --seed 75000
    python -m benchmarks.claims.solvability --fitted --draws 200 --seed 80000

The first draws planted losses of twelve candidates and F (``benchmarks/claims/planted_saving.py``):
much to mend, little, nothing (F is the truth, the candidates are worse), twins (F is the truth,
they are nearly so), and one good model among eleven bad; two and five classes, regression with
normal noise and with t noise of 3 degrees. 80, 240 and 800 test rows hold some 10, 30 and 100 bad
ones. The truth is the best expected saving on 200,000 fresh rows, not below 0.

The second caps the squared errors of each draw at those of F, as the certificate does; the truth is
the best saving of the errors so capped, on 100,000 fresh rows.

The third fits all of it with the project's own code: 600 training rows, F of three families, the
certificate's own candidates beside it, weights P(bad | x) learned on the training rows; the truth
is the best saving of these fits on 20,000 fresh rows with the same weights.

Reported, over draws, with binomial standard errors:

cover   the interval covers the truth; ``above`` and ``below``: the truth lies above (below) it
low, high   mean limits
found   mendable, nothing to mend, not shown; in percent
before  coverage of the interval of 0.1.0: chosen on one half, judged on the other, one split
"""

import argparse

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig, HardnessConfig
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.split import PARTS, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.models.registry import resolve_model
from amlb_ext.stats.best_saving import best_saving
from amlb_ext.stats.bounded_loss import cap_from_baseline
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.validity.candidates import candidates_beside, fit_zoo
from amlb_ext.validity.measures import MENDABLE, NOT_SHOWN, NOTHING, NOTHING_LEFT
from benchmarks.claims.planted_saving import CASES, KINDS, Planted

TEST_ROWS = (80, 240, 800)
TRAIN, FITTED_TEST, FRESH = 600, 400, 20_000
FRESH_OF_CAPPED = 100_000
FAMILIES = {
    "linear": ("ridge", {}),
    "forest": ("random_forest", {}),
    "boosting": ("hist_gradient_boosting", {}),
}


def judged(G, F, w, truth, rng):
    """Return one record: the interval, what it found, and that of 0.1.0."""
    e = best_saving(G, F, w, np.arange(len(F)), rng)
    found = NOTHING if e.high <= NOTHING_LEFT else MENDABLE if e.low > 0 else NOT_SHOWN
    low, high = split_once(G, F, w, rng)
    return {
        "truth": truth, "low": e.low, "high": e.high, "found": found,
        "before": low <= truth <= high,
    }  # fmt: skip


def split_once(G, F, w, rng):
    """Return the interval that version 0.1.0 gave."""
    first = rng.permutation(len(F)) < len(F) // 2
    gain = np.zeros(len(F))
    for part in (first, ~first):
        best = int(np.argmin(np.average(G[~part], axis=0, weights=w[~part])))
        gain[part] = F[part] - G[part, best]
    level = np.average(F, weights=w)
    share = np.average(gain, weights=w) / level
    e = weighted_mean_interval(share + (gain - share * F) / level, w, np.arange(len(F)))
    return e.low, e.high


def planted_draws(seed, draws, case, kind):
    """Return the records of all draws of one planted case."""
    planted = Planted(case, kind)
    truth = planted.truth()
    records = []
    for rows in TEST_ROWS:
        for draw in range(draws):
            own = derive_seed(seed, case, kind, rows, draw) % 2**31
            rng = np.random.default_rng(own + 1)
            record = judged(*planted.draw(rows, own), truth, rng)
            records.append({"case": case, "kind": kind, "rows": rows, **record})
    return records


def capped_draws(seed, draws, case, kind):
    """Return the records of all draws of one planted regression, with errors that are capped."""
    planted = Planted(case, kind)
    fresh_g, fresh_f, fresh_w = planted.draw(FRESH_OF_CAPPED, 10**9)
    records = []
    for rows in TEST_ROWS:
        for draw in range(draws):
            own = derive_seed(seed, case, kind, rows, draw) % 2**31
            G, F, w = planted.draw(rows, own)
            cap = cap_from_baseline(F)
            level = fresh_w @ cap.apply(fresh_f)
            losses = fresh_w @ cap.apply(fresh_g)
            truth = max(0.0, float((1 - losses / level).max()))
            rng = np.random.default_rng(own + 1)
            record = judged(cap.apply(G), cap.apply(F), w, truth, rng)
            records.append({"case": case, "kind": kind, "rows": rows, **record})
    return records


def problem(kind, n, rng, slopes):
    """Return features in 0 to 1 and targets; a corner is noisy, another unlike the rest."""
    Z = rng.random((n, 6))
    f = slopes[0] * Z[:, 0] + slopes[1] * np.sin(6 * Z[:, 1]) + slopes[2] * Z[:, 2]
    f = np.where((Z[:, 3] > 0.6) & (Z[:, 4] > 0.6), slopes.sum() - f, f)
    noisy = np.where(Z[:, 5] > 0.8, 2.0, 1.0)
    if kind is Kind.REGRESSION:
        return Z, (f + 0.2 * noisy * rng.normal(size=n)) / 4
    p = 1 / (1 + np.exp(-5 / noisy * (f - 0.5 * slopes.sum())))
    return Z, (rng.random(n) < p).astype(int)


def fitted_draw(seed, draw, kind, family):
    """Return the record of one draw with fitted models."""
    key = (seed, draw, kind.value, family)
    classes = 0 if kind is Kind.REGRESSION else 2
    rng = random_stream(*key, "problem")
    slopes = rng.normal(1, 0.2, 3)
    Z, y = problem(kind, TRAIN, rng, slopes)
    name, params = FAMILIES[family]
    spec = resolve_model(BaselineConfig(model=name, params=params), kind)
    own = derive_seed(*key, "fit") % 2**31
    with threadpool_limits(1):
        F = EstimatorBaseline(spec, kind, classes, 0).fit(Z, y, own)
        out, _ = F.cross_fit(
            Z, y, np.arange(len(y)), cross_folds(y, classes, PARTS, own), own
        )
        labels = ("0", "1")[:classes]
        rule = settle_rule(
            HardnessConfig(rule="auto"), kind, labels, y=y[:, None], f=out[:, None]
        )
        region = Region(own).fit(
            Z, rule.select(rule.hardness(y[:, None], out[:, None]))
        )
        zoo, _ = fit_zoo(candidates_beside(spec, kind), kind, classes, 0, Z, y, own)
        scored = []
        for rows in (FITTED_TEST, FRESH):
            Z_test, y_test = problem(kind, rows, rng, slopes)
            G = [
                row_losses.row_loss(y_test, model.predict(Z_test))
                for model in zoo.values()
            ]
            f = row_losses.row_loss(y_test, F.predict(Z_test))
            scored.append((np.column_stack(G), f, region.weights(Z_test)))
    G, f, w = scored[1]
    truth = max(0.0, float((w @ (f[:, None] - G) / (w @ f)).max()))
    record = judged(*scored[0], truth, random_stream(*key, "halves"))
    return [{"case": f"F {family}", "kind": kind.value, "rows": FITTED_TEST, **record}]


def rate(hits):
    """Percent with its binomial standard error."""
    p, n = np.mean(hits), len(hits)
    return f"{100 * p:.1f} ± {100 * np.sqrt(p * (1 - p) / n):.1f}"


def report(table):
    """Print one line per case, kind and number of rows."""
    print("| case | kind | rows | truth | cover % | above | below | low | high | mendable | "
          "nothing | not shown | before % |")  # fmt: skip
    print("|" + "---|" * 13)
    for key, part in table.groupby(["case", "kind", "rows"], sort=False):
        above = part["truth"] > part["high"] + 1e-9
        below = part["truth"] < part["low"] - 1e-9
        found = [f"{100 * (part['found'] == word).mean():.0f}"
                 for word in (MENDABLE, NOTHING, NOT_SHOWN)]  # fmt: skip
        cells = [*map(str, key), f"{part['truth'].mean():.2f}", rate(~above & ~below)]
        cells += [f"{100 * above.mean():.1f}", f"{100 * below.mean():.1f}"]
        cells += [f"{part['low'].mean():.2f}", f"{part['high'].mean():.2f}", *found]
        cells.append(f"{100 * part['before'].mean():.0f}")
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=70000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--fitted", action="store_true", help="fit F, candidates and weights"
    )
    parser.add_argument(
        "--capped", action="store_true", help="regression alone, errors capped at F's"
    )
    given = parser.parse_args()
    if given.fitted:
        kinds = (Kind.BINARY, Kind.REGRESSION)
        cases = [(kind, family) for kind in kinds for family in FAMILIES]
        jobs = [
            (given.seed, draw, *case) for case in cases for draw in range(given.draws)
        ]
        done = run_jobs(fitted_draw, jobs, given.workers)
    else:
        kinds = ("regression", "tails") if given.capped else KINDS
        jobs = [
            (given.seed, given.draws, case, kind) for case in CASES for kind in kinds
        ]
        draws = capped_draws if given.capped else planted_draws
        done = run_jobs(draws, jobs, given.workers)
    records = dict(tqdm(done, total=len(jobs)))
    report(
        pd.DataFrame([record for index in sorted(records) for record in records[index]])
    )


if __name__ == "__main__":
    main()
