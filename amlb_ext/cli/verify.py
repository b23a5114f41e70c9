"""``hardsynth verify``: check a suite, and make again what is missing or changed."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from amlb_ext.cli.flags import add_flags, layer_from
from amlb_ext.cli.generate import Add, trust_flag
from amlb_ext.core.config import build_config
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError


def add_verify(commands: Any, jobs: Add, output: Add) -> None:
    """Add the command to the parser of all commands.

    Parameters
    ----------
    commands : argparse's subparsers
    jobs, output : callable
        Add the flags that every command shares.
    """
    verify = commands.add_parser(
        "verify",
        help="check a suite, or repair it",
        description="Check every checksum and replay AMLB's loader rules, without AMLB. With "
        "--repair what is missing or changed is made again from the suite's own sources and "
        "settings, everything else is kept, and the suite is checked once more; a repair that "
        "cannot give the same bytes is refused and changes nothing. Foreign files stay.",
    )
    verify.add_argument("suite", metavar="DIR")
    verify.add_argument("--repair", action="store_true", help="make again what is damaged")
    verify.add_argument(
        "--source",
        action="append",
        default=[],
        metavar="SPEC",
        help="where a source of the suite stands now, under the name that it had; repeat it",
    )
    verify.add_argument(
        "--trust-pickle",
        action="store_true",
        help="with --repair: load F where it is a pickle; it can run any code, so only your own",
    )
    trust_flag(verify)
    jobs(verify)
    output(verify)
    add_flags(verify, stage="source")


def verify(arguments: argparse.Namespace) -> int:
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
            arguments.quiet or arguments.json,
            trust_pickle=arguments.trust_pickle,
            trust_suite=arguments.trust_suite,
        )
        done = repair_suite(Path(arguments.suite), asked)
        mended, findings = done.mended, list(done.findings)
    elif arguments.source or layer:
        raise ConfigError(
            "a source was named, and verify alone reads none",
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
        print(json.dumps(entry, indent=2, sort_keys=True))
    else:
        if not arguments.quiet:
            print("".join(f"{path} was made again.\n" for path in mended), end="")
        for finding in findings:
            print(
                escape_controls(finding),
                file=sys.stderr if arguments.quiet else sys.stdout,
            )
        if not problems and not arguments.quiet:
            print(f"{shlex.quote(arguments.suite)}: checksums, provenance and AMLB's rules hold")
    return 1 if problems else 0
