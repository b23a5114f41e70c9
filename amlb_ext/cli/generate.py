"""What the commands share that make a suite: ``generate`` and ``harden``."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from amlb_ext.cli import display
from amlb_ext.cli.flags import add_execution, add_flags, execution_from, layer_from
from amlb_ext.core.config import build_config, read_config

Add = Callable[[argparse.ArgumentParser], None]


def add_making(parser: argparse.ArgumentParser, jobs: Add, output: Add) -> None:
    """Add the flags of a command that makes a suite, every setting among them.

    Parameters
    ----------
    parser : ArgumentParser
    jobs, output : callable
        Add the flags that every command shares.
    """
    parser.add_argument("-o", "--out", required=True, metavar="DIR", help="the suite's folder")
    parser.add_argument("--config", metavar="FILE", help="settings as YAML; flags win")
    jobs(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be made, and stop")
    parser.add_argument(
        "--force", action="store_true", help="replace a suite that was made with other settings"
    )
    parser.add_argument(
        "--certificate",
        choices=("quick", "full", "none"),
        default="quick",
        help="candidates that the certificates are measured with (default: quick)",
    )
    add_execution(parser)
    output(parser)
    add_flags(parser)


def trust_flag(parser: argparse.ArgumentParser) -> None:
    """Add the permission to build whatever class a suite names."""
    parser.add_argument(
        "--trust-suite",
        action="store_true",
        help="fit any class that the suite names; it may run any code, so only your own suites",
    )


def make(
    arguments: argparse.Namespace,
    sources: tuple[str, ...],
    *,
    twin: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> int:
    """Make a suite and print what came of it; see :func:`amlb_ext.pipeline.generate_suite`.

    Parameters
    ----------
    arguments : Namespace
        With the flags of :func:`add_making`.
    sources : tuple of str
    twin : bool
        Also write the hard twin of the one benchmark in ``sources``.
    defaults : mapping, optional
        Settings below the file's and the flags'.
    """
    below = read_config(Path(arguments.config)) if arguments.config else {}
    config = build_config({**(defaults or {}), **below}, layer_from(arguments))
    from amlb_ext.pipeline import Request, generate_suite

    request = Request(
        sources=sources,
        config=config,
        out=Path(arguments.out),
        execution=execution_from(arguments),
        force=arguments.force,
        dry_run=arguments.dry_run,
        quiet=arguments.quiet or arguments.json,
        certificate=arguments.certificate,
        twin=twin,
        logs=Path(arguments.logs) if arguments.logs else None,
    )
    report = generate_suite(request)
    if arguments.json:
        print(json.dumps(dataclasses.asdict(report), indent=2, sort_keys=True, default=str))
    elif not arguments.quiet:
        print(
            display.plan(report)
            if arguments.dry_run
            else display.generation(report, arguments.words)
        )
    return 0 if not report.failures else 1


# ``hardsynth harden``: the hard twin of a benchmark that AMLB has already.


def add_harden(commands: Any, jobs: Add, output: Add) -> None:
    """Add the command to the parser of all commands.

    Parameters
    ----------
    commands : argparse's subparsers
    jobs, output : callable
        Add the flags that every command shares.
    """
    harden = commands.add_parser(
        "harden",
        help="write the hard twin of an AMLB benchmark",
        description="Make every task of an AMLB benchmark hard, as 'generate' does, and add the "
        "definition NAME_hard: the same task names, limits and metrics on hard rows, so that "
        "results of NAME and NAME_hard stand side by side. The same command continues an "
        "interrupted run. Unless --name is given, the main definitions are called "
        "hardsynth_NAME, so that twins of several benchmarks can be installed side by side.",
    )
    harden.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        help="an AMLB definition, by name (validation, small, one of yours) or by its file",
    )
    add_making(harden, jobs, output)


def harden(arguments: argparse.Namespace) -> int:
    """Write a suite with the hard twin of a benchmark; see :mod:`amlb_ext.pipeline.twin`."""
    from amlb_ext.pipeline.twin import default_twin_name

    defaults = {"name": default_twin_name(arguments.benchmark)}
    return make(arguments, (arguments.benchmark,), twin=True, defaults=defaults)
