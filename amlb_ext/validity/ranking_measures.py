"""Measures of rankings: may candidates be ranked on these rows, and does F beat its own twin?

The notation is that of :mod:`amlb_ext.validity.measures`. Only *differences to F* are compared,
``delta_g = mean of w (G_g - F)``: what is common to all models cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import binomtest

from amlb_ext.stats.ranking import kendall_tau, mean_z2
from amlb_ext.stats.weighted_mean import naive_interval, weighted_mean_interval
from amlb_ext.validity.measures import (
    MIN_ROWS,
    ROUNDING,
    Losses,
    Measure,
    make_measure,
    missing_measure,
    too_few_text,
)

#: Draws of the cluster bootstrap, and random halves for a ceiling.
DRAWS, HALVES = 200, 20


def contrasts_to_baseline(
    losses: Losses, w: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``delta`` of each candidate and its cluster-robust standard error, ``(m,)`` each."""
    estimates = [weighted_mean_interval(gap, w, losses.c) for gap in losses.gaps.T]
    return np.array([e.point for e in estimates]), np.array([e.se for e in estimates])


def _bootstrap(
    statistic: Callable[[np.ndarray, np.ndarray], float],
    a: Losses,
    wa: np.ndarray,
    b: Losses,
    wb: np.ndarray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """95 % percentile interval of ``statistic(delta_a, delta_b)``, clusters drawn jointly."""
    ids, codes = np.unique(np.concatenate([a.c, b.c]), return_inverse=True)
    sums = []
    for side, w, code in ((a, wa, codes[: len(a)]), (b, wb, codes[len(a) :])):
        total = np.zeros((len(ids), side.G.shape[1] + 1))
        np.add.at(total, code, np.column_stack([side.gaps * w[:, None], w]))
        sums.append(total)
    values = []
    for counts in rng.multinomial(len(ids), np.full(len(ids), 1 / len(ids)), size=DRAWS):
        one, two = counts @ sums[0], counts @ sums[1]
        if one[-1] > 0 and two[-1] > 0:
            values.append(statistic(one[:-1] / one[-1], two[:-1] / two[-1]))
    if len(values) < DRAWS / 2:
        return math.nan, math.nan
    # no interpolation: z2 is infinite where a candidate's real differences are all the same
    low, high = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
    return float(low), float(high)


def measure_target_agreement(
    bad: Losses, all_rows: Losses, w: np.ndarray, rng: np.random.Generator, threshold: float = 0.5
) -> Measure:
    """Tau between candidates ranked on the few bad rows and on S weighted by w.

    Measured there: .19 / .07 in classification, .73 / .81 in regression.
    """
    name, source = "target check", "docs/validity.md, 1; below .5 they are two questions"
    if bad.rows < MIN_ROWS:
        return missing_measure(name, too_few_text(bad.rows), source, threshold, ">=")
    ones = np.ones(len(bad))
    value = kendall_tau(contrasts_to_baseline(bad)[0], contrasts_to_baseline(all_rows, w)[0])
    low, high = _bootstrap(kendall_tau, bad, ones, all_rows, w, rng)
    text = "agreement of two rankings: on the bad rows, and on all rows weighted by P(bad | x)"
    return make_measure(
        name, value, text, source, low=low, high=high, threshold=threshold, sense=">="
    )


def fidelity_z2(made: Losses, bad: Losses) -> float:
    """Return the mean squared gap of made from real bad rows, in standard errors of the real ones.

    NaN where either holds too few rows to say.
    """
    if bad.rows < MIN_ROWS or made.rows < 3:
        return math.nan
    return mean_z2(contrasts_to_baseline(made)[0], *contrasts_to_baseline(bad))


def measure_fidelity(
    made: Losses, bad: Losses, rng: np.random.Generator, what: str
) -> list[Measure]:
    """Return z² and tau of made rows against the real bad rows."""
    source = "docs/validity.md, 3"
    names = (f"{what}: z2", f"{what}: tau")
    limits = ((1.0, "<="), (0.8, ">="))
    if bad.rows < MIN_ROWS or made.rows < 3:
        why = too_few_text(bad.rows) if bad.rows < MIN_ROWS else f"no {what} rows"
        return [
            missing_measure(n, why, source, *limit) for n, limit in zip(names, limits, strict=True)
        ]
    real, se = contrasts_to_baseline(bad)
    synthetic = contrasts_to_baseline(made)[0]
    ones = np.ones(len(made)), np.ones(len(bad))
    halves = _halves(bad, rng)
    z_low, z_high = _bootstrap(lambda a, b: mean_z2(a, b, se), made, ones[0], bad, ones[1], rng)
    t_low, t_high = _bootstrap(kendall_tau, made, ones[0], bad, ones[1], rng)
    z_text = f"squared gap between {what} and real bad rows, in standard errors of the real ones"
    t_text = f"agreement of rankings on {what} and on real bad rows; random halves: {halves:.2f}"
    return [
        make_measure(
            names[0],
            mean_z2(synthetic, real, se),
            z_text,
            source,
            low=z_low,
            high=z_high,
            threshold=1.0,
            sense="<=",
        ),
        make_measure(
            names[1],
            kendall_tau(synthetic, real),
            t_text,
            source,
            low=t_low,
            high=t_high,
            threshold=0.8,
            sense=">=",
        ),
    ]


def _halves(bad: Losses, rng: np.random.Generator) -> float:
    """Mean tau between random halves of the bad rows: what real rows reach."""
    ids, codes = np.unique(bad.c, return_inverse=True)
    gaps, taus = bad.gaps, []
    for _ in range(HALVES):
        first = (rng.permutation(len(ids)) < len(ids) // 2)[codes]
        means = [gaps[part].mean(axis=0) for part in (first, ~first)]
        taus.append(kendall_tau(*means))
    return float(np.mean(taus))


def measure_null(
    twins: np.ndarray, F: np.ndarray, c: np.ndarray, fold: np.ndarray, w: np.ndarray, where: str
) -> Measure:
    r"""Twins of F against F: mean difference of losses, flagged below -2 standard errors.

    With :math:`g_{kr}` the gap of twin r in fold k and :math:`q_k` the fold's share of weight,
    :math:`s^2 = s_{rows}^2 + (1 + 1/R) \sum_k q_k^2 \mathrm{var}_r(g_{kr})`: rows are drawn,
    and so are the fits, F's own among them.

    NOTE[DIFF] one could also flag twins that win more often than they lose. Under a perfect null
    they do so every second time, so wins are reported, and flag only where a sign test over folds
    finds more of them than chance gives (5 %, one-sided).

    Parameters
    ----------
    twins : ndarray of shape (n, R)
    F, c, fold, w : ndarray of shape (n,)
    where : str
    """
    name, source = f"null on {where}", "docs/validity.md, 2; -2 standard errors"
    if len(np.unique(c)) < MIN_ROWS:
        return missing_measure(
            name, too_few_text(len(np.unique(c)), f"rows on {where}"), source, -2.0, ">="
        )
    difference = twins - F[:, None]
    # a deterministic F fitted on the same rows comes again but for rounding, which is no win
    difference[np.abs(difference) <= ROUNDING * np.abs(F).max()] = 0.0
    e = weighted_mean_interval(difference.mean(axis=1), w, c)
    places = [fold == k for k in np.unique(fold)]
    gaps = np.array([np.average(difference[at], axis=0, weights=w[at]) for at in places])
    share = np.array([w[at].sum() for at in places]) / w.sum()
    refits = twins.shape[1]
    luck = gaps.var(axis=1, ddof=1) if refits > 1 else np.zeros(len(gaps))
    se = math.sqrt(e.se**2 + (1 + 1 / refits) * (share**2 @ luck))
    t = e.point / se if se > 0 else (0.0 if e.point == 0 else math.nan)
    wins, losses = int((gaps < 0).sum()), int((gaps > 0).sum())
    by_fold = gaps.mean(axis=1)
    trials = int((by_fold != 0).sum())
    lucky = int((by_fold < 0).sum())
    p = binomtest(lucky, trials, alternative="greater").pvalue if trials else 1.0
    text = (
        f"F's twins against F, in standard errors: mean difference {e.point:+.2g} ± {se:.1g}; "
        f"they win {wins} and lose {losses} of {gaps.size} comparisons by fold"
    )
    made = make_measure(name, t, text, source, low=t - 2, high=t + 2, threshold=-2.0, sense=">=")
    if made.passed and p < 0.05:
        return replace(made, passed=False, text=text + ", more than chance")
    return made


def measure_widening(made: Losses) -> Measure:
    """How much wider intervals are once rows made from one real row count as dependent."""
    name, source = "clustered width", "docs/validity.md, 4"
    if made.rows < 3:
        return missing_measure(name, "no made rows", source, None, "")
    naive = np.array([naive_interval(g - made.F).se for g in made.G.T])
    ratio = contrasts_to_baseline(made)[1] / np.where(naive > 0, naive, np.nan)
    text = "standard errors clustered by the real row over naive ones: never use the naive"
    return make_measure(name, float(np.nanmean(ratio)) if np.isfinite(ratio).any() else math.nan,
                   text, source)  # fmt: skip
