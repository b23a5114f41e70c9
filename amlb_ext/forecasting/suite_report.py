"""Forecasters set against F on a suite: from predictions of ``_full`` alone, AMLB's or fev's."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.comparison.result import ModelComparison
from amlb_ext.core.display import text_table
from amlb_ext.core.errors import ConfigError, RunError
from amlb_ext.forecasting.compare import answer_comparison
from amlb_ext.forecasting.failing_windows import FailingWindows
from amlb_ext.forecasting.fev_predictions import FevPredictions, open_fev_predictions
from amlb_ext.forecasting.forecasters import LEVELS, Forecasts
from amlb_ext.forecasting.losses import scaled_errors
from amlb_ext.forecasting.made_files import read_made_windows, read_provenance
from amlb_ext.forecasting.origins import Windows
from amlb_ext.forecasting.rolling import Loss, RolledForecasts, score_forecasts
from amlb_ext.forecasting.suite_files import ForecastSuite, ForecastTable
from amlb_ext.forecasting.window_certificate import read_certificates
from amlb_ext.runner.results import (
    find_predictions,
    find_running,
    read_predictions,
)
from amlb_ext.runner.run_folder import is_running
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.series_manifest import GA, MAIN_KIND
from amlb_ext.units.region import RegionWeights

#: Two truths that differ by more than this share are not of one table.
_TRUTH_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class ForecastReport:
    """What predictions say of a table of a suite.

    Attributes
    ----------
    comparison : ModelComparison or None
        None where no forecaster has predictions of every ``_full`` task of the table.
    incomplete : dict of str to str
        Forecasters that are not compared, and why.
    amlb_scores : DataFrame
        Mean MASE of each forecaster's items, by task, as AMLB and fev compute it.
    made : DataFrame
        What AMLB's frameworks do on made windows, see
        :func:`~amlb_ext.forecasting.suite_report.score_made_windows`.
    """

    comparison: ModelComparison | None
    incomplete: dict[str, str]
    amlb_scores: pd.DataFrame
    made: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def is_whole(self) -> bool:
        """Whether every forecaster is compared."""
        return self.comparison is not None and not self.incomplete

    def text(self) -> str:
        """Return the whole answer, as text for a terminal; nothing where there is none."""
        if self.comparison is None:
            return ""
        return self.comparison.text() + made_text(self.made)

    def headline(self) -> str:
        """Return the answer in a few lines; nothing where there is none."""
        if self.comparison is None:
            return ""
        lines = [*self.comparison.headline(), self.comparison.advice]
        return "\n".join([*lines, made_text(self.made)]).rstrip("\n")


def report_forecasts(
    folder: str | Path,
    results: Sequence[str | Path] = (),
    *,
    predictions: Mapping[str, Path] | None = None,
    loss: Loss = "mase",
    level: float = 0.95,
) -> dict[str, ForecastReport]:
    """Compare forecasters with F, on each table of a suite.

    Parameters
    ----------
    folder : path
        The suite.
    results : sequence of path
        AMLB's output folders. Of several runs of a framework the latest counts.
    predictions : mapping of str to path, optional
        Predictions that were made with fev, by the names that the report calls them; see
        :mod:`amlb_ext.forecasting.fev_predictions`.
    loss : {'mase', 'sql'}
    level : float

    Returns
    -------
    dict of str to ForecastReport
        By the suite's tables.

    Raises
    ------
    RunError
        A folder holds no predictions of the suite, or those of other data; or a file of predictions
        does not fit its task.
    ConfigError
        Predictions have the name of a framework.
    SuiteError
        The suite cannot be read.
    """
    suite = ForecastSuite.load(folder)
    runs = _find_runs(suite, results)
    by_fev = {}
    for name, path in (predictions or {}).items():
        if name in runs or name == "F":
            raise ConfigError(
                f"--predictions {name}={path}: {name} is another forecaster's name",
                "write --predictions NAME=FILE with another name",
            )
        by_fev[name] = open_fev_predictions(path, suite)
    if not runs and not by_fev:
        running = [run for folder in results for run in find_running(folder)]
        if running:
            raise RunError(
                f"no predictions of {suite.layout.root} yet: {running[0]} is being written",
                "wait until that run has ended",
            )
        raise RunError(
            f"no predictions of {suite.layout.root} in {', '.join(map(str, results))}",
            f"hardsynth run HardsynthForecast -u {suite.layout.root} -r OUT",
        )
    reports = {}
    certificates = read_certificates(suite)
    for table in suite.tables:
        # of the made windows or, where there are none, of all
        certified = {amlb_name(table.name, kind) for kind in (GA, MAIN_KIND)}
        own = [certificates[name] for name in certified & certificates.keys()]
        report = _report_table(
            table,
            runs,
            by_fev,
            loss=loss,
            level=level,
            root=suite.layout.root,
            no_region="; ".join(certificate.no_region for certificate in own),
        )
        made = score_made_windows(suite, table, partial(_read_task, runs), level)
        reports[table.name] = replace(report, made=made)
    return reports


def _report_table(
    table: ForecastTable,
    runs: Mapping[str, Mapping[str, Path]],
    by_fev: Mapping[str, FevPredictions],
    *,
    loss: Loss,
    level: float,
    root: Path,
    no_region: str,
) -> ForecastReport:
    failing = table.read_failing_windows()
    if no_region and not failing.weighting.reason:
        # what the certificate does not find is claimed nowhere
        failing = replace(failing, weighting=RegionWeights(reason=no_region))
    tasks = [task.name for task in table.main_tasks]
    where = shlex.quote(str(root))
    answers: dict[str, list[Forecasts] | str] = {}
    for framework, folders in runs.items():
        answers[framework] = _read_runs(framework, folders, tasks, failing.tests)
    for name, files in by_fev.items():
        answers[name] = files.read(table, failing)
    rolled = {}
    incomplete = {}
    for name, answer in answers.items():
        if isinstance(answer, str):
            remedy = f"; hardsynth run {shlex.quote(name)} -u {where} runs it again"
            incomplete[name] = answer + (remedy if name in runs else "")
        else:
            rolled[name] = score_forecasts(answer, failing.tests)
    comparison = None
    if rolled:
        own = [name for name, said in rolled.items() if _is_baseline(said, failing)]
        others = {name: said for name, said in rolled.items() if name not in own}
        comparison = answer_comparison(
            failing, others or rolled, table.read_twins(), loss=loss, level=level
        )
        # F is no candidate: it would count among the comparisons that verdicts are adjusted for
        if own:
            note = f"{', '.join(own)} forecasts what F does: it is F itself, and no candidate"
            comparison = replace(comparison, notes=(note, *comparison.notes))
        notes = [f"{name} is not compared: {why}" for name, why in incomplete.items()]
        comparison = replace(comparison, notes=(*comparison.notes, *notes))
    return ForecastReport(
        comparison=comparison,
        incomplete=incomplete,
        amlb_scores=_amlb_scores(failing, rolled, tasks),
    )


def _is_baseline(said: RolledForecasts, failing: FailingWindows) -> bool:
    """Whether forecasts are those of F, but for rounding."""
    return np.allclose(said.mean, failing.forecasts.mean, rtol=_TRUTH_TOLERANCE)


def _read_runs(
    framework: str,
    folders: Mapping[str, Path],
    tasks: Sequence[str],
    origins: Sequence[Windows],
) -> list[Forecasts] | str:
    """Return a framework's forecasts of each task, or why they cannot be used."""
    missing = [name for name in tasks if name not in folders]
    if missing:
        is_going_on = any(map(is_running, folders.values()))
        yet = " yet, its run is going on" if is_going_on else ""
        return f"no predictions of {', '.join(missing)}{yet}"
    answers = []
    for name, windows in zip(tasks, origins, strict=True):
        table = read_predictions(folders[name], name, 0)
        answer = _read_answer(table, windows, f"{framework} on {name}")
        if isinstance(answer, str):
            return answer
        answers.append(answer)
    return answers


def _read_task(
    runs: Mapping[str, Mapping[str, Path]], name: str, windows: Windows
) -> dict[str, Forecasts | str]:
    """Return the answers of all frameworks that ran a task."""
    answers = {}
    for framework, folders in runs.items():
        if name in folders:
            table = read_predictions(folders[name], name, 0)
            answers[framework] = _read_answer(table, windows, f"{framework} on {name}")
    return answers


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
    broken = ~np.isfinite(mean).all(axis=1)
    if broken.any():
        return f"it predicts NaN or infinity for {int(broken.sum())} of {n} series"
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


#: Answers of frameworks to a task, by name; a text says why one cannot be used.
ReadAnswers = Callable[[str, Windows], Mapping[str, Forecasts | str]]
COLUMNS = ["task", "framework", "mase", "mase_f", "difference", "low", "high", "use"]


def score_made_windows(
    suite: ForecastSuite,
    table: ForecastTable,
    read_answers: ReadAnswers,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return one row for each framework and made task that it ran.

    Parameters
    ----------
    suite : ForecastSuite
    table : ForecastTable
        Of the suite.
    read_answers : callable
    level : float

    Returns
    -------
    DataFrame
        ``task``, ``framework``, its ``mase`` and that of F, their ``difference`` with limits
        ``low`` and ``high``, clustered by the series that windows were made of, and ``use``: the
        certificate's verdict, or ``not certified``.
    """
    records = []
    tasks = [task for task in table.tasks if task.kind == GA]
    if not tasks:
        return pd.DataFrame(columns=COLUMNS)
    provenance = read_provenance(table)
    certificates = read_certificates(suite)
    for task in tasks:
        rows = provenance[provenance["task"] == task.name]
        windows = read_made_windows(suite.layout, task, rows, table.horizon)
        loss_f = rows["f_mase"].to_numpy(dtype=float)
        for framework, answer in read_answers(task.name, windows).items():
            if isinstance(answer, str):
                nothing = dict.fromkeys(COLUMNS[2:-1], float("nan"))
                about = {"task": task.name, "framework": framework, "use": answer}
                records.append({**about, **nothing})
                continue
            loss = scaled_errors(windows.future, answer.mean, windows.scale)
            gap = weighted_mean_interval(
                loss - loss_f, None, windows.items, level=level
            )
            certificate = certificates.get(task.name)
            records.append(
                {
                    "task": task.name,
                    "framework": framework,
                    "mase": float(loss.mean()),
                    "mase_f": float(loss_f.mean()),
                    "difference": gap.point,
                    "low": gap.low,
                    "high": gap.high,
                    "use": certificate.verdict if certificate else "not certified",
                }
            )
    return pd.DataFrame(records, columns=COLUMNS)


def made_text(made: pd.DataFrame) -> str:
    """Return the table for a terminal, with what it may not be used for; empty without rows."""
    if made.empty:
        return ""
    rows = []
    for record in made.to_dict("records"):
        limits = f"{record['low']:+.3f} to {record['high']:+.3f}"
        numbers = [record["mase"], record["mase_f"], record["difference"], limits]
        rows.append([record["task"], record["framework"], *numbers, record["use"]])
    headers = ["made windows", "framework", "MASE", "F", "difference", "95 %", "use"]
    lines = [
        text_table(headers, rows),
        "frameworks saw made pasts alone, F learnt from real ones; 'rank' alone may order models",
    ]
    return "\n".join(lines) + "\n"
