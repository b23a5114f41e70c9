"""From a table as it was read to a task: types, checks, canonical form.

:func:`make_task` is the only way to a :class:`~amlb_ext.core.task.Task`. It decides whether the
target is classes or numbers, infers the type of each feature that the source does not declare, and
brings every column to the canonical form that :mod:`amlb_ext.core.task` describes. It notes each
change in the task, and refuses what it cannot repair with an error that says what to type instead.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, is_utf8
from amlb_ext.core.frames import missing_lookalikes, plain_frame
from amlb_ext.core.numbers import (
    COMMA_REMEDY,
    MAX_EXACT_INTEGER,
    FloatColumn,
    convert_to_float64,
    has_decimal_comma,
    is_numeric,
)
from amlb_ext.core.task import (
    Column,
    ColumnType,
    Fold,
    Kind,
    Origin,
    Reading,
    Task,
)

#: Fewer rows than this cannot be split, fitted and searched in any useful way.
MIN_ROWS = 20
#: A target that is missing in a larger share of rows is refused.
MAX_MISSING_TARGET = 0.5
#: AMLB's encoded frameworks work in float32; larger numbers are refused.
MAX_ABS = float(np.finfo(np.float32).max)
#: A numeric target with at most this many whole numbers may be meant as classes: a note says so.
MAX_CLASSES_TO_MENTION = 20
#: A column with more distinct texts than this, most of them unique, is free text, not categories.
MIN_FREE_TEXTS = 50
#: Python's local times end with the year after this one.
_LAST_LOCAL_YEAR = 9998
#: Share of the distinct decimals of a regression target that may become equal in float64: a file
#: may write one float64 in several ways, which are not different values.
MAX_MERGED = 0.01


def default_target(names: Sequence[str]) -> str:
    """Return AMLB's default target: ``target`` or ``class``, else the last column.

    Source: AMLB ``amlb/datasets/file.py``, ``_find_target_feature``.

    Examples
    --------
    >>> default_target(["a", "Class", "b"]), default_target(["a", "b"])
    ('Class', 'b')
    """
    for name in names:
        if name.lower() in ("target", "class"):
            return name
    return names[-1]


def make_task(
    frame: pd.DataFrame,
    target: str,
    *,
    name: str,
    kind: Kind | str | None = None,
    types: Mapping[str, ColumnType] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    folds: Sequence[Fold] = (),
    origin: Origin | None = None,
    notes: Sequence[str] = (),
    beside: Sequence[str] = (),
    reading: Reading | None = None,
    index: pd.Index | None = None,
) -> Task:
    """Check a table and bring it to canonical form.

    Parameters
    ----------
    frame : DataFrame of shape (n, d + 1)
        Features and target, as the source has them; see :func:`amlb_ext.core.frames.plain_frame`
        for what becomes of types that are neither numbers nor texts.
    target : str
        Name of the target column.
    name : str
        Name of the task.
    kind : Kind or str, optional
        ``regression``, ``binary``, ``multiclass`` or ``classification``. Inferred by default:
        text, boolean or two distinct values are classes, other numbers are regression.
    types : mapping of column name to type, optional
        Types that the source declares (ARFF, OpenML); the others are inferred.
    categories : mapping of column name to sequence of str, optional
        Category lists that the source declares, also the target's, in the source's order. A feature
        without one has those of its ``category`` type, where it is of that type.
    folds : sequence of Fold, optional
        Positions in ``frame``; rows without a target are removed from them.
    origin : Origin, optional
    notes : sequence of str, optional
    beside : sequence of str, optional
        Targets of other tasks: they are no features, and a row that lacks one is dropped too.
    reading : Reading, optional
        How the table was read, to be shown.
    index : Index, optional
        Labels of the rows of ``frame``, where its file has some; counted from 0 when omitted.

    Returns
    -------
    Task

    Raises
    ------
    DataError
        Duplicate columns, unknown target, no features, infinite or too large values, too few
        rows, or a target with a single value, with too many missing values, or with different
        numbers that are the same float64.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": range(30), "b": ["x", "y", "y"] * 10, "c": [0, 1] * 15})
    >>> task = make_task(table, "c", name="small")
    >>> task.kind.value, [column.type for column in task.columns], task.labels
    ('binary', ['integer', 'categorical'], ('0', '1'))
    """
    types = types or {}
    categories = categories or {}
    targets = [target, *beside]
    if not is_utf8(name):
        raise DataError(f"the name of the task {name!r} is not UTF-8", "rename it")
    frame, plain_notes = plain_frame(frame, what=name)
    _check_columns(frame, targets, name)
    n_rows = len(frame)
    frame, row_ids, folds, drop_notes = _drop_rows_without_target(
        frame, targets, name=name, folds=tuple(folds)
    )
    if len(frame) < MIN_ROWS:
        raise DataError(
            f"{name}: {len(frame)} rows with a target, at least {MIN_ROWS} are needed",
            "give a larger table",
        )
    final_kind, values, labels, target_notes = _make_target(
        frame[target], name=name, kind=kind, known_labels=categories.get(target)
    )
    features = {}
    columns = []
    feature_notes = []
    for column_name in frame.columns.drop(targets):
        column, canonical, column_notes = _make_column(
            frame[column_name],
            name=name,
            declared_type=types.get(column_name),
            declared_categories=categories.get(column_name),
        )
        columns.append(column)
        features[column_name] = canonical
        feature_notes += column_notes
    return Task(
        name=name,
        kind=final_kind,
        features=pd.DataFrame(features),
        target=values,
        target_name=target,
        columns=tuple(columns),
        labels=labels,
        row_ids=row_ids,
        source_index=pd.RangeIndex(n_rows) if index is None else index,
        folds=folds,
        origin=origin or Origin(spec=name),
        notes=(*notes, *plain_notes, *drop_notes, *target_notes, *feature_notes),
        reading=reading or Reading(),
        dtypes={column.name: frame[column.name].dtype for column in columns},
    )


def _check_columns(frame: pd.DataFrame, targets: list[str], name: str) -> None:
    """Refuse a table that lacks a target or has nothing else."""
    for target in targets:
        if target not in frame.columns:
            shown = ", ".join(frame.columns[:10])
            raise DataError(
                f"{name}: no column {target!r} (columns: {shown})", "use --target NAME"
            )
    if frame.shape[1] <= len(targets):
        shown = " and ".join(repr(target) for target in targets)
        raise DataError(
            f"{name}: the table has no feature beside {shown}", "add columns"
        )


def _drop_rows_without_target(
    frame: pd.DataFrame, targets: list[str], *, name: str, folds: tuple[Fold, ...]
) -> tuple[pd.DataFrame, np.ndarray, tuple[Fold, ...], list[str]]:
    """Return the rows with all targets, their positions, their folds, and notes."""
    is_missing = frame[targets].isna().any(axis=1).to_numpy()
    row_ids = np.flatnonzero(~is_missing).astype(np.int64)
    if not is_missing.any():
        return frame.reset_index(drop=True), row_ids, folds, []
    share = is_missing.mean()
    if share > MAX_MISSING_TARGET:
        which = " or ".join(repr(target) for target in targets)
        raise DataError(
            f"{name}: the target {which} is missing in {is_missing.sum()} of {len(frame)} rows, "
            f"at most {MAX_MISSING_TARGET:.0%} are accepted",
            "choose another column with --target, or drop these rows yourself",
        )
    # A row moves up by the number of dropped rows before it.
    new_position = np.cumsum(~is_missing) - 1

    def keep(rows: np.ndarray) -> np.ndarray:
        has_target = ~is_missing[rows]
        return new_position[rows[has_target]]

    folds = tuple(Fold(train=keep(fold.train), test=keep(fold.test)) for fold in folds)
    what = "without a target" if len(targets) == 1 else "that lack one of the targets"
    note = f"{int(is_missing.sum())} rows {what} were dropped"
    remaining = frame.loc[~is_missing].reset_index(drop=True)
    return remaining, row_ids, folds, [note]


# The target.


def _make_target(
    values: pd.Series,
    *,
    name: str,
    kind: Kind | str | None,
    known_labels: Sequence[str] | None,
) -> tuple[Kind, pd.Series, tuple[str, ...], list[str]]:
    """Return the kind, the target in canonical form, its labels in order, and notes."""
    n_distinct = int(values.nunique())
    if n_distinct < 2:
        raise DataError(
            f"{name}: the target {values.name!r} has a single value",
            "give rows that differ in it, or name another target",
        )
    wanted, notes = _choose_kind(values, kind, n_distinct)
    if wanted == "regression":
        numbers, number_notes = _make_number_target(values, name)
        return Kind.REGRESSION, numbers, (), notes + number_notes
    # A user who names the kind, or a source that lists the labels, means them as they are.
    if kind is None and known_labels is None:
        _check_missing_texts(values, name)
    text = _as_text(values)
    # the known labels that occur in their own order, then the others
    present = set(text.dropna())
    labels = [label for label in known_labels or [] if label in present]
    labels += natural_order(present.difference(labels))
    final_kind = Kind.BINARY if len(labels) == 2 else Kind.MULTICLASS
    if wanted in ("binary", "multiclass") and wanted != final_kind.value:
        notes.append(
            f"the target has {len(labels)} classes: {final_kind.value}, not {wanted}"
        )
    classes = pd.Series(pd.Categorical(text, categories=labels), name=values.name)
    notes += [f"the target {values.name!r} {note}" for note in label_notes(labels)]
    notes += _lookalike_notes(str(values.name), classes)
    return final_kind, classes, tuple(labels), notes


def _choose_kind(
    values: pd.Series, kind: Kind | str | None, n_distinct: int
) -> tuple[str, list[str]]:
    """Return the kind that the user names or the values suggest, and notes."""
    if kind is not None:
        return str(kind), []
    if n_distinct <= 2 or not is_numeric(values):
        return "classification", []
    if n_distinct > MAX_CLASSES_TO_MENTION or not _all_whole(values):
        return "regression", []
    note = (
        f"the target has {n_distinct} distinct whole numbers and was taken as regression; "
        "--kind multiclass makes them classes"
    )
    return "regression", [note]


def _make_number_target(values: pd.Series, name: str) -> tuple[pd.Series, list[str]]:
    """Return a regression target as ``float64``, and notes."""
    if not is_numeric(values):
        _check_missing_texts(values, name)
        remedy = "use --kind classification"
        if pd.api.types.is_bool_dtype(values.dtype):
            raise DataError(
                f"{name}: the target {values.name!r} is True or False, but regression needs "
                "numbers",
                "write 1 and 0, in Python y.astype(int); or use --kind classification for a "
                "classifier",
            )
        if has_decimal_comma(values):
            remedy = f"are these numbers? {COMMA_REMEDY}"
        raise DataError(
            f"{name}: the target {values.name!r} is text, but regression needs numbers",
            remedy,
        )
    floats = convert_to_float64(values)
    _check_finite(floats.values, name)
    notes = _check_lost_values(floats, name)
    # A copy: pandas may have returned a view of the table.
    return floats.values.reset_index(drop=True).copy(), notes


def _check_lost_values(floats: FloatColumn, name: str) -> list[str]:
    """Refuse a regression target whose values become equal as float64, or note the loss."""
    target = floats.values.name
    if not floats.lost:
        return _rounding_notes(f"the target {target!r}", floats)
    loss = (
        f"the {floats.before} distinct values of the target {target!r} are {floats.after} as "
        "64-bit floats, which AMLB computes with"
    )
    # Whole numbers that differ are different values; decimals may be spellings of one.
    too_many_lost = floats.lost > MAX_MERGED * floats.before
    if floats.is_whole or too_many_lost or floats.after < 2:
        raise DataError(
            f"{name}: {loss}",
            "subtract a constant from the column so that its values stay apart, choose another "
            "--target, or make them classes with --kind classification",
        )
    return [loss]


def _check_missing_texts(values: pd.Series, name: str) -> None:
    """Refuse a target of numbers that a text such as ``None`` makes text, and so classes."""
    texts = {str(value) for value in values.dropna().unique()}
    lookalikes = missing_lookalikes(texts)
    if not lookalikes or not _are_numbers(texts.difference(lookalikes)):
        return
    n_rows = int(values.isin(lookalikes[:1]).sum())
    raise DataError(
        f"{name}: the target {values.name!r} holds numbers and, in {n_rows} rows, the text "
        f"{lookalikes[0]!r}, which counts as a value, as for AMLB, and not as missing",
        "leave these fields empty, or make all of them classes with --kind classification",
    )


def _are_numbers(texts: Iterable[str]) -> bool:
    """Whether there are texts, and each of them is a number."""
    values = pd.Series(sorted(texts), dtype=object)
    numbers = pd.to_numeric(values, errors="coerce")
    return len(values) > 0 and bool(numbers.notna().all())


def _lookalike_notes(name: str, values: pd.Series) -> list[str]:
    """Return a note on the texts that count as values although they look like missing ones."""
    lookalikes = missing_lookalikes(values.cat.categories)
    present = [text for text in lookalikes if (values == text).any()]
    if not present:
        return []
    n_rows = int((values == present[0]).sum())
    counts = f"the text {present[0]!r} counts as a value in {n_rows} rows, as for AMLB"
    note = f"column {name!r}: {counts}"
    if _are_numbers(values.cat.categories.difference(present)):
        note += ", and makes a column of numbers text"
    return [f"{note}; leave these fields empty if the value is missing"]


def _rounding_notes(what: str, floats: FloatColumn) -> list[str]:
    """Return a note if whole numbers are rounded, though no two of them become equal."""
    if not floats.is_rounded:
        return []
    return [
        f"{what} holds whole numbers beyond 2**53, which are rounded to 64-bit floats"
    ]


# The features.


def _make_column(
    values: pd.Series,
    *,
    name: str,
    declared_type: ColumnType | None,
    declared_categories: Sequence[str] | None,
) -> tuple[Column, pd.Series, list[str]]:
    """Return a feature's description, its canonical form, and notes."""
    column_name = str(values.name)
    if declared_categories is None and isinstance(values.dtype, pd.CategoricalDtype):
        declared_categories = values.cat.categories.tolist()
    column_type = declared_type or _infer_type(values)
    notes = []
    if column_type in ("numeric", "integer"):
        floats = convert_to_float64(values)
        _check_finite(floats.values, name)
        # Whole numbers too long for float64 are identifiers, decimals are measurements.
        are_identifiers = declared_type is None and floats.lost > 0 and floats.is_whole
        if not are_identifiers:
            return _make_number_column(column_name, column_type, floats)
        column_type = "categorical"
        notes = [
            f"column {column_name!r}: {floats.before} distinct whole numbers would be "
            f"{floats.after} as 64-bit floats, and are kept as categories; subtract a constant "
            "from the column to keep them as numbers"
        ]
    text = _as_text(values)
    # Declared categories that do not occur stay: rows of another fold may have them.
    categories = list(dict.fromkeys(map(str, declared_categories or [])))
    categories += natural_order(set(text.dropna()).difference(categories))
    canonical = pd.Series(pd.Categorical(text, categories=categories), name=column_name)
    column = Column(
        name=column_name,
        type=column_type,
        categories=tuple(categories),
        has_missing=bool(values.isna().any()),
    )
    notes += _lookalike_notes(column_name, canonical)
    return column, canonical, notes


def _make_number_column(
    name: str, column_type: ColumnType, floats: FloatColumn
) -> tuple[Column, pd.Series, list[str]]:
    values = floats.values
    if column_type == "integer":
        # The type decides how values are written back: an integer beyond 2**53 would be wrong.
        is_too_large = values.abs().max() > MAX_EXACT_INTEGER
        if is_too_large or not _all_whole(values):
            column_type = "numeric"
    column = Column(name=name, type=column_type, has_missing=bool(values.isna().any()))
    notes = _rounding_notes(f"column {name!r}", floats)
    if floats.lost:
        notes = [
            f"column {name!r}: {floats.before} distinct numbers are {floats.after} as 64-bit "
            "floats; subtract a constant from the column to keep them apart"
        ]
    return column, values.rename(name), notes


def _infer_type(values: pd.Series) -> ColumnType:
    """Return the type of a feature that the source does not declare."""
    if pd.api.types.is_bool_dtype(values):
        return "boolean"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date"
    present = values.dropna()
    # A column without any value says nothing of its type; as a number it needs no category.
    if len(present) == 0:
        return "numeric"
    if is_numeric(values):
        return "integer" if _all_whole(values) else "numeric"
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "categorical"
    distinct = present.astype(str).unique()
    if set(distinct) <= {"True", "False"}:
        return "boolean"
    if _are_dates(distinct):
        return "date"
    is_mostly_unique = len(distinct) > 0.5 * len(present)
    if is_mostly_unique and len(distinct) > MIN_FREE_TEXTS:
        return "text"
    return "categorical"


def _are_dates(values: np.ndarray) -> bool:
    """Whether every value is an ISO 8601 date with year, month and day."""
    texts = pd.Series(values, dtype=object).astype(str)
    # pandas alone would read 2020 and 202001 as dates too.
    if not texts.str.match(r"^\d{4}-\d{1,2}-\d{1,2}([T ]\d|$)").all():
        return False
    # In UTC: a column of local times has two offsets where summer time ends.
    times = pd.to_datetime(texts, errors="coerce", format="ISO8601", utc=True)
    return bool(times.notna().all())


def _as_text(values: pd.Series) -> pd.Series:
    """Return values as ``object`` of ``str``: missing ones stay, different ones stay different.

    Whole floats lose their ``.0``. Times keep their resolution and their offset from UTC.
    """
    is_present = values.notna().to_numpy()
    present = values[is_present]
    texts = np.full(len(values), None, dtype=object)
    if pd.api.types.is_float_dtype(present):
        if _all_whole(present):
            texts[is_present] = [str(int(value)) for value in present]
        else:
            # Adding 0.0 makes -0.0, which is equal to 0.0, the same text.
            texts[is_present] = [str(value + 0.0) for value in present]
    elif pd.api.types.is_datetime64_any_dtype(present):
        texts[is_present] = _format_times(present)
    else:
        texts[is_present] = [str(value) for value in present]
    return pd.Series(texts, name=values.name, dtype=object)


def _format_times(times: pd.Series) -> list[str]:
    """Return times in ISO 8601: dates if all are midnights, else in the unit that all need."""
    if times.dt.tz is not None:
        in_utc = times.dt.tz_convert("UTC")
        # The local time of an instant this late may lie beyond Python's last year.
        if (in_utc.dt.year > _LAST_LOCAL_YEAR).any():
            times = in_utc
    # not of times in a zone: there are days without a midnight
    clock = times.dt.tz_localize(None)
    if (clock == clock.dt.normalize()).all():
        return clock.dt.strftime("%Y-%m-%d").tolist()
    unit = _coarsest_unit(times)
    return [time.isoformat(timespec=unit) for time in times]


def _coarsest_unit(times: pd.Series) -> str:
    """Return the coarsest unit of ``isoformat`` in which all times are whole."""
    nanoseconds = times.dt.microsecond * 1000 + times.dt.nanosecond
    steps = {"seconds": 10**9, "milliseconds": 10**6, "microseconds": 10**3}
    for unit, step in steps.items():
        if (nanoseconds % step == 0).all():
            return unit
    return "nanoseconds"


def natural_order(values: set[str]) -> list[str]:
    """Return categories in the order for a column that declares none.

    Numbers are sorted by value; if any category is not a number, all are sorted as text.

    Examples
    --------
    >>> natural_order({"10", "9"}), natural_order({"b", "10", "9"})
    (['9', '10'], ['10', '9', 'b'])
    """
    try:
        # The text decides between spellings of one number, such as "1" and "1.0".
        return sorted(values, key=lambda value: (float(value), value))
    except ValueError:
        return sorted(values)


def _all_whole(values: pd.Series) -> bool:
    """Whether every value is a whole number; missing ones are left out."""
    floats = values[values.notna()].astype("float64").to_numpy()
    if not np.isfinite(floats).all():
        return False
    return bool(np.all(floats == np.floor(floats)))


def _check_finite(values: pd.Series, name: str) -> None:
    """Refuse infinite and huge values, and name the first of them."""
    # Not "not <=": a missing value is NaN, and may stay.
    is_too_large = np.abs(values.to_numpy()) > MAX_ABS
    if is_too_large.any():
        row = int(np.flatnonzero(is_too_large)[0])
        raise DataError(
            f"{name}: column {values.name!r} holds {values.iloc[row]} in row {row}; "
            f"AMLB needs finite numbers up to {MAX_ABS:.2g}",
            "replace infinite or huge values, or leave them empty",
        )


# Classes of a target that may not be what they seem: two spellings of one, several in one cell.


#: What may stand between several values of one cell.
_SEPARATORS = "|;,/+&"
#: Fewer classes of several parts may be names: "sales/marketing".
_LEAST_COMBINED = 3
#: Pairs of classes that a note shows.
_MOST_SHOWN = 3


def label_notes(labels: Sequence[str]) -> list[str]:
    """Return notes on classes that are nearly the same, and on classes that combine values.

    Parameters
    ----------
    labels : sequence of str
        Classes of a target, in order.

    Returns
    -------
    list of str
        Each goes on after the target's name.

    Examples
    --------
    >>> for note in label_notes(["<=50K", "<=50K.", ">50K"]):
    ...     print(note)
    has '<=50K' and '<=50K.', nearly the same label, as 2 classes; write them in \
one way if they are one
    >>> for note in label_notes(["a", "a|b", "a|c", "b", "b|c", "c"]):
    ...     print(note)
    looks like several values in one cell: its 6 classes combine 3 values, with \
'|' between; make a column of each value to predict them apart (--targets)
    """
    return [*_near_notes(labels), *_combined_notes(labels)]


def _near_notes(labels: Sequence[str]) -> list[str]:
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(_essence(label), []).append(label)
    groups = [group for group in alike.values() if len(group) > 1]
    notes = []
    for group in groups[:_MOST_SHOWN]:
        # in print, two Unicode forms of a text are one
        is_one_in_print = len({_composed(label) for label in group}) < len(group)
        shown = " and ".join(map(ascii if is_one_in_print else repr, group))
        notes.append(
            f"has {shown}, nearly the same label, as {len(group)} classes; "
            "write them in one way if they are one"
        )
    n_more = len(groups) - _MOST_SHOWN
    if n_more > 0:
        notes.append(f"has {n_more} more groups of nearly the same label")
    return notes


def _composed(label: str) -> str:
    return unicodedata.normalize("NFKC", label)


def _essence(label: str) -> str:
    """Return what is left of a label without case, blanks, a point at its end, and Unicode form."""
    letters = [
        letter
        for letter in _composed(label).casefold()
        # Cf: blanks of no width, marks of direction
        if not letter.isspace() and unicodedata.category(letter) != "Cf"
    ]
    return _composed("".join(letters).rstrip(".")) or label


def _combined_notes(labels: Sequence[str]) -> list[str]:
    for separator in _SEPARATORS:
        parts_of = [
            [part.strip() for part in label.split(separator)] for label in labels
        ]
        combined = [parts for parts in parts_of if len(parts) > 1]
        counts = Counter(part for parts in parts_of for part in set(parts))
        if len(combined) < _LEAST_COMBINED or len(counts) >= len(labels):
            continue
        # every value of a combination stands in another class, too
        if all(part and counts[part] > 1 for parts in combined for part in parts):
            return [
                f"looks like several values in one cell: its {len(labels)} "
                f"classes combine {len(counts)} values, with {separator!r} between; make a column "
                "of each value to predict them apart (--targets)"
            ]
    return []
