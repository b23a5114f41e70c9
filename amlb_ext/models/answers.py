"""What a model answers, read as numbers, probabilities or labels; or refused in one line.

Notation
--------
n, C : rows, classes
f : (n,) predictions in the target's unit, or (n, C) probabilities in the order of the labels
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import is_number
from amlb_ext.core.errors import ModelError
from amlb_ext.core.numbers import (
    count_not_finite,
    plain_floats,
    without_mask,
)
from amlb_ext.core.tables import natural_order
from amlb_ext.models.columns import list_names

# The classes of a table, compared by value: 1, 1.0, "1" and True may be one class.
#
# One order serves every door: that of sklearn.utils.multiclass.unique_labels, by value for
# numbers, by text for anything else. So "the second of two classes" is the same wherever it is
# asked for, and a bare array of probabilities has its columns in this order.


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
    present : sequence of int, optional
        Codes of the classes that the table has, for answers that do not name them; all when
        omitted.

    Examples
    --------
    >>> labels = Labels(("0.0", "0.5", "1.0"))
    >>> labels.codes([0, 0.5, True, "other"]).tolist()
    [0, 1, 2, -1]
    """

    def __init__(
        self,
        names: Sequence[str],
        declared: Sequence[str] = (),
        present: Iterable[int] | None = None,
    ) -> None:
        self.names = tuple(names)
        self.declared = tuple(declared) or self.names
        self.present = tuple(range(len(names)) if present is None else present)

    def __len__(self) -> int:
        return len(self.names)

    def codes(self, values: Any) -> np.ndarray:
        """Return the code of each value, ``(n,)``; -1 for what is none of the classes.

        Parameters
        ----------
        values : array-like of shape (n,)
        """
        flat = _flat_objects(values)
        try:
            numbers, distinct = pd.factorize(flat)
        except TypeError:
            # lists and dicts, which are no classes
            return np.full(len(flat), -1)
        of_distinct = np.array([self.code(value) for value in distinct], dtype=int)
        # -1, a missing value, takes the last entry
        return np.append(of_distinct, -1)[numbers]

    def code(self, value: Any) -> int:
        """Return the code of one value; -1 where it is none of the classes."""
        text = label_text(value)
        keys = (text, as_number(value), plain_form(text))
        for known, key in zip(self._known, keys, strict=True):
            if key in known:
                return known[key]
        return -1

    @cached_property
    def _known(self) -> list[dict[Any, int]]:
        """Codes by text, by value, and by the composed form of Unicode, each where it is unique.

        By value it is not where two classes are one number, such as 7 and 007.
        """
        numbers = [as_number(name) for name in self.names]
        forms = [plain_form(name) for name in self.names]
        return [_unique_keys(keys) for keys in (self.names, numbers, forms)]


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
    present = () if values is None else pd.unique(_flat_objects(values))
    if any(isinstance(value, str) for value in present):
        return tuple(sorted(set(names)))
    return tuple(natural_order(set(names)))


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


def _unique_keys(keys: Sequence[Any]) -> dict[Any, int]:
    """Return the position of each key; nothing where two are equal."""
    found = {key: code for code, key in enumerate(keys) if key is not None}
    return found if len(found) + keys.count(None) == len(keys) else {}


def as_number(value: Any) -> float | None:
    """Return a class as a number; None for what is none.

    Examples
    --------
    >>> [as_number(value) for value in ("1.0", True, "False", "yes")]
    [1.0, 1.0, 0.0, None]
    """
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


#: Smallest and largest sum of the probabilities of a row.
_SUM_LOW, _SUM_HIGH = 0.99, 1.01
#: A probability may miss [0, 1] by so much: single precision.
_ROUNDING = 1e-5
#: Most probabilities of a row that an error shows.
_MOST_SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class RawAnswers:
    """What a model said, before anything is made of it.

    Attributes
    ----------
    decided : ndarray of shape (n,) or None
        Classes, or numbers in the target's unit.
    p : ndarray of shape (n, c) or None
        Probabilities under the model's own classes.
    classes : list or None
        These classes, in the model's order; None where they are those of the table.
    truth : ndarray of shape (n,) or None
        Targets that stand beside predictions in their file.
    """

    decided: np.ndarray | None = None
    p: np.ndarray | None = None
    classes: list[Any] | None = None
    truth: np.ndarray | None = None


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a model answers to some rows.

    Attributes
    ----------
    f : ndarray of shape (n,) or (n, C)
        See the module's notation; where a model names labels alone, 1 for the label.
    decided : ndarray of shape (n,), int, or None
        Codes of the classes that the model decides for: by ``predict`` where it has one. None for
        a regression.
    only_labels : bool
        Whether the model names labels and gives no probabilities.
    raw : RawAnswers
    notes : tuple of str
    """

    f: np.ndarray
    decided: np.ndarray | None = None
    only_labels: bool = False
    raw: RawAnswers = RawAnswers()
    notes: tuple[str, ...] = ()

    def take(self, rows: np.ndarray) -> Answers:
        """Return the answers to some of the rows, by position."""

        def taken(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[rows]

        raw = replace(
            self.raw,
            decided=taken(self.raw.decided),
            p=taken(self.raw.p),
            truth=taken(self.raw.truth),
        )
        return replace(self, f=self.f[rows], decided=taken(self.decided), raw=raw)


def flat_rows(values: Any, n: int, name: str) -> np.ndarray:
    """Return one value for each row, ``(n,)``, from a list, an array, a column or a Series.

    Raises
    ------
    ModelError
        Several outputs, a tuple, or another number of rows.
    """
    if isinstance(values, tuple):
        raise ModelError(
            f"{name} answers a tuple of {len(values)} for {n} rows",
            "let predict return one array",
        )
    array = np.asarray(without_mask(values))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim > 1:
        raise ModelError(
            f"{name} answers {array.shape[1]} values for each of {len(array)} rows",
            "give a model of one target, or a function that returns one of its outputs",
        )
    _check_count(array, n, name)
    return array


def _check_count(array: np.ndarray, n: int, name: str) -> None:
    came = len(array) if array.ndim else 1
    if not array.ndim or came != n:
        raise ModelError(
            f"{name} answers {came} rows for {n} rows", "wanted: one for each row"
        )


def read_numbers(values: Any, n: int, name: str) -> np.ndarray:
    """Return predictions of a regression, ``(n,)``.

    Raises
    ------
    ModelError
        No finite number for a row, or another shape.

    Examples
    --------
    >>> read_numbers([[1], [2]], 2, "F")
    array([1., 2.])
    """
    flat = flat_rows(values, n, name)
    try:
        numbers = plain_floats(flat)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"the predictions of {name} are not numbers: {error}",
            "give numbers in the target's unit; if the target has classes, "
            "add --kind classification (in Python kind='classification')",
        ) from None
    _check_finite(numbers, name)
    return numbers


def answers_of_numbers(values: Any, n: int, name: str) -> Answers:
    """Return answers of a regression; as :func:`read_numbers`."""
    numbers = read_numbers(values, n, name)
    return Answers(f=numbers, raw=RawAnswers(decided=numbers))


def read_labels(values: Any, labels: Labels, n: int, name: str) -> np.ndarray:
    """Return the codes of classes that a model names, ``(n,)``.

    Raises
    ------
    ModelError
        A value that is none of the classes.

    Examples
    --------
    >>> read_labels(["yes", "no"], Labels(("no", "yes")), 2, "F")
    array([1, 0])
    """
    flat = flat_rows(values, n, name)
    codes = labels.codes(flat)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise ModelError(
            f"{name} predicts the class {str(flat[row])!r} in row {row}, but the classes are "
            f"{list_names(labels.names)}",
            "give the model that was fitted on this target; let predict return its classes and no "
            "codes of them",
        )
    return codes


def read_probabilities(
    values: Any,
    labels: Labels,
    n: int,
    name: str,
    *,
    classes: list[Any] | None = None,
) -> np.ndarray:
    """Return probabilities in the order of the labels, ``(n, C)``.

    Parameters
    ----------
    values : array or DataFrame
        One column for each class; or of two classes the probability of the second.
    labels : Labels
    n : int
    name : str
        For errors.
    classes : list, optional
        What the columns are; the table's classes, in the order of the labels, when omitted.

    Raises
    ------
    ModelError
        Another shape, a class that the table lacks, or values that are no probabilities.

    Examples
    --------
    >>> read_probabilities([[0.2, 0.8]], Labels(("no", "yes")), 1, "F", classes=["yes", "no"])
    array([[0.8, 0.2]])
    """
    if isinstance(values, list) and values and getattr(values[0], "ndim", 0) == 2:
        if len(values) == 1:
            # a model of several targets that was fitted on one
            return read_probabilities(values[0], labels, n, name, classes=classes)
        raise ModelError(
            f"{name} answers {len(values)} outputs for each of {n} rows",
            "give a model of one target",
        )
    classes = classes_of_columns(values, classes)
    try:
        p = plain_floats(values)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"the predictions of {name} are not numbers: {error}",
            wanted_text(labels.names),
        ) from None
    _check_count(p, n, name)
    _check_finite(p, name)
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    of_two = labels.present if classes is None else classes
    if p.ndim == 1 and len(of_two) == 2:
        _check_scale(p, name)
        p = np.column_stack([1 - p, p])
    codes = _codes_of_columns(p, labels, classes, name)
    _check_rows(p, name)
    f = np.zeros((n, len(labels)))
    f[:, codes] = np.clip(p, 0, 1)
    return f


#: How the name of a column of probabilities may begin, before that of the class.
_BEFORE_CLASS = re.compile(r"(?:score:|(?:p|prob|proba|probability)[ _:.(-]+)", re.I)


def without_prefix(name: str) -> str:
    """Return the class in the name of a column of probabilities.

    Examples
    --------
    >>> without_prefix("proba_yes"), without_prefix("P(yes)"), without_prefix("yes")
    ('yes', 'yes', 'yes')
    """
    return _BEFORE_CLASS.sub("", name, count=1).removesuffix(")")


def classes_of_columns(p: Any, classes: list[Any] | None) -> list[Any] | None:
    """Return the classes in the order of the columns of probabilities.

    Those of a frame that is headed by classes may stand in another order than the model's.

    Parameters
    ----------
    p : array or DataFrame
    classes : list or None
        In the model's order; None where it names none.

    Examples
    --------
    >>> p = pd.DataFrame([[0.2, 0.8]], columns=["yes", "no"])
    >>> classes_of_columns(p, ["no", "yes"]), classes_of_columns(p.to_numpy(), ["no", "yes"])
    (['yes', 'no'], ['no', 'yes'])
    """
    if not isinstance(p, pd.DataFrame):
        return classes
    headed = list(p.columns)
    # a RangeIndex counts places, even where classes are numbers
    if classes is None or isinstance(p.columns, pd.RangeIndex):
        return headed if classes is None else classes
    known = Labels([label_text(value) for value in classes])
    for heads in (headed, [without_prefix(str(head)) for head in headed]):
        codes = known.codes(heads).tolist()
        if sorted(codes) == list(range(len(classes))):
            return [classes[code] for code in codes]
    return classes


def _codes_of_columns(
    p: np.ndarray, labels: Labels, classes: Sequence[Any] | None, name: str
) -> np.ndarray:
    """Return the code of each column."""
    if classes is None and p.ndim == 2:
        if p.shape[1] == len(labels):
            return np.arange(len(labels))
        if p.shape[1] == len(labels.present):
            return np.asarray(labels.present)
    if classes is None or p.ndim != 2:
        remedy = wanted_text(labels.names)
        if p.ndim == 1 and all(map(is_number, labels.names)):
            remedy = (
                "the targets are texts that are all numbers: give them as numbers, "
                "y.astype(float), if they are no classes"
            )
        raise ModelError(f"the predictions of {name} have the shape {p.shape}", remedy)
    if len(classes) != p.shape[1]:
        raise ModelError(
            f"{name} has {len(classes)} classes and answers {p.shape[1]} probabilities a row",
            "give one probability for each of its classes",
        )
    codes = labels.codes(list(classes))
    if (codes < 0).any():
        unknown = classes[int(np.argmax(codes < 0))]
        raise ModelError(
            f"{name} predicts the class {str(unknown)!r}, but the task's classes are "
            f"{list_names(labels.names)}",
            "give the model that was fitted on this target",
        )
    if len(set(codes.tolist())) < len(codes):
        raise ModelError(
            f"{name} has two columns for one class: {list_names(classes)}",
            "name each class once",
        )
    return codes


def _check_finite(values: np.ndarray, name: str) -> None:
    n_not_finite = count_not_finite(values)
    if n_not_finite:
        raise ModelError(
            f"{name} predicts no finite number for {n_not_finite} of {len(values)} rows",
            "mend the model, or leave those rows out for all models",
        )


def _check_scale(p: np.ndarray, name: str) -> None:
    """Refuse values outside [0, 1], and say what they look like."""
    low, high = float(p.min(initial=0)), float(p.max(initial=0))
    has_negative = low < -_ROUNDING
    if not has_negative and high <= 1 + _ROUNDING:
        return
    row = int(np.argmax((p < -_ROUNDING) | (p > 1 + _ROUNDING)) // (p.size // len(p)))
    kind, remedy = "raw scores", "give probabilities, e.g. of a CalibratedClassifierCV"
    sums = p.sum(axis=1) if p.ndim == 2 else None
    if has_negative and high <= _ROUNDING:
        kind, remedy = "logarithms", "give np.exp of them"
    elif not has_negative and high <= 100 + _ROUNDING and _are_all(sums, 100):
        kind, remedy = "per cent", "divide them by 100"
    elif sums is not None and _are_all(sums, 1):
        kind, remedy = "margins that sum to 1", "give probabilities; margins are none"
    raise ModelError(
        f"the predictions of {name} are no probabilities: {_row_text(p[row])} in row {row}, which "
        f"look like {kind}",
        remedy,
    )


def _check_rows(p: np.ndarray, name: str) -> None:
    """Refuse rows that do not sum to 1."""
    _check_scale(p, name)
    sums = p.sum(axis=1)
    is_wrong = (sums < _SUM_LOW) | (sums > _SUM_HIGH)
    if is_wrong.any():
        first = int(is_wrong.argmax())
        extent = f" in {is_wrong.sum()} of {len(p)} rows, first in row {first}"
        raise ModelError(
            f"the predictions of {name} are no probabilities"
            f"{extent if len(p) > 1 else ''}: {_row_text(p[first])} sum to {sums[first]:.3g}",
            "give probabilities between 0 and 1 that sum to 1 in each row",
        )


def _are_all(sums: np.ndarray | None, total: float) -> bool:
    """Whether all rows have a sum; those of one column have any."""
    return sums is None or bool(np.allclose(sums, total, rtol=0.01))


def _row_text(row: np.ndarray) -> str:
    values = np.atleast_1d(row)
    shown = ", ".join(f"{value:.3g}" for value in values[:_MOST_SHOWN])
    return f"{shown}, ..." if len(values) > _MOST_SHOWN else shown


def wanted_text(labels: Sequence[str]) -> str:
    """Return what predictions must be, for an error."""
    if not labels:
        return "write one column 'prediction', numbers in the target's unit"
    columns = f"write one column of probabilities for each class: {list_names(labels)}"
    if len(labels) == 2:
        columns += (
            f"; or one column 'score:{labels[1]}', the probability of {labels[1]}"
        )
    return columns
