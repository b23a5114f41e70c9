"""Write a suite of forecasting tasks that AMLB v2.1.7 runs unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.core.errors import ConfigError, SuiteError
from amlb_ext.core.files import write_file, write_text
from amlb_ext.core.locks import lock_folder
from amlb_ext.core.parquet import ROWS_AT_ONCE, list_array, write_parquet_parts
from amlb_ext.core.rng import random_stream
from amlb_ext.core.version import __version__
from amlb_ext.hardening.weights import draw_region
from amlb_ext.making.made_windows import MadeWindows
from amlb_ext.pipeline.made_files import describe_made, plan_made_tasks, write_made
from amlb_ext.sources.panel import Panel
from amlb_ext.suite.layout import Layout, amlb_name, is_fresh, safe_names
from amlb_ext.suite.manifest import held_in
from amlb_ext.suite.repeatable import write_with_order
from amlb_ext.suite.series_manifest import (
    FEV_FOLDER,
    GA,
    ITEM,
    MAIN_KIND,
    SERIES,
    TARGET,
    TIME,
    WINDOWS,
    ForecastTask,
    PanelEntry,
    SeriesManifest,
    TableEntry,
)
from amlb_ext.suite.shared_files import write_shared_files
from amlb_ext.suite.twin import Original, pair_of_series
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.rolling import RolledForecasts
from amlb_ext.units.stored_windows import ForecastSuite, item_id
from amlb_ext.validity.certificate import Certificate

#: Frameworks that every suite has, by name, with their method.
FRAMEWORKS = {
    "HardsynthForecast": "theta",
    "HardsynthSeasonalNaive": "seasonal_naive",
    "HardsynthDrift": "drift",
    "HardsynthETS": "ets",
}
#: AutoGluon with models that fit on the series alone. Its presets download pretrained weights, and
#: a framework's set-up is all that a machine without a network may have.
AUTOGLUON = {
    "extends": "AutoGluon",
    "description": "AutoGluon-TimeSeries without pretrained models: runs without a network",
    "params": {
        "hyperparameters": {
            "SeasonalNaive": {},
            "Theta": {},
            "ETS": {},
            "RecursiveTabular": {},
        }
    },
}
#: Fewer series make no task.
FEWEST_ITEMS = 2
#: Fewer series make no task of the region.
FEWEST_REGION = 10
#: Series of a long table that are in memory as one.
_SERIES_AT_ONCE = 200


@dataclass(frozen=True, kw_only=True)
class SuitePart:
    """A table of series as it is written.

    Attributes
    ----------
    task : str
        What its AMLB tasks are called; any text.
    failing : FailingWindows
    twins : sequence of RolledForecasts
        F's null twins, at the test origins.
    about : mapping
        Source and settings, for the manifest.
    made : MadeWindows
    certificates : mapping of str to Certificate
        By the kind of task that each speaks of.
    notes : sequence of str
        What of a table's definition is not used.
    """

    task: str
    failing: FailingWindows
    twins: Sequence[RolledForecasts]
    about: Mapping[str, Any]
    made: MadeWindows = field(default_factory=MadeWindows)
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    notes: Sequence[str] = ()


def write_suite(
    out: Path,
    parts: Sequence[SuitePart],
    *,
    name: str,
    seed: int,
    force: bool = False,
    original: Original | None = None,
    order: Mapping[str, Any] | None = None,
) -> ForecastSuite:
    """Write the suite; the manifest last, so that an interrupted one is no suite.

    Parameters
    ----------
    out : Path
    parts : sequence of SuitePart
        One or several tables.
    name : str
        Of the benchmark definition.
    seed : int
    force : bool
        Replace a suite of forecasting tasks.
    original : Original, optional
        The benchmark that the suite is the hard twin of, its entries by the parts' tasks.
    order : mapping, optional
        What was asked for, for a repair.

    Returns
    -------
    ForecastSuite

    Raises
    ------
    SuiteError
        The folder holds something else, or a suite and ``force`` is not given; or the disk cannot
        be written.
    """
    layout = Layout(out)
    manifest = _manifest(parts, name=name, seed=seed, original=original)
    manifest = replace(manifest, order=dict(order or {}))
    suite = ForecastSuite(layout, manifest)
    with lock_folder(layout.lock, layout.root):
        check_folder(layout, force)
        write_text(layout.started, "")
        _remove_earlier(layout)
        files: dict[str, str] = {}
        for part, table in zip(parts, suite.tables, strict=True):
            real = [task for task in table.tasks if task.kind != GA]
            files |= _write_data(layout, part.failing, real)
            files |= write_made(layout, table, part.made, part.failing.panel)
            files |= _write_certificates(layout, table.name, part.certificates)
            files |= _write_fev_data(layout, part.failing, table.main_tasks)
            files |= _write_own(layout, table.folder, part)
        files |= write_shared_files(suite, frameworks=_frameworks())
        manifest = write_with_order(replace(manifest, files=files), layout)
        layout.started.unlink()
    return ForecastSuite(layout, manifest)


def _manifest(
    parts: Sequence[SuitePart], *, name: str, seed: int, original: Original | None
) -> SeriesManifest:
    """Return the manifest of a suite, without the checksums of its files."""
    tasks_of = plan_parts(parts, seed)
    tables = []
    entries = {}
    for part, (table, tasks) in zip(parts, tasks_of.items(), strict=True):
        failing, panel = part.failing, part.failing.panel
        for known in panel.known:
            if known in (ITEM, TIME, TARGET):
                raise ConfigError(
                    f"--known {known}: data files of a suite have a column of that name",
                    "rename it in the table",
                )
        entry = TableEntry(
            name=table,
            # a suite of one table has its files without a folder around them
            folder=f"tables/{table}" if len(parts) > 1 else ".",
            panel=PanelEntry(
                first=str(panel.calendar[0]),
                steps=len(panel.calendar),
                frequency=panel.frequency,
                horizon=panel.horizon,
                season=panel.season,
                known=tuple(panel.known),
            ),
            origins=failing.origins,
            rule=failing.rule,
            weighting=failing.weighting.reason,
            left_out=failing.left_out,
            notes=tuple(panel.notes),
            tasks=tuple(tasks),
            made=describe_made(part.made, panel),
            about=dict(part.about),
        )
        tables.append(entry)
        if original is not None:
            entries[table] = original.entries[part.task]
    pair = None
    if original is not None:
        pair = pair_of_series(Original(original.name, entries), tasks_of)
    return SeriesManifest(
        version=__version__, name=name, seed=seed, tables=tuple(tables), pair=pair
    )


def _remove_earlier(layout: Layout) -> None:
    """Remove what a suite of other tables left; the manifest first, so that it is none."""
    layout.manifest.unlink(missing_ok=True)
    layout.order.unlink(missing_ok=True)
    for folder in (layout.root / "data", layout.root / FEV_FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
    for name in ("tables", "report"):
        shutil.rmtree(layout.own / name, ignore_errors=True)
    for pattern in ("*.parquet", "*/certificate.json", layout.report.name):
        for file in layout.own.glob(pattern):
            file.unlink()


def plan_parts(parts: Sequence[SuitePart], seed: int) -> dict[str, list[ForecastTask]]:
    """Return the AMLB tasks of each table, by the table's name in the suite."""
    # of a table and its origins together, so that no origin has another table's name
    wanted = []
    for part in parts:
        n_origins = len(part.failing.tests)
        # the only origin goes by the table's name
        several = range(n_origins) if n_origins > 1 else ()
        wanted.append([part.task, *(f"{part.task}_o{origin}" for origin in several)])
    safe = iter(safe_names([*chain.from_iterable(wanted)]))
    tasks_of = {}
    for part, names in zip(parts, wanted, strict=True):
        table, *origins = islice(safe, len(names))
        tasks_of[table] = [
            *plan_tasks(part.failing, origins or [table], seed),
            *plan_made_tasks(part.made, table),
        ]
    return tasks_of


def plan_tasks(
    failing: FailingWindows, names: Sequence[str], seed: int
) -> list[ForecastTask]:
    """Return the AMLB tasks of a table: for each origin all series, bad ones, and a region's.

    Tasks of fewer than two series are left out, and so is the region where failures are not
    foreseen or its series would repeat.

    Parameters
    ----------
    failing : FailingWindows
    names : sequence of str
        What the tasks of each test origin are called, without their kind.
    seed : int
    """
    tasks = []
    weights = failing.weighting.weights
    for origin, windows in enumerate(failing.tests):
        here = failing.cutoffs == windows.cutoff
        parts = {MAIN_KIND: windows.items, "bad": windows.items[failing.is_bad[here]]}
        if weights is not None:
            rng = random_stream(seed, "forecasting", "region task", origin)
            drawn, repeats = draw_region(weights[here], rng, FEWEST_REGION)
            if not repeats:
                parts["region"] = windows.items[drawn]
        for kind, items in parts.items():
            if len(items) < FEWEST_ITEMS:
                continue
            own = amlb_name(names[origin], kind)
            tasks.append(ForecastTask.of(own, kind, items, origin))
    return tasks


def check_folder(layout: Layout, force: bool) -> None:
    """Refuse a folder that holds a suite, unless it may be replaced, or anything else.

    Raises
    ------
    SuiteError
    """
    if held_in(layout) == SeriesManifest.holds:
        if not force:
            raise SuiteError(
                f"{layout.root} holds a suite of forecasting tasks already",
                "give another -o, or --force to replace it",
            )
        return
    # what an interrupted generation left is written again
    if not is_fresh(layout.root) and not layout.started.is_file():
        raise SuiteError(
            f"{layout.root} is not empty and holds no suite of forecasting tasks",
            "give another -o",
        )


def _write_data(
    layout: Layout, failing: FailingWindows, tasks: Sequence[ForecastTask]
) -> dict[str, str]:
    """Write one long table for each task: every series cut behind the horizon of its origin."""
    panel = failing.panel
    # texts of the whole calendar, so that all series write their times alike
    times = panel.calendar.astype(str).to_numpy(dtype=object)
    files = {}
    for task in tasks:
        last = failing.origins.test[task.origin] + panel.horizon
        write = partial(_write_long_table, panel, task.items, times[: last + 1])
        files[task.path] = write_file(layout.at(task.path), write)
    return files


def _write_long_table(
    panel: Panel, items: Sequence[int], times: np.ndarray, path: Path
) -> None:
    """Write some series up to the last of the times, a few at a time."""
    with path.open("w", encoding="utf-8", newline="") as file:
        for some in _slices(len(items), _SERIES_AT_ONCE):
            parts = []
            for item in items[some]:
                columns = _columns_up_to(panel, item, times)
                parts.append(pd.DataFrame({ITEM: item_id(item), **columns}))
            table = pd.concat(parts, ignore_index=True)
            is_first = some.start == 0
            table.to_csv(file, index=False, header=is_first, lineterminator="\n")


def _columns_up_to(panel: Panel, item: int, times: np.ndarray) -> dict[str, np.ndarray]:
    """Return a series' times, values and what is known beforehand, up to the last of the times."""
    start = panel.starts[item]
    n = len(times) - start
    columns = {TIME: times[start:], TARGET: panel.values[item][:n]}
    for number, name in enumerate(panel.known):
        columns[name] = panel.known_values[item][:n, number]
    return columns


def _write_own(layout: Layout, folder: Path, part: SuitePart) -> dict[str, str]:
    """Write what the report needs: the series, and the windows with F's forecasts."""
    series = map(partial(_series_rows, part), _slices(len(part.failing.panel)))
    windows = map(partial(_window_rows, part), _slices(len(part.failing.items)))
    return {
        layout.relative(folder / name): write_parquet_parts(tables, folder / name)
        for name, tables in ((SERIES, series), (WINDOWS, windows))
    }


def _slices(size: int, step: int = ROWS_AT_ONCE) -> list[slice]:
    return [slice(first, first + step) for first in range(0, size, step)]


def _series_rows(part: SuitePart, some: slice) -> pa.Table:
    """Return some of the series, a row each."""
    panel = part.failing.panel
    return pa.table(
        {
            "series": list(panel.names[some]),
            "start": panel.starts[some],
            "values": list_array(panel.values[some]),
        }
    )


def _window_rows(part: SuitePart, some: slice) -> pa.Table:
    """Return some of the windows at test origins, a row each, with F's forecasts."""
    failing, twins = part.failing, part.twins
    items = failing.items[some]
    n = len(items)
    weights, part_of = failing.weighting.weights, failing.weighting.part
    quantiles = failing.forecasts.quantiles
    empty = np.empty((n, 0))
    mase = [twin.mase[some] for twin in twins]
    sql = [twin.sql[some] for twin in twins if twin.sql is not None]
    has_sql = len(sql) > 0 and len(sql) == len(mase)
    columns = {
        "item": items,
        "cutoff": failing.cutoffs[some],
        "scale": failing.scale[some],
        "hardness": failing.hardness[some],
        "bad": failing.is_bad[some],
        "weight": np.full(n, np.nan) if weights is None else weights[some],
        "part": np.full(n, -1) if part_of is None else part_of[some],
        "f_mean": _rows(failing.forecasts.mean[some]),
        "f_quantiles": _rows(
            empty if quantiles is None else quantiles[some].reshape(n, -1)
        ),
        "twin_mase": _rows(np.column_stack(mase) if mase else empty),
        "twin_sql": _rows(np.column_stack(sql) if has_sql else empty),
    }
    return pa.table(columns)


def _write_fev_data(
    layout: Layout, failing: FailingWindows, tasks: Sequence[ForecastTask]
) -> dict[str, str]:
    """Write for fev a row for each series, cut behind the horizon of its origin.

    fev (https://github.com/autogluon/fev, Apache-2.0) evaluates forecasters outside AMLB. Its
    tasks are AMLB's tasks of all series: one origin each, the same series under the same ids, and
    its MASE and SQL are AMLB's, too.
    """
    panel = failing.panel
    calendar = panel.calendar.to_numpy().astype("datetime64[us]")
    files = {}
    for task in tasks:
        last = failing.origins.test[task.origin] + panel.horizon
        parts = [task.items[some] for some in _slices(len(task.items))]
        rows = map(partial(_fev_rows, panel, calendar[: last + 1]), parts)
        files[task.fev_path] = write_parquet_parts(rows, layout.at(task.fev_path))
    return files


def _fev_rows(panel: Panel, times: np.ndarray, items: Sequence[int]) -> pa.Table:
    """Return a row for each of some series."""
    series = [_columns_up_to(panel, item, times) for item in items]
    columns = {ITEM: pa.array([item_id(item) for item in items])}
    for name in series[0]:
        columns[name] = list_array([each[name] for each in series])
    return pa.table(columns)


def _write_certificates(
    layout: Layout, table: str, certificates: Mapping[str, Certificate]
) -> dict[str, str]:
    """Write each certificate under the name that its task has in the suite."""
    files = {}
    for kind, certificate in certificates.items():
        named = replace(certificate, task=amlb_name(table, kind))
        path = layout.task_certificate(named.task)
        files[layout.relative(path)] = write_text(path, named.json())
    return files


def _rows(values: np.ndarray) -> pa.Array:
    """Return the rows of a table of numbers, a list each."""
    n, width = values.shape
    flat = pa.array(np.ascontiguousarray(values, dtype=float).reshape(-1))
    ends = np.arange(n + 1) * width
    return pa.ListArray.from_arrays(pa.array(ends, type=pa.int32()), flat)


def _frameworks() -> dict[str, dict[str, Any]]:
    """Return the content of ``frameworks.yaml``."""
    about = {
        "version": "1",
        "module": "extensions.HardsynthForecast",
        "project": "https://pypi.org/project/hardsynth",
    }
    ours = {
        name: {**about, "params": {"method": method}}
        for name, method in FRAMEWORKS.items()
    }
    return {**ours, "HardsynthAutoGluon": AUTOGLUON}
