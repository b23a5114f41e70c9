"""The manifest of a suite of forecasting tasks, as it is read: each value of its type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import Field

from amlb_ext.core.frequency import parse_frequency
from amlb_ext.forecasting.hardness import WindowRule
from amlb_ext.forecasting.panel import LeftOut
from amlb_ext.suite.layout import FORECAST_MANIFEST, Layout
from amlb_ext.suite.read_record import (
    Count,
    InnerPath,
    PlainName,
    Seed,
    check_distinct,
    read_sealed_manifest,
    record_from_json,
)

#: Of the manifest's form.
FORMAT = 2
#: More steps than any series has; a calendar of them still fits into memory.
_Steps = Annotated[int, Field(ge=1, le=10**7)]
_Kind = Annotated[str, Field(pattern="^(full|bad|region|ga|synthetic)$")]


@dataclass(frozen=True, kw_only=True)
class ForecastTask:
    """One AMLB task of a suite.

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
class OriginsEntry:
    """Positions of the last values seen at the ``test`` and the ``learning`` origins."""

    test: tuple[Count, ...]
    learning: tuple[Count, ...]
    step: Count


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
    origins : OriginsEntry
    rule : WindowRule
    weighting : str
        Why failures are not foreseen; empty where they are.
    left_out : tuple of LeftOut
    notes : tuple of str
    tasks : tuple of ForecastTask
    made : dict
        What was made, for people.
    """

    name: PlainName
    folder: InnerPath | Literal["."]
    panel: PanelEntry
    origins: OriginsEntry
    rule: WindowRule
    weighting: str
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    tasks: tuple[ForecastTask, ...]
    made: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        last = max([*self.origins.test, *self.origins.learning], default=-1)
        if not self.origins.test or last + self.panel.horizon >= self.panel.steps:
            raise ValueError("origins: there are none, or none of this calendar")
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


@dataclass(frozen=True, kw_only=True)
class TwinTask:
    """A task of a hard twin: its ``name``, the suite's ``task``, and what the original states."""

    name: str
    task: PlainName
    what: str
    limits: dict[str, Any]
    metric: list[str]


@dataclass(frozen=True, kw_only=True)
class SeriesPair:
    """The hard twin of an existing benchmark ``of`` series."""

    name: PlainName
    of: str
    tasks: tuple[TwinTask, ...]


@dataclass(frozen=True, kw_only=True)
class SeriesManifest:
    """The manifest of a suite of forecasting tasks.

    Attributes
    ----------
    name : str
        Of the main benchmark definition.
    version : str
        The tool's.
    seed : int
    tables : tuple of TableEntry
    pair : SeriesPair, optional
    files : dict of str to str
        The sha256 of every file, by relative path.
    """

    name: PlainName
    version: str
    seed: Seed
    tables: tuple[TableEntry, ...]
    pair: SeriesPair | None = None
    files: dict[InnerPath, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> SeriesManifest:
        """Read a manifest; ``ValueError`` where it is damaged, or names what is not inside."""
        manifest = record_from_json(cls, entry)
        tasks = [task.name for table in manifest.tables for task in table.tasks]
        check_distinct("tasks", tasks)
        check_distinct("tables", [table.name for table in manifest.tables])
        check_distinct("files", manifest.files)
        if not tasks or len(set(tasks)) < len(tasks):
            raise ValueError("tables: there is no task, or one name stands twice")
        for table in manifest.tables:
            # what pandas says of a time or a frequency that is none is a ValueError, too
            assert len(table.calendar) == table.panel.steps
        known = set(tasks)
        for twin in manifest.pair.tasks if manifest.pair else ():
            if twin.task not in known:
                raise ValueError(f"pair: the suite has no task {twin.task!r}")
        return manifest


def manifest_path(root: Path) -> Path:
    """Return where the manifest of a suite of forecasting tasks stands."""
    return Layout(root).own / FORECAST_MANIFEST


def read_series_manifest(root: Path) -> SeriesManifest:
    """Read the manifest of the suite in a folder.

    Raises
    ------
    SuiteError
        See :func:`amlb_ext.suite.read_record.read_sealed_manifest`.
    """
    return read_sealed_manifest(
        manifest_path(root),
        SeriesManifest.from_json,
        wanted=FORMAT,
        remedy="make the suite again: the same command with --force",
    )
