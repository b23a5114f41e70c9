"""Does F, fitted again, pass for a better model? The rates of the null control.

    python -m benchmarks.claims.null_control --draws 200 --seed 20000

Each draw simulates a binary and a regression problem (600 training rows, 300 test rows, 8
columns, a non-linear truth, noise that is larger in one region), fits F of three families, settles
the rule K on F's out-of-fold output, and learns the region weights P(bad | x), all with the
project's own code. F is then fitted again in several *designs*: on which rows a re-fit is fitted.
``project`` is without one of five parts each, as in a suite's own cross-fitting; ``random80`` on
random 80 %, as re-fits beyond those are, and every candidate.
Reported per design and number of re-fits R, over draws, with binomial standard errors:

flag    ``null_check`` fails: the twins seem to beat F. A false alarm on ``all`` and ``region``; on
        ``bad`` rows, which F's realised errors chose, an alarm that should be raised
alone   one more re-fit of the design, as a candidate, is significantly better than F (p < .05,
        the error of its fit left out); ``either`` counts worse as well
verdict what ``contrasts(..., null=twins)`` calls that candidate

``all`` weighs the test rows alike, ``region`` by P(bad | x). ``--shift`` adds by how many percent
re-fits change F's mean loss, with its standard error over draws: below 0 they are better than F.
With ``--folds 5`` the training rows of the folds overlap, as in a suite, and results are pooled.
"""

import argparse
from collections import Counter

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig, HardnessConfig
from amlb_ext.core.parallel import run_jobs
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Kind
from amlb_ext.core.unit import ROW
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.split import PARTS, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.models.registry import resolve_model
from amlb_ext.stats.claims import REGION, answer_questions
from amlb_ext.stats.contrasts import ComparedUnits, mean_contrast
from amlb_ext.stats.weighted_mean import p_value
from amlb_ext.validity.ranking_measures import measure_null
from amlb_ext.validity.task_rows import refit_rows

TRAIN, TEST, COLUMNS = 600, 300, 8
FAMILIES = {
    "linear": ("ridge", {}),
    "forest": ("random_forest", {"n_estimators": 25}),
    "boosting": ("hist_gradient_boosting", {"max_iter": 25, "max_leaf_nodes": 8}),
}
#: The rule of each kind that ``auto`` stands for, and the one by realised error.
RULES = {Kind.BINARY: ("band", "wrong"), Kind.REGRESSION: ("absolute",)}


#: On which rows F is fitted again.
DESIGNS = ("project", "random80")


def problem(kind, folds, rng):
    """Return the rows of a problem of its own, and the fold in which each is tested."""
    n = TRAIN + TEST if folds == 1 else round(TRAIN * folds / (folds - 1))
    Z = rng.normal(size=(n, COLUMNS))
    a = rng.normal(1, 0.3, 4)
    f = a[0] * Z[:, 0] + 1.5 * a[1] * np.sin(2 * Z[:, 1]) + a[2] * Z[:, 2] * Z[:, 3]
    f += a[3] * np.where(Z[:, 4] > 0, 1, -1) * Z[:, 5]
    noisy = Z[:, 6] > 0.7
    if kind is Kind.BINARY:
        p = 1 / (1 + np.exp(-2 * f * np.where(noisy, 0.2, 1)))
        y = (rng.random(n) < p).astype(int)
    else:
        y = f + rng.normal(size=n) * np.where(noisy, 1.5, 0.4)
    fold = np.where(np.arange(n) < TRAIN, -1, 0) if folds == 1 else np.arange(n) % folds
    return Z, y, fold


def one_draw(seed, draw, folds, designs, families, refits):
    """Return the records of one draw."""
    records = []
    with threadpool_limits(1):
        for kind in RULES:
            Z, y, fold = problem(
                kind, folds, random_stream(seed, draw, "problem", kind.value)
            )
            for family in families:
                key = (seed, draw, kind.value, family)
                scored = [_fold(Z, y, fold, k, kind, family, designs, max(refits), key)
                          for k in range(folds)]  # fmt: skip
                pooled = pd.concat(scored, ignore_index=True)
                for rule in RULES[kind]:
                    places = {"all": np.ones(len(pooled)), "region": pooled.get(f"w {rule}"),
                              "bad": pooled[f"bad {rule}"].to_numpy(float)}  # fmt: skip
                    about = {"draw": draw, "task": f"{kind.value} {rule}", "F": family}
                    records += [
                        about
                        | {"where": where, "design": design, "R": number, **record}
                        for where, weight in places.items()
                        for design in designs
                        for number in refits
                        if weight is not None
                        and (
                            record := _judged(
                                pooled, design, np.asarray(weight), number
                            )
                        )
                    ]
    return records


def _fold(Z, y, fold, k, kind, family, designs, refits, key):
    """Return losses, weights and bad flags of the test rows of one fold."""
    here = fold == k
    Z, Z_test, y, y_test = Z[~here], Z[here], y[~here], y[here]
    low, span = Z.min(axis=0), np.ptp(Z, axis=0)
    Z, Z_test = (
        (Z - low) / span,
        (Z_test - low) / span,
    )  # as the encoder does: penalties bite
    classes = 2 if kind is Kind.BINARY else 0
    if not classes:
        y, y_test = (y - y.min()) / np.ptp(y), (y_test - y.min()) / np.ptp(y)
    name, params = FAMILIES[family]
    spec = resolve_model(BaselineConfig(model=name, params=params), kind)
    own = derive_seed(*key, k, "fit") % 2**31
    F = EstimatorBaseline(spec, kind, classes, 0).fit(Z, y, own)
    out, fits = F.cross_fit(
        Z, y, np.arange(len(y)), cross_folds(y, classes, PARTS, own), own
    )
    f = F.predict(Z_test)
    table = {"row": np.flatnonzero(here), "fold": np.full(len(f), k),
             "F": row_losses.row_loss(y_test, f)}  # fmt: skip
    for rule_name in RULES[kind]:
        rule = settle_rule(
            HardnessConfig(rule=rule_name),
            kind,
            ("0", "1")[:classes],
            y=y[:, None],
            f=out[:, None],
        )
        table[f"bad {rule_name}"] = rule.select(
            rule.hardness(y_test[:, None], f[:, None])
        )
        if rule_name != "wrong":
            region = Region(own).fit(
                Z, rule.select(rule.hardness(y[:, None], out[:, None]))
            )
            table[f"w {rule_name}"] = region.weights(Z_test)
    for design in designs:
        for number in range(refits + 1):  # the last is the candidate
            rng = random_stream(*key, k, design, number)
            if design == "project" and number < min(
                refits, PARTS
            ):  # they come with the suite
                table[f"{design} {number}"] = row_losses.row_loss(
                    y_test, fits[number].predict(Z_test)
                )
                continue
            rows = refit_rows(y, classes, rng)
            twin = EstimatorBaseline(spec, kind, classes, 0)
            twin.fit(
                Z[rows], y[rows], derive_seed(*key, k, design, number, "fit") % 2**31
            )
            table[f"{design} {number}"] = row_losses.row_loss(
                y_test, twin.predict(Z_test)
            )
        table[f"{design} candidate"] = table.pop(f"{design} {refits}")
    return pd.DataFrame(table)


def _judged(pooled, design, weight, refits):
    kept, weight = pooled[weight > 0], weight[weight > 0]
    loss, rows = kept["F"].to_numpy(), kept["row"].to_numpy()
    twins = kept[[f"{design} {number}" for number in range(refits)]]
    candidate = kept[f"{design} candidate"].to_numpy()
    check = measure_null(
        twins.to_numpy(),
        loss,
        clusters=rows,
        fold=kept["fold"].to_numpy(),
        weights=weight,
        where="",
        unit=ROW,
    )
    if check.value is None:
        return None
    alone = mean_contrast(candidate, loss, weight, rows)
    answers = answer_questions(
        pd.DataFrame({"again": candidate}),
        ComparedUnits(loss_f=loss, weights=weight, clusters=rows, refits=twins),
        smallest=0.0,
    ).set_index("question")
    return {
        "flag": not check.passed,
        "t": check.value,
        "alone": bool(p_value(alone) < 0.05 and alone.point < 0),
        "either": bool(p_value(alone) < 0.05),
        "verdict": answers.loc[REGION, "verdict"],
        "point": float(np.average(twins.mean(axis=1) - loss, weights=weight)),
        "level": float(np.average(loss, weights=weight)),
    }


def rate(hits):
    """Percent with its binomial standard error."""
    p, n = np.mean(hits), len(hits)
    return f"{100 * p:.1f} ± {100 * np.sqrt(p * (1 - p) / n):.1f}"


def report(table, shift):
    print("| task, rule | F | where | design | R | draws | flag % | alone % | either % | verdicts |"
          + (" shift |" if shift else ""))  # fmt: skip
    print("|" + "---|" * (11 if shift else 10))
    for key, part in table.groupby(["task", "F", "where", "design", "R"], sort=False):
        words = Counter(part["verdict"])
        said = (
            ", ".join(f"{words[v]} {v}" for v in ("better", "worse") if words[v])
            or "none"
        )
        rates = [rate(part[c]) for c in ("flag", "alone", "either")]
        cells = [*map(str, key), str(len(part)), *rates, said]
        if shift:
            gain = part["point"] / part["level"]
            cells.append(
                f"{100 * gain.mean():+.2f} ± {100 * gain.std() / np.sqrt(len(gain)):.2f}"
            )
        print("| " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20000)
    parser.add_argument("--folds", type=int, default=1)
    parser.add_argument("--refits", type=int, nargs="+", default=[3])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--designs", nargs="+", default=["project"], choices=DESIGNS)
    parser.add_argument(
        "--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES)
    )
    parser.add_argument(
        "--shift", action="store_true", help="mean change of loss, in percent"
    )
    given = parser.parse_args()
    shared = (
        given.folds,
        tuple(given.designs),
        tuple(given.families),
        tuple(given.refits),
    )
    jobs = [(given.seed, draw, *shared) for draw in range(given.draws)]
    records = []
    for _, some in tqdm(run_jobs(one_draw, jobs, given.workers), total=len(jobs)):
        records += some
    table = pd.DataFrame(records).sort_values("draw", kind="stable")
    report(table, given.shift)


if __name__ == "__main__":
    main()
