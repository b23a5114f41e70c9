"""Our repetitions beside a printed number: one rule and one table for the papers with numbers."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from amlb_ext.core.display import format_with_spread
from benchmarks.studies.page import Table

#: A cell agrees when our mean lies within so many printed standard deviations.
WITHIN = 2.0
#: Rounding of sums may not decide about a mean that lies exactly on the limit.
ROUNDING = 1e-12


@cache
def read_printed(name: str) -> dict[str, Any]:
    """Return a file of ``printed/``; its head says what it holds.

    Examples
    --------
    >>> read_printed("osyn")["osyn-table-3"]["adult"]["SVM"]["osyn"]  # mean, std, gap
    [0.2, 0.001, 0.017]
    """
    path = Path(__file__).parent / "printed" / f"{name}.yaml"
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def compare_with_printed(
    values: Any,
    printed: float,
    printed_std: float = math.nan,
    *,
    least: float = math.nan,
    takes_our_std: bool = False,
) -> dict[str, Any]:
    """Return our mean, deviation and error beside the printed mean.

    Parameters
    ----------
    values : sequence of float
        Ours, one per repetition; NaN where a repetition has none.
    printed, printed_std : float
        NaN where the paper has no such number.
    least : float
        A difference up to this agrees, however small the deviation.
    takes_our_std : bool
        Judge by our deviation where none is printed; the mark is lenient then where our
        repetitions scatter.

    Examples
    --------
    >>> cell = compare_with_printed([0.2, 0.3], 0.26, 0.01)
    >>> cell["within"], cell["draws"]
    (True, 2)
    >>> compare_with_printed([0.211], 0.2, 0.001, least=0.01)["within"]
    False
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    ours = float(known.mean()) if len(known) else math.nan
    ours_std = float(known.std(ddof=1)) if len(known) > 1 else math.nan
    deviation = printed_std
    if takes_our_std and math.isnan(printed_std):
        deviation = ours_std
    limits = [limit for limit in (WITHIN * deviation, least) if not math.isnan(limit)]
    within = None
    if limits and not math.isnan(printed) and not math.isnan(ours):
        within = bool(abs(ours - printed) <= max(limits) + ROUNDING)
    return {
        "paper": printed,
        "paper_std": printed_std,
        "ours": ours,
        "ours_std": ours_std,
        "ours_se": ours_std / math.sqrt(len(known)) if len(known) else math.nan,
        "draws": len(known),
        "within": within,
    }


def cell_text(cell: Any, decimals: int = 4) -> str:
    """Return ``ours ± std (paper: mean ± std, within)`` of a compared cell.

    Examples
    --------
    >>> cell_text(pd.Series(compare_with_printed([0.2], 0.26, 0.01)), 2)
    '0.20 (paper: 0.26 ± 0.01, outside)'
    """
    text = format_with_spread(cell.ours, cell.ours_std, decimals, missing="none")
    if math.isnan(cell.paper):
        return text
    printed = format_with_spread(cell.paper, cell.paper_std, decimals)
    word = {True: ", within", False: ", outside"}.get(cell.within, "")
    return f"{text} (paper: {printed}{word})"


def compared_tables(
    cells: pd.DataFrame, texts: pd.Series, *, index: list[str], columns: str
) -> list[Table]:
    """Return one table for each data set, and the file of all cells.

    Parameters
    ----------
    cells : DataFrame
        With a column ``data`` and those of :func:`compare_with_printed`.
    texts : Series
        Of each cell, as the tables show it.
    index : list of str
        Columns that name a line.
    columns : str
        Column whose values are the columns of the tables.
    """
    tables = []
    shown = cells.assign(text=texts)
    for data, part in shown.groupby("data", sort=False):
        wide = part.pivot_table(
            index=index, columns=columns, values="text", aggfunc="first", sort=False
        )
        tables.append(Table(heading=str(data), frame=wide.fillna("").reset_index()))
    counts = cells["within"].value_counts()
    verdict = (
        f"{counts.get(True, 0)} cells within, {counts.get(False, 0)} outside: at most "
        "two printed standard deviations from the printed mean. Each number: mean ± standard "
        "deviation over draws."
    )
    return [
        Table(heading="All cells", file="agreement.csv", data=cells, note=verdict),
        *tables,
    ]
