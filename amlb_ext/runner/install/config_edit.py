"""Our entries in a user's ``config.yaml``, added and taken back by ruamel's round trip.

The round trip keeps values, comments, order and quotes; indentation and empty values may get
another look. The result is read back as AMLB reads it, and refused if it says anything else.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from amlb_ext.amlb.configuration import OWN_CONSTRAINTS, OWN_DEFINITIONS
from amlb_ext.core.errors import RunError
from amlb_ext.runner.install.copies import FOLDER

#: Section and name of a list in ``config.yaml``.
Key = tuple[str, str]
#: Begins every entry of ours and none of the user's. AMLB replaces {user}, so the entries stay
#: valid where the user directory moves.
OURS = f"{{user}}/{FOLDER}/"
_OWN_FRAMEWORKS = "{root}/resources/frameworks.yaml"
#: What comes before the content, which ruamel's round trip would drop.
_HEAD = re.compile(r"\ufeff?(?:(?:[#%].*|[ \t]*)\n)*---[ \t]*(?:#.*)?\n|\ufeff?")


class Listed(NamedTuple):
    """A list of AMLB's configuration that a suite adds to.

    Attributes
    ----------
    file : str
        What of a suite the list names.
    default : str
        AMLB's own entry, which a user's list replaces.
    first : bool
        Whether our entries go before the others. AMLB takes the first definition of a benchmark,
        but the last of a constraint or framework: so the user's own always wins.
    """

    file: str
    default: str
    first: bool


LISTS: dict[Key, Listed] = {
    ("benchmarks", "definition_dir"): Listed(
        file="benchmarks", default=OWN_DEFINITIONS, first=False
    ),
    ("benchmarks", "constraints_file"): Listed(
        file="constraints.yaml", default=OWN_CONSTRAINTS, first=True
    ),
    ("frameworks", "definition_file"): Listed(
        file="frameworks.yaml", default=_OWN_FRAMEWORKS, first=True
    ),
}


def read_config(text: str) -> dict[str, Any]:
    """Return a configuration as AMLB reads it.

    Raises
    ------
    RunError
        The text is not YAML that AMLB could read, or not a mapping.
    """
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        # ruamel's syntax errors know where and what, others have only a message
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise RunError(
            f"config.yaml is not valid YAML: {line}{problem}", "correct that line"
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise RunError(
            f"config.yaml holds a {type(content).__name__} instead of a mapping",
            "see AMLB's resources/config.yaml for its keys",
        )
    return content


def list_entries(config: Mapping[str, Any], key: Key) -> list[str] | None:
    """Return the list at a key; None where the user has none.

    Raises
    ------
    RunError
        The value is neither a text nor a list of texts.

    Examples
    --------
    >>> list_entries({"benchmarks": {"definition_dir": "x"}}, ("benchmarks", "definition_dir"))
    ['x']
    """
    section_name, list_name = key
    section = config.get(section_name) or {}
    value = section.get(list_name) if isinstance(section, dict) else section
    if value is None:
        return None
    entries = [value] if isinstance(value, str) else value
    is_list = isinstance(section, dict) and isinstance(entries, list)
    if not is_list or not all(isinstance(entry, str) for entry in entries):
        raise RunError(
            f"config.yaml: {section_name}.{list_name} is {value!r}",
            f"write a list of paths under {list_name}, and that under {section_name}",
        )
    return list(entries)


def our_entries(text: str) -> dict[Key, list[str]]:
    """Return the entries of ours that a configuration holds."""
    config = read_config(text)
    found = {}
    for key in LISTS:
        entries = list_entries(config, key) or []
        found[key] = [entry for entry in entries if entry.startswith(OURS)]
    return found


def set_entries(text: str, ours: Mapping[Key, Sequence[str]]) -> str:
    """Make our entries of a configuration the given ones.

    A list that the file lacks begins with AMLB's default entry, which stays when ours go: to AMLB
    it says the same as no list.

    Parameters
    ----------
    text : str
        The file as it stands.
    ours : mapping of Key to sequence of str
        All entries of ours that the file shall hold; no other is kept.

    Raises
    ------
    RunError
        The file cannot be read, or not be written again without another change.

    Examples
    --------
    >>> new = set_entries(
    ...     "frameworks:\\n  definition_file: ['{user}/f.yaml']  # mine\\n",
    ...     {("frameworks", "definition_file"): ["{user}/hardsynth_suites/a/frameworks.yaml"]},
    ... )
    >>> print(new, end="")
    frameworks:
      definition_file: ['{user}/hardsynth_suites/a/frameworks.yaml', '{user}/f.yaml'] # mine
    """
    wanted = read_config(text)
    present_ours = our_entries(text)
    changed: dict[Key, list[str]] = {}
    for key, listed in LISTS.items():
        entries = list(ours.get(key, ()))
        if entries == present_ours[key]:
            continue
        present = list_entries(wanted, key)
        users = [listed.default] if present is None else present
        users = [entry for entry in users if not entry.startswith(OURS)]
        changed[key] = [*entries, *users] if listed.first else [*users, *entries]
        # A new section, as an anchor may have put the old one in other places, too.
        section, name = key
        wanted[section] = {**(wanted.get(section) or {}), name: changed[key]}
    if not changed:
        return text
    try:
        new = _round_trip(text, changed)
        # repr tells apart what == does not: true, 1 and 1.0
        is_kept = repr(read_config(new)) == repr(wanted)
    except Exception:  # whatever ruamel.yaml stumbles over: nothing is written
        is_kept = False
    comments = re.compile(r"(?:^|(?<=\s))#[^\r\n]*", re.MULTILINE)
    if not is_kept or Counter(comments.findall(text)) - Counter(comments.findall(new)):
        lists = [f"{'.'.join(key)}: {entries}" for key, entries in changed.items()]
        raise RunError(
            "config.yaml cannot be changed without losing other values or comments: an anchor, "
            "a tag or an unusual form stands there",
            f"write by hand {'; '.join(lists)}; then run the same command again",
        )
    return new


def _round_trip(text: str, lists: Mapping[Key, list[str]]) -> str:
    """Return the text with other lists."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    text = text.replace("\r\n", "\n")
    head = _HEAD.match(text)
    assert head is not None  # an empty one matches anywhere
    kept, body = head[0], text[head.end() :]
    writer = YAML()
    writer.preserve_quotes = True
    writer.width = 1 << 20
    document = writer.load(body)
    if document is None:
        # The round trip keeps no comments of an empty document.
        kept, document = text, CommentedMap()
        if kept and not kept.endswith(("\n", "\ufeff")):
            kept += "\n"
    _follow_indent(writer, document)
    for (section, name), entries in lists.items():
        if document.get(section) is None:
            document[section] = CommentedMap()
        node = document[section].get(name)
        if not isinstance(node, CommentedSeq):
            document[section][name] = entries
            continue
        # single items are removed and inserted, so that the others keep their comments and quotes
        for index in reversed(range(len(node))):
            if node[index] not in entries:
                del node[index]
        for index, entry in enumerate(entries):
            if index == len(node) or node[index] != entry:
                node.insert(index, entry)
        del node[len(entries) :]
    out = io.StringIO()
    writer.dump(document, out)
    return (kept + out.getvalue()).replace("\n", line_end)


def _follow_indent(writer: YAML, document: CommentedMap) -> None:
    """Let the writer indent as the first section does, and the first list in it; else in twos."""
    indent, offset = 2, 2
    blocks = [
        section
        for section in document.values()
        if isinstance(section, CommentedMap) and section and not section.fa.flow_style()
    ]
    if blocks:
        indent = blocks[0].lc.col
        for node in blocks[0].values():
            if isinstance(node, CommentedSeq) and node and not node.fa.flow_style():
                offset = node.lc.col - indent
                break
    writer.indent(mapping=indent, sequence=offset + 2, offset=offset)
