"""What the words behind a flag mean: the types of signatures, read from a shell.

A number is of its type, finite and in the bounds that its annotation has (:class:`pydantic.Field`),
before anything starts.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from amlb_ext.core.checked_call import explain_problem
from amlb_ext.core.errors import ConfigError, suggest_nearest

#: Reads the words of one value.
Reader = Callable[[str], Any]
_FINITE = ConfigDict(allow_inf_nan=False)


def members(annotation: Any) -> list[Any]:
    """Return the alternatives of a union but None, or the one type itself."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [one for one in typing.get_args(annotation) if one is not type(None)]
    return [annotation]


def choices(annotation: Any) -> list[str]:
    """Return the words of a ``Literal``, optional or not; none for other types."""
    for member in members(annotation):
        if typing.get_origin(member) is Literal:
            return [str(choice) for choice in typing.get_args(member)]
    return []


def is_switch(annotation: Any) -> bool:
    """Whether a flag has no value."""
    return bool in members(annotation)


def is_pair(annotation: Any) -> bool:
    """Whether a flag takes two numbers."""
    origin = typing.get_origin(members(annotation)[0])
    return origin is tuple and ... not in typing.get_args(members(annotation)[0])


def is_mapping(annotation: Any) -> bool:
    """Whether a flag takes ``KEY=VALUE``."""
    member = members(annotation)[0]
    kind = typing.get_origin(member) or member
    return isinstance(kind, type) and issubclass(kind, Mapping)


def is_list(annotation: Any) -> bool:
    """Whether a flag may be given several times."""
    member = _without_notes(members(annotation)[0])
    origin = typing.get_origin(member)
    is_many = isinstance(origin, type) and issubclass(origin, Collection)
    return is_many and not is_mapping(annotation) and not is_pair(annotation)


def item(annotation: Any) -> Any:
    """Return the type of one value."""
    member = members(annotation)[0]
    if is_list(annotation) or is_pair(annotation):
        return typing.get_args(_without_notes(member))[0]
    return member


def _without_notes(annotation: Any) -> Any:
    if typing.get_origin(annotation) is Annotated:
        return typing.get_args(annotation)[0]
    return annotation


def is_number(annotation: Any) -> type | None:
    """Return the type of a number: ``int``, ``float``, or None for anything else."""
    base = _without_notes(item(annotation))
    return base if base in (int, float) else None


def number_metavar(annotation: Any) -> str:
    """Return what stands for a number in a help text; nothing for anything else."""
    base = is_number(annotation)
    if base is None:
        return ""
    return "N" if base is int else "X"


def reader(flag: str, annotation: Any) -> Reader:
    """Return what reads one value of a flag.

    Examples
    --------
    >>> from amlb_ext.core.checked_call import Level
    >>> reader("--level", Level)("0.9")
    0.9
    >>> reader("--level", Level)("2")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: --level = '2': input should be less than 1
    """
    known = choices(annotation)

    def read(text: str) -> Any:
        if is_number(annotation):
            number = TypeAdapter(item(annotation), config=_FINITE)
            try:
                return number.validate_python(text)
            except ValidationError as error:
                problem = error.errors()[0]
                raise explain_problem({**problem, "loc": (flag,)}) from None
        if known and text not in known:
            raise ConfigError(
                f"{flag}: {text!r} is unknown", suggest_nearest(text, known)
            )
        return Path(text) if item(annotation) is Path else text

    return read


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
        A text without a sign, or without a key.
    """
    pairs = {}
    for text in texts:
        key, sign, value = text.rpartition("=") if at_last else text.partition("=")
        if not (key.strip() and sign):
            raise ConfigError(
                f"{flag} is {text!r}", f"write {form}, e.g. {example or form}"
            )
        pairs[key.strip()] = value.strip()
    return pairs


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


def read_share(word: str, flag: str) -> float:
    """Return a share that is written as ``0.02`` or as ``2%``.

    Raises
    ------
    ConfigError
        It is no number between 0 and 1.

    Examples
    --------
    >>> read_share("2%", "--max-flips"), read_share(".02", "--max-flips")
    (0.02, 0.02)
    """
    number = word.strip().removesuffix("%")
    try:
        share = float(number) / (100 if word.strip().endswith("%") else 1)
    except ValueError:
        share = float("nan")
    if not 0 < share < 1:
        raise ConfigError(
            f"{flag} {word}", f"give a share, e.g. {flag} 2% or {flag} 0.02"
        )
    return share
