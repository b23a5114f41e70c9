"""How hard each row of a source is for F: one record for each row and test fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from amlb_ext.suite import SuiteFiles, amlb_name


@dataclass(frozen=True, kw_only=True)
class DifficultyColumn:
    """A column of the data: its type, and what it holds.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType
    croissant : str
        The type in Croissant's words.
    about : str
    unit : str
        Empty where there is none.
    """

    name: str
    type: pa.DataType
    croissant: str
    about: str
    unit: str = ""


def column(
    name: str, about: str, kind: str = "number", unit: str = ""
) -> DifficultyColumn:
    """Return a column of a kind: ``number``, ``count``, ``flag`` or ``text``."""
    arrow, croissant = {
        "number": (pa.float64(), "sc:Float"),
        "count": (pa.int64(), "sc:Integer"),
        "flag": (pa.bool_(), "sc:Boolean"),
        "text": (pa.string(), "sc:Text"),
    }[kind]
    return DifficultyColumn(
        name=name, type=arrow, croissant=croissant, about=about, unit=unit
    )


#: Columns of the rows; each is null where the suite does not have it.
ROW_COLUMNS = (
    column("task", "name of the task in the suite", "text"),
    column("source", "spec of the source, such as openml/t/31", "text"),
    column("source_row", "row of the source table, from 0", "count"),
    column(
        "fold",
        "number of the source's fold in whose test rows it stands; F was fitted on the others",
        "count",
    ),
    column("hardness", "value of the rule K for F's prediction: larger is harder"),
    column(
        "loss",
        "loss of F: Brier loss of class probabilities, or squared error of the target scaled "
        "to [0, 1] by the training rows",
    ),
    column("is_bad", "whether K calls the row a failure of F", "flag"),
    column(
        "p_fails",
        "P(F fails | x), from features alone, learnt on other rows; the weight of the region",
        unit="probability",
    ),
    column(
        "reducible",
        "reducible hardness: squared distance of F's prediction from a cross-fitted oracle's",
    ),
    column(
        "label_support",
        "classes: the oracle's probability of the label; numbers: minus the distance between "
        "oracle and label, in RMSEs of the oracle",
    ),
    column("label_agrees", "whether that support is enough", "flag"),
    column("in_main", "copies of the row in the suite's main task", "count"),
    column("in_region", "copies of the row in the part drawn by p_fails", "count"),
    column("made_from", "augmented rows that were made from the row", "count"),
    column(
        "cells_replaced",
        "whether a cell had a value that no training row has, and F saw another",
        "flag",
    ),
)
#: Names in the provenance of columns that are called otherwise here.
_IN_PROVENANCE = {"p_fails": "weight"}


def collect_rows(suite: SuiteFiles) -> pd.DataFrame:
    """Return the difficulty of every test row of every task.

    Parameters
    ----------
    suite : SuiteFiles

    Returns
    -------
    DataFrame
        The columns of :data:`ROW_COLUMNS`; a row stands once for each test fold that holds it.

    Raises
    ------
    SuiteError
        The suite is damaged.
    """
    tables = []
    for task in suite.tasks:
        full = suite.amlb_task(amlb_name(task, "full"))
        for index, source_fold in enumerate(full.folds):
            tables.append(_rows_of_fold(suite, task, index, source_fold=source_fold))
    return pd.concat(tables, ignore_index=True)


def _rows_of_fold(
    suite: SuiteFiles, task: str, index: int, *, source_fold: int
) -> pd.DataFrame:
    provenance = suite.provenance(amlb_name(task, "full"), index)
    names = [column.name for column in ROW_COLUMNS]
    table = pd.DataFrame(index=provenance.index, columns=names, dtype=object)
    for name in names:
        stored = _IN_PROVENANCE.get(name, name)
        if stored in provenance:
            table[name] = provenance[stored]
    table["task"] = task
    table["source"] = suite.tasks[task].origin.spec
    table["fold"] = source_fold
    table["is_bad"] = provenance["origin"] == "bad"
    if "substituted" in provenance:
        table["cells_replaced"] = provenance["substituted"].fillna("") != ""
    rows = provenance["source_row"]
    table["in_main"] = _counts(suite, task, "", source_fold=source_fold, rows=rows)
    table["in_region"] = _counts(
        suite, task, "region", source_fold=source_fold, rows=rows
    )
    table["made_from"] = _counts(
        suite, task, "ga", source_fold=source_fold, rows=rows, key="parent_row"
    )
    return table


def _counts(
    suite: SuiteFiles,
    task: str,
    suffix: str,
    *,
    source_fold: int,
    rows: pd.Series,
    key: str = "source_row",
) -> np.ndarray:
    """Return how often each source row stands in a part of a fold, or is a parent there."""
    part = suite.amlb_tasks.get(amlb_name(task, suffix))
    if part is None or source_fold not in part.folds:
        return np.zeros(len(rows), dtype=np.int64)
    provenance = suite.provenance(part.name, part.folds.index(source_fold))
    counts = provenance[key].value_counts()
    return rows.map(counts).fillna(0).to_numpy(dtype=np.int64)
