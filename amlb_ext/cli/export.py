"""``hardsynth export``: a suite for AMLB's workers elsewhere, or for TabArena's models."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags, is_quiet
from amlb_ext.core.display import format_count
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_suite_folder

if TYPE_CHECKING:
    from amlb_ext.publish.export import Export
    from amlb_ext.tabarena import TabArenaExport


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "export",
        help="pack a suite for workers that fetch its data, or for TabArena",
        examples="hardsynth export hard --base-url https://HOST/FOLDER\n"
        "hardsynth export hard --for tabarena",
        description="Pack each AMLB task of a suite into an archive to upload, and write a small "
        "AMLB user directory whose definitions name the archives' addresses, so that AMLB runs the "
        "suite on any machine. The same suite gives the same bytes. To compare the results, use "
        "the suite itself: hardsynth report DIR --results OUT. With --for tabarena, write the "
        "tasks as tables beside a script that runs TabArena's models on them, in TabArena's "
        "environment.",
    )
    parser.add_suite(metavar="DIR", help="the suite's folder")
    parser.add_argument(
        "--for",
        dest="runner",
        choices=("amlb", "tabarena"),
        default="amlb",
        help="who runs the suite (default: amlb)",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="address under which you upload the files, for AMLB: https://HOST/FOLDER or "
        "s3://BUCKET/FOLDER",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="OUT",
        help="folder to write to (default: the name of DIR with _export or _tabarena)",
    )
    parser.add_argument(
        "--form",
        choices=("archives", "files"),
        help="one archive for each AMLB task (archives), or every CSV file as it is (files), which "
        "is larger but lets AutoGluon run twice from one input folder (default: archives)",
    )
    add_output_flags(parser)
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Write an export; see :mod:`amlb_ext.publish.export` and :mod:`amlb_ext.tabarena`."""
    if arguments.runner == "tabarena":
        return _export_for_tabarena(arguments)
    if arguments.base_url is None:
        raise ConfigError(
            "hardsynth export needs the address from which AMLB fetches the files",
            "give --base-url https://HOST/FOLDER, or --for tabarena, which needs none",
        )
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


def _export_for_tabarena(arguments: argparse.Namespace) -> int:
    """Write the tasks of a suite for TabArena; see :mod:`amlb_ext.tabarena.export`."""
    for flag, value in (("--base-url", arguments.base_url), ("--form", arguments.form)):
        if value is not None:
            raise ConfigError(
                f"{flag} is of an export for AMLB, and --for tabarena uploads nothing",
                f"leave {flag} out",
            )
    check_suite_folder(Path(arguments.suite))
    from amlb_ext.suite.layout import holds_forecasts

    if holds_forecasts(arguments.suite):
        raise ConfigError(
            f"{arguments.suite} holds series, and TabArena has tasks of tables alone",
            "give a suite of tables",
        )
    from amlb_ext.tabarena import export_for_tabarena

    export = export_for_tabarena(arguments.suite, arguments.out)
    if arguments.json:
        print_json({"out": str(export.out), "tasks": export.tasks})
    elif not arguments.quiet:
        print(_tabarena_summary(export, arguments.suite))
    return 0


def _tabarena_summary(export: TabArenaExport, suite: str) -> str:
    """Return what was written, and the commands that run and report it."""
    out = shlex.quote(str(export.out))
    n_folds = sum(export.tasks.values())
    return "\n".join(
        [
            f"{out}: {format_count(len(export.tasks), 'task')} for TabArena, "
            f"{format_count(n_folds, 'fold')}",
            "  install:  pip install tabarena 'autogluon.tabular[lightgbm]>=1.6,<1.7', in an "
            "environment of its own (Python 3.11 to 3.13)",
            f"  run:      (cd {out} && python run_tabarena.py LightGBM RandomForest)",
            f"  report:   hardsynth report {shlex.quote(suite)} --results {out}",
        ]
    )


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
        form=arguments.form or "archives",
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
