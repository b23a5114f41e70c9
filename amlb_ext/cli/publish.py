"""``hardsynth publish``: a suite as data sets, tasks and a suite of an OpenML server."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.cli.numbers import real_number, whole_number
from amlb_ext.cli.series_suites import refuse_publishing
from amlb_ext.core.display import escape_controls, shorten_text, text_table
from amlb_ext.core.paths import check_suite_folder

if TYPE_CHECKING:
    from amlb_ext.publish import PublishPlan, PublishReport


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "publish",
        help="publish a suite to OpenML",
        examples="hardsynth publish hard --server test --dry-run",
        description="Send every fold of the suite's main tasks to an OpenML server, as a data set "
        "and a task; check that the server splits the rows as the suite does; then make an OpenML "
        "suite of the tasks. Run the same command again to continue after an interruption. The "
        "API key comes from the variable OPENML_APIKEY or from the configuration of the OpenML "
        "client. Exit status 1: something is not finished yet, or a task was left out.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--server",
        required=True,
        metavar="SERVER",
        help="test, production, or an address like https://HOST/api/v1/xml",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check and print what would be sent, without using the network",
    )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="with --dry-run: also write the ARFF and XML files to this folder",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TASK",
        help="publish this AMLB task only; repeat the flag for several (default: the tasks of the "
        "main definition)",
    )
    parser.add_argument(
        "--fold",
        action="append",
        default=[],
        type=whole_number(0),
        metavar="K",
        help="publish this fold of AMLB only; repeat the flag for several (default: all)",
    )
    parser.add_argument(
        "--fit",
        choices=("repeat", "drop"),
        default="repeat",
        help="how to reach the server's ratio of test rows: send test rows several times "
        "(repeat), or leave training rows out (drop) (default: repeat)",
    )
    parser.add_argument(
        "--licence",
        action="append",
        default=[],
        metavar="[TASK=]TEXT",
        help="licence to publish under, if the source states no licence that allows publishing; "
        "repeat the flag for several source tasks",
    )
    parser.add_argument(
        "--difficulty",
        action="store_true",
        help="publish how hard each row of the sources is, a data set for each task that is linked "
        "to its source, and no tasks (docs/how-to/difficulty.md)",
    )
    parser.add_argument(
        "--url",
        default="",
        metavar="URL",
        help="address from which the suite's files can be downloaded",
    )
    parser.add_argument(
        "--wait",
        type=real_number(0, or_equal=True),
        default=900.0,
        metavar="SECONDS",
        help="longest time to wait for the server to activate the data sets (default: 900)",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="send to the production server without asking",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Publish a suite, or print what would be published; see :mod:`amlb_ext.publish`."""
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.core.errors import ConfigError
    from amlb_ext.publish import (
        Server,
        api_key,
        plan_suite,
        publish_plan,
        server_url,
    )
    from amlb_ext.suite.sealed_json import json_text

    refuse_publishing(arguments.suite)
    url = server_url(arguments.server)
    if arguments.out and not arguments.dry_run:
        raise ConfigError(
            "--out was given without --dry-run", "add --dry-run, or leave --out out"
        )
    # Before the plan, which takes a while: a missing key ends the command at once.
    key = "" if arguments.dry_run else api_key(url)
    if arguments.difficulty:
        return _publish_difficulty(arguments, url, key)
    plan = plan_suite(
        arguments.suite,
        only=arguments.only,
        folds=arguments.fold,
        fit=arguments.fit,
        licences=arguments.licence,
        url=arguments.url,
    )
    if arguments.dry_run:
        return _show_plan(plan, url, arguments)
    if url == server_url("production") and not arguments.yes:
        confirm_production(len(plan.units), url, arguments)
    report = publish_plan(
        plan,
        Server(url, key),
        wait=arguments.wait,
        say=_print_nothing if is_quiet(arguments) else _print_progress,
    )
    if arguments.json:
        print(json_text(report.to_json()), end="")
    # With --quiet, too: an unfinished publication is an error.
    elif not report.ok or not arguments.quiet:
        print(_report_text(report, arguments.server))
    return 0 if report.ok else 1


def _publish_difficulty(arguments: argparse.Namespace, url: str, key: str) -> int:
    """Publish difficulty data, or print what would be published."""
    from dataclasses import asdict

    from amlb_ext.difficulty.publication import (
        plan_difficulty,
        publish_difficulty,
        write_difficulty_plan,
    )
    from amlb_ext.publish import Server, server_url
    from amlb_ext.suite.sealed_json import json_text

    units = plan_difficulty(
        arguments.suite, only=arguments.only, licences=arguments.licence
    )
    if arguments.dry_run:
        if arguments.out:
            write_difficulty_plan(units, Path(arguments.out))
        entries = [unit.to_json() for unit in units]
        if arguments.json:
            print(json_text({"server": url, "dry_run": True, "units": entries}), end="")
        elif not arguments.quiet:
            print(_difficulty_plan_text(entries, url))
        return 0
    if url == server_url("production") and not arguments.yes:
        confirm_production(len(units), url, arguments, what="data sets")
    outcomes = publish_difficulty(
        arguments.suite,
        units,
        Server(url, key),
        say=_print_nothing if is_quiet(arguments) else _print_progress,
    )
    is_done = all(outcome.status in ("sent", "there") for outcome in outcomes)
    if arguments.json:
        print(json_text([asdict(outcome) for outcome in outcomes]), end="")
    elif not is_done or not arguments.quiet:
        rows = [
            [shorten_text(outcome.name, 48), outcome.data_id, outcome.status]
            for outcome in outcomes
        ]
        print(text_table(["data set", "data id", "status"], rows))
    return 0 if is_done else 1


def _difficulty_plan_text(units: list[dict[str, Any]], url: str) -> str:
    """Return what would be sent, one row per data set."""
    from amlb_ext.publish.plan import megabytes

    rows = []
    for unit in units:
        licence = shorten_text(unit["licence"]["text"], 28)
        if unit["licence"]["stated"]:
            licence += " (stated)"
        size = megabytes(unit["bytes"])
        rows.append([shorten_text(unit["name"], 48), unit["rows"], size, licence])
    lines = [text_table(["data set", "rows", "size", "licence"], rows)]
    for unit in units:
        lines += [f"note: {unit['name']}: {note}" for note in unit["notes"]]
    lines.append(
        f"dry run: nothing was sent to {url}; all is within the server's limits"
    )
    return "\n".join(lines)


def confirm_production(
    n_units: int, url: str, arguments: argparse.Namespace, what: str = ""
) -> None:
    """Ask before anything is sent where nothing can be taken back.

    Parameters
    ----------
    n_units : int
        Data sets, and tasks, that would be sent.
    url : str
        Of the server.
    arguments : Namespace
    what : str
        What they are, where they are not data sets and tasks.

    Raises
    ------
    ConfigError
        The user declines, or there is no terminal to ask at.
    """
    from amlb_ext.core.errors import ConfigError

    what = f"{n_units} {what}" if what else f"data sets and tasks, {n_units} of each,"
    suite = shlex.quote(arguments.suite)
    look = (
        f"look at them first: hardsynth publish {suite} --server production --dry-run"
    )
    if not sys.stdin or not sys.stdin.isatty():
        raise ConfigError(
            f"{what} would be sent to {url}, where nothing can be taken back, and there is no "
            "terminal to ask at",
            f"add --yes to send them; {look}",
        )
    print(
        f"{what} will be sent to {url}. Nothing can be taken back.\n{look}",
        file=sys.stderr,
    )
    print("Send them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was sent", "answer y, or add --yes")


def _show_plan(plan: PublishPlan, url: str, arguments: argparse.Namespace) -> int:
    """Print what would be sent, and write the files if the user asks for them."""
    from amlb_ext.publish import write_plan
    from amlb_ext.suite.sealed_json import json_text

    written = write_plan(plan, Path(arguments.out)) if arguments.out else []
    if arguments.json:
        entry = {"server": url, "dry_run": True, **plan.to_json()}
        print(json_text(entry), end="")
    elif not arguments.quiet:
        print(_plan_text(plan, url))
        if written:
            print(f"{len(written)} files were written to {arguments.out}")
    return 0


def _print_progress(text: str) -> None:
    # standard error has no guard against control characters of its own
    print(escape_controls(text), file=sys.stderr, flush=True)


def _print_nothing(text: str) -> None:
    """Report no progress."""


def _plan_text(plan: PublishPlan, url: str) -> str:
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
    from amlb_ext.publish.plan import megabytes

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


def _report_text(report: PublishReport, server: str) -> str:
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
