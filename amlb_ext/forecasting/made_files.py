"""Made windows in a suite: their AMLB tasks, their tables, and where each window comes from.

A made window is an item of a table as AMLB reads it, ``w00000`` first. What it was made of, and
how, stands in ``hardsynth/made.parquet``, a row for each: AMLB would hand further columns of a
table to frameworks.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file
from amlb_ext.core.parquet import read_frame, write_parquet
from amlb_ext.forecasting.made_windows import GA, MadePart, MadeWindows
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.panel import Panel
from amlb_ext.forecasting.suite_files import (
    ITEM,
    TARGET,
    TIME,
    ForecastTable,
    item_id,
)
from amlb_ext.forecasting.suite_manifest import ForecastTask
from amlb_ext.suite.layout import Layout, amlb_name

#: Where the provenance of made windows stands, below the folder that AMLB does not look at.
PROVENANCE = "made.parquet"
#: Fewer windows make no task.
FEWEST_MADE = 2


def plan_made_tasks(made: MadeWindows, table: str) -> list[ForecastTask]:
    """Return the AMLB task of each part; ``items`` are the series that windows were made of."""
    tasks = []
    for part in made.parts:
        if len(part) < FEWEST_MADE:
            continue
        name = amlb_name(table, part.kind)
        tasks.append(
            ForecastTask(
                name=name,
                kind=part.kind,
                origin=0,
                path=f"data/{name}/{name}.csv",
                items=tuple(int(item) for item in part.sources),
            )
        )
    return tasks


def describe_made(made: MadeWindows, panel: Panel) -> dict[str, Any]:
    """Return what a manifest says of made windows."""
    entry: dict[str, Any] = {"notes": list(made.notes)}
    if made.windows is None:
        return entry
    cutoff = made.windows.cutoff
    entry["cutoff"] = cutoff
    entry["last_seen"] = panel.time_text(cutoff)
    entry["last_used"] = panel.time_text(cutoff + panel.horizon)
    entry["source_windows"] = len(made.windows)
    entry["parts"] = [
        {
            "kind": part.kind,
            "windows": len(part),
            "asked": part.asked,
            "dropped": part.dropped,
        }
        for part in made.parts
    ]
    return entry


def write_made(
    layout: Layout, table: ForecastTable, made: MadeWindows, panel: Panel
) -> dict[str, str]:
    """Write the tables of made windows and their provenance; return the checksums by path."""
    tasks = [task for task in table.tasks if task.kind == GA]
    if not tasks:
        return {}
    assert made.windows is not None  # a part has sources
    files = {}
    parts = {part.kind: part for part in made.parts}
    for task in tasks:
        items = made_table(parts[task.kind], panel, made.windows.cutoff)
        write = partial(items.to_csv, index=False, lineterminator="\n")
        files[task.path] = write_file(layout.at(task.path), write)
    rows = []
    for task in tasks:
        part = parts[task.kind]
        rows.append(_provenance(task, part, panel, made.windows.cutoff))
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
        future=last[TARGET].to_numpy(dtype=float).reshape(-1, horizon),
        left_out=(),
    )
