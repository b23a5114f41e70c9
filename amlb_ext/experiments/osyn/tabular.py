"""ADULT, BANK and BIKE (Appendix B.1.2, C.1), from files of the UCI repository.

=====  ==========================  ============================================================
adult  ``adult.data``              32,561 rows, income above 50K: 7,841
bank   ``bank-full.csv``           45,211 rows, subscribed: 5,289
bike   ``hour.csv``                17,379 hours, number of hired bicycles
=====  ==========================  ============================================================
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import ColumnType, Kind, Task

FILES = {"adult": "adult.data", "bank": "bank-full.csv", "bike": "hour.csv"}
TEXT = {
    "adult": "ADULT, 32,561 rows",
    "bank": "BANK, 45,211 rows",
    "bike": "BIKE, 17,379 hours",
    "simulation": "five Gaussians",
}
ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip
#: Irrelevant (dates, a row number), or parts of the target.
BIKE_DROPPED = ("instant", "dteday", "casual", "registered")
BIKE_CODES = (
    "season",
    "yr",
    "mnth",
    "hr",
    "holiday",
    "weekday",
    "workingday",
    "weathersit",
)


def load_table(name: str, folder: Path | None, rows: int = 0) -> Task:
    """Return a data set without folds.

    Parameters
    ----------
    name : {'adult', 'bank', 'bike'}
    folder : Path or None
        Where the file lies, or a folder of the data set's name with it.
    rows : int
        Keep so many, drawn at random; 0 for all.

    Raises
    ------
    SourceError
        No such file.
    DataError
        A column is missing.

    Examples
    --------
    >>> load_table("bank", None)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: bank needs a file, bank-full.csv (give its folder as --data)
    """
    path = _find(name, folder)
    types: dict[str, ColumnType] = {}
    if name == "adult":
        table = pd.read_csv(
            path, header=None, names=list(ADULT), skipinitialspace=True, na_values="?"
        )
        target, kind = "income", Kind.BINARY
    elif name == "bank":
        table = pd.read_csv(path)
        target, kind = "y", Kind.BINARY
    else:
        table = pd.read_csv(path)
        table = table.drop(
            columns=[column for column in BIKE_DROPPED if column in table]
        )
        target, kind = "cnt", Kind.REGRESSION
        types = dict.fromkeys(BIKE_CODES, "categorical")
    lacking = [column for column in (target, *types) if column not in table]
    if lacking:
        raise DataError(
            f"{path.name} has no column {lacking[0]!r}", "use UCI's file as it is"
        )
    if 0 < rows < len(table):
        kept = random_stream(0, "osyn", name, "rows").permutation(len(table))[:rows]
        table = table.iloc[np.sort(kept)].reset_index(drop=True)
    return make_task(table, target, name=name, kind=kind, types=types)


def _find(name: str, folder: Path | None) -> Path:
    file = FILES[name]
    if folder is None:
        raise SourceError(f"{name} needs a file, {file}", "give its folder as --data")
    for place in (folder / name, folder):
        if (place / file).is_file():
            return place / file
    raise SourceError(
        f"{folder} holds no {name}/{file}, nor {file}",
        "see docs/reproduce.md for where to get it",
    )
