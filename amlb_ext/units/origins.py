"""Origins: calendar cutoffs that are the same for all series, H steps apart.

A *window* is a series at an origin: its past up to the cutoff, and the H values behind it. Test
origins are the latest; learning origins lie before them, so that what is learnt from their windows
has *futures* that end at or before the cutoff of every test origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.amlb.series_rules import has_scale
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.windows import LeftOut, Origins
from amlb_ext.sources.panel import Panel
from amlb_ext.stats.window_losses import root_mean_square_scale, seasonal_scale

#: The latest cutoff is taken that keeps this share of the most series that any cutoff keeps.
_KEPT_SHARE = 0.9
#: Why a series has no window though it is long enough.
NO_SCALE = "the past repeats itself from season to season: no scale"


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of one origin.

    Attributes
    ----------
    cutoff : int
        Calendar position.
    items : ndarray of shape (n,), int
        Positions of their series in the panel.
    scale, rms_scale : ndarray of shape (n,)
        s of each window, positive, and its root mean square scale.
    future : ndarray of shape (n, H)
    left_out : tuple of LeftOut
        Series without a window here.
    """

    cutoff: int
    items: np.ndarray
    scale: np.ndarray
    rms_scale: np.ndarray
    future: np.ndarray
    left_out: tuple[LeftOut, ...]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def cutoffs(self) -> np.ndarray:
        """The cutoff of each window, ``(n,)``."""
        return np.full(len(self), self.cutoff)


def split_by_origin(values: np.ndarray, origins: Sequence[Windows]) -> list[np.ndarray]:
    """Return the values of all windows, those of each origin for themselves."""
    ends = np.cumsum([len(windows) for windows in origins])
    return np.split(values, ends[:-1]) if len(origins) else []


def plan_origins(
    panel: Panel,
    *,
    test: int = 1,
    learning: int = 3,
    step: int | None = None,
    cutoff: str | None = None,
    first_cutoff: str | None = None,
) -> Origins:
    """Choose the origins of a panel.

    Parameters
    ----------
    panel : Panel
    test : int
        Test origins.
    learning : int
        Origins before them, H apart, on which F's failures are learnt.
    step : int, optional
        Steps between two test origins; H when omitted.
    cutoff : str, optional
        Time of the last test origin, the last value that forecasters see. When omitted, the latest
        at which at least 90 % as many series have a window as at any other.
    first_cutoff : str, optional
        Time of the first test origin, in place of that of the last.

    Raises
    ------
    ConfigError
        A number of origins below its bound, or a cutoff that is no time of the calendar.
    DataError
        No cutoff leaves a window at every origin.
    """
    if test < 1 or learning < 0:
        raise ConfigError(
            f"{test} test origins and {learning} learning origins",
            "give at least 1 test origin, and 0 or more learning origins",
        )
    horizon = panel.horizon
    step = horizon if step is None else step
    if step < 1:
        raise ConfigError(f"origins {step} steps apart", "give 1 step or more")
    reach = (test - 1) * step + learning * horizon
    if cutoff:
        last = _named_cutoff(panel, cutoff)
    elif first_cutoff:
        last = _named_cutoff(panel, first_cutoff, (test - 1) * step)
    else:
        last = _latest_cutoff(panel, reach)
    tests = tuple(last - k * step for k in reversed(range(test)))
    learnt = tuple(tests[0] - k * horizon for k in reversed(range(1, learning + 1)))
    if tests[0] < 0:
        raise DataError(
            f"{test} test origins {step} steps apart reach before the first time of the table",
            "ask for fewer test origins",
        )
    return Origins(test=tests, learning=tuple(c for c in learnt if c >= 0), step=step)


def _named_cutoff(panel: Panel, cutoff: str, steps_on: int = 0) -> int:
    """Return the position some steps behind a time, which must leave a horizon."""
    try:
        position = int(panel.calendar.get_indexer([pd.Timestamp(cutoff)])[0])
    except ValueError:  # so are times that a calendar cannot hold
        raise ConfigError(
            f"the cutoff {cutoff!r} is no time", "write 2024-01-31"
        ) from None
    behind = panel.horizon + steps_on
    last = len(panel.calendar) - 1 - behind
    if position < 0 or position > last:
        raise ConfigError(
            f"the cutoff {cutoff} is not a time of the table that has {behind} others "
            "behind it",
            f"give one of frequency {panel.frequency} up to "
            f"{panel.time_text(max(last, 0))}",
        )
    return position + steps_on


def _latest_cutoff(panel: Panel, reach: int) -> int:
    """Return the latest cutoff that keeps nearly the most series at the last origin."""
    horizon, season = panel.horizon, panel.season
    if len(panel) == 0:
        first_out = panel.left_out[0]
        raise DataError(
            f"no series is left; {first_out.series!r} is left out: {first_out.reason}",
            "give whole columns; --gaps zero, last or trim mends those of the target",
        )
    first = panel.starts + season  # m + 1 values are seen
    last = panel.ends - horizon
    has_window = first <= last
    if not has_window.any():
        lengths = panel.ends - panel.starts + 1
        longest = int(np.argmax(lengths))
        raise DataError(
            f"a window needs season + 1 + horizon = {season} + 1 + {horizon} values, the longest "
            f"series {panel.names[longest]!r} has {lengths[longest]}",
            "give a shorter --horizon or --season, or longer series",
        )
    size = len(panel.calendar)
    # series that begin to have windows, less those behind their last
    began = np.bincount(first[has_window], minlength=size)
    ended = np.bincount(last[has_window] + 1, minlength=size)
    counts = np.cumsum(began - ended[:size])
    enough = np.flatnonzero(counts >= _KEPT_SHARE * counts.max())
    return int(enough[-1])


def cut_windows(panel: Panel, cutoff: int) -> Windows:
    """Return the windows at one origin, and why other series have none.

    A series needs more values up to the cutoff than a season has, not all of them alike a season
    apart, and H values behind it. So AMLB's scale is that of the formula, not its stand-in 1.0.
    """
    items, scales, rms_scales, futures = [], [], [], []
    left_out = []
    horizon, season = panel.horizon, panel.season
    ends = panel.ends
    for item, name in enumerate(panel.names):
        seen = cutoff - panel.starts[item] + 1
        behind = ends[item] - cutoff
        if behind < horizon:
            reason = f"ends before the horizon of {horizon} steps does"
        elif seen <= season:
            reason = (
                f"{max(seen, 0)} values up to the cutoff, season {season}: no scale"
            )
        else:
            past = panel.past(item, cutoff)
            scale = seasonal_scale(past, season)
            if has_scale(scale, past):
                items.append(item)
                scales.append(scale)
                rms_scales.append(root_mean_square_scale(past, season))
                futures.append(panel.future(item, cutoff))
                continue
            reason = NO_SCALE
        left_out.append(LeftOut(series=name, reason=reason))
    return Windows(
        cutoff=cutoff,
        items=np.array(items, dtype=int),
        scale=np.array(scales),
        rms_scale=np.array(rms_scales),
        future=np.array(futures).reshape(-1, horizon),
        left_out=tuple(left_out),
    )
