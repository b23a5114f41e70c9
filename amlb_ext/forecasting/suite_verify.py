"""Check the made windows of a suite of forecasting tasks: each is what was noted of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from amlb_ext.core.parquet import read_frame
from amlb_ext.forecasting.losses import seasonal_scale
from amlb_ext.forecasting.made_files import read_provenance
from amlb_ext.forecasting.suite_files import ForecastSuite, ForecastTable, item_id
from amlb_ext.forecasting.window_judge import window_scale
from amlb_ext.forecasting.window_moves import WindowMove, move_window
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.series_manifest import (
    GA,
    ITEM,
    SERIES,
    TARGET,
    TIME,
    ForecastTask,
    PanelEntry,
    SeriesManifest,
)

#: Two values that differ by more than this share are not one.
_TOLERANCE = 1e-9


def made_window_faults(suite: Suite) -> Iterator[str]:
    """Yield what is wrong with the made windows of a suite, the first of each kind by task.

    Parameters
    ----------
    suite : Suite
        Of any kind; one that holds no series has no such windows.

    Raises
    ------
    SuiteError
        The provenance cannot be read.
    """
    if not isinstance(suite.manifest, SeriesManifest):
        return
    for table in ForecastSuite(suite.layout, suite.manifest).tables:
        tasks = [task for task in table.tasks if task.kind == GA]
        if not tasks:
            continue
        provenance = read_provenance(table)
        series = read_frame(table.folder / SERIES)
        for task in tasks:
            rows = provenance[provenance["task"] == task.name].reset_index(drop=True)
            items = pd.read_csv(suite.layout.at(task.path))
            problems = _check_ids(task, rows, items)
            problems = problems or _check_sources(table, task, rows)
            problems = problems or _check_windows(table, rows, items, series)
            for problem in problems:
                yield f"task {task.name}: {problem}"


def _check_ids(
    task: ForecastTask, rows: pd.DataFrame, items: pd.DataFrame
) -> list[str]:
    wanted = [item_id(number) for number in range(len(task.items))]
    if list(rows[ITEM]) != wanted:
        return [f"its provenance has {len(rows)} windows, the manifest {len(wanted)}"]
    if list(items[ITEM].unique()) != wanted:
        return [
            f"its table has {items[ITEM].nunique()} items, and {len(wanted)} were made; or their "
            "ids are others"
        ]
    return []


def _check_sources(
    table: ForecastTable, task: ForecastTask, rows: pd.DataFrame
) -> list[str]:
    """Check that sources are those of the manifest, and end before any test begins."""
    if not np.array_equal(rows["series"].to_numpy(), np.array(task.items)):
        return [
            "its windows come from other series than the manifest says",
        ]
    if rows["cutoff"].nunique() != 1:
        return [
            "its windows have several cutoffs, so one's past may hold another's future"
        ]
    last_used = int(rows["cutoff"].iloc[0]) + table.horizon
    first_test = min(table.entry.origins.test)
    if last_used > first_test:
        return [
            f"its windows use values {last_used - first_test} steps behind the cutoff of the "
            "first test origin, which no made window may"
        ]
    return []


def _check_windows(
    table: ForecastTable, rows: pd.DataFrame, items: pd.DataFrame, series: pd.DataFrame
) -> list[str]:
    """Check each window's times, length and scale, and that moved ones come out again."""
    panel = table.entry.panel
    horizon, season, calendar = panel.horizon, panel.season, table.entry.calendar
    groups = dict(list(items.groupby(ITEM, sort=True)))
    for row in rows.itertuples():
        window = groups[getattr(row, ITEM)]
        values = window[TARGET].to_numpy(dtype=float)
        named = f"window {getattr(row, ITEM)!r} of series {row.series_name!r}"
        if len(values) != row.length + horizon:
            return [
                f"{named} has {len(values)} values, and {row.length} + {horizon} were made"
            ]
        last = row.cutoff + horizon
        times = calendar[last + 1 - len(values) : last + 1]
        if not np.array_equal(pd.DatetimeIndex(window[TIME]), times):
            return [
                f"{named} does not lie at the {len(values)} times up to {times[-1]}"
            ]
        scale = window_scale(values[:-horizon], season)
        if not np.isclose(scale, row.scale, rtol=1e-6):
            return [f"{named} has the scale {scale:.6g}, and {row.scale:.6g} was noted"]
        if not _comes_again(row, values, series, panel):
            return [
                f"{named} is not what its move makes of the series up to {times[-1]}"
            ]
    return []


def _comes_again(
    row: object, values: np.ndarray, series: pd.DataFrame, panel: PanelEntry
) -> bool:
    """Whether a moved window is its source, cut behind its horizon and moved again."""
    horizon, season = panel.horizon, panel.season
    entry = series.iloc[row.series]  # type: ignore[attr-defined]
    seen = int(row.cutoff - entry["start"] + 1)  # type: ignore[attr-defined]
    # nothing behind the source's own horizon is there to be used
    source = np.asarray(entry["values"], dtype=float)[: seen + horizon]
    past, future = source[:seen], source[seen:]
    move = WindowMove(
        genes=np.asarray(row.genes),  # type: ignore[attr-defined]
        noise_key=int(row.noise_key),  # type: ignore[attr-defined]
    )
    again = move_window(
        past, future, move, season=season, scale=seasonal_scale(past, season)
    )
    both = np.concatenate(again)
    size = np.abs(both).max()
    return bool(np.abs(both - values).max() <= _TOLERANCE * max(size, 1.0))
