"""``hardsynth generate``: a hard benchmark of any sources."""

from __future__ import annotations

import argparse
from typing import Any

from amlb_ext.cli.forecasting import add_series_flags, generate_series, takes_series
from amlb_ext.cli.make_suite import add_suite_flags, make_suite, show_common_flags
from amlb_ext.cli.numbers import whole_number


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "generate",
        help="write a hard benchmark",
        examples="hardsynth generate -o hard\n"
        "hardsynth generate data.csv --target price -o hard\n"
        "hardsynth generate openml/t/31 openml/s/271 -o hard",
        description="Find the rows on which the baseline fails, augment them, learn their "
        "distribution, and write a suite that AMLB runs unchanged. Run the same command again to "
        "continue an interrupted run.",
    )
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        default=["bundled"],
        help="bundled, the file of a table, an AMLB definition, openml/t/ID or openml/s/ID; of "
        "series also fev's tasks.yaml (default: bundled)",
    )
    add_series_flags(parser)
    parser.add_argument(
        "--as-rows",
        type=whole_number(1),
        metavar="L",
        help="with --series: a plain table of L lags and the value --horizon steps ahead, split "
        "forward in time, for tabular systems",
    )
    add_suite_flags(parser)
    show_common_flags(parser, "sources")
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write a suite; see :func:`amlb_ext.pipeline.generate_suite`."""
    if takes_series(arguments, arguments.sources):
        if arguments.as_rows is not None:
            from amlb_ext.cli.series_rows import generate_rows

            return generate_rows(arguments, arguments.sources)
        return generate_series(arguments, arguments.sources)
    return make_suite(arguments, tuple(arguments.sources))
