"""Which candidates are better than F where F fails? One table, Holm-adjusted, nulls beside it.

Notation
--------
l_G, l_F : (n,) losses of a candidate and of F on real, labelled rows
d = l_G - l_F : (n,) the contrast; negative where the candidate is better
w : (n,) region weights, functions of the features alone
n : labelled rows
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.validity.contrast import (
    NullControl,
    beyond_refits,
    cluster_effective_size,
    contrast,
    null_control,
    refit_spread,
)
from amlb_ext.validity.intervals import Estimate, holm, p_value


def contrasts(
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    null: pd.DataFrame | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    r"""Compare many candidates with F, with the null control beside each.

    A candidate is called ``better`` (``worse``) only when both hold with Holm-adjusted p-values
    below ``1 - level``: it differs from F, and it differs in the same direction from the mean of
    the re-fits of F. The second uses

    .. math::
        s^2 = s_{rows}^2 + S^2 (1 + 1/R), \quad
        \mathrm{df} = \frac{s^4}{s_{rows}^4 / \mathrm{df}_{rows} +
                                 (S^2 (1 + 1/R))^2 / (R - 1)}

    with S the standard deviation of the contrast over the R re-fits: were the candidate only
    one more re-fit of F, it would scatter around their mean like that (Welch-Satterthwaite).
    Otherwise the word is ``undecided``. Needing both keeps the familywise error of each
    (intersection-union).

    Parameters
    ----------
    losses : DataFrame of shape (n, candidates)
        Losses per row.
    loss_f : ndarray of shape (n,)
    weights, clusters : ndarray of shape (n,), optional
        See :func:`choose_weights` for when to leave weights out.
    null : DataFrame of shape (n, R), optional
        Losses of R re-fits of F on the same rows.
    level : float

    Returns
    -------
    DataFrame
        One row per candidate, in the given order: ``candidate``, ``difference``, ``low``,
        ``high``, ``p``, ``p_holm``, ``effective_size`` (of the cluster weights),
        ``null_difference``, ``null_se``, ``p_null`` (Holm-adjusted, against the re-fits),
        ``verdict``, ``reason``. NaN in the null columns without ``null``.

    Raises
    ------
    DataError
        When lengths differ or a loss is not finite; the message names the candidate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(400)
    >>> g = pd.DataFrame({"good": f - 0.1 + 0.2 * rng.random(400),
    ...                   "better": f - 0.3 + 0.2 * rng.random(400)})
    >>> contrasts(g, f)[["candidate", "verdict"]].values.tolist()
    [['good', 'undecided'], ['better', 'better']]
    """
    f = np.asarray(loss_f, dtype=float)
    null = None if null is None or null.shape[1] == 0 else null
    control = None if null is None else null_control(null, f, weights, clusters, level)
    mean_null = None if null is None else null.to_numpy(dtype=float).mean(axis=1)
    spread = refit_spread(null, f, weights, clusters)
    size = cluster_effective_size(f, weights, clusters)
    rows, against = [], []
    for name in losses.columns:
        g = losses[name].to_numpy(dtype=float)
        try:
            estimate = contrast(g, f, weights, clusters, level)
        except DataError as error:
            raise DataError(f"candidate {name!r}: {error.message}", error.remedy) from None
        rows.append(estimate)
        if mean_null is not None:
            against.append(beyond_refits(contrast(g, mean_null, weights, clusters, level), *spread))
    p = np.array([p_value(e) for e in rows])
    p_holm = holm(p)
    gaps = np.array([gap for gap, _ in against]) if against else np.full(len(rows), np.nan)
    p_null = holm(np.array([q for _, q in against])) if against else np.full(len(rows), np.nan)
    words = [
        _verdict(e, p_holm[i], gaps[i], p_null[i], control, 1 - level) for i, e in enumerate(rows)
    ]
    return pd.DataFrame(
        {
            "candidate": [str(name) for name in losses.columns],
            "difference": [e.point for e in rows],
            "low": [e.low for e in rows],
            "high": [e.high for e in rows],
            "p": p,
            "p_holm": p_holm,
            "effective_size": size,
            "null_difference": float("nan") if control is None else control.difference,
            "null_se": float("nan") if control is None else control.se,
            "p_null": p_null,
            "verdict": [word for word, _ in words],
            "reason": [reason for _, reason in words],
        }
    )


def _verdict(
    estimate: Estimate,
    p_holm: float,
    gap: float,
    p_null: float,
    control: NullControl | None,
    alpha: float,
) -> tuple[str, str]:
    """Return ``better``, ``worse`` or ``undecided``, and why."""
    if not estimate.has_interval:
        return "undecided", estimate.reason
    if not p_holm < alpha:
        return "undecided", "no significant difference from F"
    word = "better" if estimate.point < 0 else "worse"
    if control is None:
        return word, f"significantly {word} than F; no re-fit of F beside it"
    if p_null < alpha and np.sign(gap) == np.sign(estimate.point):
        return word, f"significantly {word} than F and than its re-fits"
    return "undecided", f"differs from F, but a re-fit of F may be as {_word(word)}"


def _word(verdict: str) -> str:
    return "good" if verdict == "better" else "bad"
