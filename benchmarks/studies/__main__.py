"""``python -m benchmarks.studies``: list the studies; with a name, run one of them."""

from __future__ import annotations

import argparse
import inspect
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.errors import ConfigError, HardsynthError, suggest_nearest
from benchmarks.studies.engine import Settings, Study, run_study
from benchmarks.studies.files import write_stand_ins

#: Modules with studies, in the order of the list.
MODULES = (
    "studies.paper.tables",
    "studies.paper.certificates",
    "studies.osyn.tables",
    "studies.swarms.tables",
    "studies.fidelity.study",
    "studies.coverage.study",
    "studies.coverage.sampling",
    "studies.swap.study",
    "studies.swap.cross_validation",
    "studies.swap.folds",
    "studies.truth",
    "claims.coverage_costs",
    "claims.coverage_tails",
    "claims.foresight_rows",
    "claims.gate_margin",
    "claims.null_control",
    "claims.slices",
    "claims.solvability",
    "claims.window_coverage",
)
STUDIES: dict[str, Study] = {
    study.name: study
    for module in MODULES
    for study in import_module(f"benchmarks.{module}").STUDIES
}


def named_studies(name: str) -> list[Study]:
    """Return the study of a name, or all of a group."""
    if name in STUDIES:
        return [STUDIES[name]]
    return [study for study in STUDIES.values() if study.group == name]


PROGRAM = "python -m benchmarks.studies"
#: Folder below ``-o`` of made-up data files, see ``--small``.
STAND_INS = "made-up-data"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status: 1 something was left out, 2 bad input."""
    words = list(sys.argv[1:] if words is None else words)
    groups = list(dict.fromkeys(study.group for study in STUDIES.values()))
    if not words or words[0] in ("-h", "--help"):
        print(_list_studies(groups))
        return 0
    try:
        studies = named_studies(words[0])
        if not studies:
            known = [*STUDIES, *groups]
            raise ConfigError(
                f"no study is called {words[0]!r}", suggest_nearest(words[0], known)
            )
        arguments = _make_parser(words[0], studies).parse_args(words[1:])
        return _run_studies(
            studies, arguments, command=f"{PROGRAM} {shlex.join(words)}"
        )
    except HardsynthError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130


def _list_studies(groups: Sequence[str]) -> str:
    width = max(len(name) for name in [*STUDIES, *groups])
    lines = [f"usage: {PROGRAM} NAME [--help] [--small] [-o DIR] ...", ""]
    for study in STUDIES.values():
        lines.append(f"{study.name.ljust(width)}  {study.title}")
    lines.append("")
    for group in groups:
        n_studies = len(named_studies(group))
        if group not in STUDIES:
            lines.append(f"{group.ljust(width)}  all {n_studies} studies of this group")
    return "\n".join(lines)


def _make_parser(name: str, studies: Sequence[Study]) -> argparse.ArgumentParser:
    titles = "\n".join(study.title for study in studies)
    settings = studies[0].settings
    epilog = f"settings:\n{inspect.getdoc(type(settings))}\n\ndefaults: "
    epilog += studies[0].defaults or str(settings)
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {name}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"{titles}\n\nRun the same command again to go on with a run that was stopped.",
        epilog=epilog,
    )
    parser.add_argument("-o", "--out", default="studied", metavar="DIR", type=Path)
    parser.add_argument("--draws", type=int, metavar="N", help="repetitions")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="another setting, see below; the value is YAML",
    )
    parser.add_argument("--data", metavar="DIR", type=Path, help="folder of data files")
    parser.add_argument(
        "--small",
        action="store_true",
        help="a case of seconds; without --data, files are made up and numbers mean nothing",
    )
    if hasattr(settings, "table"):
        parser.add_argument("table", nargs="?", metavar="TABLE", help="see below")
    if hasattr(settings, "with_protocol"):
        parser.add_argument("--protocol", metavar="FILE", type=Path, help="another one")
        parser.add_argument("--phase", choices=("exploratory", "confirmatory"))
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="processes (default: all)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing")
    return parser


def read_changes(words: Sequence[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` words; values are YAML.

    Examples
    --------
    >>> read_changes(["search.kappa=0.3", "pool=test"])
    {'search.kappa': 0.3, 'pool': 'test'}
    """
    changes = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise ConfigError(
                f"{word!r} is not KEY=VALUE", "write --set search.kappa=0.3"
            )
        changes[key] = yaml.safe_load(value)
    return changes


def _settings_of(study: Study, arguments: argparse.Namespace) -> Settings:
    """Return the study's settings with what the user says."""
    changes = dict(study.small) if arguments.small else {}
    if getattr(arguments, "protocol", None):
        changes |= study.settings.with_protocol(arguments.protocol)  # type: ignore[attr-defined]
    if getattr(arguments, "phase", None):
        changes["phase"] = arguments.phase
    if getattr(arguments, "table", None):
        changes["table"] = arguments.table
    changes |= read_changes(arguments.set)
    if arguments.draws is not None:
        if arguments.draws < 1:
            raise ConfigError(
                f"{arguments.draws} draws were asked for", "give 1 or more"
            )
        changes["draws"] = arguments.draws
    return study.changed(changes)


def _run_studies(
    studies: Sequence[Study], arguments: argparse.Namespace, *, command: str
) -> int:
    out = arguments.out
    # what is misspelt is found before hours of work
    planned = [(study, _settings_of(study, arguments)) for study in studies]
    is_incomplete = False
    for study, settings in planned:
        data, notes = arguments.data, []
        if arguments.small and data is None and study.files:
            data = out / STAND_INS
            write_stand_ins(data)
            notes.append("The data files are made up: the numbers mean nothing.")
        outcome = run_study(
            study,
            settings,
            out,
            data=data,
            workers=arguments.jobs,
            quiet=arguments.quiet,
            command=command,
            notes=notes,
        )
        is_incomplete |= bool(outcome.left_out)
        if not arguments.quiet:
            print(outcome.page.read_text(encoding="utf-8"))
            print(f"written: {outcome.page}")
    return 1 if is_incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
