"""From the words of a command line to a command and its arguments, or to one line of error."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from amlb_ext.cli.command import Command
from amlb_ext.core.errors import ConfigError


def parse(
    commands: Mapping[str, Command], words: Sequence[str]
) -> tuple[Command, dict[str, Any]]:
    """Return the command that was named, and what its function is called with.

    Parameters
    ----------
    commands : mapping of str to Command
    words : sequence of str
        The command line without the program's name. What follows ``--`` is the argument ``extra``.

    Raises
    ------
    ConfigError
        A word that cannot be read, with what was probably meant.
    """
    from cyclopts import App, CycloptsError

    words, extra = _split(words)
    name = words[0] if words else ""
    if name not in commands:
        near = difflib.get_close_matches(name, commands, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        what = f"there is no command {name!r}{hint}" if name else "no command is named"
        raise ConfigError(what, "see hardsynth --help")
    command = commands[name]
    app = App(
        name="hardsynth", help_flags=(), version_flags=(), result_action="return_value"
    )
    command.add_to(app)
    try:
        once = _without_replaced(words, command)
        _, bound, _ = app.parse_args(once, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        problem = _explain(error, command, words[1:])
        raise ConfigError(problem, f"see hardsynth {name} --help") from None
    given = dict(bound.arguments)
    for flag in command.flags:
        if flag.is_required and given.get(flag.name) in (None, ()):
            raise ConfigError(
                f"the following arguments are required: {flag.title}",
                f"see hardsynth {name} --help",
            )
    arguments = command.arguments(given)
    injected = {"words": tuple(words), "extra": tuple(extra)}
    return command, arguments | injected


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before ``--``, and those behind it, which are for another program."""
    words = list(words)
    if "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]


def _without_replaced(words: Sequence[str], command: Command) -> list[str]:
    """Return the words without settings that are given again: the last one counts.

    ``--targets A B`` is one setting; ``--drop A --drop B`` are two columns.
    """
    replaced = set()
    for flag in command.flags:
        if flag.takes_several_words and flag.is_setting:
            places = [place for place, word in enumerate(words) if word in flag.names]
            replaced.update(places[:-1])
    kept = []
    is_kept = True
    for place, word in enumerate(words):
        if word.startswith("-"):
            is_kept = place not in replaced
        if is_kept:
            kept.append(word)
    return kept


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
    if isinstance(error, MissingArgumentError):
        return _missing_value(error, command, words)
    error.verbose = False
    return str(error).removesuffix(".").replace("\n", " ")


def _missing_value(error: Any, command: Command, words: Sequence[str]) -> str:
    flag = command.find(error.argument.field_info.name.replace("__", "."))
    typed = {word.partition("=")[0] for word in words}
    known = {name for one in command.flags for name in one.names}
    for word in words:
        # a flag that is mistyped is missing, too
        name = word.partition("=")[0].replace("--no-", "--", 1)
        if re.match("--[a-z]", name) and not {name, word} & known:
            return _unknown_flag(word, command)
    if typed & set(flag.names):
        return f"{flag.title} needs a value, {flag.metavar}"
    missing = [flag.title]
    for other in command.flags:
        if (
            other.is_required
            and not other.is_positional
            and not typed & set(other.names)
        ):
            missing.append(other.title)
    titles = ", ".join(dict.fromkeys(missing))
    return f"the following arguments are required: {titles}"


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
