"""The entry point: parse the command line, run a command, report an error in one line.

Exit status: 0 success · 1 the command finished, but a task was left out, a job has no score, a
check failed, or standard output could not be written · 2 invalid input, nothing was written ·
3 a gate that cannot be decided · 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from amlb_ext.cli.commands import all_commands
from amlb_ext.cli.help import command_help, overview
from amlb_ext.cli.parse import parse
from amlb_ext.cli.terminal import OutputError, check_words, guarded_streams
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.memory import use_one_allocator
from amlb_ext.core.version import __version__

_HELP = {"-h", "--help", "--help-all"}


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
    try:
        check_words(words)
        text = _text_asked_for(words)
        if text:
            print(text, end="")
            return 0
        command, arguments = parse(all_commands(), words)
        return command.run(arguments)
    except HardsynthError as error:
        print(f"hardsynth: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        hint = "the same command continues where this one stopped"
        print(f"\nhardsynth: interrupted; {hint}", file=sys.stderr)
        return 130


def _text_asked_for(words: Sequence[str]) -> str:
    """Return the help or the version, if a command line asks for one."""
    if list(words) == ["--version"]:
        return f"hardsynth {__version__}\n"
    # what follows "--" is for another program
    own = words[: words.index("--")] if "--" in words else words
    asked = _HELP & set(own)
    if not asked:
        return ""
    commands = all_commands()
    if own[0] not in commands:
        return overview(commands.values()) if own[0] in _HELP else ""
    return command_help(commands[own[0]], everything="--help-all" in asked)
