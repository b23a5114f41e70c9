"""Parse, run a command, and turn errors into one clear line.

Exit status: 0 all is well · 1 done, but a task was left out, a job has no score, a check failed,
or standard output could not be written · 2 bad input, nothing was written · 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from amlb_ext.cli import (
    certify,
    estimate,
    export,
    generate,
    harden,
    install,
    list_names,
    publish,
    relations,
    report,
    reproduce,
    run,
    score,
    study,
    verify,
)
from amlb_ext.cli.terminal import OutputError, check_words, guarded_streams
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.version import __version__

#: Modules with ``add(commands)`` and ``run(arguments)``, in the order of ``hardsynth --help``. They
#: import the wings when they run, so that ``--help`` answers at once.
COMMANDS = (
    generate,
    harden,
    run,
    certify,
    report,
    score,
    verify,
    estimate,
    export,
    install,
    publish,
    study,
    relations,
    reproduce,
    list_names,
)

EPILOG = """examples:
  hardsynth generate -o hard                           the bundled tasks, no network
  hardsynth generate openml/t/31 openml/s/271 -o hard  OpenML tasks and suites
  hardsynth generate data.csv --target price -o hard   a table of your own
  hardsynth harden validation -o hard                  a hard twin of an AMLB benchmark
  hardsynth run constantpredictor -u hard              the AutoML Benchmark on the suite
  hardsynth install hard                               add the suite to your AMLB configuration
"""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the nearest flag or command."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        self.exit(2, f"hardsynth: error: {message} (see {self.prog} --help)\n")

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Refuse words that no flag takes."""
        close = difflib.get_close_matches(
            words[0].split("=")[0], sorted(_flags(self)), n=1
        )
        hint = f"; did you mean {close[0]}?" if close else ""
        self.error(f"unknown argument {words[0]}{hint}")


def parser() -> Parser:
    """Return the argument parser of all commands."""
    top = Parser(
        prog="hardsynth",
        description="Model-aware hard benchmarks for the AutoML Benchmark (AMLB).",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"hardsynth {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add(commands)
    return top


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    """Return the flags of a parser and of every command below it."""
    flags = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            flags = flags.union(*map(_flags, action.choices.values()))
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; see the module's head."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with guarded_streams():
            return _run_command(words)
    except OutputError as error:
        with suppress(OSError):
            print(f"hardsynth: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1


def _run_command(words: list[str]) -> int:
    extra: list[str] = []
    if "--" in words:
        separator = words.index("--")
        words, extra = words[:separator], words[separator + 1 :]
    try:
        check_words(words)
        arguments, unknown = parser().parse_known_args(words)
        if unknown:
            parser().unknown(unknown)
        arguments.extra, arguments.words = extra, words
        return int(arguments.run(arguments))
    except HardsynthError as error:
        print(f"hardsynth: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = "the same command continues where this one stopped"
        print(f"\nhardsynth: interrupted; {hint}", file=sys.stderr)
        return 130
