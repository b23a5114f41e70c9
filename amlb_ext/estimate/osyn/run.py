"""OSYN on the rows at hand: what was asked of it, both of its forms, and its curve over b."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.osyn.bound import osyn_closed, osyn_counts, osyn_estimate, osyn_iterative
from amlb_ext.estimate.osyn.explore import B_GRID, sweep_settings
from amlb_ext.estimate.osyn.regions import Regions
from amlb_ext.estimate.osyn.tallies import Batch, tally_regions
from amlb_ext.estimate.osyn.theorem import OsynBound, OsynSettings
from amlb_ext.stats.bounded_loss import BoundedLoss
from amlb_ext.stats.error_estimate import ErrorEstimate

#: Share of 1 - level that goes to delta1: .01 of .05.
DELTA1 = 0.2
SYNTHETIC = "the generator is the truth: generated rows are distributed as real ones"


@dataclass(frozen=True)
class OsynAsked:
    """Settings of OSYN, chosen before seeing any bound.

    Attributes
    ----------
    g : int
        Generated rows to select; at least ten times the labelled rows when 0.
    b : float
        Counts are clipped to g (1 ± b) / K.
    delta1, delta2 : float
        0 takes a fifth and four fifths of ``1 - level``.
    a_hat : float, "paper" or None
    k : int or None
        Neighbours of the sphere; None for no sphere.
    regions : str
        ``features`` or ``labels`` (nearest labelled row of the same class).
    """

    g: int = 0
    b: float = 1.0
    delta1: float = 0.0
    delta2: float = 0.0
    a_hat: float | Literal["paper"] | None = None
    k: int | None = None
    regions: Literal["features", "labels"] = "features"

    @classmethod
    def read(cls, given: Mapping[str, Any], level: float) -> OsynAsked:
        """Return settings from words such as ``{"b": "2"}``.

        Raises
        ------
        ConfigError
            An unknown key, with the nearest, or a value that is none.

        Examples
        --------
        >>> OsynAsked.read({"b": "2"}, 0.9)
        OsynAsked(g=0, b=2.0, delta1=0.02, delta2=0.08, a_hat=None, k=None, regions='features')
        """
        known = {item.name for item in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for key, value in given.items():
            if key not in known:
                raise ConfigError(f"unknown setting {key!r} of OSYN", suggest_nearest(key, known))
            try:
                values[key] = _value(key, value)
            except ValueError:
                raise ConfigError(f"OSYN: {key} = {value!r}", "give a number") from None
        made = cls(**values)
        if made.regions not in ("features", "labels"):
            raise ConfigError(f"OSYN: regions = {made.regions!r}", "choose features or labels")
        return dataclasses.replace(
            made,
            delta1=made.delta1 or round(DELTA1 * (1 - level), 12),
            delta2=made.delta2 or round((1 - DELTA1) * (1 - level), 12),
        )


@dataclass(frozen=True)
class OsynRun:
    """What came of it.

    Attributes
    ----------
    asked : OsynAsked
    closed : OsynBound
    iterative : OsynBound or None
        None where no losses of generated rows can be had.
    n : int
        Generated rows.
    mean, variance : float
        Of the loss on them; NaN as above.
    outside : int
        Generated rows in no region.
    curve : DataFrame
        ``b`` and ``bound`` of the closed form, at the deltas asked for.
    sweep : DataFrame or None
        All of :func:`~amlb_ext.estimate.osyn.explore.sweep_settings`.
    """

    asked: OsynAsked
    closed: OsynBound
    iterative: OsynBound | None
    n: int
    mean: float
    variance: float
    outside: int
    curve: pd.DataFrame
    sweep: pd.DataFrame | None = None

    def rows(self) -> list[ErrorEstimate]:
        """Return a row for each form."""
        found = [b for b in (self.iterative, self.closed) if b is not None]
        return [osyn_estimate(one) for one in found]

    def synthetic(self, level: float) -> ErrorEstimate | None:
        """Return the mean loss on generated rows, with what sampling alone leaves open."""
        if not math.isfinite(self.mean):
            return None
        half = float(special.ndtri(0.5 + level / 2)) * math.sqrt(self.variance / self.n)
        low, high = max(0.0, self.mean - half), min(self.closed.C_h, self.mean + half)
        return ErrorEstimate(
            name="synthetic",
            point=self.mean,
            low=low,
            high=high,
            level=level,
            n=self.n,
            assumes=SYNTHETIC,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        bounds = {"closed": self.closed, "iterative": self.iterative}
        return {
            "settings": dataclasses.asdict(self.asked),
            "generated_rows": self.n,
            "outside": self.outside,
            "bounds": {
                name: None
                if found is None
                else {
                    key: value
                    for key, value in dataclasses.asdict(found).items()
                    if key != "weights"
                }
                for name, found in bounds.items()
            },
            "curve": self.curve.to_dict(orient="records"),
        }


def run_osyn(
    rows: Callable[[], Iterable[Batch]],
    centres: np.ndarray,
    y: np.ndarray,
    losses: np.ndarray,
    loss: BoundedLoss,
    asked: OsynAsked,
    seed: int,
    sweep: bool = False,
) -> OsynRun:
    """Run both forms of OSYN.

    Parameters
    ----------
    rows : callable
        Gives the same generated rows each time.
    centres : ndarray of shape (K, d)
        The labelled rows.
    y, losses : ndarray of shape (K,)
    loss : Loss
    asked : OsynAsked
    seed : int
    sweep : bool

    Raises
    ------
    ConfigError
        Label-aware regions for regression, or settings out of range.
    DataError
        See :func:`~amlb_ext.estimate.osyn.tallies.tally_regions`.
    """
    if asked.regions == "labels" and loss.needs == "numbers":
        raise ConfigError("OSYN: regions = 'labels' for regression", "use regions=features")
    codes = y.astype(int) if asked.regions == "labels" else None
    regions = Regions(centres, codes, asked.k)
    g = asked.g or max(50_000, 10 * len(centres))
    settings = OsynSettings(g, asked.b, asked.delta1, asked.delta2, loss.bound, asked.a_hat)
    total = _Total()
    seen = tally_regions(total.watch(rows()), regions, loss.bound)
    draw = random_stream(seed, "osyn", "multinomial")
    p, delta = seen.masses, asked.delta1 + asked.delta2
    curve = sweep_settings(
        p,
        losses,
        random_stream(seed, "osyn", "multinomial"),
        [b for b in B_GRID if b * g >= len(centres)],
        [asked.delta2],
        (g,),
        delta,
        loss.bound,
    )
    closed = osyn_closed(losses, seen, settings, draw)
    iterative = None
    if seen.loss_sums is not None:
        again = random_stream(seed, "osyn", "multinomial")
        if seen.zero_one and loss.binary:
            iterative = osyn_counts(losses, seen, settings, again)
        else:
            iterative = osyn_iterative(rows(), regions, losses, seen, settings, again)
    found = None
    if sweep:
        grid = [b for b in B_GRID if b * g >= len(centres)]
        random = random_stream(seed, "osyn", "multinomial")
        found = sweep_settings(p, losses, random, grid, None, (g,), delta, loss.bound)
    return OsynRun(
        asked,
        closed,
        iterative,
        total.n,
        total.mean,
        total.variance,
        seen.outside,
        curve[["b", "bound"]],
        found,
    )


class _Total:
    """Mean and variance of the losses that pass by."""

    def __init__(self) -> None:
        self.n, self.sum, self.squares, self.known = 0, 0.0, 0.0, True

    def watch(self, rows: Iterable[Batch]) -> Iterator[Batch]:
        for batch in rows:
            loss = batch[2]
            self.n += len(batch[0])
            if loss is None:
                self.known = False
            else:
                self.sum += float(loss.sum())
                self.squares += float(np.square(loss).sum())
            yield batch

    @property
    def mean(self) -> float:
        return self.sum / self.n if self.known and self.n else math.nan

    @property
    def variance(self) -> float:
        return max(0.0, self.squares / self.n - self.mean**2) if self.n else math.nan


def _value(key: str, value: Any) -> Any:
    if key == "regions":
        return str(value)
    if key in ("g", "k"):
        return None if str(value).lower() == "none" else int(value)
    if key == "a_hat" and str(value) in ("paper", "None", "none"):
        return "paper" if str(value) == "paper" else None
    return float(value)
