"""Every estimate of one model's true error: the paper's, and what a user should take.

===========  ======================================================================================
a_priori     OSYN by Algorithm 1, its settings fixed before
closed       what Algorithm 1 comes to when every region is filled
tuned        the closed form with b and δ2 nearest to the oracle's loss from below (section
             5.4.3): needs the answer, so no user has it
tuned_set    the same with one b and δ2 for all models of a data set (section 5.2.1)
bootstrap    δ percentile of mean losses of resampled S (section 5.2.1)
synthetic    mean loss of generated rows ("Syn-wo-Opt")
limit        lower limit from S alone, Clopper–Pearson, or Student's for absolute errors
stratified   interval from S by class with known priors; ``low`` and ``high``
===========  ======================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from amlb_ext.estimate.osyn.bound import osyn_closed, osyn_counts, osyn_selected
from amlb_ext.estimate.osyn.explore import B_GRID, sweep_settings
from amlb_ext.estimate.osyn.tallies import Placed, RegionTally
from amlb_ext.estimate.osyn.theorem import OsynBound, OsynSettings
from amlb_ext.experiments.osyn.choices import Choice
from amlb_ext.stats.bounded_mean import clopper_pearson, t_interval
from amlb_ext.stats.stratified_mean import stratified_interval

#: Rows of one step of Algorithm 1 over losses that are at hand.
STEP = 50_000


@dataclass(frozen=True)
class Evidence:
    """What the estimates of one model rest on.

    Attributes
    ----------
    loss_s : ndarray of shape (K,)
    masses : RegionTally
        Of the rows that give p.
    region : ndarray of shape (n,)
        Of the rows that may be selected, -1 for none.
    loss_u : ndarray of shape (n,)
        Their losses.
    oracle : float
        Loss on D_oracle.
    zero_one : bool
    classes : ndarray of shape (K,) or None
    priors : ndarray or None
    """

    loss_s: np.ndarray
    masses: RegionTally
    region: np.ndarray
    loss_u: np.ndarray
    oracle: float
    zero_one: bool
    classes: np.ndarray | None = None
    priors: np.ndarray | None = None


def algorithm_1(
    found: Evidence, settings: OsynSettings, rng: np.random.Generator
) -> OsynBound:
    """Return the bound of Algorithm 1 on rows that are at hand."""
    K = len(found.loss_s)
    if found.zero_one:
        inside = found.region >= 0
        counts = np.bincount(found.region[inside], minlength=K)
        wrong = np.bincount(found.region[inside], found.loss_u[inside], minlength=K)
        seen = RegionTally(counts, wrong, int((~inside).sum()), True)
        return osyn_counts(found.loss_s, seen, settings, rng, masses=found.masses)
    return osyn_selected(_batches(found), found.loss_s, found.masses, settings, rng)


def _batches(found: Evidence) -> Iterator[Placed]:
    for start in range(0, len(found.region), STEP):
        part = slice(start, start + STEP)
        yield found.region[part], found.loss_u[part].astype(float)


def nearest_below(sweep: pd.DataFrame, oracle: float) -> pd.Series:
    """Return the setting whose bound is nearest to the oracle's loss from below.

    Where none is below, the lowest bound.

    Examples
    --------
    >>> sweep = pd.DataFrame({"b": [0.0, 1.0, 2.0], "bound": [0.1, 0.2, 0.3]})
    >>> float(nearest_below(sweep, 0.25)["b"]), float(nearest_below(sweep, 0.05)["b"])
    (1.0, 0.0)
    """
    below = sweep[sweep["bound"] <= oracle]
    if len(below):
        return below.loc[below["bound"].idxmax()]
    return sweep.loc[sweep["bound"].idxmin()]


def feasible_widths(g: int, K: int) -> list[float]:
    """Return the b of the grid for which whole counts exist."""
    return [b for b in B_GRID if b * g >= K]


def tune_together(
    sweeps: Sequence[pd.DataFrame], oracles: Sequence[float]
) -> list[float]:
    """Return the bounds by the one setting that is nearest to all oracle losses from below.

    Where no setting is below all of them, that which exceeds one by the least.

    Parameters
    ----------
    sweeps : sequence of DataFrame
        One for each model, of the same settings in the same order.
    oracles : sequence of float

    Examples
    --------
    >>> sweeps = [pd.DataFrame({"bound": x}) for x in ([0.1, 0.2, 0.3], [0.1, 0.3, 0.4])]
    >>> tune_together(sweeps, [0.25, 0.35]), tune_together(sweeps, [0.05, 0.35])
    ([0.2, 0.3], [0.1, 0.1])
    """
    bounds = np.array([sweep["bound"] for sweep in sweeps])
    gaps = np.array(oracles)[:, None] - bounds
    above = np.maximum(0, -gaps).max(axis=0)
    fewest = np.flatnonzero(above <= above.min())
    best = fewest[np.argmin(gaps[:, fewest].mean(axis=0))]
    return [float(bound) for bound in bounds[:, best]]


def evaluate_model(
    found: Evidence, choice: Choice, key: int
) -> tuple[dict[str, float], pd.DataFrame]:
    """Return all estimates of one model.

    Parameters
    ----------
    found : Evidence
    choice : Choice
    key : int
        Seed of the multinomial draw, which both forms of OSYN share, and of the bootstrap.

    Returns
    -------
    dict of str to float
        The arms above but ``tuned_set``, ``oracle``, and what the bounds were made of.
    DataFrame
        The closed form's bounds by all settings.

    Examples
    --------
    >>> wrong = np.tile([0.0, 0.0, 0.0, 1.0], 25)
    >>> even = RegionTally(np.full(100, 9), None, 0, False)
    >>> region, loss = np.repeat(np.arange(100), 40), np.tile([0.0, 1.0], 2000)
    >>> of = Choice(g=1000, bootstraps=50)
    >>> r, _ = evaluate_model(Evidence(wrong, even, region, loss, 0.25, True), of, 0)
    >>> r["a_priori"] < r["tuned"] <= 0.25, round(r["F_minus_eps"], 1)
    (True, 0.2)
    """
    s, delta = choice, choice.delta
    largest = float(max(found.loss_s.max(), found.loss_u.max())) or 1.0
    C_h = 1.0 if found.zero_one else s.c_h or largest
    settings = OsynSettings(s.g, s.b, s.delta1, s.delta2, C_h, "paper")
    plain = algorithm_1(found, settings, np.random.default_rng(key))
    sweep = sweep_settings(
        found.masses.masses,
        found.loss_s,
        np.random.default_rng(key),
        feasible_widths(s.g, len(found.loss_s)),
        g=(s.g,),
        delta=delta,
        C_h=C_h,
        a_hat=plain.a_hat,
    )
    full = replace(settings, a_hat=plain.a_hat)
    closed = osyn_closed(found.loss_s, found.masses, full, np.random.default_rng(key))
    best = nearest_below(sweep, found.oracle)
    rng = np.random.default_rng([key, 1])
    out = {
        "oracle": found.oracle,
        "a_priori": plain.bound,
        "closed": closed.bound,
        "tuned": float(best["bound"]),
        "bootstrap": bootstrap_limit(found.loss_s, delta, s.bootstraps, rng),
        "synthetic": float(found.loss_u.mean()),
        "F_minus_eps": plain.F_minus_eps,
        "F_S": float(found.loss_s.mean()),
        "b": float(best["b"]),
        "delta2": float(best["delta2"]),
        "met": float(plain.assumption_met),
        "empty": float(plain.empty),
        "outside": float((found.region < 0).mean()),
    }
    return out | from_labels(found, delta), sweep


def from_labels(found: Evidence, delta: float) -> dict[str, float]:
    """Return what labelled rows alone tell: ``limit`` fails with delta, so does ``stratified``."""
    limit = (clopper_pearson if found.zero_one else t_interval)(
        found.loss_s, 1 - 2 * delta
    )
    out = {"limit": limit.low, "low": math.nan, "high": math.nan}
    if found.classes is not None and found.priors is not None:
        both = stratified_interval(
            found.loss_s, found.classes, found.priors, 1 - delta, binary=found.zero_one
        )
        out |= {"low": both.low, "high": both.high}
    return out


def bootstrap_limit(
    loss_s: np.ndarray, delta: float, n: int, rng: np.random.Generator
) -> float:
    """Return the delta percentile of the mean loss of n resamples (section 5.2.1).

    Examples
    --------
    >>> bootstrap_limit(np.ones(5), 0.2, 10, np.random.default_rng(0))
    1.0
    """
    rows = rng.integers(0, len(loss_s), (n, len(loss_s)))
    return float(np.quantile(loss_s[rows].mean(axis=1), delta))
