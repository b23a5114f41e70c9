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
from amlb_ext.stats.weighted_mean import Estimate, holm, p_value
from amlb_ext.validity.contrast import (
    NullControl,
    beyond_refits,
    choose_weighting,
    cluster_effective_size,
    contrast,
    null_control,
    refit_spread,
)


def contrasts(
    losses: pd.DataFrame,
    loss_f: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    null: pd.DataFrame | None = None,
    level: float = 0.95,
    scored: pd.DataFrame | None = None,
    smallest: float | None = None,
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
    null : DataFrame of shape (n, R), optional
        Losses of R re-fits of F on the same rows.
    level : float
    scored : DataFrame of shape (n, candidates), bool, optional
        The rows that each candidate is compared on, all when omitted. Losses elsewhere are not
        looked at.
    smallest : float, optional
        Where the weights of the rows that a candidate is compared on are worth fewer equal rows
        than this, all of them count alike; see
        :func:`~amlb_ext.validity.contrast.choose_weighting`. When omitted, weights are used as
        given.

    Returns
    -------
    DataFrame
        One row per candidate, in the given order: ``candidate``, ``rows``, ``loss`` and
        ``loss_f`` (weighted means), ``difference``, ``low``, ``high``, ``p``, ``p_holm``,
        ``effective_size`` (of the cluster weights), ``weighted`` (whether weights were used),
        ``null_difference``, ``null_se``, ``p_null`` (Holm-adjusted,
        against the re-fits), ``verdict``, ``reason``. NaN in the null columns without ``null``.

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
    rows, tests = [], []
    for name in losses.columns:
        keep = np.ones(len(f), bool) if scored is None else scored[name].to_numpy(dtype=bool)
        g = losses[name].to_numpy(dtype=float)[keep]
        try:
            row, test = _against_f(g, f, keep, weights, clusters, null, level, smallest)
        except DataError as error:
            raise DataError(f"candidate {name!r}: {error.message}", error.remedy) from None
        rows.append({"candidate": str(name), **row})
        tests.append(test)
    out = pd.DataFrame(rows, columns=["candidate", *_COLUMNS])
    out["p_holm"] = holm(out["p"].to_numpy(dtype=float))
    out["p_null"] = holm(out["p_null"].to_numpy(dtype=float))
    words = [
        _verdict(estimate, out["p_holm"].iloc[i], gap, out["p_null"].iloc[i], control, 1 - level)
        for i, (estimate, gap, control) in enumerate(tests)
    ]
    out["verdict"] = [word for word, _ in words]
    out["reason"] = [reason for _, reason in words]
    return out


_COLUMNS = (
    *("rows", "loss", "loss_f", "difference", "low", "high", "p", "p_holm", "effective_size"),
    *("weighted", "null_difference", "null_se", "p_null", "verdict", "reason"),
)


def _against_f(
    g: np.ndarray,
    loss_f: np.ndarray,
    keep: np.ndarray,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    null: pd.DataFrame | None,
    level: float,
    smallest: float | None,
) -> tuple[dict[str, float], tuple[Estimate, float, NullControl | None]]:
    """Compare one candidate with F and its re-fits on the rows in ``keep``."""
    f = loss_f[keep]
    w = None if weights is None else np.asarray(weights)[keep]
    c = None if clusters is None else np.asarray(clusters)[keep]
    if smallest is not None:
        w = choose_weighting(w, c, smallest).weights
    estimate = contrast(g, f, w, c, level)
    control, gap, p_null = None, float("nan"), float("nan")
    if null is not None:
        again = null.loc[keep]
        control = null_control(again, f, w, c, level)
        mean = again.to_numpy(dtype=float).mean(axis=1)
        spread = refit_spread(again, f, w, c)
        gap, p_null = beyond_refits(contrast(g, mean, w, c, level), *spread)
    total = len(f) if w is None else float(w.sum())
    row = {
        "rows": len(f),
        "loss": float(np.average(g, weights=w)) if total else float("nan"),
        "loss_f": float(np.average(f, weights=w)) if total else float("nan"),
        "difference": estimate.point,
        "low": estimate.low,
        "high": estimate.high,
        "p": p_value(estimate),
        "effective_size": cluster_effective_size(f, w, c),
        "weighted": w is not None,
        "null_difference": float("nan") if control is None else control.difference,
        "null_se": float("nan") if control is None else control.se,
        "p_null": p_null,
    }
    return row, (estimate, gap, control)


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
