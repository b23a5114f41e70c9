"""``hardsynth verify``: check a suite, and make again what is missing or changed."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import (
    add_jobs_flag,
    add_output_flags,
    add_setting_flags,
    add_trust_flag,
    is_quiet,
    layer_from,
)
from amlb_ext.core.config import build_config
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "verify",
        help="check a suite, or repair it",
        description="Check every checksum and replay AMLB's loader rules, without AMLB. With "
        "--repair, make what is missing or changed again from the suite's own sources and "
        "settings, keep everything else, and check the suite once more. A repair that cannot "
        "restore the same bytes is refused and changes nothing; files that are not part of the "
        "suite stay. Exit status 1: the suite has a problem.",
    )
    parser.add_argument("suite", metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--repair", action="store_true", help="make damaged files again"
    )
    parser.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="SPEC",
        help="where a source of the suite is now, under the name that it had; repeat the flag for "
        "several",
    )
    parser.add_argument(
        "--trust-pickle",
        action="store_true",
        help="with --repair: load F from a pickle; a pickle can run any code, so use this for your "
        "own only",
    )
    add_trust_flag(parser)
    add_jobs_flag(parser)
    add_output_flags(parser)
    add_setting_flags(parser, stage="source")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check a suite, see :func:`amlb_ext.suite.verify_suite`, and repair it where asked to."""
    from amlb_ext.suite import WARNING
    from amlb_ext.suite import verify_suite as check

    layer = layer_from(arguments)
    mended: tuple[str, ...] = ()
    if arguments.repair:
        from amlb_ext.core.parallel import Execution
        from amlb_ext.pipeline import RepairOptions, repair_suite

        options = build_config({}, layer).source
        execution = Execution(workers=arguments.jobs)
        asked = RepairOptions(
            tuple(arguments.source),
            options,
            execution,
            is_quiet(arguments),
            trust_pickle=arguments.trust_pickle,
            trust_suite=arguments.trust_suite,
        )
        done = repair_suite(Path(arguments.suite), asked)
        mended, findings = done.mended, list(done.findings)
    elif arguments.source or layer:
        raise ConfigError(
            "a source was named, but verify reads sources only with --repair",
            f"hardsynth verify {shlex.quote(arguments.suite)} --repair --source SPEC",
        )
    else:
        findings = check(Path(arguments.suite))
    problems = [finding for finding in findings if not finding.startswith(WARNING)]
    if arguments.json:
        warnings = [finding for finding in findings if finding.startswith(WARNING)]
        entry: dict[str, Any] = {"suite": arguments.suite, "problems": problems}
        entry["warnings"] = warnings
        if arguments.repair:
            entry["mended"] = list(mended)
        print_json(entry)
    else:
        if not arguments.quiet:
            print("".join(f"{path} was made again.\n" for path in mended), end="")
        for finding in findings:
            print(
                escape_controls(finding),
                file=sys.stderr if arguments.quiet else sys.stdout,
            )
        if not problems and not arguments.quiet:
            print(
                f"{shlex.quote(arguments.suite)}: checksums, provenance and AMLB's rules hold"
            )
    return 1 if problems else 0
