"""From the rows that OSYN selected to the bound they give; shared by its three forms."""

from __future__ import annotations

import math

import numpy as np

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.estimate.tallies import RegionTally
from amlb_ext.estimate.theorem import (
    OsynBound,
    OsynSettings,
    adjusted_counts,
    bound,
    checked_losses,
)


def prepared(
    loss_s: np.ndarray,
    masses: RegionTally,
    settings: OsynSettings | None,
    rng: np.random.Generator | None,
    g_star: np.ndarray | None,
) -> tuple[OsynSettings, np.ndarray, np.ndarray]:
    """Return checked settings, losses of the labelled rows, and g*."""
    settings = settings or OsynSettings()
    loss_s = checked_losses(loss_s, settings.C_h)
    if len(loss_s) != len(masses.counts):
        raise DataError(
            f"{len(loss_s)} labelled losses for {len(masses.counts)} regions",
            "give the losses of the rows that are the centres",
        )
    if g_star is None:
        rng = rng or np.random.default_rng(0)
        g_star = adjusted_counts(masses.masses, settings.g, settings.b, rng)
    return settings, loss_s, np.asarray(g_star, dtype=np.int64)


def finish(
    method: str,
    total: float,
    selected: np.ndarray,
    g_star: np.ndarray,
    generated: RegionTally,
    masses: RegionTally,
    loss_s: np.ndarray,
    settings: OsynSettings,
) -> OsynBound:
    """Return the bound from the sum of the Targets of the selected rows."""
    s, g = settings, int(selected.sum())
    weights, F_minus_eps = selected / g, total / g
    means = loss_s if generated.means is None else generated.means
    if s.a_hat == "paper" and generated.means is None:
        raise ConfigError("a_hat = 'paper' without generated losses", "give the stream losses")
    if s.a_hat == "paper":
        a_hat = float(means.max())
    else:
        a_hat = s.C_h if s.a_hat is None else float(s.a_hat)
    parts = bound(F_minus_eps, weights, a_hat, g, s.delta1, s.delta2, s.C_h)
    beta = 2 * float(masses.masses @ means**2)
    # A generator on which the model errs nowhere gives a_hat = 0 and beta = 0: not met.
    holds = a_hat > 0 and s.delta1 > math.exp(-0.5 * g * beta / a_hat**2)
    return OsynBound(
        parts.bound,
        F_minus_eps,
        parts.B,
        parts.D,
        weights,
        g,
        int(g_star.sum()),
        a_hat,
        beta,
        holds,
        parts.met,
        int((generated.counts == 0).sum()),
        method,
        1 - s.delta1 - s.delta2,
        s.C_h,
    )
