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

from amlb_ext.cli.estimate import add_estimate
from amlb_ext.cli.export import add_export
from amlb_ext.cli.generate import add_harden, add_making, trust_flag
from amlb_ext.cli.install import add_install
from amlb_ext.cli.publish import add_publish
from amlb_ext.cli.reproduce import add_reproduce
from amlb_ext.cli.study import add_study
from amlb_ext.cli.terminal import OutputError, check_words, guarded_streams
from amlb_ext.cli.verify import add_verify
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.version import __version__

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
        close = difflib.get_close_matches(words[0].split("=")[0], sorted(_flags(self)), n=1)
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

    generate = commands.add_parser(
        "generate",
        help="write a hard benchmark",
        description="Find the rows on which the baseline fails, augment them, learn their "
        "distribution, and write a suite that AMLB runs unchanged. The same command continues "
        "an interrupted run.",
    )
    generate.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        default=["bundled"],
        help="bundled, a table, an AMLB definition, openml/t/ID, openml/s/ID (default: bundled)",
    )
    add_making(generate, _jobs_flag, _output_flags)
    add_harden(commands, _jobs_flag, _output_flags)

    run = commands.add_parser(
        "run",
        help="run the AutoML Benchmark on a suite",
        description="Find or install AMLB, run a framework on the suite, and say which jobs "
        "have no score. Whatever follows -- goes to runbenchmark.py as it is.",
    )
    run.add_argument("framework", metavar="FRAMEWORK", help="as runbenchmark.py names it")
    run.add_argument("constraint", metavar="CONSTRAINT", nargs="?", help="as in AMLB or the suite")
    run.add_argument("-u", "--userdir", required=True, metavar="DIR", help="the suite")
    run.add_argument(
        "-b", "--benchmark", metavar="NAME", help="definition (default: the suite's main one)"
    )
    run.add_argument("-t", "--task", action="append", default=[], metavar="TASK")
    run.add_argument("-f", "--fold", action="append", default=[], type=int, metavar="FOLD")
    run.add_argument("-r", "--results", metavar="DIR", default="results", help="AMLB's -o")
    run.add_argument("--amlb", metavar="DIR", help="AMLB checkout (default: AMLB_HOME, or a clone)")
    run.add_argument("--python", metavar="FILE", help="Python of AMLB's environment")
    _output_flags(run)

    certify = commands.add_parser(
        "certify",
        help="say what each task may be used for",
        description="Measure each task of a suite and store its certificate: what it may be used "
        "for (rank, describe, stress-test only), and the numbers behind that verdict.",
    )
    certify.add_argument("suite", metavar="DIR")
    certify.add_argument("--size", choices=("quick", "full"), default="quick", help="of the zoo")
    certify.add_argument(
        "--refits", type=int, default=5, metavar="N", help="re-fits of F (default: 5)"
    )
    certify.add_argument("--seed", type=int, metavar="N", help="default: the suite's own")
    certify.add_argument(
        "--candidate",
        action="append",
        default=[],
        metavar="MODEL",
        help="short name or import path, in place of the zoo; repeat it",
    )
    certify.add_argument(
        "--unlabelled",
        action="append",
        default=[],
        metavar="[TASK=]FILE",
        help="table of real rows without labels, for narrower intervals; repeat it per task",
    )
    trust_flag(certify)
    _jobs_flag(certify)
    _output_flags(certify)

    report = commands.add_parser(
        "report",
        help="say which framework really improves where F fails",
        description="Join AMLB's predictions to the suite row by row, compare every framework with "
        "F and with each other on the failure region, and write one page, "
        "hardsynth/report.html in the suite, with all its tables beside it. Exit status 1: a job "
        "failed, left no result, or does not belong to the suite.",
    )
    report.add_argument("suite", metavar="DIR")
    report.add_argument(
        "-r",
        "--results",
        nargs="+",
        action="extend",
        default=[],
        metavar="OUT",
        help="AMLB's output folders (-o); without any the report tells of the suite alone",
    )
    report.add_argument("--text", action="store_true", help="print it all, write nothing")
    report.add_argument(
        "-o", "--out", metavar="FOLDER", help="where to write (default: in the suite)"
    )
    report.add_argument(
        "--level", type=float, default=0.95, metavar="X", help="of the intervals (default: 0.95)"
    )
    report.add_argument(
        "--still", action="store_true", help="pictures without interaction: a page 5 MB smaller"
    )
    _jobs_flag(report)
    _output_flags(report)

    score = commands.add_parser(
        "score",
        help="score F, its null and a candidate, without AMLB",
        description="Fit the suite's own integrations (F, its re-seeded null, a candidate) on its "
        "training files and print their mean loss on every part; lower is better.",
    )
    score.add_argument("suite", metavar="DIR")
    score.add_argument("--out", metavar="FILE", help="also write the losses per fold as CSV")
    score.add_argument(
        "-r", "--results", metavar="DIR", help="also write predictions as AMLB does, for report"
    )
    score.add_argument("--hard", action="store_true", help="the _hard tasks too, which take longer")
    trust_flag(score)
    _jobs_flag(score)
    _output_flags(score)

    add_verify(commands, _jobs_flag, _output_flags)
    add_estimate(commands, _output_flags)
    add_export(commands, _output_flags)
    add_install(commands, _jobs_flag, _output_flags)
    add_publish(commands, _output_flags)
    add_study(commands, _jobs_flag, _output_flags)
    add_reproduce(commands, _jobs_flag, _output_flags)

    listing = commands.add_parser(
        "list", help="list sources, baselines, rules, synthesizers and presets"
    )
    _output_flags(listing)
    return top


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    """Return the flags of a parser and of every command below it."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found = found.union(*map(_flags, action.choices.values()))
    return found


def _jobs_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-j",
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="processes; 0 uses every core; never changes a result (default: 0)",
    )


def _output_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


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
        at = words.index("--")
        words, extra = words[:at], words[at + 1 :]
    try:
        check_words(words)
        arguments, unknown = parser().parse_known_args(words)
        if unknown:
            parser().unknown(unknown)
        arguments.extra, arguments.words = extra, words
        from amlb_ext.cli.commands import COMMANDS

        return COMMANDS[arguments.command](arguments)
    except HardsynthError as error:
        print(f"hardsynth: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = "the same command continues where this one stopped"
        print(f"\nhardsynth: interrupted; {hint}", file=sys.stderr)
        return 130
