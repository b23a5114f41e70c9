"""The modules of the commands, in the order of ``hardsynth --help``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from amlb_ext.cli.command import COMMANDS, Command

#: A new command stands in one of these, or in a module of its own that is named here.
_MODULES = (
    *("demo", "compare", "estimate", "gate"),
    *("generate", "verify", "certify", "score", "run", "report", "export", "install"),
    *(
        "relations",
        "difficulty",
        "publish",
        "tasks",
        "list_names",
        "completion",
    ),
)


@cache
def all_commands() -> Mapping[str, Command]:
    """Return the commands by name."""
    for module in _MODULES:
        import_module(f"amlb_ext.cli.{module}")
    return COMMANDS
