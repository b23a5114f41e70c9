"""The classes of a table, compared by value: 1, 1.0, ``"1"`` and True may be one class.

One order serves every door: that of ``sklearn.utils.multiclass.unique_labels``, by value for
numbers, by text for anything else. So "the second of two classes" is the same wherever it is
asked for, and a bare array of probabilities has its columns in this order.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.tables import natural_order


def label_text(value: Any) -> str:
    """Return a class as tables write it: a whole float without ``.0``.

    Examples
    --------
    >>> [label_text(value) for value in (1.0, 0.5, True, "yes")]
    ['1', '0.5', 'True', 'yes']
    """
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else str(float(value))
    return str(value)


class Labels:
    """The classes of a table, in one order, and the code of any value.

    Parameters
    ----------
    names : sequence of str
        As the task writes them.
    declared : sequence of str, optional
        The same in the order in which the source lists them; ``names`` when omitted.

    Examples
    --------
    >>> labels = Labels(("0.0", "0.5", "1.0"))
    >>> labels.codes([0, 0.5, True, "other"]).tolist()
    [0, 1, 2, -1]
    """

    def __init__(self, names: Sequence[str], declared: Sequence[str] = ()) -> None:
        self.names = tuple(names)
        self.declared = tuple(declared) or self.names

    def __len__(self) -> int:
        return len(self.names)

    def codes(self, values: Any) -> np.ndarray:
        """Return the code of each value, ``(n,)``; -1 for what is none of the classes.

        Parameters
        ----------
        values : array-like of shape (n,)
        """
        numbers, distinct = pd.factorize(_flat_objects(values))
        of_distinct = np.array([self.code(value) for value in distinct], dtype=int)
        # -1, a missing value, takes the last entry
        return np.append(of_distinct, -1)[numbers]

    def code(self, value: Any) -> int:
        """Return the code of one value; -1 where it is none of the classes."""
        text = label_text(value)
        for known, key in (
            (self._by_text, text),
            (self._by_number, _as_number(value)),
            (self._by_form, plain_form(text)),
        ):
            if key in known:
                return known[key]
        return -1

    @cached_property
    def _by_text(self) -> dict[Any, int]:
        return {name: code for code, name in enumerate(self.names)}

    @cached_property
    def _by_number(self) -> dict[Any, int]:
        """Codes by value; empty where two classes are one number, such as 7 and 007."""
        return _unique_keys([_as_number(name) for name in self.names])

    @cached_property
    def _by_form(self) -> dict[Any, int]:
        """Codes by the composed form of Unicode, in which one text has one spelling."""
        return _unique_keys([plain_form(name) for name in self.names])


def order_labels(names: Iterable[str], values: Any = None) -> tuple[str, ...]:
    """Return classes in the order of scikit-learn's ``unique_labels``.

    Parameters
    ----------
    names : iterable of str
    values : array-like, optional
        The targets themselves: texts of digits are ordered as texts, numbers by value.

    Examples
    --------
    >>> order_labels({"10", "9"}), order_labels({"10", "9"}, ["10", "9"])
    (('9', '10'), ('10', '9'))
    """
    distinct = set(names)
    if values is not None:
        present = pd.unique(_flat_objects(values))
        if any(isinstance(value, str) for value in present):
            return tuple(sorted(distinct))
    return tuple(natural_order(distinct))


def _flat_objects(values: Any) -> np.ndarray:
    """Return values as objects, so that numpy makes no text of a number."""
    if isinstance(values, pd.Series | pd.Index):
        return values.to_numpy(dtype=object, na_value=None)
    array = np.asarray(values)
    if array.dtype != object and array.dtype.kind not in "US":
        return array.astype(object)
    flat = np.empty(len(values), dtype=object)
    flat[:] = list(values)
    return flat


def _unique_keys(keys: list[Any]) -> dict[Any, int]:
    """Return the position of each key; nothing where two are equal."""
    found = {key: code for code, key in enumerate(keys) if key is not None}
    if len(found) < sum(key is not None for key in keys):
        return {}
    return found


def _as_number(value: Any) -> float | None:
    """Return a class as a number; None for what is none."""
    truth = {"True": 1.0, "False": 0.0}
    if isinstance(value, str) and value in truth:
        return truth[value]
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def plain_form(text: str) -> str:
    """Return a text in the composed form of Unicode, in which it has one spelling."""
    return unicodedata.normalize("NFC", text)
