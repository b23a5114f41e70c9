"""OSYN on the rows at hand: the user's settings, both of its forms, and its curve over b."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.rng import random_stream
from amlb_ext.estimate.osyn.bound import (
    OsynBound,
    OsynSettings,
    checked_masses,
    clip_counts,
    osyn_closed,
    osyn_estimate,
    osyn_iterative,
    theorem_bound,
)
from amlb_ext.estimate.osyn.regions import (
    Batch,
    Regions,
    place_rows,
    tally_regions,
)
from amlb_ext.stats.bounded_loss import BoundedLoss, checked_losses
from amlb_ext.stats.error_estimate import ErrorEstimate

#: Share of 1 - level that goes to delta1: .01 of .05.
DELTA1 = 0.2
#: What the mean loss on generated rows assumes.
SYNTHETIC = "the generator is the truth: generated rows are distributed as real ones"


@dataclass(frozen=True)
class OsynChoices:
    """Settings of OSYN, chosen before seeing any bound.

    Attributes
    ----------
    g : int
        Generated rows to select; 0 for 50,000, or ten times the labelled rows if that is more.
    b : float
        Counts are clipped to g (1 ± b) / K.
    delta1, delta2 : float
        0 for a fifth and four fifths of ``1 - level``.
    a_hat : float, "paper" or None
    k : int or None
        Neighbours of the sphere; None for no sphere.
    """

    g: int = 0
    b: float = 1.0
    delta1: float = 0.0
    delta2: float = 0.0
    a_hat: float | Literal["paper"] | None = None
    k: int | None = None

    @classmethod
    def read(cls, words: Mapping[str, Any], level: float) -> OsynChoices:
        """Return settings from texts such as ``{"b": "2"}``.

        Raises
        ------
        ConfigError
            An unknown key, with the nearest valid one, or an invalid value.

        Examples
        --------
        >>> OsynChoices.read({"b": "2"}, 0.9)
        OsynChoices(g=0, b=2.0, delta1=0.02, delta2=0.08, a_hat=None, k=None)
        """
        known = {item.name for item in dataclasses.fields(cls)}
        values: dict[str, Any] = {}
        for key, value in words.items():
            if key not in known:
                raise ConfigError(
                    f"unknown setting {key!r} of OSYN", suggest_nearest(key, known)
                )
            # the range of a value is checked where it is used
            try:
                values[key] = _parse_setting(key, value)
            except ValueError:
                raise ConfigError(f"OSYN: {key} = {value!r}", "give a number") from None
        settings = cls(**values)
        # Rounded, so that 1 - 0.9 makes no 0.020000000000000004 of a default.
        default_delta1 = round(DELTA1 * (1 - level), 12)
        default_delta2 = round((1 - DELTA1) * (1 - level), 12)
        return dataclasses.replace(
            settings,
            delta1=settings.delta1 or default_delta1,
            delta2=settings.delta2 or default_delta2,
        )


@dataclass(frozen=True, kw_only=True)
class OsynRun:
    """The bounds of both forms, and the mean loss on generated rows.

    Attributes
    ----------
    choices : OsynChoices
    closed : OsynBound
    iterative : OsynBound or None
        None if the losses on generated rows are unknown.
    n : int
        Number of generated rows.
    mean, variance : float
        Of the loss on them; NaN if it is unknown.
    outside : int
        Number of generated rows in no region.
    curve : DataFrame
        ``b`` and ``bound`` of the closed form, at the deltas of the settings.
    """

    choices: OsynChoices
    closed: OsynBound
    iterative: OsynBound | None
    n: int
    mean: float
    variance: float
    outside: int
    curve: pd.DataFrame

    def rows(self) -> list[ErrorEstimate]:
        """Return an estimate for each form."""
        bounds = [] if self.iterative is None else [self.iterative]
        return [osyn_estimate(bound) for bound in (*bounds, self.closed)]

    def synthetic(self, level: float) -> ErrorEstimate | None:
        """Return the mean loss on generated rows, with an interval for its sampling error alone."""
        if not math.isfinite(self.mean):
            return None
        z = float(special.ndtri(0.5 + level / 2))
        half_width = z * math.sqrt(self.variance / self.n)
        return ErrorEstimate(
            name="synthetic",
            point=self.mean,
            low=max(0.0, self.mean - half_width),
            high=min(self.closed.C_h, self.mean + half_width),
            level=level,
            n=self.n,
            assumes=SYNTHETIC,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON values."""
        bounds: dict[str, Any] = {}
        for form, bound in {"closed": self.closed, "iterative": self.iterative}.items():
            bounds[form] = None
            if bound is not None:
                # one number for each labelled row would fill the page
                bounds[form] = {**dataclasses.asdict(bound)}
                del bounds[form]["weights"]
        return {
            "settings": dataclasses.asdict(self.choices),
            "generated_rows": self.n,
            "outside": self.outside,
            "bounds": bounds,
            "curve": self.curve.to_dict(orient="records"),
        }


def run_osyn(
    rows: Callable[[], Iterable[Batch]],
    centres: np.ndarray,
    losses: np.ndarray,
    loss: BoundedLoss,
    choices: OsynChoices,
    seed: int,
) -> OsynRun:
    """Run both forms of OSYN.

    Parameters
    ----------
    rows : callable
        Returns the same generated rows each time.
    centres : ndarray of shape (K, d)
        The labelled rows.
    losses : ndarray of shape (K,)
    loss : BoundedLoss
    choices : OsynChoices
    seed : int

    Raises
    ------
    ConfigError
        Settings out of range.
    DataError
        See :func:`~amlb_ext.estimate.osyn.regions.tally_regions`.
    """
    K = len(centres)
    regions = Regions(centres, choices.k)
    g = choices.g or max(50_000, 10 * K)
    settings = OsynSettings(
        g=g,
        b=choices.b,
        delta1=choices.delta1,
        delta2=choices.delta2,
        C_h=loss.bound,
        a_hat=choices.a_hat,
    )
    # The losses are added up while the rows pass by, which spares a pass over them.
    total = _LossTotal()
    generated = tally_regions(total.watch(rows()), regions, loss.bound)

    def new_stream() -> np.random.Generator:
        # Each form clips the same multinomial draw, so that the forms can be compared.
        return random_stream(seed, "osyn", "multinomial")

    closed = osyn_closed(losses, generated, settings, rng=new_stream())
    iterative = None
    if generated.loss_sums is not None:
        # For 0-1 loss the counts are enough, which spares a second pass over the rows.
        if generated.zero_one and loss.binary:
            placed = generated.rows()
        else:
            placed = place_rows(rows(), regions)
        iterative = osyn_iterative(
            placed, losses, masses=generated, settings=settings, rng=new_stream()
        )
    curve = sweep_settings(
        generated.masses,
        losses,
        new_stream(),
        # a smaller b leaves no whole number within the limits of the counts
        b=[b for b in B_GRID if b * g >= K],
        delta2=[choices.delta2],
        g=g,
        delta=choices.delta1 + choices.delta2,
        C_h=loss.bound,
    )
    return OsynRun(
        choices=choices,
        closed=closed,
        iterative=iterative,
        n=total.n,
        mean=total.mean,
        variance=total.variance,
        outside=generated.outside,
        curve=curve[["b", "bound"]],
    )


class _LossTotal:
    """Mean and variance of the losses of a stream, computed while it passes."""

    def __init__(self) -> None:
        self.n = 0
        self.sum = 0.0
        self.squares = 0.0
        self.has_losses = True

    def watch(self, rows: Iterable[Batch]) -> Iterator[Batch]:
        """Pass the batches on, and add up their losses."""
        for X, losses in rows:
            self.n += len(X)
            if losses is None:
                self.has_losses = False
            else:
                self.sum += float(losses.sum())
                self.squares += float(np.square(losses).sum())
            yield X, losses

    @property
    def mean(self) -> float:
        if not self.has_losses or self.n == 0:
            return math.nan
        return self.sum / self.n

    @property
    def variance(self) -> float:
        if self.n == 0:
            return math.nan
        # rounding may leave a constant loss with a variance below 0
        return max(0.0, self.squares / self.n - self.mean**2)


def _parse_setting(key: str, value: Any) -> Any:
    """Return a setting from its text."""
    text = str(value)
    if key in ("g", "k"):
        return None if text.lower() == "none" else int(value)
    if key == "a_hat":
        if text == "paper":
            return text
        if text in ("None", "none"):
            return None
    return float(value)


#: b as in the seed paper's grid, section 5.4.3.
B_GRID = tuple(np.round(np.arange(0, 7.05, 0.1), 1).tolist())


def sweep_settings(
    p: np.ndarray,
    loss_s: np.ndarray,
    rng: np.random.Generator,
    b: Sequence[float] = B_GRID,
    delta2: Sequence[float] | None = None,
    g: int = 50_000,
    delta: float = 0.1,
    C_h: float = 1.0,
    a_hat: float | None = None,
) -> pd.DataFrame:
    """Return the bound of the closed form for each (b, delta2), to look at only.

    One multinomial draw is clipped with every b, so that curves over b are smooth.

    Parameters
    ----------
    p : ndarray of shape (K,)
        Region masses, or counts.
    loss_s : ndarray of shape (K,)
        Losses of the labelled rows.
    rng : Generator
    b : sequence of float
    delta2 : sequence of float, optional
        Values below ``delta``; by default 199 at equal distances.
    g : int
    delta : float
        delta1 + delta2.
    C_h, a_hat : float
        Bounds of the loss and of the mean losses of the regions; a_hat is C_h by default.

    Returns
    -------
    DataFrame
        ``b``, ``delta1``, ``delta2``, ``bound``, ``B``, ``g_star``, ``assumption_met``; one row
        for each setting, in that order.

    Raises
    ------
    ConfigError
        A delta2 outside 0..delta, and those of
        :func:`~amlb_ext.estimate.osyn.bound.clip_counts`.
    DataError
        Losses and masses of different lengths, or losses outside 0..C_h.

    Examples
    --------
    >>> seen, wrong = np.ones(100), np.arange(100) % 5 == 0
    >>> sweep = sweep_settings(seen, wrong, np.random.default_rng(0), b=[0, 1], delta2=[0.02, 0.05])
    >>> sweep[["b", "delta2", "B"]].round(3).values.tolist()
    [[0.0, 0.02, 0.14], [0.0, 0.05, 0.122], [1.0, 0.02, 0.14], [1.0, 0.05, 0.123]]
    """
    if delta2 is None:
        deltas2 = np.arange(1, 200) / 200 * delta
    else:
        deltas2 = np.asarray(delta2, dtype=float)
    if not 0 < delta < 1 or ((deltas2 <= 0) | (deltas2 >= delta)).any():
        raise ConfigError(
            f"delta2 is not within 0..{delta}", "choose delta2 above 0, below delta"
        )
    p = checked_masses(p)
    loss_s = checked_losses(loss_s, C_h)
    if len(p) != len(loss_s):
        raise DataError(
            f"{len(p)} masses for {len(loss_s)} losses", "give one of each a region"
        )
    a_hat = C_h if a_hat is None else a_hat
    drawn = rng.multinomial(g, p)
    tables = []
    for width in b:
        g_star = clip_counts(drawn, g, width)
        total = int(g_star.sum())
        parts = theorem_bound(
            float(g_star @ loss_s) / total,
            g_star / total,
            a_hat,
            g=total,
            delta1=delta - deltas2,
            delta2=deltas2,
            C_h=C_h,
        )
        columns = {
            "b": float(width),
            "delta1": delta - deltas2,
            "delta2": deltas2,
            "bound": parts.bound,
            "B": parts.B,
            "g_star": total,
            "assumption_met": parts.met,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)
