"""Where entries go in a user's ``config.yaml``: by line where it is in blocks, else within a line.

Places come from the marks that ``ruamel.yaml`` keeps of each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

#: Ends every line of ours in a user's file.
MARK = "  # by hardsynth install"
Key = tuple[str, str]


@dataclass(frozen=True)
class Listed:
    """A list of AMLB's configuration that a suite adds to.

    Attributes
    ----------
    default : str
        AMLB's own entry, which a user's list replaces.
    first : bool
        Whether ours goes before the others. AMLB takes the first definition of a benchmark,
        but the last of a constraint or framework: so the user's own always wins.
    """

    default: str
    first: bool


LISTS: dict[Key, Listed] = {
    ("benchmarks", "definition_dir"): Listed("{root}/resources/benchmarks", first=False),
    ("benchmarks", "constraints_file"): Listed("{root}/resources/constraints.yaml", first=True),
    ("frameworks", "definition_file"): Listed("{root}/resources/frameworks.yaml", first=True),
}


def insertion(text: str, key: Key, entries: list[str], new: bool) -> tuple[list[int], list[str]]:
    """Return where to insert what, so that a list gets entries.

    Parameters
    ----------
    text : str
        The file.
    key : Key
        The list.
    entries : list of str
    new : bool
        Whether the file has no such list; it then begins with AMLB's default.

    Returns
    -------
    list of int, list of str
        Offsets in ``text`` and what to insert there: whole lines, or pieces within one.

    Raises
    ------
    TypeError, IndexError, AttributeError
        Where YAML is written in a way that is not foreseen.
    """
    listed = LISTS[key]
    if new:
        entries = [*entries, listed.default] if listed.first else [listed.default, *entries]
    root = YAML(typ="safe", pure=True).compose(text)
    if root is None or (isinstance(root, ScalarNode) and not root.value):
        at = len(text) if root is None else root.start_mark.index  # the end, or `...` before it
        return _lines(text, at, [f"{key[0]}:", f"  {key[1]}:", *_dashed(entries, 4)])
    section_key, section = _child(root, key[0])
    if section_key is None:
        if root.flow_style:
            return _flow_key(root, f"{key[0]}: {{{key[1]}: [{quoted(entries)}]}}")
        pad = " " * root.value[0][0].start_mark.column
        lines = [f"{pad}{key[0]}:", f"{pad}  {key[1]}:", *_dashed(entries, len(pad) + 4)]
        return _lines(text, _line_end(text, _content_end(root)), lines)
    if isinstance(section, ScalarNode):  # `benchmarks:` and nothing after it
        pad = " " * (section_key.start_mark.column + 2)
        lines = [f"{pad}{key[1]}:", *_dashed(entries, len(pad) + 2)]
        return _lines(text, _line_end(text, section_key.end_mark.index), lines)
    list_key, node = _child(section, key[1])
    if list_key is None:
        if section.flow_style:
            return _flow_key(section, f"{key[1]}: [{quoted(entries)}]")
        pad = " " * section.value[0][0].start_mark.column
        lines = [f"{pad}{key[1]}:", *_dashed(entries, len(pad) + 2)]
        return _lines(text, _line_end(text, _content_end(section)), lines)
    if isinstance(node, ScalarNode) and not node.value:
        dashes = _dashed(entries, list_key.start_mark.column + 2)
        return _lines(text, _line_end(text, list_key.end_mark.index), dashes)
    return _into_list(text, node, entries, listed.first)


def _into_list(
    text: str, node: Node, entries: list[str], first: bool
) -> tuple[list[int], list[str]]:
    words = quoted(entries)
    if isinstance(node, ScalarNode):
        start, end = node.start_mark.index, node.end_mark.index
        pair = [f"[{words}, ", "]"] if first else ["[", f", {words}]"]
        return [start, end], pair
    assert isinstance(node, SequenceNode)
    if not node.flow_style:
        at = node.start_mark.index - node.start_mark.column
        if not first:
            at = _line_end(text, _content_end(node))
        return _lines(text, at, _dashed(entries, node.start_mark.column))
    if not node.value:
        return [text.index("[", node.start_mark.index) + 1], [words]
    if first:
        return [node.value[0].start_mark.index], [f"{words}, "]
    return [node.value[-1].end_mark.index], [f", {words}"]


def _flow_key(node: Node, words: str) -> tuple[list[int], list[str]]:
    if not node.value:
        return [node.end_mark.index - 1], [words]
    return [node.value[-1][1].end_mark.index], [f", {words}"]


def _lines(text: str, at: int, lines: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return whole lines to insert at ``at``, with the file's own line ends."""
    end = "\r\n" if "\r\n" in text else "\n"
    whole = "".join(f"{line}{MARK}{end}" for line in lines)
    if at and not text[:at].endswith(("\n", "\ufeff")):  # the file's last line has no end
        whole = end + whole[: -len(end)]
    return [at], [whole]


def _dashed(entries: Sequence[str], indent: int) -> list[str]:
    return [f"{' ' * indent}- {_quote(entry)}" for entry in entries]


def quoted(entries: Sequence[str]) -> str:
    """Return entries as they stand in a list on one line.

    Examples
    --------
    >>> quoted(["{user}/a", "b's"])
    "'{user}/a', 'b''s'"
    """
    return ", ".join(map(_quote, entries))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _child(node: Node, name: str) -> tuple[Node | None, Any]:
    if not isinstance(node, MappingNode):
        raise TypeError(name)
    for key, value in node.value:
        if isinstance(key, ScalarNode) and key.value == name:
            return key, value
    return None, None


def _content_end(node: Any) -> int:
    """Return where a node's last character stands; a block's own mark lies behind comments."""
    if isinstance(node, ScalarNode) or node.flow_style or not node.value:
        return int(node.end_mark.index)
    if isinstance(node, SequenceNode):
        return _content_end(node.value[-1])
    key, value = node.value[-1]
    if isinstance(value, ScalarNode) and not value.value:
        return int(key.end_mark.index)
    return max(_content_end(value), int(key.end_mark.index))


def _line_end(text: str, at: int) -> int:
    """Return where the next line begins; a block of text ends at one already."""
    if at and text[at - 1] == "\n":
        return at
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1
