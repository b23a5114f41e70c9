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

from amlb_ext.core.unit import Unit
from amlb_ext.stats.ranking import draw_counts, kendall_tau, mean_z2, order_agreement
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.validity.measures import (
    MIN_MADE_ROWS,
    MIN_ROWS,
    ROUNDING,
    Losses,
    Measure,
    plan_measure,
    too_few_text,
    why_not_compared,
)

#: Tau of two rankings below which they answer two questions.
LEAST_AGREEMENT = 0.5
#: Draws of the cluster bootstrap, and random halves for a ceiling.
DRAWS, HALVES = 200, 20
#: Tau that made rows may lose, surely no more, against the whole test folds.
ORDER_LOSS = 0.05
#: Standard errors by which twins of F may seem to beat it.
NULL_LIMIT = -2.0

#: A statistic of the contrasts of the candidates on two sets of rows, ``(m,)`` each.
Statistic = Callable[[np.ndarray, np.ndarray], float]


def contrasts_to_baseline(
    losses: Losses, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``delta`` of each candidate and its cluster-robust standard error, ``(m,)`` each."""
    estimates = [
        weighted_mean_interval(gap, weights, losses.clusters) for gap in losses.gaps.T
    ]
    delta = np.array([estimate.point for estimate in estimates])
    se = np.array([estimate.se for estimate in estimates])
    return delta, se


def _bootstrap_interval(
    statistic: Statistic,
    first: Losses,
    second: Losses,
    rng: np.random.Generator,
    second_weights: np.ndarray | None = None,
) -> tuple[float, float]:
    """95 % percentile interval of a statistic, clusters drawn jointly for both sides."""
    # a real row and what was made from it are one cluster: both sides draw it together
    both = np.concatenate([first.clusters, second.clusters])
    clusters, codes = np.unique(both, return_inverse=True)
    n_clusters, n_first = len(clusters), len(first)
    # a draw counts clusters, so their sums are all it needs
    first_sums = _cluster_sums(first, None, codes[:n_first], n_clusters)
    second_sums = _cluster_sums(second, second_weights, codes[n_first:], n_clusters)
    values = []
    for _ in range(DRAWS):
        counts = draw_counts(n_clusters, n_clusters, rng)
        first_drawn = counts @ first_sums
        second_drawn = counts @ second_sums
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
    losses: Losses, weights: np.ndarray | None, codes: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return per cluster the weighted gaps of each candidate and, last, the weight."""
    if weights is None:
        weights = np.ones(len(losses))
    columns = np.column_stack([losses.gaps * weights[:, None], weights])
    sums = np.zeros((n_clusters, columns.shape[1]))
    # unlike sums[codes] += columns, this adds every row of a cluster
    np.add.at(sums, codes, columns)
    return sums


def measure_target_agreement(
    bad: Losses,
    all_rows: Losses,
    weights: np.ndarray,
    rng: np.random.Generator,
    unit: Unit,
) -> Measure:
    """Tau between candidates ranked on the few bad rows and on S weighted by w.

    Measured there: .19 / .07 in classification, .73 / .81 in regression.
    """
    source = "docs/validity.md, 1; below .5 they are two questions"
    check = plan_measure("target check", source, ">=", LEAST_AGREEMENT)
    if bad.n_real_rows < MIN_ROWS:
        return check.missing(too_few_text(bad.n_real_rows, f"bad {unit.many}", unit))
    delta_bad, _ = contrasts_to_baseline(bad)
    delta_weighted, _ = contrasts_to_baseline(all_rows, weights)
    low, high = _bootstrap_interval(kendall_tau, bad, all_rows, rng, weights)
    text = (
        f"agreement of two rankings: on the bad {unit.many}, and on all {unit.many} weighted by "
        f"P(bad | {unit.given})"
    )
    tau = kendall_tau(delta_bad, delta_weighted)
    return check.found(tau, text, low=low, high=high)


def fidelity_z2(made: Losses, bad: Losses) -> float:
    """Return the mean squared gap of made from real bad rows, in standard errors of the real ones.

    NaN where either holds too few rows to say.
    """
    if bad.n_real_rows < MIN_ROWS or made.n_real_rows < MIN_MADE_ROWS:
        return math.nan
    delta_made, _ = contrasts_to_baseline(made)
    delta_real, se_real = contrasts_to_baseline(bad)
    return mean_z2(delta_made, delta_real, se_real)


def measure_fidelity(
    made: Losses, bad: Losses, rng: np.random.Generator, what: str, unit: Unit
) -> list[Measure]:
    """Return z² and tau of made rows against the real bad rows."""
    source = "docs/validity.md, 3"
    z2_measure = plan_measure(f"{what}: z2", source, "<=", 1.0)
    tau_measure = plan_measure(f"{what}: tau", source, ">=", 0.8)
    why = why_not_compared(
        bad.n_real_rows,
        made.n_real_rows,
        unit,
        least=MIN_MADE_ROWS,
        nothing=f"no {what} {unit.many}",
    )
    if why:
        return [z2_measure.missing(why), tau_measure.missing(why)]
    delta_real, se_real = contrasts_to_baseline(bad)
    delta_made, _ = contrasts_to_baseline(made)
    # what tau real rows reach among themselves, as a scale for that of the made ones
    halves = _mean_tau_of_halves(bad, rng)

    def z2_against_real(first: np.ndarray, second: np.ndarray) -> float:
        # the unit stays that of the measure, whatever clusters a draw holds
        return mean_z2(first, second, se_real)

    # z2 before tau: both draw from one stream, whose order belongs to the results
    z2_low, z2_high = _bootstrap_interval(z2_against_real, made, bad, rng)
    tau_low, tau_high = _bootstrap_interval(kendall_tau, made, bad, rng)
    z2 = mean_z2(delta_made, delta_real, se_real)
    text = (
        f"squared gap between {what} and real bad {unit.many}, in standard errors of the "
        "real ones"
    )
    z2_measure = z2_measure.found(z2, text, low=z2_low, high=z2_high)
    tau = kendall_tau(delta_made, delta_real)
    text = (
        f"agreement of rankings on {what} and on real bad {unit.many}; random halves: "
        f"{halves:.2f}"
    )
    tau_measure = tau_measure.found(tau, text, low=tau_low, high=tau_high)
    return [z2_measure, tau_measure]


def measure_order(
    made: Losses,
    real: Losses,
    what: str,
    rng: np.random.Generator,
    unit: Unit,
    *,
    weights: np.ndarray,
    as_many: int,
    why_not: str = "",
) -> Measure:
    """Does a made part order candidates no worse than the whole test folds do?

    The value is by how much tau with the reference is larger than that of as many real rows as the
    test folds hold, all counted alike: the smaller of two differences, where F fails and over all
    rows. The measure passes where the one-sided 95 % lower limits of both are at least
    ``-ORDER_LOSS``: that the part is no worse must be shown, few rows do not make it so. Where
    the test folds hold all labelled rows, none are left that could show it of made rows that are
    as good.

    Parameters
    ----------
    made, real : Losses
        Of the part and of the reference, for the same candidates.
    what : str
        The part's name.
    rng : Generator
    unit : Unit
    weights : ndarray of shape (n,)
        ``P(bad | x)`` of the reference.
    as_many : int
        Real rows of the reference that the test folds hold: what made rows would replace.
    why_not : str
        Why the reference cannot be used; empty where it can.
    """
    source = "docs/validity.md, 15; the lower limit decides"
    order = plan_measure(f"{what}: order", source, ">=", -ORDER_LOSS)
    if not why_not and len(made) < MIN_MADE_ROWS:
        why_not = f"not enough {unit.many}: {len(made)} {what} {unit.many}"
    if why_not:
        return order.missing(why_not)
    differences, lows, texts = [], [], []
    places = (("where F fails", weights), (f"over all {unit.many}", None))
    for where, place_weights in places:
        # the made rows are the benchmark as it stands: only the reference is a sample
        agreement = order_agreement(
            made.gaps.mean(axis=0),
            real.gaps,
            clusters=real.clusters,
            weights=place_weights,
            as_many=as_many,
            rng=rng,
        )
        if math.isnan(agreement.relative):
            return order.missing(f"the real {unit.many} tell no two candidates apart")
        differences.append(agreement.relative - agreement.reached)
        lows.append(agreement.low - agreement.reached)
        texts.append(f"{where} {agreement.relative:.2f}, for {agreement.reached:.2f}")
    text = (
        f"agreement (tau) of the order of candidates with that on {real.n_real_rows} real "
        f"{unit.many}, for what as many of these as the {unit.folds} hold, {as_many}, reach: "
        f"{'; '.join(texts)}. The value is the smaller difference; both lower limits (one-sided "
        f"95 %) must be at least -{ORDER_LOSS}"
    )
    order = order.found(min(differences), text, low=min(lows))
    return replace(order, passed=min(lows) >= -ORDER_LOSS)


def _mean_tau_of_halves(bad: Losses, rng: np.random.Generator) -> float:
    """Mean tau between random halves of the bad rows: what real rows reach."""
    clusters, codes = np.unique(bad.clusters, return_inverse=True)
    n_clusters, gaps = len(clusters), bad.gaps
    taus = []
    for _ in range(HALVES):
        # whole clusters change sides: a row that is bad in two folds is in one half
        is_first_cluster = rng.permutation(n_clusters) < n_clusters // 2
        is_first = is_first_cluster[codes]
        delta_first = gaps[is_first].mean(axis=0)
        delta_second = gaps[~is_first].mean(axis=0)
        taus.append(kendall_tau(delta_first, delta_second))
    return float(np.mean(taus))


def measure_null(
    twins: np.ndarray,
    loss_f: np.ndarray,
    *,
    clusters: np.ndarray,
    fold: np.ndarray,
    weights: np.ndarray,
    where: str,
    unit: Unit,
    came_fitted: bool = False,
) -> Measure:
    r"""Twins of F against F: mean difference of losses, flagged below -2 standard errors.

    With :math:`g_{kr}` the gap of twin r in fold k and :math:`q_k` the fold's share of weight,
    :math:`s^2 = s_{rows}^2 + (1 + 1/R) \sum_k q_k^2 \mathrm{var}_r(g_{kr})`: rows are drawn,
    and so are the fits, F's own among them. An F that came fitted is one draw for all folds:
    :math:`s^2 = s_{rows}^2 + \sum_k (q_k + q_k^2 / R) \, \mathrm{var}_r(g_{kr})`. Its own training
    rows are others than its twins', and the mean difference includes what that makes.

    NOTE[DIFF] one could also flag twins that win more often than they lose. Under a perfect null
    they do so every second time, so wins are reported, and flag only where a sign test over folds
    finds more of them than chance gives (5 %, one-sided). Not so for an F that came fitted: its
    luck is the same in all folds.

    Parameters
    ----------
    twins : ndarray of shape (n, R)
        Losses of the R re-fits of F.
    loss_f, clusters, fold, weights : ndarray of shape (n,)
    where : str
        The rows in words, for the measure's name.
    unit : Unit
    came_fitted : bool
        Whether one F, fitted elsewhere, served all folds, and the twins are its clones.
    """
    source = "docs/validity.md, 2; -2 standard errors"
    null = plan_measure(f"null on {where}", source, ">=", NULL_LIMIT)
    distinct_rows = len(np.unique(clusters))
    if distinct_rows < MIN_ROWS:
        return null.missing(
            too_few_text(distinct_rows, f"{unit.many} on {where}", unit)
        )
    difference = twins - loss_f[:, None]
    # a deterministic F fitted on the same rows comes again but for rounding, which is no win
    rounding = ROUNDING * np.abs(loss_f).max()
    difference[np.abs(difference) <= rounding] = 0.0
    estimate = weighted_mean_interval(difference.mean(axis=1), weights, clusters)
    gaps, weight_share = _gaps_by_fold(difference, fold, weights)

    # rows scatter, and so do fits; R twins in every fold show how much fits do
    refits = twins.shape[1]
    var_fits = np.zeros(len(gaps))
    if refits > 1:
        var_fits = gaps.var(axis=1, ddof=1)
    between_fits = (1 + 1 / refits) * (weight_share**2 @ var_fits)
    if came_fitted:
        # the same F in all folds: its own scatter does not average over them
        between_fits = (weight_share + weight_share**2 / refits) @ var_fits
    se = math.sqrt(estimate.se**2 + between_fits)
    if se > 0:
        t = estimate.point / se
    else:
        # twins equal to F show no difference; one that all rows share has no standard error
        t = 0.0 if estimate.point == 0 else math.nan
    wins = int((gaps < 0).sum())
    losses = int((gaps > 0).sum())
    twins_of_f = (
        "F fitted again on this table's training rows" if came_fitted else "F's twins"
    )
    text = (
        f"{twins_of_f} against F, in standard errors: mean difference {estimate.point:+.2g} ± "
        f"{se:.1g}; they win {wins} and lose {losses} of {gaps.size} comparisons by {unit.fold}"
    )
    null = null.found(t, text, low=t - 2, high=t + 2)
    gap_of_fold = gaps.mean(axis=1)
    trials = int((gap_of_fold != 0).sum())
    if came_fitted or not null.passed or not trials:
        return null
    negative = int((gap_of_fold < 0).sum())
    if binomtest(negative, trials, alternative="greater").pvalue < 0.05:
        return replace(null, passed=False, text=text + ", more than chance")
    return null


def _gaps_by_fold(
    difference: np.ndarray, fold: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean gap of each twin in each fold, ``(K, R)``, and q, ``(K,)``."""
    gaps, totals = [], []
    for number in np.unique(fold):
        rows = fold == number
        weights_of_fold = weights[rows]
        gap = np.average(difference[rows], axis=0, weights=weights_of_fold)
        gaps.append(gap)
        totals.append(weights_of_fold.sum())
    weight_share = np.array(totals) / weights.sum()
    return np.array(gaps), weight_share


def measure_widening(made: Losses, unit: Unit) -> Measure:
    """How much wider intervals are once rows made from one real row count as dependent."""
    width = plan_measure("clustered width", "docs/validity.md, 4")
    if made.n_real_rows < MIN_MADE_ROWS:
        return width.missing(f"no made {unit.many}")
    _, clustered_se = contrasts_to_baseline(made)
    # as if every row were a draw of its own, which rows made from one real row are not
    differences = (made.candidates - made.baseline[:, None]).T
    naive = [weighted_mean_interval(difference).se for difference in differences]
    naive_se = np.array(naive)
    # a candidate that is F again has no width at all, and no ratio of widths
    ratio = clustered_se / np.where(naive_se > 0, naive_se, np.nan)
    value = math.nan
    if np.isfinite(ratio).any():
        value = float(np.nanmean(ratio))
    text = (
        f"standard errors clustered by the real {unit.one} over naive ones: never use the "
        "naive"
    )
    return width.found(value, text)
