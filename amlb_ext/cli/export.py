"""``hardsynth export``: a suite that AMLB fetches from a web server or from S3."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.core.paths import check_suite_folder

if TYPE_CHECKING:
    from amlb_ext.publish.export import Export


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "export",
        help="pack a suite for workers that fetch its data",
        examples="hardsynth export hard --base-url https://HOST/FOLDER",
        description="Pack each AMLB task of a suite into an archive to upload, and write a small "
        "AMLB user directory whose definitions name the archives' addresses, so that AMLB runs the "
        "suite on any machine. The same suite gives the same bytes. To compare the results, use "
        "the suite itself: hardsynth report DIR --results OUT.",
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
        help="folder to write to (default: the name of DIR with _export)",
    )
    parser.add_argument(
        "--form",
        choices=("archives", "files"),
        default="archives",
        help="one archive for each AMLB task (archives), or every CSV file as it is (files), which "
        "is larger but lets AutoGluon run twice from one input folder (default: archives)",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write an export; see :func:`amlb_ext.publish.export.export.export_suite`."""
    export = _write_export(arguments)
    from amlb_ext.publish.export import UPLOAD
    from amlb_ext.suite.sealed_json import json_text

    if arguments.json:
        # `bytes` is a property, which vars() leaves out
        entry = {
            **vars(export),
            "out": str(export.out),
            "upload": str(export.out / UPLOAD),
            "bytes": export.bytes,
        }
        print(json_text(entry), end="")
    elif not arguments.quiet:
        print(_export_summary(export, arguments.suite))
    return 0


def _write_export(arguments: argparse.Namespace) -> Export:
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.suite.layout import holds_forecasts

    if holds_forecasts(arguments.suite):
        # series are never packed, whatever the form
        from amlb_ext.forecasting.suite_transfer import export_forecasts

        return export_forecasts(
            arguments.suite,
            arguments.base_url,
            arguments.out,
            quiet=is_quiet(arguments),
        )
    from amlb_ext.publish.export import export_suite

    return export_suite(
        arguments.suite,
        arguments.base_url,
        arguments.out,
        form=arguments.form,
        quiet=is_quiet(arguments),
    )


def _export_summary(export: Export, suite: str) -> str:
    """Return what was written, and the commands that upload, run and report it."""
    from amlb_ext.publish.export import UPLOAD

    out = shlex.quote(str(export.out))
    folder = shlex.quote(str(export.out / UPLOAD))
    definitions = []
    for name, n_tasks in export.definitions.items():
        definitions.append(f"{name} ({n_tasks} tasks)")
    main_definition = next(iter(export.definitions))

    size = f"{export.bytes / 2**20:.1f} MB"
    put = (
        f"put the {len(export.uploads)} files of {folder} ({size}) below {export.url}/"
    )
    # only S3 has one command for all files
    if export.url.startswith("s3://"):
        put += (
            f"\n            aws s3 cp --recursive {folder} {shlex.quote(export.url)}/"
        )
    lines = [
        f"{out}: an AMLB user directory with the definitions {', '.join(definitions)}",
        f"  upload:   {put}",
        f"  run:      hardsynth run FRAMEWORK -u {out} -b {main_definition} -r results",
        f"            or AMLB itself: python runbenchmark.py FRAMEWORK {main_definition} "
        f"-u {out} -o results",
        f"  report:   hardsynth report {shlex.quote(suite)} --results results",
    ]
    if export.form == "archives":
        lines.append(
            "  note:     give every run of AutoGluon an input folder of its own (-i), or export "
            "with --form files"
        )
    return "\n".join(lines)
