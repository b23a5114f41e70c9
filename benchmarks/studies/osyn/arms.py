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
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.estimate.osyn.bound import (
    OsynBound,
    OsynSettings,
    osyn_closed,
    osyn_iterative,
)
from amlb_ext.estimate.osyn.regions import Placed, RegionTally
from amlb_ext.estimate.osyn.run import B_GRID, sweep_settings
from amlb_ext.stats.bounded_mean import clopper_pearson, stratified_interval, t_interval
from benchmarks.studies.osyn.case import Choice

#: Rows of one step of Algorithm 1 over losses that are at hand.
STEP = 50_000


@dataclass(frozen=True, kw_only=True)
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
    evidence: Evidence, settings: OsynSettings, rng: np.random.Generator
) -> OsynBound:
    """Return the bound of Algorithm 1 on rows that are at hand."""
    if not evidence.zero_one:
        return osyn_iterative(
            _place_batches(evidence), evidence.loss_s, evidence.masses, settings, rng
        )
    # of a 0-1 loss the counts say all: which rows are selected does not matter
    n_regions = len(evidence.loss_s)
    is_inside = evidence.region >= 0
    region = evidence.region[is_inside]
    generated = RegionTally(
        counts=np.bincount(region, minlength=n_regions),
        loss_sums=np.bincount(region, evidence.loss_u[is_inside], minlength=n_regions),
        outside=int((~is_inside).sum()),
        zero_one=True,
    )
    return osyn_iterative(
        generated.rows(), evidence.loss_s, evidence.masses, settings, rng
    )


def _place_batches(evidence: Evidence) -> Iterator[Placed]:
    """Yield regions and losses, as many as Algorithm 1 reads in one step."""
    for start in range(0, len(evidence.region), STEP):
        batch = slice(start, start + STEP)
        yield evidence.region[batch], evidence.loss_u[batch].astype(float)


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


def sweep_bounds(
    evidence: Evidence, choice: Choice, key: int, **others: Any
) -> pd.DataFrame:
    """Return the closed form's bounds by all settings; the key is the seed of its counts."""
    n_regions = len(evidence.loss_s)
    return sweep_settings(
        evidence.masses.masses,
        evidence.loss_s,
        np.random.default_rng(key),
        # counts lie in g (1 ± b) / K: narrower than one there may be no whole number
        [b for b in B_GRID if b * choice.g >= n_regions],
        g=choice.g,
        delta=choice.delta,
        **others,
    )


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
    # one row per model, one column per setting
    bounds = np.array([sweep["bound"] for sweep in sweeps])
    gaps = np.array(oracles)[:, None] - bounds
    excess = np.maximum(0, -gaps).max(axis=0)
    candidates = np.flatnonzero(excess <= excess.min())
    mean_gaps = gaps[:, candidates].mean(axis=0)
    best = candidates[np.argmin(mean_gaps)]
    return [float(bound) for bound in bounds[:, best]]


def evaluate_model(
    evidence: Evidence, choice: Choice, key: int
) -> tuple[dict[str, float], pd.DataFrame]:
    """Return all estimates of one model.

    Parameters
    ----------
    evidence : Evidence
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
    >>> even = RegionTally(np.full(100, 9), loss_sums=None, outside=0, zero_one=False)
    >>> region, loss = np.repeat(np.arange(100), 40), np.tile([0.0, 1.0], 2000)
    >>> evidence = Evidence(
    ...     loss_s=wrong, masses=even, region=region, loss_u=loss, oracle=0.25, zero_one=True
    ... )
    >>> row, _ = evaluate_model(evidence, Choice(g=1000, bootstraps=50), 0)
    >>> row["a_priori"] < row["tuned"] <= 0.25, round(row["F_minus_eps"], 1)
    (True, 0.2)
    """
    loss_s, loss_u = evidence.loss_s, evidence.loss_u
    settings = choice.bound(C_h=_loss_bound(evidence, choice), a_hat="paper")
    # each form draws from a stream of the same key, so that they differ by the form alone
    plain = algorithm_1(evidence, settings, np.random.default_rng(key))
    # Algorithm 1's own bound of the regions' mean losses, for the closed forms too
    settings = replace(settings, a_hat=plain.a_hat)
    closed = osyn_closed(loss_s, evidence.masses, settings, np.random.default_rng(key))
    sweep = sweep_bounds(evidence, choice, key, C_h=settings.C_h, a_hat=plain.a_hat)
    tuned = nearest_below(sweep, evidence.oracle)
    bootstrap_rng = np.random.default_rng([key, 1])
    row = {
        "oracle": evidence.oracle,
        "a_priori": plain.bound,
        "closed": closed.bound,
        "tuned": float(tuned["bound"]),
        "bootstrap": bootstrap_limit(
            loss_s, choice.delta, choice.bootstraps, bootstrap_rng
        ),
        "synthetic": float(loss_u.mean()),
        "F_minus_eps": plain.F_minus_eps,
        "F_S": float(loss_s.mean()),
        "b": float(tuned["b"]),
        "delta2": float(tuned["delta2"]),
        "met": float(plain.assumption_met),
        "empty": float(plain.empty),
        "outside": float((evidence.region < 0).mean()),
    }
    return row | estimate_from_labels(evidence, choice.delta), sweep


def _loss_bound(evidence: Evidence, choice: Choice) -> float:
    """Return C_h: 1 for a 0-1 loss, else the one chosen or the largest loss seen."""
    if evidence.zero_one:
        return 1.0
    # losses that are all 0 would give a bound of 0, which no setting takes
    largest = float(max(evidence.loss_s.max(), evidence.loss_u.max())) or 1.0
    return choice.c_h or largest


def estimate_from_labels(evidence: Evidence, delta: float) -> dict[str, float]:
    """Return what labelled rows alone tell: ``limit`` fails with delta, so does ``stratified``."""
    # a limit is one side of an interval, so its level spends delta on either side
    interval = clopper_pearson if evidence.zero_one else t_interval
    limit = interval(evidence.loss_s, 1 - 2 * delta)
    row = {"limit": limit.low, "low": math.nan, "high": math.nan}
    if evidence.classes is not None and evidence.priors is not None:
        stratified = stratified_interval(
            evidence.loss_s,
            evidence.classes,
            evidence.priors,
            level=1 - delta,
            binary=evidence.zero_one,
        )
        row |= {"low": stratified.low, "high": stratified.high}
    return row


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
