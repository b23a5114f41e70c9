"""Every draw's figures as one long table, and what the paper prints beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import yaml

from amlb_ext.core.assets import asset_path
from benchmarks.studies.agreement import mean_and_deviation
from benchmarks.studies.swarms.choices import FORMS, OBJECTIVES
from benchmarks.studies.swarms.hull import summarise_hull
from benchmarks.studies.swarms.run import DrawResult

#: Of the long table: one line per draw and figure.
FIGURE_COLUMNS = ("data", "number", "form", "objective", "method", "figure", "value")
COLUMNS = (
    "data",
    "form",
    "objective",
    "method",
    "figure",
    "paper",
    "ours",
    "ours_std",
    "ours_se",
    "draws",
    "within",
)
#: Forms in the order in which they are shown; a record read back has its keys sorted.
FORM_ORDER = ("literal", "honest", "fitted", "own", "teacher")
#: Settings of unseen takers of Table 2, and what stands for them here.
PRINTED_TAKERS = {"qwen": "refits", "open": "unseen", "closed": "unseen"}


@lru_cache(maxsize=1)
def printed_numbers() -> dict[str, Any]:
    """Return the paper's numbers; see the head of the file.

    Examples
    --------
    >>> printed_numbers()["swarm-table-3"]["difficult"]["pso"]
    0.639
    """
    path = asset_path("resources", "reproduce", "printed_swarms.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def list_figures(table: str, done: Sequence[DrawResult]) -> pd.DataFrame:
    """Return one line per draw, form, objective, method and figure.

    Parameters
    ----------
    table : str
        Name of the paper's table.
    done : sequence of DrawResult

    Returns
    -------
    DataFrame
        :data:`FIGURE_COLUMNS`; figures that a draw has not are left out.
    """
    lines = []
    for draw in done:
        for form, objective, method, figures in _entries(table, draw.rows):
            for figure, value in figures.items():
                if value is None:
                    continue
                place = (draw.data, draw.number, form, objective, method)
                lines.append((*place, figure, float(value)))
    figures = pd.DataFrame(lines, columns=list(FIGURE_COLUMNS))
    places = figures["form"].map(FORM_ORDER.index)
    # stable, so that tables of data and objectives stay in the order in which they were run
    return figures.iloc[np.argsort(places.to_numpy(), kind="stable")]


def _entries(
    table: str, rows: Mapping[str, Any]
) -> Iterator[tuple[str, str, str, Mapping[str, float | None]]]:
    """Yield form, objective, method and figures of one draw, whatever its table's nesting."""
    if table == "swarm-table-1":
        # in the order of Table 1: a record read back has its keys sorted
        for objective in sorted(rows, key=_objective_place):
            for form, methods in rows[objective].items():
                for method, figures in methods.items():
                    yield form, objective, method, figures
    elif table == "swarm-table-2":
        for form, methods in rows["forms"].items():
            for method, figures in methods.items():
                yield form, "difficult", method, figures
    elif table == "swarm-table-3":
        for form, objectives in rows.items():
            for objective, methods in objectives.items():
                for method, figures in methods.items():
                    yield form, objective, method, figures
    elif table == "swarm-adversarial":
        for labels, entry in rows.items():
            for arm, accuracy in entry["arms"].items():
                yield labels, "accuracy", arm, {"accuracy": accuracy}
            share = {"contradicted": entry["contradicted"]}
            yield labels, "accuracy", "swarm_rows", share
    else:
        for form in FORMS:
            yield form, "difficult", "pso", summarise_hull(rows, form)


def _objective_place(objective: str) -> int:
    if objective in OBJECTIVES:
        return OBJECTIVES.index(objective)
    # one that only the user asked for
    return len(OBJECTIVES)


def compare_cells(table: str, done: Sequence[DrawResult]) -> pd.DataFrame:
    """Return one row per cell: mean, deviation and standard error over draws.

    ``within`` is None throughout: the paper's data are texts, so no number of ours can lie within
    a printed one; what is compared are the claims, see
    :mod:`~benchmarks.studies.swarms.claims`.
    """
    figures = list_figures(table, done)
    keys = ["data", "form", "objective", "method", "figure"]
    cells = []
    for place, group in figures.groupby(keys, sort=False):
        values = group["value"].to_numpy()
        ours, deviation = mean_and_deviation(values)
        cell = dict(zip(keys, place, strict=True))
        cell["paper"] = printed_mean(table, **cell)
        cell |= {
            "ours": ours,
            "ours_std": deviation,
            "ours_se": deviation / np.sqrt(len(values)),
            "draws": len(values),
            "within": None,
        }
        cells.append(cell)
    return pd.DataFrame(cells, columns=list(COLUMNS))


def printed_mean(
    table: str, *, objective: str, method: str, figure: str, **place: str
) -> float:
    """Return the printed number of a cell, of several data sets the mean; NaN for none.

    Examples
    --------
    >>> printed_mean("swarm-table-3", objective="difficult", method="pso", figure="seen difficult")
    0.639
    """
    printed = printed_numbers().get(table, {})
    if table == "swarm-table-1" and figure == "fresh":
        entry = printed.get(objective, {}).get(method, {})
        return _mean([numbers[0] for numbers in entry.values()])
    if table == "swarm-table-2":
        numbers = []
        for takers, ours in PRINTED_TAKERS.items():
            if ours == figure:
                numbers += list(printed[takers].get(method, {}).values())
        return _mean(numbers)
    if table == "swarm-table-3" and figure == f"seen {objective}":
        return float(printed[objective].get(method, np.nan))
    return float("nan")


def _mean(numbers: Sequence[float]) -> float:
    return float(np.mean(numbers)) if len(numbers) else float("nan")
