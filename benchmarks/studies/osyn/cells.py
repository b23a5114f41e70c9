"""Every repetition's mean beside the printed number, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import yaml

from amlb_ext.core.assets import asset_path
from benchmarks.studies.agreement import (
    compare_with_printed,
    float_or_nan,
    mean_and_deviation,
)
from benchmarks.studies.osyn.choices import SHIFTS, OsynTable
from benchmarks.studies.osyn.cost import PARTS, SIZES, form_part, sized_row

COLUMNS = (
    "data",
    "row",
    "arm",
    "paper",
    "paper_std",
    "paper_gap",
    "ours",
    "ours_std",
    "gap",
    "holds",
    "repetitions",
    "within",
    "note",
    "each",
)
#: A difference up to this agrees, however small the printed deviation: many are .000 or .001.
LEAST = 0.01
ANSWER = "needs the answer: not available to a user"
#: The row of Table 1 below the shifts.
PEARSON_ROW = "Pearson(KL, gap)"
PEARSON_NOTE = "Pearson of each draw of S"
MINUTES_NOTE = "processor minutes, one thread"


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One estimate, or another column of a table.

    Attributes
    ----------
    heading : str
    printed : str
        Its key in ``printed_osyn.yaml``; empty where the paper has no such number.
    note : str
    is_limit : bool
        Whether it claims to lie below the true loss.
    """

    heading: str
    printed: str = ""
    note: str = ""
    is_limit: bool = False


#: In the order of the columns of a table. The arms are explained in :mod:`.arms`.
ARMS = {
    "oracle": Arm(heading="true loss", printed="oracle"),
    "a_priori": Arm(
        heading="OSYN, a priori",
        printed="osyn",
        note="settings fixed before",
        is_limit=True,
    ),
    "reading": Arm(
        heading="OSYN, b as printed bounds suggest",
        printed="osyn",
        note=f"b found by comparing with the printed bounds; {ANSWER}",
        is_limit=True,
    ),
    "closed": Arm(
        heading="OSYN, closed form, a priori",
        printed="osyn",
        note="the same, every region filled",
        is_limit=True,
    ),
    "tuned_set": Arm(
        heading="OSYN, tuned with the oracle, data by data",
        printed="osyn",
        note=f"b and δ2 for all models of the data; {ANSWER}",
        is_limit=True,
    ),
    "tuned": Arm(
        heading="OSYN, tuned with the oracle",
        printed="osyn",
        note=ANSWER,
        is_limit=True,
    ),
    "bootstrap": Arm(heading="bootstrap", printed="bootstrap", is_limit=True),
    "synthetic": Arm(heading="synthetic rows", printed="synthetic"),
    "limit": Arm(
        heading="limit from S",
        note="what a user has: lower limit from S alone",
        is_limit=True,
    ),
    "low": Arm(
        heading="by class, low",
        note="what a user has: interval by class with known priors, its lower end",
    ),
    "high": Arm(heading="by class, high", note="the same, its upper end"),
    "kl": Arm(heading="KL", printed="kl"),
}
#: Form of the cost → its key among the printed minutes: both forms of OSYN stand beside one.
PRINTED_MINUTES = {
    "closed": "osyn",
    "iterative": "osyn",
    "bootstrap": "bootstrap",
    "synthetic": "synthetic",
}

#: Of one repetition: row of the table → arm → value.
Rows = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One repetition.

    Attributes
    ----------
    data : str
    number : int
    rows : dict
        Row of the table → arm → value.
    seconds : float
        Processor seconds.
    """

    data: str
    number: int
    rows: dict[str, dict[str, float | None]]
    seconds: float


@lru_cache(maxsize=1)
def printed_numbers() -> dict[str, Any]:
    """Return the paper's numbers; see the head of the file.

    Examples
    --------
    >>> printed_numbers()["osyn-table-3"]["adult"]["SVM"]["osyn"]  # mean, std, gap
    [0.2, 0.001, 0.017]
    """
    path = asset_path("resources", "reproduce", "printed_osyn.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def compare_cells(
    table: OsynTable, done: Sequence[Outcome], size: int = 500
) -> pd.DataFrame:
    """Return one row per cell.

    Parameters
    ----------
    table : OsynTable
    done : sequence of Outcome
    size : int
        Labelled rows of the repetitions; the cost is printed by their number.

    Returns
    -------
    DataFrame
        :data:`COLUMNS`; ``gap`` is the mean of oracle - estimate, ``holds`` the share of
        repetitions in which a limit was not above the oracle's loss (``low`` and ``high``: in
        which their interval held it). ``within`` is None where nothing is printed. ``each`` has
        the number of each repetition where the mean alone would mislead.
    """
    # each data set has the repetitions that could be run
    cells: list[dict[str, Any]] = []
    printed = printed_numbers()[table.name]
    for data in dict.fromkeys(outcome.data for outcome in done):
        runs: list[Rows] = [outcome.rows for outcome in done if outcome.data == data]
        if table.name == "osyn-cost":
            data_cells = _minute_cells(runs, printed, size)
        elif table.name == "osyn-table-1":
            data_cells = _estimate_cells(runs, SHIFTS, printed["rows"])
            data_cells += _pearson_cells(runs, printed["pearson"])
        else:
            data_cells = _estimate_cells(runs, table.data[data], printed.get(data, {}))
        for cell in data_cells:
            cells.append({"data": data, "each": "", **cell})
    return pd.DataFrame(cells, columns=list(COLUMNS))


def _arm_values(runs: Sequence[Rows], row: str, arm: str) -> np.ndarray:
    """Return one number per repetition; NaN where it has none."""
    return np.array([float_or_nan(run[row].get(arm)) for run in runs], dtype=float)


def _estimate_cells(
    runs: Sequence[Rows], row_names: Sequence[str], printed: Mapping[str, Any]
) -> list[dict[str, Any]]:
    cells = []
    for row in row_names:
        # models that were not asked for have no row
        if row not in runs[0]:
            continue
        for arm in ARMS:
            if arm in runs[0][row]:
                cells.append(_estimate_cell(runs, row, arm, printed.get(row, {})))
    return cells


def _estimate_cell(
    runs: Sequence[Rows], row: str, arm: str, printed: Mapping[str, Any]
) -> dict[str, Any]:
    values = _arm_values(runs, row, arm)
    oracle = _arm_values(runs, row, "oracle")
    paper, paper_std, paper_gap = _printed_cell(printed, ARMS[arm].printed)
    gap = math.nan
    if arm not in ("oracle", "kl"):  # neither is an estimate
        gap, _ = mean_and_deviation(oracle - values)
    cell = {
        "row": row,
        "arm": arm,
        "paper_gap": paper_gap,
        "gap": gap,
        "holds": _share_held(runs, row, arm),
        "repetitions": int((~np.isnan(values)).sum()),
        "note": ARMS[arm].note,
    }
    return cell | compare_with_printed(
        values, paper, printed_std=paper_std, least=LEAST
    )


def _share_held(runs: Sequence[Rows], row: str, arm: str) -> float:
    """Return in how many repetitions a limit or an interval held; NaN for what is neither."""
    values = _arm_values(runs, row, arm)
    oracle = _arm_values(runs, row, "oracle")
    is_known = ~np.isnan(values)
    if ARMS[arm].is_limit:
        is_held = values <= oracle
    elif arm in ("low", "high"):
        # both ends have the share of their interval
        above_low = _arm_values(runs, row, "low") <= oracle
        is_held = above_low & (oracle <= _arm_values(runs, row, "high"))
    else:
        return math.nan
    return float(is_held[is_known].mean()) if is_known.any() else math.nan


def _printed_cell(row: Mapping[str, Any], key: str) -> tuple[float, float, float]:
    """Return the printed mean, std and gap; NaN for what is not printed."""
    entry = row.get(key)
    if entry is None:
        return math.nan, math.nan, math.nan
    if isinstance(entry, int | float):  # a true loss has no deviation in the paper
        return float(entry), math.nan, math.nan
    if "gap" in row:  # Table 1: mean and std, and the gap beside them
        return entry[0], entry[1], row["gap"][0]
    if len(entry) == 2:  # the bootstrap has no std
        return entry[0], math.nan, entry[1]
    mean, deviation, gap = entry
    return mean, deviation, gap


def _pearson_cells(runs: Sequence[Rows], printed: float) -> list[dict[str, Any]]:
    """Return the correlation of KL and gap over the shifts, for each draw of S."""
    cells = []
    for arm in ("a_priori", "reading", "tuned"):
        correlations = np.array([_kl_gap_correlation(run, arm) for run in runs])
        texts = ["–" if math.isnan(value) else f"{value:.2f}" for value in correlations]
        cell = {
            "row": PEARSON_ROW,
            "arm": arm,
            "repetitions": int(np.isfinite(correlations).sum()),
            "note": PEARSON_NOTE,
            "each": ", ".join(texts),
        }
        cells.append(cell | compare_with_printed(correlations, printed, least=LEAST))
    return cells


def _kl_gap_correlation(rows: Rows, arm: str) -> float:
    """Return the correlation over the shifts; NaN where one of both is constant."""
    kl = np.array([row["kl"] for row in rows.values()], dtype=float)
    gaps = [row["oracle"] - row[arm] for row in rows.values()]
    gap = np.array(gaps, dtype=float)
    # a bound that clips at 0 for every shift has the same gap for all
    if np.ptp(gap) == 0 or np.ptp(kl) == 0:
        return math.nan
    return float(np.corrcoef(kl, gap)[0, 1])


def _minute_cells(
    runs: Sequence[Rows], printed: Mapping[str, Any], size: int
) -> list[dict[str, Any]]:
    """Return cells of minutes; those of another machine cannot agree or disagree."""
    row_sizes = {"SVM": size}
    for other_size in SIZES:
        row_sizes[sized_row(other_size)] = other_size
    # the parts of a form stand in its line, so the note beside the form serves them
    part_arms = set()
    for part in PARTS:
        part_arms |= {form_part("closed", part), form_part("iterative", part)}
    cells = []
    for row in runs[0]:
        # the paper's minutes are those of the SVM, by the number of labelled rows
        minutes = printed.get(str(row_sizes.get(row)), {})
        for arm in runs[0][row]:
            values = _arm_values(runs, row, arm)
            ours, ours_std = mean_and_deviation(values)
            cells.append(
                {
                    "row": row,
                    "arm": arm,
                    "paper": float_or_nan(minutes.get(PRINTED_MINUTES.get(arm, ""))),
                    "ours": ours,
                    "ours_std": ours_std,
                    "repetitions": len(values),
                    "within": None,
                    "note": "" if arm in part_arms else MINUTES_NOTE,
                }
            )
    return cells
