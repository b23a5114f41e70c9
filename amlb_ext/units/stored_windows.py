"""A suite of forecasting tasks on disk: where its files stand, and what they say.

Beside AMLB's own files it has, in ``hardsynth/``, the series of each of its tables,
``series.parquet``, and the windows of the test origins with F's forecasts, ``windows.parquet``: in
``hardsynth/`` itself where the suite has one table, in a folder of the table's name in
``hardsynth/tables/`` where it has several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.parquet import read_frame
from amlb_ext.models.forecasters import Forecasts
from amlb_ext.sources.panel import Panel
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.series_manifest import (
    SERIES,
    WINDOWS,
    ForecastTask,
    SeriesManifest,
    TableEntry,
)
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.origins import cut_windows, split_by_origin
from amlb_ext.units.region import RegionWeights
from amlb_ext.units.rolling import RolledForecasts, score_forecasts


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
        return self.entry.main_tasks

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
            series = read_frame(self.folder / SERIES)
            windows = read_frame(self.folder / WINDOWS)
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
        entry = self.entry
        panel = Panel(
            names=tuple(series["series"]),
            values=tuple(
                np.asarray(values, dtype=float) for values in series["values"]
            ),
            starts=series["start"].to_numpy(dtype=int),
            calendar=entry.calendar,
            frequency=entry.panel.frequency,
            horizon=entry.panel.horizon,
            season=entry.panel.season,
            notes=entry.notes,
        )
        tests = tuple(cut_windows(panel, cutoff) for cutoff in entry.origins.test)
        items = np.concatenate([windows_at.items for windows_at in tests])
        if not np.array_equal(items, windows["item"].to_numpy()):
            raise ValueError("other windows than those of the origins")
        weights, part = None, None
        if not entry.weighting:
            weights, part = windows["weight"].to_numpy(), windows["part"].to_numpy()
        mean = np.stack(windows["f_mean"].to_list())
        flat = np.stack(windows["f_quantiles"].to_list())
        quantiles: Sequence[np.ndarray | None] = [None] * len(tests)
        if flat.shape[1]:
            quantiles = split_by_origin(flat.reshape(*mean.shape, -1), tests)
        of_origins = zip(split_by_origin(mean, tests), quantiles, strict=True)
        answers = [Forecasts(mean=own, quantiles=levels) for own, levels in of_origins]
        return FailingWindows(
            panel=panel,
            origins=entry.origins,
            tests=tests,
            forecasts=score_forecasts(answers, tests),
            rule=entry.rule,
            hardness=windows["hardness"].to_numpy(),
            is_bad=windows["bad"].to_numpy(dtype=bool),
            weighting=RegionWeights(weights=weights, part=part, reason=entry.weighting),
            left_out=entry.left_out,
        )

    def read_twins(self, failing: FailingWindows) -> list[RolledForecasts]:
        """Return the losses of F's twins by MASE and SQL, and those that differ by scale alone.

        Forecasts of twins are not kept, so other losses of theirs are not known.

        Parameters
        ----------
        failing : FailingWindows
            The windows of the table.
        """
        windows = read_frame(self.folder / WINDOWS)
        mase = np.stack(windows["twin_mase"].to_list())
        sql = np.stack(windows["twin_sql"].to_list())
        empty = np.empty((len(windows), 0))
        mean_size = np.abs(failing.future).mean()
        twins = []
        for number in range(mase.shape[1]):
            own = mase[:, number]
            losses = {"mase": own, "mae": own * failing.scale}
            if sql.shape[1]:
                pinball = sql[:, number] * failing.scale
                losses |= {"sql": sql[:, number], "crps": pinball}
                # of zeros alone it is no number, for F neither
                if mean_size:
                    losses["wql"] = pinball / mean_size
            twins.append(RolledForecasts(mean=empty, quantiles=None, losses=losses))
        return twins


@dataclass(frozen=True)
class ForecastSuite(Suite):
    """A finished suite of forecasting tasks; open one with :meth:`load`.

    Attributes
    ----------
    layout : Layout
    manifest : SeriesManifest
    """

    reads = SeriesManifest

    manifest: SeriesManifest

    @classmethod
    def load(cls, directory: str | Path) -> ForecastSuite:
        """Open the suite in ``directory``, where series and windows are as they were written.

        Raises
        ------
        SuiteError
            There is no such suite, or one of these files is missing or was changed.
        """
        suite = super().load(directory)
        for table in suite.tables:
            for name in (SERIES, WINDOWS):
                suite.unchanged_file(table.folder / name)
        return suite

    @property
    def tables(self) -> tuple[ForecastTable, ...]:
        """The tables of series."""
        return tuple(
            ForecastTable(entry=entry, folder=entry.folder_in(self.layout))
            for entry in self.manifest.tables
        )
