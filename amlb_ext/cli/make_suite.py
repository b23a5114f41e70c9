"""What commands that make a suite share: its flags, and making it."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amlb_ext.cli.display import generation_summary, planned_tasks, print_json
from amlb_ext.cli.flags import (
    add_execution_flags,
    add_jobs_flag,
    add_output_flags,
    add_setting_flags,
    execution_from,
    is_quiet,
    layer_from,
)
from amlb_ext.cli.parser import Parser
from amlb_ext.core.config import build_config, read_config
from amlb_ext.core.errors import ConfigError
from amlb_ext.core.paths import check_sources

#: What ``--help`` of a command that makes a suite shows, beside its sources.
_COMMON = {
    "the table": ("--target", "--kind", "--drop", "--as", "--folds"),
    "what is hard": ("--preset", "--baseline", "--rule", "--alpha"),
    "the suite": (
        "--out",
        "--certificate",
        "--config",
        "--seed",
        "--dry-run",
        "--jobs",
    ),
}


def add_suite_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a command that makes a suite, every setting among them."""
    parser.add_argument(
        "-o", "--out", required=True, metavar="DIR", help="the suite's folder"
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="YAML file of settings, over which flags take precedence",
    )
    parser.add_argument(
        "--relations",
        metavar="FILE",
        help="file of relations that made rows must satisfy: YAML as 'hardsynth relations' prints "
        "it, or JSON with the constraints of SDV",
    )
    add_jobs_flag(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be made without writing anything",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace a suite that was made with other settings",
    )
    parser.add_argument(
        "--certificate",
        choices=("quick", "full", "none"),
        default="quick",
        help="how many candidate models the certificates are measured with (default: quick)",
    )
    add_execution_flags(parser)
    add_output_flags(parser)
    # -u as AMLB calls its user directory
    add_setting_flags(parser, letters={("source", "userdir"): "-u"})


def show_common_flags(parser: Parser, source: str) -> None:
    """Let ``--help`` show what most users need, after the argument that names the source."""
    parser.show_first({"what to make hard": (source,), **_COMMON})


def read_declared(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the layer of settings from the file that ``--relations`` names."""
    if not arguments.relations:
        return {}
    from amlb_ext.relations.declared import read_relations

    return read_relations(Path(arguments.relations))


def with_line(error: ConfigError, files: Sequence[str | None]) -> ConfigError:
    """Return the error of a rule with the file and the line in which the rule stands."""
    from amlb_ext.relations.declared import line_of_rule

    rule = getattr(error, "rule", None)
    if not rule:
        return error
    for file in filter(None, files):
        line = line_of_rule(Path(file), rule)
        if line is not None:
            return ConfigError(f"{file}, line {line}: {error}")
    return error


def make_suite(
    arguments: argparse.Namespace,
    sources: tuple[str, ...],
    *,
    twin: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> int:
    """Make a suite and print what came of it; see :func:`amlb_ext.pipeline.generate_suite`.

    Parameters
    ----------
    arguments : Namespace
        With the flags of :func:`add_suite_flags`.
    sources : tuple of str
    twin : bool
        Also write the hard twin of the one benchmark in ``sources``.
    defaults : mapping, optional
        Settings over which those of the file and of the flags take precedence.
    """
    from_file = read_config(Path(arguments.config)) if arguments.config else {}
    # Each layer takes precedence over those before it.
    layers = [
        dict(defaults or {}),
        from_file,
        read_declared(arguments),
        layer_from(arguments),
    ]
    config = build_config(*layers)
    check_sources(sources)
    # After the settings are checked: the error of a mistyped flag must not wait for heavy imports.
    from amlb_ext.pipeline import Request, generate_suite

    request = Request(
        sources=sources,
        config=config,
        out=Path(arguments.out),
        execution=execution_from(arguments),
        force=arguments.force,
        dry_run=arguments.dry_run,
        quiet=is_quiet(arguments),
        certificate=arguments.certificate,
        twin=twin,
        logs=Path(arguments.logs) if arguments.logs else None,
    )
    try:
        report = generate_suite(request)
    except ConfigError as error:
        # A rule is checked against its table's columns, so its error comes this late.
        raise with_line(error, [arguments.relations, arguments.config]) from None
    if arguments.json:
        print_json(dataclasses.asdict(report))
    elif arguments.dry_run and not arguments.quiet:
        print(planned_tasks(report))
    elif not arguments.quiet:
        print(generation_summary(report, arguments.words))
    return 1 if report.failures else 0
