"""Runs of language models that write programs: read, scored on the test rows, and as tables.

*max@k on test* is the best of the first k submissions by the labels of the test rows, which no one
has who predicts; it is computed here, afterwards, from the predictions that were kept. Figures over
several tasks are those of WeirdML (https://htihle.github.io/weirdml.html), beside those of every
other framework.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import RunError
from amlb_ext.report.charts import framework_colours
from amlb_ext.report.model import Chart, ChartSeries, ReportSection
from amlb_ext.stats.weighted_mean import weighted_mean_interval
from amlb_ext.suite.manifest import AmlbTask
from amlb_ext.suite.reader import Suite

#: Failures that say nothing of the model, and are never counted against it.
NOT_THE_MODELS = ("harness", "llm")
#: What only coders have.
CODER_COLUMNS = ("max_on_test", "luck", "failed", "cost", "spent")
_MAX_RUN_FILE = 1 << 20
#: Expected largest of k draws from a standard normal distribution, k = 0 ... 5.
#: Harter: Expected values of normal order statistics. Biometrika 48, 1961.
_LARGEST_OF = (0.0, 0.0, 0.5642, 0.8463, 1.0294, 1.1630)
_CURVE_ABOUT = (
    "Accuracy on the test rows after k submissions, mean over runs. Chosen: by held-out rows, "
    "which is how frameworks are compared. Max: by the labels of the test rows, which is WeirdML’s."
)


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
    held_out : tuple of float or None
        What each submission was chosen by; None where nothing is known.
    selected : float
        Accuracy on the test rows of what AMLB was given; 0 where nothing was.
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
    held_out: tuple[float | None, ...] = ()
    selected: float = 0.0

    @property
    def why_unscored(self) -> str:
        """Why the job does not count, though AMLB may have a score of it; empty where it does."""
        if self.is_broken:
            return "the endpoint gave no answer before all submissions were made"
        return "" if self.counted else "every submission was lost by the harness"

    @property
    def key(self) -> tuple[str, str, int]:
        """Framework, task and fold."""
        return self.framework, self.task, self.fold

    @property
    def counted(self) -> list[str]:
        """The reasons of the submissions that count for or against the model."""
        return [reason for reason in self.reasons if reason not in NOT_THE_MODELS]

    def max_at(self, k: int) -> float:
        """The best accuracy on the test rows of the first ``k`` submissions."""
        return max(self.accuracies[:k], default=0.0)

    def chosen_at(self, k: int) -> float:
        """The accuracy on the test rows of what held-out rows choose of the first ``k``.

        The protocol's rule: the best of the valid ones, the latest of equals.
        """
        best, accuracy = -2.0, 0.0
        for reason, held_out, value in zip(
            self.reasons[:k], self.held_out, self.accuracies, strict=False
        ):
            judged = -1.0 if held_out is None else held_out
            if not reason and judged >= best:
                best, accuracy = judged, value
        return accuracy


def read_coder_runs(suite: Suite, jobs: pd.DataFrame) -> list[CoderRun]:
    """Return the runs of language models among some jobs, in the suite's order.

    Parameters
    ----------
    suite : Suite
        Of tables, or a folder of tasks.
    jobs : DataFrame
        Their column ``run`` names the folders of AMLB's runs.

    Raises
    ------
    RunError
        A run that cannot be read.
    """
    tasks = {
        task.name: task for task in suite.manifest.listed if isinstance(task, AmlbTask)
    }
    truths: dict[tuple[str, int], np.ndarray] = {}
    by_key: dict[tuple[str, str, int], CoderRun] = {}
    for run_dir in sorted(set(map(str, jobs["run"]))):
        for path in sorted(Path(run_dir).glob("llm/*/*/run.json")):
            run = _read_coder_run(suite, tasks, path, truths)
            if run is not None:
                by_key[run.key] = run
    order = {name: number for number, name in enumerate(tasks)}
    return sorted(
        by_key.values(), key=lambda run: (order[run.task], run.framework, run.fold)
    )


def _read_coder_run(
    suite: Suite,
    tasks: Mapping[str, AmlbTask],
    path: Path,
    truths: dict[tuple[str, int], np.ndarray],
) -> CoderRun | None:
    """Return a run; None where it belongs to no task of the suite."""
    try:
        if path.stat().st_size > _MAX_RUN_FILE:
            raise ValueError("it is too large")
        entry = json.loads(path.read_text(encoding="utf-8"))
        task = tasks.get(str(entry["task"]))
        fold = int(entry["fold"])
        if task is None or not 0 <= fold < len(task.folds):
            return None
        submissions = list(entry["submissions"])
        reasons = tuple(str(submission["reason"]) for submission in submissions)
        numbers = [int(submission["number"]) for submission in submissions]
        key = (task.name, fold)
        if key not in truths:
            test = suite.layout.at(task.test[fold])
            truths[key] = pd.read_csv(test, usecols=[task.target], dtype=str)[
                task.target
            ].to_numpy()
        accuracies = []
        for number, reason in zip(numbers, reasons, strict=True):
            predicted = path.with_name(f"predictions_{number}.csv")
            accuracies.append(0.0 if reason else _accuracy(predicted, truths[key]))
        last = "final" if entry.get("final") else entry.get("selected")
        final = path.with_name(f"predictions_{last}.csv")
        return CoderRun(
            framework=str(entry["framework"]),
            task=task.name,
            fold=fold,
            folder=path.parent,
            wanted=int(entry["wanted"]),
            reasons=reasons,
            accuracies=tuple(accuracies),
            cost=None if entry["cost"] is None else float(entry["cost"]),
            spent=None if entry["spent"] is None else float(entry["spent"]),
            sandbox=str(entry["sandbox"]),
            is_broken=bool(entry.get("is_broken")),
            is_literal=entry.get("feedback") == "test",
            held_out=tuple(submission.get("held_out") for submission in submissions),
            selected=0.0 if last is None else _accuracy(final, truths[key]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"cannot read {path}: {error}", "run that fold again") from None


def _accuracy(path: Path, truth: np.ndarray) -> float:
    predicted = pd.read_csv(path, dtype=str, keep_default_na=False)[
        "predictions"
    ].to_numpy()
    if len(predicted) != len(truth):
        raise ValueError(f"{path.name} has {len(predicted)} rows, not {len(truth)}")
    return float((predicted == truth).mean())


def coder_columns(runs: Sequence[CoderRun], test_rows: int) -> dict[str, float]:
    """Return what only coders have; missing for all other frameworks."""
    if not runs:
        return dict.fromkeys(CODER_COLUMNS, np.nan)
    counted = [reason for run in runs for reason in run.counted]
    return {
        "max_on_test": float(np.mean([run.max_at(run.wanted) for run in runs])),
        "luck": float(np.mean([_luck(run, test_rows) for run in runs])),
        "failed": float(np.mean([reason != "" for reason in counted])),
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


def _total(values: Sequence[float | None]) -> float:
    """Return a sum; NaN where a part is unknown: unknown is not nothing."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else np.nan


def coder_sections(
    coders: pd.DataFrame, runs: Sequence[CoderRun], about: str = ""
) -> tuple[ReportSection, ...]:
    """Return what only coders have: their scores, what further submissions add, and failures.

    Parameters
    ----------
    coders : DataFrame
        A line for each task and coder, with the columns :data:`CODER_COLUMNS`.
    runs : sequence of CoderRun
    about : str
        What else is to be said of the scores.
    """
    return (
        ReportSection(
            key="coders",
            title="Coders",
            about=f"{about}Never compare max@5 on test with another framework. It is WeirdML’s "
            "score: the best of the submissions by the labels of the test rows, which nobody who "
            "predicts has. It is computed afterwards, from predictions that were kept.",
            table=coders,
            percents=("failed",),
        ),
        ReportSection(
            key="curve",
            title="Score by number of submissions",
            about=_CURVE_ABOUT,
            table=curve_table(runs),
        ),
        ReportSection(
            key="failures",
            title="Why submissions failed",
            about="Share of the submissions that count, by reason.",
            table=_failure_table(runs),
            percents=("share",),
        ),
    )


def curve_table(runs: Sequence[CoderRun]) -> pd.DataFrame:
    """Return the mean accuracy after k submissions of each task and framework."""
    lines = []
    for (task, framework), group in by_coder(runs).items():
        own = [run for run in group if not run.why_unscored]
        for k in range(1, max((run.wanted for run in own), default=0) + 1):
            best = float(np.mean([run.max_at(k) for run in own]))
            chosen = float(np.mean([run.chosen_at(k) for run in own]))
            lines.append([task, framework, k, chosen, best])
    columns = ["task", "framework", "k", "chosen", "max_on_test"]
    return pd.DataFrame(lines, columns=columns)


def _failure_table(runs: Sequence[CoderRun]) -> pd.DataFrame:
    """Return why submissions failed, by task and framework."""
    lines = []
    own = [run for run in runs if not run.is_broken]
    for (task, framework), group in by_coder(own).items():
        counts = Counter(reason for run in group for reason in run.reasons)
        total = sum(counts[reason] for reason in counts if reason not in NOT_THE_MODELS)
        for reason in sorted(filter(None, counts)):
            share = np.nan
            if reason not in NOT_THE_MODELS:
                share = counts[reason] / total
            lines.append([task, framework, reason, counts[reason], share])
    columns = ["task", "framework", "reason", "submissions", "share"]
    return pd.DataFrame(lines, columns=columns)


def runs_section(runs: Sequence[CoderRun], jobs: pd.DataFrame) -> ReportSection:
    """Return the runs of a task, with where the transcript of each stands."""
    results = jobs.set_index(["framework", "amlb_task", "fold"])["result"]
    lines = []
    for run in runs:
        lines.append(
            {
                "task": run.task,
                "framework": run.framework,
                "fold": run.fold,
                "selected": results.get(run.key, np.nan),
                "max_on_test": np.nan if run.why_unscored else run.max_at(run.wanted),
                "failed": sum(reason != "" for reason in run.counted),
                "submissions": len(run.reasons),
                "cost": run.cost,
                "spent": run.spent,
                "sandbox": run.sandbox,
                "transcript": str(run.folder / "transcript.json"),
            }
        )
    return ReportSection(
        key="runs",
        title="Runs, with transcripts",
        about="Transcripts hold what programs printed, so rows of your data may stand in them: "
        "they stay where AMLB wrote them, and are never published.",
        table=pd.DataFrame(lines),
        links="transcript",
    )


def by_coder(runs: Sequence[CoderRun]) -> dict[tuple[str, str], list[CoderRun]]:
    """Return the runs by task and framework."""
    groups: dict[tuple[str, str], list[CoderRun]] = {}
    for run in runs:
        groups.setdefault((run.task, run.framework), []).append(run)
    return groups


def headline_table(
    scores: pd.DataFrame,
    runs: Sequence[CoderRun],
    kinds: Mapping[str, str],
    level: float,
) -> pd.DataFrame:
    """Return a line for each framework: means over the tasks, and how far these spread.

    Parameters
    ----------
    scores : DataFrame
        A line for each task and framework: ``mean``, and of coders ``max_on_test``, ``failed``.
    runs : sequence of CoderRun
    kinds : mapping of str to str
        What each framework is.
    level : float
        Of the interval, which is over tasks and needs three.

    Returns
    -------
    DataFrame
        ``framework``, ``kind``, ``tasks``, ``selected``, ``low``, ``high``, ``sd`` (over tasks),
        and where there are coders ``max_on_test``, ``failed``, ``failed_sd`` (over tasks),
        ``cost_of_run``.
    """
    lines = []
    for framework, own in scores.groupby("framework", sort=False):
        means = own["mean"].dropna().to_numpy(dtype=float)
        # unknown of any, it is unknown of all
        costs = [
            np.nan if run.cost is None else run.cost
            for run in runs
            if run.framework == framework
        ]
        lines.append(
            {
                "framework": framework,
                "kind": kinds[str(framework)],
                "tasks": len(means),
                **mean_and_spread(means, level),
                "max_on_test": own["max_on_test"].mean(),
                "failed": own["failed"].mean(),
                "failed_sd": own["failed"].std(),
                "cost_of_run": np.mean(costs) if costs else np.nan,
            }
        )
    table = pd.DataFrame(lines).rename(columns={"mean": "selected"})
    table = table.sort_values("selected", ascending=False, kind="stable")
    if "coder" not in kinds.values():
        table = table.loc[:, :"sd"]
    return table.reset_index(drop=True)


def mean_and_spread(accuracies: np.ndarray, level: float) -> dict[str, float]:
    """Return ``mean``, ``low`` and ``high`` of its interval, and ``sd``; NaN for what is unknown.

    Parameters
    ----------
    accuracies : ndarray of shape (n,)
        Of independent runs or tasks.
    level : float
    """
    n = len(accuracies)
    interval = weighted_mean_interval(accuracies, clusters=np.arange(n), level=level)
    return {
        "mean": float(accuracies.mean()) if n else np.nan,
        # no accuracy lies beyond these
        "low": max(interval.low, 0.0),
        "high": min(interval.high, 1.0),
        "sd": float(accuracies.std(ddof=1)) if n > 1 else np.nan,
    }


def submissions_section(runs: Sequence[CoderRun]) -> ReportSection:
    """Return how far each further submission helps, over all tasks."""
    groups = curve_table(runs).groupby(["framework", "k"], sort=False)
    return ReportSection(
        key="submissions",
        title="Score by number of submissions",
        about=f"{_CURVE_ABOUT} Each task counts as much as another.",
        table=groups[["chosen", "max_on_test"]].mean().reset_index(),
    )


def run_violins(
    values: Mapping[str, np.ndarray], kinds: Mapping[str, str]
) -> list[ChartSeries]:
    """Return the distribution of each framework's runs, one line of a chart each."""
    colours = framework_colours(list(kinds))
    return [
        ChartSeries(
            name=name,
            kind="violin",
            x=runs,
            y=np.full(len(runs), float(position)),
            role="f" if kinds[name] == "reference" else colours[name],
            text=tuple(f"{name}: {value:.3f}" for value in runs),
        )
        for position, (name, runs) in enumerate(values.items())
    ]


def runs_chart(jobs: pd.DataFrame, kinds: Mapping[str, str]) -> Chart:
    """Return all runs of all tasks, by framework."""
    scored = jobs[jobs["status"] == "scored"]
    by_name = dict(list(scored.groupby("framework")["score"]))
    values = {
        name: by_name[name].to_numpy(dtype=float) for name in kinds if name in by_name
    }
    medians = ", ".join(f"{name} {np.median(own):.3f}" for name, own in values.items())
    return Chart(
        key="all-runs",
        title="Runs of all tasks",
        about=f"A point is a run. Medians: {medians}.",
        x_label="accuracy",
        series=tuple(run_violins(values, kinds)),
        y_categories=tuple(values),
    )


def beside_systems(
    runs: Sequence[CoderRun], test_rows: Mapping[str, int]
) -> tuple[ReportSection, ...]:
    """Return what only coders have, in the report of a suite that compares with F.

    There the claims are those of all frameworks, on the same rows; this says what stands behind a
    coder's predictions.

    Parameters
    ----------
    runs : sequence of CoderRun
    test_rows : mapping of str to int
        By AMLB task; runs on others are left out.
    """
    runs = [run for run in runs if run.task in test_rows]
    if not runs:
        return ()
    lines = []
    for (task, framework), group in by_coder(runs).items():
        own = [run for run in group if not run.why_unscored]
        accuracies = [run.selected for run in own]
        line = {"task": task, "framework": framework, "runs": len(own)}
        line["accuracy"] = float(np.mean(accuracies)) if own else np.nan
        lines.append(line | coder_columns(own, test_rows[task]))
    literal = sorted({run.framework for run in runs if run.is_literal})
    told = "Accuracy is of the predictions that all comparisons above rest on. "
    if literal:
        told += (
            "Told the accuracy on the test rows, as WeirdML does, and so not comparable: "
            f"{', '.join(literal)}. "
        )
    return coder_sections(pd.DataFrame(lines), runs, told)
