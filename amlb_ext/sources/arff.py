"""ARFF to table, dense and sparse, through liac-arff.

Used for files on disk and for OpenML's data alike. The OpenML client's own decoder is not:
it narrows numbers to ``uint8`` (250 + 10 gives 4), turns True/False categories into booleans,
refuses DATE attributes, and fails on sparse files with nominal columns on pandas 3.
"""

from __future__ import annotations

import codecs
import re
import shlex
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.errors import SourceError
from amlb_ext.core.numbers import narrow_to_float64, parse_number
from amlb_ext.core.paths import PACKED_ENDINGS
from amlb_ext.core.task import ColumnType
from amlb_ext.sources.table import Table

#: Most values that sparse rows may stand for, what they leave out included.
MAX_CELLS = 200_000_000

# A quoted text may hold escaped quotes.
_QUOTED = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
_UNQUOTED_NAME = r"""[^\s\"'{}][^\s{}]*"""
#: ``@attribute NAME`` with the space behind it, and the declared type.
_DECLARATION = re.compile(
    rf"^(\s*@attribute\s+(?:{_QUOTED}|{_UNQUOTED_NAME})\s+)(\S.*)$", re.IGNORECASE
)
_DATE = re.compile(r"date(?:\s.*)?", re.IGNORECASE)
_CATEGORY = rf"""(?:{_QUOTED}\s*|[^\s,'"{{}}]+\s*|)"""
_CATEGORIES = re.compile(rf"\{{\s*{_CATEGORY}(?:,\s*{_CATEGORY})*\}}")
_ATTRIBUTE_LINE = re.compile(r"^\s*@attribute\b", re.IGNORECASE)
_DATA_LINE = re.compile(r"^\s*@data\b", re.IGNORECASE)


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

    date_positions: set[int] = set()
    try:
        with path.open(encoding="utf-8-sig") as file:
            decoded = _decode(_check_lines(file, path.name, date_positions))
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None
    except arff.ArffException as error:
        # str(error) itself fails where the line in question holds a per cent sign.
        problem = str(error.message).replace("%d", str(error.line), 1)
        raise _invalid_file(path.name, problem) from None
    except (ValueError, IndexError, OverflowError) as error:
        raise _invalid_file(path.name, str(error)) from None
    return _to_table(path.name, decoded, date_positions)


#: How files begin that are no text, whatever they are called.
_FORMS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"PK\x03\x04": "a .zip or an .xlsx",
    b"PAR1": "Parquet",
}


def not_utf8(path: Path, error: UnicodeDecodeError) -> SourceError:
    """Return the error for a text file in another encoding, which its first bytes may tell."""
    problem = f"byte {error.start} cannot be decoded"
    encoding = "latin1"
    with path.open("rb") as file:
        start = file.read(4)
    is_packed = path.suffix.lower() in PACKED_ENDINGS
    for begins, form in _FORMS.items():
        if start.startswith(begins) and not is_packed:
            return SourceError(
                f"{path.name} is no text: it begins like {form}",
                "give it the ending of what it is, e.g. .csv.gz, .zip, .xlsx or .parquet",
            )
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problem = "it begins like UTF-16"
        encoding = "utf-16"
    plain = Path(path.stem) if is_packed else path
    return SourceError(
        f"{path.name} is not UTF-8: {problem}",
        f"{'unpack it and ' if is_packed else ''}convert it: iconv -f {encoding} -t utf-8 "
        f"{shlex.quote(plain.name)} > utf8{plain.suffix}",
    )


def _invalid_file(name: str, problem: str) -> SourceError:
    return SourceError(
        f"{name} is not a valid ARFF file: {problem[:500]}",
        "mend that line, or save it as .csv",
    )


def _decode(lines: Iterator[str]) -> dict[str, Any]:
    """Decode with liac-arff, but parse numbers with our own function.

    NOTE[OWN] liac-arff cuts the fraction off the values of an INTEGER attribute, and makes long
    numbers equal that are not. Its decoder takes no other conversions, so they are put into the
    list that its rows are read with. For that it is read row by row.
    """
    import arff

    decoder = arff.ArffDecoder()
    decoded = decoder.decode(lines, return_type=arff.DENSE_GEN)
    for position, (_, declared) in enumerate(decoded["attributes"]):
        is_number = not isinstance(declared, list) and declared != "STRING"
        if is_number:
            decoder._conversors[position] = _parse_token
    try:
        rows = list(decoded["data"])
    except arff.ArffException as error:
        # It names the line only of errors within decode(), which has returned by now.
        error.line = decoder._current_line
        raise
    return {**decoded, "data": rows}


def _parse_token(token: str | int) -> float | int | Decimal:
    """Return the number of a field; one that a sparse row leaves out comes as the integer 0."""
    return parse_number(token) if isinstance(token, str) else float(token)


def _check_lines(
    lines: Iterable[str], file_name: str, date_positions: set[int]
) -> Iterator[str]:
    """Yield lines for liac-arff: DATE attributes as STRING, dangerous lines refused.

    Two things would keep liac-arff busy for ever. Its pattern of ``{a,b}`` tries every way to cut
    a malformed one, and sparse rows are written out with all that they leave out.

    Parameters
    ----------
    lines : iterable of str
    file_name : str
    date_positions : set of int
        Is given the positions of the DATE attributes while the header is read.

    Raises
    ------
    SourceError
    """
    n_attributes = n_sparse_rows = 0
    is_header = True
    for number, line in enumerate(lines, start=1):
        checked = line
        if not is_header:
            # A row in braces lists positions and values, and leaves out zeros.
            n_sparse_rows += line.lstrip().startswith("{")
            if n_sparse_rows * n_attributes > MAX_CELLS:
                raise SourceError(
                    f"{file_name} has sparse rows that stand for more than {MAX_CELLS:,} values",
                    "leave out columns or rows",
                )
        elif _DATA_LINE.match(line):
            is_header = False
        elif _ATTRIBUTE_LINE.match(line):
            declaration = _DECLARATION.match(line.rstrip())
            # liac-arff knows no dates; a DATE attribute has the format of its dates behind it.
            if declaration and _DATE.fullmatch(declaration[2]):
                date_positions.add(n_attributes)
                checked = declaration[1] + "STRING"
            elif _is_malformed(declaration, line):
                raise _invalid_file(
                    file_name, f"the list of categories in line {number} is malformed"
                )
            n_attributes += 1
        yield checked


def _is_malformed(declaration: re.Match[str] | None, line: str) -> bool:
    """Whether the declaration of an attribute is a list of categories that liac-arff refuses."""
    if declaration is None:
        return "{" in line
    return declaration[2].startswith("{") and not _CATEGORIES.fullmatch(declaration[2])


def _to_table(
    file_name: str, decoded: dict[str, Any], date_positions: set[int]
) -> Table:
    types: dict[str, ColumnType] = {}
    categories: dict[str, tuple[str, ...]] = {}
    columns: dict[str, pd.Series] = {}
    if not decoded["attributes"]:
        raise SourceError(
            f"{file_name} declares no attribute", "give a file with a header"
        )
    for position, (attribute, declared) in enumerate(decoded["attributes"]):
        name = str(attribute)
        values = pd.Series([row[position] for row in decoded["data"]], dtype=object)
        # liac-arff gives the categories of a nominal attribute as its type.
        if isinstance(declared, list):
            texts = [str(value) for value in declared if value is not None]
            is_boolean = set(texts) == {"True", "False"}
            types[name] = "boolean" if is_boolean else "categorical"
            categories[name] = tuple(dict.fromkeys(texts))
        elif str(declared).upper() == "STRING":
            types[name] = "date" if position in date_positions else "text"
        elif {*map(type, values)} <= {float, type(None)}:
            values = values.astype("float64")
        else:
            # integers and decimals: parsed as such because float64 may not hold them
            values = narrow_to_float64(values)
        columns[name] = values
    return Table(file_name, pd.DataFrame(columns), types, categories)
