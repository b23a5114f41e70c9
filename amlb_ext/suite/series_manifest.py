"""Tasks in long tables of series: what the manifest says of them, and their definitions.

AMLB v2.1.7 expands no placeholder in the path of series, and neither does fev. So the definitions
name the folder in which the suite stands, their bytes are in no checksum, and they are made anew
from the manifest where the suite was moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import Field

from amlb_ext.amlb.series_rules import KNOWN_COLUMNS
from amlb_ext.core.frequency import parse_frequency
from amlb_ext.core.windows import LeftOut, Origins, WindowRule
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import Layout, amlb_name
from amlb_ext.suite.manifest import BenchmarkTask, Place
from amlb_ext.suite.read_record import Count, InnerPath, PlainName, check_distinct
from amlb_ext.suite.repeatable import RepeatableManifest

#: Columns of every data file, beside those known beforehand: AMLB hands these to frameworks.
ITEM, TIME, TARGET = "item_id", "timestamp", "target"
#: Metrics that AMLB reports, the first of which counts.
METRICS = ("mase", "sql", "wql")
#: Quantile levels that are forecast, as AMLB's own definition asks for them.
QUANTILE_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: What stands in the main definition; the other kinds only in the one of all tasks.
MAIN_KIND = "full"
#: Tasks of real windows, which have the columns known beforehand.
REAL_KINDS = (MAIN_KIND, "bad", "region")
#: The kind of windows that were made by moving those on which F fails.
GA = "ga"
#: Parquet files of each table, below the folder that AMLB does not look at: its series, the windows
#: of the test origins with F's forecasts, and where made windows come from.
SERIES, WINDOWS, PROVENANCE = "series.parquet", "windows.parquet", "made.parquet"
#: The folder of a suite that is for fev, and its definition in it.
FEV_FOLDER = "fev"
FEV_DEFINITION = f"{FEV_FOLDER}/tasks.yaml"

_DESCRIPTIONS = {
    "full": "all series at one origin; claims rest on this task alone",
    "bad": "series on which F fails; fewer series to learn from: another problem",
    "region": "series drawn by their chance of failure; fewer to learn from: another problem",
    "ga": "windows made of those on which F fails; hardsynth show says what they may be used for",
    "synthetic": "windows drawn by a generator; hardsynth show says what they may be used for",
}
#: More steps than any series has; a calendar of them still fits into memory.
_Steps = Annotated[int, Field(ge=1, le=10**7)]
_Kind = Annotated[str, Field(pattern="^(full|bad|region|ga|synthetic)$")]


@dataclass(frozen=True, kw_only=True)
class ForecastTask(BenchmarkTask):
    """One AMLB task of a suite, in one long table.

    Attributes
    ----------
    name : str
    kind : str
        ``full``: all series of an origin. ``bad``, ``region``: some of them, which is another
        problem to learn. ``ga``, ``synthetic``: made windows.
    origin : int
        Number of the test origin; 0 for made windows, which serve all of them.
    path : str
        Of the data file, relative to the suite.
    items : tuple of int
        Positions of its series in the panel; of made windows, those of the series that each came
        from, so that one may stand several times.
    """

    name: PlainName
    kind: _Kind
    origin: Count
    path: InnerPath
    items: tuple[Count, ...]

    @classmethod
    def of(
        cls, name: str, kind: str, items: Iterable[int], origin: int = 0
    ) -> ForecastTask:
        """Return the task whose data file stands where its name says."""
        return cls(
            name=name,
            kind=kind,
            origin=origin,
            path=f"data/{name}/{name}.csv",
            items=tuple(int(item) for item in items),
        )

    @property
    def data_files(self) -> list[str]:
        """The long table."""
        return [self.path]

    @property
    def names_in_archive(self) -> dict[str, str]:
        """Nothing: AMLB gives the address of series to pandas as it is."""
        return {}

    @property
    def fev_path(self) -> str:
        """Where the series of a task stand for fev, relative to the suite."""
        return f"{FEV_FOLDER}/{self.name}.parquet"

    def own_place(self, root: Path, file: str) -> str:
        """Return where the file stands, for programs that know no suite."""
        return str(root.absolute().joinpath(*file.split("/")))


@dataclass(frozen=True, kw_only=True)
class PanelEntry:
    """The calendar of a table: its ``first`` time, ``steps`` and ``frequency``, H and season.

    ``known`` names the columns of its data files that are known beforehand.
    """

    first: str
    steps: _Steps
    frequency: str
    horizon: _Steps
    season: _Steps
    known: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TableEntry:
    """A table of series.

    Attributes
    ----------
    name : str
        What the names of its AMLB tasks begin with.
    folder : str
        Of its Parquet files, below the folder that AMLB does not look at; ``.`` is that folder.
    panel : PanelEntry
    origins : Origins
    rule : WindowRule
    weighting : str
        Why failures are not foreseen; empty where they are.
    left_out : tuple of LeftOut
    notes : tuple of str
    tasks : tuple of ForecastTask
    made : dict
        What was made, for people.
    about : dict
        Where the series come from, F and the settings, for people.
    """

    name: PlainName
    folder: InnerPath | Literal["."]
    panel: PanelEntry
    origins: Origins
    rule: WindowRule
    weighting: str
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    tasks: tuple[ForecastTask, ...]
    made: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if max(self.origins.all) + self.panel.horizon >= self.panel.steps:
            raise ValueError("origins: they are none of this calendar")
        if any(task.origin >= len(self.origins.test) for task in self.tasks):
            raise ValueError("tasks: one is of an origin that the table does not have")

    @property
    def calendar(self) -> pd.DatetimeIndex:
        """The times of all steps."""
        return pd.date_range(
            self.panel.first,
            periods=self.panel.steps,
            freq=parse_frequency(self.panel.frequency),
        )

    @property
    def main_tasks(self) -> list[ForecastTask]:
        """The tasks of all series, one for each test origin."""
        return [task for task in self.tasks if task.kind == MAIN_KIND]

    def folder_in(self, layout: Layout) -> Path:
        """Return where the Parquet files of the table stand in a suite."""
        return layout.own.joinpath(*self.folder.split("/"))


@dataclass(frozen=True, kw_only=True)
class SeriesManifest(RepeatableManifest):
    """The manifest of a suite of tables of series, of which there is one at least.

    Attributes
    ----------
    tables : tuple of TableEntry
    """

    holds = "series"
    names_its_folder = True
    no_refits = "a suite of series, which keeps what F loses when it is fitted again"

    tables: tuple[TableEntry, ...]

    @property
    def listed(self) -> list[ForecastTask]:
        """The AMLB tasks of all tables."""
        return list(chain.from_iterable(table.tasks for table in self.tables))

    @property
    def main_names(self) -> set[str]:
        """The names of the tasks of all series."""
        return {task.name for task in self.listed if task.kind == MAIN_KIND}

    @property
    def own_files(self) -> set[str]:
        """The long tables, the series with F's forecasts, fev's files, and the order."""
        layout = Layout(Path())
        files = self.order_files | {task.path for task in self.listed}
        for table in self.tables:
            files.update(task.fev_path for task in table.main_tasks)
            beside = [SERIES, WINDOWS]
            if any(task.kind == GA for task in table.tasks):
                beside.append(PROVENANCE)
            for name in beside:
                files.add(layout.relative(table.folder_in(layout) / name))
        return files

    @property
    def baselines(self) -> list[str]:
        """What the F of each table is called; a suite made in Python says it of itself."""
        named = [
            table.about.get("settings", {}).get("baseline", table.about.get("baseline"))
            for table in self.tables
        ]
        return list(dict.fromkeys(map(str, named)))

    @property
    def certified(self) -> list[str]:
        """The windows of one kind of a table, where their certificate was written."""
        certificates = self._certificates()
        return [name for path, name in certificates.items() if path in self.files]

    def may_list(self) -> Callable[[str], bool]:
        """Return whether a path is that of a certificate, of a table's windows of one kind."""
        return self._certificates().__contains__

    def _certificates(self) -> dict[str, str]:
        """Return what may have a certificate, by the path of that."""
        layout = Layout(Path())
        certificates = {}
        for table in self.tables:
            # the origins of a table are certified together, and are tasks of their own
            for kind in dict.fromkeys(task.kind for task in table.tasks):
                name = amlb_name(table.name, kind)
                certificates[layout.task_certificate(name).as_posix()] = name
        return certificates

    def more_texts(self, root: Path) -> dict[str, str]:
        """Return fev's definition.

        A series has season + 1 values or more in front of the origin, so fev leaves none out, and
        scales all of them as AMLB does.
        """
        entries = []
        for table in self.tables:
            panel = table.panel
            for task in table.main_tasks:
                entry: dict[str, Any] = {
                    "task_name": task.name,
                    "dataset_path": task.own_place(root, task.fev_path),
                    "horizon": panel.horizon,
                    "num_windows": 1,
                    "min_context_length": panel.season + 1,
                    "seasonality": panel.season,
                    "eval_metric": "MASE",
                    "extra_metrics": ["SQL", "WQL"],
                    "quantile_levels": list(QUANTILE_LEVELS),
                    "id_column": ITEM,
                    "timestamp_column": TIME,
                    "target": TARGET,
                }
                if panel.known:
                    entry["known_dynamic_columns"] = list(panel.known)
                entries.append(entry)
        return {FEV_DEFINITION: yaml_text({"tasks": entries})}

    def check(self) -> None:
        """Raise ``ValueError`` where two names are one on some systems, or a time is none."""
        check_distinct("tasks", [task.name for task in self.listed])
        check_distinct("tables", [table.name for table in self.tables])
        for table in self.tables:
            # what pandas says of a time or a frequency that is none is a ValueError, too
            assert len(table.calendar) == table.panel.steps

    def _entry(self, task: ForecastTask, place: Place) -> dict[str, Any]:
        panel = self.table_of(task).panel
        dataset: dict[str, Any] = {
            "path": place(task.path),
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
        return {
            "name": task.name,
            "description": _DESCRIPTIONS[task.kind],
            "folds": 1,
            "dataset": dataset,
            "metric": list(METRICS),
            "quantile_levels": list(QUANTILE_LEVELS),
        }

    def table_of(self, task: ForecastTask) -> TableEntry:
        """Return the table that a task is of."""
        for table in self.tables:
            if any(own.name == task.name for own in table.tasks):
                return table
        raise KeyError(task.name)
