"""From a long table to a suite of forecasting tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_percent, text_table
from amlb_ext.core.errors import ConfigError, SuiteError
from amlb_ext.forecasting.failing_windows import (
    FailingWindows,
    describe_left_out,
    find_failing_windows,
)
from amlb_ext.forecasting.forecasters import FileForecaster, Forecaster
from amlb_ext.forecasting.origins import plan_origins
from amlb_ext.forecasting.panel import PanelRoles, read_panel
from amlb_ext.forecasting.rolling import roll_forecaster
from amlb_ext.forecasting.suite_files import ForecastTask
from amlb_ext.forecasting.suite_writer import write_suite
from amlb_ext.suite.layout import holds_forecasts


@dataclass(frozen=True, kw_only=True)
class OriginPlan:
    """Which origins a suite has; see :func:`~amlb_ext.forecasting.origins.plan_origins`."""

    test: int = 1
    learning: int = 3
    step: int | None = None
    cutoff: str | None = None


@dataclass(frozen=True, kw_only=True)
class GeneratedForecasts:
    """What was written.

    Attributes
    ----------
    out : Path
    tasks : list of ForecastTask
    failing : FailingWindows
    """

    out: Path
    tasks: list[ForecastTask]
    failing: FailingWindows

    def text(self) -> str:
        """Return what was written, as text for a terminal."""
        failing = self.failing
        rows = []
        for task in self.tasks:
            seen = failing.panel.time_text(failing.origins.test[task.origin])
            rows.append([task.name, len(task.items), seen])
        bad = failing.is_bad
        lines = [
            text_table(["AMLB task", "series", "last value seen"], rows),
            "",
            f"F fails on {int(bad.sum())} of {len(bad)} windows "
            f"({format_percent(float(bad.mean()))}) · {failing.rule.text}",
            failing.weighting.reason or "where F fails is foreseen from the past alone",
            *describe_left_out(failing.left_out),
            *failing.panel.notes,
        ]
        return "\n".join(lines)


def generate_forecasts(
    table: pd.DataFrame,
    roles: PanelRoles,
    forecaster: Forecaster,
    out: Path,
    *,
    name: str = "hardsynth",
    task: str = "series",
    source: str = "",
    origins: OriginPlan | None = None,
    rule: str = "mase",
    alpha: float | None = None,
    twins: int = 4,
    seed: int = 0,
    force: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> GeneratedForecasts:
    """Find the windows on which F fails, and write a suite that AMLB v2.1.7 runs.

    Everything is computed before anything is written.

    Parameters
    ----------
    table : DataFrame
        Long: one row for each series and time.
    roles : PanelRoles
    forecaster : Forecaster
        F.
    out : Path
    name, task : str
        Of the benchmark definition, and of the table.
    source : str
        Where the table comes from, for the manifest.
    origins : OriginPlan, optional
    rule, alpha, twins, seed
        As in :func:`~amlb_ext.forecasting.compare.compare_forecasts`.
    force : bool
        Replace a suite of forecasting tasks.
    settings : mapping, optional
        More for the manifest.

    Raises
    ------
    DataError, ModelError, ConfigError
        As :func:`~amlb_ext.forecasting.compare.compare_forecasts`; nothing was written.
    SuiteError
        The folder cannot be written to.
    """
    if holds_forecasts(out) and not force:
        raise SuiteError(
            f"{out} holds a suite of forecasting tasks already",
            "give another -o, or --force to replace it",
        )
    if twins == 1 or twins < 0:
        raise ConfigError(f"{twins} twins", "give 2 or more, or 0 for none")
    plan = origins or OriginPlan()
    panel = read_panel(table, roles, source or task)
    chosen = plan_origins(
        panel,
        test=plan.test,
        learning=plan.learning,
        step=plan.step,
        cutoff=plan.cutoff,
    )
    failing = find_failing_windows(
        forecaster, panel, chosen, rule=rule, alpha=alpha, seed=seed
    )
    rolled_twins = []
    for twin in forecaster.twins(twins, panel.season):
        rolled_twins.append(roll_forecaster(twin, panel, failing.tests, seed))
    about = {
        "source": source,
        "roles": vars(roles),
        "baseline": forecaster.name,
        "is_file": isinstance(forecaster, FileForecaster),
        "seed": seed,
        "settings": dict(settings or {}),
    }
    tasks = write_suite(
        out,
        failing,
        rolled_twins,
        name=name,
        task=task,
        about=about,
        seed=seed,
        force=force,
    )
    return GeneratedForecasts(out=out, tasks=tasks, failing=failing)
