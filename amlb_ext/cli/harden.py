"""``hardsynth harden``: the hard twin of a benchmark that AMLB has already."""

from __future__ import annotations

import argparse
from typing import Any

from amlb_ext.cli.making import Add, add_making, make


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
    from amlb_ext.pipeline.twin import default_name

    defaults = {"name": default_name(arguments.benchmark)}
    return make(arguments, (arguments.benchmark,), twin=True, defaults=defaults)
