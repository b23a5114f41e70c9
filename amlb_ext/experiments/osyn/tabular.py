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

from amlb_ext.core.errors import DataError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import ColumnType, Kind, Task
from amlb_ext.experiments.data_files import find_data_file

FILES = {"adult": "adult.data", "bank": "bank-full.csv", "bike": "hour.csv"}
TEXT = {
    "adult": "ADULT, 32,561 rows",
    "bank": "BANK, 45,211 rows",
    "bike": "BIKE, 17,379 hours",
    "simulation": "five Gaussians",
}
#: The file has no head; the names are those of UCI's description.
ADULT = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
#: Irrelevant (dates, a row number), or parts of the target.
BIKE_DROPPED = ("instant", "dteday", "casual", "registered")
#: Numbers in the file that are codes of categories.
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
#: Target and kind of each data set.
TARGETS = {
    "adult": ("income", Kind.BINARY),
    "bank": ("y", Kind.BINARY),
    "bike": ("cnt", Kind.REGRESSION),
}


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
    path = find_data_file(folder, name, [FILES[name]])
    table = _read_file(name, path)
    target, kind = TARGETS[name]
    types: dict[str, ColumnType] = {}
    if name == "bike":
        types = dict.fromkeys(BIKE_CODES, "categorical")
    lacking = [column for column in (target, *types) if column not in table]
    if lacking:
        raise DataError(
            f"{path.name} has no column {lacking[0]!r}", "use UCI's file as it is"
        )
    if 0 < rows < len(table):
        kept = random_stream(0, "osyn", name, "rows").permutation(len(table))[:rows]
        # in the file's order
        table = table.iloc[np.sort(kept)].reset_index(drop=True)
    return make_task(
        table,
        target,
        name=name,
        kind=kind,
        types=types,
    )


def _read_file(name: str, path: Path) -> pd.DataFrame:
    if name == "adult":
        return pd.read_csv(
            path,
            header=None,
            names=list(ADULT),
            skipinitialspace=True,
            na_values="?",
        )
    table = pd.read_csv(path)
    if name == "bike":
        dropped = [column for column in BIKE_DROPPED if column in table]
        table = table.drop(columns=dropped)
    return table
