"""The entry point: parse the command line, run a command, report an error in one line.

Exit status: 0 success · 1 the command finished, but a task was left out, a job has no score, a
check failed, or standard output could not be written · 2 invalid input, nothing was written ·
3 a gate that cannot be decided · 130 interrupted.
"""

from __future__ import annotations

import difflib
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from amlb_ext.cli.command import GROUPS, Command, Flag, all_commands
from amlb_ext.cli.terminal import OutputError, check_words, guarded_streams
from amlb_ext.core.errors import ConfigError, HardsynthError
from amlb_ext.core.memory import use_one_allocator
from amlb_ext.core.version import __version__

# What --help prints: plain text as wide as the terminal, in two levels.

_DESCRIPTION = "Model-aware hard benchmarks for the AutoML Benchmark (AMLB)."
_EXAMPLES = """\
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


def overview(commands: Collection[Command]) -> str:
    """Return ``hardsynth --help``: the commands in groups, a line for each."""
    lines = ["usage: hardsynth COMMAND ...", "", _DESCRIPTION]
    for group, title in GROUPS.items():
        entries = [
            (command.name, command.doc.summary.removesuffix("."))
            for command in commands
            if command.group == group
        ]
        lines += ["", f"{title}:", *_entries(entries, column=14)]
    lines += ["", "examples:", textwrap.indent(_EXAMPLES, "  ").rstrip()]
    lines += [
        "",
        "flags of a command: hardsynth COMMAND --help, all of them: --help-all",
    ]
    return "\n".join(lines) + "\n"


def command_help(command: Command, *, everything: bool = False) -> str:
    """Return ``hardsynth COMMAND --help``, or with ``everything`` that of ``--help-all``.

    Parameters
    ----------
    command : Command
    everything : bool
    """
    groups = flags_by_group(command, everything=everything)
    usage = textwrap.wrap(f"usage: {command.usage}", _width(), subsequent_indent="  ")
    lines = [*usage, "", *textwrap.wrap(command.doc.summary, _width())]
    if command.doc.description:
        lines += ["", *textwrap.wrap(command.doc.description, _width())]
    for title, flags in groups.items():
        entries = [(flag.shown, flag.text) for flag in flags]
        lines += ["", f"{title}:", *_entries(entries)]
    if command.doc.examples:
        title = "examples" if "\n" in command.doc.examples else "example"
        lines += ["", f"{title}:", textwrap.indent(command.doc.examples, "  ")]
    n_shown = sum(not flag.is_positional for flags in groups.values() for flag in flags)
    n_hidden = sum(not flag.is_positional for flag in command.flags) - n_shown
    if n_hidden:
        lines += ["", f"{n_hidden} more flags: hardsynth {command.name} --help-all"]
    return "\n".join(lines) + "\n"


def flags_by_group(
    command: Command, *, everything: bool
) -> Mapping[str, Sequence[Flag]]:
    """Return the flags that a help lists, by the title of their group."""
    if command.everyday and not everything:
        return {
            title: [command.find(name) for name in names]
            for title, names in command.everyday.items()
        }
    listed: dict[str, list[Flag]] = {}
    for flag in command.flags:
        listed.setdefault(flag.group, []).append(flag)
    return listed


def _width() -> int:
    return max(40, min(shutil.get_terminal_size().columns, 100) - 2)


def _entries(entries: Iterable[tuple[str, str]], column: int = 26) -> list[str]:
    """Return terms with their explanations beside them, or below where a term is long."""
    lines = []
    for term, text in entries:
        first = f"  {term}"
        if len(first) > column - 2:
            lines.append(first)
            first = ""
        wrapped = textwrap.wrap(
            text,
            _width(),
            initial_indent=f"{first:<{column}}",
            subsequent_indent=" " * column,
            break_on_hyphens=False,
            break_long_words=False,
        )
        lines += wrapped or [first]
    return lines


# From the words of a command line to a command and its arguments, or to one line of error.


def parse(
    commands: Mapping[str, Command], words: Sequence[str]
) -> tuple[Command, dict[str, Any]]:
    """Return the command that was named, and what its function is called with.

    Parameters
    ----------
    commands : mapping of str to Command
    words : sequence of str
        The command line without the program's name. What follows ``--`` is the argument ``extra``
        of a command that has one, else names of files that may begin with a dash.

    Raises
    ------
    ConfigError
        A word that cannot be read, with what was probably meant.
    """
    from cyclopts import App, CycloptsError

    place = words.index("--") if "--" in words else len(words)
    words, extra = words[:place], words[place + 1 :]
    name = words[0] if words else ""
    if name not in commands:
        near = difflib.get_close_matches(name, commands, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        what = f"there is no command {name!r}{hint}" if name else "no command is named"
        raise ConfigError(what, "see hardsynth --help")
    command = commands[name]
    if not command.takes_extra:
        files = [f"./{word}" if word.startswith("-") else word for word in extra]
        words, extra = [*words, *files], []
    app = App(name="hardsynth", help_flags=(), version_flags=())
    command.add_to(app)
    try:
        _, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        problem = _explain(error, command, words[1:])
        raise ConfigError(problem, f"see hardsynth {name} --help") from None
    given = {
        key.replace("__", "."): value
        for key, value in bound.arguments.items()
        if value not in (None, ())
    }
    missing, typed = [], {}
    for flag in command.flags:
        if flag.name not in given:
            missing += [flag.title] if flag.is_required else []
        elif not flag.is_positional:
            typed[flag.name] = flag
    if missing:
        raise ConfigError(
            f"the following arguments are required: {', '.join(missing)}",
            f"see hardsynth {name} --help",
        )
    arguments = command.arguments(given)
    injected = {"words": tuple(words), "extra": tuple(extra), "typed": typed}
    return command, arguments | injected


def _explain(error: Any, command: Command, words: Sequence[str]) -> str:
    """Return what is wrong with a command line."""
    from cyclopts import (
        MissingArgumentError,
        UnknownOptionError,
        UnusedCliTokensError,
    )

    if isinstance(error, UnknownOptionError):
        return _unknown_flag(error.token.keyword or error.token.value, command)
    if isinstance(error, UnusedCliTokensError):
        word = str((error.unused_tokens or [""])[0])
        if "-u" in words and command.flags[0].name == "suite":
            return f"the suite is named twice: {word} and -u"
        return f"unknown argument {word}"
    if isinstance(error, MissingArgumentError) and error.argument:
        flag = command.find(error.argument.field_info.name.replace("__", "."))
        return f"{flag.title} needs a value, {flag.metavar}"
    error.verbose = False
    return str(error).removesuffix(".").replace("\n", " ")


def _unknown_flag(word: str, command: Command) -> str:
    """Return why a command has no such flag, or which one was probably meant."""
    word = word.partition("=")[0]
    if word in command.refused:
        return f"hardsynth {command.name} has no {word}: {command.refused[word]}"
    # without their dashes, which would make all flags alike
    flags = {name.lstrip("-"): name for flag in command.flags for name in flag.names}
    near = difflib.get_close_matches(word.lstrip("-"), flags, n=1)
    return f"unknown argument {word}" + (
        f"; did you mean {flags[near[0]]}?" if near else ""
    )


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
    except PermissionError as error:
        what = f"{error.filename or 'a file'}: {error.strerror}"
        print(
            f"hardsynth: error: {what} (see who may read or write it)", file=sys.stderr
        )
        return 2
    except SystemExit:
        # of a model, a task or a loss: what was asked for is not done
        what = "code that the command ran ended the program (let it return, or raise an error)"
        print(f"hardsynth: error: {what}", file=sys.stderr)
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
