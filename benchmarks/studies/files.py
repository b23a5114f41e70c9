"""Data files of the papers: where they lie, and made-up ones for a small case without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.rng import random_stream
from amlb_ext.core.tables import make_task
from amlb_ext.core.task import ColumnType, Kind, Task

#: UCI's files: adult has no head, its names are those of the description.
FILES = {"adult": "adult.data", "bank": "bank-full.csv", "bike": "hour.csv"}
ADULT_NUMBERS = [
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
]
ADULT = [
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
]
#: Irrelevant (dates, a row number), or parts of the target.
BIKE_DROPPED = ("instant", "dteday", "casual", "registered")
#: Numbers in the file that are codes of categories.
BIKE_CODES = [
    "season",
    "yr",
    "mnth",
    "hr",
    "holiday",
    "weekday",
    "workingday",
    "weathersit",
]
TARGETS = {
    "adult": ("income", Kind.BINARY),
    "bank": ("y", Kind.BINARY),
    "bike": ("cnt", Kind.REGRESSION),
}
#: The columns of Table A3: named in section 5.1, then those chosen here.
DIABETES_CATEGORIES = ["gender", "ethnicity", "income_level", "smoking_status"]
DIABETES_NUMBERS = [
    "age",
    "insulin_level",
    "bmi",
    "family_history_diabetes",
    "systolic_bp",
    "cholesterol_total",
    "hdl_cholesterol",
    "triglycerides",
]
DIABETES_TARGET = "diagnosed_diabetes"


def find_data_file(folder: Path | None, name: str, file_names: Sequence[str]) -> Path:
    """Return the first file of a data set that exists, wherever in the folder it lies.

    Parameters
    ----------
    folder : Path or None
        None: no folder was given.
    name : str
        Of the data set, and of the subfolder that is looked into first.
    file_names : sequence of str
        Names that the file may have.

    Raises
    ------
    SourceError
        No such file.

    Examples
    --------
    >>> find_data_file(None, "bank", ["bank-full.csv"])
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: bank needs a file, bank-full.csv (give its folder as --data)
    """
    if folder is None:
        raise SourceError(
            f"{name} needs a file, {' or '.join(file_names)}",
            "give its folder as --data",
        )
    # the set's own folder first: one folder may hold the files of many data sets
    for place in (folder / name, folder):
        for file_name in file_names:
            if found := sorted(place.rglob(file_name)):
                return found[0]
    raise SourceError(
        f"{folder} holds no {' or '.join(file_names)}, nor {name}/{file_names[0]}",
        "see docs/evidence/reproduce.md for where to get it",
    )


def load_uci(name: str, folder: Path | None, rows: int = 0) -> Task:
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
    >>> load_uci("bank", None)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: bank needs a file, bank-full.csv (give its folder as --data)
    """
    path = find_data_file(folder, name, [FILES[name]])
    table = _read_uci(name, path)
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


def _read_uci(name: str, path: Path) -> pd.DataFrame:
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


def load_housing(folder: Path | None) -> Task:
    """Return California housing from ``housing.csv``, categories as text, missing values kept."""
    path = find_data_file(folder, "housing", ["housing.csv"])
    return make_task(pd.read_csv(path), "median_house_value", name="housing")


def load_diabetes(folder: Path | None, balanced: bool = True) -> Task:
    """Return the paper's classification data: 12 features, of which 4 are categories.

    Columns that give the label away (stage, hba1c, risk score, glucose) are not among them.
    NOTE[DIFF]: as many rows with diabetes as without: with the 60 % of the file, G calls nearly
    every row of X_b healthy, and its F1 is .1 in place of the printed .43.

    Raises
    ------
    SourceError
        No such file.
    DataError
        A column is missing.
    """
    path = find_data_file(
        folder, "diabetes", ["diabetes_dataset.parquet", "diabetes_dataset.csv"]
    )
    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    columns = [*DIABETES_CATEGORIES, *DIABETES_NUMBERS, DIABETES_TARGET]
    lacking = [name for name in columns if name not in table]
    if lacking:
        raise DataError(
            f"{path.name} has no column {lacking[0]!r}", "use Kaggle's file as it is"
        )
    table = table[columns]
    if balanced:
        # as many rows of one label as of the other, in the file's order
        rng = random_stream(0, "diabetes")
        y = table[DIABETES_TARGET].to_numpy()
        of_labels = [np.flatnonzero(y == label) for label in (0, 1)]
        n_kept = min(len(rows) for rows in of_labels)
        kept = [rng.permutation(rows)[:n_kept] for rows in of_labels]
        table = table.iloc[np.sort(np.concatenate(kept))].reset_index(drop=True)
    labels = np.where(table[DIABETES_TARGET] == 1, "yes", "no")
    table = table.assign(**{DIABETES_TARGET: labels})
    return make_task(table, DIABETES_TARGET, name="diabetes")


def keep_rows(task: Task, most: int, *stream: str) -> Task:
    """Return a task with at most so many of its rows, in their order, without folds.

    The seed is 0 whatever a draw's own: every draw of a study is from the same rows.
    """
    if len(task) <= most:
        return task
    rng = random_stream(0, task.name, *stream)
    rows = np.sort(rng.choice(len(task), most, replace=False))
    return dataclasses.replace(
        task,
        features=task.features.iloc[rows].reset_index(drop=True),
        target=task.target.iloc[rows].reset_index(drop=True),
        row_ids=task.row_ids[rows],
        folds=(),
    )


def write_stand_ins(folder: Path) -> None:
    """Write made-up files in the form of the downloaded ones, so that a study can be tried.

    Their numbers mean nothing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    n = 400

    def letters(names: Sequence[str]) -> dict[str, np.ndarray]:
        return {name: rng.choice(["a", "b"], n) for name in names}

    adult = pd.DataFrame({name: rng.integers(1, 50, n) for name in ADULT_NUMBERS})
    adult = adult.assign(**letters([name for name in ADULT if name not in adult]))
    chance = 0.1 + 0.4 * (adult["age"] > 25)
    adult["income"] = np.where(rng.random(n) < chance, ">50K", "<=50K")
    adult[list(ADULT)].to_csv(folder / FILES["adult"], index=False, header=False)

    bank = pd.DataFrame(rng.random((n, 3)), columns=["age", "balance", "duration"])
    bank = bank.assign(**letters(["job", "contact"]))
    bank["y"] = np.where(rng.random(n) < 0.2 + 0.4 * bank["duration"], "yes", "no")
    bank.to_csv(folder / FILES["bank"], index=False)

    bike = pd.DataFrame({name: rng.integers(0, 3, n) for name in BIKE_CODES})
    bike["temp"] = rng.random(n)
    count = 100 * bike["temp"] + 20 * bike["hr"] + rng.integers(0, 9, n)
    bike["cnt"] = count.astype(int)
    bike.to_csv(folder / FILES["bike"], index=False)

    flats = pd.DataFrame(rng.random((n, 3)), columns=["rooms", "age", "income"])
    flats["near"] = rng.choice(["sea", "hill"], n)
    flats["median_house_value"] = (
        flats["income"] ** 2 + (flats["near"] == "sea") * flats["age"]
    )
    flats.loc[::20, "rooms"] = np.nan
    flats.to_csv(folder / "housing.csv", index=False)

    patients = pd.DataFrame(letters(DIABETES_CATEGORIES))
    numbers = pd.DataFrame(
        rng.random((n, len(DIABETES_NUMBERS))), columns=DIABETES_NUMBERS
    )
    patients = patients.join(numbers)
    chance = 0.3 + 0.5 * patients["age"]
    patients[DIABETES_TARGET] = (rng.random(n) < chance).astype(int)
    patients.to_csv(folder / "diabetes_dataset.csv", index=False)
