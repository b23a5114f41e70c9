"""``hardsynth certify``: what each task of a suite may be used for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_jobs_flag, add_output_flags, add_trust_flag, is_quiet
from amlb_ext.cli.numbers import SEED, whole_number
from amlb_ext.core.paths import check_suite_folder


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "certify",
        help="measure what each task may be used for",
        examples="hardsynth certify hard --size full",
        description="Measure each task of a suite and store its certificate: what the task may be "
        "used for (to rank models, to describe failures, or for stress tests only), and the "
        "numbers behind that verdict.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--size",
        choices=("quick", "full"),
        default="quick",
        help="how many candidate models to measure with (default: quick)",
    )
    parser.add_argument(
        "--refits",
        type=whole_number(1),
        default=5,
        metavar="N",
        help="how many times to fit F again (default: 5)",
    )
    parser.add_argument(
        "--seed",
        type=SEED,
        metavar="N",
        help="random seed (default: the suite's own)",
    )
    parser.add_argument(
        "--candidate",
        action="append",
        default=[],
        metavar="MODEL",
        help="short name or import path of a candidate, instead of the built-in ones; repeat the "
        "flag for several",
    )
    parser.add_argument(
        "--unlabelled",
        action="append",
        default=[],
        metavar="[TASK=]FILE",
        help="file of real rows without labels, which make intervals narrower; repeat the flag "
        "for several tasks",
    )
    add_trust_flag(parser)
    add_jobs_flag(parser)
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Certify every task of a suite; see :func:`amlb_ext.validity.certify_suite`."""
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.validity import certificates_to_json, certify_suite
    from amlb_ext.validity.unlabelled import assign_unlabelled_files

    # They tell which task each file of unlabelled rows is for.
    tasks = list(SuiteFiles.load(arguments.suite).tasks)
    certificates = certify_suite(
        Path(arguments.suite),
        arguments.jobs,
        size=arguments.size,
        refits=arguments.refits,
        seed=arguments.seed,
        candidates=tuple(arguments.candidate),
        reuse=False,  # a user who asks for certificates wants them measured
        quiet=is_quiet(arguments),
        unlabelled=assign_unlabelled_files(arguments.unlabelled, tasks),
        trusted=arguments.trust_suite,
    )
    if arguments.json:
        print_json(certificates_to_json(certificates))
    elif not arguments.quiet:
        print("\n".join(certificate.text() for certificate in certificates))
    return 0
