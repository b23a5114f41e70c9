"""``hardsynth export``: a suite that AMLB fetches from a web server or from S3."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_output_flags, is_quiet

if TYPE_CHECKING:
    from amlb_ext.publish.export import Export


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "export",
        help="pack a suite for workers that fetch its data",
        description="Pack each AMLB task of a suite into an archive to upload, and write a small "
        "AMLB user directory whose definitions name the archives' addresses, so that AMLB runs the "
        "suite on any machine. The same suite gives the same bytes. Results are reported with the "
        "suite: hardsynth report DIR --results OUT.",
    )
    parser.add_argument("suite", metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--base-url",
        required=True,
        metavar="URL",
        help="address under which you upload the files: https://HOST/FOLDER or s3://BUCKET/FOLDER",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        help="folder to write to (default: DIR's name with _export)",
    )
    parser.add_argument(
        "--form",
        choices=("archives", "files"),
        default="archives",
        help="one archive for each AMLB task, or each CSV file as it is, which is larger but lets "
        "AutoGluon run twice from one input folder (default: archives)",
    )
    add_output_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write an export; see :func:`amlb_ext.publish.export.export.export_suite`."""
    from amlb_ext.publish.export import UPLOAD, export_suite
    from amlb_ext.suite.sealed_json import json_text

    done = export_suite(
        arguments.suite,
        arguments.base_url,
        arguments.out,
        form=arguments.form,
        quiet=is_quiet(arguments),
    )
    if arguments.json:
        about = {**vars(done), "out": str(done.out), "upload": str(done.out / UPLOAD)}
        print(json_text({**about, "bytes": done.bytes}), end="")
    elif not arguments.quiet:
        print(_summary(done, arguments.suite))
    return 0


def _summary(done: Export, suite: str) -> str:
    """Return what was written, and what to do with it."""
    from amlb_ext.publish.export import UPLOAD

    folder, out = shlex.quote(str(done.out / UPLOAD)), shlex.quote(str(done.out))
    count, name = len(done.uploads), next(iter(done.definitions))
    listed = ", ".join(
        f"{name} ({tasks} tasks)" for name, tasks in done.definitions.items()
    )
    lines = [f"{out}: an AMLB user directory with the definitions {listed}"]
    put = f"put the {count} files of {folder} ({done.bytes / 2**20:.1f} MB) below {done.url}/"
    if done.url.startswith("s3://"):
        put += f"\n            aws s3 cp --recursive {folder} {shlex.quote(done.url)}/"
    lines += [
        f"  upload:   {put}",
        f"  run:      hardsynth run FRAMEWORK -u {out} -b {name} -r results",
        f"            or AMLB itself: python runbenchmark.py FRAMEWORK {name} -u {out} -o results",
        f"  report:   hardsynth report {shlex.quote(suite)} --results results",
    ]
    if done.form == "archives":
        lines.append(
            "  note:     give every run of AutoGluon an input folder of its own (-i), or export "
            "with --form files"
        )
    return "\n".join(lines)
