"""A suite and AMLB's results in, a report out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.parallel import available_cores, run_jobs
from amlb_ext.report.charts import framework_colours, overall_chart
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import FrameworkRanks, SuiteReport, TaskReport
from amlb_ext.report.ranks import mean_losses, rank_tasks
from amlb_ext.report.summary import baseline_alarm, overall_table, verdict_sentences
from amlb_ext.report.task import TaskEvaluation, evaluate_task
from amlb_ext.runner.jobs import JOB_COLUMNS, JobTable, read_jobs, rerun_commands
from amlb_ext.suite import Suite
from amlb_ext.suite.manifest import Manifest
from amlb_ext.validity import read_certificates

#: Points of a task's largest chart, and what all tasks together may have (the page's size).
MOST_POINTS, ALL_POINTS = 800, 30_000
_BROKEN = ("failed", "missing", "refused")


@dataclass(frozen=True)
class BuiltReport:
    """A report with what its files need beyond it.

    Attributes
    ----------
    report : Report
    results : DataFrame
        AMLB's own rows.
    added : DataFrame
        Scores of ours per fold, see :func:`amlb_ext.report.amlb_csv.amlb_rows`.
    """

    report: SuiteReport
    results: pd.DataFrame
    added: pd.DataFrame


def build_report(
    directory: str | Path,
    results: Sequence[str | Path] = (),
    *,
    workers: int = 1,
    level: float = 0.95,
    charts: bool = True,
    quiet: bool = True,
) -> BuiltReport:
    """Read results, join them to the suite, and judge.

    Parameters
    ----------
    directory : path
        A finished suite.
    results : sequence of path
        AMLB's output folders, or single runs in them; with none the report tells of the suite
        alone.
    workers : int
        Processes, one task each; 0 for every core. They change nothing but time.
    level : float
        Nominal coverage of intervals, between 0 and 1.
    charts : bool
        Also draw; the text and the tables do without.
    quiet : bool
        No progress bar.

    Returns
    -------
    Built

    Raises
    ------
    SuiteError
        No finished suite, or a damaged one.
    RunError
        No results in a folder, or none of this suite.
    ConfigError
        A level that is none.
    """
    if not 0 < level < 1:
        raise ConfigError(f"an interval of level {level:g}", "give a level between 0 and 1, as .95")
    suite = Suite.load(directory)
    nothing = JobTable(pd.DataFrame(columns=list(JOB_COLUMNS)), pd.DataFrame())
    found = read_jobs(suite, *results) if results else nothing
    jobs = found.table
    certificates = read_certificates(suite)
    names = sorted(
        jobs["framework"].unique(), key=lambda name: (is_control_framework(name), name.lower())
    )
    points = min(MOST_POINTS, ALL_POINTS // max(1, len(suite.tasks))) if charts else 0
    whose = jobs["amlb_task"].map(lambda name: suite.amlb_tasks[name].task)
    work = [
        (str(directory), task, jobs[whose == task], certificates.get(task),
         framework_colours(names), level, points)
        for task in suite.tasks
    ]  # fmt: skip
    done: dict[int, TaskEvaluation] = {}
    workers = min(workers or available_cores(), max(1, len(work)))
    with tqdm(total=len(work), desc="report", unit="task", disable=quiet) as bar:
        for index, result in run_jobs(evaluate_task, work, workers):
            done[index] = result
            bar.update()
    parts = [done[index] for index in sorted(done)]
    jobs = _refuse(jobs, parts)
    report = _whole(suite, [part.report for part in parts], parts, jobs, names, level, found.notes)
    if results:
        first = Path(results[0])
        broken = jobs[jobs["status"].isin(_BROKEN)]
        report = replace(report, commands=tuple(rerun_commands(broken, suite, first)))
    if charts:
        chart = overall_chart(report.overall, framework_colours(names))
        report = replace(report, charts=(chart,) if chart is not None else ())
    added = pd.DataFrame([row for part in parts for row in part.added])
    return BuiltReport(report, found.rows, added)


def _refuse(jobs: pd.DataFrame, parts: Sequence[TaskEvaluation]) -> pd.DataFrame:
    jobs = jobs.copy()
    for part in parts:
        for index, why in part.refused.items():
            jobs.loc[index, ["status", "reason"]] = "refused", why
    return jobs


def _whole(
    suite: Suite,
    tasks: list[TaskReport],
    parts: Sequence[TaskEvaluation],
    jobs: pd.DataFrame,
    names: Sequence[str],
    level: float,
    notes: Sequence[str],
) -> SuiteReport:
    ranks = _ranks(tasks, parts, names)
    table = overall_table(tasks, ranks, level)
    said = verdict_sentences(tasks, table, ranks)
    if not len(jobs):
        said = (
            "No results were given: this tells of the suite alone. Run a framework, then name its "
            "output folder with --results.",
        )
    said = (*baseline_alarm(tasks), *said)
    unscored = jobs[jobs["status"] != "scored"]
    columns = ["framework", "amlb_task", "fold", "status", "reason"]
    return SuiteReport(
        name=suite.manifest.name,
        about=_about(suite.manifest, tasks),
        verdict=said,
        warnings=tuple(_warnings(jobs, tasks)),
        tasks=tuple(tasks),
        overall=table,
        ranks=ranks,
        frameworks=_frameworks(jobs, names),
        jobs=unscored[columns].reset_index(drop=True),
        level=level,
        notes=tuple(notes),
    )


def _ranks(
    tasks: Sequence[TaskReport], parts: Sequence[TaskEvaluation], names: Sequence[str]
) -> FrameworkRanks:
    """Rank F and the candidates on the tasks where claims may be made.

    A candidate without whole results on at least half of those is left out, lest it take the
    tasks away from all others.
    """
    left_out = {task.name: task.no_claim for task in tasks if task.no_claim}
    kept = {
        task.name: (task, part)
        for task, part in zip(tasks, parts, strict=True)
        if task.name not in left_out
    }
    candidates = [name for name in names if not is_control_framework(name)]
    whole = {
        name: [t for t, pair in kept.items() if _whole_on(pair[0], name)] for name in candidates
    }
    ranked = [name for name in candidates if 2 * len(whole[name]) >= max(1, len(kept))]
    for name in kept:
        gone = [who for who in ranked if name not in whole[who]]
        if gone:
            left_out[name] = f"no whole results of {', '.join(gone)}"
    table = pd.DataFrame(
        {name: _mean(part, ranked) for name, (_, part) in kept.items() if name not in left_out}
    ).T
    ranks = rank_tasks(table if ranked else pd.DataFrame(), left_out)
    absent = [f"{name} ({len(whole[name])} of {len(kept)} tasks)" for name in candidates
              if name not in ranked]  # fmt: skip
    if not absent:
        return ranks
    about = f"{ranks.about} Not ranked, for want of whole results: {', '.join(absent)}."
    return replace(ranks, about=about)


def _whole_on(task: TaskReport, framework: str) -> bool:
    """Whether a framework's results on a task are there, and none of them failed."""
    own = task.contrasts[task.contrasts["framework"] == framework]
    return len(own) > 0 and not (own["verdict"] == "incomplete").any()


def _mean(part: TaskEvaluation, frameworks: Sequence[str]) -> pd.Series:
    """Return mean losses of F and some frameworks on the rows that all of them have."""
    losses = part.losses[list(frameworks)]
    return mean_losses(losses, part.loss_f, part.weights, losses.notna(), part.clusters)


def _about(manifest: Manifest, tasks: Sequence[TaskReport]) -> dict[str, str]:
    config: dict[str, Any] = manifest.config
    verdicts = pd.Series(
        [task.certificate.verdict if task.certificate else "not certified" for task in tasks]
    ).value_counts()
    counts = {part: sum(t.rows.get(part, 0) for t in tasks) for part in ("full", "bad", "ga",
                                                                       "synthetic")}  # fmt: skip
    return {
        "Suite": manifest.name,
        "Tasks": f"{len(tasks)}, {sum(task.folds for task in tasks)} folds",
        "Baseline F": str(config["baseline"]["model"]),
        "Preset": str(config.get("preset", "")),
        "Test rows": f"{counts['full']:,}, of which {counts['bad']:,} are bad for F",
        "Made rows": f"{counts['ga']:,} augmented, {counts['synthetic']:,} synthetic",
        "Certificates": ", ".join(f"{count} {word}" for word, count in verdicts.items()),
        "Seed": str(manifest.seed),
        "hardsynth": manifest.version,
        "Made by": manifest.command,
    }


def _frameworks(jobs: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    rows = []
    for name in names:
        own = jobs[jobs["framework"] == name]
        count = own["status"].value_counts()
        seconds = pd.to_numeric(own["duration"], errors="coerce").sum()
        rows.append(
            {
                "framework": name,
                "name": own["name"].iloc[0],
                "constraint": ", ".join(sorted(set(own["constraint"]))),
                "version": ", ".join(sorted(set(own["version"]) - {""})),
                "runs": own["run"].nunique(),
                **{
                    word.replace(" ", "_"): int(count.get(word, 0))
                    for word in ("scored", *_BROKEN, "not run")
                },
                "minutes": float(seconds) / 60,
            }
        )
    columns = ["framework", "name", "constraint", "version", "runs", "scored", *_BROKEN, "not_run",
               "minutes"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def _warnings(jobs: pd.DataFrame, tasks: Sequence[TaskReport]) -> list[str]:
    out = [f"{task.title or task.name}: {task.alarm}" for task in tasks if task.alarm]
    said = {
        "refused": "files of predictions do not fit the suite and were not used",
        "failed": "jobs failed",
        "missing": "jobs left no result",
    }
    for word, text in said.items():
        some = jobs[jobs["status"] == word]
        if len(some):
            who = ", ".join(
                f"{n} of {name}" for name, n in some["framework"].value_counts().items()
            )
            first = some.iloc[0]
            out.append(
                f"{len(some)} {text} ({who}). The first: {first['framework']}, "
                f"{first['amlb_task']}, fold {first['fold']}: {first['reason']}"
            )
    idle = jobs[jobs["status"] == "not run"]
    if len(idle):
        who = ", ".join(f"{n} of {name}" for name, n in idle["framework"].value_counts().items())
        out.append(f"{len(idle)} jobs of the definition were not run ({who}).")
    bare = [task.name for task in tasks if task.certificate is None]
    if bare:
        out.append(
            f"{len(bare)} of {len(tasks)} tasks have no certificate, so nothing is claimed on "
            "them: hardsynth certify writes it."
        )
    return out
