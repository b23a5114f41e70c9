"""Read dataclass records from parsed JSON, with errors that name the damaged value."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

Record = TypeVar("Record")


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
