"""The command that made a suite, read back from its manifest, and the sources that it names."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from amlb_ext.core.errors import SourceError
from amlb_ext.suite import Manifest

_COMMAND = re.compile(r'^ "command": (".*"),?$', re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """The command that made a suite, as its manifest keeps it.

    Attributes
    ----------
    sources, targets : tuple of str
    twin : bool
        It was ``harden``.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...] = ()
    twin: bool = False

    @classmethod
    def parse(cls, text: str) -> Command | None:
        """Read what :func:`amlb_ext.pipeline.request.command_text` wrote; None for other text.

        Examples
        --------
        >>> Command.parse("hardsynth generate 'my data.csv' --targets a b -o DIR --config FILE")
        Command(sources=('my data.csv',), targets=('a', 'b'), twin=False)
        >>> Command.parse("hardsinth generate toy -o DIR --config FILE") is None
        True
        """
        try:
            words = shlex.split(text)
            tool, name, *rest = words[: words.index("-o")]
        except ValueError:
            return None
        if tool != "hardsynth" or name not in ("generate", "harden") or not rest:
            return None
        at = rest.index("--targets") if "--targets" in rest else len(rest)
        return cls(tuple(rest[:at]), tuple(rest[at + 1 :]), name == "harden")

    @classmethod
    def find(cls, text: str) -> Command | None:
        """Return the command in the text of a manifest that is damaged elsewhere."""
        found = _COMMAND.search(text)
        try:
            return cls.parse(json.loads(found[1])) if found else None
        except ValueError:
            return None


def told_sources(said: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the specs of a suite, each given one in the place of the one of the same name.

    Parameters
    ----------
    said : sequence of str
        As the suite names its sources, without local folders.
    given : sequence of str

    Raises
    ------
    SourceError
        A spec under another name than any of the suite's.

    Examples
    --------
    >>> told_sources(("bundled/toy", "cars.csv"), ("/home/me/cars.csv",))
    ('bundled/toy', '/home/me/cars.csv')
    """
    out = list(said)
    left = list(range(len(said)))
    for spec in given:
        place = next((k for k in left if Path(said[k]).name == Path(spec).name), None)
        if place is None:
            raise SourceError(
                f"the suite was made of {', '.join(said)}, {spec!r} came; nothing was changed",
                "give each source under the name that it has there",
            )
        left.remove(place)
        out[place] = spec
    return tuple(out)


def as_said(manifest: Manifest, specs: Mapping[str, str]) -> Manifest:
    """Return a manifest that names its sources as the suite did before.

    Parameters
    ----------
    manifest : Manifest
    specs : mapping of str to str
        The suite's names of sources, by those in the manifest.
    """

    def said(spec: str) -> str:
        base, sign, task = spec.partition("#")
        return specs.get(spec) or specs.get(base, base) + sign + task

    tasks = {
        name: replace(entry, origin=replace(entry.origin, spec=said(entry.origin.spec)))
        for name, entry in manifest.tasks.items()
    }
    amlb_tasks = {}
    for name, task in manifest.amlb_tasks.items():
        old, new = manifest.tasks[task.task].origin.spec, tasks[task.task].origin.spec
        text = task.description.removesuffix(f"({old})") + f"({new})"
        amlb_tasks[name] = replace(task, description=text)
    return replace(manifest, tasks=tasks, amlb_tasks=amlb_tasks)
