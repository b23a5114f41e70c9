"""``hardsynth publish``: a suite as data sets, tasks and a suite of an OpenML server."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from amlb_ext.cli.command import Form, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.checked_call import CountOrNone
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_suite_folder

_FORMS = [
    Form(
        where="with --difficulty",
        holds=itemgetter("difficulty"),
        unused=("fold", "fit", "url", "wait"),
        instead="leave it out: it is of tasks, and these data have none",
    ),
    Form(where="with --dry-run", holds=itemgetter("dry_run"), unused=("wait",)),
    Form(
        where="without --dry-run",
        holds=lambda given: not given["dry_run"],
        unused=("out",),
        instead="add --dry-run",
    ),
]


@command(
    group="research",
    flag_names={"out": "--out", "fold": "--fold"},
    forms=_FORMS,
)
def publish(
    suite: Suite,
    *,
    server: str,
    dry_run: bool = False,
    out: Path | None = None,
    only: Sequence[str] = (),
    fold: Sequence[CountOrNone] = (),
    fit: Literal["repeat", "drop"] = "repeat",
    licence: Sequence[str] = (),
    difficulty: bool = False,
    url: str = "",
    wait: Annotated[float, Field(ge=0)] = 900.0,
    yes: bool = False,
    quiet: bool = False,
) -> Answer:
    """Publish a suite to OpenML.

    Send every fold of the suite's main tasks to an OpenML server, as a data set and a task; check
    that the server splits the rows as the suite does; then make an OpenML suite of the tasks. Run
    the same command again to continue after an interruption. The API key comes from the variable
    OPENML_APIKEY or from the configuration of the OpenML client. Exit status 1: something is not
    finished yet, or a task was left out.

    Parameters
    ----------
    server : SERVER
        test, production, or an address like https://HOST/api/v1/xml
    dry_run : bool
        check and print what would be sent, without using the network
    out : FOLDER
        with --dry-run: also write the ARFF and XML files to this folder
    only : TASK
        publish this AMLB task only; repeat the flag for several (default: the tasks of the main
        definition)
    fold : K
        publish this fold of AMLB only; repeat the flag for several (default: all)
    fit : str
        how to reach the server's ratio of test rows: send test rows several times (repeat), or
        leave training rows out (drop)
    licence : [TASK=]TEXT
        licence to publish under, if the source states no licence that allows publishing; repeat the
        flag for several source tasks
    difficulty : bool
        publish how hard each row of the sources is, a data set for each task that is linked to its
        source, and no tasks (docs/how-to/difficulty.md)
    url : URL
        address from which the suite's files can be downloaded
    wait : SECONDS
        longest time to wait for the server to activate the data sets
    yes : bool
        send to the production server without asking

    Examples
    --------
    $ hardsynth publish hard --server test --dry-run
    """
    check_suite_folder(suite)
    from amlb_ext.publish import Server, api_key, plan_suite, server_url, write_plan
    from amlb_ext.publish.publish import plan_text, publish_plan, report_text
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.suite.sealed_json import json_text

    # a suite whose tasks OpenML has no type for is told before a key is asked for
    SuiteFiles.load(suite)
    address = server_url(server)
    # before the plan, which takes a while: a missing key ends the command at once
    key = "" if dry_run else api_key(address)
    asks = address == server_url("production") and not (dry_run or yes)
    from amlb_ext.difficulty import publication
    from amlb_ext.runner.processes import say_nothing

    say = say_nothing if quiet else _print_progress
    chosen = {"only": only, "licences": licence}
    if dry_run:
        entry: dict[str, Any] = {"server": address, "dry_run": True}
        if difficulty:
            units = publication.plan_difficulty(suite, **chosen)
            if out:
                publication.write_difficulty_plan(units, out)
            entry["units"] = [unit.to_json() for unit in units]
            text = publication.plan_text(entry["units"], address)
        else:
            plan = plan_suite(suite, folds=fold, fit=fit, url=url, **chosen)
            entry |= plan.to_json()
            text = plan_text(plan, address)
            if out:
                text += f"\n{len(write_plan(plan, out))} files were written to {out}"
        return Answer(lambda: text, lambda: json_text(entry))
    place = Server(address, key)
    if difficulty:
        units = publication.plan_difficulty(suite, **chosen)
        if asks:
            confirm_production(f"{len(units)} data sets", address, suite)
        outcomes = publication.publish_difficulty(suite, units, place, say=say)
        is_done = all(outcome.status in ("sent", "there") for outcome in outcomes)
        text = publication.outcomes_text(outcomes)
        entries: Any = [asdict(outcome) for outcome in outcomes]
    else:
        plan = plan_suite(suite, folds=fold, fit=fit, url=url, **chosen)
        if asks:
            what = f"data sets and tasks, {len(plan.units)} of each,"
            confirm_production(what, address, suite)
        report = publish_plan(plan, place, wait=wait, say=say)
        is_done = report.ok
        text = report_text(report, server)
        entries = report.to_json()
    return Answer(
        lambda: text,
        lambda: json_text(entries),
        status=0 if is_done else 1,
        # an unfinished publication is an error
    )


def confirm_production(what: str, url: str, suite: Path) -> None:
    """Ask before anything is sent where nothing can be taken back.

    Parameters
    ----------
    what : str
        What would be sent.
    url : str
        Of the server.
    suite : path

    Raises
    ------
    ConfigError
        The user declines, or there is no terminal to ask at.
    """
    look = (
        f"look at them first: hardsynth publish {shlex.quote(str(suite))} --server production "
        "--dry-run"
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


def _print_progress(text: str) -> None:
    # standard error has no guard against control characters of its own
    print(escape_controls(text), file=sys.stderr, flush=True)
