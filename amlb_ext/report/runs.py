"""Frameworks on a folder of tasks: a fold is a run, and some frameworks are language models.

For a coder there are two scores, never mixed. *Selected* is AMLB's: the submission that held-out
training rows chose. *max@5 on test* is WeirdML's: the best of the submissions by the labels of the
test rows, which no one has who predicts; it is computed here, afterwards, from the predictions
that were kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import (
    format_count,
    format_decimals,
    format_number,
    format_percent,
    text_table,
)
from amlb_ext.core.errors import RunError
from amlb_ext.runner.results import read_results
from amlb_ext.stats.weighted_mean import MIN_CLUSTERS, weighted_mean_interval
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.reader import WeirdSuite
from amlb_ext.suite.task_folder import TaskFolder

#: WeirdML's least number of runs.
ENOUGH_RUNS = 15
#: Failures that say nothing of the model, and are never counted against it.
NOT_THE_MODELS = ("harness", "llm")
_MAX_RUN_FILE = 1 << 20
#: Expected largest of k draws from a standard normal distribution, k = 0 ... 5.
#: Harter: Expected values of normal order statistics. Biometrika 48, 1961.
_LARGEST_OF = (0.0, 0.0, 0.5642, 0.8463, 1.0294, 1.1630)


@dataclass(frozen=True, kw_only=True)
class CoderRun:
    """One run of a language model, as the integration kept it, with scores on the test rows.

    Attributes
    ----------
    framework, task : str
    fold : int
    folder : Path
        Where transcript and programs stand.
    wanted : int
        Submissions of a run.
    reasons : tuple of str
        Why each submission failed; empty for a valid one.
    accuracies : tuple of float
        Of each submission on the test rows; 0 for one that failed.
    cost, spent : float, optional
        None where unknown.
    sandbox : str
    is_broken : bool
        The endpoint ended it before all submissions.
    is_literal : bool
        The model was told its accuracy on the test rows.
    """

    framework: str
    task: str
    fold: int
    folder: Path
    wanted: int
    reasons: tuple[str, ...]
    accuracies: tuple[float, ...]
    cost: float | None
    spent: float | None
    sandbox: str
    is_broken: bool = False
    is_literal: bool = False

    @property
    def is_models_own(self) -> bool:
        """Whether the outcome is the model's: it answered to the end, and its programs were run."""
        has_run = bool(self.reasons) and not all(
            r in NOT_THE_MODELS for r in self.reasons
        )
        return has_run and not self.is_broken

    def max_at(self, k: int) -> float:
        """The best accuracy on the test rows of the first ``k`` submissions."""
        return max(self.accuracies[:k], default=0.0)


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """What the report of a folder of tasks shows.

    Attributes
    ----------
    name : str
        Of the folder's benchmark definition.
    titles : dict of str to str
        What each task is called, in the folder's order.
    level : float
        Of the intervals.
    scores : DataFrame
        A line for each task and framework: runs, mean and interval over runs, sd, best, jobs
        without a score; for coders max@5 on test, failure rate, cost and spent as well.
    headline : DataFrame
        A line for each framework: tasks, mean accuracy over them; for coders the mean of max@5 on
        test and the failure rate over the tasks as well.
    failures : DataFrame
        A line for each task, coder and reason: submissions, share.
    curve : DataFrame
        A line for each task, coder and k: mean of the best of the first k on test.
    runs : DataFrame
        A line for each run of a coder.
    notes : list of str
    """

    name: str
    titles: dict[str, str]
    level: float
    scores: pd.DataFrame
    headline: pd.DataFrame
    failures: pd.DataFrame
    curve: pd.DataFrame
    runs: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every job has a score that counts."""
        return not self.scores["unscored"].any()


def build_run_report(
    root: Path, results: Sequence[str | Path], *, level: float = 0.95
) -> RunReport:
    """Compare all frameworks on a folder of tasks.

    Parameters
    ----------
    root : Path
        The folder of tasks.
    results : sequence of path
        AMLB's output folders.
    level : float
        Of the intervals, which are over runs.

    Returns
    -------
    RunReport

    Raises
    ------
    RunError, SuiteError
    """
    folder = WeirdSuite.load(root).manifest
    if not results:
        raise RunError("no results are named", "--results OUT, the folder of AMLB's -o")
    names = {task.name for task in folder.tasks}
    jobs = read_results(*results)
    jobs = jobs[jobs["task"].isin(names)].drop_duplicates(
        ["framework", "task", "fold"], keep="last"
    )
    if jobs.empty:
        raise RunError(
            "the results hold no job of these tasks",
            f"hardsynth run FRAMEWORK weirdml -u {root.name}",
        )
    runs = _read_coder_runs(root, folder, results, jobs)
    scores = _score_table(folder, jobs, runs, level)
    return RunReport(
        name=folder.name,
        titles={task.name: task.title for task in folder.tasks},
        level=level,
        scores=scores,
        headline=_headline(scores),
        failures=_failure_table(runs),
        curve=_curve_table(runs),
        runs=_run_table(runs, jobs),
        notes=_notes(folder, jobs, runs),
    )


def run_report_text(report: RunReport) -> str:
    """Return the report as text tables."""
    rows: list[list[Any]] = []
    has_coders = not report.runs.empty
    headers = ["task", "framework", "runs", "selected", "interval", "sd", "best"]
    headers += ["unscored"]
    if has_coders:
        headers += ["max@5 on test", "of it luck", "failed", "cost", "spent"]
    for line in report.scores.to_dict("records"):
        low, high = (format_decimals(line[name]) for name in ("low", "high"))
        row = [line["task"], line["framework"], line["runs"], line["mean"]]
        row += [f"{low} to {high}" if low != "-" else "-", line["sd"], line["best"]]
        row.append(line["unscored"])
        if has_coders:
            share = line["failure_rate"]
            is_coder = not pd.isna(share)
            costs = [line["cost"], line["spent"]] if is_coder else []
            row += [
                format_decimals(line["max_on_test"], missing=""),
                format_decimals(line["luck"], missing=""),
                format_percent(share) if is_coder else "",
                *([format_number(cost) for cost in costs] or ["", ""]),
            ]
        rows.append(row)
    parts = [_headline_text(report.headline, has_coders), text_table(headers, rows)]
    if has_coders:
        parts.append(
            "selected: accuracy of what held-out training rows chose, AMLB's result.\n"
            "max@5 on test: best of the submissions by the labels of the test rows, as WeirdML "
            "scores;\nno one who predicts has these, so it is not to be compared with the other "
            "column. Of it luck:\nhow far the best of equal submissions lies above their mean."
        )
        parts.append(_wide_table(report.curve, "k", "max_on_test", "max@k on test"))
        parts.append(_wide_table(report.failures, "reason", "share", "failed because"))
    parts += report.notes
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline_text(headline: pd.DataFrame, has_coders: bool) -> str:
    headers = ["over the tasks", "tasks", "selected"]
    if has_coders:
        headers += ["max@5 on test", "failed"]
    rows = []
    for line in headline.to_dict("records"):
        row = [line["framework"], int(line["tasks"]), line["mean"]]
        if has_coders:
            share = line["failure_rate"]
            row.append(format_decimals(line["max_on_test"], missing=""))
            row.append("" if pd.isna(share) else format_percent(share))
        rows.append(row)
    return text_table(headers, rows)


def _score_table(
    folder: TaskFolder, jobs: pd.DataFrame, runs: Sequence[CoderRun], level: float
) -> pd.DataFrame:
    lines = []
    by_key = {(run.framework, run.task, run.fold): run for run in runs}
    coders = {run.framework for run in runs}
    order = {task.name: number for number, task in enumerate(folder.tasks)}
    groups = jobs.groupby(["task", "framework"], sort=False)
    for (task, framework), group in groups:
        values, kept, unscored = [], [], 0
        for job in group.to_dict("records"):
            run = by_key.get((framework, task, job["fold"]))
            is_scored = bool(np.isfinite(job["result"]))
            if run is not None and not run.is_models_own:
                unscored += 1
            elif is_scored or run is not None:
                # five submissions without valid predictions are a score: nothing
                values.append(job["result"] if is_scored else 0.0)
                kept.append(run)
            else:
                unscored += 1
        line: dict[str, Any] = {"task": task, "framework": framework}
        line |= _mean_over_runs(np.array(values, dtype=float), level)
        line["unscored"] = unscored
        own = [run for run in kept if run is not None] if framework in coders else []
        lines.append(line | _coder_columns(own, folder))
    table = pd.DataFrame(lines)
    table["order"] = table["task"].map(order)
    table = table.sort_values(["order", "mean"], ascending=[True, False])
    return table.drop(columns="order").reset_index(drop=True)


def _headline(scores: pd.DataFrame) -> pd.DataFrame:
    """Return WeirdML's headline figures: means over the tasks, each task as much as another."""
    columns = {
        "tasks": ("mean", "count"),
        "mean": ("mean", "mean"),
        "max_on_test": ("max_on_test", "mean"),
        "failure_rate": ("failure_rate", "mean"),
    }
    table = scores.groupby("framework", sort=False).agg(**columns)
    return table.sort_values("mean", ascending=False).reset_index()


def _mean_over_runs(values: np.ndarray, level: float) -> dict[str, Any]:
    if not len(values):
        missing = dict.fromkeys(("mean", "low", "high", "sd", "best"), np.nan)
        return {"runs": 0, **missing}
    estimate = weighted_mean_interval(
        values, clusters=np.arange(len(values)), level=level
    )
    return {
        "runs": len(values),
        "mean": float(values.mean()),
        "low": estimate.low,
        "high": estimate.high,
        "sd": float(values.std(ddof=1)) if len(values) > 1 else np.nan,
        "best": float(values.max()),
    }


def _coder_columns(runs: Sequence[CoderRun], folder: TaskFolder) -> dict[str, Any]:
    """Return what only coders have; missing for all other frameworks."""
    if not runs:
        names = ("max_on_test", "luck", "failure_rate", "cost", "spent")
        return dict.fromkeys(names, np.nan)
    counted = [reason for run in runs for reason in _counted(run)]
    rows = {task.name: task.folds[0].test_rows for task in folder.tasks}
    return {
        "max_on_test": float(np.mean([run.max_at(run.wanted) for run in runs])),
        "luck": float(np.mean([_luck(run, rows[run.task]) for run in runs])),
        "failure_rate": float(np.mean([reason != "" for reason in counted])),
        "cost": _total([run.cost for run in runs]),
        "spent": _total([run.spent for run in runs]),
    }


def _luck(run: CoderRun, test_rows: int) -> float:
    """Return how far the best of a run's valid submissions would lie above equal ones' mean."""
    valid = [a for a, r in zip(run.accuracies, run.reasons, strict=True) if not r]
    if not valid:
        return 0.0
    best = max(valid)
    sd = float(np.sqrt(best * (1 - best) / test_rows))
    return _LARGEST_OF[min(len(valid), len(_LARGEST_OF) - 1)] * sd


def _counted(run: CoderRun) -> list[str]:
    """Return the reasons of the submissions that count for or against the model."""
    return [reason for reason in run.reasons if reason not in NOT_THE_MODELS]


def _total(values: Sequence[float | None]) -> float:
    """Return a sum; NaN where a part is unknown: unknown is not nothing."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else np.nan


def _failure_table(runs: Sequence[CoderRun]) -> pd.DataFrame:
    lines = []
    own = [run for run in runs if not run.is_broken]
    for (framework, task), group in _by_task(own).items():
        counts = Counter(reason for run in group for reason in run.reasons)
        total = sum(counts[reason] for reason in counts if reason not in NOT_THE_MODELS)
        for reason, count in sorted(counts.items()):
            if not reason:
                continue
            is_models_own = reason not in NOT_THE_MODELS
            share = count / total if is_models_own else np.nan
            lines.append([task, framework, reason, count, share])
    columns = ["task", "framework", "reason", "submissions", "share"]
    return pd.DataFrame(lines, columns=columns)


def _curve_table(runs: Sequence[CoderRun]) -> pd.DataFrame:
    lines = []
    for (framework, task), group in _by_task(runs).items():
        own = [run for run in group if run.is_models_own]
        for k in range(1, max((run.wanted for run in own), default=0) + 1):
            best = float(np.mean([run.max_at(k) for run in own]))
            lines.append([task, framework, k, best])
    return pd.DataFrame(lines, columns=["task", "framework", "k", "max_on_test"])


def _run_table(runs: Sequence[CoderRun], jobs: pd.DataFrame) -> pd.DataFrame:
    results = jobs.set_index(["framework", "task", "fold"])["result"]
    lines = []
    for run in runs:
        lines.append(
            {
                "task": run.task,
                "framework": run.framework,
                "fold": run.fold,
                "selected": results.get((run.framework, run.task, run.fold), np.nan),
                "max_on_test": run.max_at(run.wanted) if run.is_models_own else np.nan,
                "failed": sum(reason != "" for reason in _counted(run)),
                "submissions": len(run.reasons),
                "cost": run.cost,
                "spent": run.spent,
                "sandbox": run.sandbox,
                "transcript": str(run.folder / "transcript.json"),
            }
        )
    return pd.DataFrame(lines)


def _by_task(runs: Sequence[CoderRun]) -> dict[tuple[str, str], list[CoderRun]]:
    groups: dict[tuple[str, str], list[CoderRun]] = {}
    for run in runs:
        groups.setdefault((run.framework, run.task), []).append(run)
    return groups


def _notes(
    folder: TaskFolder, jobs: pd.DataFrame, runs: Sequence[CoderRun]
) -> list[str]:
    notes = []
    fewest = int(jobs.groupby(["task", "framework"]).size().min())
    if fewest < ENOUGH_RUNS:
        runs_text = "1 run" if fewest == 1 else f"{fewest} runs"
        note = f"Some means are of {runs_text}"
        if fewest < MIN_CLUSTERS:
            note += " and have no interval, so small differences may be chance"
        notes.append(
            f"{note}. WeirdML asks for {ENOUGH_RUNS} runs: "
            f"hardsynth tasks weird --folds {ENOUGH_RUNS}."
        )
    folds = set(range(folder.n_folds))
    for (framework, task), own in jobs.groupby(["framework", "task"]):
        absent = sorted(folds - set(own["fold"]))
        if absent:
            listed = ", ".join(map(str, absent))
            words = " ".join(f"-f {fold}" for fold in absent)
            notes.append(
                f"{framework} on {task} is a mean without fold {listed}: "
                f"hardsynth run {framework} weirdml -u DIR -t {task} {words}"
            )
    if folder.literal:
        notes.append("All runs have the same data: intervals say nothing of others.")
    stand_ins = [task for task in folder.tasks if task.origin != "real"]
    if stand_ins:
        names = ", ".join(task.name for task in stand_ins)
        notes.append(
            f"Made or embedded data, not WeirdML's, so its numbers are not comparable: {names}."
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


def _wide_table(table: pd.DataFrame, column: str, value: str, title: str) -> str:
    if table.empty:
        return ""
    wide = table.pivot_table(
        index=["task", "framework"], columns=column, values=value, sort=False
    )
    headers = ["task", "framework", *map(str, wide.columns)]
    rows = [
        [*index, *values]
        for index, values in zip(wide.index, wide.to_numpy(), strict=True)
    ]
    return f"{title}\n{text_table(headers, rows)}"


def _read_coder_runs(
    root: Path, folder: TaskFolder, results: Sequence[str | Path], jobs: pd.DataFrame
) -> list[CoderRun]:
    truths: dict[tuple[str, int], np.ndarray] = {}
    by_key: dict[tuple[str, str, int], CoderRun] = {}
    run_dirs = {str(run) for run in jobs["run"]}
    for run_dir in sorted(run_dirs):
        for path in sorted(Path(run_dir).glob("llm/*/*/run.json")):
            run = _read_coder_run(root, folder, path, truths)
            if run is not None:
                by_key[run.framework, run.task, run.fold] = run
    order = {task.name: number for number, task in enumerate(folder.tasks)}
    return sorted(
        by_key.values(), key=lambda run: (order[run.task], run.framework, run.fold)
    )


def _read_coder_run(
    root: Path,
    folder: TaskFolder,
    path: Path,
    truths: dict[tuple[str, int], np.ndarray],
) -> CoderRun | None:
    """Return a run; None where it belongs to no task of the folder."""
    try:
        if path.stat().st_size > _MAX_RUN_FILE:
            raise ValueError("it is too large")
        entry = json.loads(path.read_text(encoding="utf-8"))
        tasks = {task.name: task for task in folder.tasks}
        task = tasks.get(str(entry["task"]))
        fold = int(entry["fold"])
        if task is None or not 0 <= fold < len(task.folds):
            return None
        submissions = list(entry["submissions"])
        reasons = tuple(str(submission["reason"]) for submission in submissions)
        numbers = [int(submission["number"]) for submission in submissions]
        key = (task.name, fold)
        if key not in truths:
            test = Layout(root).at(task.folds[fold].test)
            truths[key] = pd.read_csv(test, usecols=[task.target], dtype=str)[
                task.target
            ].to_numpy()
        accuracies = []
        for number, reason in zip(numbers, reasons, strict=True):
            predicted = path.with_name(f"predictions_{number}.csv")
            accuracies.append(0.0 if reason else _accuracy(predicted, truths[key]))
        return CoderRun(
            framework=str(entry["framework"]),
            task=task.name,
            fold=fold,
            folder=path.parent,
            wanted=int(entry["wanted"]),
            reasons=reasons,
            accuracies=tuple(accuracies),
            cost=_number_or_none(entry["cost"]),
            spent=_number_or_none(entry["spent"]),
            sandbox=str(entry["sandbox"]),
            is_broken=bool(entry.get("is_broken")),
            is_literal=entry.get("feedback") == "test",
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"cannot read {path}: {error}", "run that fold again") from None


def _number_or_none(value: Any) -> float | None:
    return None if value is None else float(value)


def _accuracy(path: Path, truth: np.ndarray) -> float:
    predicted = pd.read_csv(path, dtype=str, keep_default_na=False)[
        "predictions"
    ].to_numpy()
    if len(predicted) != len(truth):
        raise ValueError(f"{path.name} has {len(predicted)} rows, not {len(truth)}")
    return float((predicted == truth).mean())
