"""AMLB's loader rules replayed without AMLB: what a train/test pair must satisfy.

AMLB reads the training file with pandas 1.5, makes text columns (and a class target) ``category``,
and reads the test file with those types, by position (``datasets/file.py``); encoded frameworks
then map normalised categories with encoders of the training file (``data.py``). Each rule was
tried on AMLB v2.1.7; ``tests/suite/test_amlb.py`` repeats that where AMLB can be had.
"""

# Each check is one condition and its sentence, side by side, so lines are denser than elsewhere.

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from amlb_ext.amlb.safe_text import (
    check_columns,
    is_boolean,
    is_number,
    labels_survive,
    normalize_text,
)
from amlb_ext.core.errors import SourceError
from amlb_ext.core.frames import NA_TEXTS, reads_as_missing
from amlb_ext.core.parquet import read_frame
from amlb_ext.core.tables import MAX_ABS
from amlb_ext.core.task import Kind

InferredType = Literal["integer", "float", "boolean", "text"]


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
    kind = Kind(type)
    train = (read_train or read_fields)(train_csv)
    if isinstance(train, str):  # the sentence that says why it cannot be read
        return [train]
    test = read_fields(test_csv)
    if isinstance(test, str):
        return [test]
    # After these nothing else can be checked.
    if target not in train.columns:
        return [f"The target {target!r} is no column of {train_csv.name}."]
    if list(train.columns) != list(test.columns):
        return [
            "The test file's columns are not the training file's, in the same order."
        ]
    if len(train) < 2:
        return [f"The training file has {len(train)} rows, at least 2 are needed."]
    if test.empty:
        return ["The test file has no rows."]
    problems = check_columns(list(train.columns))
    if len(train.columns) < 2:
        problems.append("There is no feature beside the target.")
    for name in train.columns:
        problems += _check_doubtful_texts(name, train[name], test[name])
    for name in train.columns.drop(target):
        problems += _check_feature(name, train[name], test[name])
    problems += _check_target(train[target], test[target], kind)
    return problems


def read_fields(path: Path) -> pd.DataFrame | str:
    """Return all fields of a CSV file as text, or the sentence that says why not."""
    try:
        # The header as it is written: pandas would number names that stand there twice.
        with path.open(encoding="utf-8-sig", newline="") as handle:
            header = next(csv.reader(handle), [])
        # As text, for the types are inferred here by the rules of AMLB's pandas, not of ours.
        frame = pd.read_csv(
            path, dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8"
        )
    except FileNotFoundError:
        return f"{path.name} is missing."
    except (
        UnicodeDecodeError,
        pd.errors.ParserError,
        pd.errors.EmptyDataError,
    ) as error:
        return f"{path.name} is no CSV in UTF-8: {error}"
    counts = Counter(header)
    repeated = [name for name in counts if counts[name] > 1]
    if repeated:
        return f"{path.name} has the column {min(repeated)!r} more than once."
    # pandas takes the first fields of longer rows for an index.
    if not isinstance(frame.index, pd.RangeIndex):
        return f"{path.name} has rows with more fields than its header."
    frame = frame.set_axis(header, axis=1).astype(object)
    return frame.fillna("")  # fields that shorter rows lack


def has_cells_of(derived: Path, table: Path) -> bool:
    """Whether a Parquet file holds the cells of a CSV file, as AMLB would write them there.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table, derived = Path(folder, "t.csv"), Path(folder, "t.parquet")
    ...     _ = table.write_text("n,c\\n1,a\\n,b\\n")
    ...     for label in ("b", "a"):
    ...         frame = pd.DataFrame({"n": [1.0, None], "c": ["a", label]})
    ...         frame.astype({"c": "category"}).to_parquet(derived)
    ...         print(has_cells_of(derived, table))
    True
    False
    """
    fields = read_fields(table)
    try:
        frame = read_frame(derived)
    except (OSError, ValueError, SourceError):
        return False
    if isinstance(fields, str) or list(frame.columns) != list(fields.columns):
        return False
    return len(frame) == len(fields) and all(
        _holds(frame[name], fields[name]) for name in fields.columns
    )


def _holds(values: pd.Series, texts: pd.Series) -> bool:
    """Whether a column that AMLB has read holds what the texts of a file say."""
    is_missing = texts.map(reads_as_missing).to_numpy()
    if not np.array_equal(is_missing, values.isna().to_numpy()):
        return False
    cells, texts = values[~is_missing].astype(object), texts[~is_missing]
    for cell, text in zip(cells, texts, strict=True):
        if isinstance(cell, str):
            is_same = cell == text
        elif isinstance(cell, bool):
            is_same = str(cell).lower() == text.strip().lower()
        else:
            # the last digits of a number depend on the reader
            is_same = is_number(text) and math.isclose(cell, float(text), rel_tol=1e-9)
        if not is_same:
            return False
    return True


def infer_target(
    fields: pd.DataFrame, target: str | None, type: str | None
) -> tuple[str, str]:
    """Return the target and the type that AMLB takes where a definition names none.

    Parameters
    ----------
    fields : DataFrame
        The training file, as :func:`read_fields` reads it.
    target, type : str, optional
        As the definition names them.

    Examples
    --------
    >>> infer_target(pd.DataFrame({"Class": ["a", "b"], "n": ["1", "2"]}), None, None)
    ('Class', 'binary')
    """
    if target is None:
        usual = [name for name in fields.columns if name.lower() in ("target", "class")]
        target = str((usual or list(fields.columns)[-1:])[0])
    if type is None and target in fields.columns:
        type = "binary" if fields[target].nunique() == 2 else "multiclass"
        if _infer_type(fields[target])[0] in ("integer", "float"):
            type = "regression"
    return target, str(type)


def _infer_type(texts: pd.Series) -> tuple[InferredType, bool]:
    """Return what pandas makes of a column, and whether a value is missing."""
    distinct = [str(text) for text in texts.unique()]
    present = [text for text in distinct if not reads_as_missing(text)]
    has_missing = len(present) < len(distinct)
    if all(map(is_number, present)):
        # pandas has no missing integer, and takes an empty column for floats.
        is_whole = all(text.strip().lstrip("+-").isdigit() for text in present)
        if present and not has_missing and is_whole:
            return "integer", False
        return "float", has_missing
    # A truth value beside a missing one is an object, which AMLB takes for a category.
    if all(map(is_boolean, present)) and not has_missing:
        return "boolean", False
    return "text", has_missing


def _check_doubtful_texts(
    name: str, train: pd.Series, test: pd.Series
) -> Iterator[str]:
    """Yield a sentence where a text is missing to one version of pandas only, e.g. ``None``."""
    texts = {*train.unique(), *test.unique()} - set(NA_TEXTS)
    if doubtful := list(filter(reads_as_missing, texts)):
        first = min(doubtful)
        yield f"Column {name!r} holds {first!r}, missing to some readers and text to others."


def _check_feature(name: str, train: pd.Series, test: pd.Series) -> Iterator[str]:
    train_type, has_missing = _infer_type(train)
    if train_type == "text":
        yield from _check_categories(name, train, test, has_missing)
        return
    for text in test.unique():
        if _fits_type(text, train_type):
            continue
        shown = "a missing value" if reads_as_missing(text) else repr(text)
        yield (
            f"Column {name!r} is {train_type} in the training file, the test file holds "
            f"{shown}."
        )
        break  # one example tells enough
    if train_type != "boolean":
        subject = f"Column {name!r}"
        yield from _check_size(subject, train.unique(), "training")
        yield from _check_size(subject, test.unique(), "test")


def _fits_type(text: str, train_type: InferredType) -> bool:
    """Whether AMLB can read a text of the test file with the type of the training file."""
    if reads_as_missing(text):
        return train_type == "float"
    if is_boolean(text):
        return train_type == "boolean"
    if train_type == "boolean" or not is_number(text):
        return False
    # pandas casts 1.0 to an integer, but not 1.5.
    return train_type == "float" or float(text) % 1 == 0


def _check_size(subject: str, texts: np.ndarray, where: str) -> Iterator[str]:
    """Yield a sentence for the first number that models with single precision cannot hold."""
    for text in texts:
        if reads_as_missing(text) or not is_number(text):
            continue
        is_within = abs(float(text)) <= MAX_ABS  # false for NaN, too
        if not is_within:
            yield f"{subject} holds {text} in the {where} file, beyond {MAX_ABS:.2g}."
            return


def _check_categories(
    name: str, train: pd.Series, test: pd.Series, has_missing: bool
) -> Iterator[str]:
    categories = {text for text in train.unique() if not reads_as_missing(text)}
    normalized = {normalize_text(text) for text in categories}
    if len(normalized) < len(categories):
        yield f"Column {name!r} has categories that differ only by case or surrounding space."
    is_missing = test.map(reads_as_missing).to_numpy()
    if is_missing.any() and not has_missing:
        row = int(np.flatnonzero(is_missing)[0])
        yield (
            f"Column {name!r} is missing in row {row} of the test file "
            "but nowhere in the training file."
        )
    unseen = set(test[~is_missing].unique()) - categories
    if unseen:
        yield (
            f"Column {name!r} has {min(unseen)!r} in the test file, a category that the training "
            "file does not have."
        )


def _check_target(train: pd.Series, test: pd.Series, kind: Kind) -> Iterator[str]:
    is_regression = kind is Kind.REGRESSION
    # Values that cannot be targets at all: what follows would only repeat them.
    for texts, where in ((train, "training"), (test, "test")):
        is_missing = texts.map(reads_as_missing).to_numpy()
        if is_missing.any():
            row = int(np.flatnonzero(is_missing)[0])
            yield f"The target is missing, or reads so, in row {row} of the {where} file."
            return
        no_numbers = [text for text in texts.unique() if not is_number(text)]
        if is_regression and no_numbers:
            yield (
                f"The target holds {no_numbers[0]!r} in the {where} file, regression needs "
                "numbers."
            )
            return
        if is_regression:
            yield from _check_size("The target", texts.unique(), where)
    if is_regression:
        train_type, _ = _infer_type(train)
        test_type, _ = _infer_type(test)
        if train_type == "integer" and test_type != "integer":
            yield "The target is integer in the training file, the test file holds fractions."
        return
    labels = list(train.unique())
    if len(labels) < 2:
        yield f"The training file has the single class {labels[0]!r}."
    if kind is Kind.BINARY and len(labels) > 2:
        yield f"The training file has {len(labels)} classes, a binary task has 2."
    unseen = set(test.unique()) - set(labels)
    if unseen:
        yield (
            f"The test file has the class {min(unseen)!r}, which the training file does not have."
        )
    if not labels_survive(labels):
        yield f"AMLB would read or order the labels {sorted(labels)[:5]} wrongly."
