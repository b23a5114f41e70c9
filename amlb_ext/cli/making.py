"""What the commands share that make a suite: ``generate`` and ``harden``."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from amlb_ext.cli import show
from amlb_ext.cli.execution import add_execution, execution_from
from amlb_ext.cli.flags import add_flags, layer_from
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
        print(show.plan(report) if arguments.dry_run else show.generation(report, arguments.words))
    return 0 if not report.failures else 1
