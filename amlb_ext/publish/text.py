"""What a publication would send, and what became of it, for a terminal."""

from __future__ import annotations

from typing import Any

from amlb_ext.core.display import shorten_text, text_table
from amlb_ext.publish.plan import PublishPlan, megabytes
from amlb_ext.publish.publish import PublishReport


def plan_text(plan: PublishPlan, url: str) -> str:
    """Return what would be sent, one row per data set, then verdicts, notes and splits."""
    units = plan.to_json()["units"]
    headers = [
        "data set",
        "rows",
        "train",
        "test",
        "times",
        "split",
        "measure",
        "size",
        "licence",
    ]
    lines = [text_table(headers, [_unit_row(unit) for unit in units]), ""]
    # Several data sets belong to one task, whose verdict is printed once.
    verdicts = {}
    for unit in units:
        task = plan.suite.amlb_tasks[unit["amlb_task"]].task
        verdicts[task] = unit["verdict"]
    lines += [f"{task}: {verdict}" for task, verdict in verdicts.items()]
    for unit in units:
        lines += [f"note: {unit['name']}: {note}" for note in unit["notes"]]
    procedures = {unit["procedure"]["id"]: unit["procedure"]["name"] for unit in units}
    splits = []
    for number, name in sorted(procedures.items()):
        splits.append(f"{number} is '{name}'")
    lines += [
        "",
        f"split: {', '.join(splits)}; test rows are sent as often as 'times' says",
        f"suite: {plan.alias}, {len(units)} tasks, tagged hardsynth",
        f"dry run: nothing was sent to {url}; all is within the server's limits",
    ]
    return "\n".join(lines)


def _unit_row(unit: dict[str, Any]) -> list[Any]:
    """Return the row of one data set in the table of a plan."""
    # What the command line states replaces what the source lacks, so it is marked.
    licence = shorten_text(unit["licence"]["text"], 28)
    if unit["licence"]["stated"]:
        licence += " (stated)"
    return [
        shorten_text(unit["name"], 48),
        unit["rows"],
        "{} of {}".format(*unit["train"]),
        "{} of {}".format(*unit["test"]),
        unit["repeats"],
        unit["procedure"]["id"],
        unit["measure"] or "-",
        megabytes(unit["bytes"]),
        licence,
    ]


def report_text(report: PublishReport, server: str) -> str:
    """Return what became of each data set, then the suite or why there is none."""
    headers = ["data set", "data id", "task id", "status"]
    rows = []
    for outcome in report.outcomes:
        name = shorten_text(outcome.name, 48)
        rows.append([name, outcome.data_id, outcome.task_id, outcome.status])
    lines = [text_table(headers, rows), ""]
    for outcome in report.outcomes:
        if outcome.reason:
            lines.append(f"{outcome.name}: {outcome.reason}")
    lines.append(f"journal: {report.journal}")
    if report.suite_id is None:
        lines.append(f"no suite yet: {report.reason}")
        if any(outcome.status == "waiting" for outcome in report.outcomes):
            lines.append("the same command continues")
        return "\n".join(lines)
    lines.append(f"suite: {report.suite_id} ({report.alias})")
    lines += _suite_commands(report, server)
    return "\n".join(lines)


def _suite_commands(report: PublishReport, server: str) -> list[str]:
    """Return the commands that read and run the published suite."""
    spec = f"openml/s/{report.suite_id}"
    if server == "test":
        spec = f"test.{spec}"
    if server in ("test", "production"):
        return [
            f"  read it:  hardsynth generate {spec} --dry-run -o DIR",
            f"  run it:   python runbenchmark.py FRAMEWORK {spec}",
        ]
    # AMLB knows the two servers above only, so it cannot run a suite of another one.
    server_flag = f"--openml-server {report.server}"
    return [f"  read it:  hardsynth generate {spec} {server_flag} --dry-run -o DIR"]
