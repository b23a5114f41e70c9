"""What ``hardsynth generate`` prints: plain text that fits one screen."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from amlb_ext.core.display import format_count, shorten_text, text_table
from amlb_ext.pipeline.request import GenerationReport
from amlb_ext.sources.reading import reading_text

#: What the last columns of the summary count, where they are shown.
CHANGES = {
    "left_out": "left out: test rows whose class no training row of their fold has",
    "replaced": "replaced: test cells whose value no training row of their fold has",
}


#: What F's score is.
MEANINGS = {
    "brier": "Brier loss of classes, lower is better",
    "rmse": "rmse in the target's own unit, lower is better",
}
#: Notes that a command prints; the others stand in a file.
MOST_NOTES = 10


def planned_tasks(report: GenerationReport) -> str:
    """Return what ``hardsynth generate --dry-run`` would make."""
    headers = ["task", "kind", "rows", "columns", "classes", "missing", "folds"]
    rows = []
    for task in report.tasks:
        rows.append([shorten_text(task["task"]), *map(task.get, headers[1:])])
    lines = []
    if report.readings:
        full_table = f"{report.out}/hardsynth/columns.csv, once the suite is made"
        lines += [reading_text(report.readings, full_table), ""]
    if rows:
        lines.append(text_table(headers, rows))
    lines += [*_remarks(report), "", f"dry run: nothing was written to {report.out}"]
    return "\n".join(lines)


def generation_summary(report: GenerationReport, words: Sequence[str] = ()) -> str:
    """Return the one-screen summary of ``hardsynth generate``; ``words`` are its arguments."""
    lines = []
    if report.tasks:
        lines += [_task_table(report.tasks), *column_legend(report.tasks), ""]
    for task, entry in report.verdicts.items():
        verdict = f"{entry['verdict']} ({entry['checks']})"
        lines.append(f"{task}: {verdict}: {entry['reason']}")
    lines += _remarks(report)
    # A failure without a fold is that of a whole task.
    lost_folds = [failure for failure in report.failures if "fold" in failure]
    if lost_folds:
        lines += [
            "",
            f"{format_count(len(lost_folds), 'fold')} lost, logs in {report.out}/hardsynth/logs",
            f"  continue:  hardsynth {shlex.join(words)}",
            "  with a larger --fold-timeout or --fold-memory where a limit was met",
        ]
    if report.written:
        lines += _next_step_lines(report)
    return "\n".join(lines).strip("\n")


def _remarks(report: GenerationReport) -> list[str]:
    """Return the notes, and the tasks that were left out with the reasons."""
    notes = list(dict.fromkeys(report.notes))
    lines = [f"note: {note}" for note in notes[:MOST_NOTES]]
    if len(notes) > MOST_NOTES:
        more = format_count(len(notes) - MOST_NOTES, "more note")
        # a dry run writes no file
        where = f", see {report.out}/hardsynth/notes.txt" if report.written else ""
        lines.append(f"and {more}{where}")
    for failure in report.failures:
        lines.append(f"left out: {failure['task']}: {failure['reason']}")
    return lines


def _next_step_lines(report: GenerationReport) -> list[str]:
    """Return the commands that a user may run on the suite."""
    out = shlex.quote(report.out)
    run = f"hardsynth run FRAMEWORK -u {out}"
    # what stands there already is shown; only a suite without certificates is measured
    judge = "show" if report.verdicts else "certify"
    # The hard rows, and beside them the untouched test folds that a verdict rests on.
    twin = f" -b {report.twin}+{report.benchmark}" if report.twin else ""
    hard_rows = [] if twin else [f"  hard rows: {run} -b {report.benchmark}_all"]
    return [
        "",
        f"suite: {report.out}",
        f"  check it:  hardsynth verify {out}",
        f"  judge it:  hardsynth {judge} {out}",
        f"  run it:    {run}{twin}",
        *hard_rows,
    ]


def _task_table(tasks: Sequence[Mapping[str, Any]]) -> str:
    """Return one line for each task: its rows, and how F does on each part."""
    headers = ["task", "kind", "rows", "folds", "bad", "augm.", "synth.", "score"]
    headers += ["F full", "F bad", "F augm.", "F synth."]
    # Counts over the test rows of all folds; a column of zeros would say nothing.
    changes = [key for key in CHANGES if any(task[key] for task in tasks)]
    headers += [key.replace("_", " ") for key in changes]
    rows = []
    for task in tasks:
        folds = f"{task['folds_with_failures']}/{task['folds']}"
        row = [shorten_text(task["task"]), task["kind"], task["rows"], folds]
        row += map(task.get, ("bad", "augmented", "synthetic", "score_name"))
        # A part without rows has no score; that of all test rows is stored under its own name.
        row += map(task["score"].get, (task["score_name"], "bad", "ga", "synthetic"))
        row += map(task.get, changes)
        rows.append(row)
    return text_table(headers, rows)


def column_legend(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the columns of the summary mean, where their titles do not say it.

    Examples
    --------
    >>> column_legend([{"folds_with_failures": 4, "folds": 10, "score_name": "rmse"}])
    ['folds: those in which F fails, of all; only they have hard rows', "score: F's mean over \
folds; rmse in the target's own unit, lower is better"]
    """
    lines = []
    if any(task["folds_with_failures"] < task["folds"] for task in tasks):
        lines.append("folds: those in which F fails, of all; only they have hard rows")
    names = {task["score_name"] for task in tasks}
    meanings = [text for name, text in MEANINGS.items() if name in names]
    lines.append(f"score: F's mean over folds; {'; '.join(meanings)}")
    shown = [text for key, text in CHANGES.items() if any(t.get(key) for t in tasks)]
    return lines + shown


def kappa_note(summaries: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence that names each fold's calibrated kappa; empty where none was.

    Examples
    --------
    >>> kappa_note([{"calibration": {"kappa": 0.02, "passed": True}}])
    'kappa 0.02, calibrated on the training rows'
    >>> nothing = {"calibration": {"kappa": 0, "passed": False}, "jittered": False}
    >>> kappa_note([nothing])
    'kappa 0, calibrated on the training rows; no kappa passed in 1 fold'
    """
    calibrated = [summary for summary in summaries if "calibration" in summary]
    if not calibrated:
        return ""
    found = [summary["calibration"] for summary in calibrated]
    kappas = [f"{calibration['kappa']:g}" for calibration in found]
    fold_by_fold = " (fold by fold)" if len(set(kappas)) > 1 else ""
    shown = ", ".join(kappas if fold_by_fold else kappas[:1])
    note = f"kappa {shown}{fold_by_fold}, calibrated on the training rows"
    # folds in which no kappa passed, so that kappa is 0
    failed = [summary for summary in calibrated if not summary["calibration"]["passed"]]
    if failed:
        note += f"; no kappa passed in {format_count(len(failed), 'fold')}"
    if jittered := sum(bool(summary.get("jittered")) for summary in failed):
        rows = "there" if jittered == len(failed) else f"of {jittered}"
        note += f", so rows {rows} are only jittered"
    return note
