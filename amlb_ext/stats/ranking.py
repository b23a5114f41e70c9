"""Rankings of candidates: how well two agree, and what a teacher expects of them.

Notation
--------
l_G, l_F : (n,) losses of a candidate and of F on real, labelled rows
tau : (n,) the contrast l_G - l_F that a teacher T, fitted on other rows, expects

References
----------
Kendall (1945), Biometrika 33, 239-251 (tau-b, which corrects for ties).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from amlb_ext.core.errors import DataError

# Bootstrap samples of clusters, as counts: sums over clusters are all that a draw needs.


#: Beyond this many clusters they are drawn one by one and counted, which takes a tenth of the time
#: of a multinomial draw of their counts. Both have the same distribution.
COUNTED_BEYOND = 5_000


def draw_counts(size: int, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return how often each cluster is in a bootstrap sample, ``(n_clusters,)``.

    Draws are made one after the other, never all at once: of many clusters they would take more
    memory than the table.

    Parameters
    ----------
    size : int
        Clusters drawn, with replacement.
    n_clusters : int
        Those that they are drawn from, at least one.
    rng : Generator

    Examples
    --------
    >>> int(draw_counts(6, 3, np.random.default_rng(0)).sum())
    6
    """
    if n_clusters <= COUNTED_BEYOND:
        even = np.full(n_clusters, 1 / n_clusters)
        return rng.multinomial(size, even)
    drawn = rng.integers(n_clusters, size=size)
    return np.bincount(drawn, minlength=n_clusters)


# Formulas stand as in the docstrings, one a line, so this module is denser than others.


def kendall_tau(a: np.ndarray, b: np.ndarray) -> float:
    """Return Kendall's tau-b, with ties, of two scores of the same candidates.

    ``(P - Q) / sqrt((P + Q + T_a) (P + Q + T_b))`` with P concordant and Q discordant pairs and
    ``T_a`` (``T_b``) the pairs tied in a (b) only.

    Returns
    -------
    float
        0 where tau does not exist: fewer than two candidates, or all tied on one side. Such a
        side carries no ranking, so it agrees with none.

    Raises
    ------
    DataError
        When lengths differ or a score is NaN.

    Examples
    --------
    >>> round(kendall_tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])), 4)  # (5 - 1) / 6
    0.6667
    >>> kendall_tau(np.array([1, 2, 3]), np.array([7, 7, 7]))
    0.0
    """
    x = np.asarray(a, dtype=float)
    y = np.asarray(b, dtype=float)
    if x.shape != y.shape or x.ndim != 1:
        raise DataError(
            f"two rankings have shapes {x.shape} and {y.shape}",
            "score the same candidates, in the same order, on both sides",
        )
    if np.isnan(x).any() or np.isnan(y).any():
        raise DataError("a candidate has no score", "leave it out on both sides")
    # NOTE[OWN]: of a dozen candidates in a hundredth of scipy's time, which also tests the tau; by
    # comparison, not difference, since two infinite scores are a tie
    order_x = np.greater.outer(x, x).astype(int) - np.less.outer(x, x)
    order_y = np.greater.outer(y, y).astype(int) - np.less.outer(y, y)
    ranked_x = np.abs(order_x).sum() / 2
    ranked_y = np.abs(order_y).sum() / 2
    if not ranked_x or not ranked_y:
        return 0.0
    tau = (order_x * order_y).sum() / 2 / np.sqrt(ranked_x) / np.sqrt(ranked_y)
    return float(np.clip(tau, -1.0, 1.0))


def mean_z2(synthetic: np.ndarray, real: np.ndarray, se_real: np.ndarray) -> float:
    r"""Return the mean over candidates of the squared standardised gap.

    .. math:: \frac{1}{m} \sum_g \left( \frac{\delta^{syn}_g - \delta^{real}_g}{se_g} \right)^2

    About 1 where synthetic rows say what other real rows would say, given that the sampling
    error of the real ones dominates; the certificate asks for at most 1.

    Parameters
    ----------
    synthetic, real : ndarray of shape (m,)
        Contrast of each candidate with F.
    se_real : ndarray of shape (m,)
        Standard error of ``real``.

    Returns
    -------
    float
        A candidate with standard error 0 counts 0 where both sides are equal, else infinity.
        NaN when any number is.

    Examples
    --------
    >>> mean_z2(np.array([0.1, 0.4]), np.array([0.2, 0.4]), np.array([0.1, 0.1]))
    0.5
    """
    gap = np.asarray(synthetic, dtype=float) - np.asarray(real, dtype=float)
    se = np.asarray(se_real, dtype=float)
    if gap.shape != se.shape or gap.size == 0:
        raise DataError(
            f"contrasts have shape {gap.shape}, standard errors {se.shape}",
            "give one of each per candidate, and at least one candidate",
        )
    # without any standard error the sides are equal or infinitely far apart
    z = np.where(gap == 0, 0.0, np.inf)
    np.divide(gap, se, out=z, where=se != 0)
    # a gap of NaN is not 0, so without this it would pass for infinite where se is 0
    is_missing = np.isnan(gap) | np.isnan(se)
    z[is_missing] = np.nan
    return float((z**2).mean())


# How well rows order candidates, compared with what a reference of other rows can tell.
#
# Few failures order a dozen candidates only roughly, so a plain tau against them is low for sound
# rows too: 1,600 real failures met a limit of .8 in some tables and in none of others. Here the
# agreement with the reference is divided by what the reference reaches with itself, and only the
# reference is taken for a sample: the rows that are judged are the benchmark as it stands.
#
# How much is enough depends on the rows that the judged ones would replace: as many real rows as
# the test folds hold, all counted alike. What these reach stands beside.
#
# Notation:
# m : candidates;  n : rows of the reference;  K : its clusters
# d : (m,) mean contrast of each candidate with F on the rows that are judged
# D : (n, m) contrasts G - F on the rows of the reference, w : (n,) their weights
# s(d) : signs of the differences of all pairs of candidates
# a, b : mean over draws of the mean over pairs of s(d) s(D*) and of s(D) s(D*), where D*
#     is the weighted mean over a bootstrap sample of the clusters
# c : as b, of bootstrap samples of fewer clusters, whose rows all count alike


#: Draws of the bootstrap.
DRAWS = 300
#: Counts of clusters that are held at once: a draw holds one for each cluster.
MOST_COUNTS = 500_000
#: One-sided: the share of draws below the lower limit.
BELOW = 0.05


@dataclass(frozen=True, kw_only=True)
class OrderAgreement:
    """Agreement of an order of candidates with that on a reference.

    Attributes
    ----------
    relative : float
        ``a / b``; about 1 where the rows order candidates as more rows of the reference's kind
        would, 0 without any relation, below 0 where the order is reversed. NaN where the
        reference tells no two candidates apart.
    low : float
        Its one-sided lower limit at 95 %: the 5 % quantile over draws of ``mean s(d) s(D*) / b``.
    reached : float
        c, what ``as_many`` clusters, their rows counted alike, reach with the whole reference; up
        to .05 below what so many reach with the population.
    """

    relative: float
    low: float
    reached: float


def order_agreement(
    judged: np.ndarray,
    contrasts: np.ndarray,
    *,
    clusters: np.ndarray,
    as_many: int,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> OrderAgreement:
    """Hold an order of candidates to that on a reference, relative to what this can tell.

    Parameters
    ----------
    judged : ndarray of shape (m,)
        d, taken as it is.
    contrasts : ndarray of shape (n, m)
        D.
    clusters : ndarray of shape (n,)
        What is drawn: rows of one cluster come together.
    as_many : int
        Clusters whose order the judged rows are to match, whatever their weights. None reach 0.
    rng : Generator
    weights : ndarray of shape (n,), optional
        w; all equal when omitted.

    Raises
    ------
    DataError
        Fewer than two candidates, no row, or a contrast that is missing.

    References
    ----------
    The bootstrap's percentile limit: Efron & Tibshirani (1993), chapter 13, with draws of whole
    clusters. A lower limit held against a margin is a test of non-inferiority: Schuirmann (1987),
    J. Pharmacokinet. Biopharm. 15, 657-680.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> D = rng.normal(size=(200, 4)) + [0.0, 1.0, 2.0, 3.0]
    >>> rows = {"clusters": np.arange(200), "rng": rng}
    >>> same = order_agreement(np.arange(4.0), D, as_many=200, **rows)
    >>> reversed_order = order_agreement(-np.arange(4.0), D, as_many=200, **rows)
    >>> same.relative, reversed_order.relative
    (1.0, -1.0)

    Ten rows order the four candidates less well than two hundred:

    >>> ten = order_agreement(np.arange(4.0), D, as_many=10, **rows)
    >>> ten.reached < same.reached
    True
    """
    d = np.asarray(judged, dtype=float)
    D = np.asarray(contrasts, dtype=float)
    if D.ndim != 2 or D.shape[1] != len(d) or len(d) < 2 or not len(D):
        raise DataError(
            f"an order of {len(d)} candidates is held to contrasts of shape {D.shape}",
            "give a column for each of two candidates or more, and at least one row",
        )
    if np.isnan(d).any() or np.isnan(D).any():
        raise DataError("a candidate has no contrast", "leave it out on both sides")
    w = np.ones(len(D)) if weights is None else np.asarray(weights, dtype=float)

    # a draw counts clusters, so their sums are all it needs
    labels, codes = np.unique(clusters, return_inverse=True)
    n_clusters = len(labels)
    sums, sums_alike = np.zeros((2, n_clusters, len(d)))
    np.add.at(sums, codes, D * w[:, None])
    np.add.at(sums_alike, codes, D)
    weight_sums = np.bincount(codes, w)

    def draw_signs(size: int, sums: np.ndarray) -> np.ndarray:
        """Return the signs of bootstrap samples of so many clusters."""
        signs = []
        at_once = max(1, MOST_COUNTS // n_clusters)
        for start in range(0, DRAWS, at_once):
            n_draws = min(at_once, DRAWS - start)
            # as the product reads them: counts of whole numbers would be copied for it
            counts = np.empty((n_draws, n_clusters))
            for draw in counts:
                draw[:] = draw_counts(size, n_clusters, rng)
            # only signs of differences are read, which the weight of a draw does not change
            has_weight = counts @ weight_sums > 0
            signs.append(_pair_signs(counts @ sums)[has_weight])
        return np.concatenate(signs)

    drawn = draw_signs(n_clusters, sums)
    order = _pair_signs(d)
    reference_order = _pair_signs(sums.sum(axis=0))

    with_judged = (drawn * order).mean(axis=-1)
    itself = float((drawn * reference_order).mean())
    some = draw_signs(as_many, sums_alike) * reference_order
    reached = float(some.mean()) if len(some) else 0.0
    relative = low = np.nan
    if itself > 0:
        relative = float(with_judged.mean()) / itself
        # the mean of draws that hardly differ may lie below nearly all of them
        low = min(float(np.quantile(with_judged, BELOW)) / itself, relative)
    return OrderAgreement(relative=relative, low=low, reached=reached)


def _pair_signs(scores: np.ndarray) -> np.ndarray:
    """Return the signs of the differences of all pairs of the scores ``(..., m)``."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    return np.sign(scores[..., first] - scores[..., second])
