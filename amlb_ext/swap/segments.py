"""A user's own segments: which rows they hold, and how the loss changes in each.

Segments that are named are the powerful part: harm of 15 to 50 % of F's loss is shown in 85 % of
cases where its rows are named, and in 2 of 13 where they must be found.

Notation
--------
k : segments that are judged

Intervals are Bonferroni's over t, so that all k hold at once. The variance of a segment is that of
any group (:mod:`amlb_ext.swap.contrast`).
"""

from __future__ import annotations

import contextlib
import operator as op
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from amlb_ext.core.display import format_number, is_known
from amlb_ext.core.errors import ConfigError, DataError, suggest_nearest
from amlb_ext.core.unit import Unit
from amlb_ext.models.answers import label_text
from amlb_ext.models.columns import Align, align_rows
from amlb_ext.swap.contrast import FEWEST_CHANGED, Contrast
from amlb_ext.units.conditions import plain_number, short_number

#: Fewer rows of a segment are not judged.
FEWEST_ROWS = 30
#: Values of a column that each make a segment; a number with more is cut into quarters.
MOST_VALUES = 20
#: Distinct numbers that are values; more are cut.
FEW_NUMBERS = 10

#: Signs of a condition.
_SIGN = "<=|>=|==|!=|<|>|="
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
    "=": op.eq,
    "==": op.eq,
    "!=": op.ne,
}
#: "25 <= age" is "age >= 25"
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
#: From values and the name of their segment to the values in the order of the rows.
_Align = Callable[[Any, str], pd.Series]
#: Between two conditions.
_AND = re.compile(r"\s+and\s+")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Rows that a user names.

    Attributes
    ----------
    name : str
    inside : ndarray of shape (n,), bool
    """

    name: str
    inside: np.ndarray

    def take(self, rows: np.ndarray) -> Segment:
        """Return the segment among some of the rows, by position."""
        return Segment(name=self.name, inside=self.inside[rows])


def read_segments(
    given: Any, table: pd.DataFrame, *, beside: Any = None, align: Align = "auto"
) -> list[Segment]:
    """Return the segments that a user means.

    Parameters
    ----------
    given : str, mask, Series, DataFrame, mapping, or sequence of these
        A column (each of its values, or the quarters of a number); a condition as text (``age <
        25``, ``25 <= age < 40``, ``region = north``, several joined by ``and``); a mask of n
        booleans; a column that the table does not have, as a Series or a frame of n rows; or a
        mapping, from the name of a segment to a mask, a column or a condition, or from a column of
        numbers to the edges of its intervals.
    table : DataFrame of n rows
    beside : object of n rows, optional
        The rows as the user gave them, which a Series belongs to by its index; default: ``table``.
    align : {'auto', 'index', 'position'}
        See :func:`amlb_ext.models.columns.align_rows`.

    Raises
    ------
    ConfigError, DataError
        A column or a form that is not known, an index that does not tell which rows are meant, or
        a segment of all rows or of none.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [20, 30, 40, 50], "sex": ["f", "m", "f", "m"]})
    >>> [segment.name for segment in read_segments(["sex", "age < 25"], table)]
    ['sex = f', 'sex = m', 'age < 25']
    >>> region = pd.Series(["north", "south", "north", "north"], name="region")
    >>> [segment.name for segment in read_segments(region, table)]
    ['region = north', 'region = south']
    >>> [segment.name for segment in read_segments({"age": [30, 45]}, table)]
    ['age < 30', '30 <= age < 45', 'age >= 45']
    """
    if given is None:
        return []
    is_one = isinstance(given, str | Mapping | pd.DataFrame)
    if is_one or not isinstance(given, Iterable) or _is_of_rows(given, len(table)):
        given = [given]

    def aligned(values: Any, name: str) -> pd.Series:
        rows = table if beside is None else beside
        own = align_rows(values, rows, what=f"segment {name!r}", align=align)
        return pd.Series(own).reset_index(drop=True)

    segments: list[Segment] = []
    for number, each in enumerate(given, start=1):
        segments += _segments_of(each, table, number, aligned)
    names = [segment.name for segment in segments]
    for segment in segments:
        inside, name = segment.inside, segment.name
        if inside.all() or not inside.any():
            how_many = "all" if inside.all() else "none of the"
            raise DataError(
                f"segment {name!r} holds {how_many} {len(inside)} rows",
                "look at the column's values, or leave the segment out",
            )
        if names.count(name) > 1:
            raise ConfigError(
                f"two segments are called {name!r}", "name them: {name: mask}"
            )
    return segments


def _segments_of(
    given: Any, table: pd.DataFrame, number: int, aligned: _Align
) -> list[Segment]:
    if isinstance(given, Segment):
        return [given]
    if isinstance(given, Mapping | pd.DataFrame):
        return [
            segment
            for name, each in given.items()
            for segment in _named_segments(str(name), each, table, aligned)
        ]
    if isinstance(given, str):
        if given in table.columns:
            return _of_column(given, table[given])
        return [Segment(name=given, inside=_meets(given, table))]
    name = getattr(given, "name", None) or f"segment {number}"
    return _of_values(str(name), given, aligned)


def _named_segments(
    name: str, given: Any, table: pd.DataFrame, aligned: _Align
) -> list[Segment]:
    if isinstance(given, str):
        return [Segment(name=name, inside=_meets(given, table))]
    is_of_rows = np.ndim(given) == 1 and len(given) == len(table)
    if name in table.columns and not is_of_rows:
        return _intervals(name, given, table[name])
    return _of_values(name, given, aligned)


def _is_of_rows(given: Any, n: int) -> bool:
    """Whether a mask or a column is given, and no sequence of segments."""
    if isinstance(given, list | tuple):
        are_flags = all(isinstance(each, bool | np.bool_) for each in given)
        return are_flags and len(given) > 0
    is_flat = np.ndim(given) == 1
    return is_flat and (len(given) == n or np.asarray(given).dtype == bool)


def _of_values(name: str, given: Any, aligned: _Align) -> list[Segment]:
    """Return the segment of a mask, or those of a column that the table does not have."""
    if np.ndim(given) != 1:
        raise ConfigError(
            f"segment {name!r} is of type {type(given).__name__}",
            "give a column, a condition such as 'age < 25', or a mask of booleans",
        )
    values = aligned(given, name)
    # truth values may come as objects, or in a type that knows missing ones
    is_mask = pd.api.types.is_bool_dtype(values.infer_objects())
    if is_mask and not values.isna().any():
        return [Segment(name=name, inside=values.to_numpy(dtype=bool))]
    return _of_column(name, values)


def _of_column(name: str, column: pd.Series) -> list[Segment]:
    """Return a segment for each value of a column, or for each quarter of a number."""
    is_missing = column.isna().to_numpy()
    is_number = pd.api.types.is_numeric_dtype(column)
    if is_number and column.nunique() > FEW_NUMBERS:
        edges = np.unique(column.quantile([0.25, 0.5, 0.75]))
        least = column.min()
        # of a number that is mostly its smallest value, the others are one segment
        segments = _intervals(name, edges[edges > least], column, least)
    else:
        values = column[~is_missing].unique()
        if len(values) > MOST_VALUES:
            raise ConfigError(
                f"column {name!r} has {len(values)} values, too many to be segments",
                f"give conditions such as {name + ' = ' + str(values[0])!r}",
            )
        segments = []
        for value in sorted(values, key=str):
            inside = (column == value).fillna(False).to_numpy(dtype=bool)
            own_name = f"{name} = {_quoted(label_text(value))}"
            segments.append(Segment(name=own_name, inside=inside))
    if is_missing.any():
        segments.append(Segment(name=f"{name} is missing", inside=is_missing))
    return segments


def _quoted(text: str) -> str:
    """Return a value as a condition writes it: in quotes where its ends or ``and`` need them."""
    is_plain = text == text.strip(" \t\n'\"") and text and not _AND.search(text)
    quote = "'" if '"' in text else '"'
    return text if is_plain else f"{quote}{text}{quote}"


def _intervals(
    name: str, given: Any, column: pd.Series, least: float | None = None
) -> list[Segment]:
    """Return the intervals of a column of numbers between some edges; above ``least`` for none."""
    if least is not None and not len(given):
        text = plain_number(least)
        return [
            Segment(name=f"{name} {sign} {text}", inside=_compare(column, sign, text))
            for sign in ("=", ">")
        ]
    try:
        edges = np.asarray(list(given), dtype=float)
        numbers = column.to_numpy(dtype=float, na_value=np.nan)
    except (TypeError, ValueError):
        raise ConfigError(
            f"segment {name!r} needs a column of numbers and the edges of intervals",
            f"give {{{name!r}: [25, 40]}}, or a condition",
        ) from None
    if len(edges) == 0 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise ConfigError(
            f"the edges of {name!r} are {list(given)}",
            "give numbers in ascending order",
        )
    texts = [plain_number(edge) for edge in edges]
    if least is not None:
        # quartiles may lie anywhere between two values
        texts = [short_number(edge, numbers.__lt__) for edge in edges]
    names = [f"{name} < {texts[0]}"]
    names += [f"{low} <= {name} < {high}" for low, high in pairwise(texts)]
    names.append(f"{name} >= {texts[-1]}")
    # a missing number is in none
    place = np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers, "right"))
    segments = [
        Segment(name=text, inside=place == number) for number, text in enumerate(names)
    ]
    return [segment for segment in segments if segment.inside.any()]


def _meets(text: str, table: pd.DataFrame) -> np.ndarray:
    """Return which rows meet a condition in words."""
    columns = {str(name).strip(): table[name] for name in table.columns}
    condition = _condition_pattern(columns)
    inside = np.ones(len(table), dtype=bool)
    rest = text.strip()
    while rest:
        found = condition.match(rest)
        if found is None:
            raise _no_condition(rest, list(columns))
        column = columns[found["name"]]
        if found["missing"]:
            inside &= column.isna().to_numpy()
        if found["left"]:
            inside &= _compare(column, _TURNED[found["turned"]], found["left"])
        if found["value"]:
            inside &= _compare(column, found["sign"], found["value"])
        rest = rest[found.end() :]
    return inside


def _condition_pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return what one condition looks like, with an ``and`` behind it.

    Columns are found by their names, which may hold blanks, signs and ``and``. A value that holds
    ``and`` stands in quotes.
    """
    longest_first = sorted(names, key=len, reverse=True)
    name = "|".join(map(re.escape, longest_first)) or "(?!)"
    left = r"(?P<left>[^<>=!]+?)\s*(?P<turned><=|>=|<|>)\s*"
    # what is compared by < holds no sign; what is equal may be <=50K
    text = r"""(?P<value>"[^"]*"|'[^']*'|(?(equal).+?|[^<>=]+?))"""
    value = rf"(?P<sign>(?P<equal>==?|!=)|<=|>=|<|>)\s*{text}"
    # a name alone is no condition
    alone = r"(?(left)|(?!))"
    return re.compile(
        rf"(?:{left})??(?P<name>{name})\s*(?:{value}|(?P<missing>is missing)|{alone})"
        r"(?:\s+and\s+|\s*$)"
    )


def _no_condition(text: str, names: list[str]) -> ConfigError:
    compared = re.match(rf"(.+?)\s*(?:{_SIGN})", text)
    if compared is None or compared[1] in names:
        remedy = f"conditions are joined by 'and' alone; {suggest_nearest(text, names)}"
        return ConfigError(f"{text!r} is no column and no condition", remedy)
    remedy = suggest_nearest(compared[1], names)
    return ConfigError(f"segment {text!r}: there is no column {compared[1]!r}", remedy)


def _compare(column: pd.Series, operator: str, text: str) -> np.ndarray:
    """Return which values of a column compare so with a text; missing ones do not."""
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    value: Any = text[1:-1] if is_quoted else text
    known = column.notna().to_numpy()
    is_number = pd.api.types.is_numeric_dtype(column)
    if operator in ("=", "==", "!=") and not pd.api.types.is_datetime64_any_dtype(
        column
    ):
        # of texts 01 and 1 are two values
        texts = column.astype(object).map(label_text, na_action="ignore")
        is_equal = (texts == value).to_numpy(dtype=bool, na_value=False)
        if is_number and not is_equal.any():
            with contextlib.suppress(ValueError):
                are_equal = column == _as_number(value)
                is_equal = are_equal.to_numpy(dtype=bool, na_value=False)
        if not is_equal.any():
            raise ConfigError(
                f"no value of column {column.name!r} is {value!r}",
                "write a value as it stands in the table; conditions are joined by 'and' alone",
            )
        return np.asarray((~is_equal if operator == "!=" else is_equal) & known)
    try:
        values = column if is_number else _ordered_values(column)
        if pd.api.types.is_datetime64_any_dtype(values):
            if not text.strip("\"' ")[:1].isdigit():
                # pandas knows "today", too, which is another day tomorrow
                raise ValueError(text)
            value = pd.to_datetime(value, format="ISO8601")
            if values.dt.tz is not None and value.tz is None:
                value = value.tz_localize(values.dt.tz)
        else:
            value = _as_number(value)
        compared = _OPERATORS[operator](values, value)
    except (TypeError, ValueError):
        raise ConfigError(
            f"column {column.name!r} cannot be compared with {text!r} by {operator}",
            "compare numbers and dates by <, texts by =; write a date as 2024-03-31; conditions "
            "are joined by 'and' alone",
        ) from None
    return np.asarray(compared.to_numpy(dtype=bool, na_value=False) & known)


def _ordered_values(column: pd.Series) -> pd.Series:
    """Return dates or numbers, which texts and objects may stand for, too.

    Raises
    ------
    TypeError, ValueError
        They are neither numbers, nor dates as ISO 8601 writes them.
    """
    # days of Arrow count as dates, too, and have no zone that could be asked
    if pd.api.types.is_datetime64_any_dtype(column) and hasattr(column.array, "tz"):
        return column
    objects = column.astype(object)
    try:
        return pd.to_numeric(objects)
    except (TypeError, ValueError):
        return pd.to_datetime(objects, format="ISO8601")


def _as_number(text: str) -> int | float:
    """Return a number; a whole one exactly, however long."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def judge_segments(
    segments: Sequence[Segment],
    contrasts: Mapping[str, Contrast],
    level: float = 0.95,
) -> pd.DataFrame:
    """Return how each model changes the loss in each segment, with simultaneous intervals.

    Parameters
    ----------
    segments : sequence of Segment
    contrasts : mapping of str to Contrast
        By model; the intervals of one model hold together.
    level : float

    Returns
    -------
    DataFrame
        One row for each segment and model: ``rows``, their ``share`` of all, the mean ``loss_f``
        and ``loss``, their ``difference`` with its interval, ``verdict`` (``better``, ``worse``,
        ``not shown``, ``too few rows`` or ``groups``, ``too few changes``: fewer than ten of
        them), and
        ``rows_needed`` of the segment for a verdict with a chance of 80 %, were the difference
        true; for an interval where there is none; NaN where there is a verdict.
    """
    records = []
    n_judged = sum(int(each.inside.sum()) >= FEWEST_ROWS for each in segments)
    tail = (1 - level) / max(1, n_judged)
    for segment in segments:
        inside = segment.inside.astype(float)
        n_inside = int(inside.sum())
        clusters = None
        for model, contrast in contrasts.items():
            change = contrast.change(inside)
            clusters = contrast.clusters
            se, loss_f = change.se, contrast.loss_of_f(segment.inside)
            quantile = float(student.ppf(1 - tail / 2, change.df))
            record: dict[str, Any] = {
                "segment": segment.name,
                "model": model,
                "rows": n_inside,
                "share": n_inside / len(inside),
                "loss_f": loss_f,
                "loss": loss_f + change.value,
                "difference": change.value,
                "low": change.value - quantile * se,
                "high": change.value + quantile * se,
                "verdict": "not shown",
                "rows_needed": float("nan"),
            }
            n_units = n_inside
            if clusters is not None:
                n_units = len(np.unique(clusters[segment.inside]))
            share_changed = float((contrast.d[segment.inside] != 0).mean())
            if n_units < FEWEST_ROWS:
                what = "rows" if n_inside < FEWEST_ROWS else "groups"
                record |= {"low": np.nan, "high": np.nan, "verdict": f"too few {what}"}
                # of rows in groups as many as so many groups have
                needed = np.ceil(FEWEST_ROWS * n_inside / n_units)
                record["rows_needed"] = float(needed)
            elif not np.isfinite(se):
                record |= {"low": np.nan, "high": np.nan, "verdict": "too few changes"}
                if share_changed:
                    needed = np.ceil(FEWEST_CHANGED / share_changed)
                    record["rows_needed"] = float(needed)
            elif record["low"] > 0:
                record["verdict"] = "worse"
            elif record["high"] < 0:
                record["verdict"] = "better"
            elif se > 0 or change.value != 0:
                record["rows_needed"] = rows_for(change.value, se, n_inside, tail)
            records.append(record)
    return pd.DataFrame(records)


def unjudged_text(row: Mapping[str, Any], unit: Unit) -> str:
    """Return why a segment is not judged, by its row of :func:`judge_segments`; empty where it is.

    Examples
    --------
    >>> from amlb_ext.core.unit import ROW
    >>> unjudged_text({"verdict": "too few rows", "rows_needed": 30.0}, ROW)
    'too few rows: 30 are needed'
    >>> unjudged_text({"verdict": "too few changes", "rows_needed": float("nan")}, ROW)
    'no change on these rows, which is too few to tell'
    """
    needed = format_number(row["rows_needed"])
    if row["verdict"] == "too few rows":
        return f"too few {unit.many}: {needed} are needed"
    if row["verdict"] == "too few groups":
        return f"too few {unit.groups}: {FEWEST_ROWS} are needed"
    if row["verdict"] != "too few changes":
        return ""
    if not is_known(row["rows_needed"]):
        return f"no change on these {unit.many}, which is too few to tell"
    return f"too few {unit.many} change: some {needed} {unit.many} are needed"


def rows_for(value: float, se: float, n: int, tail: float, power: float = 0.8) -> float:
    """Return how many rows would decide, were an estimate the truth; infinite for no difference.

    Parameters
    ----------
    value, se : float
        The estimate on n rows.
    n : int
    tail : float
        Chance of a false verdict, both sides together.
    power : float

    Examples
    --------
    >>> rows_for(0.1, 0.1, 100, 0.05)  # (1.96 + .84)^2 times as many
    785.0
    """
    if value == 0 or not np.isfinite(se):
        return float("inf")
    errors = student.ppf(1 - tail / 2, 1e6) + student.ppf(power, 1e6)
    return float(np.ceil(n * (errors * se / value) ** 2))
