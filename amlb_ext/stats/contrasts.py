"""Which candidates are better than F where F fails, with F's own re-fits as the null control.

Notation
--------
l_G, l_F : (n,) losses of a candidate and of F on real, labelled units
d = l_G - l_F : (n,) the contrast; negative where the candidate is better
w : (n,) region weights, functions of the features alone
n : labelled units, rows of a table or windows of series
S, R : standard deviation of the contrast with F over the re-fits of F, and their number

References
----------
Welch (1947), Biometrika 34, 28-35, and Satterthwaite (1946), Biometrics Bulletin 2, 110-114, for
the degrees of freedom of a sum of variances; Berger (1982), Technometrics 24, 295-300, for tests
of which both must reject (intersection-union).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.stats.bounded_loss import NO_CAP, ErrorCap
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    add_variance,
    checked_rows,
    cluster_sums,
    kish_size,
    p_value,
    weighted_mean_interval,
)

#: Below this effective size weights cost more than they give (measured: n = 200 against 1000).
SMALLEST_EFFECTIVE_SIZE = 50.0
#: Fewer clusters say too little of their own spread to count as a second way.
FEWEST_SECOND_CLUSTERS = 10


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """How the units of one comparison count.

    Attributes
    ----------
    weights : ndarray of shape (n,) or None
        None where all units count alike.
    effective_size : float
        Equal units that the weights are worth, whether they are used or not; 0 where unknown.
    reason : str
    """

    weights: np.ndarray | None
    effective_size: float
    reason: str

    @property
    def is_weighted(self) -> bool:
        """Whether units count by their weights."""
        return self.weights is not None


@dataclass(frozen=True, kw_only=True)
class ComparedUnits:
    """The units of one comparison, and how they count.

    Attributes
    ----------
    loss_f : ndarray of shape (n,)
    weights, clusters : ndarray of shape (n,) or None
    refits : DataFrame of shape (n, R) or None
        Losses of R re-fits of F.
    level : float
    calendar : ndarray of shape (n,) or None
        When each unit was measured, where units of one time share shocks: a second way in which
        they depend on each other, beside ``clusters``.
    cap : ErrorCap
        The largest loss that counts, where a few units would decide otherwise. Losses are plain
        until :meth:`capped` is called.
    span : ndarray of shape (n,) or None
        Length of 1 of the scaled target in the target's own unit, for the RMSE.
    unit : Unit
        What the units are, for sentences.
    widening : float
        By how much the variance of a mean grows where each unit was predicted out of fold: the
        fits of two folds share most of their rows.
    between_fits : tuple of float
        Of each bootstrap sample, how far two recipes that were fitted on it differ in mean loss;
        empty where the claim is of fitted models.
    """

    loss_f: np.ndarray
    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None
    refits: pd.DataFrame | None = None
    level: float = 0.95
    calendar: np.ndarray | None = None
    cap: ErrorCap = NO_CAP
    span: np.ndarray | None = None
    unit: Unit = ROW
    widening: float = 1.0
    between_fits: tuple[float, ...] = ()

    @property
    def weighting(self) -> Weighting:
        """How the units count where F fails, see :func:`choose_weighting`."""
        return choose_weighting(self.weights, self.clusters, unit=self.unit)

    @property
    def groups(self) -> np.ndarray:
        """What each unit is a part of, which counts as one: the unit itself without clusters."""
        return np.arange(len(self.loss_f)) if self.clusters is None else self.clusters

    def capped(self) -> ComparedUnits:
        """Return the units with their losses capped."""
        refits = None if self.refits is None else self.cap.apply(self.refits)
        return replace(self, loss_f=self.cap.apply(self.loss_f), refits=refits)

    def subset(self, keep: np.ndarray, smallest: float | None = None) -> ComparedUnits:
        """Return some of the units, which count alike where their weights are worth too little.

        Parameters
        ----------
        keep : ndarray of shape (n,), bool
        smallest : float, optional
            See :func:`choose_weighting`; weights are used as given when omitted.
        """
        weights = None if self.weights is None else np.asarray(self.weights)[keep]
        clusters = None if self.clusters is None else np.asarray(self.clusters)[keep]
        # decided for the rows kept: what the others are worth is no help to this comparison
        if smallest is not None:
            weights = choose_weighting(weights, clusters, smallest).weights
        return replace(
            self,
            loss_f=self.loss_f[keep],
            weights=weights,
            clusters=clusters,
            refits=None if self.refits is None else self.refits.loc[keep],
            calendar=None if self.calendar is None else self.calendar[keep],
            span=None if self.span is None else self.span[keep],
        )

    def of_recipe(self, fits: pd.DataFrame) -> ComparedUnits:
        """Return the units with F's losses the mean of its re-fits, to be set against a recipe.

        Parameters
        ----------
        fits : DataFrame of shape (n, R)
            Losses of the recipe, fitted on the samples of F's re-fits.
        """
        assert self.refits is not None
        f = self.refits.to_numpy(dtype=float)
        differences = self.cap.apply(fits.to_numpy(dtype=float)) - self.cap.apply(f)
        return replace(
            self,
            loss_f=f.mean(axis=1),
            between_fits=tuple(differences.mean(axis=0)),
        )

    def alike(self) -> ComparedUnits:
        """Return the units counting alike, set against F as it stands."""
        return replace(self, weights=None, refits=None)

    def contrast(self, loss_g: np.ndarray, other: np.ndarray) -> MeanEstimate:
        """Return :func:`mean_contrast` of two models on these rows."""
        estimate = mean_contrast(loss_g, other, self.weights, self.clusters, self.level)
        contrasts = np.asarray(loss_g) - np.asarray(other)
        weights = np.ones(len(contrasts)) if self.weights is None else self.weights
        influence = weights * (contrasts - estimate.point) / weights.sum()
        estimate = self.widen(estimate, influence)
        if not self.between_fits:
            return estimate
        # how one more training sample would move the mean over R of them
        n_fits = len(self.between_fits)
        between = float(np.var(self.between_fits, ddof=1)) * (1 + 1 / n_fits)
        return add_variance(estimate, between, n_fits - 1)

    def widen(self, estimate: MeanEstimate, influence: np.ndarray) -> MeanEstimate:
        """Return an estimate with the errors of cross-validation and of shared times.

        Parameters
        ----------
        estimate : MeanEstimate
        influence : ndarray of shape (n,)
            Of each unit on the estimate; they sum to 0.

        Returns
        -------
        MeanEstimate
            Clustered one way, or two ways where that is wider and the calendar has 10 clusters
            with weight or more: shocks of the calendar are then taken for independent draws, too.
        """
        if not estimate.has_interval:
            return estimate
        if self.widening > 1:
            se = estimate.se * float(np.sqrt(self.widening))
            estimate = estimate.with_error(se, estimate.df)
        if self.calendar is None or self.clusters is None:
            return estimate
        weights = np.ones(len(influence)) if self.weights is None else self.weights
        codes = np.unique(self.calendar, return_inverse=True)[1].reshape(-1)
        totals = np.bincount(codes, weights)
        if (totals > 0).sum() < FEWEST_SECOND_CLUSTERS:
            return estimate
        variance = two_way_variance(influence, self.clusters, self.calendar)
        if not variance > 0:
            return estimate
        df = min(estimate.df, kish_size(totals) - 1)
        two_way = estimate.with_error(float(np.sqrt(variance)), df)
        return two_way if two_way.width > estimate.width else estimate

    def mean_loss(self, losses: np.ndarray) -> float:
        """Return the weighted mean of some losses; NaN where nothing has weight."""
        total = len(losses) if self.weights is None else float(self.weights.sum())
        if not total:
            return float("nan")
        return float(np.average(losses, weights=self.weights))

    def refit_spread(self) -> tuple[float, int]:
        """Return S (0 for fewer than two re-fits) and R."""
        if self.refits is None:
            return 0.0, 0
        points = []
        for name in self.refits:
            loss = self.refits[name].to_numpy(dtype=float)
            points.append(self.contrast(loss, self.loss_f).point)
        # a single re-fit shows no scatter, so callers get R as well
        spread = float(np.std(points, ddof=1)) if len(points) > 1 else 0.0
        return spread, len(points)


def mean_contrast(
    loss_g: np.ndarray,
    loss_f: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    level: float = 0.95,
) -> MeanEstimate:
    """Return the weighted mean of ``loss_g - loss_f`` with a cluster-robust interval.

    Parameters
    ----------
    loss_g, loss_f : ndarray of shape (n,)
        Losses of a candidate and of F on the same rows; smaller is better.
    weights : ndarray of shape (n,), optional
    clusters : ndarray of shape (n,), optional
        The real row that each row came from.
    level : float

    Returns
    -------
    MeanEstimate
        Negative where the candidate is better. See
        :func:`~amlb_ext.stats.weighted_mean.weighted_mean_interval`.

    Examples
    --------
    >>> mean_contrast(np.array([1.0, 2.0, 1.0]), np.array([2.0, 2.0, 3.0])).point
    -1.0
    """
    g, f = np.asarray(loss_g, dtype=float), np.asarray(loss_f, dtype=float)
    if g.shape != f.shape:
        raise DataError(
            f"losses of the candidate and of F have shapes {g.shape} and {f.shape}",
            "score both on the same rows",
        )
    return weighted_mean_interval(g - f, weights, clusters, level)


def choose_weighting(
    weights: np.ndarray | None,
    clusters: np.ndarray | None = None,
    smallest: float = SMALLEST_EFFECTIVE_SIZE,
    *,
    unit: Unit = ROW,
) -> Weighting:
    """Decide whether the units of one comparison count by their weights or all alike.

    With an effective size ``(sum w)^2 / sum w^2`` below ``smallest`` weighting costs more precision
    than it gains in aim: rank on the whole, unweighted (measured on real data: -.039 +- .011 in
    tau at n = 200, +.026 +- .009 at n = 1000).

    Parameters
    ----------
    weights : ndarray of shape (n,), optional
        Of the rows that the comparison uses, and of no others.
    clusters : ndarray of shape (n,), optional
        The real row that each row came from; the effective size counts these.
    smallest : float
    unit : Unit

    Examples
    --------
    >>> choose_weighting(np.r_[np.ones(10), np.full(90, 1e-4)]).reason
    'the place where F fails is worth only 10 rows, below 50: all rows count alike'
    >>> choose_weighting(np.ones(60)).is_weighted
    True
    """
    w = None if weights is None else np.asarray(weights, dtype=float)
    # weights that are not known are stored as NaN
    if w is None or not np.isfinite(w).all() or w.sum() <= 0:
        reason = f"no place where F fails is known: all {unit.many} count alike"
        return Weighting(weights=None, effective_size=0.0, reason=reason)
    size = cluster_effective_size(w, clusters, n=len(w))
    reason = (
        f"where F fails are the {size:.0f} {unit.many} with the largest P(F fails | {unit.given}), "
        f"learnt from others"
    )
    if size < smallest:
        w = None
        reason = (
            f"the place where F fails is worth only {size:.0f} {unit.many}, below {smallest:.0f}: "
            f"all {unit.many} count alike"
        )
    return Weighting(weights=w, effective_size=size, reason=reason)


def cluster_effective_size(
    weights: np.ndarray | None, clusters: np.ndarray | None, n: int
) -> float:
    """Return Kish's effective size of the clusters' weights among n rows; 0 without rows."""
    # any values will do: only the sums of the weights are asked for
    v, w, codes = checked_rows(np.zeros(n), weights, clusters)
    _, weight_sums = cluster_sums(v, w, codes)
    return kish_size(weight_sums)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One candidate against F, and against the mean of its re-fits where there are any.

    Attributes
    ----------
    candidate : str
    rows : ComparedUnits
    loss_g : ndarray of shape (n,)
    estimate : MeanEstimate
        Of the contrast with F.
    null_difference, null_se : float
        Mean contrast of F's re-fits with F, and its standard error over units and over re-fits;
        NaN without re-fits.
    beside_refits : MeanEstimate or None
        Of the contrast with the mean of F's re-fits.
    p_null : float
        That the candidate is one more re-fit; NaN without re-fits.
    """

    candidate: str
    rows: ComparedUnits
    loss_g: np.ndarray
    estimate: MeanEstimate
    null_difference: float = float("nan")
    null_se: float = float("nan")
    beside_refits: MeanEstimate | None = None
    p_null: float = float("nan")

    @property
    def p(self) -> float:
        """That the candidate is no better or worse than F."""
        return p_value(self.estimate)

    @property
    def p_both(self) -> float:
        """That it does not differ from both, F and its re-fits: the larger of the two p-values.

        Berger (1982); 1 where the two differences have opposite signs.
        """
        if self.beside_refits is None or np.isnan(self.p):
            return self.p
        # better than F but worse than its re-fits: F was unlucky, the candidate is not good
        if np.sign(self.beside_refits.point) != np.sign(self.estimate.point):
            return 1.0
        return float(np.maximum(self.p, self.p_null))

    def relative_difference(self) -> tuple[float, float, MeanEstimate] | None:
        """Return the change as a share of F's loss with weight and without, and their gap.

        None where F loses nothing with weight, or nothing without.
        """
        rows = self.rows
        assert rows.weights is not None
        inside = np.asarray(rows.weights, dtype=float)
        shares, influence = [], np.zeros(len(inside))
        for weights, sign in ((inside, 1.0), (1.0 - inside, -1.0)):
            change, base = weights * (self.loss_g - rows.loss_f), weights * rows.loss_f
            if not base.sum() > 0:
                return None
            share = float(change.sum() / base.sum())
            shares.append(share)
            influence += sign * (change - share * base) / base.sum()
        _, _, codes = checked_rows(influence, None, rows.clusters)
        se = float(np.sqrt(_variance(influence, codes)))
        gap = replace(self.estimate, point=0.0).with_error(se, self.estimate.df)
        gap = rows.widen(gap, influence)
        there, elsewhere = shares
        gap = replace(gap, point=there - elsewhere).with_error(gap.se, gap.df)
        return there, elsewhere, gap

    def record(self) -> dict[str, object]:
        """Return the columns that do not depend on the other candidates."""
        rows = self.rows
        return {
            "candidate": self.candidate,
            "rows": len(rows.loss_f),
            "loss": rows.mean_loss(self.loss_g),
            "loss_f": rows.mean_loss(rows.loss_f),
            "difference": self.estimate.point,
            "low": self.estimate.low,
            "high": self.estimate.high,
            "p": self.p,
            "effective_size": cluster_effective_size(
                rows.weights, rows.clusters, n=len(rows.loss_f)
            ),
            "weighted": rows.weights is not None,
            "null_difference": self.null_difference,
            "null_se": self.null_se,
            "p_null": self.p_null,
        }


def compare_candidate(
    candidate: str, loss_g: np.ndarray, rows: ComparedUnits
) -> Comparison:
    r"""Compare one candidate with F, and with its re-fits where the units have some.

    The mean contrast of the R re-fits of F with F shows what "no difference" looks like; with S
    the standard deviation over the re-fits its standard error is

    .. math:: s^2 = s_{rows}^2 + S^2 / R

    Parameters
    ----------
    candidate : str
    loss_g : ndarray of shape (n,)
    rows : ComparedUnits
        Used as they are: see :meth:`ComparedUnits.subset` for some of them.

    Examples
    --------
    >>> f = np.tile([0.1, 0.3], 50)
    >>> compare_candidate("g", f / 2, ComparedUnits(loss_f=f)).estimate.point
    -0.1
    """
    comparison = Comparison(
        candidate=candidate,
        rows=rows,
        loss_g=loss_g,
        estimate=rows.contrast(loss_g, rows.loss_f),
    )
    if rows.refits is None:
        return comparison
    spread, n_refits = rows.refit_spread()
    # of the mean over re-fits: their losses on one unit are alike, so errors do not average
    mean_refit = np.asarray(rows.refits.to_numpy(dtype=float).mean(axis=1))
    null = rows.contrast(mean_refit, rows.loss_f)
    beside_refits = rows.contrast(loss_g, mean_refit)
    # were the candidate one more re-fit, it would scatter around the mean of R by this much
    between = spread**2 * (1 + 1 / n_refits)
    return replace(
        comparison,
        null_difference=null.point,
        null_se=float(np.sqrt(null.se**2 + spread**2 / n_refits)),
        beside_refits=beside_refits,
        # with a single re-fit ``between`` is 0, and adds nothing
        p_null=p_value(add_variance(beside_refits, between, n_refits - 1)),
    )


def two_way_variance(
    influence: np.ndarray, first: np.ndarray, second: np.ndarray
) -> float:
    r"""Return the variance of a mean from the influences of its values.

    .. math:: V = V_a + V_b - V_{ab}, \quad V_c = \frac{K_c}{K_c - 1} \sum_k \psi_{k}^2

    with ``ab`` the pairs of clusters. It may fall below ``V_a`` or below 0 by chance.

    Parameters
    ----------
    influence : ndarray of shape (n,)
    first, second : ndarray of shape (n,)
        Any labels.

    Examples
    --------
    >>> psi = np.array([1.0, -1.0, 1.0, -1.0]) / 4
    >>> first, second = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> round(two_way_variance(psi, first, second), 4)  # 0 + 1 - 1/3
    0.6667
    """
    codes_a = np.unique(first, return_inverse=True)[1].reshape(-1)
    codes_b = np.unique(second, return_inverse=True)[1].reshape(-1)
    pairs = codes_a * (codes_b.max() + 1) + codes_b
    codes_ab = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    variances = [_variance(influence, codes) for codes in (codes_a, codes_b, codes_ab)]
    return variances[0] + variances[1] - variances[2]


def _variance(influence: np.ndarray, codes: np.ndarray) -> float:
    """Return the variance of a mean over clusters, V_c; 0 for a single one."""
    sums = np.bincount(codes, influence)
    n_clusters = len(sums)
    if n_clusters < 2:
        return 0.0
    return float(n_clusters / (n_clusters - 1) * (sums**2).sum())
