"""Does F, fitted again, pass for a better model? The rates of the null control.

Each draw simulates a binary and a regression problem (600 training rows, 300 test rows, 8
columns, a non-linear truth, noise that is larger in one region), fits F of three families, settles
the rule K on F's out-of-fold output, and learns the region weights P(bad | x), all with the
project's own code. F is then fitted again in several *designs*: on which rows a re-fit is fitted.
``project`` is without one of five parts each, as in a suite's own cross-fitting; ``random80`` on
random 80 %, as re-fits beyond those are, and every candidate.
Told per design and number of re-fits R, over draws:

flag    ``null_check`` fails: the twins seem to beat F. A false alarm on ``all`` and ``region``; on
        ``bad`` rows, which F's realised errors chose, an alarm that should be raised
alone   one more re-fit of the design, as a candidate, is significantly better than F (p < .05,
        the error of its fit left out); ``either`` counts worse as well
better, worse   ``contrasts(..., null=twins)`` calls that candidate so
shift   by how many percent re-fits change F's mean loss: below 0 they are better than F

``all`` weighs the test rows alike, ``region`` by P(bad | x). With ``folds=5`` the training rows of
the folds overlap, as in a suite, and results are pooled.
"""

import itertools
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import Field

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig, HardnessConfig
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
from benchmarks.studies.engine import Seeded, Study, flat_rows, grid
from benchmarks.studies.page import summarize_means

TRAIN, TEST, COLUMNS = 600, 300, 8
FAMILIES = {
    "linear": ("ridge", {}),
    "forest": ("random_forest", {"n_estimators": 25}),
    "boosting": ("hist_gradient_boosting", {"max_iter": 25, "max_leaf_nodes": 8}),
}
#: The rule of each kind that ``auto`` stands for, and the one by realised error.
RULES = {Kind.BINARY: ("band", "wrong"), Kind.REGRESSION: ("absolute",)}


class NullSettings(Seeded):
    """What the study of the null control may be told.

    Attributes
    ----------
    draws : int
    folds : int
    refits : tuple of int
        R.
    designs : tuple of str
        On which rows F is fitted again.
    families : tuple of str
    seed : int
    """

    folds: int = Field(1, ge=1)
    refits: tuple[int, ...] = (3,)
    designs: tuple[Literal["project", "random80"], ...] = ("project",)
    families: tuple[Literal["linear", "forest", "boosting"], ...] = tuple(FAMILIES)


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


def judge_refits(settings, *, draw, kind, F):
    """Return, by rule, place, design and number of re-fits, what is said of re-fits of F."""
    rng = random_stream(settings.seed, draw, "problem", kind)
    Z, y, fold = problem(Kind(kind), settings.folds, rng)
    key = (settings.seed, draw, kind, F)
    scored = [_fold(Z, y, fold, k, settings, key) for k in range(settings.folds)]
    pooled = pd.concat(scored, ignore_index=True)
    rows = []
    for rule in RULES[Kind(kind)]:
        places = {
            "all": np.ones(len(pooled)),
            "region": pooled.get(f"w {rule}"),
            "bad": pooled[f"bad {rule}"].to_numpy(float),
        }
        for where, design, number in itertools.product(
            places, settings.designs, settings.refits
        ):
            if places[where] is not None:
                weight = np.asarray(places[where])
                figures = _judged(pooled, design, weight, number)
                labels = {"rule": rule, "where": where, "design": design, "R": number}
                rows += flat_rows(figures, "figure", **labels)
    return rows


def _fold(Z, y, fold, k, settings, key):
    """Return losses, weights and bad flags of the test rows of one fold."""
    kind, refits = Kind(key[2]), max(settings.refits)
    here = fold == k
    Z, Z_test, y, y_test = Z[~here], Z[here], y[~here], y[here]
    low, span = Z.min(axis=0), np.ptp(Z, axis=0)
    # as the encoder does: penalties bite
    Z, Z_test = (Z - low) / span, (Z_test - low) / span
    classes = 2 if kind is Kind.BINARY else 0
    if not classes:
        y, y_test = (y - y.min()) / np.ptp(y), (y_test - y.min()) / np.ptp(y)
    name, params = FAMILIES[key[3]]
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
    for design in settings.designs:
        for number in range(refits + 1):
            twin = EstimatorBaseline(spec, kind, classes, 0)
            # they come with the suite
            if design == "project" and number < min(refits, PARTS):
                twin = fits[number]
            else:
                rows = refit_rows(y, classes, random_stream(*key, k, design, number))
                own = derive_seed(*key, k, design, number, "fit") % 2**31
                twin.fit(Z[rows], y[rows], own)
            # the last is the candidate
            name = "candidate" if number == refits else number
            loss = row_losses.row_loss(y_test, twin.predict(Z_test))
            table[f"{design} {name}"] = loss
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
        return {}
    alone = mean_contrast(candidate, loss, weight, rows)
    answers = answer_questions(
        pd.DataFrame({"again": candidate}),
        ComparedUnits(loss_f=loss, weights=weight, clusters=rows, refits=twins),
        smallest=0.0,
    ).set_index("question")
    is_significant = p_value(alone) < 0.05
    verdict = answers.loc[REGION, "verdict"]
    change = np.average(twins.mean(axis=1) - loss, weights=weight)
    return {
        "flag": not check.passed,
        "alone": is_significant and alone.point < 0,
        "either": is_significant,
        "better": verdict == "better",
        "worse": verdict == "worse",
        "shift, %": 100 * change / np.average(loss, weights=weight),
    }


STUDIES = (
    Study(
        name="null-control",
        title="Whether F, fitted again, passes for a better model",
        group="claims",
        settings=NullSettings(draws=200, seed=20_000),
        cells=grid(draw="draws", kind=[kind.value for kind in RULES], F="families"),
        compute=judge_refits,
        summarize=summarize_means("kind", "rule", "F", "where", "design", "R"),
        small={"draws": 1, "families": ("linear",)},
    ),
)
