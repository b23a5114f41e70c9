"""Entries added to a user's ``config.yaml`` and taken back, by ruamel's round trip.

Comments, order and quotes stay; blanks within a line may not. What is written is read back as AMLB
will read it, and any other difference than the wanted one refuses the change. The bytes that the
user had stand in a backup.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from amlb_ext.core.errors import RunError

#: Section and name of a list in ``config.yaml``.
Key = tuple[str, str]
#: What ruamel does not keep: comments and blank lines before the line that begins the document.
_HEAD = re.compile(r"(?:[ \t]*(?:[#%].*)?\n)*---[ \t]*(?:#.*)?(?:\n|$)")

_COMMENT = re.compile(r"#.*\S")


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


def insert_entries(text: str, added: Mapping[Key, Sequence[str]]) -> str:
    """Return a configuration with entries of ours in its lists.

    Parameters
    ----------
    text : str
    added : mapping
        Entries by list. A list that the user does not have gets AMLB's default entry as well,
        which it would replace otherwise.

    Raises
    ------
    RunError
        The text is no configuration, or anything but the lists would change.

    Examples
    --------
    >>> print(insert_entries("seed: 1", {("benchmarks", "definition_dir"): ["mine"]}), end="")
    seed: 1
    benchmarks:
      definition_dir:
        - '{root}/resources/benchmarks'
        - mine
    """

    def insert(config: Any) -> None:
        for key, entries in added.items():
            if not entries:
                continue
            section, name = key
            own = list_entries(config, key)
            if config.get(section) is None:
                config[section] = {}
            lists = config[section]
            if not isinstance(lists.get(name), list):
                lists[name] = [LISTS[key].default] if own is None else own
            at = 0 if LISTS[key].first else len(lists[name])
            for offset, entry in enumerate(entries):
                lists[name].insert(at + offset, entry)

    return _edit(text, insert)


def strip_entries(text: str, ours: str) -> str:
    """Return a configuration without our entries, which hold the text ``ours``.

    A list that was made for them stays, with AMLB's default entry: it says what its absence says,
    and comments of the user may stand in it.

    Raises
    ------
    RunError
        As :func:`insert_entries`.
    """

    def strip(config: Any) -> None:
        for key in LISTS:
            section, name = key
            entries = list_entries(config, key) or []
            for entry in [entry for entry in entries if ours in entry]:
                config[section][name].remove(entry)

    return _edit(text, strip) if ours in text else text


def _edit(text: str, change: Callable[[Any], None]) -> str:
    """Return a text whose configuration is changed, in its own style."""
    wanted = _without_aliases(read_config(text))
    change(wanted)
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    line_end = "\r\n" if "\r\n" in text else "\n"
    plain = text.removeprefix(mark).replace("\r\n", "\n")
    head = _HEAD.match(plain)
    body = plain[head.end() :] if head else plain
    try:
        changed = (head[0] if head else "") + _round_trip(body, change)
        keeps_comments = _COMMENT.findall(changed) == _COMMENT.findall(plain)
        is_as_wanted = keeps_comments and read_config(changed) == wanted
    # ruamel raises all of these on what it cannot carry
    except (YAMLError, RunError, ValueError, AttributeError, TypeError, KeyError):
        is_as_wanted = False
    if not is_as_wanted:
        raise RunError(
            "config.yaml would change in more than its lists of benchmarks, constraints and "
            "frameworks: there is an anchor, a merged key, a tag, a comment within brackets or a "
            "text that ends with blanks",
            "write those lists out, or use the suite with -u",
        )
    return mark + changed.replace("\n", line_end)


def _without_aliases(value: Any) -> Any:
    """Return a copy in which what an anchor shares stands twice."""
    if isinstance(value, dict):
        return {key: _without_aliases(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_aliases(inner) for inner in value]
    return value


def _indents(text: str) -> tuple[int, int]:
    """Return how far keys of a text are indented, and the dashes of lists below their key."""
    mapping, offset, above = 0, -1, 0
    for line in text.splitlines():
        words = line.lstrip(" ")
        if not words or words.startswith("#"):
            continue
        depth = len(line) - len(words)
        if not words.startswith("- "):
            mapping = mapping or depth
            above = depth
        elif offset < 0:
            offset = max(depth - above, 0)
    return mapping or 2, offset if offset >= 0 else 2


def _round_trip(text: str, change: Callable[[Any], None]) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20  # a long line stays one
    mapping, offset = _indents(text)
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    text = re.sub(r"(?m)^\.\.\.[ \t]*$\n?", "", text)  # the end of the document
    config = yaml.load(text)
    comments = ""
    if config is None:  # ruamel keeps no comment of an empty document
        comments = text + ("\n" if text and not text.endswith("\n") else "")
        config = {}
    change(config)
    written = io.StringIO()
    if config:
        yaml.dump(config, written)
    return comments + written.getvalue()
