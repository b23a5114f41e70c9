"""The reader of foreign YAML: plain values only, bounded in size, depth and aliases.

PyYAML's safe loader runs no code. But a few hundred bytes of nested aliases become gigabytes when
the value is shown or copied, a thousand brackets end in ``RecursionError``, and a value like
``2001-99-99`` or ``!!int x`` in an exception of Python itself. Here each of these is one error with
its line. A key that occurs twice in a mapping is refused too, since readers disagree about which
of its values counts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.events import AliasEvent

from amlb_ext.core.errors import HardsynthError, SourceError

#: Largest depth of nesting.
MAX_DEPTH = 50
#: Largest size of a document with its aliases written out, in characters.
MAX_EXPANDED = 32 << 20

#: Tag of the key ``<<``, which may occur several times.
MERGE = "tag:yaml.org,2002:merge"


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader with limits."""

    #: Largest size of a file, in bytes.
    max_bytes = 16 << 20
    #: Largest number of nodes in a file.
    max_nodes = 250_000

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        #: Size of each finished node with its aliases written out, by the node's id.
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, and note its size with aliases written out."""
        event = self.peek_event()
        if isinstance(event, AliasEvent):
            node = super().compose_node(parent, index)
            # an unfinished node has no size yet: the alias lies within it
            if id(node) not in self._sizes:
                raise _refused("an alias stands inside what it stands for", event)
            return node
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _refused(f"more than {MAX_DEPTH} levels of nesting", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        size = self._expanded_size(node)
        self._sizes[id(node)] = size
        if size > MAX_EXPANDED:
            raise _refused("its aliases stand for more than 32 MiB of text", event)
        if len(self._sizes) > self.max_nodes:
            raise _refused(f"more than {self.max_nodes} values", event)
        return node

    def _expanded_size(self, node: Any) -> int:
        """Return the characters that a node stands for; its children's sizes are known."""
        size = 1
        if isinstance(node, yaml.ScalarNode):
            size += len(node.value)
        elif isinstance(node, yaml.SequenceNode):
            for child in node.value:
                size += self._sizes[id(child)]
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                size += self._sizes[id(key)] + self._sizes[id(value)]
        return size


def read_yaml(
    path: Path,
    error: type[HardsynthError] = SourceError,
    *,
    loader: type[Loader] = Loader,
) -> Any:
    """Read a YAML file of plain values.

    Parameters
    ----------
    path : Path
        A UTF-8 file.
    error : type
        Error to raise for wrong content.
    loader : type
        A :class:`Loader`, possibly with other limits or other rules for plain words.

    Returns
    -------
    object
        ``None`` for an empty file.

    Raises
    ------
    OSError
        The file cannot be read.
    HardsynthError
        Of the type ``error``: not UTF-8, not YAML, a Python tag, a repeated key, or beyond a
        limit; with the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "bomb.yaml"
    ...     _ = path.write_text("- name: a\\n  folds: &c [*c]\\n")
    ...     read_yaml(path)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: bomb.yaml is no YAML: line 2, column 14: an alias stands \
inside what it stands for (mend that line)
    """
    with path.open("rb") as handle:
        raw = handle.read(loader.max_bytes + 1)
    if len(raw) > loader.max_bytes:
        raise error(
            f"{path.name} is larger than {loader.max_bytes >> 20} MiB",
            "divide it into several files",
        )
    # Errors of the parser have a line; errors of building a value, such as a date, do not.
    try:
        reader = loader(raw.decode("utf-8"))
        try:
            return reader.get_single_data()
        finally:
            reader.dispose()
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise error(
            f"{path.name} is no YAML: {yaml_problem(problem)}", "mend that line"
        ) from None
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
    ) as problem:
        raise error(
            f"{path.name} holds a value that cannot be read: {problem}",
            "put it in quotes",
        ) from None


def read_value(text: str) -> Any:
    """Return the plain value that a word of a command line stands for.

    Raises
    ------
    yaml.YAMLError
        It is none, or could be read in two ways.

    Examples
    --------
    >>> read_value("0.5"), read_value("[64, 32]"), read_value("gini")
    (0.5, [64, 32], 'gini')
    """
    return yaml.load(text, Loader=Loader)


def yaml_problem(error: Exception) -> str:
    """Return the complaint of a YAML parser, with line and column."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return str(problem)
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _read_number(loader: Loader, node: yaml.ScalarNode) -> int | float:
    """Read a number, but none to base 60: ``1:30`` is 90 to this version of YAML."""
    if ":" in node.value:
        raise _refused(
            f"{node.value} is a number to base 60 here: write '{node.value}' in quotes for a text",
            node,
        )
    if node.tag.endswith(":int"):
        return int(loader.construct_yaml_int(node))
    return float(loader.construct_yaml_float(node))


for _tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    Loader.add_constructor(_tag, _read_number)


def _check_keys(node: yaml.MappingNode) -> None:
    """Refuse a mapping in which a key occurs twice."""
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
            continue
        if (key.tag, key.value) in seen:
            raise _refused(f"the key {key.value[:50]!r} occurs twice", key)
        seen.add((key.tag, key.value))


def _refused(problem: str, where: Any) -> ComposerError:
    return ComposerError(None, None, problem, where.start_mark)
