"""The report of a folder of tasks: a fold is a run, and some frameworks are language models.

There is no F: frameworks stand beside each other. For a coder there are two scores, never mixed.
*Selected* is AMLB's: the submission that held-out training rows chose. *max@5 on test* is
WeirdML's: the best of the submissions by the labels of the test rows, which no one has who
predicts; it is computed here, afterwards, from the predictions that were kept. What held-out rows
chose and what the labels of the test rows chose never stand in one column, one chart or one
sentence.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_count, format_decimals, format_percent
from amlb_ext.core.errors import ConfigError, RunError
from amlb_ext.core.unit import ROW
from amlb_ext.report.build import (
    JOBS_SHOWN,
    check_level,
    framework_table,
    frameworks_in_order,
    job_warnings,
)
from amlb_ext.report.charts import interval_mark
from amlb_ext.report.coders import (
    CODER_COLUMNS,
    NOT_THE_MODELS,
    CoderRun,
    coder_columns,
    coder_sections,
    headline_table,
    mean_and_spread,
    read_coder_runs,
    run_violins,
    runs_chart,
    runs_section,
    submissions_section,
)
from amlb_ext.report.glossary import CODER_SECTIONS, RUN_SECTIONS
from amlb_ext.report.model import Chart, ReportSection, SuiteReport, TaskReport
from amlb_ext.report.parts import COLUMNS as SCORE_COLUMNS
from amlb_ext.report.predictions import job_table, score_contradiction
from amlb_ext.runner.results import read_predictions, read_results
from amlb_ext.stats.weighted_mean import MIN_CLUSTERS
from amlb_ext.suite.reader import WeirdSuite
from amlb_ext.suite.task_folder import FolderTask, TaskFolder
from amlb_ext.tasks.record import TARGET

#: What is counted in a folder of tasks; without an F its other words are never said.
RUN = replace(ROW, one="run", many="runs", everything="all runs", more="run more folds")
#: WeirdML's least number of runs.
ENOUGH_RUNS = 15
#: The framework that knows what each task is: what a little thought is worth.
REFERENCE = "HardsynthReader"
#: What a framework is, in the order of the page, with a word for each.
KINDS = {
    "coder": "a language model that writes the program",
    "system": "AutoML system or model of AMLB",
    "reference": "knows what each task is: what a little thought is worth",
}
NO_RUNS = (
    "There are no results yet, so this report describes the tasks only. Run a framework, then name "
    "its output folder with --results."
)
#: How the report is to be used.
ADVICE = "Compare frameworks by the selected accuracy, on the same folds."


def build_run_report(
    directory: str | Path,
    results: Sequence[str | Path] = (),
    *,
    predictions: Mapping[str, Path] = MappingProxyType({}),
    segments: Sequence[str] = (),
    level: float = 0.95,
    charts: bool = True,
) -> SuiteReport:
    """Compare all frameworks on a folder of tasks.

    Parameters
    ----------
    directory : path
        The folder of tasks.
    results : sequence of path
        AMLB's output folders; with none the report tells of the tasks alone.
    predictions : mapping of str to path
        There can be none.
    segments : sequence of str
        There can be none, for there is no F to replace.
    level : float
        Of the intervals, which are over runs.
    charts : bool
        Whether to draw charts.

    Returns
    -------
    SuiteReport

    Raises
    ------
    RunError, SuiteError, ConfigError
    """
    check_level(level)
    root = Path(directory)
    if predictions:
        raise ConfigError(
            f"--predictions: {root} holds no suite of tables",
            "give AMLB's results with --results",
        )
    if segments:
        raise ConfigError(
            f"--segment: {root} holds no suite of tables or series", "leave it out"
        )
    suite = WeirdSuite.load(root)
    folder = suite.manifest
    jobs = _with_own_predictions(suite, _read_jobs(folder, results, root))
    runs = read_coder_runs(suite, jobs)
    jobs = _with_outcomes(jobs, runs)
    scores = _score_table(folder, jobs, runs, level)
    kinds = _kinds(jobs, runs)
    tasks = []
    for task in folder.tasks:
        own = scores[scores["task"] == task.name]
        own_runs = [run for run in runs if run.task == task.name]
        tasks.append(_task_report(task, own, own_runs, jobs, kinds, charts))
    absent = _absent_jobs(folder, jobs, shlex.quote(str(root)))
    jobs = pd.concat([jobs, absent], ignore_index=True)
    unscored = jobs.loc[jobs["status"] != "scored", list(JOBS_SHOWN)]
    question = "How far do AutoML systems get where columns alone say little?"
    if runs:
        question = (
            "How far do a language model that writes the program and AutoML systems get on the "
            "same folds?"
        )
    return SuiteReport(
        name=folder.name,
        question=question,
        unit=RUN,
        glossary=CODER_SECTIONS if runs else RUN_SECTIONS,
        has_baseline=False,
        about={
            "Suite": folder.name,
            "Tasks": f"{len(folder.tasks)}, {format_count(folder.n_folds, 'fold')}",
            "Seed": str(folder.seed),
            "hardsynth": folder.version,
        },
        verdict=_answer_sentences(scores, kinds, len(folder.tasks) * folder.n_folds)
        if len(jobs)
        else (NO_RUNS,),
        warnings=tuple(job_warnings(jobs)),
        caveats=(ADVICE, *_notes(folder, jobs, runs)) if len(jobs) else (),
        sections=_suite_sections(folder, scores, runs, jobs, kinds, level, charts)
        if len(jobs)
        else (),
        tasks=tuple(tasks),
        frameworks=framework_table(jobs, list(kinds)),
        jobs=unscored.reset_index(drop=True),
        level=level,
    )


def _read_jobs(
    folder: TaskFolder, results: Sequence[str | Path], root: Path
) -> pd.DataFrame:
    """Return AMLB's rows of the tasks as jobs, the last where one was run twice."""
    if not results:
        return job_table([]).assign(score=[])
    rows = read_results(*results)
    rows = rows[rows["task"].isin([task.name for task in folder.tasks])]
    rows = rows.drop_duplicates(["framework", "task", "fold"], keep="last")
    if rows.empty:
        raise RunError(
            "the results hold no job of these tasks",
            f"hardsynth run FRAMEWORK weirdml -u {shlex.quote(str(root))}",
        )
    rows = rows.rename(columns={"task": "amlb_task", "info": "reason"})
    rows["name"] = rows["framework"]
    # whoever has AMLB score by another metric finds the accuracy in a column of its own
    metric = rows.get("metric", pd.Series("", rows.index)).fillna("")
    is_other = ~metric.isin(["", "acc"]) & rows["result"].notna()
    accuracy = rows.get("acc", pd.Series(np.nan, rows.index))
    rows["result"] = rows["result"].mask(is_other, accuracy)
    is_refused = is_other & accuracy.isna()
    rows["status"] = np.where(is_refused, "refused", "")
    why = "AMLB scored it by " + metric + ", and its results have no column acc"
    rows["reason"] = why.where(is_refused, rows.get("reason", ""))
    return job_table(rows.to_dict("records"))


def _with_own_predictions(suite: WeirdSuite, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs with a reason where predictions are not those that were scored."""
    folds = {task.name: task.folds for task in suite.manifest.tasks}
    for index, job in jobs.iterrows():
        own = folds[str(job["amlb_task"])]
        number = int(job["fold"])
        if job["status"] == "refused" or not np.isfinite(job["result"]):
            continue
        why = f"the folder has no fold {number}"
        if number < len(own):
            test = suite.layout.at(own[number].test)
            why = _why_others(job, test)
        if why:
            jobs.loc[index, ["status", "reason"]] = "refused", why
    return jobs


def _why_others(job: Mapping[Any, Any], test: Path) -> str:
    """Return why a job's predictions are not of a test file, or not those that were scored."""
    try:
        table = read_predictions(
            job["run"],
            job["amlb_task"],
            job["fold"],
            framework=job["name"],
            has_classes=True,
        )
    except RunError as error:
        return str(error)
    labels = pd.read_csv(test, dtype=str, keep_default_na=False)[TARGET]
    truth = table["truth"].astype(str)
    if truth.tolist() != labels.tolist():
        return "its predictions are of other data than the folder's"
    is_right = table["predictions"].astype(str) == truth
    return score_contradiction({**job, "metric": "acc"}, float(is_right.mean()))


def _with_outcomes(jobs: pd.DataFrame, runs: Sequence[CoderRun]) -> pd.DataFrame:
    """Return the jobs with what came of each, and the score that counts."""
    by_key = {run.key: run for run in runs}
    outcomes = []
    for job in jobs.to_dict("records"):
        run = by_key.get((job["framework"], job["amlb_task"], job["fold"]))
        is_scored = bool(np.isfinite(job["result"]))
        if job["status"] == "refused":
            outcomes.append(("refused", job["reason"], np.nan))
        elif run is not None and run.why_unscored:
            outcomes.append(("failed", run.why_unscored, np.nan))
        elif is_scored:
            outcomes.append(("scored", "", job["result"]))
        elif run is not None:
            # five submissions without valid predictions are a score: nothing
            outcomes.append(("scored", "", 0.0))
        else:
            outcomes.append(("failed", job["reason"] or "no result", np.nan))
    table = pd.DataFrame(
        outcomes, columns=["status", "reason", "score"], index=jobs.index
    )
    return jobs.assign(**{name: table[name] for name in table})


def _absent_jobs(folder: TaskFolder, jobs: pd.DataFrame, root: str) -> pd.DataFrame:
    """Return the folds that a framework was not run on, though on others of the task."""
    records = []
    for (framework, task), own in jobs.groupby(["framework", "amlb_task"]):
        for fold in sorted(set(range(folder.n_folds)) - set(own["fold"])):
            record = own.iloc[0].to_dict()
            record |= {"fold": fold, "status": "not run", "score": np.nan}
            record["reason"] = (
                f"hardsynth run {framework} weirdml -u {root} -t {task} -f {fold}"
            )
            records.append(record | {"duration": np.nan})
    return pd.DataFrame(records, columns=jobs.columns)


def _score_table(
    folder: TaskFolder, jobs: pd.DataFrame, runs: Sequence[CoderRun], level: float
) -> pd.DataFrame:
    """Return a line for each task and framework, the best mean first."""
    by_key = {run.key: run for run in runs}
    test_rows = {task.name: task.folds[0].test_rows for task in folder.tasks}
    lines = []
    for (task, framework), own in jobs.groupby(["amlb_task", "framework"], sort=False):
        scored = own[own["status"] == "scored"]
        values = scored["score"].to_numpy(dtype=float)
        kept = [by_key.get((framework, task, fold)) for fold in scored["fold"]]
        coder_runs = [run for run in kept if run is not None]
        lines.append(
            {
                "task": task,
                "framework": framework,
                "runs": len(values),
                **mean_and_spread(values, level),
                "best": values.max(initial=-np.inf) if len(values) else np.nan,
                "unscored": len(own) - len(scored),
                **coder_columns(coder_runs, test_rows[task]),
            }
        )
    columns = ["task", "framework", "runs", "mean", "low", "high"]
    columns += ["sd", "best", "unscored", *CODER_COLUMNS]
    table = pd.DataFrame(lines, columns=columns)
    # in the folder's order, not in that of the results
    order = {name: number for number, name in enumerate(test_rows)}
    table = table.sort_values("mean", ascending=False, kind="stable")
    return table.sort_values(
        "task", key=lambda names: names.map(order), kind="stable", ignore_index=True
    )


def _kinds(jobs: pd.DataFrame, runs: Sequence[CoderRun]) -> dict[str, str]:
    """Return what each framework is: coders, then AMLB's, then the reference."""
    coders = {run.framework for run in runs}
    kinds = {REFERENCE: "reference", **dict.fromkeys(coders, "coder")}
    named = {name: kinds.get(name, "system") for name in frameworks_in_order(jobs)}
    return dict(sorted(named.items(), key=lambda item: list(KINDS).index(item[1])))


def _answer_sentences(
    scores: pd.DataFrame, kinds: Mapping[str, str], n_jobs: int
) -> tuple[str, ...]:
    """Return one sentence for each coder: on how many tasks its mean is above the others'.

    By *selected* alone, which is what the other frameworks are scored by as well. Without a coder,
    who has the highest mean over all tasks. Others count where all their ``n_jobs`` runs did.
    """
    means = scores.pivot_table(
        index="task", columns="framework", values="mean", sort=False
    )
    # a fold that is left out may have been the hardest
    n_runs = scores.groupby("framework")["runs"].sum()
    whole = [name for name in means if n_runs[name] == n_jobs]
    means = means[whole]
    systems = [name for name in means if kinds[name] == "system"]
    references = [name for name in means if kinds[name] == "reference"]
    sentences = []
    for coder in [name for name, kind in kinds.items() if kind == "coder"]:
        own = scores[scores["framework"] == coder]
        known = own.dropna(subset=["mean"]).set_index("task")["mean"]
        parts = []
        for others, whom in (
            (systems, "every AutoML system"),
            (references, "the reference, which knows the tasks,"),
        ):
            theirs = means.reindex(index=known.index, columns=others).dropna(how="all")
            if theirs.empty:
                continue
            above = int((known.loc[theirs.index] > theirs.max(axis=1)).sum())
            n_tasks = format_count(len(theirs), "task")
            parts.append(f"above {whom} on {above} of {n_tasks}")
        compared = f"mean accuracy {' and '.join(parts)}. " if parts else ""
        failed = format_percent(float(np.nanmean(own["failed"])))
        of_all = (
            "" if n_runs[coder] == n_jobs else f" ({n_runs[coder]} of {n_jobs} runs)"
        )
        sentences.append(
            f"{coder}{of_all}: {compared}{failed} of its submissions failed."
        )
    if sentences:
        return tuple(sentences)
    over_tasks = means[systems].mean()
    if over_tasks.empty:
        return ("No AutoML system has a score on every fold of every task.",)
    best = over_tasks.idxmax()
    value = format_decimals(over_tasks[best])
    return (
        f"Of AutoML systems {best} has the highest accuracy over the tasks, {value}.",
    )


def _suite_sections(
    folder: TaskFolder,
    scores: pd.DataFrame,
    runs: Sequence[CoderRun],
    jobs: pd.DataFrame,
    kinds: Mapping[str, str],
    level: float,
    charts: bool,
) -> tuple[ReportSection, ...]:
    """Return WeirdML's headline figures, and the accuracies of all frameworks on all tasks."""
    headline = headline_table(scores, runs, kinds, level)
    occurring = {kind: KINDS[kind] for kind in KINDS if kind in kinds.values()}
    legend = "; ".join(f"{kind}: {about}" for kind, about in occurring.items())
    lines = []
    for task in folder.tasks:
        line = {"task": task.name, "title": task.title}
        own = scores[scores["task"] == task.name].set_index("framework")
        for framework in kinds:
            line[framework] = "–"
            if framework in own.index:
                line[framework] = _accuracy_text(own.loc[framework])
        lines.append(line)
    return (
        ReportSection(
            key="headline",
            title="Means over the tasks",
            about="Each task counts as much as another; a framework that lacks tasks is not to be "
            f"compared. The {format_percent(level)} interval and sd are over tasks. {legend}.",
            table=headline,
            charts=(runs_chart(jobs, kinds),) if charts else (),
            percents=("failed", "failed_sd"),
        ),
        ReportSection(
            key="accuracy",
            title="Accuracy, task by framework",
            about=f"Mean over runs with its {format_percent(level)} interval over runs. Of a "
            "coder: what held-out training rows chose.",
            table=pd.DataFrame(lines),
            verbatim=tuple(kinds),
        ),
        *([submissions_section(runs)] if runs else []),
    )


def _accuracy_text(line: pd.Series) -> str:
    mean = format_decimals(line["mean"], missing="–")
    if np.isfinite(line["low"]):
        low, high = format_decimals(line["low"]), format_decimals(line["high"])
        return f"{mean} ({low} to {high})"
    return f"{mean} ({format_count(int(line['runs']), 'run')})"


def _task_report(
    task: FolderTask,
    scores: pd.DataFrame,
    runs: Sequence[CoderRun],
    jobs: pd.DataFrame,
    kinds: Mapping[str, str],
    charts: bool,
) -> TaskReport:
    """Return one task: the scores of all frameworks, and what only coders have."""
    tidy = scores[["task", "framework", "low", "high"]].assign(
        part="selected",
        metric="acc",
        value=scores["mean"],
        rows=scores["runs"],
        folds=scores["runs"],
        direction="higher",
    )
    spread = scores[["task", "framework", "runs", "sd", "best", "unscored"]]
    sections = [
        ReportSection(
            key="spread",
            title="Runs and their spread",
            about="Unscored: jobs without a score that counts.",
            table=spread,
        )
    ]
    if runs:
        coders = scores[scores["framework"].map(kinds) == "coder"]
        shown = ["task", "framework", "runs", "mean", *CODER_COLUMNS]
        coders = coders[shown].rename(columns={"mean": "selected"})
        sections += [*coder_sections(coders, runs), runs_section(runs, jobs)]
    chart = None
    if charts and len(scores):
        of_task = jobs[(jobs["amlb_task"] == task.name) & (jobs["status"] == "scored")]
        chart = _selected_chart(task.name, scores, of_task, kinds)
    return TaskReport(
        name=task.name,
        title=task.title,
        unit=RUN,
        kind=task.type.value,
        target=task.target,
        labels=task.labels,
        folds=len(task.folds),
        scores=tidy[list(SCORE_COLUMNS)],
        charts=() if chart is None else (chart,),
        sections=tuple(sections),
    )


def _selected_chart(
    task: str, scores: pd.DataFrame, jobs: pd.DataFrame, kinds: Mapping[str, str]
) -> Chart:
    """Return the runs of every framework, and their mean with its interval."""
    lines = {line["framework"]: line for line in scores.to_dict("records")}
    values = {
        name: jobs.loc[jobs["framework"] == name, "score"].to_numpy(dtype=float)
        for name in kinds
        if name in lines
    }
    points = run_violins(values, kinds)
    means = []
    for position, runs in enumerate(points):
        line = lines[runs.name]
        mean = (line["mean"], line["low"], line["high"])
        means.append(interval_mark(runs.name, position, mean, role=runs.role))
    return Chart(
        key=f"{task}-selected",
        title="Accuracy",
        # the lines are sorted
        about=f"{scores['framework'].iloc[0]} has the highest mean. A point is a run.",
        x_label="accuracy, runs and their mean",
        series=(*points, *means),
        y_categories=tuple(values),
    )


def _notes(
    folder: TaskFolder, jobs: pd.DataFrame, runs: Sequence[CoderRun]
) -> list[str]:
    notes = []
    was_run = jobs[jobs["status"] != "not run"]
    fewest = int(was_run.groupby(["amlb_task", "framework"]).size().min())
    if fewest < ENOUGH_RUNS:
        note = f"Some means are of {format_count(fewest, 'run')}"
        if fewest < MIN_CLUSTERS:
            note += " and have no interval, so small differences may be chance"
        notes.append(
            f"{note}. WeirdML asks for {ENOUGH_RUNS} runs: "
            f"hardsynth tasks weird --folds {ENOUGH_RUNS} -o DIR."
        )
    if folder.literal:
        notes.append("All runs have the same data: intervals say nothing of others.")
    stand_ins = [task.name for task in folder.tasks if task.origin != "real"]
    if stand_ins:
        notes.append(
            "Made or embedded data, not WeirdML's, so its numbers are not comparable: "
            f"{', '.join(stand_ins)}."
        )
    literal = sorted({run.framework for run in runs if run.is_literal})
    if literal:
        notes.append(
            "Told the accuracy on the test rows, as WeirdML does, so that these select the "
            f"submission: not comparable with others: {', '.join(literal)}."
        )
    broken = sum(run.is_broken for run in runs)
    if broken:
        notes.append(
            f"{format_count(broken, 'run')} ended before all submissions because the endpoint "
            "gave no answer; unscored, they count neither for the model nor against it."
        )
    if any(run.sandbox == "none" for run in runs):
        notes.append("Some programs were run without confinement (sandbox: none).")
    lost = sum(reason in NOT_THE_MODELS for run in runs for reason in run.reasons)
    if lost:
        notes.append(f"{lost} submissions were lost by the harness and count nowhere.")
    return notes
