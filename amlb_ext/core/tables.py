"""From a raw table to a :class:`~amlb_ext.core.task.Task`: types, checks, canonical form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.core.task import Column, ColumnType, Fold, Kind, Origin, Task

#: Fewer rows than this cannot be split, fitted and searched in any useful way.
MIN_ROWS = 20
#: A target that is missing in a larger share of rows is refused.
MAX_MISSING_TARGET = 0.5
#: AMLB's encoded frameworks work in float32; what does not fit is refused.
MAX_ABS = float(np.finfo(np.float32).max)
#: Integers beyond this are not exact in float64.
MAX_EXACT_INTEGER = 2**53


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
        rows, a target with one value or missing too often.

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
    features, columns = {}, []
    for column_name in frame.columns.drop(every):
        column, canonical = _column(
            frame[column_name], name, types.get(column_name), categories.get(column_name)
        )
        columns.append(column)
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
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
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
            raise DataError(
                f"{name}: the target {values.name!r} is text, regression needs numbers",
                "use --kind classification",
            )
        floats = values.astype("float64")
        _check_finite(floats, name)
        return Kind.REGRESSION, floats.reset_index(drop=True).copy(), ()  # no view of the table
    text = _as_text(values)
    present = set(text.dropna())
    order = [label for label in known or [] if label in present]
    order += natural_order(present.difference(order))
    final = Kind.BINARY if len(order) == 2 else Kind.MULTICLASS
    if wanted in ("binary", "multiclass") and wanted != final.value:
        notes.append(f"the target has {len(order)} classes: {final.value}, not {wanted}")
    series = pd.Series(pd.Categorical(text, categories=order), name=values.name)
    return final, series, tuple(order)


def _column(
    values: pd.Series, name: str, known: ColumnType | None, categories: Sequence[str] | None
) -> tuple[Column, pd.Series]:
    column_name = str(values.name)
    kind = known or _infer_type(values)
    missing = bool(values.isna().any())
    if kind in ("numeric", "integer"):
        floats = pd.to_numeric(values, errors="coerce").astype("float64")
        _check_finite(floats, name)
        if kind == "integer" and not (
            _all_whole(floats) and floats.abs().max() <= MAX_EXACT_INTEGER
        ):
            kind = "numeric"
        missing = bool(floats.isna().any())
        return Column(column_name, kind, (), missing), floats.rename(column_name)
    text = _as_text(values)
    present = set(text.dropna())
    order = list(dict.fromkeys(map(str, categories or [])))
    order += natural_order(present.difference(order))
    canonical = pd.Series(pd.Categorical(text, categories=order), name=column_name)
    return Column(column_name, kind, tuple(order), missing), canonical


def _infer_type(values: pd.Series) -> ColumnType:
    if pd.api.types.is_bool_dtype(values):
        return "boolean"
    if pd.api.types.is_datetime64_any_dtype(values):
        return "date"
    if pd.api.types.is_numeric_dtype(values):
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
    return bool(pd.to_datetime(texts, errors="coerce", format="ISO8601").notna().all())


def _as_text(values: pd.Series) -> pd.Series:
    """Values as ``object`` of ``str``, missing kept; whole floats lose their ``.0``."""
    present = values.notna().to_numpy()
    out = np.full(len(values), None, dtype=object)
    kept = values[present]
    if pd.api.types.is_float_dtype(kept) and _all_whole(kept):
        kept = kept.astype("int64")
    elif pd.api.types.is_datetime64_any_dtype(kept):
        midnight = bool((kept == kept.dt.normalize()).all())
        kept = kept.dt.strftime("%Y-%m-%d" if midnight else "%Y-%m-%dT%H:%M:%S")
    out[present] = [str(value) for value in kept]
    return pd.Series(out, name=values.name, dtype=object)


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
    floats = values.dropna().astype("float64").to_numpy()
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
