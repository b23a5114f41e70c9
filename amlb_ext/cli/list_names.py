"""``hardsynth list``: what can be named on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from amlb_ext.cli.display import print_json
from amlb_ext.cli.flags import add_output_flags
from amlb_ext.core.presets import PRESETS


def add(commands: Any) -> None:
    """Add the command to the parser of all commands."""
    parser = commands.add_parser(
        "list", help="list sources, baselines, rules, synthesizers and presets"
    )
    add_output_flags(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print what can be named on the command line."""
    from amlb_ext.hardening.baseline.registry import BASELINES, is_installed
    from amlb_ext.hardening.hardness import RULES
    from amlb_ext.sources import describe_sources
    from amlb_ext.synthesizers import describe_synthesizers

    baselines = {}
    for name, baseline in BASELINES.items():
        suffix = "" if is_installed(name) else " (not installed)"
        baselines[name] = baseline.description + suffix
    groups: dict[str, dict[str, str]] = {
        "sources": describe_sources(),
        "baselines": baselines,
        "rules": {name: f"{text} ({kind})" for name, (kind, text) in RULES.items()},
        "synthesizers": describe_synthesizers(),
        "presets": {name: _preset_text(changes) for name, changes in PRESETS.items()},
    }
    if arguments.json:
        print_json(groups)
        return 0
    for title, entries in groups.items():
        width = max(map(len, entries))
        print(f"{title}:")
        for name, text in entries.items():
            print(f"  {name.ljust(width)}  {text}")
    return 0


def _preset_text(changes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the settings that a preset changes."""
    texts = []
    for stage, settings in changes.items():
        texts += [f"{stage}.{name}={value}" for name, value in settings.items()]
    return ", ".join(texts) or "the defaults"
