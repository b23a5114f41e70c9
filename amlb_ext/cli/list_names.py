"""``hardsynth list``: what can be named on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amlb_ext.cli.command import command
from amlb_ext.cli.display import print_json
from amlb_ext.core.config import PRESETS


@command(group="research", name="list")
def list_names(*, quiet: bool = False, json: bool = False) -> int:
    """List sources, baselines, rules, synthesizers and presets.

    List what other commands accept by name.

    Examples
    --------
    $ hardsynth list
    """
    names = _collect_names()
    if json:
        print_json(names)
        return 0
    for title, descriptions in names.items():
        print(f"{title}:")
        width = max(len(name) for name in descriptions)
        for name, description in descriptions.items():
            print(f"  {name.ljust(width)}  {description}")
    return 0


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
    rules = {}
    for name, (kind, text) in RULES.items():
        rules[name] = f"{text} ({kind})"
    presets = {}
    for name, changes in PRESETS.items():
        presets[name] = _preset_text(changes)
    return {
        "sources": describe_sources(),
        "baselines": baselines,
        "rules": rules,
        "synthesizers": describe_synthesizers(),
        "presets": presets,
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
