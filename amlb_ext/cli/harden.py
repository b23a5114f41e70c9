"""``hardsynth harden``: the hard twin of a benchmark that AMLB already has."""

from __future__ import annotations

import argparse
from typing import Any

from amlb_ext.cli.forecasting import add_origin_flags, harden_series, hardens_series
from amlb_ext.cli.make_suite import add_suite_flags, make_suite, show_common_flags
from amlb_ext.core.paths import check_sources


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "harden",
        help="write the hard twin of an AMLB benchmark",
        examples="hardsynth harden validation -o hard",
        description="Make every task of an AMLB benchmark hard, as 'generate' does, and add the "
        "definition NAME_hard: the same task names, limits and metrics on hard rows, so that "
        "results of NAME and NAME_hard can be compared side by side. Unless --name is given, the "
        "main definitions are called hardsynth_NAME, so that the twins of several benchmarks can "
        "be installed together. Run the same command again to continue an interrupted run.",
    )
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        help="name of an AMLB definition (validation, small, or one of your own), its file, or "
        "openml/s/ID or openml/t/ID",
    )
    add_origin_flags(parser.add_argument_group("a benchmark of series"))
    add_suite_flags(parser)
    show_common_flags(parser, "benchmark")
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write a suite with the hard twin of a benchmark, of tables or of series."""
    check_sources((arguments.benchmark,))
    from amlb_ext.pipeline.twin import default_twin_name

    # Only a default: a name from the settings file or the command line takes precedence.
    defaults = {"name": default_twin_name(arguments.benchmark)}
    if hardens_series(arguments):
        return harden_series(arguments, defaults["name"])
    return make_suite(arguments, (arguments.benchmark,), twin=True, defaults=defaults)
