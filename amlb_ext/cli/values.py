"""What the words behind a flag mean: the types of signatures, read from a shell.

A number is of its type, finite and in the bounds that its annotation has (:class:`pydantic.Field`),
before anything starts.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Gt, Lt
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from amlb_ext.core.checked_call import explain_problem
from amlb_ext.core.errors import ConfigError, suggest_nearest

_FINITE = ConfigDict(allow_inf_nan=False)


def _read_percent(word: str) -> float | str:
    return float(word[:-1]) / 100 if word.endswith("%") else word


#: A share that is written as ``0.02`` or as ``2%``.
Share = Annotated[float, BeforeValidator(_read_percent), Gt(0), Lt(1)]


def _parts(annotation: Any) -> list[Any]:
    """Return a type and all that it is made of."""
    found = [annotation]
    for part in found:
        found += typing.get_args(part)
    return found


def _origins(annotation: Any) -> list[type]:
    origins = [typing.get_origin(part) or part for part in _parts(annotation)]
    return [origin for origin in origins if isinstance(origin, type)]


def choices(annotation: Any) -> list[str]:
    """Return the words of a ``Literal``; none for other types."""
    for part in _parts(annotation):
        if typing.get_origin(part) is Literal:
            return [str(choice) for choice in typing.get_args(part)]
    return []


def is_switch(annotation: Any) -> bool:
    """Whether a flag has no value."""
    return bool in _parts(annotation)


def is_pair(annotation: Any) -> bool:
    """Whether a flag takes two numbers."""
    return tuple in _origins(annotation) and ... not in _parts(annotation)


def is_mapping(annotation: Any) -> bool:
    """Whether a flag takes ``KEY=VALUE``."""
    return any(issubclass(origin, Mapping) for origin in _origins(annotation))


def is_list(annotation: Any) -> bool:
    """Whether a flag may be given several times."""
    if is_mapping(annotation) or is_pair(annotation):
        return False
    collections = [one for one in _origins(annotation) if issubclass(one, Collection)]
    return any(one is not str for one in collections)


def metavar(annotation: Any) -> str:
    """Return what stands for a value in a help text, as its type has it; nothing for a text."""
    if is_mapping(annotation):
        return "KEY=VALUE"
    if known := choices(annotation):
        return "{" + ",".join(known) + "}"
    if int in _parts(annotation):
        return "N"
    return "X" if float in _parts(annotation) else ""


def read_value(flag: str, annotation: Any, given: Any) -> Any:
    """Return what the words behind a flag stand for.

    Examples
    --------
    >>> from amlb_ext.core.checked_call import Level
    >>> read_value("--level", Level, "0.9")
    0.9
    >>> read_value("--max-flips", Share, "2%")
    0.02
    >>> read_value("--level", Level, "2")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: --level = '2': input should be less than 1
    """
    try:
        return TypeAdapter(annotation, config=_FINITE).validate_python(given)
    except ValidationError as error:
        problem = error.errors()[0]
    if problem["type"] != "literal_error":
        raise explain_problem({**problem, "loc": (flag,)})
    remedy = suggest_nearest(given, choices(annotation))
    raise ConfigError(f"{flag}: {given!r} is unknown", remedy)


def split_pairs(
    texts: Iterable[str],
    flag: str,
    form: str = "KEY=VALUE",
    example: str = "",
    *,
    at_last: bool = False,
) -> dict[str, str]:
    """Return the two sides of each ``KEY=VALUE``; with ``at_last`` a key may hold ``=`` itself.

    Raises
    ------
    ConfigError
        A text without a sign or without a key, or a key with two values.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.rpartition("=") if at_last else text.partition("=")
        if not (key.strip() and sign):
            raise ConfigError(
                f"{flag} is {text!r}", f"write {form}, e.g. {example or form}"
            )
        add_pair(pairs, key.strip(), value.strip(), flag)
    return pairs


def add_pair(pairs: dict[str, Any], key: str, value: Any, flag: str) -> None:
    """Add a key that the flag has given no other value; raise ``ConfigError`` if it has."""
    if pairs.setdefault(key, value) != value:
        raise ConfigError(
            f"{flag} gives {key} twice: {pairs[key]!r} and {value!r}",
            "leave out one of them",
        )


def named_files(words: Sequence[str], flag: str) -> dict[str, str]:
    """Return the files of ``[NAME=]FILE`` by name; the file's own name where none is given.

    Raises
    ------
    ConfigError
        An empty name, one that is given twice, or a word that is a file in two readings.

    Examples
    --------
    >>> named_files(["new=a/b.csv", "c.csv"], "--candidate")
    {'new': 'a/b.csv', 'c': 'c.csv'}
    """
    files: dict[str, str] = {}
    for word in words:
        name, separator, file = word.partition("=")
        # a path may hold the sign itself
        is_file = Path(word).exists()
        if separator and is_file and Path(file).exists():
            raise ConfigError(
                f"{flag} {word} can be read in two ways: the file {word}, and the file {file} "
                f"under the name {name!r}",
                f"write {flag} NAME={word}, or {flag} {name}=./{file}",
            )
        if not separator or is_file or "/" in name:
            name, file = Path(word).stem, word
        if not name or name in files:
            raise ConfigError(
                f"{flag} {word}: the name {name!r} is empty or given twice",
                f"write {flag} NAME=FILE with another name",
            )
        files[name] = file
    return files
