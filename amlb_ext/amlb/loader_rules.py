"""AMLB's loader rules replayed without AMLB: what a train/test pair must satisfy.

AMLB reads the training file with pandas 1.5, makes text columns (and a class target) ``category``,
and reads the test file with those types, by position (``datasets/file.py``); encoded frameworks
then map normalised categories with encoders of the training file (``data.py``). Each rule was
tried on AMLB v2.1.7; ``tests/suite/test_amlb.py`` repeats that where AMLB can be had.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import (
    BAD_NAME,
    is_boolean,
    is_number,
    labels_survive,
    normalize_text,
)
from amlb_ext.core.missing import NA_TEXTS, reads_as_missing
from amlb_ext.core.tables import MAX_ABS
from amlb_ext.core.task import Kind

Read = Literal["integer", "float", "boolean", "text"]


def check_pair(
    train_csv: Path,
    test_csv: Path,
    target: str,
    type: str,
    *,
    read_train: Callable[[Path], pd.DataFrame | str] | None = None,
) -> list[str]:
    """Return what AMLB, or a framework in it, would stumble over.

    Parameters
    ----------
    train_csv, test_csv : Path
    target : str
        Name of the target column in the files.
    type : str
        ``binary``, ``multiclass`` or ``regression``, as in the benchmark definition.
    read_train : callable, optional
        In place of :func:`read_fields`, one that remembers: test files share training files.

    Returns
    -------
    list of str
        Violations, one sentence each; empty when the pair is good.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     train, test = Path(folder, "train.csv"), Path(folder, "test.csv")
    ...     _ = train.write_text("n,c,y\\n1,a,no\\n2,b,yes\\n")
    ...     _ = test.write_text("n,c,y\\n1.5,,no\\n")
    ...     for sentence in check_pair(train, test, "y", "binary"):
    ...         print(sentence)
    Column 'n' is integer in the training file, the test file holds '1.5'.
    Column 'c' is missing in row 0 of the test file but nowhere in the training file.
    """
    if type not in [kind.value for kind in Kind]:
        return [f"The type {type!r} is none of binary, multiclass, regression."]
    train, test = (read_train or read_fields)(train_csv), read_fields(test_csv)
    if isinstance(train, str) or isinstance(test, str):
        return [next(said for said in (train, test) if isinstance(said, str))]
    if target not in train.columns:
        return [f"The target {target!r} is no column of {train_csv.name}."]
    if list(train.columns) != list(test.columns):
        return ["The test file's columns are not the training file's, in the same order."]
    if len(train) < 2:
        return [f"The training file has {len(train)} rows, at least 2 are needed."]
    if test.empty:
        return ["The test file has no rows."]
    out = [
        f"The column name {name!r} holds characters that break frameworks."
        for name in train.columns
        if not name or BAD_NAME.search(name)
    ]
    if len(train.columns) < 2:
        out.append("There is no feature beside the target.")
    for name in train.columns:
        out += _check_doubt(name, (train[name], test[name]))
    for name in train.columns.drop(target):
        out += _check_feature(name, train[name], test[name])
    out += _check_target(train[target], test[target], Kind(type))
    return out


def read_fields(path: Path) -> pd.DataFrame | str:
    """Return all fields of a CSV file as text, or the sentence that says why not."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            header = next(csv.reader(handle), [])
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8"
        )
    except FileNotFoundError:
        return f"{path.name} is missing."
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        return f"{path.name} is no CSV in UTF-8: {error}"
    doubled = {name for name in header if header.count(name) > 1} if header else set()
    if doubled:
        return f"{path.name} has the column {min(doubled)!r} more than once."
    if not isinstance(frame.index, pd.RangeIndex):
        return f"{path.name} has rows with more fields than its header."
    return frame.set_axis(header, axis=1).astype(object).fillna("")


def _read_as(tokens: pd.Series) -> tuple[Read, bool]:
    """What pandas makes of a column, and whether a value is missing."""
    distinct = [str(token) for token in tokens.unique()]
    present = [token for token in distinct if not reads_as_missing(token)]
    missing = len(present) < len(distinct)
    if all(is_number(token) for token in present):
        whole = bool(present) and all(_is_whole(token) for token in present)
        return ("integer" if whole and not missing else "float"), missing
    if all(is_boolean(token) for token in present) and not missing:
        return "boolean", False
    return "text", missing


def _is_whole(token: str) -> bool:
    return token.strip().lstrip("+-").isdigit()


def _check_doubt(name: str, parts: Sequence[pd.Series]) -> Iterator[str]:
    tokens = sorted({str(token) for part in parts for token in part.unique()})
    doubt = [token for token in tokens if reads_as_missing(token) and token not in NA_TEXTS]
    if doubt:
        yield f"Column {name!r} holds {doubt[0]!r}, missing to some readers and text to others."


def _check_feature(name: str, train: pd.Series, test: pd.Series) -> Iterator[str]:
    read, missing = _read_as(train)
    tokens = test.unique()
    if read == "text":
        yield from _check_text(name, train, test, missing)
        return
    for token in tokens:
        wrong = (
            (reads_as_missing(token) and read != "float")
            or (not reads_as_missing(token) and (is_boolean(token) != (read == "boolean")))
            or (not reads_as_missing(token) and read != "boolean" and not is_number(token))
            or (read == "integer" and is_number(token) and float(token) % 1 != 0)
        )
        if wrong:
            shown = "a missing value" if reads_as_missing(token) else repr(token)
            yield f"Column {name!r} is {read} in the training file, the test file holds {shown}."
            break
    if read != "boolean":
        for tokens, where in ((train.unique(), "training"), (test.unique(), "test")):
            yield from _check_size(f"Column {name!r}", tokens, where)


def _check_size(what: str, tokens: np.ndarray, where: str) -> Iterator[str]:
    for token in tokens:
        if not reads_as_missing(token) and is_number(token) and not abs(float(token)) <= MAX_ABS:
            yield f"{what} holds {token} in the {where} file, beyond {MAX_ABS:.2g}."
            return


def _check_text(name: str, train: pd.Series, test: pd.Series, missing: bool) -> Iterator[str]:
    known = {token for token in train.unique() if not reads_as_missing(token)}
    if len(set(map(normalize_text, known))) < len(known):
        yield f"Column {name!r} has categories that differ only by case or surrounding space."
    absent = test.map(reads_as_missing).to_numpy()
    if absent.any() and not missing:
        row = int(np.flatnonzero(absent)[0])
        yield (
            f"Column {name!r} is missing in row {row} of the test file "
            "but nowhere in the training file."
        )
    unseen = sorted(t for t in test.unique() if not reads_as_missing(t) and t not in known)
    if unseen:
        yield (
            f"Column {name!r} has {unseen[0]!r} in the test file, a category that the training "
            "file does not have."
        )


def _check_target(train: pd.Series, test: pd.Series, kind: Kind) -> Iterator[str]:
    for tokens, where in ((train, "training"), (test, "test")):
        absent = tokens.map(reads_as_missing)
        if absent.any():
            row = int(np.flatnonzero(absent.to_numpy())[0])
            yield f"The target is missing, or reads so, in row {row} of the {where} file."
            return
        if kind is Kind.REGRESSION:
            odd = [token for token in tokens.unique() if not is_number(token)]
            if odd:
                yield f"The target holds {odd[0]!r} in the {where} file, regression needs numbers."
                return
            yield from _check_size("The target", tokens.unique(), where)
    if kind is Kind.REGRESSION:
        if _read_as(train)[0] == "integer" and _read_as(test)[0] != "integer":
            yield "The target is integer in the training file, the test file holds fractions."
        return
    labels = list(train.unique())
    if len(labels) < 2:
        yield f"The training file has the single class {labels[0]!r}."
    if kind is Kind.BINARY and len(labels) > 2:
        yield f"The training file has {len(labels)} classes, a binary task has 2."
    unseen = sorted(set(test.unique()) - set(labels))
    if unseen:
        yield f"The test file has the class {unseen[0]!r}, which the training file does not have."
    if not labels_survive(labels):
        yield f"AMLB would read or order the labels {sorted(labels)[:5]} wrongly."
