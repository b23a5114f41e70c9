"""From a table as it was read to a task: types, checks, canonical form.

:func:`make_task` is the only way to a :class:`~amlb_ext.core.task.Task`. It decides what the target
is (classes or numbers), infers the type of each feature that the source does not declare, and
brings every column to the canonical form that :mod:`amlb_ext.core.task` describes. What it changes
on the way it puts into the notes of the task; what it cannot mend it refuses with an error that
says what to type instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, is_utf8
from amlb_ext.core.missing import missing_lookalikes
from amlb_ext.core.numbers import (
    MAX_EXACT_INTEGER,
    FloatColumn,
    convert_to_float64,
    holds_numbers,
)
from amlb_ext.core.task import Column, ColumnType, Fold, Kind, Origin, Task

#: Fewer rows than this cannot be split, fitted and searched in any useful way.
MIN_ROWS = 20
#: A target that is missing in a larger share of rows is refused.
MAX_MISSING_TARGET = 0.5
#: AMLB's encoded frameworks work in float32; what does not fit is refused.
MAX_ABS = float(np.finfo(np.float32).max)
#: A numeric target of so few whole numbers may have been meant as classes: a note says so.
MAX_CLASSES_TO_MENTION = 20
#: A column of more distinct texts than this, most of them unique, is free text, no category.
MIN_FREE_TEXTS = 50
#: Python knows local times up to the year after this one.
_LAST_LOCAL_YEAR = 9998
#: Of the decimals of a regression target, so many may become equal in float64: files spell one
#: float64 in more ways than one, and such spellings are no different values.
MAX_MERGED = 0.01


def default_target(names: Sequence[str]) -> str:
    """Return AMLB's default target: ``target`` or ``class``, else the last column.

    Source: AMLB ``amlb/datasets/file.py``, ``_find_target_feature``.

    Examples
    --------
    >>> default_target(["a", "Class", "b"]), default_target(["a", "b"])
    ('Class', 'b')
    """
    return next(
        (name for name in names if name.lower() in ("target", "class")), names[-1]
    )


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
) -> Task:
    """Check a table and bring it to canonical form.

    Parameters
    ----------
    frame : DataFrame of shape (n, d + 1)
        Features and target, as read.
    target : str
        Name of the target column.
    name : str
        The task's name.
    kind : Kind or str, optional
        ``regression``, ``binary``, ``multiclass`` or ``classification``; inferred when omitted:
        text, boolean or two distinct values are classes, other numbers are regression.
    types : mapping of column name to type, optional
        Known types (from ARFF or OpenML); the others are inferred.
    categories : mapping of column name to sequence of str, optional
        Known category lists, the target's included, in the source's order.
    folds : sequence of Fold, optional
        Positions in ``frame``; rows without a target leave them.
    origin : Origin, optional
    notes : sequence of str, optional
    beside : sequence of str, optional
        Targets of other tasks: no features, and rows without any of them are dropped too.

    Returns
    -------
    Task

    Raises
    ------
    DataError
        Duplicate columns, unknown target, no features, infinite or too large values, too few
        rows, a target with one value or missing too often, or with values that are different
        numbers and the same float64.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": range(30), "b": ["x", "y", "y"] * 10, "c": [0, 1] * 15})
    >>> task = make_task(table, "c", name="small")
    >>> task.kind.value, [column.type for column in task.columns], task.labels
    ('binary', ['integer', 'categorical'], ('0', '1'))
    """
    types, categories = dict(types or {}), dict(categories or {})
    targets = [target, *beside]
    _check_names(frame, name)
    _check_columns(frame, targets, name)
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
    features, columns, feature_notes = {}, [], []
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
        folds=folds,
        origin=origin or Origin(spec=name),
        notes=(*notes, *drop_notes, *target_notes, *feature_notes),
    )


def _check_names(frame: pd.DataFrame, name: str) -> None:
    for what, text in [
        ("task", name),
        *(("column", str(column)) for column in frame.columns),
    ]:
        if not is_utf8(text):
            raise DataError(
                f"the name of the {what} {text!r} is not UTF-8", "rename it"
            )


def _check_columns(frame: pd.DataFrame, targets: list[str], name: str) -> None:
    doubled = sorted(
        {str(column) for column in frame.columns[frame.columns.duplicated()]}
    )
    if doubled:
        raise DataError(
            f"{name}: the column name {doubled[0]!r} occurs more than once",
            "rename one of them",
        )
    for target in targets:
        if target not in frame.columns:
            shown = ", ".join(map(str, frame.columns[:10]))
            raise DataError(
                f"{name}: no column {target!r} (columns: {shown})", "use --target NAME"
            )
    if frame.shape[1] <= len(targets):
        shown = " and ".join(map(repr, targets))
        raise DataError(
            f"{name}: the table has no feature beside {shown}", "add columns"
        )


def _drop_rows_without_target(
    frame: pd.DataFrame, targets: list[str], *, name: str, folds: tuple[Fold, ...]
) -> tuple[pd.DataFrame, np.ndarray, tuple[Fold, ...], list[str]]:
    """Return the rows that have all targets, their positions, the folds of them, and a note."""
    is_missing = frame[targets].isna().any(axis=1).to_numpy()
    row_ids = np.flatnonzero(~is_missing).astype(np.int64)
    if not is_missing.any():
        return frame.reset_index(drop=True), row_ids, folds, []
    share = is_missing.mean()
    if share > MAX_MISSING_TARGET:
        which = " or ".join(map(repr, targets))
        raise DataError(
            f"{name}: the target {which} is missing in {share:.0%} of the rows, "
            f"at most {MAX_MISSING_TARGET:.0%} are accepted",
            "choose another column with --target, or drop these rows yourself",
        )
    new_position = np.cumsum(~is_missing) - 1

    def keep(rows: np.ndarray) -> np.ndarray:
        return new_position[rows[~is_missing[rows]]]

    folds = tuple(Fold(train=keep(fold.train), test=keep(fold.test)) for fold in folds)
    what = "without a target" if len(targets) == 1 else "that lack one of the targets"
    note = f"{int(is_missing.sum())} rows {what} were dropped"
    return frame.loc[~is_missing].reset_index(drop=True), row_ids, folds, [note]


# --- The target -----------------------------------------------------------------------------------


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
            "choose another --target",
        )
    notes = []
    if kind is not None:
        wanted = str(kind)
    elif not _is_numeric(values) or n_distinct <= 2:
        wanted = "classification"
    else:
        wanted = "regression"
        if n_distinct <= MAX_CLASSES_TO_MENTION and _all_whole(values):
            notes.append(
                f"the target has {n_distinct} distinct whole numbers and was taken as regression; "
                "--kind multiclass makes them classes"
            )
    if wanted == "regression":
        numbers, number_notes = _make_number_target(values, name)
        return Kind.REGRESSION, numbers, (), notes + number_notes
    if kind is None and known_labels is None:
        _check_missing_texts(values, name)
    text = _as_text(values)
    labels = _order_labels(set(text.dropna()), known_labels or [])
    final_kind = Kind.BINARY if len(labels) == 2 else Kind.MULTICLASS
    if wanted in ("binary", "multiclass") and wanted != final_kind.value:
        notes.append(
            f"the target has {len(labels)} classes: {final_kind.value}, not {wanted}"
        )
    classes = pd.Series(pd.Categorical(text, categories=labels), name=values.name)
    return (
        final_kind,
        classes,
        tuple(labels),
        notes + _lookalike_notes(str(values.name), classes),
    )


def _order_labels(present: set[str], known: Sequence[str]) -> list[str]:
    """Return the labels that occur: the known ones in their order, then the others."""
    labels = [label for label in known if label in present]
    return labels + natural_order(present.difference(labels))


def _make_number_target(values: pd.Series, name: str) -> tuple[pd.Series, list[str]]:
    if not _is_numeric(values):
        _check_missing_texts(values, name)
        raise DataError(
            f"{name}: the target {values.name!r} is text, but regression needs numbers",
            "use --kind classification",
        )
    floats = convert_to_float64(values)
    _check_finite(floats.values, name)
    notes = _check_lost_values(floats, name)
    # A copy: pandas may have returned a view of the table.
    return floats.values.reset_index(drop=True).copy(), notes


def _check_lost_values(floats: FloatColumn, name: str) -> list[str]:
    """Refuse a regression target whose values become equal as float64, or say what is lost."""
    target = floats.values.name
    if not floats.lost:
        return _rounding_notes(f"the target {target!r}", floats)
    loss = (
        f"the {floats.before} distinct values of the target {target!r} are {floats.after} as "
        "64-bit floats, which AMLB computes with"
    )
    if floats.is_whole or floats.lost > MAX_MERGED * floats.before or floats.after < 2:
        raise DataError(
            f"{name}: {loss}",
            "subtract a constant from the column so that its values stay apart, choose another "
            "--target, or make them classes with --kind classification",
        )
    return [loss]


def _check_missing_texts(values: pd.Series, name: str) -> None:
    """Refuse a target of numbers that a text such as ``None`` makes text, and so classes."""
    texts = set(map(str, values.dropna().unique()))
    lookalikes = missing_lookalikes(texts)
    if not lookalikes or not _are_numbers(texts.difference(lookalikes)):
        return
    n_rows = int(values.isin(lookalikes).sum())
    raise DataError(
        f"{name}: the target {values.name!r} holds numbers and, in {n_rows} rows, the text "
        f"{lookalikes[0]!r}, which counts as a value, as for AMLB, and not as missing",
        "leave these fields empty, or make all of them classes with --kind classification",
    )


def _are_numbers(texts: Iterable[str]) -> bool:
    """Whether there are texts, and each of them is a number."""
    values = pd.Series(sorted(texts), dtype=object)
    return len(values) > 0 and bool(
        pd.to_numeric(values, errors="coerce").notna().all()
    )


def _lookalike_notes(name: str, values: pd.Series) -> list[str]:
    """Say which texts of a column are values although they look like missing ones."""
    lookalikes = missing_lookalikes(values.cat.categories)
    present = [text for text in lookalikes if (values == text).any()]
    if not present:
        return []
    n_rows = int(values.isin(present).sum())
    note = f"column {name!r}: the text {present[0]!r} counts as a value in {n_rows} rows, as for AMLB"
    if _are_numbers(values.cat.categories.difference(present)):
        note += ", and makes a column of numbers text"
    return [f"{note}; leave these fields empty if the value is missing"]


def _rounding_notes(what: str, floats: FloatColumn) -> list[str]:
    """Say that whole numbers are rounded, though none of them becomes equal to another."""
    if not floats.is_rounded:
        return []
    return [
        f"{what} holds whole numbers beyond 2**53, which are rounded to 64-bit floats"
    ]


# --- The features ---------------------------------------------------------------------------------


def _make_column(
    values: pd.Series,
    *,
    name: str,
    declared_type: ColumnType | None,
    declared_categories: Sequence[str] | None,
) -> tuple[Column, pd.Series, list[str]]:
    """Return a feature's description, its canonical form, and notes."""
    column_name = str(values.name)
    column_type = declared_type or _infer_type(values)
    notes = []
    if column_type in ("numeric", "integer"):
        floats = convert_to_float64(values)
        _check_finite(floats.values, name)
        # Whole numbers too long for float64 are names of things, decimals are measurements.
        are_names = declared_type is None and floats.lost > 0 and floats.is_whole
        if not are_names:
            column, canonical = _make_number_column(column_name, column_type, floats)
            return column, canonical, _number_notes(column_name, floats)
        column_type = "categorical"
        notes = [
            f"column {column_name!r}: {floats.before} distinct whole numbers would be "
            f"{floats.after} as 64-bit floats, and are kept as categories; subtract a constant "
            "from the column to keep them as numbers"
        ]
    text = _as_text(values)
    # Declared categories that do not occur stay: another fold's rows may hold them.
    categories = list(dict.fromkeys(map(str, declared_categories or [])))
    categories += natural_order(set(text.dropna()).difference(categories))
    canonical = pd.Series(pd.Categorical(text, categories=categories), name=column_name)
    column = Column(
        name=column_name,
        type=column_type,
        categories=tuple(categories),
        has_missing=bool(values.isna().any()),
    )
    return column, canonical, notes + _lookalike_notes(column_name, canonical)


def _make_number_column(
    name: str, column_type: ColumnType, floats: FloatColumn
) -> tuple[Column, pd.Series]:
    values = floats.values
    if column_type == "integer":
        is_exact = _all_whole(values) and not values.abs().max() > MAX_EXACT_INTEGER
        column_type = "integer" if is_exact else "numeric"
    column = Column(name=name, type=column_type, has_missing=bool(values.isna().any()))
    return column, values.rename(name)


def _number_notes(name: str, floats: FloatColumn) -> list[str]:
    if not floats.lost:
        return _rounding_notes(f"column {name!r}", floats)
    return [
        f"column {name!r}: {floats.before} distinct numbers are {floats.after} as 64-bit floats; "
        "subtract a constant from the column to keep them apart"
    ]


def _infer_type(values: pd.Series) -> ColumnType:
    if pd.api.types.is_bool_dtype(values):
        return "boolean"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date"
    present = values.dropna()
    if _is_numeric(values):
        return "integer" if len(present) and _all_whole(values) else "numeric"
    if len(present) == 0:
        return "numeric"
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "categorical"
    if set(map(str, present.unique())) <= {"True", "False"}:
        return "boolean"
    distinct = present.astype(str).unique()
    if _are_dates(distinct):
        return "date"
    is_mostly_unique = len(distinct) > MIN_FREE_TEXTS and len(distinct) > 0.5 * len(
        present
    )
    return "text" if is_mostly_unique else "categorical"


def _are_dates(values: np.ndarray) -> bool:
    """Whether every value is an ISO 8601 date with year, month and day."""
    texts = pd.Series(values, dtype=object).astype(str)
    # pandas alone would take 2020 and 202001 for dates as well.
    if not texts.str.match(r"^\d{4}-\d{1,2}-\d{1,2}([T ]\d|$)").all():
        return False
    # In UTC: a column of local times has two offsets where summer time ends.
    times = pd.to_datetime(texts, errors="coerce", format="ISO8601", utc=True)
    return bool(times.notna().all())


def _is_numeric(values: pd.Series) -> bool:
    if pd.api.types.is_bool_dtype(values):
        return False
    return pd.api.types.is_numeric_dtype(values) or holds_numbers(values)


def _as_text(values: pd.Series) -> pd.Series:
    """Values as ``object`` of ``str``, missing kept, different values as different texts.

    Whole floats lose their ``.0``; times keep their resolution and their offset from UTC.
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
    """Return times in ISO 8601: dates where all are midnights, else to the unit that all need."""
    if times.dt.tz is not None:
        is_beyond_python = times.dt.tz_convert("UTC").dt.year > _LAST_LOCAL_YEAR
        if is_beyond_python.any():
            times = times.dt.tz_convert("UTC")
    if (times == times.dt.normalize()).all():
        return times.dt.strftime("%Y-%m-%d").tolist()
    nanoseconds = times.dt.microsecond * 1000 + times.dt.nanosecond
    unit = "nanoseconds"
    for coarser_unit, step in (
        ("seconds", 10**9),
        ("milliseconds", 10**6),
        ("microseconds", 10**3),
    ):
        if (nanoseconds % step == 0).all():
            unit = coarser_unit
            break
    return [time.isoformat(timespec=unit) for time in times]


def natural_order(values: set[str]) -> list[str]:
    """Return categories in the order that a column without declared ones gets.

    Numbers by value, the rest by text.

    Examples
    --------
    >>> natural_order({"10", "9"}), natural_order({"b", "10", "9"})
    (['9', '10'], ['10', '9', 'b'])
    """
    try:
        return sorted(values, key=lambda value: (float(value), value))
    except ValueError:
        return sorted(values)


def _all_whole(values: pd.Series) -> bool:
    floats = values[values.notna()].astype("float64").to_numpy()
    return bool(np.isfinite(floats).all() and np.all(floats == np.floor(floats)))


def _check_finite(values: pd.Series, name: str) -> None:
    bad = np.abs(values.to_numpy()) > MAX_ABS
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{name}: column {values.name!r} holds {values.iloc[row]} in row {row}; "
            f"AMLB needs finite numbers up to {MAX_ABS:.2g}",
            "replace infinite or huge values, or leave them empty",
        )
