"""Entries added to a user's ``config.yaml`` and taken back, without touching another character.

The file is never written out again from its parsed form: lines are inserted, each marked with
:data:`MARK`, or, into a list on one line, ``, 'entry'``. ``ruamel.yaml`` says where, reads the
result back as AMLB will, and any other difference than the wanted one refuses the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from amlb_ext.core.errors import RunError

#: Between the two pieces that make a list of a single entry; stands in no line.
_BOTH = "\n"


def read_config(text: str) -> dict[str, Any]:
    """Return a configuration as AMLB reads it.

    Raises
    ------
    RunError
        It is no YAML that AMLB could read, or no mapping.
    """
    try:
        content = YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise RunError(
            f"config.yaml is not valid YAML: {where}{said}", "correct that line"
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise RunError(
            f"config.yaml holds a {type(content).__name__} instead of a mapping",
            "see AMLB's resources/config.yaml for its keys",
        )
    return content


def entries_of(config: Mapping[str, Any], key: Key) -> list[str] | None:
    """Return the list at a key; None where the user has none.

    Raises
    ------
    RunError
        Something there that is neither a text nor a list of texts.

    Examples
    --------
    >>> entries_of({"benchmarks": {"definition_dir": "x"}}, ("benchmarks", "definition_dir"))
    ['x']
    """
    section = config.get(key[0])
    if section is None:
        return None
    name = ".".join(key)
    if not isinstance(section, dict):
        raise RunError(
            f"config.yaml: {key[0]} is {section!r} instead of a mapping",
            f"write {key[1]} below",
        )
    if section.get(key[1]) is None:
        return None
    found = section[key[1]]
    listed = [found] if isinstance(found, str) else found
    if not isinstance(listed, list) or not all(
        isinstance(text, str) for text in listed
    ):
        raise RunError(f"config.yaml: {name} is {found!r}", "write a list of paths")
    return list(listed)


def insert(
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
    >>> new, _ = insert("frameworks:\\n  definition_file: ['{user}/f.yaml']  # mine\\n",
    ...                 {("frameworks", "definition_file"): ["{user}/x.yaml"]})
    >>> print(new, end="")
    frameworks:
      definition_file: ['{user}/x.yaml', '{user}/f.yaml']  # mine
    """
    before = read_config(text)
    new, inline = text, []
    for key, entries in added.items():
        if not entries:
            continue
        listed = entries_of(before, key)
        try:
            at, piece = insertion(new, key, list(entries), listed is None)
        except (YAMLError, IndexError, TypeError, AttributeError):
            raise _refused(added) from None
        for offset, part in sorted(zip(at, piece, strict=True), reverse=True):
            new = new[:offset] + part + new[offset:]
        inline += [_BOTH.join(piece)] if MARK not in piece[0] else []
    try:
        after = read_config(new)
        right = all(
            entries_of(after, key) == wanted_list(before, key, entries)
            for key, entries in added.items()
        )
    except RunError:
        right = False
    if not right or _rest(after) != _rest(before):
        raise _refused(added)
    return new, tuple(inline)


def wanted_list(
    config: Mapping[str, Any], key: Key, entries: Sequence[str]
) -> list[str] | None:
    """Return the list at a key with entries of ours."""
    listed = entries_of(config, key)
    if not entries:
        return listed
    own = [LISTS[key].default] if listed is None else listed
    return [*entries, *own] if LISTS[key].first else [*own, *entries]


def strip(text: str, inline: Sequence[str], ours: str) -> str:
    """Take back what :func:`insert` added, whatever the user changed since.

    Parameters
    ----------
    text : str
        The file as it stands.
    inline : sequence of str
        As :func:`insert` returned it.
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
    for candidate in _candidates(text, inline, ours):
        try:
            after = read_config(candidate)
            if _normal(after, ours) == _normal(before, ours) and ours not in repr(
                after
            ):
                return candidate
        except RunError:
            continue
    lines = [
        str(i)
        for i, line in enumerate(text.splitlines(), 1)
        if ours in line or MARK in line
    ]
    raise RunError(
        "config.yaml was changed where the suite's entries stand, they cannot be taken back alone",
        f"remove them by hand in line {', '.join(lines)}, then run the same command again",
    )


def _candidates(text: str, inline: Sequence[str], ours: str) -> Iterator[str]:
    """Yield the text without our lines; then with those kept on which the user's now stand."""
    for part in reversed(inline):
        one, _, two = part.partition(_BOTH)  # two: brackets around what was no list
        anchor = two if ours in two else one
        if ours not in anchor or text.count(anchor) != 1:
            continue
        head, tail = text.split(anchor)
        if two and anchor == two:
            at = head.rfind(one)
            head = head[: max(at, 0)] + head[at + len(one) :]
        elif two:
            tail = tail.replace(two, "", 1)
        text = head + tail
    lines = text.splitlines(keepends=True)
    yield "".join(line for line in lines if not line.rstrip().endswith(MARK.strip()))
    kept = [line for line in lines if ours not in line or MARK not in line]
    yield "".join(line.replace(MARK, "") for line in kept)


def _rest(config: Mapping[str, Any]) -> str:
    """Return all that is not in our three lists, as a text that compares as AMLB would see it."""
    kept: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict) and name in {section for section, _ in LISTS}:
            value = {k: v for k, v in value.items() if (name, k) not in LISTS}
        if value or value is False or value == 0 or name not in {s for s, _ in LISTS}:
            kept[name] = value
    return repr(kept)


def _normal(config: Mapping[str, Any], ours: str) -> str:
    """Return a configuration without ours: a list that says what AMLB's default says is none."""
    lists = {}
    for key, listed in LISTS.items():
        own = [text for text in entries_of(config, key) or () if ours not in text]
        lists[key] = [] if own == [listed.default] else own
    return repr(lists) + _rest(config)


def _refused(added: Mapping[Key, Sequence[str]]) -> RunError:
    said = "; ".join(
        f"{'.'.join(key)}: {quoted(entries)}" for key, entries in added.items()
    )
    return RunError(
        "config.yaml cannot take the suite's entries without changing more than its lists: an "
        "anchor, a tag or an unusual form stands there",
        f"write the lists out, one entry per line after a dash; to add are {said}",
    )


# Where entries go in a user's ``config.yaml``: by line where it is in blocks, else within a line.
#
# Places come from the marks that ``ruamel.yaml`` keeps of each node.

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


def insertion(
    text: str, key: Key, entries: list[str], new: bool
) -> tuple[list[int], list[str]]:
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
        entries = (
            [*entries, listed.default] if listed.first else [listed.default, *entries]
        )
    root = YAML(typ="safe", pure=True).compose(text)
    if root is None or (isinstance(root, ScalarNode) and not root.value):
        at = (
            len(text) if root is None else root.start_mark.index
        )  # the end, or `...` before it
        return _lines(text, at, [f"{key[0]}:", f"  {key[1]}:", *_dashed(entries, 4)])
    section_key, section = _child(root, key[0])
    if section_key is None:
        if root.flow_style:
            return _flow_key(root, f"{key[0]}: {{{key[1]}: [{quoted(entries)}]}}")
        pad = " " * root.value[0][0].start_mark.column
        lines = [
            f"{pad}{key[0]}:",
            f"{pad}  {key[1]}:",
            *_dashed(entries, len(pad) + 4),
        ]
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
    if at and not text[:at].endswith(
        ("\n", "\ufeff")
    ):  # the file's last line has no end
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
