"""Build a report: of a suite of tables from AMLB's results, and of any suite from its tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_count, format_number
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.core.progress import Bar
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.hardening.rules import BY_KIND
from amlb_ext.report.charts import framework_colours, trade_off_chart
from amlb_ext.report.coders import beside_systems, read_coder_runs
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.described import TaskSettings
from amlb_ext.report.given_predictions import (
    CONSTRAINT,
    find_predictions,
    read_given_predictions,
)
from amlb_ext.report.glossary import comparison_glossary
from amlb_ext.report.losses import unfit_loss
from amlb_ext.report.model import (
    BuiltTask,
    FrameworkRanks,
    ReportSection,
    SuiteReport,
    TaskReport,
)
from amlb_ext.report.overall import (
    advice,
    answer_matrix,
    baseline_alarm,
    caveat_sentences,
    overall_table,
    verdict_sentence,
)
from amlb_ext.report.ranks import mean_losses, rank_tasks
from amlb_ext.report.task import build_task_report
from amlb_ext.report.wins import gain_section, win_section
from amlb_ext.runner.jobs import (
    JobTable,
    jobs_for_verdict,
    read_jobs,
    rerun_commands,
)
from amlb_ext.runner.run_folder import output_folder
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.layout import amlb_name
from amlb_ext.validity import read_certificates

#: Points of a task's largest chart.
MOST_POINTS = 400
#: Points of the largest charts of all tasks together, for the size of the page.
ALL_POINTS = 6000
#: Statuses of jobs that were asked for and have no score.
BROKEN = ("failed", "missing", "refused")
#: Columns of jobs without a score.
JOBS_SHOWN = ("framework", "amlb_task", "fold", "status", "reason")
NO_RESULTS = (
    "There are no results yet, so this report describes the suite only. Run a framework, then name "
    "its output folder with --results; or give predictions with --predictions NAME=FILE."
)


def build_report(
    directory: str | Path,
    results: Sequence[str | Path] = (),
    *,
    predictions: Mapping[str, Path] = MappingProxyType({}),
    workers: int = 1,
    segments: Sequence[str] = (),
    loss: Any = None,
    level: float = 0.95,
    swaps: bool = True,
    refits: int = 0,
    charts: bool = True,
    quiet: bool = True,
) -> SuiteReport:
    """Read results, join them to the suite, and judge the frameworks.

    Parameters
    ----------
    directory : path
        A finished suite.
    results : sequence of path
        AMLB's output folders, or single runs in them, and folders that ``hardsynth export --for
        tabarena`` wrote, after a run; with none the report tells of the suite alone.
    predictions : mapping of str to path
        Files of predictions by the name that they get in the report; see
        :mod:`amlb_ext.report.given_predictions`.
    workers : int
        Processes, one task each; 0 for every core. They change nothing but time.
    segments : sequence of str
        Columns, and conditions on columns, of rows whose change of loss is told for itself; see
        :func:`amlb_ext.swap.segments.read_segments`. A task without one says so.
    loss : optional
        What is compared, see :func:`amlb_ext.core.losses.read_loss`. A task that it does not fit
        keeps the suite's own, the Brier loss or the squared error of the scaled target, and says
        so. Bad rows stay those that the suite chose.
    level : float
        Nominal coverage of intervals, between 0 and 1.
    swaps : bool
        Whether to tell who loses where F is replaced: 3 s for each framework on 10,000 rows.
    refits : int
        How often F is fitted again on bootstrap samples of each fold's training rows, for a
        verdict on harm; 0 for none.
    charts : bool
        Whether to draw the charts, which the page and the files beside it alone need.
    quiet : bool
        Show no progress bar.

    Returns
    -------
    SuiteReport

    Raises
    ------
    SuiteError
        The suite is unfinished or damaged.
    RunError
        A folder has no results, or none of this suite.
    ModelError
        A file of predictions that does not fit the suite.
    ConfigError
        The level does not lie between 0 and 1, a name is taken, no task has a segment, or the loss
        fits no task.
    """
    check_level(level)
    suite = SuiteFiles.load(directory)
    unfit = [
        unfit_loss(
            loss,
            labels=task.coding.labels,
            is_classification=task.kind.is_classification,
        )
        for task in suite.tasks.values()
    ]
    if unfit and unfit[0] is not None and all(unfit):
        raise unfit[0]
    of_amlb, all_predictions = find_predictions(results, predictions)
    given_jobs, given_tables = read_given_predictions(suite, all_predictions)
    found = _find_jobs(suite, of_amlb, given_jobs)
    coders = read_coder_runs(suite, found.table)
    for run in coders:
        if run.why_unscored:
            is_job = found.table["run"] == str(run.folder.parents[2])
            is_job &= found.table["amlb_task"] == run.task
            is_job &= found.table["fold"] == run.fold
            found.table.loc[is_job, ["status", "reason"]] = "failed", run.why_unscored
    names = frameworks_in_order(found.table)
    # F's own controls are no candidates: without them there is a verdict.
    is_control = found.table["name"].map(is_control_framework).astype(bool)
    needed = jobs_for_verdict(found.table[~is_control], suite)
    colours = framework_colours(names)
    settings = TaskSettings(
        colours=colours,
        level=level,
        points=points_per_chart(len(suite.tasks)) if charts else 0,
        segments=segments,
        loss=loss,
        swaps=swaps,
        refits=refits,
    )
    certificates = read_certificates(suite)
    task_of_job = found.table["amlb_task"].map(lambda name: suite.amlb_tasks[name].task)
    inputs = []
    for task in suite.tasks:
        given = {
            key: table
            for key, table in given_tables.items()
            if suite.amlb_task(key[1]).task == task
        }
        own_jobs = found.table[task_of_job == task]
        own_needed = needed[needed["amlb_task"] == amlb_name(task, "full")]
        certificate = certificates.get(task)
        root = str(suite.layout.root)
        inputs.append((root, task, own_jobs, certificate, own_needed, given, settings))
    built_tasks = build_in_order(build_task_report, inputs, workers, quiet)
    jobs = with_refusals(found.table, built_tasks)
    tasks = [built_task.report for built_task in built_tasks]
    # what comparisons rest on
    untouched = {
        name: task.test_rows[0]
        for name, task in suite.amlb_tasks.items()
        if task.suffix == "full"
    }
    commands: dict[str, tuple[str, ...]] = {}
    if results:
        out = output_folder(Path(results[0]))
        broken = jobs[jobs["status"].isin(BROKEN)]
        by_amlb = needed[needed["constraint"] != CONSTRAINT]
        commands["commands"] = tuple(rerun_commands(broken, suite, out))
        commands["needed"] = tuple(rerun_commands(by_amlb, suite, out))
    return assemble_report(
        built_tasks,
        jobs,
        settings,
        unit=ROW,
        name=suite.manifest.name,
        about=suite_overview(suite.manifest.name, tasks, ROW)
        | {
            "Baseline F": str(suite.manifest.config["baseline"]["model"]),
            "Preset": str(suite.manifest.config.get("preset", "")),
            "Seed": str(suite.manifest.seed),
            "hardsynth": suite.manifest.version,
            "Made by": suite.manifest.command,
        },
        caveats=_unsure_sentences(suite.manifest.config, tasks),
        warnings=_claim_warnings(tasks, needed),
        sections=beside_systems(coders, untouched),
        notes=tuple(found.notes),
        **commands,
    )


def check_level(level: float) -> None:
    """Raise ``ConfigError`` where the coverage of an interval is no number between 0 and 1."""
    if not 0 < level < 1:
        raise ConfigError(
            f"the level of an interval is {level:g}, wanted a number between 0 and 1",
            "leave it out for 0.95",
        )


def points_per_chart(n_tasks: int) -> int:
    """Return the most points of a chart: many tasks share what the page may weigh."""
    return min(MOST_POINTS, ALL_POINTS // max(1, n_tasks))


def frameworks_in_order(jobs: pd.DataFrame) -> list[str]:
    """Return the frameworks by name, F's own controls behind the others."""
    return sorted(
        jobs["framework"].unique(),
        key=lambda name: (is_control_framework(name), name.lower()),
    )


def _find_jobs(
    suite: SuiteFiles, results: Sequence[str | Path], given: pd.DataFrame
) -> JobTable:
    """Return the jobs of the results, and those that predictions stand for."""
    if not results:
        return JobTable(given, pd.DataFrame())
    found = read_jobs(suite, *results)
    if not len(given):
        return found
    taken = sorted(set(given["framework"]) & set(found.table["framework"]))
    if taken:
        raise ConfigError(
            f"--predictions {taken[0]}: the results have a framework of that name",
            "write --predictions NAME=FILE with another name",
        )
    table = pd.concat([found.table, given], ignore_index=True)
    return replace(found, table=table)


def build_in_order(
    build: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    workers: int,
    quiet: bool,
) -> list[Any]:
    """Return what each task's inputs are made into, in a process of its own, in their order."""
    # A process without a task would cost its start alone.
    workers = min(workers or available_cores(), max(1, len(inputs)))
    # Tasks finish in any order.
    built: dict[int, Any] = {}
    with Bar(total=len(inputs), desc="report", unit="task", disable=quiet) as bar:
        for index, part in run_jobs(build, inputs, workers):
            built[index] = part
            bar.update()
    return [built[index] for index in sorted(built)]


def with_refusals(jobs: pd.DataFrame, built_tasks: Sequence[BuiltTask]) -> pd.DataFrame:
    """Return the jobs with those whose predictions were read, and cannot be used."""
    jobs = jobs.copy()
    for built_task in built_tasks:
        for index, why in built_task.refused.items():
            jobs.loc[index, ["status", "reason"]] = "refused", why
    return jobs


def assemble_report(
    built_tasks: Sequence[BuiltTask],
    jobs: pd.DataFrame,
    settings: TaskSettings,
    *,
    unit: Unit,
    name: str,
    about: dict[str, str],
    caveats: Sequence[str] = (),
    warnings: Sequence[str] = (),
    sections: Sequence[ReportSection] = (),
    **more: Any,
) -> SuiteReport:
    """Return the report on tasks whose frameworks are set against F.

    Parameters
    ----------
    built_tasks : sequence of BuiltTask
    jobs : DataFrame
        With the columns :data:`amlb_ext.runner.jobs.JOB_COLUMNS`; ``refused`` is a status, too.
    settings : TaskSettings
    unit : Unit
    name : str
        Of the suite.
    about : dict of str to str
        What the suite holds and was made with, by label.
    caveats, warnings : sequence of str
    sections : sequence of ReportSection
        Beside those that all suites have.
    **more
        Further fields of :class:`~amlb_ext.report.model.SuiteReport`.

    Raises
    ------
    ConfigError
        No task has a segment that was named, or a loss that was named fits none.
    """
    unfit = [built_task.unfit for built_task in built_tasks]
    if unfit and unfit[0] is not None and all(unfit):
        raise ConfigError(unfit[0].message, unfit[0].remedy)
    for text, error in built_tasks[0].lacking.items() if built_tasks else ():
        if all(text in built_task.lacking for built_task in built_tasks):
            raise ConfigError(f"{error.message}, in no task of the suite", error.remedy)
    tasks = [built_task.report for built_task in built_tasks]
    names = frameworks_in_order(jobs)
    compared = {name for task in tasks for name in task.contrasts["framework"]}
    ranks = _rank_frameworks(built_tasks, [n for n in names if n in compared])
    overall = overall_table(tasks, ranks, settings.level)
    # A suite can be looked at before anything is run on it.
    verdict, shown_caveats = NO_RESULTS, []
    if len(jobs):
        verdict = verdict_sentence(answer_matrix(tasks, overall, settings.level), unit)
        limits = caveat_sentences(tasks, overall, unit)
        shown_caveats = [advice(unit), *caveats, *limits]
    has_charts, level = settings.points > 0, settings.level
    chart = trade_off_chart(tasks, settings.colours) if has_charts else None
    # who wins against whom and what is left to gain, where F is the F that was run
    judged = [built_task for built_task in built_tasks if not built_task.report.alarm]
    contrasts = []
    for built_task in judged:
        table = built_task.report.contrasts
        if len(table):
            table = table[~table["framework"].map(is_control_framework)]
        contrasts.append(table)
    duels = [one.duels for one in judged]
    gains = [record for one in judged for record in one.gains]
    over_tasks = [
        win_section(contrasts, duels, unit, level),
        gain_section(gains, unit, level, charts=has_charts),
    ]
    # "not run" is listed too: the reader sees what a verdict does not rest on.
    unscored = jobs.loc[jobs["status"] != "scored", list(JOBS_SHOWN)]
    # An F that is another one makes all else moot.
    alarms = [f"{task.shown_name}: {task.alarm}" for task in tasks if task.alarm]
    question = f"Which framework really improves on the {unit.many} where today’s model F fails?"
    return SuiteReport(
        name=name,
        question=more.pop("question", question),
        unit=unit,
        glossary=comparison_glossary(unit),
        about=about,
        verdict=(*baseline_alarm(tasks), verdict),
        warnings=(*alarms, *job_warnings(jobs), *warnings),
        tasks=tuple(tasks),
        sections=(*filter(None, over_tasks), *sections),
        overall=overall,
        ranks=ranks,
        frameworks=framework_table(jobs, names),
        jobs=unscored.reset_index(drop=True),
        level=level,
        caveats=tuple(shown_caveats),
        charts=() if chart is None else (chart,),
        **more,
    )


def _unsure_sentences(
    settings: Mapping[str, Any], tasks: Sequence[TaskReport]
) -> list[str]:
    """Return what *where F fails* means in a suite of the rows of which F is unsure."""
    rule = settings.get("hardness", {}).get("rule", "")
    of_classes = BY_KIND.get(rule, (rule, rule))[0]
    if of_classes != "band" or not any(task.kind != "regression" for task in tasks):
        return []
    return [
        "Bad rows of classes are those of which F is unsure (rule band), and most often right: "
        'read "where F fails" as "where F is unsure".'
    ]


def _rank_frameworks(
    built_tasks: Sequence[BuiltTask], names: Sequence[str]
) -> FrameworkRanks:
    """Rank F and the candidates by their losses on the untouched test folds.

    A candidate without whole results on at least half of those is left out, lest it take the
    tasks away from all others.
    """
    left_out: dict[str, str] = {}
    judged: list[BuiltTask] = []
    for built_task in built_tasks:
        report = built_task.report
        if report.alarm or report.heavy_tail:
            left_out[report.name] = report.alarm or report.heavy_tail
        else:
            judged.append(built_task)

    # Who is ranked: the candidates with whole results on at least half of the judged tasks.
    fewest_whole = max(1, len(judged)) / 2
    ranked = []
    unranked = []
    for name in names:
        if is_control_framework(name):
            continue
        n_whole = sum(_has_whole_results(task.report, name) for task in judged)
        if n_whole >= fewest_whole:
            ranked.append(name)
        else:
            unranked.append(f"{name} ({n_whole} of {len(judged)} tasks)")

    # Where: the tasks on which all of them have whole results.
    losses_by_task = {}
    for built_task in judged:
        task = built_task.report
        lacking = [name for name in ranked if not _has_whole_results(task, name)]
        if lacking:
            left_out[task.name] = f"no whole results of {', '.join(lacking)}"
        else:
            losses_by_task[task.name] = mean_losses(
                built_task.losses[ranked], built_task.loss_f
            )
    # F alone is not ranked: there would be one rank.
    losses = pd.DataFrame(losses_by_task).T if ranked else pd.DataFrame()
    ranks = rank_tasks(losses, left_out)
    if not unranked:
        return ranks
    not_ranked = f"Not ranked, for want of whole results: {', '.join(unranked)}."
    return replace(ranks, about=f"{ranks.about} {not_ranked}")


def _has_whole_results(task: TaskReport, framework: str) -> bool:
    """Whether a framework has results on a task, and none of its jobs there failed."""
    is_own = task.contrasts["framework"] == framework
    verdicts = task.contrasts.loc[is_own, "verdict"]
    return len(verdicts) > 0 and "incomplete" not in set(verdicts)


def suite_overview(
    name: str, tasks: Sequence[TaskReport], unit: Unit
) -> dict[str, str]:
    """Return what a suite holds, by label."""
    n_folds = sum(task.folds for task in tasks)
    n_units: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for task in tasks:
        n_units.update(task.rows)
        verdicts[task.certificate.verdict if task.certificate else "not certified"] += 1
    parts = ("full", "bad", "ga", "synthetic")
    counts = {part: format_number(n_units[part]) for part in parts}
    # The most frequent verdict first.
    certificates = [f"{count} {verdict}" for verdict, count in verdicts.most_common()]
    many = unit.many
    return {
        "Suite": name,
        "Tasks": f"{len(tasks)}, {format_count(n_folds, unit.fold)}",
        f"Test {many}": f"{counts['full']}, of which {counts['bad']} are bad for F",
        f"Made {many}": f"{counts['ga']} augmented, {counts['synthetic']} synthetic",
        "Certificates": ", ".join(certificates),
    }


def framework_table(jobs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return a row per framework on its jobs; see ``SuiteReport.frameworks``."""
    rows = []
    for framework in names:
        own = jobs[jobs["framework"] == framework]
        n_by_status = own["status"].value_counts()
        row = {
            "framework": framework,
            "name": own["name"].iloc[0],
            "constraint": ", ".join(sorted(set(own["constraint"]))),
            "version": ", ".join(sorted(set(own["version"]) - {""})),
            "runs": own["run"].nunique(),
        }
        for status in ("scored", *BROKEN, "not run"):
            row[status.replace(" ", "_")] = int(n_by_status.get(status, 0))
        # Jobs that failed have no duration.
        seconds = pd.to_numeric(own["duration"], errors="coerce").sum()
        row["minutes"] = float(seconds) / 60
        rows.append(row)
    columns = ["framework", "name", "constraint", "version", "runs"]
    columns += ["scored", *BROKEN, "not_run", "minutes"]
    return pd.DataFrame(rows, columns=columns)


def job_warnings(jobs: pd.DataFrame) -> list[str]:
    """Return one sentence per status of jobs without a usable score."""
    warnings = []
    happened = {
        "refused": "{} refused, whose predictions cannot be used",
        "failed": "{} failed",
        "missing": "{} left no result",
        "not run": "{} of the definition not run",
    }
    for status, text in happened.items():
        affected = jobs[jobs["status"] == status]
        if not len(affected):
            continue
        counted = text.format(format_count(len(affected), "job"))
        # The table of jobs has them all; one is enough to begin with.
        first = affected.iloc[0]
        by_framework = _count_by_framework(affected)
        counts = f"{counted} ({by_framework})."
        job = f"{first['framework']}, {first['amlb_task']}, fold {first['fold']}"
        why = f": {first['reason']}" if first["reason"] else ""
        warnings.append(f"{counts} The first: {job}{why}")
    return warnings


def _claim_warnings(tasks: Sequence[TaskReport], needed: pd.DataFrame) -> list[str]:
    """Return what is missing for claims: certificates, and jobs that nobody has run."""
    warnings = []
    n_uncertified = sum(task.certificate is None for task in tasks)
    if n_uncertified:
        verb = "has" if n_uncertified == 1 else "have"
        which = f"{n_uncertified} of {len(tasks)} tasks {verb}"
        if len(tasks) == 1:
            which = "The only task has"
        warnings.append(
            f"{which} no certificate, so nothing is claimed where F fails: hardsynth certify "
            "writes it."
        )
    if len(needed):
        counted = format_count(len(needed), "job")
        verb = "has" if len(needed) == 1 else "have"
        warnings.append(
            f"{counted} that a verdict needs {verb} not been run "
            f"({_count_by_framework(needed)}): frameworks are compared with F on the untouched "
            "test folds."
        )
    return warnings


def _count_by_framework(jobs: pd.DataFrame) -> str:
    texts = []
    for framework, count in jobs["framework"].value_counts().items():
        texts.append(f"{count} of {framework}")
    return ", ".join(texts)
