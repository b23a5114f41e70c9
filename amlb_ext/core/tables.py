"""From a raw table to a :class:`~amlb_ext.core.task.Task`: types, checks, canonical form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, is_utf8
from amlb_ext.core.missing import missing_lookalikes
from amlb_ext.core.numbers import MAX_EXACT_INTEGER, FloatColumn, convert_to_float64, holds_numbers
from amlb_ext.core.task import Column, ColumnType, Fold, Kind, Origin, Task

#: Fewer rows than this cannot be split, fitted and searched in any useful way.
MIN_ROWS = 20
#: A target that is missing in a larger share of rows is refused.
MAX_MISSING_TARGET = 0.5
#: AMLB's encoded frameworks work in float32; what does not fit is refused.
MAX_ABS = float(np.finfo(np.float32).max)
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
    return next((name for name in names if name.lower() in ("target", "class")), names[-1])


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
    every = [target, *beside]
    _check_columns(frame, every, name)
    said = list(notes)
    frame, row_ids, folds = _drop_without_target(frame, every, name, tuple(folds), said)
    if len(frame) < MIN_ROWS:
        raise DataError(
            f"{name}: {len(frame)} rows with a target, at least {MIN_ROWS} are needed",
            "give a larger table",
        )
    final_kind, values, labels = _target(frame[target], name, kind, categories.get(target), said)
    said += _lookalike_notes(target, values) if labels else []
    features, columns = {}, []
    for column_name in frame.columns.drop(every):
        column, canonical, remarks = _column(
            frame[column_name], name, types.get(column_name), categories.get(column_name)
        )
        columns.append(column)
        said += remarks
        features[column_name] = canonical
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
        notes=tuple(said),
    )


def _check_columns(frame: pd.DataFrame, targets: list[str], name: str) -> None:
    for what, text in [("task", name), *(("column", str(column)) for column in frame.columns)]:
        if not is_utf8(text):
            raise DataError(f"the name of the {what} {text!r} is not UTF-8", "rename it")
    doubled = sorted({str(c) for c in frame.columns[frame.columns.duplicated()]})
    if doubled:
        raise DataError(
            f"{name}: the column name {doubled[0]!r} occurs more than once", "rename one of them"
        )
    target = next((t for t in targets if t not in frame.columns), None)
    if target is not None:
        shown = ", ".join(map(str, frame.columns[:10]))
        raise DataError(f"{name}: no column {target!r} (columns: {shown})", "use --target NAME")
    if frame.shape[1] <= len(targets):
        beside = " and ".join(map(repr, targets))
        raise DataError(f"{name}: the table has no feature beside {beside}", "add columns")


def _drop_without_target(
    frame: pd.DataFrame, targets: list[str], name: str, folds: tuple[Fold, ...], notes: list[str]
) -> tuple[pd.DataFrame, np.ndarray, tuple[Fold, ...]]:
    missing = frame[targets].isna().any(axis=1).to_numpy()
    kept = np.flatnonzero(~missing).astype(np.int64)
    if not missing.any():
        return frame.reset_index(drop=True), kept, folds
    share = missing.mean()
    if share > MAX_MISSING_TARGET:
        which = " or ".join(map(repr, targets))
        raise DataError(
            f"{name}: the target {which} is missing in {share:.0%} of the rows, "
            f"at most {MAX_MISSING_TARGET:.0%} are accepted",
            "choose another column with --target, or drop these rows yourself",
        )
    what = "without a target" if len(targets) == 1 else "that lack one of the targets"
    notes.append(f"{int(missing.sum())} rows {what} were dropped")
    new = np.cumsum(~missing) - 1
    folds = tuple(
        Fold(new[f.train[~missing[f.train]]], new[f.test[~missing[f.test]]]) for f in folds
    )
    return frame.loc[~missing].reset_index(drop=True), kept, folds


def _target(
    values: pd.Series,
    name: str,
    kind: Kind | str | None,
    known: Sequence[str] | None,
    notes: list[str],
) -> tuple[Kind, pd.Series, tuple[str, ...]]:
    numeric = _is_numeric(values)
    distinct = int(values.nunique())
    if distinct < 2:
        raise DataError(
            f"{name}: the target {values.name!r} has a single value", "choose another --target"
        )
    wanted = str(kind) if kind is not None else ""
    if not wanted:
        wanted = "regression" if numeric and distinct > 2 else "classification"
        if wanted == "regression" and distinct <= 20 and _all_whole(values):
            notes.append(
                f"the target has {distinct} distinct whole numbers and was taken as regression; "
                "--kind multiclass makes them classes"
            )
    if wanted == "regression":
        if not numeric:
            _check_gaps(values, name)
            raise DataError(
                f"{name}: the target {values.name!r} is text, regression needs numbers",
                "use --kind classification",
            )
        floats = convert_to_float64(values)
        _check_finite(floats.values, name)
        notes += _check_target_floats(floats, name)
        return Kind.REGRESSION, floats.values.reset_index(drop=True).copy(), ()  # no view
    if kind is None and known is None:
        _check_gaps(values, name)
    text = _as_text(values)
    present = set(text.dropna())
    order = [label for label in known or [] if label in present]
    order += natural_order(present.difference(order))
    final = Kind.BINARY if len(order) == 2 else Kind.MULTICLASS
    if wanted in ("binary", "multiclass") and wanted != final.value:
        notes.append(f"the target has {len(order)} classes: {final.value}, not {wanted}")
    series = pd.Series(pd.Categorical(text, categories=order), name=values.name)
    return final, series, tuple(order)


def _check_target_floats(floats: FloatColumn, name: str) -> list[str]:
    """Refuse a regression target whose values become equal as float64, or say what is lost."""
    if not floats.lost:
        return _rounding_notes(f"the target {floats.values.name!r}", floats)
    shown = f"the {floats.before} distinct values of the target {floats.values.name!r}"
    shown += f" are {floats.after} as 64-bit floats, which AMLB computes with"
    if floats.is_whole or floats.lost > MAX_MERGED * floats.before or floats.after < 2:
        raise DataError(
            f"{name}: {shown}",
            "subtract a constant from the column so that its values stay apart, choose another "
            "--target, or make them classes with --kind classification",
        )
    return [shown]


def _check_gaps(values: pd.Series, name: str) -> None:
    """Refuse a target of numbers that a text such as ``None`` makes text, and so classes."""
    texts = set(map(str, values.dropna().unique()))
    gaps = missing_lookalikes(texts)
    rest = pd.to_numeric(pd.Series(sorted(texts.difference(gaps)), dtype=object), errors="coerce")
    if gaps and len(rest) and rest.notna().all():
        count = int(values.isin(gaps).sum())
        raise DataError(
            f"{name}: the target {values.name!r} holds numbers and, in {count} rows, the text "
            f"{gaps[0]!r}, which is a value, to AMLB too, and not missing",
            "leave these fields empty, or make all of them classes with --kind classification",
        )


def _lookalike_notes(name: str, values: pd.Series) -> list[str]:
    """Say which texts of a column are values although they look like missing ones."""
    gaps = missing_lookalikes(values.cat.categories)
    gaps = [text for text in gaps if (values == text).any()]
    if not gaps:
        return []
    rest = pd.Series(values.cat.categories.difference(gaps), dtype=object)
    is_text_only_so = len(rest) > 0 and pd.to_numeric(rest, errors="coerce").notna().all()
    rows = int(values.isin(gaps).sum())
    said = f"column {name!r}: the text {gaps[0]!r} counts as a value in {rows} rows, as for AMLB"
    if is_text_only_so:
        said += ", and makes a column of numbers text"
    return [f"{said}; leave these fields empty if the value is missing"]


def _rounding_notes(what: str, floats: FloatColumn) -> list[str]:
    """Say that whole numbers are rounded, though none of them becomes equal to another."""
    if not floats.is_rounded:
        return []
    return [f"{what} holds whole numbers beyond 2**53, which are rounded to 64-bit floats"]


def _column(
    values: pd.Series, name: str, known: ColumnType | None, categories: Sequence[str] | None
) -> tuple[Column, pd.Series, list[str]]:
    """Return a feature's description, its canonical form, and what its reader should know."""
    column_name = str(values.name)
    kind = known or _infer_type(values)
    remarks = []
    if kind in ("numeric", "integer"):
        floats = convert_to_float64(values)
        _check_finite(floats.values, name)
        # Whole numbers too long for float64 are names of things, decimals are measurements.
        if known is not None or not (floats.lost and floats.is_whole):
            return *_number_column(column_name, kind, floats), _number_notes(column_name, floats)
        kind = "categorical"
        remarks = [
            f"column {column_name!r}: {floats.before} distinct whole numbers would be "
            f"{floats.after} as 64-bit floats, and are kept as categories; subtract a constant "
            "from the column to keep them as numbers"
        ]
    text = _as_text(values)
    present = set(text.dropna())
    order = list(dict.fromkeys(map(str, categories or [])))
    order += natural_order(present.difference(order))
    canonical = pd.Series(pd.Categorical(text, categories=order), name=column_name)
    column = Column(column_name, kind, tuple(order), bool(values.isna().any()))
    return column, canonical, remarks + _lookalike_notes(column_name, canonical)


def _number_column(name: str, kind: ColumnType, floats: FloatColumn) -> tuple[Column, pd.Series]:
    values = floats.values
    fits = _all_whole(values) and not values.abs().max() > MAX_EXACT_INTEGER
    final: ColumnType = "numeric" if kind == "integer" and not fits else kind
    return Column(name, final, (), bool(values.isna().any())), values.rename(name)


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
    if _is_numeric(values):
        return "integer" if values.notna().any() and _all_whole(values) else "numeric"
    present = values.dropna()
    if len(present) == 0:
        return "numeric"
    if isinstance(values.dtype, pd.CategoricalDtype):
        return "categorical"
    if set(map(str, present.unique())) <= {"True", "False"}:
        return "boolean"
    distinct = present.astype(str).unique()
    if _are_dates(distinct):
        return "date"
    if len(distinct) > 50 and len(distinct) > 0.5 * len(present):
        return "text"
    return "categorical"


def _are_dates(values: np.ndarray) -> bool:
    """Whether every value is an ISO 8601 date with year, month and day."""
    texts = pd.Series(values, dtype=object).astype(str)
    if not texts.str.match(r"^\d{4}-\d{1,2}-\d{1,2}([T ]\d|$)").all():
        return False
    # in UTC: a column of local times has two offsets where summer time ends
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
    present = values.notna().to_numpy()
    out = np.full(len(values), None, dtype=object)
    kept = values[present]
    if pd.api.types.is_float_dtype(kept):
        is_whole = _all_whole(kept)
        out[present] = [str(int(value) if is_whole else value + 0.0) for value in kept]
    elif pd.api.types.is_datetime64_any_dtype(kept):
        out[present] = _time_texts(kept)
    else:
        out[present] = [str(value) for value in kept]
    return pd.Series(out, name=values.name, dtype=object)


def _time_texts(times: pd.Series) -> list[str]:
    """Times in ISO 8601: dates where all are midnights, else to the unit that all of them need."""
    if times.dt.tz is not None and (times.dt.tz_convert("UTC").dt.year > _LAST_LOCAL_YEAR).any():
        times = times.dt.tz_convert("UTC")
    if (times == times.dt.normalize()).all():
        return times.dt.strftime("%Y-%m-%d").tolist()
    units = ("seconds", "milliseconds", "microseconds", "nanoseconds")
    fraction = times.dt.microsecond * 1000 + times.dt.nanosecond
    steps = (10**9, 10**6, 10**3, 1)
    unit = next(u for u, step in zip(units, steps, strict=True) if (fraction % step == 0).all())
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
