"""``hardsynth publish``: a suite as data sets, tasks and a suite of an OpenML server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.core.display import escape_controls, shorten_text, text_table

if TYPE_CHECKING:
    from amlb_ext.publish import PublishPlan, PublishReport


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "publish",
        help="publish a suite to OpenML",
        description="Send every fold of the suite's main tasks to an OpenML server, as a data set "
        "and a task; check that the split the server makes is the suite's; then make an OpenML "
        "suite of the tasks. Run the same command again to continue an interrupted one. The API "
        "key comes from the variable OPENML_APIKEY or the OpenML client's configuration. Exit "
        "status 1: something is not finished yet, or a task was left out.",
    )
    parser.add_argument("suite", metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--server",
        required=True,
        metavar="SERVER",
        help="test, production, or an address like https://HOST/api/v1/xml",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="check and print what would be sent, without any network",
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
        type=int,
        metavar="K",
        help="publish this fold of AMLB only; repeat the flag for several (default: all)",
    )
    parser.add_argument(
        "--fit",
        choices=("repeat", "drop"),
        default="repeat",
        help="how to meet the server's ratio of test rows: send test rows several times, or leave "
        "training rows out (default: repeat)",
    )
    parser.add_argument(
        "--licence",
        action="append",
        default=[],
        metavar="[TASK=]TEXT",
        help="licence to publish under, where the source states none that allows publishing; "
        "repeat the flag for several source tasks",
    )
    parser.add_argument(
        "--url",
        default="",
        metavar="URL",
        help="address where the suite's files can be downloaded",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="longest time to wait until the server has activated the data sets (default: 900)",
    )
    add_output_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Publish a suite, or say what would be; see :mod:`amlb_ext.publish`."""
    from amlb_ext.core.errors import ConfigError
    from amlb_ext.publish import (
        Server,
        api_key,
        plan_suite,
        publish_plan,
        server_url,
        write_plan,
    )
    from amlb_ext.suite.sealed_json import json_text

    url = server_url(arguments.server)
    if arguments.out and not arguments.dry_run:
        raise ConfigError(
            "--out was given without --dry-run", "add --dry-run, or leave --out out"
        )
    key = "" if arguments.dry_run else api_key(url)
    plan = plan_suite(
        arguments.suite,
        only=arguments.only,
        folds=arguments.fold,
        fit=arguments.fit,
        licences=arguments.licence,
        url=arguments.url,
    )
    quiet = is_quiet(arguments)
    if arguments.dry_run:
        written = write_plan(plan, Path(arguments.out)) if arguments.out else []
        if arguments.json:
            print(json_text({"server": url, "dry_run": True, **plan.to_json()}), end="")
        elif not arguments.quiet:
            print(_plan(plan, url))
            if written:
                print(f"{len(written)} files were written to {arguments.out}")
        return 0
    report = publish_plan(
        plan,
        Server(url, key),
        wait=arguments.wait,
        say=(lambda text: None) if quiet else _print_progress,
    )
    if arguments.json:
        print(json_text(report.to_json()), end="")
    elif not report.ok or not arguments.quiet:
        print(_report(report, arguments))
    return 0 if report.ok else 1


def _print_progress(text: str) -> None:
    print(escape_controls(text), file=sys.stderr, flush=True)


def _plan(plan: PublishPlan, url: str) -> str:
    """Return what would be sent, one row per unit, then what is odd."""
    from amlb_ext.publish.plan import megabytes

    entries = plan.to_json()["units"]
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
    rows = [
        [
            shorten_text(e["name"], 48),
            e["rows"],
            "{} of {}".format(*e["train"]),
            "{} of {}".format(*e["test"]),
            e["repeats"],
            e["procedure"]["id"],
            e["measure"] or "-",
            megabytes(e["bytes"]),
            shorten_text(e["licence"]["text"], 28)
            + (" (stated)" if e["licence"]["stated"] else ""),
        ]
        for e in entries
    ]
    lines = [text_table(headers, rows), ""]
    verdicts = {
        plan.suite.amlb_tasks[e["amlb_task"]].task: e["verdict"] for e in entries
    }
    lines += [f"{task}: {verdict}" for task, verdict in verdicts.items()]
    lines += [f"note: {e['name']}: {note}" for e in entries for note in e["notes"]]
    procedures = {e["procedure"]["id"]: e["procedure"]["name"] for e in entries}
    splits = ", ".join(
        f"{number} is '{name}'" for number, name in sorted(procedures.items())
    )
    lines += ["", f"split: {splits}; test rows are sent as often as 'times' says"]
    lines.append(f"suite: {plan.alias}, {len(entries)} tasks, tagged hardsynth")
    lines.append(
        f"dry run: nothing was sent to {url}; all is within the server's limits"
    )
    return "\n".join(lines)


def _report(report: PublishReport, arguments: argparse.Namespace) -> str:
    """Return what became of each unit, then the suite or why there is none."""
    headers = ["data set", "data id", "task id", "status"]
    rows = [
        [shorten_text(o.name, 48), o.data_id, o.task_id, o.status]
        for o in report.outcomes
    ]
    lines = [text_table(headers, rows), ""]
    lines += [f"{o.name}: {o.reason}" for o in report.outcomes if o.reason]
    lines.append(f"journal: {report.journal}")
    if report.suite_id is None:
        lines.append(f"no suite yet: {report.reason}")
        if any(o.status == "waiting" for o in report.outcomes):
            lines.append("the same command continues")
        return "\n".join(lines)
    lines.append(f"suite: {report.suite_id} ({report.alias})")
    spec, here = (
        f"openml/s/{report.suite_id}",
        arguments.server in ("test", "production"),
    )
    spec = f"test.{spec}" if arguments.server == "test" else spec
    server = "" if here else f" --openml-server {report.server}"
    lines.append(f"  read it:  hardsynth generate {spec}{server} --dry-run -o DIR")
    if here:  # AMLB knows these two servers only
        lines.append(f"  run it:   python runbenchmark.py FRAMEWORK {spec}")
    return "\n".join(lines)
