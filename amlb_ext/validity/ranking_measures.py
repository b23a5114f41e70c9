"""Measures of rankings: may candidates be ranked on these rows, and does F beat its own twin?

The notation is that of :mod:`amlb_ext.validity.measures`. Only *differences to F* are compared,
``delta_g = mean of w (G_g - F)``: what is common to all models cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

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


#: A statistic of the contrasts of the candidates on two sets of rows, ``(m,)`` each.
Statistic = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class _WeightedLosses:
    losses: Losses
    weights: np.ndarray


def _bootstrap_interval(
    statistic: Statistic,
    first: _WeightedLosses,
    second: _WeightedLosses,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """95 % percentile interval of a statistic, clusters drawn jointly for both sides."""
    size = len(first.losses)
    both = np.concatenate([first.losses.c, second.losses.c])
    clusters, codes = np.unique(both, return_inverse=True)
    first_sums = _cluster_sums(first, codes[:size], len(clusters))
    second_sums = _cluster_sums(second, codes[size:], len(clusters))
    even = np.full(len(clusters), 1 / len(clusters))
    values = []
    for counts in rng.multinomial(len(clusters), even, size=DRAWS):
        first_drawn, second_drawn = counts @ first_sums, counts @ second_sums
        # the last column holds the weights; a draw may hold no row of one side
        if first_drawn[-1] > 0 and second_drawn[-1] > 0:
            delta_first = first_drawn[:-1] / first_drawn[-1]
            delta_second = second_drawn[:-1] / second_drawn[-1]
            values.append(statistic(delta_first, delta_second))
    if len(values) < DRAWS / 2:
        return math.nan, math.nan
    # no interpolation: z2 is infinite where a candidate's real differences are all the same
    low, high = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
    return float(low), float(high)


def _cluster_sums(
    side: _WeightedLosses, codes: np.ndarray, clusters: int
) -> np.ndarray:
    """Return per cluster the weighted gaps of each candidate and, last, the weight."""
    columns = np.column_stack([side.losses.gaps * side.weights[:, None], side.weights])
    sums = np.zeros((clusters, columns.shape[1]))
    np.add.at(sums, codes, columns)
    return sums


def measure_target_agreement(
    bad: Losses,
    all_rows: Losses,
    w: np.ndarray,
    rng: np.random.Generator,
    threshold: float = 0.5,
) -> Measure:
    """Tau between candidates ranked on the few bad rows and on S weighted by w.

    Measured there: .19 / .07 in classification, .73 / .81 in regression.
    """
    name, source = (
        "target check",
        "docs/validity.md, 1; below .5 they are two questions",
    )
    if bad.rows < MIN_ROWS:
        return missing_measure(name, too_few_text(bad.rows), source, threshold, ">=")
    value = kendall_tau(
        contrasts_to_baseline(bad)[0], contrasts_to_baseline(all_rows, w)[0]
    )
    low, high = _bootstrap_interval(
        kendall_tau,
        _WeightedLosses(bad, np.ones(len(bad))),
        _WeightedLosses(all_rows, w),
        rng,
    )
    return make_measure(
        name,
        value,
        "agreement of two rankings: on the bad rows, and on all rows weighted by P(bad | x)",
        source,
        low=low,
        high=high,
        threshold=threshold,
        sense=">=",
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
    z2_name, tau_name = f"{what}: z2", f"{what}: tau"
    z2_limit, tau_limit = 1.0, 0.8
    if bad.rows < MIN_ROWS or made.rows < 3:
        why = too_few_text(bad.rows) if bad.rows < MIN_ROWS else f"no {what} rows"
        return [
            missing_measure(z2_name, why, source, z2_limit, "<="),
            missing_measure(tau_name, why, source, tau_limit, ">="),
        ]
    real, se = contrasts_to_baseline(bad)
    synthetic = contrasts_to_baseline(made)[0]
    halves = _mean_tau_of_halves(bad, rng)

    def z2_against_real(first: np.ndarray, second: np.ndarray) -> float:
        return mean_z2(first, second, se)

    # every row counts once on either side; the order of the draws belongs to the results
    made_rows = _WeightedLosses(made, np.ones(len(made)))
    bad_rows = _WeightedLosses(bad, np.ones(len(bad)))
    z2_low, z2_high = _bootstrap_interval(z2_against_real, made_rows, bad_rows, rng)
    tau_low, tau_high = _bootstrap_interval(kendall_tau, made_rows, bad_rows, rng)
    z2_measure = make_measure(
        z2_name,
        mean_z2(synthetic, real, se),
        f"squared gap between {what} and real bad rows, in standard errors of the real ones",
        source,
        low=z2_low,
        high=z2_high,
        threshold=z2_limit,
        sense="<=",
    )
    tau_measure = make_measure(
        tau_name,
        kendall_tau(synthetic, real),
        f"agreement of rankings on {what} and on real bad rows; random halves: {halves:.2f}",
        source,
        low=tau_low,
        high=tau_high,
        threshold=tau_limit,
        sense=">=",
    )
    return [z2_measure, tau_measure]


def _mean_tau_of_halves(bad: Losses, rng: np.random.Generator) -> float:
    """Mean tau between random halves of the bad rows: what real rows reach."""
    clusters, codes = np.unique(bad.c, return_inverse=True)
    gaps = bad.gaps
    taus = []
    for _ in range(HALVES):
        is_first = (rng.permutation(len(clusters)) < len(clusters) // 2)[codes]
        taus.append(
            kendall_tau(gaps[is_first].mean(axis=0), gaps[~is_first].mean(axis=0))
        )
    return float(np.mean(taus))


def measure_null(
    twins: np.ndarray,
    F: np.ndarray,
    c: np.ndarray,
    fold: np.ndarray,
    w: np.ndarray,
    where: str,
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
    distinct_rows = len(np.unique(c))
    if distinct_rows < MIN_ROWS:
        why = too_few_text(distinct_rows, f"rows on {where}")
        return missing_measure(name, why, source, -2.0, ">=")
    difference = twins - F[:, None]
    # a deterministic F fitted on the same rows comes again but for rounding, which is no win
    difference[np.abs(difference) <= ROUNDING * np.abs(F).max()] = 0.0
    estimate = weighted_mean_interval(difference.mean(axis=1), w, c)
    rows_of_folds = [fold == number for number in np.unique(fold)]
    gaps = np.array(
        [
            np.average(difference[rows], axis=0, weights=w[rows])
            for rows in rows_of_folds
        ]
    )
    weight_share = np.array([w[rows].sum() for rows in rows_of_folds]) / w.sum()  # q
    refits = twins.shape[1]
    var_fits = gaps.var(axis=1, ddof=1) if refits > 1 else np.zeros(len(gaps))
    se = math.sqrt(
        estimate.se**2 + (1 + 1 / refits) * (weight_share**2 @ var_fits)
    )  # s
    if se > 0:
        t = estimate.point / se
    else:
        t = 0.0 if estimate.point == 0 else math.nan
    wins, losses = int((gaps < 0).sum()), int((gaps > 0).sum())
    text = (
        f"F's twins against F, in standard errors: mean difference {estimate.point:+.2g} ± "
        f"{se:.1g}; they win {wins} and lose {losses} of {gaps.size} comparisons by fold"
    )
    null = make_measure(
        name, t, text, source, low=t - 2, high=t + 2, threshold=-2.0, sense=">="
    )
    if null.passed and _sign_test(gaps.mean(axis=1)) < 0.05:
        return replace(null, passed=False, text=text + ", more than chance")
    return null


def _sign_test(gap_of_fold: np.ndarray) -> float:
    """Return the one-sided p-value for more folds with a negative gap than chance gives."""
    trials = int((gap_of_fold != 0).sum())
    negative = int((gap_of_fold < 0).sum())
    return (
        float(binomtest(negative, trials, alternative="greater").pvalue)
        if trials
        else 1.0
    )


def measure_widening(made: Losses) -> Measure:
    """How much wider intervals are once rows made from one real row count as dependent."""
    name, source = "clustered width", "docs/validity.md, 4"
    if made.rows < 3:
        return missing_measure(name, "no made rows", source, None, "")
    naive_se = np.array([naive_interval(loss - made.F).se for loss in made.G.T])
    ratio = contrasts_to_baseline(made)[1] / np.where(naive_se > 0, naive_se, np.nan)
    value = float(np.nanmean(ratio)) if np.isfinite(ratio).any() else math.nan
    text = (
        "standard errors clustered by the real row over naive ones: never use the naive"
    )
    return make_measure(name, value, text, source)
