"""One task's part of a report, built from its files and results in a process of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.relations.wording import describe_rule
from amlb_ext.report import charts
from amlb_ext.report.compare import (
    TaskComparison,
    best_first,
    compare_frameworks,
    is_baseline_framework,
)
from amlb_ext.report.described import (
    TaskSettings,
    describe_task,
    judged_frameworks,
    swap_rows,
)
from amlb_ext.report.given_predictions import CONSTRAINT as GIVEN
from amlb_ext.report.losses import measure_losses, predicted_by
from amlb_ext.report.model import BuiltTask, Chart, TaskReport
from amlb_ext.report.parts import report_parts, score_parts
from amlb_ext.report.predictions import (
    TaskPredictions,
    read_task_predictions,
)
from amlb_ext.report.refits import fit_baseline_again
from amlb_ext.report.still import draw_chart
from amlb_ext.runner.agreement import alarm_text
from amlb_ext.runner.jobs import rerun_commands
from amlb_ext.suite import SuiteFiles, amlb_name
from amlb_ext.suite.fold_notes import CELLS_REPLACED, ROWS_LEFT_OUT, fold_notes
from amlb_ext.swap.answer import Side
from amlb_ext.validity import Certificate
from amlb_ext.validity.certify import read_null

#: AMLB tasks that a report reads, by suffix.
READ = ("full", "", "ga", "synthetic", "hard")
#: Why nothing is claimed on a task whose F is not the one that was run.
NO_CLAIM = (
    "the F that was run is not the F of this suite, whose failures the contrasts are on"
)
WHAT_TO_DO = (
    "hardsynth score DIR fits F here: where it raises no alarm, the environment that AMLB ran in "
    "is the cause, its scikit-learn or pandas first; where it does, generate the suite again with "
    "this version of hardsynth."
)
#: Columns of :func:`tabulate_relations`.
RELATION_COLUMNS = ("task", "relation", "in_words", "kind", "from", "evidence", "folds")
#: Those that are read even where nothing was run on them, for what F does there.
SHOWN = ("full", "", "ga")


def build_task_report(
    directory: str,
    task: str,
    jobs: pd.DataFrame,
    certificate: Certificate | None,
    needed: pd.DataFrame,
    given: Mapping[tuple[str, str, int], pd.DataFrame],
    settings: TaskSettings,
) -> BuiltTask:
    """Read one task's files and results, and judge the frameworks on it.

    Parameters
    ----------
    directory : str
        The suite: read again here, for that is quicker than to send it to a process.
    task : str
    jobs : DataFrame
        The rows of :func:`amlb_ext.runner.read_jobs` that belong to the task.
    certificate : Certificate or None
    needed : DataFrame
        The jobs of the task that a verdict needs and nobody has run, see
        :func:`amlb_ext.runner.jobs.jobs_for_verdict`.
    given : mapping of (str, str, int) to DataFrame
        Predictions from files of the user's, by framework, AMLB task and AMLB's fold.
    settings : TaskSettings

    Raises
    ------
    SuiteError
        The suite is damaged.
    """
    suite = SuiteFiles.load(directory)
    entry = suite.tasks[task]
    # What is read: the suite's rows, with what each framework predicted of them.
    full_name = amlb_name(task, "full")
    # a suite of a stranger may lack it
    n_folds = len(suite.amlb_task(full_name).folds)
    views, refused = _read_views(suite, task, jobs, given)
    full = views["full"]
    incomplete = _incomplete_results(
        jobs[jobs["amlb_task"] == full_name], refused, needed, suite
    )
    # What is claimed: on real rows alone.
    alarm = _baseline_alarm(views)
    measured = measure_losses(full, settings.loss)
    comparison = compare_frameworks(
        task,
        full,
        certificate,
        null=read_null(suite, task),
        incomplete=incomplete,
        folds=n_folds,
        level=settings.level,
        alarm=NO_CLAIM if alarm else "",
        losses=measured,
    )
    # What is described: failures, scores on every part, charts.
    features = _read_features(suite, full.name)
    parts = report_parts(views, comparison.judged.compared.weights)
    refits: tuple[Side, ...] = ()
    no_refits = "--refits 5 does it, in each fold"
    is_asked = settings.refits and settings.swaps
    if is_asked and judged_frameworks(comparison.contrasts):
        refits, no_refits = fit_baseline_again(
            suite, task, full, measured.loss, settings.refits
        )
    built = describe_task(
        task,
        comparison,
        swap_rows(full, comparison.judged, features, measured.loss, refits, no_refits),
        settings,
        columns=[column.as_column() for column in entry.coding.columns],
        loss=measured.title,
        metric=measured.metric,
        predicted=partial(predicted_by, full),
        seed=suite.manifest.seed,
    )
    summaries = [entry.folds[fold].summary for fold in sorted(entry.folds)]
    # the name of the task's source; the task's own where two sources have the same
    source_name = entry.source_name
    namesakes = [t for t in suite.tasks.values() if t.source_name == source_name]
    # rows left out and cells replaced are counted elsewhere
    fold_sentences = [
        note.sentence
        for note in fold_notes(suite.manifest, task)
        if note.kind not in (ROWS_LEFT_OUT, CELLS_REPLACED)
    ]
    report = replace(
        built.report,
        title=source_name if source_name and len(namesakes) == 1 else task,
        kind=entry.kind.value,
        target=entry.target,
        labels=entry.coding.labels,
        rows=test_rows_by_part(suite, task),
        folds=n_folds,
        certificate=certificate,
        scores=score_parts(task, parts, settings.level),
        charts=draw_task_charts(built.report, full, comparison, settings),
        warnings=(*built.report.warnings, *full.warnings),
        notes=(*measured.notes, *built.report.notes, *entry.notes, *fold_sentences),
        alarm=alarm,
        left_out=_sum_counts(summaries, "left_out").total(),
        replaced=dict(_sum_counts(summaries, "replaced")),
        relations=tabulate_relations(task, summaries),
        rejected=sum(
            part.get("relation", 0)
            for summary in summaries
            for part in summary.get("dropped", {}).values()
        ),
        composition=tuple(summaries[0].get("composition", ())) if summaries else (),
        uncertified="The task was not certified: what it may be used for is not known.",
    )
    return replace(built, report=report, refused=refused)


def _read_views(
    suite: SuiteFiles,
    task: str,
    jobs: pd.DataFrame,
    given: Mapping[tuple[str, str, int], pd.DataFrame],
) -> tuple[dict[str, TaskPredictions], dict[int, str]]:
    """Return the AMLB tasks of a task by suffix, and predictions that cannot be used."""
    views: dict[str, TaskPredictions] = {}
    refused: dict[int, str] = {}
    for suffix in READ:
        name = amlb_name(task, suffix)
        has_jobs = (jobs["amlb_task"] == name).any()
        if name in suite.amlb_tasks and (suffix in SHOWN or has_jobs):
            views[suffix], refused_here = read_task_predictions(
                suite, name, jobs, given
            )
            refused |= refused_here
    return views, refused


def _sum_counts(summaries: Sequence[Mapping[str, Any]], key: str) -> Counter[str]:
    """Add up the counts that each fold's summary keeps under a key."""
    total: Counter[str] = Counter()
    for summary in summaries:
        total += Counter(summary.get(key, {}))
    return total


def _baseline_alarm(views: Mapping[str, TaskPredictions]) -> str:
    """Return where the F that AMLB ran is not the F of the suite; empty where it is."""
    # Real rows first: it is their losses that the contrasts are about.
    for suffix in ("full", ""):
        if suffix not in views:
            continue
        predictions = views[suffix]
        sentences = []
        for name in sorted(predictions.f):
            if not is_baseline_framework(name):
                continue
            disagreements = predictions.disagreements(name)
            if disagreements:
                what_differs = alarm_text(f"{name}, as it was run,", disagreements)
                sentences.append(f"{what_differs}. {WHAT_TO_DO}")
        if sentences:  # The other rows would only say the same again.
            return " ".join(sentences)
    return ""


def _incomplete_results(
    jobs: pd.DataFrame,
    refused: Mapping[int, str],
    needed: pd.DataFrame,
    suite: SuiteFiles,
) -> dict[str, str]:
    """Return why a framework's results on real rows are not whole, by framework."""
    not_run = {}
    for framework, of_framework in needed.groupby("framework"):
        remedy = "give predictions of them"
        if set(of_framework["constraint"]) != {GIVEN}:
            # several definitions of a suite have the task: one command is enough
            remedy = rerun_commands(of_framework, suite, "RESULTS")[0]
        folds = [str(fold) for fold in of_framework["fold"]]
        not_run[str(framework)] = {f"not run ({remedy})": folds}
    return incomplete_texts(jobs, refused, not_run)


def incomplete_texts(
    jobs: pd.DataFrame,
    refused: Mapping[int, str],
    not_run: Mapping[str, dict[str, list[str]]] = MappingProxyType({}),
    *,
    statuses: Collection[str] = ("failed", "missing", "refused"),
) -> dict[str, str]:
    """Return why results are not whole, by framework; whole ones are left out.

    Parameters
    ----------
    jobs : DataFrame
        With the columns :data:`amlb_ext.runner.jobs.JOB_COLUMNS`.
    refused : mapping of int to str
        Why predictions of a scored job cannot be used, by index in ``jobs``.
    not_run : mapping of str to dict
        Folds by reason and framework that no job stands for.
    statuses : collection of str
        What makes results incomplete.
    """
    incomplete: dict[str, str] = {}
    for framework in sorted({*jobs["framework"], *not_run}):
        framework_jobs = jobs[jobs["framework"] == framework]
        folds_by_reason: dict[str, list[str]] = dict(not_run.get(framework, {}))
        records = framework_jobs.to_dict("records")
        for index, job in zip(framework_jobs.index, records, strict=True):
            status = str(job["status"])
            reason = str(job["reason"])
            # A job that AMLB scored, and whose predictions were then found wanting.
            if index in refused:
                status = "refused"
                reason = refused[index]
            if status in statuses:
                fold = str(int(job["fold"]))
                folds_by_reason.setdefault(f"{status} ({reason})", []).append(fold)
        texts = []
        for reason, folds in folds_by_reason.items():
            plural = "s" if len(folds) > 1 else ""
            texts.append(f"fold{plural} {', '.join(folds)} {reason}")
        if texts:
            incomplete[str(framework)] = "; ".join(texts)
    return incomplete


def test_rows_by_part(suite: SuiteFiles, task: str) -> dict[str, int]:
    """Return test rows by part, all folds together; a part without rows has no AMLB task."""
    counts = {}
    for suffix in ("full", "bad", "ga", "synthetic"):
        amlb_task = suite.amlb_tasks.get(amlb_name(task, suffix))
        counts[suffix] = sum(amlb_task.test_rows) if amlb_task is not None else 0
    return counts


def draw_task_charts(
    report: TaskReport,
    full: TaskPredictions,
    comparison: TaskComparison,
    settings: TaskSettings,
) -> tuple[Chart, ...]:
    """Return the charts of a task, already drawn: this is a process of the task's own."""
    if not settings.points:
        return ()
    order = best_first(comparison.contrasts)
    colours = settings.colours
    # Real rows: ROC curves of classes, predictions against the truth of numbers.
    if full.labels:
        compared = comparison.judged.compared
        weights = compared.weights if compared.weighting.is_weighted else None
        models = charts.roc_chart(
            report.name, full, order, colours=colours, weights=weights
        )
    else:
        # several frameworks share the chart
        most = max(40, settings.points // 4)
        models = charts.truth_chart(
            report.name, full, order, colours=colours, most=most
        )
    shown = [chart for chart in (*report.charts, models) if chart is not None]
    return tuple(replace(chart, drawn=draw_chart(chart)) for chart in shown)


def _read_features(suite: SuiteFiles, name: str) -> pd.DataFrame:
    """Read the features of an AMLB task's test rows, folds stacked.

    Cells that were replaced, because no training row knows their category, are missing: what
    stands in their place says nothing about the row.
    """
    coding = suite.coding(name)
    features_by_fold = []
    n_folds = len(suite.amlb_task(name).folds)
    for index in range(n_folds):
        _, test_file = suite.pair(name, index)
        features, _ = coding.decode(coding.read_csv(test_file))
        provenance = suite.provenance(name, index)
        # Names of replaced columns, joined by commas: one entry per cell after this.
        replaced = provenance["substituted"]
        replaced = replaced[replaced.to_numpy() != ""]
        replaced = replaced.str.split(",").explode()
        for column in coding.columns:
            is_replaced = (replaced == column.written).to_numpy(dtype=bool)
            rows = replaced.index[is_replaced]
            if len(rows):
                features.loc[rows, column.name] = np.nan
        features_by_fold.append(features)
    return pd.concat(features_by_fold, ignore_index=True)


def tabulate_relations(
    task: str, summaries: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the relations that made rows keep, one row for each.

    Parameters
    ----------
    task : str
    summaries : sequence of mapping
        Of the folds, from the manifest.

    Returns
    -------
    DataFrame
        ``task``, ``relation`` (in the rule language), ``in_words``, ``kind``, ``from`` (``mined``
        or ``declared``), ``evidence`` (the least of all folds; missing where a user declared the
        relation) and ``folds`` (how many keep it). What most folds keep comes first.

    Examples
    --------
    >>> rule = {"rule": "a <= b", "kind": "order", "from": "mined", "evidence": 12.0}
    >>> table = tabulate_relations("t", [{"relations": {"list": [rule]}}, {}])
    >>> table[["in_words", "folds"]].values.tolist()
    [['a is at most b', 1]]
    """
    by_rule: dict[str, dict[str, Any]] = {}
    n_folds: Counter[str] = Counter()
    for summary in summaries:
        for entry in summary.get("relations", {}).get("list", ()):
            rule = entry["rule"]
            n_folds[rule] += 1
            known = by_rule.setdefault(rule, dict(entry))
            if entry["evidence"] is not None:
                # one number per relation: the fold in which it is least certain
                known["evidence"] = min(known["evidence"], entry["evidence"])
    rows = [
        {
            "task": task,
            "relation": rule,
            "in_words": describe_rule(rule),
            "kind": entry["kind"],
            "from": entry["from"],
            "evidence": entry["evidence"],
            "folds": n_folds[rule],
        }
        for rule, entry in by_rule.items()
    ]
    table = pd.DataFrame(rows, columns=list(RELATION_COLUMNS))
    return table.sort_values("folds", ascending=False, kind="stable", ignore_index=True)
