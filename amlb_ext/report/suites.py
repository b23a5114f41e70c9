"""The report on a suite, whatever it holds: tables, series, or a folder of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from amlb_ext.comparison.files import read_costs
from amlb_ext.core.errors import ConfigError
from amlb_ext.report.build import build_report
from amlb_ext.report.model import SuiteReport
from amlb_ext.suite import open_suite
from amlb_ext.suite.series_manifest import SeriesManifest
from amlb_ext.suite.task_folder import TaskFolder


def build_suite_report(
    suite: Path,
    results: Sequence[str | Path] = (),
    *,
    predictions: Mapping[str, Path] = MappingProxyType({}),
    loss: Any = None,
    workers: int = 1,
    quiet: bool = True,
    swaps: bool = True,
    refits: int = 0,
    **shared: Any,
) -> SuiteReport:
    """Build the report of a suite by the form of its tasks.

    Parameters
    ----------
    suite : path
    results, predictions, workers, quiet, swaps, refits
        See :func:`amlb_ext.report.build.build_report`.
    loss : optional
        A name, of tables also a file of costs, or for a caller in Python whatever the report on
        such a suite takes.
    **shared
        ``segments``, ``level`` and ``charts``.

    Returns
    -------
    SuiteReport

    Raises
    ------
    ConfigError
        A loss is named for a folder of tasks, or one that fits no task; or re-fits for a suite
        that is not of tables.
    HardsynthError
        As the report on such a suite.
    """
    manifest = open_suite(suite).manifest
    if refits and manifest.no_refits:
        raise ConfigError(f"{suite} is {manifest.no_refits}", "leave --refits out")
    if isinstance(manifest, TaskFolder):
        if loss is not None:
            raise ConfigError(
                "folders of tasks are compared by AMLB's scores", "leave --loss out"
            )
        from amlb_ext.report.runs import build_run_report

        return build_run_report(suite, results, predictions=predictions, **shared)
    if isinstance(manifest, SeriesManifest):
        from amlb_ext.report.series import build_series_report

        return build_series_report(
            suite, results, predictions=predictions, loss=loss, **shared
        )
    if isinstance(loss, str):
        loss = read_costs(loss)
    return build_report(
        suite,
        results,
        predictions=predictions,
        loss=loss,
        workers=workers,
        quiet=quiet,
        swaps=swaps,
        refits=refits,
        **shared,
    )
