"""``hardsynth export``: a suite that AMLB fetches from a web server or from S3."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amlb_ext.publish.export import Export

Add = Callable[[argparse.ArgumentParser], None]


def add_export(commands: Any, output: Add) -> None:
    """Add the command to the parser of all commands.

    Parameters
    ----------
    commands : argparse's subparsers
    output : callable
        Adds the flags that every command shares.
    """
    export = commands.add_parser(
        "export",
        help="pack a suite for workers that fetch its data",
        description="Pack each AMLB task of a suite into an archive to upload, and write a small "
        "AMLB user directory whose definitions name the archives' addresses, so that AMLB runs the "
        "suite on any machine. The same suite gives the same bytes. Results are reported with the "
        "suite: hardsynth report DIR --results OUT.",
    )
    export.add_argument("suite", metavar="DIR")
    export.add_argument(
        "--base-url",
        required=True,
        metavar="URL",
        help="where the files will be found: https://HOST/FOLDER or s3://BUCKET/FOLDER",
    )
    export.add_argument(
        "-o", "--out", metavar="OUT", help="where to write (default: DIR's name with _export)"
    )
    export.add_argument(
        "--form",
        choices=("archives", "files"),
        default="archives",
        help="an archive per AMLB task, or each CSV file as it is: larger, but AutoGluon can run "
        "twice from one input folder (default: archives)",
    )
    output(export)


def export(arguments: argparse.Namespace) -> int:
    """Write an export; see :func:`amlb_ext.publish.export.export.export_suite`."""
    from amlb_ext.publish.export import UPLOAD, export_suite
    from amlb_ext.suite.sealed_json import json_text

    done = export_suite(
        arguments.suite,
        arguments.base_url,
        arguments.out,
        form=arguments.form,
        quiet=arguments.quiet or arguments.json,
    )
    if arguments.json:
        about = {**vars(done), "out": str(done.out), "upload": str(done.out / UPLOAD)}
        print(json_text({**about, "bytes": done.bytes}), end="")
    elif not arguments.quiet:
        print(_told(done, arguments.suite))
    return 0


def _told(done: Export, suite: str) -> str:
    """Return what was written, and what to do with it."""
    from amlb_ext.publish.export import UPLOAD

    folder, out = shlex.quote(str(done.out / UPLOAD)), shlex.quote(str(done.out))
    count, name = len(done.uploads), next(iter(done.definitions))
    listed = ", ".join(f"{name} ({tasks} tasks)" for name, tasks in done.definitions.items())
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
