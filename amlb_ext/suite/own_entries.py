"""Entries of the user's own in a suite's ``frameworks.yaml`` and ``constraints.yaml``.

AMLB reads the frameworks and the constraints of a suite from one file each, which is where a user
adds one. The manifest promises the part that hardsynth wrote; a repair or another generation makes
that part again, and the user's entries stay, letter by letter.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import yaml

from amlb_ext.core.files import write_text
from amlb_ext.core.yaml_reader import Loader

#: What the names of the entries that hardsynth writes begin with.
_RESERVED_PREFIXES = ("Hardsynth", "LLMCoder_", "hardsynth", "weirdml")


def is_own_entry(name: str) -> bool:
    """Return whether an entry is the user's.

    Examples
    --------
    >>> is_own_entry("my_forest"), is_own_entry("HardsynthNull")
    (True, False)
    """
    return not name.startswith(_RESERVED_PREFIXES)


def split_own_entries(text: str) -> tuple[str, str]:
    """Return the part of a file that hardsynth wrote, and the user's entries.

    Comments and empty lines before an entry go with it.

    Parameters
    ----------
    text : str

    Returns
    -------
    suite_part, own_part : str
        The whole text and nothing, where the entries cannot be told apart: no YAML, no mapping,
        or several entries on a line.

    Examples
    --------
    >>> split_own_entries("---\\nHardsynthNull: {version: a}\\n\\n# mine\\nfast:\\n  version: b\\n")
    ('---\\nHardsynthNull: {version: a}\\n', '\\n# mine\\nfast:\\n  version: b\\n')
    """
    keys = _entry_lines(text)
    lines = text.splitlines(keepends=True)
    starts = [line for line, _ in keys]
    if len(set(starts)) < len(starts):
        return text, ""
    own_lines: set[int] = set()
    for position, (start, name) in enumerate(keys):
        if not is_own_entry(name):
            continue
        end = len(lines)
        if position + 1 < len(keys):
            end = _with_comments(lines, starts[position + 1])
        own_lines.update(range(_with_comments(lines, start), end))
    suite_part = [line for at, line in enumerate(lines) if at not in own_lines]
    own_part = [line for at, line in enumerate(lines) if at in own_lines]
    return "".join(suite_part), "".join(own_part)


def read_own_entries(path: Path) -> str:
    """Return the user's entries of a file as they stand there; empty where it has none."""
    text = _read_text(path)
    _, own_part = split_own_entries(text)
    return own_part


def read_suite_part(path: Path) -> str:
    """Return what hardsynth wrote of a file, without the user's entries."""
    suite_part, _ = split_own_entries(_read_text(path))
    return suite_part


def write_suite_part(path: Path, text: str) -> str:
    """Write the part that hardsynth writes, and leave the user's entries behind it.

    Returns
    -------
    str
        The sha256 of that part, which is what a manifest promises.
    """
    own_part = read_own_entries(path)
    if own_part and not text.endswith("\n"):
        text += "\n"
    write_text(path, text + own_part)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def is_suite_part_whole(path: Path, digest: str) -> bool:
    """Return whether a file is as the manifest promises without the user's entries.

    Parameters
    ----------
    path : Path
    digest : str
        The sha256 that the manifest has.
    """
    return hashlib.sha256(read_suite_part(path).encode("utf-8")).hexdigest() == digest


def _entry_lines(text: str) -> list[tuple[int, str]]:
    """Return the line and the name of each entry, in the file's order; none if unreadable."""
    try:
        node = Loader(text).get_single_node()
    except (yaml.YAMLError, RecursionError):
        return []
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return []
    return [(key.start_mark.line, str(key.value)) for key, _ in node.value]


def _with_comments(lines: list[str], start: int) -> int:
    """Return the line at which the comments and empty lines before an entry begin."""
    while start > 0:
        line = lines[start - 1].strip()
        if line and not line.startswith("#"):
            break
        start -= 1
    return start


def _read_text(path: Path) -> str:
    # Line ends stay as they are: the digest is one of bytes.
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
