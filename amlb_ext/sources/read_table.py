"""A file on disk to a table, by its ending; text files with separators are read here."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from amlb_ext.core.errors import DataError, SourceError, is_utf8
from amlb_ext.core.frames import NA_TEXTS, check_names, plain_frame
from amlb_ext.core.numbers import (
    LONG_NUMBER,
    narrow_to_float64,
    parse_number,
    read_written_numbers,
    replace_as_objects,
)
from amlb_ext.core.packed import COPY_BYTES, UnpackLimits, lend_unpacked
from amlb_ext.core.paths import (
    PACKED_ENDINGS,
    TABLE_ENDINGS,
    check_file,
    table_ending,
)
from amlb_ext.sources.arff import not_utf8, read_arff
from amlb_ext.sources.table import Table
from amlb_ext.sources.typed_files import (
    MAX_CELLS,
    check_cells,
    read_arrow,
    read_excel,
    read_json_lines,
    read_parquet,
)


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written, as far as the user says; other files say it themselves.

    Attributes
    ----------
    separator : str, optional
        Between two fields; None to take what the header has.
    decimal : str
        The decimal sign of numbers, ``.`` or ``,``. With a comma, a column whose numbers show that
        they have a decimal point is read so.
    texts : frozenset of str
        Columns to keep as the file writes them.
    names : frozenset of str
        Columns of ``texts`` in which only an empty field is missing: ``NA`` is a name, too.
    max_file_size : float
        Most GiB that come out of a packed file of any format; ``--max-file-size``.
    """

    separator: str | None = None
    decimal: str = "."
    texts: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    max_file_size: float = 20.0

    @property
    def limits(self) -> UnpackLimits:
        """What may come out of a packed file."""
        return UnpackLimits(max_bytes=int(self.max_file_size * 2**30))


#: How a CSV file is read, whatever pandas is installed.
_CSV: dict[str, Any] = {
    # Excel puts a byte order mark first, which would be part of the first column's name.
    "encoding": "utf-8-sig",
    # a packed file is unpacked here, under its own name
    "compression": None,
    # Else pandas takes the first column for an index where rows end in a comma.
    "index_col": False,
    "keep_default_na": False,
    "na_values": sorted(NA_TEXTS),
}
#: Separators of other CSV dialects, and what they are called.
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
#: What may be a number without being named as one.
_NUMBER_ALONE = re.compile(r"\s*[+-]?[\d.,]+(?:[eE][+-]?\d+)?\s*", re.ASCII)
_ROWS_AT_ONCE = 50_000
#: A text of fewer characters has no number that :data:`LONG_NUMBER` finds.
_SHORTEST_LONG_NUMBER = 16


def read_table(path: Path, csv_format: CsvFormat | None = None) -> Table:
    """Read a table by its file ending.

    Parameters
    ----------
    path : Path
        One of :data:`READERS`, as it stands or packed. Text files are UTF-8, with a header.
    csv_format : CsvFormat, optional
        Fields are separated by commas, or by semicolons, tabs or bars where the header has no
        comma; a note tells which.

    Returns
    -------
    Table
        CSV values are typed as pandas does, which is also how AMLB reads them: ``007`` is the
        number 7 (which is noted), and empty fields and the texts of
        :data:`~amlb_ext.core.frames.NA_TEXTS` are missing. Numbers that are different but the
        same in ``float64`` stay exact, as ``object``.

    Raises
    ------
    SourceError
        No such file, an unknown ending, an empty or damaged file, another encoding.
    DataError
        Column names that occur twice, fields beyond the header, values that are no scalars.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     _ = path.write_text("x,y\\n1,a\\n2,\\n")
    ...     read_table(path).frame["y"].isna().tolist()
    [False, True]
    """
    csv_format = csv_format or CsvFormat()
    ending = check_table_file(path)
    if path.suffix.lower() not in PACKED_ENDINGS:
        return READERS[ending](path, csv_format)
    with lend_unpacked(path, csv_format.limits) as (unpacked, ending):
        _refuse_empty(unpacked)
        return READERS[ending](unpacked, csv_format)


def check_table_file(path: Path) -> str:
    """Return the ending of a table's file, if it is a file with something in it.

    Raises
    ------
    SourceError
        No such file, an unknown ending, an empty file.
    """
    ending = table_ending(path.name)
    if not ending:
        raise SourceError(
            f"{path.name} has the ending {path.suffix or 'none'!r}",
            f"tables end in {', '.join(TABLE_ENDINGS)}, or so and in "
            f"{', '.join(PACKED_ENDINGS)}",
        )
    if not is_utf8(str(path)):
        raise SourceError(
            f"the name of the file {path} is not UTF-8", "rename the file or folder"
        )
    check_file(path)
    if not path.is_file():
        raise SourceError(f"{path} is not a file", "give the path of one table")
    _refuse_empty(path)
    return ending


def _refuse_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        raise SourceError(
            f"{path.name} is empty", "give a table with a header and rows"
        )


def _read_csv(path: Path, csv_format: CsvFormat) -> Table:
    notes: tuple[str, ...] = ()
    try:
        _refuse_web_page(path)
        separator = csv_format.separator
        header = _read_header(path, separator or ",")
        if separator is None:
            separator = _find_separator(header)
            if separator != ",":
                header = _read_header(path, separator)
                notes = (f"fields are separated by {_OTHER_SEPARATORS[separator]}",)
        first = "".join(header[:1])
        if first.startswith("sep=") or (first.startswith("#") and len(header) == 1):
            raise DataError(
                f"the first line of {path.name} begins with {first!r}, and names no columns",
                "remove it: the first line names the columns",
            )
        # Looked at before pandas does, which would rename the second one, "a.1".
        check_names(filter(None, header), path.name)
        _check_padding(path, len(header))
        how = {
            **_CSV,
            "sep": separator,
            "decimal": csv_format.decimal,
            "dtype": {name: str for name in header if name in csv_format.texts},
        }
        if csv_format.names:
            how["na_values"] = {
                name: [""] if name in csv_format.names else _CSV["na_values"]
                for name in header
            }
        # pandas only warns of fields beyond the header, and drops them
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, low_memory=False, **how)
        frame = _mark_missing_texts(frame, csv_format.names)
        frame, number_notes = _restore_exact_numbers(frame, path, how)
        if csv_format.decimal == ",":
            frame = _read_other_numbers(frame, csv_format.texts)
        notes += number_notes
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except pd.errors.ParserWarning:
        raise DataError(
            f"{path.name} has rows with more fields than the header",
            "name every column in the first line",
        ) from None
    # errors of pandas' parser among them
    except (csv.Error, ValueError) as error:
        problem = str(error).strip().replace("\n", " ")
        raise SourceError(
            f"{path.name} is not a valid CSV file: {problem}",
            "use commas, one header line, and quotes around fields with commas; or name the "
            "separator, e.g. --sep ';'",
        ) from None
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from None
    frame, plain_notes = plain_frame(frame, what=path.name)
    return Table(path.name, frame, notes=(*notes, *plain_notes))


def _mark_missing_texts(frame: pd.DataFrame, names: frozenset[str]) -> pd.DataFrame:
    """Mark empty fields as missing where pandas left them texts.

    It does so in a column of whole numbers up to 2**64 that also has gaps.
    """
    for name in frame.columns.difference(list(names), sort=False):
        if pd.api.types.is_numeric_dtype(frame[name]):
            continue
        is_missing = frame[name].isin(NA_TEXTS)
        if is_missing.any():
            frame[name] = frame[name].astype(object).where(~is_missing, None)
    return frame


def _restore_exact_numbers(
    frame: pd.DataFrame, path: Path, how: dict[str, Any]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Replace columns of numbers that ``float64`` makes equal, and note numbers that lost zeros.

    The file is read as text a second time only where it holds long numbers or leading zeros.
    """
    # to pandas, booleans are numbers too
    numbers = frame.select_dtypes("number", exclude="bool").columns
    if numbers.empty or not may_hold_odd_numbers(path):
        return frame, ()
    # of each column: long numbers as the file writes them, by their row; texts such as 007
    exact_by_row: dict[str, dict[int, Any]] = {name: {} for name in numbers}
    with_zeros: dict[str, list[str]] = {name: [] for name in numbers}
    positions = frame.columns.get_indexer(numbers).tolist()
    options = {**how, "dtype": str, "usecols": positions, "chunksize": _ROWS_AT_ONCE}
    for chunk in pd.read_csv(path, **options):
        for name in numbers:
            texts = chunk[name].dropna()
            if how["decimal"] == ",":
                texts = texts.str.replace(",", ".", regex=False)
            # pandas keeps whole numbers exact, so only columns of floats have lost anything
            if frame[name].dtype == "float64":
                # by length first: the pattern is slow, and few fields are long
                long = texts[texts.str.len() >= _SHORTEST_LONG_NUMBER]
                long = long[long.str.contains(LONG_NUMBER.pattern)]
                exact_by_row[name] |= long.map(parse_number).to_dict()
            with_zeros[name] += texts[texts.str.match(r"\s*[+-]?0\d")].tolist()
    notes = []
    for name in numbers:
        if exact_by_row[name]:
            is_long = frame.index.to_series().isin(exact_by_row[name])
            exact = list(exact_by_row[name].values())
            restored = replace_as_objects(frame[name], is_long, exact)
            frame[name] = narrow_to_float64(restored)
        if with_zeros[name]:
            first = with_zeros[name][0].strip()
            notes.append(
                f"column {name!r}: {len(with_zeros[name])} values with leading zeros, "
                f"{first!r} the first, are read as numbers, as AMLB reads "
                "them; put a letter before them to keep them as texts"
            )
    return frame, tuple(notes)


def _read_other_numbers(frame: pd.DataFrame, texts: frozenset[str]) -> pd.DataFrame:
    """Read numbers with a decimal point, or with points between thousands, in a file with commas.

    pandas leaves them texts, since it knows one decimal sign for all columns.
    """
    for name in frame.columns.difference(list(texts)):
        values = frame[name]
        distinct = values.dropna().unique()
        if not all(
            isinstance(cell, str) and _NUMBER_ALONE.fullmatch(cell) for cell in distinct
        ):
            continue
        numbers = read_written_numbers(distinct, ",").numbers
        if distinct.size and None not in numbers.values():
            exact = [numbers[text] for text in values.dropna()]
            objects = replace_as_objects(values, values.notna(), exact)
            frame[name] = narrow_to_float64(objects)
    return frame


def _refuse_web_page(path: Path) -> None:
    with path.open("rb") as handle:
        start = handle.read(1024).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise SourceError(
            f"{path.name} is a web page (HTML), not a table",
            "open it in a browser: a server may have answered with a login or an error page; "
            "download the table itself",
        )


def _read_header(path: Path, separator: str) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        return next(csv.reader(handle, delimiter=separator), [])


def _check_padding(path: Path, n_columns: int) -> None:
    """Refuse short lines below a header so long that their missing fields fill the memory."""
    # a line has a byte at least
    if n_columns * path.stat().st_size <= MAX_CELLS:
        return
    with path.open("rb") as handle:
        n_lines = sum(
            block.count(b"\n") for block in iter(partial(handle.read, COPY_BYTES), b"")
        )
    check_cells(path, n_lines, n_columns)


def _find_separator(header: list[str]) -> str:
    """Return the separator of a header that was read with commas."""
    is_one = len(header) == 1
    found = [other for other in _OTHER_SEPARATORS if is_one and other in header[0]]
    return found[0] if found else ","


#: File ending to reader.
READERS: dict[str, Callable[[Path, CsvFormat], Table]] = {
    ".csv": _read_csv,
    ".parquet": lambda path, how: read_parquet(path, limits=how.limits),
    ".arff": lambda path, _: read_arff(path),
    ".tsv": lambda path, how: _read_csv(
        path, replace(how, separator=how.separator or "\t")
    ),
    ".xlsx": lambda path, how: read_excel(path, how.limits),
    ".feather": lambda path, how: read_arrow(path, how.limits),
    ".arrow": lambda path, how: read_arrow(path, how.limits),
    ".jsonl": lambda path, _: read_json_lines(path),
    ".ndjson": lambda path, _: read_json_lines(path),
}


# Whether a text file may hold numbers that need a second look.

_BLOCK_BYTES = 1 << 22
#: The last line of a block is seen again at the head of the next, or the end of a long one.
_OVERLAP_BYTES = 512
#: A long number, as :data:`amlb_ext.core.numbers.LONG_NUMBER` has it, or a field such as ``007``.
_ODD_NUMBER = (
    r"[^\d.]0*(?:[1-9]\d{15}|\.?0*[1-9](?:\.?\d){17})"
    r"|[,;|\"\n \t][+-]?0\d+(?:\.\d*)?[,;|\"\r\n \t]"
)


def may_hold_odd_numbers(path: Path) -> bool:
    """Whether a file may hold long numbers or numbers with leading zeros.

    Numbers inside texts count too: yes means to look closely, no is certain. Most files hold
    neither, and are to be read as fast as before, so Arrow's expressions search them: Python's own
    take over ten times as long.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     for text in ("0.012345678901234567", "007", "1234567890123456"):
    ...         _ = path.write_text(f"x\\n{text}\\n")
    ...         may_hold_odd_numbers(path)
    False
    True
    True
    """
    tail = b"\n"
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            text = tail + block
            # a field ends with its line, the last one of a block too
            content = pa.scalar(text + b"\n", pa.binary())
            if pc.match_substring_regex(content, pattern=_ODD_NUMBER).as_py():
                return True
            last_line = text.rfind(b"\n")
            tail_start = max(last_line, len(text) - _OVERLAP_BYTES)
            tail = text[tail_start:]
    return False
