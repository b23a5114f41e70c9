"""The entry point: parse the command line, run a command, report an error in one line.

Exit status: 0 success · 1 the command finished, but a task was left out, a job has no score, a
check failed, or standard output could not be written · 2 invalid input, nothing was written ·
3 a gate that cannot be decided · 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from amlb_ext.cli import (
    certify,
    compare,
    completion,
    demo,
    difficulty,
    estimate,
    export,
    gate,
    generate,
    harden,
    install,
    list_names,
    publish,
    relations,
    report,
    run,
    score,
    show,
    tasks,
    verify,
)
from amlb_ext.cli.parser import Parser
from amlb_ext.cli.terminal import OutputError, check_words, guarded_streams
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.memory import use_one_allocator
from amlb_ext.core.version import __version__

#: One module for each command, in the order of ``hardsynth --help``. Its ``add_parser(commands)``
#: adds the command's parser and sets ``run_command``, the function that runs it. The other wings
#: are imported by that function, so that ``--help`` answers at once.
COMMANDS = (
    demo,
    compare,
    generate,
    harden,
    tasks,
    run,
    show,
    certify,
    report,
    gate,
    score,
    verify,
    estimate,
    export,
    install,
    publish,
    difficulty,
    relations,
    list_names,
    completion,
)

EXAMPLES = """
hardsynth demo                                       a first look, in a minute
hardsynth compare new.csv --target y --baseline F.skops --candidate new=new.skops
                                                     models of your own, on your rows
hardsynth generate -o hard                           the bundled tasks, no network
hardsynth generate openml/t/31 openml/s/271 -o hard  OpenML tasks and suites
hardsynth generate data.csv --target price -o hard   a table of your own
hardsynth harden validation -o hard                  a hard twin of an AMLB benchmark
hardsynth run constantpredictor -u hard              the AutoML Benchmark on the suite
hardsynth install hard                               add the suite to your AMLB configuration
"""


def build_parser() -> Parser:
    """Return the argument parser of all commands."""
    top = Parser(
        prog="hardsynth",
        description="Model-aware hard benchmarks for the AutoML Benchmark (AMLB).",
        examples=EXAMPLES,
    )
    top.add_argument("--version", action="version", version=f"hardsynth {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_parser(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status, which the module's docstring explains."""
    words = list(sys.argv[1:] if argv is None else argv)
    use_one_allocator()
    try:
        with guarded_streams():
            return _dispatch_command(words)
    except OutputError as error:
        # standard error may be as full as standard output
        with suppress(OSError):
            print(f"hardsynth: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # the reader has gone, as `| head` does: that needs no message
        return 1


def _dispatch_command(words: list[str]) -> int:
    """Parse the command line, run its command, and report expected errors."""
    extra: list[str] = []
    if "--" in words:
        # split here: argparse would hand what follows to the positional arguments
        separator = words.index("--")
        extra = words[separator + 1 :]
        words = words[:separator]
    try:
        check_words(words)
        parser = build_parser()
        arguments, unknown = parser.parse_known_args(words)
        if unknown:
            parser.refuse_unknown(unknown, arguments.command)
        arguments.extra = extra
        arguments.words = words
        return int(arguments.run_command(arguments))
    except HardsynthError as error:
        print(f"hardsynth: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = "the same command continues where this one stopped"
        print(f"\nhardsynth: interrupted; {hint}", file=sys.stderr)
        return 130
