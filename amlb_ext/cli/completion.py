"""``hardsynth completion``: a script that lets a shell complete commands, flags and paths."""

from __future__ import annotations

import argparse
from typing import Any

from amlb_ext.cli.parser import Parser
from amlb_ext.core.errors import ConfigError

#: What stands for a path in a help text, and what a shell completes there.
_FILES = ("FILE", "TABLE", "DATA", "MODEL", "SOURCE", "[NAME=]FILE")
_FOLDERS = ("DIR", "FOLDER", "OUT", "USERDIR")
#: Where the script belongs, by shell.
_SHELLS = ("bash", "zsh", "tcsh")


def add_parser(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "completion",
        help="print a script for completion in your shell",
        description="Print a script that lets your shell complete commands, flags and paths. The "
        "shell reads it when it starts.",
        examples="hardsynth completion bash > "
        "~/.local/share/bash-completion/completions/hardsynth\n"
        "hardsynth completion zsh > ~/.zfunc/_hardsynth",
    )
    parser.add_argument("shell", metavar="SHELL", help=" or ".join(_SHELLS))
    parser.set_defaults(run_command=run_command)


def run_command(arguments: argparse.Namespace) -> int:
    """Print the script of a shell."""
    import shtab

    # imported here: the parser of all commands has this command, too
    from amlb_ext.cli.main import build_parser

    if arguments.shell not in _SHELLS:
        raise ConfigError(
            f"no completion for {arguments.shell!r}", f"name {' or '.join(_SHELLS)}"
        )
    parser = build_parser()
    _mark_paths(parser)
    print(shtab.complete(parser, arguments.shell), end="")
    return 0


def _mark_paths(parser: Parser) -> None:
    """Tell which arguments are paths, by what stands for their value in the help."""
    import shtab

    for action in parser._actions:
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    for subparser in parser.subparsers().values():
        _mark_paths(subparser)
