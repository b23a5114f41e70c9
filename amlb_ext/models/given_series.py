"""Forecasting tasks and forecasters as words name them: files, definitions, bundled series."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.core.checked_call import Count, CountOrNone
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import BUNDLED_SERIES_SPECS, table_ending, table_stem
from amlb_ext.models.forecast_files import forecasts_from_table
from amlb_ext.models.forecasters import Forecaster, make_forecaster
from amlb_ext.sources.bundled_series import BUNDLED_SERIES
from amlb_ext.sources.panel import PanelRoles
from amlb_ext.sources.series_definitions import find_series_tasks
from amlb_ext.sources.series_tasks import (
    SeriesReading,
    SeriesTable,
    SeriesTask,
    read_long_table,
    read_series_table,
)


@dataclass(frozen=True, kw_only=True)
class Origins:
    """At which calendar times is forecast.

    Attributes
    ----------
    origins : int, optional
        Number of test origins: calendar times after which is forecast (default: 1, or the folds of
        an AMLB definition).
    learning_origins : int
        Number of earlier origins, on which F's failures are learnt.
    step : int, optional
        Steps between two test origins (default: the horizon).
    cutoff : TIME
        Last observed time at the last test origin (default: the latest that keeps most series).
    """

    origins: Count | None = None
    learning_origins: CountOrNone = 3
    step: Count | None = None
    cutoff: str | None = None


@dataclass(frozen=True, kw_only=True)
class SeriesRoles:
    """What makes a long table one of series, beside its column of times.

    Attributes
    ----------
    series : str
        Column that names the series of a row.
    horizon : int
        Number of steps to forecast.
    season : int
        Number of steps in a season (default: the usual one for the frequency).
    frequency : TEXT
        Frequency as pandas spells it, e.g. MS, D, H (default: inferred from the times).
    """

    series: str | None = None
    horizon: Count | None = None
    season: Count | None = None
    frequency: str | None = None


def find_series(
    source: str,
    roles: SeriesRoles,
    reading: SeriesReading,
    *,
    time: str | None,
    target: str | None,
    options: SourceConfig,
) -> list[SeriesTask]:
    """Return the forecasting tasks of a source; their tables are not read yet.

    Parameters
    ----------
    source : str
    roles : SeriesRoles
        Of a long table; of bundled series what is other than usual.
    reading : SeriesReading
    time, target : str, optional
        Columns of a long table.
    options : SourceConfig

    Raises
    ------
    ConfigError
        A long table without a target.
    """
    how: dict[str, Any] = {"known": reading.columns, "gaps": reading.gaps}
    if source in BUNDLED_SERIES_SPECS:
        read_frame, bundled_roles = BUNDLED_SERIES[Path(source).name]
        for name in ("horizon", "season", "frequency"):
            if getattr(roles, name) is not None:
                how[name] = getattr(roles, name)

        def read_bundled() -> SeriesTable:
            own_roles = dataclasses.replace(bundled_roles, **how)
            return SeriesTable(frame=read_frame(), roles=own_roles)

        return [SeriesTask(name=Path(source).name, source=source, open=read_bundled)]
    if not table_ending(source):
        tasks = find_series_tasks(source, options, reading)
        if tasks is not None:
            return tasks
    if target is None:
        raise ConfigError("series need --target", "name the column to forecast")
    # the columns that all but bundled series must name were asked for before
    all_roles = PanelRoles(
        series=str(roles.series),
        time=str(time),
        target=target,
        horizon=int(roles.horizon or 0),
        season=roles.season,
        frequency=roles.frequency,
        **how,
    )
    read = partial(read_series_table, Path(source), all_roles, options)
    return [SeriesTask(name=table_stem(source), source=Path(source).name, open=read)]


def one_task(tasks: list[SeriesTask], source: str) -> SeriesTask:
    """Return the only task of a source.

    Raises
    ------
    ConfigError
        The source has several.
    """
    if len(tasks) > 1:
        raise ConfigError(
            f"{source} has {len(tasks)} forecasting tasks, and this command takes one",
            f"name it: {source.partition('#')[0]}#{tasks[0].name}",
        )
    return tasks[0]


def read_forecaster(
    word: str, name: str, roles: PanelRoles, options: SourceConfig
) -> Forecaster:
    """Return the forecaster of a name, of ``module:Class``, or of a file of forecasts."""
    if table_ending(word):
        table = read_long_table(Path(word), roles, options)
        return forecasts_from_table(
            table, name, series=roles.series, time=roles.time, target=roles.target
        )
    return make_forecaster(word, name)
