"""``hardsynth reproduce``: the paper's tables and figures, beside the printed numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_jobs_flag, add_output_flags, is_quiet
from amlb_ext.cli.numbers import whole_number
from amlb_ext.core.display import text_table

if TYPE_CHECKING:
    from amlb_ext.experiments.reproduce import Result

#: What can be reproduced, for ``--help``: listing it from the experiments would import them.
NAMES = (
    "table-1, table-a1, table-a2, table-a3, figure-3 to figure-8 or all; from the seed paper "
    "osyn-table-1, osyn-table-2, osyn-table-3, osyn-table-7, osyn-cost or osyn (all five); from "
    "the swarm paper swarm-table-1, swarm-table-2, swarm-table-3, swarm-adversarial, swarm-hull or "
    "swarm (all five)"
)


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "reproduce",
        help="reproduce the paper's tables and figures",
        examples="hardsynth reproduce table-1 --splits 5",
        description="Repeat the experiments behind tables and figures of the paper that the method "
        "comes from, and write the new numbers beside the printed ones as CSV, Markdown and one "
        "page. Run the same command again to continue an interrupted run. Exit status 1: something "
        "was left out.",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help=NAMES)
    parser.add_argument(
        "-o",
        "--out",
        default="reproduced",
        metavar="DIR",
        help="folder to write to (default: reproduced)",
    )
    parser.add_argument(
        "--splits",
        "--draws",
        type=whole_number(1),
        metavar="N",
        help="run the first N splits only, or for osyn the first N repetitions, for swarm N draws "
        "(default: as many as the paper, 31 splits; 10 draws)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder with housing.csv and the diabetes file, or for osyn with adult/, bank/ and "
        "bike/, for swarm these and large/ in place of bundled tables",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting (search.kappa=0.3) or another reading of the paper (pool=test, "
        "with_bad=true, fitness=label, learning_rate=0.1, by_area=true, sample=1, balanced=false; "
        "for osyn rows=20000, generator=vae, b=2, ...; for swarm iterations=10, generators=8, "
        "'tables=digits titanic', ...); repeat the flag for several",
    )
    parser.add_argument(
        "--no-certificates",
        action="store_true",
        help="do not write suites and certificates beside the tables",
    )
    add_jobs_flag(parser)
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Reproduce what the user names; see :func:`amlb_ext.experiments.reproduce`."""
    from amlb_ext.experiments import reproduce
    from amlb_ext.experiments.paper.settings import read_changes
    from amlb_ext.suite.sealed_json import json_text

    results = reproduce(
        arguments.names,
        Path(arguments.out),
        splits=arguments.splits,
        data=Path(arguments.data).expanduser() if arguments.data else None,
        changes=read_changes(arguments.set),
        certify=not arguments.no_certificates,
        workers=arguments.jobs,
        quiet=is_quiet(arguments),
    )
    if arguments.json:
        print(json_text([result.to_json() for result in results]), end="")
    elif not arguments.quiet:
        print(_results_text(results))
        print(f"\nwritten: {Path(arguments.out) / 'index.html'}")
    return 1 if any(result.left_out for result in results) else 0


def _results_text(results: list[Result]) -> str:
    """Return every table cell by cell, then one line per name."""
    from amlb_ext.experiments.agreement import count_verdicts

    headers = ["what", "splits", "G", "within", "outside", "processor s", "left out"]
    rows: list[list[Any]] = []
    for result in results:
        # A figure has no cells to compare with the paper.
        within: Any = ""
        outside: Any = ""
        if len(result.cells):
            verdicts = count_verdicts(result.cells)
            within = verdicts["within"]
            outside = verdicts["outside"]
        left_out = "; ".join(f"{name}: {why}" for name, why in result.left_out.items())
        rows.append(
            [
                result.name,
                result.splits,
                result.candidate,
                within,
                outside,
                round(result.seconds, 1),
                left_out,
            ]
        )
    # figures have no table
    tables = [result.markdown for result in results if result.markdown]
    return "\n".join([*tables, text_table(headers, rows)])
