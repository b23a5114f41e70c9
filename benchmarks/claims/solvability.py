"""Does the interval of solvability cover what the best candidate saves?

``planted`` draws losses of twelve candidates and F (``benchmarks/claims/planted_saving.py``): much
to mend, little, nothing (F is the truth, the candidates are worse), twins (F is the truth, they
are nearly so), and one good model among eleven bad; two and five classes, regression with normal
noise and with t noise of 3 degrees. 80, 240 and 800 test rows hold some 10, 30 and 100 bad ones.
The truth is the best expected saving on 200,000 fresh rows, not below 0.

``capped`` caps the squared errors of each draw at those of F, as the certificate does; the truth is
the best saving of the errors so capped, on 100,000 fresh rows.

``fitted`` fits all of it with the project's own code: 600 training rows, F of three families, the
certificate's own candidates beside it, weights P(bad | x) learned on the training rows; the truth
is the best saving of these fits on 20,000 fresh rows with the same weights.

Told, over draws:

cover   the interval covers the truth; ``above`` and ``below``: the truth lies above (below) it
low, high   mean limits
mendable, nothing to mend, not shown   what is found
before  coverage of the interval of 0.1.0: chosen on one half, judged on the other, one split
"""

from typing import ClassVar, Literal

import numpy as np

from amlb_ext.core import row_losses
from amlb_ext.core.config import BaselineConfig, HardnessConfig
from amlb_ext.core.rng import derive_seed, random_stream
from amlb_ext.core.task import Kind
from amlb_ext.hardening.baseline.estimator import EstimatorBaseline
from amlb_ext.hardening.hardness import settle_rule
from amlb_ext.hardening.split import PARTS, cross_folds
from amlb_ext.hardening.weights import Region
from amlb_ext.models.registry import resolve_model
from amlb_ext.stats.best_saving import best_saving
from amlb_ext.stats.bounded_loss import NO_CAP, cap_from_baseline
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.validity.candidates import candidates_beside, fit_zoo
from amlb_ext.validity.measures import MENDABLE, NOT_SHOWN, NOTHING, NOTHING_LEFT
from benchmarks.claims.planted_saving import CASES, KINDS, Planted
from benchmarks.studies.engine import Seeded, Study, flat_rows, grid
from benchmarks.studies.page import summarize_means

TEST_ROWS = (80, 240, 800)
TRAIN, FITTED_TEST, FRESH = 600, 400, 20_000
FRESH_OF_CAPPED = 100_000
FAMILIES = {
    "linear": ("ridge", {}),
    "forest": ("random_forest", {}),
    "boosting": ("hist_gradient_boosting", {}),
}


class SolvabilitySettings(Seeded):
    """What the study of solvability may be told.

    Attributes
    ----------
    draws : int
    way : {'planted', 'capped', 'fitted'}
    seed : int
    """

    # a cell of planted losses has all draws: they share its truth
    chooses: ClassVar[frozenset[str]] = frozenset()

    way: Literal["planted", "capped", "fitted"] = "planted"


def judged(G, F, w, truth, rng):
    """Return the figures of one draw: the interval, what it found, and that of 0.1.0."""
    e = best_saving(G, F, w, np.arange(len(F)), rng)
    found = NOTHING if e.high <= NOTHING_LEFT else MENDABLE if e.low > 0 else NOT_SHOWN
    low, high = split_once(G, F, w, rng)
    above, below = truth > e.high + 1e-9, truth < e.low - 1e-9
    return {
        "truth": truth,
        "cover": not above and not below,
        "above": above,
        "below": below,
        "low": e.low,
        "high": e.high,
        **{word: found == word for word in (MENDABLE, NOTHING, NOT_SHOWN)},
        "before": low <= truth <= high,
    }


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


def planted_draws(settings, *, case, kind):
    """Return the records of all draws of one planted case, with errors that are capped or not."""
    planted = Planted(case, kind)
    fresh = None
    if settings.way == "capped":
        fresh = planted.draw(FRESH_OF_CAPPED, 10**9)
    else:
        truth = planted.truth()
    records = []
    for rows in TEST_ROWS:
        for draw in range(settings.draws):
            own = derive_seed(settings.seed, case, kind, rows, draw) % 2**31
            G, F, w = planted.draw(rows, own)
            cap = NO_CAP
            if fresh is not None:
                cap = cap_from_baseline(F)
                fresh_g, fresh_f, fresh_w = fresh
                losses = fresh_w @ cap.apply(fresh_g)
                level = fresh_w @ cap.apply(fresh_f)
                truth = max(0.0, float((1 - losses / level).max()))
            rng = np.random.default_rng(own + 1)
            figures = judged(cap.apply(G), cap.apply(F), w, truth, rng)
            records += flat_rows(figures, "figure", rows=rows)
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


def fitted_draw(settings, *, kind, case, draw):
    """Return the record of one draw with fitted models."""
    key = (settings.seed, draw, kind, case)
    kind = Kind(kind)
    classes = 0 if kind is Kind.REGRESSION else 2
    rng = random_stream(*key, "problem")
    slopes = rng.normal(1, 0.2, 3)
    Z, y = problem(kind, TRAIN, rng, slopes)
    name, params = FAMILIES[case]
    spec = resolve_model(BaselineConfig(model=name, params=params), kind)
    own = derive_seed(*key, "fit") % 2**31
    F = EstimatorBaseline(spec, kind, classes, 0).fit(Z, y, own)
    out, _ = F.cross_fit(
        Z, y, np.arange(len(y)), cross_folds(y, classes, PARTS, own), own
    )
    labels = ("0", "1")[:classes]
    rule = settle_rule(
        HardnessConfig(rule="auto"), kind, labels, y=y[:, None], f=out[:, None]
    )
    region = Region(own).fit(Z, rule.select(rule.hardness(y[:, None], out[:, None])))
    zoo, _ = fit_zoo(candidates_beside(spec, kind), kind, classes, 0, Z, y, own)
    scored = []
    for rows in (FITTED_TEST, FRESH):
        Z_test, y_test = problem(kind, rows, rng, slopes)
        G = [
            row_losses.row_loss(y_test, model.predict(Z_test)) for model in zoo.values()
        ]
        f = row_losses.row_loss(y_test, F.predict(Z_test))
        scored.append((np.column_stack(G), f, region.weights(Z_test)))
    G, f, w = scored[1]
    truth = max(0.0, float((w @ (f[:, None] - G) / (w @ f)).max()))
    figures = judged(*scored[0], truth, random_stream(*key, "halves"))
    return list(flat_rows(figures, "figure", rows=FITTED_TEST))


def _cells(settings, _):
    if settings.way == "fitted":
        kinds = (Kind.BINARY.value, Kind.REGRESSION.value)
        return grid(kind=kinds, case=FAMILIES, draw="draws")(settings)
    kinds = ("regression", "tails") if settings.way == "capped" else KINDS
    return grid(case=CASES, kind=kinds)(settings)


def judge_interval(settings, **labels):
    """Return what the interval says, in the way that is asked for."""
    judge = fitted_draw if settings.way == "fitted" else planted_draws
    return judge(settings, **labels)


STUDIES = (
    Study(
        name="solvability",
        title="Whether the interval of solvability covers what the best candidate saves",
        group="claims",
        settings=SolvabilitySettings(draws=200, seed=70_000),
        cells=_cells,
        compute=judge_interval,
        summarize=summarize_means("case", "kind", "rows"),
        small={"draws": 1, "way": "capped"},
    ),
)
