"""Frameworks that AMLB ran on a suite, set against F: from the predictions of ``_full`` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import RunError
from amlb_ext.forecasting.compare import Loss, answer_comparison
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.forecasters import LEVELS, Forecasts
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.result import ForecastComparison
from amlb_ext.forecasting.rolling import RolledForecasts, score_forecasts
from amlb_ext.forecasting.suite_files import MAIN_KIND, ForecastSuite
from amlb_ext.runner.results import find_predictions, read_predictions

#: Two truths that differ by more than this share are not of one table.
_TRUTH_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class ForecastReport:
    """What AMLB's predictions say of a suite.

    Attributes
    ----------
    comparison : ForecastComparison or None
        None where no framework has predictions of every ``_full`` task.
    incomplete : dict of str to str
        Frameworks that are not compared, and why.
    amlb_scores : DataFrame
        Mean MASE of each framework's items, by task, as AMLB computes it.
    """

    comparison: ForecastComparison | None
    incomplete: dict[str, str]
    amlb_scores: pd.DataFrame


def report_forecasts(
    folder: str | Path,
    results: Sequence[str | Path],
    *,
    loss: Loss = "mase",
    level: float = 0.95,
) -> ForecastReport:
    """Compare all frameworks in some output folders of AMLB with F.

    Parameters
    ----------
    folder : path
        The suite.
    results : sequence of path
        AMLB's output folders. Of several runs of a framework the latest counts.
    loss : {'mase', 'sql'}
    level : float

    Raises
    ------
    RunError
        A folder holds no predictions of the suite, or those of other data.
    SuiteError
        The suite cannot be read.
    """
    suite = ForecastSuite.load(folder)
    failing = suite.read_failing_windows()
    found = _find_runs(suite, results)
    if not found:
        raise RunError(
            f"no predictions of {suite.layout.root} in {', '.join(map(str, results))}",
            f"hardsynth run HardsynthForecast -u {suite.layout.root} -r OUT",
        )
    rolled = {}
    incomplete = {}
    full_tasks = [task.name for task in suite.tasks if task.kind == MAIN_KIND]
    for framework, runs in found.items():
        missing = [name for name in full_tasks if name not in runs]
        if missing:
            incomplete[framework] = f"no predictions of {', '.join(missing)}"
            continue
        answers = []
        for name, windows in zip(full_tasks, failing.tests, strict=True):
            table = read_predictions(runs[name], name, 0)
            answer = _read_answer(table, windows, f"{framework} on {name}")
            if isinstance(answer, str):
                incomplete[framework] = answer
                break
            answers.append(answer)
        else:
            rolled[framework] = score_forecasts(answers, failing.tests)
    comparison = None
    if rolled:
        comparison = answer_comparison(
            failing, rolled, suite.read_twins(), loss=loss, level=level
        )
    return ForecastReport(
        comparison=comparison,
        incomplete=incomplete,
        amlb_scores=_amlb_scores(failing, rolled, full_tasks),
    )


def _find_runs(
    suite: ForecastSuite, results: Sequence[str | Path]
) -> dict[str, dict[str, Path]]:
    """Return the latest run of each framework and task of the suite."""
    names = {task.name for task in suite.tasks}
    found: dict[str, dict[str, Path]] = {}
    for outdir in results:
        # runs are named by their time, so the last one is the latest
        for file in find_predictions(outdir):
            if file.task in names and file.fold == 0:
                found.setdefault(file.framework, {})[file.task] = file.run_dir
    return found


def _read_answer(table: pd.DataFrame, windows: Windows, where: str) -> Forecasts | str:
    """Return a framework's forecasts in the windows' order, or why they cannot be used.

    AMLB's rows are sorted by id and time, and ids are in the panel's order; their ranks show items
    that a framework dropped.
    """
    n, horizon = windows.future.shape
    if "repeated_item_id" not in table.columns:
        return "its predictions are not those of series"
    ranks, counts = np.unique(table["repeated_item_id"], return_counts=True)
    if len(ranks) < n or len(table) != n * horizon or (counts != horizon).any():
        return f"it predicts {len(ranks)} of {n} series; AMLB takes the mean of those alone"
    truth = table["truth"].to_numpy().reshape(n, horizon)
    size = np.abs(windows.future).max(axis=1, keepdims=True)
    if (np.abs(truth - windows.future) > _TRUTH_TOLERANCE * size).any():
        raise RunError(
            f"the predictions of {where} are of other data than the suite's",
            "run it again on this suite",
        )
    mean = table["predictions"].to_numpy().reshape(n, horizon)
    columns = [str(level) for level in LEVELS]
    if not set(columns) <= set(table.columns):
        return Forecasts(mean=mean)
    quantiles = table[columns].to_numpy().reshape(n, horizon, len(columns))
    return Forecasts(mean=mean, quantiles=quantiles)


def _amlb_scores(
    failing: FailingWindows,
    rolled: dict[str, RolledForecasts],
    tasks: Sequence[str],
) -> pd.DataFrame:
    records = {}
    for framework, forecasts in {"F": failing.forecasts, **rolled}.items():
        record = {}
        for name, windows in zip(tasks, failing.tests, strict=True):
            here = failing.cutoffs == windows.cutoff
            record[name] = float(forecasts.mase[here].mean())
        records[framework] = record
    return pd.DataFrame.from_dict(records, orient="index")
