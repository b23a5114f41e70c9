"""The one reader of YAML that others wrote: plain values only, bounded in size, depth and aliases.

PyYAML's safe loader runs no code, but a few hundred bytes of nested aliases stand for gigabytes as
soon as the value is shown or copied, a thousand brackets end in ``RecursionError``, and a value
like ``2001-99-99`` or ``!!int x`` in an exception of Python's. Here all of that is one error with
its line. A key that occurs twice in a mapping is refused too: which of its values counts would
depend on the reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.events import AliasEvent

from amlb_ext.core.errors import HardsynthError, SourceError

#: Most levels of nesting.
MAX_DEPTH = 50
#: Most characters that a document may stand for with its aliases written out.
MAX_EXPANDED = 32 << 20

MERGE = "tag:yaml.org,2002:merge"


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader with limits."""

    #: Most bytes of a file, and nodes in it.
    max_bytes, max_nodes = 16 << 20, 250_000

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0
        self._sizes: dict[int, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node, and know how much it stands for."""
        event = self.peek_event()
        if isinstance(event, AliasEvent):
            node = super().compose_node(parent, index)
            if id(node) not in self._sizes:
                raise _refused("an alias stands inside what it stands for", event)
            return node
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _refused(f"more than {MAX_DEPTH} levels of nesting", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        size = 1
        if isinstance(node, yaml.ScalarNode):
            size += len(node.value)
        elif isinstance(node, yaml.SequenceNode):
            size += sum(self._sizes[id(child)] for child in node.value)
        elif isinstance(node, yaml.MappingNode):
            size += sum(
                self._sizes[id(key)] + self._sizes[id(value)]
                for key, value in node.value
            )
            _check_keys(node)
        self._sizes[id(node)] = size
        if size > MAX_EXPANDED:
            raise _refused("its aliases stand for more than 32 MiB of text", event)
        if len(self._sizes) > self.max_nodes:
            raise _refused(f"more than {self.max_nodes} values", event)
        return node


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
        Error to raise for what is wrong with the content.
    loader : type
        A :class:`Loader`, where other limits or rules for plain words hold.

    Returns
    -------
    object
        ``None`` for an empty file.

    Raises
    ------
    OSError
        The file cannot be read.
    HardsynthError
        Of the type ``error``: no UTF-8, no YAML, a Python tag, doubled keys, or beyond a limit;
        with the line.

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


def yaml_problem(error: Exception) -> str:
    """Return what a YAML parser complains of, with line and column."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    where = (
        f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    )
    return where + problem


def _check_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
            continue
        if (key.tag, key.value) in seen:
            raise _refused(f"the key {key.value[:50]!r} occurs twice", key)
        seen.add((key.tag, key.value))


def _refused(problem: str, where: Any) -> ComposerError:
    return ComposerError(None, None, problem, where.start_mark)
