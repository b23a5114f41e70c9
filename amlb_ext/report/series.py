"""The report on a suite of series: predictions of ``_full`` tasks, AMLB's or fev's, against F.

What is compared are windows of series at the test origins. All after that is the report of any
suite, see :mod:`amlb_ext.report`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from amlb_ext.amlb.definition import Job
from amlb_ext.comparison.forecasts import (
    SHOWN_LOSSES,
    judge_windows,
    known_loss,
    window_notes,
    windows_with_losses,
)
from amlb_ext.comparison.window_pictures import draw_legend, draw_window, window_title
from amlb_ext.core.errors import ConfigError, DataError, ModelError, RunError
from amlb_ext.core.losses import Loss
from amlb_ext.core.task import Column
from amlb_ext.core.unit import WINDOW, F
from amlb_ext.models.forecasters import LEVELS, Forecasts, check_forecasts
from amlb_ext.pipeline.made_files import read_made_windows, read_provenance
from amlb_ext.report.build import (
    BROKEN,
    assemble_report,
    check_level,
    suite_overview,
)
from amlb_ext.report.charts import MOST_LINES, framework_colours
from amlb_ext.report.compare import compare_units
from amlb_ext.report.described import TaskSettings, describe_task
from amlb_ext.report.inline import COLOUR
from amlb_ext.report.model import (
    BuiltTask,
    Chart,
    ColourRole,
    ReportSection,
    SuiteReport,
    TaskReport,
)
from amlb_ext.report.parts import COLUMNS as SCORE_COLUMNS
from amlb_ext.report.predictions import (
    job_table,
    score_contradiction,
    score_warnings,
)
from amlb_ext.report.still import POINTS_PER_INCH, canvas, figure_to_svg
from amlb_ext.runner.jobs import read_benchmark_jobs
from amlb_ext.runner.results import read_predictions
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.stats.window_losses import (
    MASE,
    read_window_loss,
    scaled_errors,
)
from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.series_manifest import GA, MAIN_KIND
from amlb_ext.swap.answer import SwapRows
from amlb_ext.units.failing_windows import FailingWindows
from amlb_ext.units.fev_predictions import FevPredictions, open_fev_predictions
from amlb_ext.units.origins import Windows
from amlb_ext.units.region import RegionWeights
from amlb_ext.units.rolling import RolledForecasts, request_at, score_forecasts
from amlb_ext.units.stored_windows import ForecastSuite, ForecastTable
from amlb_ext.validity import Certificate, read_certificates

#: Two truths that differ by more than this share are not of one table.
_TRUTH_TOLERANCE = 1e-6
#: Windows on which F does worst that are drawn of a table, and of all tables together.
_WORST, _ALL_WORST = 6, 24
#: Width and height of the picture of a window, in inches.
_PICTURE_SIZE = (6.4, 3.3)


def build_series_report(
    directory: str | Path,
    results: Sequence[str | Path] = (),
    *,
    predictions: Mapping[str, Path] = MappingProxyType({}),
    segments: Sequence[str] = (),
    loss: Any = None,
    level: float = 0.95,
    charts: bool = True,
) -> SuiteReport:
    """Compare forecasters with F, on each table of a suite.

    Parameters
    ----------
    directory : path
        The suite.
    results : sequence of path
        AMLB's output folders. Of several runs of a job the latest that was scored counts. With
        none the report tells of the suite alone.
    predictions : mapping of str to path
        Predictions that were made with fev, by the names that the report calls them; see
        :mod:`amlb_ext.units.fev_predictions`.
    segments : sequence of str
        Windows whose change of loss is told for itself, by ``series``, ``cutoff`` or a feature of
        the past; see :func:`amlb_ext.swap.segments.read_segments`.
    loss : str or callable, optional
        What is compared, see :func:`amlb_ext.stats.window_losses.read_window_loss`; the MASE by
        default. A table that it does not fit keeps that, and says so. Bad windows stay those that
        the suite chose.
    level : float
        Nominal coverage of intervals, between 0 and 1.
    charts : bool
        Whether to draw charts.

    Returns
    -------
    SuiteReport
        A task of the report is a table of the suite.

    Raises
    ------
    RunError
        A folder holds no results of the suite; or a file of fev's predictions does not fit its
        task.
    ConfigError
        Predictions have the name of a framework, the level does not lie between 0 and 1, no table
        has a segment, or the loss fits no table.
    DataError
        A function of the user's raises, or returns something else than a number for each window.
    SuiteError
        The suite cannot be read.
    """
    check_level(level)
    compared = MASE if loss is None else read_window_loss(loss)
    suite = ForecastSuite.load(directory)
    entrants = _find_entrants(suite, results, predictions)
    colours = framework_colours(sorted(entrants, key=str.lower))
    certificates = read_certificates(suite)
    # many tables share what the page may weigh
    worst = min(_WORST, max(1, _ALL_WORST // len(suite.tables))) if charts else 0
    settings = TaskSettings(
        colours=colours, level=level, points=worst, segments=segments, loss=compared
    )
    built_tasks = []
    jobs = []
    for table in suite.tables:
        # of the made windows or, where there are none, of all
        named = [amlb_name(table.name, kind) for kind in (GA, MAIN_KIND)]
        own = [certificates[name] for name in named if name in certificates]
        built_task, own_jobs = _build_table(
            table,
            entrants,
            settings,
            certificate=own[0] if own else None,
            made=score_made_windows(suite, table, entrants, level),
            seed=suite.manifest.seed,
        )
        built_tasks.append(built_task)
        jobs += own_jobs
    root = shlex.quote(str(suite.layout.root))
    all_jobs = job_table(jobs)
    taken = {*predictions}
    commands = []
    for statuses in (BROKEN, ("not run",)):
        of_status = all_jobs[all_jobs["status"].isin(statuses)]
        names = [name for name in of_status["name"].unique() if name not in taken]
        taken.update(names)
        commands.append(
            tuple(f"hardsynth run {shlex.quote(name)} -u {root}" for name in names)
        )
    return assemble_report(
        built_tasks,
        all_jobs,
        settings,
        unit=WINDOW,
        name=suite.name,
        about=suite_overview(suite.name, [task.report for task in built_tasks], WINDOW)
        | {
            "Seed": str(suite.manifest.seed),
            "hardsynth": suite.manifest.version,
        },
        commands=commands[0],
        needed=commands[1],
    )


@dataclass(frozen=True, kw_only=True)
class _Entrant:
    """Where the predictions of a forecaster stand: in AMLB's runs by task, or in fev's files.

    Attributes
    ----------
    jobs : dict of str to dict
        By task, see :attr:`amlb_ext.runner.jobs.JobTable.table`.
    fev : FevPredictions or None
    """

    jobs: Mapping[str, Mapping[str, Any]]
    fev: FevPredictions | None = None

    @property
    def runs(self) -> dict[str, Path]:
        """The runs of the jobs that were scored, by task."""
        return {
            task: Path(job["run"])
            for task, job in self.jobs.items()
            if job["status"] == "scored"
        }

    def answers(
        self, table: ForecastTable, failing: FailingWindows, name: str
    ) -> list[Forecasts | str]:
        """Return the forecasts of each main task of a table, or why they cannot be used."""
        if self.fev is not None:
            read = self.fev.read(table, failing)
            return [read] * len(failing.tests) if isinstance(read, str) else [*read]
        answers: list[Forecasts | str] = []
        for task, windows in zip(table.main_tasks, failing.tests, strict=True):
            answer = self.answer(task.name, windows)
            if isinstance(answer, Forecasts):
                request = request_at(failing.panel, windows)
                try:
                    answer = check_forecasts(answer, request, name)
                except ModelError as error:
                    answer = error.message
            answers.append(answer)
        return answers

    def answer(self, task: str, windows: Windows) -> Forecasts | str:
        """Return a framework's forecasts in the windows' order, or why they cannot be used.

        AMLB's rows are sorted by id and time, and ids are in the panel's order; their ranks show
        items that a framework dropped.
        """
        job = self.jobs[task]
        if job["status"] != "scored":
            return str(job["reason"])
        try:
            table = read_predictions(
                job["run"], task, 0, framework=job["name"], has_classes=False
            )
        except RunError as error:
            return str(error)
        n, horizon = windows.future.shape
        if "repeated_item_id" not in table.columns:
            return "its predictions are not those of series"
        ranks, counts = np.unique(table["repeated_item_id"], return_counts=True)
        if len(ranks) < n or len(table) != n * horizon or (counts != horizon).any():
            return f"it predicts {len(ranks)} of {n} series; AMLB takes the mean of those alone"
        truth = table["truth"].to_numpy().reshape(n, horizon)
        size = np.abs(windows.future).max(axis=1, keepdims=True)
        if (np.abs(truth - windows.future) > _TRUTH_TOLERANCE * size).any():
            return "its predictions are of other data than the suite's"
        mean = table["predictions"].to_numpy().reshape(n, horizon)
        broken = ~np.isfinite(mean).all(axis=1)
        if broken.any():
            return f"it predicts NaN or infinity for {int(broken.sum())} of {n} series"
        columns = [str(level) for level in LEVELS]
        if not set(columns) <= set(table.columns):
            return Forecasts(mean=mean)
        quantiles = table[columns].to_numpy().reshape(n, horizon, len(columns))
        return Forecasts(mean=mean, quantiles=quantiles)


def _find_entrants(
    suite: ForecastSuite,
    results: Sequence[str | Path],
    predictions: Mapping[str, Path],
) -> dict[str, _Entrant]:
    """Return the jobs of each framework by task of the suite, and what fev predicted."""
    jobs: dict[str, dict[str, dict[str, Any]]] = {}
    if results:
        wanted = [Job(task.name, 0) for t in suite.tables for task in t.main_tasks]
        tasks = [task.name for task in suite.manifest.listed]
        found = read_benchmark_jobs(tasks, *results, wanted=wanted).table
        for job in found[found["fold"] == 0].to_dict("records"):
            jobs.setdefault(job["framework"], {})[job["amlb_task"]] = job
    if results and not jobs:
        raise RunError(
            f"no predictions of {suite.layout.root} in {', '.join(map(str, results))}",
            f"hardsynth run HardsynthForecast -u {shlex.quote(str(suite.layout.root))} -r OUT",
        )
    entrants = {name: _Entrant(jobs=own) for name, own in jobs.items()}
    for name, path in predictions.items():
        if name in jobs or name == F:
            raise ConfigError(
                f"--predictions {name}={path}: {name} is another forecaster's name",
                "write --predictions NAME=FILE with another name",
            )
        entrants[name] = _Entrant(jobs={}, fev=open_fev_predictions(path, suite))
    return entrants


def _build_table(
    table: ForecastTable,
    entrants: Mapping[str, _Entrant],
    settings: TaskSettings,
    *,
    certificate: Certificate | None,
    made: pd.DataFrame,
    seed: int,
) -> tuple[BuiltTask, list[dict[str, Any]]]:
    """Set the candidates against F on a table; return its part of the report, and the jobs."""
    failing = table.read_failing_windows()
    if certificate is not None and certificate.no_region:
        # what the certificate does not find is claimed nowhere
        reason = failing.weighting.reason or certificate.no_region
        failing = replace(failing, weighting=RegionWeights(reason=reason))
    failing, loss, unfit = _with_loss(failing, settings.loss)
    rolled, own, incomplete, other_scores = {}, [], {}, {}
    jobs = []
    for name, entrant in entrants.items():
        answers = entrant.answers(table, failing, name)
        own_jobs = _jobs_of(name, entrant, table, answers)
        jobs += own_jobs
        usable = [answer for answer in answers if isinstance(answer, Forecasts)]
        if len(usable) < len(answers):
            lacking = [job for job in own_jobs if job["status"] != "scored"]
            first = lacking[0]
            more = f", and {len(lacking) - 1} more" if lacking[1:] else ""
            why = f"{first['status']} ({first['reason']})"
            incomplete[name] = f"{first['amlb_task']} {why}{more}"
            continue
        said = score_forecasts(usable, failing.tests)
        if texts := _other_scores(own_jobs, said, failing):
            other_scores[name] = texts
        rolled[name] = said.with_loss(loss, failing.tests)
        same = np.allclose(
            rolled[name].mean, failing.forecasts.mean, rtol=_TRUTH_TOLERANCE
        )
        if same:
            own.append(name)
    notes = []
    # F is no candidate: it would count among the comparisons that verdicts are adjusted for
    if own:
        names = ", ".join(own)
        notes.append(f"{names} forecasts what F does: it is F itself, and no candidate")
    if unfit is not None:
        notes.append(f"{unfit.message}, so the table is judged by {loss.title}")
    others = {name: said for name, said in rolled.items() if name not in own} or rolled
    twins = table.read_twins(failing)
    if twins and loss.name not in twins[0].losses:
        notes.append(
            f"of F's twins the suite keeps no forecasts, and so no {loss.title}; with mase, mae, "
            "and sql, wql and crps where F has quantiles, it has their losses"
        )
        twins = []
    losses = {}
    for name, said in others.items():
        try:
            # what was written and read again differs from F by rounding
            losses[name] = known_loss(
                failing.forecasts if name in own else said, name, loss
            )
        except DataError as error:
            incomplete[name] = error.message
    comparison = compare_units(
        table.name,
        judge_windows(failing, twins, loss=loss, level=settings.level),
        pd.DataFrame(losses, index=range(len(failing.items))),
        fold_of=failing.cutoffs,
        folds=len(failing.tests),
        incomplete=incomplete,
    )
    n_made = {}
    for task in table.tasks:
        if task.kind in (GA, "synthetic"):
            n_made[task.kind] = len(task.items)
    known = failing.known_beforehand()
    in_unit = " in the target's own unit" if loss.unit == "target" else ""
    title = f"{loss.title}{in_unit}"
    built = describe_task(
        table.name,
        comparison,
        SwapRows.of_losses(
            comparison.judged, known, no_refits="the suite keeps none of its fits"
        ),
        settings,
        columns=[Column(feature, "numeric") for feature in known],
        loss=title,
        metric=loss.name,
        segment_table=pd.concat([failing.table(), known], axis=1),
        seed=seed,
    )
    everyone = {F: failing.forecasts, **others}
    sections = [_windows_section(built.report, failing, everyone, settings)]
    if len(made):
        section = ReportSection(
            key="made",
            title="Made windows",
            about="Frameworks saw made pasts alone, F learnt from real ones. Only the "
            "certificate “rank” may order models here.",
            table=made,
        )
        sections.append(section)
    report = replace(
        built.report,
        kind="forecasting",
        target=str(table.entry.made.get("roles", {}).get("target", "")),
        rows={"full": len(failing.items), "bad": int(failing.is_bad.sum()), **n_made},
        folds=len(failing.tests),
        certificate=certificate,
        # of a table alone: a loss that it does not have is no job without a score
        warnings=(
            *(f"{name}: {why}." for name, why in incomplete.items()),
            *score_warnings(other_scores),
        ),
        scores=_score_table(built.report, failing, everyone, settings.level),
        notes=(
            *built.report.notes,
            *notes,
            *window_notes(failing, others, len(twins), loss),
        ),
        sections=(*built.report.sections, *sections),
    )
    return replace(built, report=report, unfit=unfit), jobs


def _with_loss(
    failing: FailingWindows, loss: Loss
) -> tuple[FailingWindows, Loss, DataError | None]:
    """Return F's windows with the loss that can be compared, and why it is another one."""
    forecasts = failing.forecasts.with_loss(loss, failing.tests)
    try:
        known_loss(forecasts, F, loss)
    except DataError as error:
        return failing, MASE, error
    return replace(failing, forecasts=forecasts), loss, None


def _jobs_of(
    name: str,
    entrant: _Entrant,
    table: ForecastTable,
    answers: Sequence[Forecasts | str],
) -> list[dict[str, Any]]:
    """Return the jobs that a forecaster's predictions of a table stand for."""
    jobs = []
    for task, answer in zip(table.main_tasks, answers, strict=True):
        of_fev = {
            "framework": name,
            "name": name,
            "amlb_task": task.name,
            "fold": 0,
            "status": "scored",
        }
        job = dict(entrant.jobs.get(task.name, of_fev))
        if isinstance(answer, str) and job["status"] == "scored":
            job |= {"status": "refused", "reason": answer}
        jobs.append(job)
    return jobs


def _other_scores(
    jobs: Sequence[Mapping[str, Any]], said: RolledForecasts, failing: FailingWindows
) -> list[str]:
    """Return where AMLB's score of a task is not that of the predictions."""
    ends = np.cumsum([len(windows.items) for windows in failing.tests])
    texts = []
    for job, end, windows in zip(jobs, ends, failing.tests, strict=True):
        metric = str(job.get("metric", "")).removeprefix("neg_")
        # means over series; the wql of a task is no mean over windows of several
        if metric in ("mase", "mae", "sql") and metric in said.losses:
            losses = said.losses[metric][end - len(windows.items) : end]
            if text := score_contradiction(job, losses.mean()):
                texts.append(f"on {job['amlb_task']} {text}")
    return texts


def _score_table(
    task: TaskReport,
    failing: FailingWindows,
    everyone: Mapping[str, RolledForecasts],
    level: float,
) -> pd.DataFrame:
    """Return the mean losses of F and each forecaster: on all windows, the region and bad ones.

    Intervals are clustered by series; there is none on the bad windows, which F's errors chose.
    """
    inside = failing.weighting.inside
    parts: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "full": (np.ones(len(failing.items), dtype=bool), None),
        "bad": (failing.is_bad, None),
    }
    if inside is not None:
        parts["region"] = (parts["full"][0], inside)
    rows = []
    for name, said in everyone.items():
        for metric in dict.fromkeys([task.metric, *SHOWN_LOSSES]):
            values = said.losses.get(metric)
            # of zeros alone the WQL is no number
            if values is None or np.isnan(values).any():
                continue
            for part, (is_in, part_weights) in parts.items():
                # AMLB's WQL of some windows would be a share of their own sizes
                if metric == "wql" and part != "full":
                    continue
                estimate = weighted_mean_interval(
                    values[is_in], part_weights, failing.items[is_in], level=level
                )
                has_interval = part != "bad"
                rows.append(
                    {
                        "task": task.name,
                        "framework": name,
                        "part": part,
                        "metric": metric,
                        "value": estimate.point,
                        # no loss is below 0
                        "low": max(estimate.low, 0.0) if has_interval else np.nan,
                        "high": estimate.high if has_interval else np.nan,
                        "rows": int(is_in.sum()),
                        "folds": len(failing.tests),
                        "direction": "lower",
                    }
                )
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


def _windows_section(
    task: TaskReport,
    failing: FailingWindows,
    everyone: Mapping[str, RolledForecasts],
    settings: TaskSettings,
) -> ReportSection:
    """Return the windows, those on which F does worst first and drawn."""
    windows = windows_with_losses(failing, everyone, task.metric)
    windows["cutoff"] = [failing.panel.time_text(cutoff) for cutoff in failing.cutoffs]
    hardest = np.argsort(-failing.hardness, kind="stable")
    windows.insert(0, "task", task.name)
    best_first = task.asked("all rows").sort_values("difference")
    shown = [n for n in best_first["framework"] if n in everyone][:MOST_LINES]
    forecasts = {name: everyone[name] for name in shown}
    return ReportSection(
        key="windows",
        title="Windows on which F does worst",
        about="The past, what came, and what was forecast; shaded: F’s 10 % to 90 % quantiles.",
        table=windows.iloc[hardest],
        charts=tuple(
            _window_chart(task.name, failing, int(window), forecasts, settings.colours)
            for window in hardest[: settings.points]
        ),
        most=5,
    )


def _window_chart(
    task: str,
    failing: FailingWindows,
    window: int,
    forecasts: Mapping[str, RolledForecasts],
    colours: Mapping[str, ColourRole],
) -> Chart:
    """Return a window: the past, what came, and what F and the best candidates forecast."""
    cutoff = failing.panel.time_text(int(failing.cutoffs[window]))
    chart = Chart(
        key=f"{task}-window-{window}",
        title=window_title(failing, window),
        about=f"Last value seen: {cutoff}.",
    )
    roles: list[ColourRole] = ["ink", "bad", *(colours[name] for name in forecasts)]
    with canvas(chart.key):
        figure = Figure(_PICTURE_SIZE, dpi=POINTS_PER_INCH)
        axes = figure.subplots()
        inks = [COLOUR[role] for role in roles]
        draw_legend(figure, draw_window(axes, failing, forecasts, window, inks))
        return replace(chart, drawn=figure_to_svg(figure, chart))


def score_made_windows(
    suite: ForecastSuite,
    table: ForecastTable,
    entrants: Mapping[str, _Entrant],
    level: float,
) -> pd.DataFrame:
    """Return one row for each framework and made task that it ran.

    Parameters
    ----------
    suite : ForecastSuite
    table : ForecastTable
        Of the suite.
    entrants : mapping of str to _Entrant
        Of them those that AMLB ran.
    level : float

    Returns
    -------
    DataFrame
        ``task``, ``framework``, its ``mase`` and that of F, their ``difference`` with limits
        ``low`` and ``high``, clustered by the series that windows were made of, and ``use``: the
        certificate's verdict, or ``not certified``.
    """
    records: list[dict[str, Any]] = []
    tasks = [task for task in table.tasks if task.kind == GA]
    if not tasks:
        return pd.DataFrame()
    provenance = read_provenance(table)
    certificates = read_certificates(suite)
    for task in tasks:
        rows = provenance[provenance["task"] == task.name]
        windows = read_made_windows(suite.layout, task, rows, table.horizon)
        loss_f = rows["f_mase"].to_numpy(dtype=float)
        for framework, entrant in entrants.items():
            if task.name not in entrant.runs:
                continue
            answer = entrant.answer(task.name, windows)
            if isinstance(answer, str):
                records.append(
                    {"task": task.name, "framework": framework, "use": answer}
                )
                continue
            loss = scaled_errors(windows.future, answer.mean, windows.scale)
            gap = weighted_mean_interval(
                loss - loss_f, None, windows.items, level=level
            )
            certificate = certificates.get(amlb_name(table.name, GA))
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
    columns = [
        "task",
        "framework",
        "mase",
        "mase_f",
        "difference",
        "low",
        "high",
        "use",
    ]
    return pd.DataFrame(records, columns=columns)
