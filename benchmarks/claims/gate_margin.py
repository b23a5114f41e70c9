"""How often does a candidate pass ``gate --need not-worse`` that is worse by just the margin?

Losses are drawn, and no model is fitted; the true ratio of mean losses is 1 + margin, and by the
interval's level the gate should open in 2.5 % of the draws.

own errors   Brier losses of two classes: F and the candidate err independently around the truth,
             the candidate by as much more as makes the margin
same rows    Brier losses of F, times an independent lognormal factor of mean 1 + margin and sigma
             0.5: differences are large where losses are, and skewed towards worse, the side on
             which a t interval is too short; a hard case
same rows, squared   the same of squared normal errors
"""

import numpy as np
import pandas as pd

from amlb_ext.gate.checks import check_gate
from amlb_ext.stats.contrasts import ComparedUnits, compare_candidate
from benchmarks.studies.engine import OneStream, Study, grid
from benchmarks.studies.page import summarize_means

ROWS = (50, 200, 1000)
MARGINS = (0.02, 0.05, 0.2)
KINDS = ("own errors", "same rows", "same rows, squared")


def draw_losses(kind, n, margin, rng):
    """Return losses of F and of a candidate on n rows."""
    truth = rng.beta(0.5, 0.5, size=n)
    label = rng.random(n) < truth
    variance = 0.01
    if kind == "own errors":
        # the mean Brier loss is 2 E[t (1 - t)] + 2 v, and t (1 - t) is 1/8 in the mean
        more = margin * (0.125 + variance)
        claimed = truth + np.sqrt(variance) * rng.normal(size=n)
        other = truth + np.sqrt(variance + more) * rng.normal(size=n)
        return 2 * (claimed - label) ** 2, 2 * (other - label) ** 2
    f = rng.normal(size=n) ** 2
    if kind == "same rows":
        f = 2 * (truth + np.sqrt(variance) * rng.normal(size=n) - label) ** 2
    spread = 0.5
    factor = np.exp(spread * rng.normal(size=n) - spread**2 / 2)
    return f, (1 + margin) * factor * f


def contrast(kind, n, margin, rng):
    """Return the contrast of a candidate that is worse by the margin, on n rows."""
    f, g = draw_losses(kind, n, margin, rng)
    compared = compare_candidate("G", g, ComparedUnits(loss_f=f))
    record = compared.record()
    return {
        "task": str(rng.integers(2**62)),
        "framework": "G",
        "where": "all rows",
        "verdict": "undecided",
        "reason": "",
        "relative": record["difference"] / record["loss_f"],
        "low": record["low"],
        "high": record["high"],
        "loss_f": record["loss_f"],
    }


def ask_gate(settings, *, losses, rows, margin):
    """Return of each draw whether the gate opens."""
    rng = np.random.default_rng([settings.seed, rows, MARGINS.index(margin)])
    draws = [contrast(losses, rows, margin, rng) for _ in range(settings.draws)]
    gate = check_gate(pd.DataFrame(draws), need="not-worse", margin=margin)
    return [{"value": float(check.outcome == "met")} for check in gate.checks]


STUDIES = (
    Study(
        name="gate-margin",
        title="How often the gate opens to a candidate that is worse by just the margin",
        group="claims",
        settings=OneStream(draws=2000, seed=90_000),
        cells=grid(losses=KINDS, rows=ROWS, margin=MARGINS),
        compute=ask_gate,
        summarize=summarize_means("losses", "rows", columns="margin"),
        small={"draws": 3},
    ),
)
