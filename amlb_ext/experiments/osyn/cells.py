"""Mean ± std over repetitions beside the printed number, and how often a limit held."""

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
from amlb_ext.experiments.osyn.choices import SHIFTS, OsynTable
from amlb_ext.experiments.osyn.cost import PARTS

COLUMNS = (
    "data", "row", "arm", "paper", "paper_std", "paper_gap", "ours", "ours_std", "gap", "holds",
    "repetitions", "within", "note",
)  # fmt: skip
#: A cell agrees within so many printed standard deviations, or within so much.
WITHIN, LEAST = 2.0, 0.01
ANSWER = "needs the answer: not available to a user"
#: Arm → (what is printed for it, a note). The order is that of the columns of a table.
ARMS = {
    "oracle": ("oracle", ""),
    "a_priori": ("osyn", "settings fixed before"),
    "reading": ("osyn", f"b found by comparing with the printed bounds; {ANSWER}"),
    "closed": ("osyn", "the same, every region filled"),
    "tuned_set": ("osyn", f"b and δ2 for all models of the data; {ANSWER}"),
    "tuned": ("osyn", ANSWER),
    "bootstrap": ("bootstrap", ""),
    "synthetic": ("synthetic", ""),
    "limit": ("", "what a user has: lower limit from S alone"),
    "low": ("", "what a user has: interval by class with known priors, its lower end"),
    "high": ("", "the same, its upper end"),
    "kl": ("kl", ""),
}
HEADS = {
    "oracle": "true loss",
    "a_priori": "OSYN, a priori",
    "reading": "OSYN, b as printed bounds suggest",
    "closed": "OSYN, closed form, a priori",
    "tuned_set": "OSYN, tuned with the oracle, data by data",
    "tuned": "OSYN, tuned with the oracle",
    "bootstrap": "bootstrap",
    "synthetic": "synthetic rows",
    "limit": "limit from S",
    "low": "by class, low",
    "high": "by class, high",
    "kl": "KL",
}
DRAWS = "Pearson of each draw of S: "
BOUNDS = ("a_priori", "closed", "reading", "tuned_set", "tuned", "bootstrap", "limit")
#: Where a dictionary of printed minutes stands, and the two forms that stand beside it.
MINUTES = {
    "closed": "osyn",
    "iterative": "osyn",
    "bootstrap": "bootstrap",
    "synthetic": "synthetic",
}


@dataclass(frozen=True)
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


def compare_cells(table: OsynTable, done: Sequence[Outcome], size: int = 500) -> pd.DataFrame:
    """Return one row per cell.

    Returns
    -------
    DataFrame
        :data:`COLUMNS`; ``gap`` is the mean of oracle - estimate, ``holds`` the share of
        repetitions in which a limit was not above the oracle's loss (``low`` and ``high``: in
        which their interval held it). ``within`` is None where nothing is printed.
    """
    told = printed_numbers()[table.name]
    found = []
    for data in dict.fromkeys(one.data for one in done):
        runs = [one.rows for one in done if one.data == data]
        order = SHIFTS if table.name == "osyn-table-1" else table.data[data]
        if table.name == "osyn-cost":
            order = tuple(runs[0])
        for row in (name for name in order if name in runs[0]):
            if table.name == "osyn-cost":
                labelled = row.partition("SVM, K = ")[2] or str(size)
                of = {arm: told.get(labelled, {}).get(key) for arm, key in MINUTES.items()}
                of = of if row.startswith("SVM") else {}
                found += [
                    _minutes(data, row, arm, of.get(arm), _values(runs, row, arm))
                    for arm in runs[0][row]
                ]
                continue
            own = told["rows"] if table.name == "osyn-table-1" else told.get(data, {})
            for arm in ARMS:
                if arm in runs[0][row]:
                    found.append((data, row, arm, *_cell(arm, own.get(row, {}), runs, row)))
        if table.name == "osyn-table-1":
            found += _pearson(data, runs, told["pearson"])
    return pd.DataFrame(found, columns=list(COLUMNS))


def _values(runs: Sequence[Mapping[str, Any]], row: str, arm: str) -> np.ndarray:
    given = [run[row].get(arm) for run in runs]
    return np.array([math.nan if value is None else value for value in given], dtype=float)


def _cell(
    arm: str, told: Mapping[str, Any], runs: Sequence[Mapping[str, Any]], row: str
) -> tuple[Any, ...]:
    values, oracle = _values(runs, row, arm), _values(runs, row, "oracle")
    number, spread, gap = _told(told, ARMS[arm][0])
    seen = ~np.isnan(values)
    ours, scatter = _mean(values)
    holds = math.nan
    if arm in BOUNDS and seen.any():
        holds = float((values <= oracle)[seen].mean())
    elif arm in ("low", "high") and seen.any():
        inside = (_values(runs, row, "low") <= oracle) & (oracle <= _values(runs, row, "high"))
        holds = float(inside[seen].mean())
    mine = math.nan if arm in ("oracle", "kl") else _mean(oracle - values)[0]
    return (number, spread, gap, ours, scatter, mine, holds, int(seen.sum()),
            agrees(number, spread, ours), ARMS[arm][1])  # fmt: skip


def _told(told: Mapping[str, Any], key: str) -> tuple[float, float, float]:
    """Return the printed mean, std and gap."""
    entry = told.get(key)
    if entry is None:
        return math.nan, math.nan, math.nan
    if isinstance(entry, int | float):
        return float(entry), math.nan, math.nan
    if "gap" in told:  # Table 1: mean and std, and the gap beside them
        return entry[0], entry[1], told["gap"][0]
    return entry[0], entry[1] if len(entry) > 2 else math.nan, entry[-1]


def agrees(paper: float, spread: float, ours: float) -> bool | None:
    """Return whether ours lies within two printed deviations or .01, whichever is more.

    Examples
    --------
    >>> agrees(0.2, 0.001, 0.209), agrees(0.2, 0.001, 0.211), agrees(0.2, 0.02, 0.239)
    (True, False, True)
    """
    if math.isnan(paper) or math.isnan(ours):
        return None
    limit = max(LEAST, WITHIN * spread) if not math.isnan(spread) else LEAST
    return bool(abs(ours - paper) <= limit + 1e-12)


def _mean(values: np.ndarray) -> tuple[float, float]:
    values = values[~np.isnan(values)]
    if not len(values):
        return math.nan, math.nan
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else math.nan


def _pearson(data: str, runs: Sequence[Mapping[str, Any]], told: float) -> list[tuple[Any, ...]]:
    """Return the correlation of KL and gap over the shifts, for each draw of S."""
    out = []
    for arm in ("a_priori", "reading", "tuned"):
        found = []
        for run in runs:
            kl = np.array([row["kl"] for row in run.values()], dtype=float)
            gap = np.array([row["oracle"] - row[arm] for row in run.values()], dtype=float)
            flat = np.ptp(gap) == 0 or np.ptp(kl) == 0
            found.append(math.nan if flat else float(np.corrcoef(kl, gap)[0, 1]))
        ours, scatter = _mean(np.array(found))
        nan, n = math.nan, int(np.isfinite(found).sum())
        within = agrees(told, nan, ours)
        draws = ", ".join("–" if math.isnan(r) else f"{r:.2f}" for r in found)
        note = f"{DRAWS}{draws}"
        out.append((data, "Pearson(KL, gap)", arm, told, nan, nan, ours, scatter, nan, nan, n,
                    within, note))  # fmt: skip
    return out


def _minutes(
    data: str, row: str, arm: str, told: float | None, values: np.ndarray
) -> tuple[Any, ...]:
    """Return a cell of minutes; those of another machine cannot agree or disagree."""
    ours, scatter = _mean(values)
    nan = math.nan
    paper = nan if told is None else told
    note = "" if arm.partition(": ")[2] in PARTS else "processor minutes, one thread"
    return (data, row, arm, paper, nan, nan, ours, scatter, nan, nan, len(values), None, note)
