"""OSYN on the rows at hand: what was asked of it, both of its forms, and its curve over b."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.osyn.bound import (
    osyn_closed,
    osyn_counts,
    osyn_estimate,
    osyn_iterative,
)
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
    def read(cls, words: Mapping[str, Any], level: float) -> OsynAsked:
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
        for key, value in words.items():
            if key not in known:
                raise ConfigError(
                    f"unknown setting {key!r} of OSYN", suggest_nearest(key, known)
                )
            try:
                values[key] = _parse_setting(key, value)
            except ValueError:
                raise ConfigError(f"OSYN: {key} = {value!r}", "give a number") from None
        settings = cls(**values)
        if settings.regions not in ("features", "labels"):
            raise ConfigError(
                f"OSYN: regions = {settings.regions!r}", "choose features or labels"
            )
        return dataclasses.replace(
            settings,
            delta1=settings.delta1 or round(DELTA1 * (1 - level), 12),
            delta2=settings.delta2 or round((1 - DELTA1) * (1 - level), 12),
        )


@dataclass(frozen=True, kw_only=True)
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
        bounds = (
            [self.closed] if self.iterative is None else [self.iterative, self.closed]
        )
        return [osyn_estimate(bound) for bound in bounds]

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
        return {
            "settings": dataclasses.asdict(self.asked),
            "generated_rows": self.n,
            "outside": self.outside,
            "bounds": {
                "closed": _bound_to_json(self.closed),
                "iterative": None
                if self.iterative is None
                else _bound_to_json(self.iterative),
            },
            "curve": self.curve.to_dict(orient="records"),
        }


def _bound_to_json(bound: OsynBound) -> dict[str, Any]:
    values = dataclasses.asdict(bound)
    del values["weights"]  # one for each labelled row
    return values


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
        raise ConfigError(
            "OSYN: regions = 'labels' for regression", "use regions=features"
        )
    codes = y.astype(int) if asked.regions == "labels" else None
    regions = Regions(centres, codes, asked.k)
    g = asked.g or max(50_000, 10 * len(centres))
    settings = OsynSettings(
        g=g,
        b=asked.b,
        delta1=asked.delta1,
        delta2=asked.delta2,
        C_h=loss.bound,
        a_hat=asked.a_hat,
    )
    total = _LossTotal()
    generated = tally_regions(total.watch(rows()), regions, loss.bound)

    def draw() -> np.random.Generator:
        # Every form clips the same multinomial draw, so that they can be set against each other.
        return random_stream(seed, "osyn", "multinomial")

    explored = partial(
        sweep_settings,
        generated.masses,
        losses,
        b=[b for b in B_GRID if b * g >= len(centres)],
        g=(g,),
        delta=asked.delta1 + asked.delta2,
        C_h=loss.bound,
    )
    closed = osyn_closed(losses, generated, settings, draw())
    iterative = None
    if generated.loss_sums is not None:
        if generated.zero_one and loss.binary:
            iterative = osyn_counts(losses, generated, settings, draw())
        else:
            iterative = osyn_iterative(
                rows(), regions, losses, masses=generated, settings=settings, rng=draw()
            )
    return OsynRun(
        asked=asked,
        closed=closed,
        iterative=iterative,
        n=total.n,
        mean=total.mean,
        variance=total.variance,
        outside=generated.outside,
        curve=explored(rng=draw(), delta2=[asked.delta2])[["b", "bound"]],
        sweep=explored(rng=draw()) if sweep else None,
    )


class _LossTotal:
    """Mean and variance of the losses of a stream that passes by."""

    def __init__(self) -> None:
        self.n, self.sum, self.squares = 0, 0.0, 0.0
        self.has_losses = True

    def watch(self, rows: Iterable[Batch]) -> Iterator[Batch]:
        for X, labels, losses in rows:
            self.n += len(X)
            if losses is None:
                self.has_losses = False
            else:
                self.sum += float(losses.sum())
                self.squares += float(np.square(losses).sum())
            yield X, labels, losses

    @property
    def mean(self) -> float:
        return self.sum / self.n if self.has_losses and self.n else math.nan

    @property
    def variance(self) -> float:
        return max(0.0, self.squares / self.n - self.mean**2) if self.n else math.nan


def _parse_setting(key: str, value: Any) -> Any:
    if key == "regions":
        return str(value)
    if key in ("g", "k"):
        return None if str(value).lower() == "none" else int(value)
    if key == "a_hat" and str(value) in ("paper", "None", "none"):
        return "paper" if str(value) == "paper" else None
    return float(value)
