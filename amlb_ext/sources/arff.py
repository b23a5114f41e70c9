"""ARFF to table, dense and sparse, through liac-arff.

Used for files on disk and for OpenML's data alike. The OpenML client's own decoder is not:
it narrows numbers to ``uint8`` (250 + 10 gives 4), turns True/False categories into booleans,
refuses DATE attributes, and fails on sparse files with nominal columns on pandas 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.errors import SourceError
from amlb_ext.core.numbers import narrow_to_float64, parse_number
from amlb_ext.core.task import ColumnType
from amlb_ext.sources.table import Table

#: Most values that sparse rows may stand for, what they leave out included.
MAX_CELLS = 200_000_000

_QUOTED = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_TYPE = re.compile(
    rf"^(\s*@attribute\s+(?:{_QUOTED}|[^\s\"'{{}}][^\s{{}}]*)\s+)(\S.*)$", re.IGNORECASE
)
_DATE = re.compile(r"date(?:\s.*)?", re.IGNORECASE)
_VALUE = rf"""(?:{_QUOTED}\s*|[^\s,'"{{}}]+\s*|)"""
_NOMINAL = re.compile(rf"\{{\s*{_VALUE}(?:,\s*{_VALUE})*\}}")
_ATTRIBUTE = re.compile(r"^\s*@attribute\b", re.IGNORECASE)
_DATA = re.compile(r"^\s*@data\b", re.IGNORECASE)


def read_arff(path: Path) -> Table:
    """Read an ARFF file.

    Nominal attributes become categorical columns with the declared categories in their order,
    ``{True, False}`` boolean, STRING text, DATE date (kept as written); ``?`` is missing, and
    what a sparse row leaves out is 0 or the first category. A fraction in an INTEGER attribute
    is kept.

    Parameters
    ----------
    path : Path
        A UTF-8 file.

    Returns
    -------
    Table

    Raises
    ------
    SourceError
        When the file cannot be read, is not UTF-8, or breaks the format; with the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.arff"
    ...     _ = path.write_text("@relation r\\n@attribute x {b,a}\\n@data\\na\\n?\\n")
    ...     read_arff(path).categories
    {'x': ('b', 'a')}
    """
    import arff

    dates: set[int] = set()
    try:
        with path.open(encoding="utf-8-sig") as handle:
            decoded = _decoded(_checked(handle, dates, path.name))
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None
    except arff.ArffException as error:
        # str(error) fails where the line in question holds a per cent sign
        raise _invalid(path.name, str(error.message).replace("%d", str(error.line), 1)) from None
    except (ValueError, IndexError, OverflowError) as error:
        raise _invalid(path.name, str(error)) from None
    return _to_table(path.name, decoded, dates)


def not_utf8(path: Path, error: UnicodeDecodeError) -> SourceError:
    """Return the error for a text file in another encoding."""
    return SourceError(
        f"{path.name} is not UTF-8 (byte {error.start} cannot be decoded)",
        f"convert it: iconv -f latin1 -t utf-8 {path.name} > utf8{path.suffix}",
    )


def _invalid(name: str, said: str) -> SourceError:
    return SourceError(
        f"{name} is no valid ARFF file: {said[:500]}", "mend that line, or save it as .csv"
    )


def _decoded(lines: Iterator[str]) -> dict[str, Any]:
    """Decode as liac-arff does, its numbers apart.

    NOTE[OWN]: liac-arff cuts the fraction off the values of an INTEGER attribute, and makes long
    numbers equal that are not. Its decoder takes no other conversions, so they are put into the
    list that its rows are read with. It is read row by row for that.
    """
    import arff

    decoder = arff.ArffDecoder()
    decoded = decoder.decode(lines, return_type=arff.DENSE_GEN)
    for position, (_, declared) in enumerate(decoded["attributes"]):
        if not isinstance(declared, list) and declared != "STRING":
            decoder._conversors[position] = _number
    try:
        return {**decoded, "data": list(decoded["data"])}
    except arff.ArffException as error:
        error.line = decoder._current_line
        raise


def _number(token: str | int) -> float | int | Decimal:
    return (
        parse_number(token) if isinstance(token, str) else float(token)
    )  # left out of a sparse row


def _checked(lines: Iterable[str], dates: set[int], name: str) -> Iterator[str]:
    """Yield the lines with DATE attributes as STRING; their positions go into ``dates``.

    What would keep liac-arff busy for ever is refused: its pattern of ``{a,b}`` tries every way
    to cut a malformed one, and sparse rows are written out with all that they leave out.
    """
    position, rows, header = 0, 0, True
    for number, line in enumerate(lines, start=1):
        if header and _DATA.match(line):
            header = False
        elif header and _ATTRIBUTE.match(line):
            match = _TYPE.match(line.rstrip())
            if match and _DATE.fullmatch(match[2]):
                dates.add(position)
                line = match[1] + "STRING"
            elif _is_malformed(match, line):
                raise _invalid(name, f"Bad list of categories, at line {number}.")
            position += 1
        elif not header and line.lstrip().startswith("{"):
            rows += 1
            if rows * position > MAX_CELLS:
                raise SourceError(
                    f"{name} has sparse rows that stand for more than {MAX_CELLS:,} values",
                    "leave out columns or rows",
                )
        yield line


def _is_malformed(match: re.Match[str] | None, line: str) -> bool:
    """Whether the declaration of an attribute is a list of categories that liac-arff refuses."""
    if match is None:
        return "{" in line
    return match[2].startswith("{") and not _NOMINAL.fullmatch(match[2])


def _to_table(file_name: str, decoded: dict[str, Any], dates: set[int]) -> Table:
    types: dict[str, ColumnType] = {}
    categories: dict[str, tuple[str, ...]] = {}
    names = [str(name) for name, _ in decoded["attributes"]]
    if not names:
        raise SourceError(f"{file_name} declares no attribute", "give a file with a header")
    columns = {}
    rows = decoded["data"]
    for position, (name, (_, declared)) in enumerate(
        zip(names, decoded["attributes"], strict=True)
    ):
        values = pd.Series([row[position] for row in rows], dtype=object)
        if isinstance(declared, list):
            known = tuple(dict.fromkeys(str(value) for value in declared if value is not None))
            types[name] = "boolean" if set(known) == {"True", "False"} else "categorical"
            categories[name] = known
        elif str(declared).upper() == "STRING":
            types[name] = "date" if position in dates else "text"
        else:
            is_exact = set(map(type, values)) <= {float, type(None)}
            values = values.astype("float64") if is_exact else narrow_to_float64(values)
        columns[name] = values
    return Table(file_name, pd.DataFrame(columns), types, categories)
