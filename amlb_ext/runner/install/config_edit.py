"""Entries added to a user's ``config.yaml`` and taken back, without touching another character.

The file is never written out again from its parsed form: lines are inserted, each marked with
:data:`MARK`, or, into a list on one line, ``, 'entry'``. ``ruamel.yaml`` says where, reads the
result back as AMLB will, and any other difference than the wanted one refuses the change.
"""

# Lines here are denser than elsewhere: nearly all of them cut a text at offsets of a node.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from amlb_ext.core.errors import RunError

#: Section and name of a list in ``config.yaml``.
Key = tuple[str, str]
#: Ends every whole line of ours in a user's file.
MARK = "  # by hardsynth install"
#: Between the two pieces that make a list of a single entry. A line break occurs in no piece
#: that goes within a line, so the pair can be told apart again.
_BOTH = "\n"


@dataclass(frozen=True)
class Listed:
    """A list of AMLB's configuration that a suite adds to.

    Attributes
    ----------
    default : str
        AMLB's own entry, which a user's list replaces.
    first : bool
        Whether our entries go before the others. AMLB takes the first definition of a benchmark,
        but the last of a constraint or framework: so the user's own always wins.
    """

    default: str
    first: bool


LISTS: dict[Key, Listed] = {
    ("benchmarks", "definition_dir"): Listed(
        "{root}/resources/benchmarks", first=False
    ),
    ("benchmarks", "constraints_file"): Listed(
        "{root}/resources/constraints.yaml", first=True
    ),
    ("frameworks", "definition_file"): Listed(
        "{root}/resources/frameworks.yaml", first=True
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
        raise RunError(
            f"config.yaml is not valid YAML: {_problem_text(error)}",
            "correct that line",
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise RunError(
            f"config.yaml holds a {type(content).__name__} instead of a mapping",
            "see AMLB's resources/config.yaml for its keys",
        )
    return content


def _problem_text(error: Exception) -> str:
    """Return where and what: ruamel's syntax errors know both, others have only a message."""
    problem = getattr(error, "problem", None)
    if not problem:
        problem = str(error).splitlines()[0]
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(problem)
    return f"line {mark.line + 1}: {problem}"


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
    section = config.get(section_name)
    if section is None:
        return None
    if not isinstance(section, dict):
        raise RunError(
            f"config.yaml: {section_name} is {section!r} instead of a mapping",
            f"write {list_name} below",
        )
    value = section.get(list_name)
    if value is None:
        return None
    entries = [value] if isinstance(value, str) else value
    is_list_of_texts = isinstance(entries, list) and all(
        isinstance(entry, str) for entry in entries
    )
    if not is_list_of_texts:
        raise RunError(
            f"config.yaml: {section_name}.{list_name} is {value!r}",
            "write a list of paths",
        )
    return list(entries)


# Adding entries.


def insert_entries(
    text: str, added: Mapping[Key, Sequence[str]]
) -> tuple[str, tuple[str, ...]]:
    """Add entries to the lists of a configuration.

    Parameters
    ----------
    text : str
        The file as it stands.
    added : mapping of Key to sequence of str

    Returns
    -------
    str
        The file with the entries.
    tuple of str
        What was inserted within lines, in order; whole lines carry :data:`MARK`.

    Raises
    ------
    RunError
        The file cannot be read, or cannot take the entries without changing something else.

    Examples
    --------
    >>> new, _ = insert_entries(
    ...     "frameworks:\\n  definition_file: ['{user}/f.yaml']  # mine\\n",
    ...     {("frameworks", "definition_file"): ["{user}/x.yaml"]},
    ... )
    >>> print(new, end="")
    frameworks:
      definition_file: ['{user}/x.yaml', '{user}/f.yaml']  # mine
    """
    before = read_config(text)
    new = text
    inline: list[str] = []
    for key, entries in added.items():
        if not entries:
            continue
        is_new = list_entries(before, key) is None
        try:
            pieces = _find_pieces(new, key, list(entries), is_new=is_new)
        except (YAMLError, IndexError, TypeError, AttributeError):
            raise _refusal(added) from None
        # From the last to the first, so that the earlier offsets stay valid.
        for piece in reversed(pieces):
            new = new[: piece.offset] + piece.text + new[piece.offset :]
        if MARK not in pieces[0].text:
            inline.append(_BOTH.join(piece.text for piece in pieces))
    if not _differs_by_entries_only(before, new, added):
        raise _refusal(added)
    return new, tuple(inline)


def _differs_by_entries_only(
    before: Mapping[str, Any], new: str, added: Mapping[Key, Sequence[str]]
) -> bool:
    """Whether AMLB reads the new text as the old configuration with the entries added."""
    try:
        after = read_config(new)
        for key, entries in added.items():
            if list_entries(after, key) != _extended_list(before, key, entries):
                return False
    except RunError:
        return False
    return _without_lists(after) == _without_lists(before)


def _extended_list(
    config: Mapping[str, Any], key: Key, entries: Sequence[str]
) -> list[str] | None:
    """Return the list at a key with entries of ours."""
    present = list_entries(config, key)
    if not entries:
        return present
    if present is None:
        present = [LISTS[key].default]
    if LISTS[key].first:
        return [*entries, *present]
    return [*present, *entries]


def _refusal(added: Mapping[Key, Sequence[str]]) -> RunError:
    entries_by_list = []
    for key, entries in added.items():
        name = ".".join(key)
        entries_by_list.append(f"{name}: {quote_entries(entries)}")
    return RunError(
        "config.yaml cannot take the suite's entries without changing more than its lists: an "
        "anchor, a tag or an unusual form stands there",
        "write the lists out, one entry per line after a dash; to add are "
        + "; ".join(entries_by_list),
    )


# Taking entries back.


def strip_entries(text: str, inline: Sequence[str], ours: str) -> str:
    """Take back what :func:`insert_entries` added, whatever the user changed since.

    Parameters
    ----------
    text : str
        The file as it stands.
    inline : sequence of str
        As :func:`insert_entries` returned it.
    ours : str
        Stands in every entry of ours and in none of the user's.

    Raises
    ------
    RunError
        Entries of ours cannot be told from the user's; the lines are named.
    """
    if MARK not in text and ours not in text:
        return text
    before = read_config(text)
    for candidate in _stripped_texts(text, inline, ours):
        try:
            after = read_config(candidate)
            is_same = _without_ours(after, ours) == _without_ours(before, ours)
        except RunError:
            continue
        if is_same and ours not in repr(after):
            return candidate
    line_numbers = []
    for number, line in enumerate(text.splitlines(), start=1):
        if ours in line or MARK in line:
            line_numbers.append(str(number))
    raise RunError(
        "config.yaml was changed where the suite's entries stand, they cannot be taken back alone",
        f"remove them by hand in line {', '.join(line_numbers)}, then run the same command again",
    )


def _stripped_texts(text: str, inline: Sequence[str], ours: str) -> Iterator[str]:
    """Yield candidates for the text without our entries, the most likely one first."""
    # The last insertion first: an earlier one may lie within what a later one added.
    for inserted in reversed(inline):
        text = _remove_inline(text, inserted, ours)
    lines = text.splitlines(keepends=True)
    mark = MARK.strip()
    yield "".join(line for line in lines if not line.rstrip().endswith(mark))
    # Keys that we added may now have entries of the user's below them: then only the lines with
    # entries of ours go, and the others lose the mark.
    kept = [line for line in lines if ours not in line or MARK not in line]
    yield "".join(line.replace(MARK, "") for line in kept)


def _remove_inline(text: str, inserted: str, ours: str) -> str:
    """Remove what was inserted within a line, where it still stands there exactly once."""
    # The closing piece is empty unless a single text was put in brackets.
    opening, _, closing = inserted.partition(_BOTH)
    anchor = closing if ours in closing else opening
    if ours not in anchor or text.count(anchor) != 1:
        return text
    head, tail = text.split(anchor)
    if closing and anchor == closing:
        before_opening, _, after_opening = head.rpartition(opening)
        head = before_opening + after_opening
    elif closing:
        tail = tail.replace(closing, "", 1)
    return head + tail


# Configurations compared as texts. ``repr`` tells apart what ``==`` does not: true, 1 and 1.0.


def _without_lists(config: Mapping[str, Any]) -> str:
    """Return all that is not in our three lists, as a text that compares as AMLB would see it."""
    sections = {section for section, _ in LISTS}
    kept: dict[str, Any] = {}
    for name, value in config.items():
        if name not in sections:
            kept[name] = value
            continue
        if isinstance(value, dict):
            value = {
                key: item for key, item in value.items() if (name, key) not in LISTS
            }
        # An empty section says no more than an absent one; a zero or false is the user's.
        if value or value == 0:
            kept[name] = value
    return repr(kept)


def _without_ours(config: Mapping[str, Any], ours: str) -> str:
    """Return a configuration without our entries, as a text to compare.

    A list that holds AMLB's default alone counts as no list: we write the default out where the
    user had no list.
    """
    lists = {}
    for key, listed in LISTS.items():
        entries = list_entries(config, key) or ()
        users = [entry for entry in entries if ours not in entry]
        lists[key] = [] if users == [listed.default] else users
    return repr(lists) + _without_lists(config)


# Where entries go in a user's ``config.yaml``: by line where it is in blocks, else within a line.
# Places come from the marks that ``ruamel.yaml`` keeps of each node.


@dataclass(frozen=True)
class _Piece:
    """A text to insert, and its offset in the file."""

    offset: int
    text: str


def _find_pieces(
    text: str, key: Key, entries: list[str], *, is_new: bool
) -> list[_Piece]:
    """Return what to insert where, so that a list gets entries.

    Parameters
    ----------
    text : str
        The file.
    key : Key
        The list.
    entries : list of str
    is_new : bool
        Whether the file has no such list; it then begins with AMLB's default.

    Returns
    -------
    list of _Piece
        One of whole lines, or one or two within a line, by ascending offset.

    Raises
    ------
    TypeError, IndexError, AttributeError
        Where YAML is written in a way that is not foreseen.
    """
    section_name, list_name = key
    listed = LISTS[key]
    if is_new and listed.first:
        entries = [*entries, listed.default]
    elif is_new:
        entries = [listed.default, *entries]

    # A file without content: comments alone, or an empty document between --- and ...
    root = YAML(typ="safe", pure=True).compose(text)
    if root is None or _is_empty_scalar(root):
        offset = len(text) if root is None else _start(root)
        lines = _block_lines([section_name, list_name], entries, indent=0)
        return _line_piece(text, offset, lines)

    # No section: a new one behind the last.
    section_key, section = _find_child(root, section_name)
    if section_key is None:
        if root.flow_style:
            pair = f"{section_name}: {{{list_name}: [{quote_entries(entries)}]}}"
            return _flow_piece(root, pair)
        indent = _first_column(root)
        lines = _block_lines([section_name, list_name], entries, indent=indent)
        return _line_piece(text, _next_line(text, _content_end(root)), lines)

    # `benchmarks:` and nothing after it.
    if isinstance(section, ScalarNode):
        indent = _column(section_key) + 2
        lines = _block_lines([list_name], entries, indent=indent)
        return _line_piece(text, _next_line(text, _end(section_key)), lines)

    # A section without the list.
    list_key, node = _find_child(section, list_name)
    if list_key is None:
        if section.flow_style:
            return _flow_piece(section, f"{list_name}: [{quote_entries(entries)}]")
        indent = _first_column(section)
        lines = _block_lines([list_name], entries, indent=indent)
        return _line_piece(text, _next_line(text, _content_end(section)), lines)

    # `definition_dir:` and nothing after it.
    if _is_empty_scalar(node):
        lines = _block_lines([], entries, indent=_column(list_key) + 2)
        return _line_piece(text, _next_line(text, _end(list_key)), lines)
    return _list_pieces(text, node, entries, first=listed.first)


def _list_pieces(
    text: str, node: Node, entries: list[str], *, first: bool
) -> list[_Piece]:
    """Return what adds entries to a list that has some, or to the text that stands for one."""
    quoted = quote_entries(entries)
    if isinstance(node, ScalarNode):
        opening, closing = "[", f", {quoted}]"
        if first:
            opening, closing = f"[{quoted}, ", "]"
        return [
            _Piece(_start(node), opening),
            _Piece(_end(node), closing),
        ]
    assert isinstance(node, SequenceNode)
    if not node.flow_style:
        lines = _block_lines([], entries, indent=_column(node))
        if first:
            line_start = _start(node) - _column(node)
            return _line_piece(text, line_start, lines)
        return _line_piece(text, _next_line(text, _content_end(node)), lines)
    if not node.value:
        bracket = text.index("[", _start(node))
        return [_Piece(bracket + 1, quoted)]
    if first:
        return [_Piece(_start(node.value[0]), f"{quoted}, ")]
    return [_Piece(_end(node.value[-1]), f", {quoted}")]


def _flow_piece(node: Node, pair: str) -> list[_Piece]:
    """Return what adds a key with its value to a mapping in braces."""
    if not node.value:
        return [_Piece(_end(node) - 1, pair)]
    _, last_value = node.value[-1]
    return [_Piece(_end(last_value), f", {pair}")]


def _line_piece(text: str, offset: int, lines: Sequence[str]) -> list[_Piece]:
    """Return whole lines to insert, marked, with the file's own line ends."""
    end = "\r\n" if "\r\n" in text else "\n"
    marked = [line + MARK + end for line in lines]
    block = "".join(marked)
    # Behind a last line without a line end, ours opens with one and leaves its own out, so that
    # taking it back restores every byte. A byte order mark is no line.
    if offset and not text[:offset].endswith(("\n", "\ufeff")):
        block = end + block.removesuffix(end)
    return [_Piece(offset, block)]


def _block_lines(
    names: Sequence[str], entries: Sequence[str], *, indent: int
) -> list[str]:
    """Return keys, each below the one before, and the entries below the last, as lines."""
    lines = []
    for name in names:
        lines.append(" " * indent + f"{name}:")
        indent += 2
    for entry in entries:
        lines.append(" " * indent + f"- {_quote_text(entry)}")
    return lines


def quote_entries(entries: Sequence[str]) -> str:
    """Return entries as they stand in a list on one line.

    Examples
    --------
    >>> quote_entries(["{user}/a", "b's"])
    "'{user}/a', 'b''s'"
    """
    return ", ".join(map(_quote_text, entries))


def _quote_text(text: str) -> str:
    """Return a text in YAML's single quotes, where only the quote itself is doubled."""
    return "'" + text.replace("'", "''") + "'"


def _start(node: Any) -> int:
    """Return the offset of a node's first character."""
    return int(node.start_mark.index)


def _end(node: Any) -> int:
    """Return the offset behind a node."""
    return int(node.end_mark.index)


def _column(node: Any) -> int:
    """Return by how much a node is indented."""
    return int(node.start_mark.column)


def _first_column(mapping: Any) -> int:
    """Return by how much the keys of a mapping in a block are indented."""
    first_key, _ = mapping.value[0]
    return _column(first_key)


def _is_empty_scalar(node: Node) -> bool:
    return isinstance(node, ScalarNode) and not node.value


def _find_child(node: Node, name: str) -> tuple[Node | None, Any]:
    """Return key and value of a mapping's entry; None twice where it has none."""
    if not isinstance(node, MappingNode):
        raise TypeError(name)
    for key, value in node.value:
        if isinstance(key, ScalarNode) and key.value == name:
            return key, value
    return None, None


def _content_end(node: Any) -> int:
    """Return where a node's last character stands.

    The end mark of a block lies behind the comments and empty lines that follow it, so the end is
    looked up in the block's last child.
    """
    if isinstance(node, ScalarNode) or node.flow_style or not node.value:
        return _end(node)
    if isinstance(node, SequenceNode):
        return _content_end(node.value[-1])
    key, value = node.value[-1]
    key_end = _end(key)
    if _is_empty_scalar(value):
        return key_end
    return max(_content_end(value), key_end)


def _next_line(text: str, offset: int) -> int:
    """Return where the next line begins; a block of text ends at one already."""
    if offset and text[offset - 1] == "\n":
        return offset
    line_end = text.find("\n", offset)
    return len(text) if line_end < 0 else line_end + 1
