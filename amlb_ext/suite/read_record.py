"""Reads a record, a dataclass, from what its JSON file held, and says what is damaged."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

Record = TypeVar("Record")


def record_from_json(record: type[Record], entry: object) -> Record:
    """Return a dataclass from plain mappings and lists, records inside it included.

    Every value is held to the field's type, and texts become enumerations, lists tuples where the
    field says so. Keys that no field has are ignored: a later version may have written them.

    Parameters
    ----------
    record : type
        A dataclass.
    entry : object
        What ``json.loads`` gave.

    Raises
    ------
    ValueError
        It is no such record. The message names the first value that is at fault.

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
        message = faults[0]["msg"]
        place = ".".join(str(step) for step in faults[0]["loc"])
        if place:
            message = f"{place}: {message}"
        raise ValueError(message) from None


#: Made at the first use: they take a fifth of a second, which most commands can do without.
_READERS: dict[type[Any], TypeAdapter[Any]] = {}


def _reader(record: type[Record]) -> TypeAdapter[Record]:
    if record not in _READERS:
        _READERS[record] = TypeAdapter(record)
    return _READERS[record]
