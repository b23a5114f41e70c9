"""What a function declares, read from its file: names, types, defaults, docstring.

The function that a command calls needs pandas and scikit-learn, which take seconds to import. Its
flags and their help need only what stands in its file.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
#: Stands for a default of a parameter that has none.
REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True, kw_only=True)
class Docstring:
    """The parts of a numpydoc docstring that a help text needs, as plain text.

    Attributes
    ----------
    summary, description : str
        The first line, and what follows it.
    parameters : dict of str to tuple of str
        What stands behind the colon, and the explanation, by parameter.
    examples : str
        Command lines.
    """

    summary: str = ""
    description: str = ""
    parameters: dict[str, tuple[str, str]] = field(default_factory=dict)
    examples: str = ""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A parameter of a function, or a field of a record."""

    name: str
    annotation: Any
    default: Any


def read_docstring(text: str | None) -> Docstring:
    """Return the parts of a docstring.

    Examples
    --------
    >>> text = "Sum up.\\n\\nParameters\\n----------\\na, b : int\\n    The ``parts``."
    >>> read_docstring(text).parameters
    {'a': ('int', 'The parts.'), 'b': ('int', 'The parts.')}
    """
    parts = re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(text or ""), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    summary, _, description = parts[0].strip().partition("\n\n")
    parameters = {}
    declared = sections.get("Parameters", "") + sections.get("Attributes", "")
    for entry in re.finditer(
        r"^(\w.*?)(?: : (.*))?\n((?:[ ]+.*\n?|\n)*)", declared, re.M
    ):
        names, kind, explained = entry.groups()
        for name in names.split(", "):
            parameters[name] = (kind or "", _plain(explained))
    examples = inspect.cleandoc(sections.get("Examples", ""))
    commands = [line[2:] for line in examples.splitlines() if line.startswith("$ ")]
    return Docstring(
        summary=_plain(summary),
        description=_plain(description),
        parameters=parameters,
        examples="\n".join(commands),
    )


def _plain(text: str) -> str:
    """Return a docstring's text without markup, its lines joined."""
    text = re.sub(r":\w+:`~[\w.]*?(\w+)`", r"\1", text)
    text = re.sub(r":\w+:`([^`]*)`", r"\1", text)
    return " ".join(text.replace("``", "").split())


class _Names(dict[str, Any]):
    """The names that a module's annotations use; a class is a text, as the shell gives one."""

    def __init__(self, module: str) -> None:
        super().__init__()
        path = PACKAGE.joinpath(*module.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.tree = ast.parse(path.read_text(encoding="utf-8"))

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        self[name] = self._find(name)
        return self[name]

    def _find(self, name: str) -> Any:
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if name != (alias.asname or alias.name):
                        continue
                    if node.module.startswith("amlb_ext."):
                        return names_of(node.module)[alias.name]
                    return getattr(import_module(node.module), alias.name)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return self.evaluate(node.value)
        return str

    def evaluate(self, node: ast.expr | None) -> Any:
        """Return the value of an annotation or of a default."""
        if node is None:
            return None
        try:
            return eval(ast.unparse(node), {}, self)
        except AttributeError:
            # a class of a module that is not imported, such as pd.DataFrame
            return str


names_of = cache(_Names)


@cache
def read_declaration(place: str) -> tuple[Docstring, tuple[Declared, ...]]:
    """Return what a function or a record declares.

    Parameters
    ----------
    place : str
        Its import path.

    Examples
    --------
    >>> _, declared = read_declaration("amlb_ext.estimate.estimate.estimate")
    >>> [one.default for one in declared if one.name == "generated"]
    [100000]
    """
    module, _, name = place.rpartition(".")
    names = names_of(module)
    for node in names.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            break
    else:
        raise ValueError(f"{module} defines no {name}")
    read = _fields if isinstance(node, ast.ClassDef) else _parameters
    return read_docstring(ast.get_docstring(node)), tuple(read(node, names))


def _parameters(node: Any, names: _Names) -> list[Declared]:
    arguments = node.args
    positional = arguments.args
    n_required = len(positional) - len(arguments.defaults)
    declared = []
    for argument, default in [
        *zip(positional, [REQUIRED] * n_required + arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]:
        is_required = default is REQUIRED or default is None
        declared.append(
            Declared(
                name=argument.arg,
                annotation=names.evaluate(argument.annotation),
                default=REQUIRED if is_required else names.evaluate(default),
            )
        )
    return declared


def _fields(node: Any, names: _Names) -> list[Declared]:
    declared = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            default = REQUIRED if part.value is None else names.evaluate(part.value)
            declared.append(
                Declared(
                    name=ast.unparse(part.target),
                    annotation=names.evaluate(part.annotation),
                    default=default,
                )
            )
    return declared
