r"""Series as rows of a plain table: lags of a window, and the value h steps behind it.

A tabular system then learns one step of a forecast. Each window is put on its own scale, so that a
series of millions and one of units teach the same: with c the mean of the last season of the past
and s its seasonal scale (:func:`~amlb_ext.stats.window_losses.seasonal_scale`),

.. math:: x_k = (y_{t+1-k} - c) / s, \quad k = 1..L, \qquad z = (y_{t+h} - c) / s.

Only values up to t enter c, s and the lags. Rows are to be split forward in time, with a gap of
L + h steps: so no value that a training row was made of, its target included, is a lag of a test
row.

Notation
--------
y_1 .. y_n : one series; t : cutoff of a window; L : lags; h : steps ahead; m : season
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_count
from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.sources.panel import Panel

#: Columns beside the lags: who, when, where in the season, the value a season before the target.
SERIES, CUTOFF = "series", "cutoff"
PLACE, LAST_SEASON = "place_in_season", "season_before"
#: More rows than this are thinned, unless the user names a step.
MANY_ROWS = 20_000
#: Fewer times than this cannot be split forward in time.
FEWEST_CUTOFFS = 10


@dataclass(frozen=True, kw_only=True)
class SeriesRows:
    """Windows of series as rows.

    Attributes
    ----------
    frame : DataFrame
        ``series``, ``cutoff`` (calendar position of t), ``place_in_season`` of the target where
        there is a season, ``season_before`` where it reaches back beyond the lags, ``lag_1`` (the
        last value) to ``lag_L``, and the target.
    target : str
    gap : int
        L + h, in steps of ``cutoff``.
    step : int
        Steps between two windows of a series.
    n_constant, n_short : int
        Windows without a scale, and series without a window; both are left out.
    """

    frame: pd.DataFrame
    target: str
    gap: int
    step: int
    n_constant: int
    n_short: int

    @property
    def notes(self) -> list[str]:
        """What a user should know of the rows, one sentence each."""
        n_series = self.frame[SERIES].nunique()
        notes = [
            f"{len(self.frame):,} windows of {n_series} series are rows, "
            f"{format_count(self.step, 'step')} apart; values are in scales of their window"
        ]
        if self.n_constant:
            notes.append(
                f"{self.n_constant:,} windows were left out: their past repeats itself from season "
                "to season, so it has no scale"
            )
        if self.n_short:
            notes.append(
                f"{self.n_short:,} series were left out: too short for one window"
            )
        return notes


def series_to_rows(panel: Panel, lags: int, step: int | None = None) -> SeriesRows:
    """Make rows of all windows of a panel.

    Parameters
    ----------
    panel : Panel
        Its horizon is h.
    lags : int
        L.
    step : int, optional
        Steps between two cutoffs, the same for all series; when omitted as few as leave at most
        20,000 rows.

    Returns
    -------
    SeriesRows

    Raises
    ------
    ConfigError
        Fewer than one lag or step.
    DataError
        No series is long enough, or they have too few cutoffs.

    Examples
    --------
    >>> from amlb_ext.sources.panel import PanelRoles, read_panel
    >>> times = pd.date_range("2020-01-01", periods=40, freq="D")
    >>> table = pd.DataFrame({"id": "a", "time": times, "y": np.arange(40.0)})
    >>> roles = PanelRoles(series="id", time="time", target="y", horizon=2, season=1)
    >>> rows = series_to_rows(read_panel(table, roles), lags=3)
    >>> rows.frame.iloc[0].drop("series").to_dict(), rows.gap
    ({'cutoff': 2, 'lag_1': 0.0, 'lag_2': -1.0, 'lag_3': -2.0, 'ahead_2': \
2.0}, 5)
    """
    if lags < 1:
        raise ConfigError(f"--as-rows {lags}", "give 1 lag or more")
    if step is not None and step < 1:
        raise ConfigError(f"--step {step}", "give 1 step or more")
    first = max(lags, panel.season + 1) - 1
    lengths = np.array([len(values) for values in panel.values], dtype=int)
    n_windows = np.maximum(lengths - panel.horizon - first, 0)
    if not n_windows.any():
        needed = first + 1 + panel.horizon
        raise DataError(
            f"the longest series has {lengths.max(initial=0)} values, and a window of {lags} lags, "
            f"season {panel.season} and {panel.horizon} steps ahead needs {needed}",
            "give fewer lags, a smaller --horizon or --season, or longer series",
        )
    if step is None:
        step = max(1, -(-int(n_windows.sum()) // MANY_ROWS))
    blocks = []
    n_constant = 0
    for item in np.flatnonzero(n_windows):
        block = _rows_of_series(panel, int(item), lags, first=first, step=step)
        has_scale = block.pop("scale") > 0
        n_constant += int((~has_scale).sum())
        blocks.append(block[has_scale])
    frame = pd.concat(blocks, ignore_index=True)
    n_cutoffs = frame[CUTOFF].nunique()
    if n_cutoffs < FEWEST_CUTOFFS:
        raise DataError(
            f"the windows have {n_cutoffs} different cutoffs, and {FEWEST_CUTOFFS} are needed to "
            "split them in time",
            "give a smaller --step, fewer lags, or longer series",
        )
    return SeriesRows(
        frame=frame,
        target=f"ahead_{panel.horizon}",
        gap=lags + panel.horizon,
        step=step,
        n_constant=n_constant,
        n_short=int((n_windows == 0).sum()),
    )


def _rows_of_series(
    panel: Panel, item: int, lags: int, *, first: int, step: int
) -> pd.DataFrame:
    """Return the windows of one series, with their scale."""
    y = panel.values[item]
    season, horizon = panel.season, panel.horizon
    start = int(panel.starts[item])
    ends = np.arange(first, len(y) - horizon)
    # cutoffs of all series lie on the same times of the calendar
    ends = ends[(ends + start) % step == 0]
    # sums up to each value give the means of all pasts at once
    sums = np.r_[0.0, np.cumsum(y)]
    centre = (sums[ends + 1] - sums[ends + 1 - season]) / season
    differences = np.abs(y[season:] - y[:-season])
    scale = np.cumsum(differences)[ends - season] / (ends - season + 1)
    columns = {
        SERIES: np.full(len(ends), panel.names[item], dtype=object),
        CUTOFF: ends + start,
    }
    divisor = np.where(scale > 0, scale, 1.0)
    if season > 1:
        columns[PLACE] = (ends + start + horizon) % season
    # the same season as the target's, the last one that has been seen
    before = ends + horizon - season * -(-horizon // season)
    if season > lags:
        columns[LAST_SEASON] = (y[before] - centre) / divisor
    for lag in range(1, lags + 1):
        columns[f"lag_{lag}"] = (y[ends + 1 - lag] - centre) / divisor
    columns[f"ahead_{horizon}"] = (y[ends + horizon] - centre) / divisor
    return pd.DataFrame({**columns, "scale": scale})
