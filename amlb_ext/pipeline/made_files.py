"""Made windows in a suite: their AMLB tasks, their tables, where each comes from, and if it does.

A made window is an item of a table as AMLB reads it, ``w00000`` first. What it was made of, and
how, stands in ``hardsynth/made.parquet``, a row for each: AMLB would hand further columns of a
table to frameworks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file
from amlb_ext.core.parquet import read_frame, write_parquet
from amlb_ext.making.made_windows import MadePart, MadeWindows
from amlb_ext.making.window_judge import window_scale
from amlb_ext.making.window_moves import WindowMove, move_window
from amlb_ext.sources.panel import Panel
from amlb_ext.stats.window_losses import seasonal_scale
from amlb_ext.suite.layout import Layout, amlb_name
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.series_manifest import (
    GA,
    ITEM,
    PROVENANCE,
    SERIES,
    TARGET,
    TIME,
    ForecastTask,
    PanelEntry,
    SeriesManifest,
)
from amlb_ext.units.origins import Windows
from amlb_ext.units.stored_windows import ForecastSuite, ForecastTable, item_id

#: Fewer windows make no task.
FEWEST_MADE = 2
#: Two values that differ by more than this share are not one.
_TOLERANCE = 1e-9


def plan_made_tasks(made: MadeWindows, table: str) -> list[ForecastTask]:
    """Return the AMLB task of each part; ``items`` are the series that windows were made of."""
    return [
        ForecastTask.of(amlb_name(table, part.kind), part.kind, part.sources)
        for part in made.parts
        if len(part) >= FEWEST_MADE
    ]


def describe_made(made: MadeWindows, panel: Panel) -> dict[str, Any]:
    """Return what a manifest says of made windows."""
    entry: dict[str, Any] = {"notes": list(made.notes)}
    if made.windows is None:
        return entry
    cutoff = made.windows.cutoff
    parts = [
        {
            "kind": part.kind,
            "windows": len(part),
            "asked": part.asked,
            "dropped": part.dropped,
        }
        for part in made.parts
    ]
    return entry | {
        "cutoff": cutoff,
        "last_seen": panel.time_text(cutoff),
        "last_used": panel.time_text(cutoff + panel.horizon),
        "source_windows": len(made.windows),
        "parts": parts,
    }


def write_made(
    layout: Layout, table: ForecastTable, made: MadeWindows, panel: Panel
) -> dict[str, str]:
    """Write the tables of made windows and their provenance; return the checksums by path."""
    parts = {part.kind: part for part in made.parts}
    files = {}
    rows = []
    for task in table.tasks:
        if task.kind == GA:
            assert made.windows is not None  # a part has sources
            part, cutoff = parts[task.kind], made.windows.cutoff
            items = made_table(part, panel, cutoff)
            write = partial(items.to_csv, index=False, lineterminator="\n")
            files[task.path] = write_file(layout.at(task.path), write)
            rows.append(_provenance(task, part, panel, cutoff))
    if rows:
        path = table.folder / PROVENANCE
        files[layout.relative(path)] = write_parquet(pa.concat_tables(rows), path)
    return files


def made_table(part: MadePart, panel: Panel, cutoff: int) -> pd.DataFrame:
    """Return made windows as AMLB reads them: each at the times of its source."""
    parts = []
    for number, past in enumerate(part.pasts):
        values = np.r_[past, part.future[number]]
        last = cutoff + panel.horizon
        times = panel.calendar[last + 1 - len(values) : last + 1]
        columns = {ITEM: item_id(number), TIME: times, TARGET: values}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _provenance(
    task: ForecastTask, part: MadePart, panel: Panel, cutoff: int
) -> pa.Table:
    n = len(part)
    genes = [move.genes.tolist() for move in part.moves]
    keys = [move.noise_key for move in part.moves]
    return pa.table(
        {
            "task": [task.name] * n,
            ITEM: [item_id(number) for number in range(n)],
            "kind": [part.kind] * n,
            "series": part.sources,
            "series_name": [panel.names[item] for item in part.sources],
            "cutoff": np.full(n, cutoff),
            "last_seen": [panel.time_text(cutoff)] * n,
            "length": [len(past) for past in part.pasts],
            "scale": part.judged.scale,
            "hardness": part.judged.hardness,
            "f_mase": part.judged.mase,
            "t_mase": part.judged.teacher_mase,
            "genes": pa.array(genes, type=pa.list_(pa.float64())),
            "noise_key": pa.array(keys, type=pa.int64()),
        }
    )


def read_provenance(table: ForecastTable) -> pd.DataFrame:
    """Return a row for each made window of a table that has such windows.

    Raises
    ------
    SuiteError
        The file is missing or damaged.
    """
    try:
        return read_frame(table.folder / PROVENANCE)
    except (OSError, ValueError) as error:
        raise SuiteError(
            f"cannot read where the made windows of {table.name} come from: {error}",
            "hardsynth verify says what is missing",
        ) from None


def read_made_windows(
    layout: Layout, task: ForecastTask, rows: pd.DataFrame, horizon: int
) -> Windows:
    """Return the windows of a made task in AMLB's order, with their scale and future.

    Parameters
    ----------
    layout : Layout
    task : ForecastTask
    rows : DataFrame
        The task's part of :func:`read_provenance`.
    horizon : int
    """
    table = pd.read_csv(layout.at(task.path))
    last = table.groupby(ITEM, sort=True).tail(horizon)
    return Windows(
        cutoff=int(rows["cutoff"].iloc[0]),
        items=rows["series"].to_numpy(dtype=int),
        scale=rows["scale"].to_numpy(dtype=float),
        # not kept: made windows are compared by MASE
        rms_scale=np.full(len(rows), np.nan),
        future=last[TARGET].to_numpy(dtype=float).reshape(-1, horizon),
        left_out=(),
    )


# what verify holds them to


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
            problems = chain(
                _id_faults(task, rows, items),
                _source_faults(table, task, rows),
                _window_faults(table, rows, items, series),
            )
            # what follows the first would only repeat it
            for problem in islice(problems, 1):
                yield f"task {task.name}: {problem}"


def _id_faults(
    task: ForecastTask, rows: pd.DataFrame, items: pd.DataFrame
) -> Iterator[str]:
    wanted = [item_id(number) for number in range(len(task.items))]
    if list(rows[ITEM]) != wanted:
        yield f"its provenance has {len(rows)} windows, the manifest {len(wanted)}"
    if list(items[ITEM].unique()) != wanted:
        yield (
            f"its table has {items[ITEM].nunique()} items, and {len(wanted)} were made; or their "
            "ids are others"
        )


def _source_faults(
    table: ForecastTable, task: ForecastTask, rows: pd.DataFrame
) -> Iterator[str]:
    """Check that sources are those of the manifest, and end before any test begins."""
    if not np.array_equal(rows["series"].to_numpy(), np.array(task.items)):
        yield "its windows come from other series than the manifest says"
    if rows["cutoff"].nunique() != 1:
        yield "its windows have several cutoffs, so one's past may hold another's future"
    last_used = int(rows["cutoff"].iloc[0]) + table.horizon
    first_test = min(table.entry.origins.test)
    if last_used > first_test:
        yield (
            f"its windows use values {last_used - first_test} steps behind the cutoff of the "
            "first test origin, which no made window may"
        )


def _window_faults(
    table: ForecastTable, rows: pd.DataFrame, items: pd.DataFrame, series: pd.DataFrame
) -> Iterator[str]:
    """Check each window's times, length and scale, and that moved ones come out again."""
    panel = table.entry.panel
    horizon, season, calendar = panel.horizon, panel.season, table.entry.calendar
    groups = dict(list(items.groupby(ITEM, sort=True)))
    for row in rows.itertuples():
        window = groups[getattr(row, ITEM)]
        values = window[TARGET].to_numpy(dtype=float)
        named = f"window {getattr(row, ITEM)!r} of series {row.series_name!r}"
        if len(values) != row.length + horizon:
            yield (
                f"{named} has {len(values)} values, and {row.length} + {horizon} were made"
            )
        last = row.cutoff + horizon
        times = calendar[last + 1 - len(values) : last + 1]
        if not np.array_equal(pd.DatetimeIndex(window[TIME]), times):
            yield f"{named} does not lie at the {len(values)} times up to {times[-1]}"
        scale = window_scale(values[:-horizon], season)
        if not np.isclose(scale, row.scale, rtol=1e-6):
            yield f"{named} has the scale {scale:.6g}, and {row.scale:.6g} was noted"
        if not _comes_again(row, values, series, panel):
            yield f"{named} is not what its move makes of the series up to {times[-1]}"


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
