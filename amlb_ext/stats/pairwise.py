"""Two candidates against each other where F fails, with F's re-fits as the null beside.

Notation
--------
l_G, l_H : (n,) losses of two candidates on the same real, labelled rows
S : standard deviation of the contrast with F over the R re-fits of F
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from amlb_ext.stats.contrasts import choose_weighting, mean_contrast, refit_spread
from amlb_ext.stats.weighted_mean import MeanEstimate, holm_adjusted, p_value

COLUMNS = (
    *(
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
    ),
    *("p_null", "verdict", "reason"),
)


def compare_pairs(
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    null: pd.DataFrame | None = None,
    level: float = 0.95,
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
    loss_f : ndarray of shape (n,)
    weights, clusters : ndarray of shape (n,), optional
    null : DataFrame of shape (n, R), optional
        Losses of R re-fits of F on the same rows.
    level : float
    scored : DataFrame of shape (n, candidates), bool, optional
        The rows that each candidate predicted, all when omitted.
    apart : collection of str
        Names that are no candidates (F itself): pairs with them are adjusted among themselves.
    smallest : float, optional
        As for :func:`~amlb_ext.stats.contrasts.compare_with_f`, for the rows of each pair.

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
    >>> compare_pairs(g, f)[["framework", "other", "verdict"]].values.tolist()
    [['a', 'b', 'better']]
    """
    f = np.asarray(loss_f, dtype=float)
    rows, found = [], []
    for one, two in combinations(losses.columns, 2):
        keep = np.ones(len(f), bool)
        if scored is not None:
            keep = (scored[one] & scored[two]).to_numpy(dtype=bool)
        w = None if weights is None else np.asarray(weights)[keep]
        c = None if clusters is None else np.asarray(clusters)[keep]
        if smallest is not None:
            w = choose_weighting(w, c, smallest).weights
        pair = [losses[name].to_numpy(dtype=float)[keep] for name in (one, two)]
        estimate = mean_contrast(pair[0], pair[1], w, c, level)
        spread = refit_spread(None if null is None else null.loc[keep], f[keep], w, c)
        rows.append(
            {
                "framework": str(one),
                "other": str(two),
                "rows": int(keep.sum()),
                "weighted": w is not None,
                "difference": estimate.point,
                "low": estimate.low,
                "high": estimate.high,
                "p": p_value(estimate),
                "null_spread": float(np.sqrt(2) * spread[0]) if spread[1] > 1 else float("nan"),
                "p_null": _beyond_two_fits(estimate, *spread),
            }
        )
        found.append(estimate)
    out = pd.DataFrame(rows, columns=list(COLUMNS))
    mixed = (out["framework"].isin(apart) | out["other"].isin(apart)).to_numpy(dtype=bool)
    for raw, adjusted in (("p", "p_holm"), ("p_null", "p_null")):
        values, told = out[raw].to_numpy(dtype=float), np.full(len(out), np.nan)
        for group in (mixed, ~mixed):
            told[group] = holm_adjusted(values[group])
        out[adjusted] = told
    words = [
        _verdict(estimate, p, q, 1 - level)
        for estimate, p, q in zip(found, out["p_holm"], out["p_null"], strict=True)
    ]
    out["verdict"] = [word for word, _ in words]
    out["reason"] = [reason for _, reason in words]
    return out


def _beyond_two_fits(estimate: MeanEstimate, spread: float, refits: int) -> float:
    """Return the p-value when two fits of one algorithm scatter by S sqrt 2; NaN without S."""
    if not estimate.has_interval or refits < 2:
        return float("nan")
    between = 2 * spread**2
    variance = estimate.se**2 + between
    if variance == 0:
        return 1.0
    share = (estimate.se**2 / variance) ** 2 / estimate.df + (between / variance) ** 2 / (
        refits - 1
    )
    return float(2 * student.sf(abs(estimate.point) / np.sqrt(variance), 1 / share))


def _verdict(estimate: MeanEstimate, p_holm: float, p_null: float, alpha: float) -> tuple[str, str]:
    if not estimate.has_interval:
        return "undecided", estimate.reason
    if not p_holm < alpha:
        return "undecided", "no significant difference"
    word = "better" if estimate.point < 0 else "worse"
    if np.isnan(p_null):
        return word, f"significantly {word}; no re-fits of F beside it"
    if p_null < alpha:
        return word, f"significantly {word}, by more than two fits of one algorithm differ"
    return "undecided", "differs, but two fits of one algorithm may differ as much"
