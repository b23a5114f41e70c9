"""A suite of forecasting tasks on disk: where its files stand, and what they say.

A suite is an AMLB user directory. Beside AMLB's own files it has, in ``hardsynth/``, which AMLB
does not look at, the manifest ``forecasting.json``, written last. It holds one table of series or
several; of each there are the series, ``series.parquet``, and the windows of the test origins with
F's forecasts, ``windows.parquet``: in ``hardsynth/`` itself where the suite has one table, in a
folder of the table's name in ``hardsynth/tables/`` where it has several.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.series_rules import KNOWN_COLUMNS
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.parquet import read_frame
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecasters import LEVELS, Forecasts
from amlb_ext.forecasting.origins import Origins, Windows, cut_windows
from amlb_ext.forecasting.panel import Panel
from amlb_ext.forecasting.rolling import RolledForecasts, score_forecasts
from amlb_ext.forecasting.suite_manifest import (
    ForecastTask,
    SeriesManifest,
    TableEntry,
    manifest_path,
    read_series_manifest,
)
from amlb_ext.suite.layout import Layout
from amlb_ext.units.region import RegionWeights

#: Columns of every data file, beside those known beforehand: AMLB hands these to frameworks.
ITEM, TIME, TARGET = "item_id", "timestamp", "target"
#: Metrics that AMLB reports, the first of which counts.
METRICS = ("mase", "sql", "wql")
#: What stands in the main definition; the other kinds only in the one of all tasks.
MAIN_KIND = "full"
#: Tasks of real windows, which have the columns known beforehand.
REAL_KINDS = (MAIN_KIND, "bad", "region")


def item_id(item: int) -> str:
    """Return the id of a series in data files: in text order as in the panel.

    Examples
    --------
    >>> item_id(7)
    'w00007'
    """
    return f"w{item:05d}"


@dataclass(frozen=True, kw_only=True)
class ForecastTable:
    """A table of series in a suite.

    Attributes
    ----------
    entry : TableEntry
        Its part of the manifest.
    folder : Path
        Where its Parquet files stand.
    """

    entry: TableEntry
    folder: Path

    @property
    def name(self) -> str:
        """What the names of its AMLB tasks begin with."""
        return self.entry.name

    @property
    def tasks(self) -> tuple[ForecastTask, ...]:
        """Its AMLB tasks."""
        return self.entry.tasks

    @property
    def main_tasks(self) -> list[ForecastTask]:
        """The tasks of all series, one for each test origin."""
        return [task for task in self.tasks if task.kind == MAIN_KIND]

    @property
    def horizon(self) -> int:
        """H, in steps."""
        return self.entry.panel.horizon

    def read_failing_windows(self) -> FailingWindows:
        """Return the windows with F's forecasts, as they were when the suite was made.

        Raises
        ------
        SuiteError
            A file is missing or does not fit the manifest.
        """
        try:
            series = read_frame(self.folder / "series.parquet")
            windows = read_frame(self.folder / "windows.parquet")
        except (OSError, ValueError) as error:
            raise SuiteError(
                f"cannot read the series in {self.folder}: {error}",
                "hardsynth verify says what is missing",
            ) from None
        # columns that are missing, positions of no series, lists of other lengths
        try:
            return self._failing_windows(series, windows)
        except (LookupError, ValueError, TypeError, AttributeError):
            raise SuiteError(
                f"the windows in {self.folder} do not fit their series",
                "make the suite again: the same command with --force",
            ) from None

    def _failing_windows(
        self, series: pd.DataFrame, windows: pd.DataFrame
    ) -> FailingWindows:
        panel = self._panel(series)
        entry = self.entry
        origins = Origins(
            test=entry.origins.test,
            learning=entry.origins.learning,
            step=entry.origins.step,
        )
        tests = tuple(cut_windows(panel, cutoff) for cutoff in origins.test)
        items = np.concatenate([windows_at.items for windows_at in tests])
        if not np.array_equal(items, windows["item"].to_numpy()):
            raise ValueError("other windows than those of the origins")
        weights, reweighted = None, None
        if not entry.weighting:
            weights = windows["weight"].to_numpy()
            by_group = np.stack(windows["reweighted"].to_list()).T
            reweighted = by_group if len(by_group) else None
        return FailingWindows(
            panel=panel,
            origins=origins,
            tests=tests,
            forecasts=_read_forecasts(windows, tests),
            rule=entry.rule,
            hardness=windows["hardness"].to_numpy(),
            is_bad=windows["bad"].to_numpy(dtype=bool),
            weighting=RegionWeights(
                weights=weights,
                reweighted=reweighted,
                reason=entry.weighting,
            ),
            left_out=entry.left_out,
        )

    def read_twins(self) -> list[RolledForecasts]:
        """Return the losses of F's twins; their forecasts are not kept."""
        windows = read_frame(self.folder / "windows.parquet")
        mase = np.stack(windows["twin_mase"].to_list())
        sql = np.stack(windows["twin_sql"].to_list())
        empty = np.empty((len(windows), 0))
        twins = []
        for number in range(mase.shape[1]):
            twins.append(
                RolledForecasts(
                    mean=empty,
                    quantiles=None,
                    mase=mase[:, number],
                    sql=sql[:, number] if sql.shape[1] else None,
                )
            )
        return twins

    def _panel(self, series: pd.DataFrame) -> Panel:
        panel = self.entry.panel
        return Panel(
            names=tuple(series["series"]),
            values=tuple(
                np.asarray(values, dtype=float) for values in series["values"]
            ),
            starts=series["start"].to_numpy(dtype=int),
            calendar=self.entry.calendar,
            frequency=panel.frequency,
            horizon=panel.horizon,
            season=panel.season,
            notes=self.entry.notes,
        )


def _read_forecasts(windows: pd.DataFrame, tests: Iterable[Windows]) -> RolledForecasts:
    mean = np.stack(windows["f_mean"].to_list())
    flat = np.stack(windows["f_quantiles"].to_list())
    quantiles = flat.reshape(*mean.shape, -1) if flat.shape[1] else None
    answers = []
    start = 0
    tests = list(tests)
    for windows_at in tests:
        part = slice(start, start + len(windows_at))
        start += len(windows_at)
        part_quantiles = None if quantiles is None else quantiles[part]
        answers.append(Forecasts(mean=mean[part], quantiles=part_quantiles))
    return score_forecasts(answers, tests)


@dataclass(frozen=True, kw_only=True)
class ForecastSuite:
    """A finished suite of forecasting tasks; open one with :meth:`load`.

    Attributes
    ----------
    layout : Layout
    manifest : SeriesManifest
    """

    layout: Layout
    manifest: SeriesManifest

    @classmethod
    def load(cls, folder: str | Path) -> ForecastSuite:
        """Open the suite in a folder.

        Raises
        ------
        SuiteError
            There is none, or its manifest is damaged or of another version.
        """
        root = Path(folder)
        if not manifest_path(root).exists():
            raise SuiteError(
                f"{root} holds no suite of forecasting tasks",
                f"make one: hardsynth generate TABLE --series ... -o {shlex.quote(str(root))}",
            )
        return cls(layout=Layout(root), manifest=read_series_manifest(root))

    @property
    def name(self) -> str:
        """Of the main benchmark definition."""
        return self.manifest.name

    @property
    def tables(self) -> tuple[ForecastTable, ...]:
        """The tables of series."""
        own = self.layout.own
        return tuple(
            ForecastTable(entry=entry, folder=own.joinpath(*entry.folder.split("/")))
            for entry in self.manifest.tables
        )

    @property
    def tasks(self) -> tuple[ForecastTask, ...]:
        """The AMLB tasks of all tables."""
        return tuple(task for table in self.tables for task in table.tasks)


def absolute_path(root: Path, relative: str) -> str:
    """Return where a file of a suite stands, for programs that know no suite."""
    return str(root.absolute().joinpath(*relative.split("/")))


def definition_entries(
    table: ForecastTable, tasks: Iterable[ForecastTask], root: Path | None = None
) -> list[dict[str, Any]]:
    """Return the entries of a benchmark definition of a suite that stands at ``root``.

    AMLB v2.1.7 expands no placeholder in the path of series, so paths are absolute; without a
    root they are those in the suite, for somebody else to replace.
    """
    panel = table.entry.panel
    entries = []
    for task in tasks:
        path = task.path
        if root is not None:
            path = absolute_path(root, task.path)
        dataset: dict[str, Any] = {
            "path": path,
            "type": "timeseries",
            "freq": panel.frequency,
            "forecast_horizon_in_steps": panel.horizon,
            "seasonality": panel.season,
            "id_column": ITEM,
            "timestamp_column": TIME,
            "target": TARGET,
        }
        # AMLB does not look at the key; of made windows nothing is known beforehand
        if panel.known and task.kind in REAL_KINDS:
            dataset[KNOWN_COLUMNS] = list(panel.known)
        entries.append(
            {
                "name": task.name,
                "description": _DESCRIPTIONS[task.kind],
                "folds": 1,
                "dataset": dataset,
                "metric": list(METRICS),
                "quantile_levels": list(LEVELS),
            }
        )
    return entries


_DESCRIPTIONS = {
    "full": "all series at one origin; claims rest on this task alone",
    "bad": "series on which F fails; fewer series to learn from: another problem",
    "region": "series drawn by their chance of failure; fewer to learn from: another problem",
    "ga": "windows made of those on which F fails; hardsynth show says what they may be used for",
    "synthetic": "windows drawn by a generator; hardsynth show says what they may be used for",
}
