"""What ``--help`` prints: plain text as wide as the terminal, in two levels."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from amlb_ext.cli.command import GROUPS, Command, Flag

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


def overview(commands: Iterable[Command]) -> str:
    """Return ``hardsynth --help``: the commands in groups, a line for each."""
    lines = ["usage: hardsynth COMMAND ...", "", _DESCRIPTION]
    by_group: dict[str, list[tuple[str, str]]] = {title: [] for title in GROUPS}
    for command in commands:
        summary = command.doc.summary.removesuffix(".")
        by_group[command.group].append((command.name, summary))
    for group, entries in by_group.items():
        lines += ["", f"{GROUPS[group]}:", *_entries(entries, column=14)]
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
        groups = {}
        for title, names in command.everyday.items():
            groups[title] = [command.find(name) for name in names]
        return groups
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
