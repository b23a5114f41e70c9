"""Two candidates against each other where F fails, with F's re-fits as the null beside.

Notation
--------
l_G, l_H : (n,) losses of two candidates on the same real, labelled rows
S : standard deviation of the contrast with F over the R re-fits of F
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range

from amlb_ext.stats.contrasts import ComparedUnits
from amlb_ext.stats.heavy_tails import contrast_plainly
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    add_variance,
    holm_adjusted,
    p_value,
)

#: Of the table of :func:`compare_pairs`, in the order in which reports show them.
COLUMNS = [
    "framework",
    "other",
    "rows",
    "weighted",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "null_spread",
    "p_null",
    "verdict",
    "reason",
]


def compare_pairs(
    losses: pd.DataFrame,
    units: ComparedUnits,
    *,
    scored: pd.DataFrame | None = None,
    apart: Collection[str] = (),
    smallest: float | None = None,
) -> pd.DataFrame:
    r"""Compare every two candidates on the rows that both predicted.

    The interval holds for the two models as they were fitted. Two fits of *one* algorithm differ
    as well; how much, the re-fits of F tell: with S the spread of their contrast with F, the
    difference of two of them scatters by :math:`S \sqrt 2`. So a candidate is called ``better``
    (``worse``) than another only when both hold with Holm-adjusted p-values below ``1 - level``:
    the difference is not zero, and with :math:`s^2 = s_{rows}^2 + 2 S^2` (Welch-Satterthwaite
    degrees of freedom) it is not zero either.

    Parameters
    ----------
    losses : DataFrame of shape (n, candidates)
    units : ComparedUnits
        F's losses, their cap, the region's weights, clusters, the losses of F's re-fits, and the
        level. Where the largest losses would decide, the verdict is ``no claim``, see
        :mod:`amlb_ext.stats.heavy_tails`.
    scored : DataFrame of shape (n, candidates), bool, optional
        The rows that each candidate predicted, all when omitted.
    apart : collection of str
        Names that are no candidates (F itself): pairs with them are adjusted among themselves.
    smallest : float, optional
        Where the weights of a pair's rows are worth fewer equal rows than this, all of them
        count alike; weights are used as given when omitted.

    Returns
    -------
    DataFrame
        One row per unordered pair, in the order of the columns: ``framework``, ``other``,
        ``rows``, ``weighted`` (whether weights were used), ``difference`` (framework minus
        other, negative where it is better), ``low``, ``high``, ``p``, ``p_holm``,
        ``null_spread`` (S sqrt 2: how far two fits of F differ), ``p_null`` (Holm-adjusted),
        ``verdict``, ``reason``.

    Raises
    ------
    DataError
        When a loss is not finite on a row that both are scored on.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(300)
    >>> g = pd.DataFrame({"a": f - 0.2 * rng.random(300), "b": f + 0.1 * rng.random(300)})
    >>> compare_pairs(g, ComparedUnits(loss_f=f))[["framework", "other", "verdict"]].values.tolist()
    [['a', 'b', 'better']]
    """
    pairs = []
    for name, other in combinations(losses.columns, 2):
        # rows that either failed on say nothing of the difference
        keep = np.ones(len(units.loss_f), dtype=bool)
        if scored is not None:
            keep = (scored[name] & scored[other]).to_numpy(dtype=bool)
        both = losses.loc[keep, [name, other]].to_numpy(dtype=float)
        pairs.append(
            _compare_two((str(name), str(other)), both, units.subset(keep, smallest))
        )

    # a claim about F itself is another question: it does not count among those of candidates
    names_apart = set(apart)
    is_apart = np.array(
        [bool(names_apart & set(pair.names)) for pair in pairs],
        dtype=bool,  # no pair at all would be an array of floats
    )
    is_withheld = np.array([bool(pair.veto) for pair in pairs], dtype=bool)
    adjusted = []
    for values in ([p_value(p.estimate) for p in pairs], [p.p_null for p in pairs]):
        # what may not be claimed stays in the family, and is never rejected
        tested = np.where(is_withheld, 1.0, np.array(values, dtype=float))
        p_values = np.full(len(pairs), np.nan)
        for group in (is_apart, ~is_apart):
            p_values[group] = holm_adjusted(tested[group])
        adjusted.append(np.where(is_withheld, np.nan, p_values))
    records = []
    for pair, p, q in zip(pairs, *adjusted, strict=True):
        verdict, reason = "no claim", pair.veto
        if not pair.veto:
            verdict, reason = _verdict(pair.estimate, p, q, 1 - units.level)
        records.append(
            {
                **pair.record,
                "p_holm": p,
                "p_null": q,
                "verdict": verdict,
                "reason": reason,
            }
        )
    # numbers stay numbers where nobody is compared, too
    return pd.DataFrame(records, columns=COLUMNS).astype(
        {"p_holm": float, "p_null": float}
    )


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """Two candidates on the rows that both predicted.

    ``record`` holds the columns that do not depend on the other pairs.
    """

    names: tuple[str, str]
    record: dict[str, object]
    estimate: MeanEstimate
    p_null: float
    veto: str


def _compare_two(
    names: tuple[str, str], losses: np.ndarray, units: ComparedUnits
) -> _Pair:
    """Compare two candidates, whose losses are the columns ``(n, 2)``."""
    contrast = partial(
        contrast_plainly, cap=units.cap, weights=units.weights, unit=units.unit
    )
    plain = contrast(losses[:, 0], losses[:, 1], whose=f"{names[1]}'s")
    # of F's loss: that of a bad candidate lies beyond the cap on many rows, which is no tail
    tail = contrast(losses[:, 0], units.loss_f).tail_reason
    if not tail and plain.f.infinite:
        tail = plain.f.sentence(plain.whose)
    losses = units.cap.apply(losses)
    capped = units.capped()
    estimate = capped.contrast(losses[:, 0], losses[:, 1])
    veto = tail or plain.disagreement(estimate.point, estimate.low, estimate.high)
    estimate = plain.without_interval(estimate, veto)
    spread, n_refits = capped.refit_spread()
    null_spread, p_null = float("nan"), float("nan")
    # the difference of two independent fits has the variance of both
    if n_refits > 1:
        null_spread = float(np.sqrt(2) * spread)
        p_null = p_value(add_variance(estimate, 2 * spread**2, n_refits - 1))
    record = {
        "framework": names[0],
        "other": names[1],
        "rows": len(losses),
        "weighted": units.weights is not None,
        "difference": estimate.point,
        "low": estimate.low,
        "high": estimate.high,
        "p": p_value(estimate),
        "null_spread": null_spread,
    }
    return _Pair(
        names=names, record=record, estimate=estimate, p_null=p_null, veto=veto
    )


def _verdict(
    estimate: MeanEstimate, p_holm: float, p_null: float, alpha: float
) -> tuple[str, str]:
    """Return ``better``, ``worse`` or ``undecided``, and why."""
    if not estimate.has_interval:
        return "undecided", estimate.reason
    if not p_holm < alpha:  # so that NaN, no test, is undecided too
        return "undecided", "no significant difference"
    word = "better" if estimate.point < 0 else "worse"
    # fewer than two re-fits show no scatter between fits, so the second test does not exist
    if np.isnan(p_null):
        return word, f"significantly {word}; no re-fits of F beside it"
    if p_null < alpha:
        return (
            word,
            f"significantly {word}, by more than two fits of one algorithm differ",
        )
    return "undecided", "differs, but two fits of one algorithm may differ as much"


# Nemenyi's comparisons of every two entrants over blocks, after Friedman's test.
#
# References:
# Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7, 1-30.
#
# NOTE[OWN]: scikit-posthocs has this test, and draws in statsmodels, seaborn and formulaic (50 MB)
# with it. It is the oracle of the unit test here.


def nemenyi_p_values(losses: np.ndarray) -> np.ndarray:
    """Return the p-value of each pair of entrants.

    Parameters
    ----------
    losses : ndarray of shape (n, k)
        A row per block, say a task, and a column per entrant; ties share their mean rank.

    Returns
    -------
    ndarray of shape (k, k)
        Symmetric, with ones on the diagonal.

    Examples
    --------
    >>> losses = np.array([[0.3, 0.1, 0.2], [0.4, 0.3, 0.5], [0.2, 0.1, 0.3], [0.5, 0.1, 0.6]])
    >>> nemenyi_p_values(losses).round(3).tolist()
    [[1.0, 0.181, 0.759], [0.181, 1.0, 0.036], [0.759, 0.036, 1.0]]
    """
    n_blocks, n_entrants = losses.shape
    mean_ranks = rankdata(losses, axis=1).mean(axis=0)
    differences = np.abs(mean_ranks[:, None] - mean_ranks[None, :])
    # standard error of the difference of two mean ranks, as Demsar has it
    standard_error = np.sqrt(n_entrants * (n_entrants + 1) / (6 * n_blocks))
    statistics = np.sqrt(2) * differences / standard_error
    p_values = studentized_range.sf(statistics, n_entrants, np.inf)
    np.fill_diagonal(p_values, 1.0)
    return np.asarray(p_values, dtype=float)
