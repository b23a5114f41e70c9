"""Values of numpy, pandas and dataclasses as JSON types."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd


def to_json_values(
    value: Any, *, significant_digits: int | None = None, omit: Collection[str] = ()
) -> Any:
    """Convert a value, and all that it holds, to types that ``json.dumps`` takes.

    NaN and the infinities become ``None``, since JSON has no number for them. A table becomes a
    list of its rows, a dataclass a mapping of its fields, any other type its text.

    Parameters
    ----------
    value : object
    significant_digits : int, optional
        Round floats to this many digits.
    omit : collection of str
        Fields of dataclasses to leave out.

    Examples
    --------
    >>> to_json_values({"a": np.float64(0.25), 1: (True, float("nan"))})
    {'a': 0.25, '1': [True, None]}
    >>> to_json_values(np.array([1 / 3, 2.0]), significant_digits=3)
    [0.333, 2.0]
    """

    # Most values are one of these, and the questions below take long.
    if value is None or type(value) in (bool, int, str):
        return value

    def convert(inner: Any) -> Any:
        return to_json_values(inner, significant_digits=significant_digits, omit=omit)

    if isinstance(value, pd.DataFrame):
        return [convert(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping | pd.Series):
        return {str(key): convert(inner) for key, inner in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Not dataclasses.asdict, which would copy the tables and arrays inside first.
        entry = {}
        for field in dataclasses.fields(value):
            if field.name not in omit:
                entry[field.name] = convert(getattr(value, field.name))
        return entry
    if isinstance(value, list | tuple):
        return [convert(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return convert(value.tolist())
    if isinstance(value, Enum):
        return convert(value.value)
    # A scalar of numpy goes on as Python's: a NaN or a truth value is recognised below.
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, float) and significant_digits is not None:
        return float(f"{value:.{significant_digits}g}")
    return value if isinstance(value, bool | int | float | str) else str(value)
