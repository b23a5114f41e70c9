"""``hardsynth list`` and ``completion``: what can be typed, for people and for a shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from amlb_ext.cli.command import COMMANDS, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.config import PRESETS


@command(group="research", name="list")
def list_names() -> Answer:
    """List sources, baselines, rules, synthesizers and presets.

    List what other commands accept by name.

    Examples
    --------
    $ hardsynth list
    """
    names = _collect_names()

    def text() -> str:
        lines = []
        for title, descriptions in names.items():
            lines.append(f"{title}:")
            width = max(len(name) for name in descriptions)
            for name, description in descriptions.items():
                lines.append(f"  {name.ljust(width)}  {description}")
        return "\n".join(lines)

    return Answer(text, lambda: names)


def _collect_names() -> dict[str, dict[str, str]]:
    """Return every name with its description, grouped by what it names."""
    from amlb_ext.hardening.rules import RULES
    from amlb_ext.models.registry import (
        BASELINES,
        READERS,
        is_installed,
    )
    from amlb_ext.sources import describe_sources
    from amlb_ext.synthesizers import describe_synthesizers

    baselines = {}
    # Listed even if its package is missing: the user may install it.
    for name, baseline in BASELINES.items():
        suffix = "" if is_installed(name) else " (not installed)"
        baselines[name] = baseline.description + suffix
    for name, reader in READERS.items():
        baselines[name] = reader.description
    return {
        "sources": describe_sources(),
        "baselines": baselines,
        "rules": {name: f"{text} ({kind})" for name, (kind, text) in RULES.items()},
        "synthesizers": describe_synthesizers(),
        "presets": {name: _preset_text(changes) for name, changes in PRESETS.items()},
    }


def _preset_text(changes: Mapping[str, Any]) -> str:
    """Return the settings that a preset changes."""
    texts = []
    for stage, settings in changes.items():
        if isinstance(settings, Mapping):
            texts += [f"{stage}.{name}={value}" for name, value in settings.items()]
        else:
            texts.append(f"{stage}={','.join(settings)}")
    return ", ".join(texts) or "the defaults"


@command(group="research")
def completion(shell: Literal["bash", "zsh", "fish"]) -> int:
    """Print a script for completion in your shell.

    The script lets your shell complete commands, flags and paths. The shell reads it when it
    starts.

    Parameters
    ----------
    shell : SHELL
        bash, zsh or fish

    Examples
    --------
    $ hardsynth completion bash > ~/.local/share/bash-completion/completions/hardsynth
    $ hardsynth completion zsh > ~/.zfunc/_hardsynth
    """
    from cyclopts import App

    app = App(name="hardsynth", help_flags=("--help", "--help-all"))
    for one in COMMANDS.values():
        one.add_to(app, for_completion=True)
    print(app.generate_completion(shell=shell), end="")
    return 0
