"""Read dataclass records from parsed JSON, with errors that name the damaged value.

Names and paths of a record are of the types :data:`PlainName` and :data:`InnerPath`, so that
nothing that leads out of a suite is ever read as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from amlb_ext.core.paths import find_collision, is_inside, is_plain_name

Record = TypeVar("Record")

#: What becomes the name of a folder or a file is cut to so many characters in an error.
SHOWN = 80


def _check_name(name: str) -> str:
    if not is_plain_name(name):
        raise ValueError(f"{name[:SHOWN]!r} is not a plain name")
    return name


def _check_path(path: str) -> str:
    if not is_inside(path):
        raise ValueError(f"{path[:SHOWN]!r} is not a path inside the suite")
    return path


#: What becomes the name of a folder, a definition or a framework.
PlainName = Annotated[str, AfterValidator(_check_name)]
#: A file, relative to the suite's root.
InnerPath = Annotated[str, AfterValidator(_check_path)]
#: A number of rows, steps or folds, or a position: more would not fit into memory.
Count = Annotated[int, Field(ge=0, le=10**9)]
#: Of random numbers.
Seed = Annotated[int, Field(ge=-(2**63), lt=2**64)]


def record_from_json(record: type[Record], entry: object) -> Record:
    """Build a dataclass, and the dataclasses inside it, from plain mappings and lists.

    Every value is held to the field's type, and texts become enumerations, lists tuples where the
    field says so. Keys that no field has are ignored: a later version may have written them.

    Parameters
    ----------
    record : type
        A dataclass.
    entry : object
        As ``json.loads`` returns it.

    Raises
    ------
    ValueError
        The entry is not such a record. The message names the first faulty value.

    Examples
    --------
    >>> from amlb_ext.core.task import Origin
    >>> record_from_json(Origin, {"spec": "iris.csv", "ids": {"file": "iris.csv"}}).ids
    {'file': 'iris.csv'}
    >>> record_from_json(Origin, {"spec": "iris.csv", "ids": {"file": 3}})
    Traceback (most recent call last):
    ValueError: ids.file: Input should be a valid string
    """
    try:
        return _reader(record).validate_python(entry)
    except ValidationError as error:
        # without the input: a damaged record may hold megabytes
        faults = error.errors(include_url=False, include_input=False)
        message = faults[0]["msg"].removeprefix("Value error, ")
        place = ".".join(str(step)[:SHOWN] for step in faults[0]["loc"])
        if place:
            message = f"{place}: {message}"
        raise ValueError(message) from None


#: Made at the first use: they take a fifth of a second, which most commands can do without.
_READERS: dict[type[Any], TypeAdapter[Any]] = {}


def _reader(record: type[Record]) -> TypeAdapter[Record]:
    if record not in _READERS:
        _READERS[record] = TypeAdapter(record)
    return _READERS[record]


def check_distinct(what: str, names: Mapping[str, Any] | list[str]) -> None:
    """Raise ``ValueError`` where two names would be one file on some systems."""
    collision = find_collision(names)
    if collision is not None:
        first, second = collision
        raise ValueError(f"{what}: {first!r} and {second!r} cannot stand in one folder")
