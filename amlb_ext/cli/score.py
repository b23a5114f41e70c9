"""``hardsynth score``: F, its null and a candidate on a suite, without AMLB."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import HOW_TO_READ_SCORES, print_json
from amlb_ext.cli.flags import add_jobs_flag, add_output_flags, add_trust_flag, is_quiet
from amlb_ext.core.display import text_table
from amlb_ext.core.paths import check_suite_folder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "score",
        help="score F, its null and a candidate without AMLB",
        examples="hardsynth score hard -r results",
        description="Fit the suite's own integrations on its training files and print their mean "
        "loss on every part: F, the null (F with another seed) and a candidate. Lower is better.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--out", metavar="FILE", help="also write the loss of every fold as CSV"
    )
    parser.add_argument(
        "-r",
        "--results",
        metavar="DIR",
        help="also write predictions as AMLB does, for 'hardsynth report'",
    )
    parser.add_argument(
        "--hard",
        action="store_true",
        help="also score the _hard tasks, which take longer",
    )
    add_trust_flag(parser)
    add_jobs_flag(parser)
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Score a suite's own integrations; see :func:`amlb_ext.runner.score_suite`."""
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.core.files import write_file
    from amlb_ext.runner import compare_scores, summarise_scores
    from amlb_ext.runner.agreement import alarm_text

    compared = compare_scores(
        Path(arguments.suite),
        workers=arguments.jobs,
        quiet=is_quiet(arguments),
        with_hard=arguments.hard,
        results=Path(arguments.results) if arguments.results else None,
        trusted=arguments.trust_suite,
    )
    # Standard error, since standard output may be read as JSON.
    if compared.disagreements:
        alarm = alarm_text("HardsynthBaseline as fitted here", compared.disagreements)
        remedy = "generate the suite again with this version of hardsynth"
        print(f"ALARM: {alarm}; {remedy}.", file=sys.stderr)
    if arguments.out:
        write_file(
            Path(arguments.out), lambda part: compared.table.to_csv(part, index=False)
        )
    summary = summarise_scores(compared.table)
    if arguments.json:
        print_json(summary.to_dict(orient="records"))
    elif not arguments.quiet:
        # The numbers mislead without the explanation, so both are always printed.
        print(text_table(list(summary.columns), summary.values.tolist()))
        print()
        print(HOW_TO_READ_SCORES)
    return 0
