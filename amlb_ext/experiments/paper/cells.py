"""Mean ± std over splits beside the printed number, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import yaml

from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import format_with_spread, markdown_table
from amlb_ext.experiments.agreement import (
    agreement_word,
    compare_with_printed,
    float_or_nan,
)
from amlb_ext.experiments.paper.data import DATA
from amlb_ext.experiments.paper.run import SplitResult
from amlb_ext.experiments.paper.settings import Experiment

#: Names of the measures, as the paper prints them.
MEASURES = {
    "mse": "MSE",
    "smape": "SMAPE",
    "f1": "F1",
    "auc": "ROC AUC",
    "wasserstein": "Wasserstein",
    "w_target": "W1 of targets",
    "w_features": "W1 of features",
    "residual_variance": "residual variance",
}
PARTS = {"bad": "X_b", "ga": "X_ga", "synthetic": "X~"}
#: Entries of a printed row that are no model: its share of bad points, for one.
MODELS = ("F", "G")
#: Table 1 prints the unperturbed bad rows as a row of their own; every other row has them, too.
INITIAL_ROW = "initial"
#: Digits after the point, as the paper prints them.
DECIMALS = 4
COLUMNS = (
    "data",
    "row",
    "model",
    "part",
    "measure",
    "paper",
    "paper_std",
    "ours",
    "ours_std",
    "splits",
    "within",
)


@lru_cache(maxsize=1)
def printed_numbers() -> dict[str, Any]:
    """Return the paper's numbers: table → row → model → part → measure → [mean, std]."""
    path = asset_path("resources", "reproduce", "printed.yaml")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def compare_cells(experiment: Experiment, done: Sequence[SplitResult]) -> pd.DataFrame:
    """Return one row per cell of a table.

    Returns
    -------
    DataFrame
        :data:`COLUMNS`; ``within`` is None where there is nothing to compare: no printed number,
        or none of ours. Where the paper prints no deviation (Table 1) ours is taken, so the mark
        is lenient where our splits scatter.
    """
    # every printed cell has a row, also where ours is missing: the page shows what lacks
    cells = []
    table = printed_numbers().get(experiment.name, {})
    for data, rows in experiment.rows.items():
        splits = [split for split in done if split.data == data]
        names = list(rows)
        if experiment.name == "table-1":
            names.insert(0, INITIAL_ROW)
        for name in names:
            # the bad rows are the same under every setting: those of the first stand for "initial"
            setting = next(iter(rows)) if name == INITIAL_ROW else name
            for model, part, measure, numbers in _printed_cells(table.get(name, {})):
                values = _split_values(
                    splits,
                    setting,
                    part=part,
                    model=model,
                    measure=_our_measure(measure),
                )
                key = {
                    "data": data,
                    "row": name,
                    "model": model,
                    "part": part,
                    "measure": measure,
                }
                cells.append(key | _compare_cell(numbers, values))
    return pd.DataFrame(cells, columns=list(COLUMNS))


def _printed_cells(
    row: Mapping[str, Any],
) -> Iterator[tuple[str, str, str, Sequence[float]]]:
    """Yield model, part, measure and the printed numbers of one row of a table."""
    for model, parts in row.items():
        if model not in MODELS:
            continue
        for part, measures in parts.items():
            for measure, numbers in measures.items():
                yield model, part, measure, numbers


def _our_measure(printed_measure: str) -> str:
    # the paper's "Wasserstein" is the distance of the features; ours says of what it is one
    return "w_features" if printed_measure == "wasserstein" else printed_measure


def _split_values(
    splits: Sequence[SplitResult], setting: str, *, part: str, model: str, measure: str
) -> np.ndarray:
    """Return one number per split; NaN where the split has no such rows."""
    values = []
    for split in splits:
        # a split without bad rows, or from which nothing was made, lacks the part
        scores = split.rows[setting]["scores"].get(part, {}).get(model, {})
        values.append(float_or_nan(scores.get(measure)))
    return np.array(values, dtype=float)


def _compare_cell(numbers: Sequence[float], values: np.ndarray) -> dict[str, Any]:
    printed_std = numbers[1] if len(numbers) > 1 else math.nan
    comparison = compare_with_printed(
        values, numbers[0], printed_std=printed_std, takes_our_std=True
    )
    return comparison | {"splits": int((~np.isnan(values)).sum())}


def compare_shares(experiment: Experiment, done: Sequence[SplitResult]) -> pd.DataFrame:
    """Return the share of bad points of each row beside the printed one, and how many rows made.

    Returns
    -------
    DataFrame
        ``data, row, paper, ours, ours_std, bad, ga, synthetic, splits``; counts are means.
    """
    shares = []
    printed = printed_numbers().get(experiment.name, {})
    for data, rows in experiment.rows.items():
        splits = [split for split in done if split.data == data]
        for row in rows:
            # rows of each part, one line per split
            counts = pd.DataFrame([split.rows[row]["counts"] for split in splits])
            share = counts["bad"] / counts["test"]
            entry = {
                "data": data,
                "row": row,
                "paper": printed.get(row, {}).get("share", math.nan),
                "ours": float(share.mean()),
                "ours_std": float(share.std()) if len(share) > 1 else math.nan,
            }
            entry |= counts[["bad", "ga", "synthetic"]].mean().to_dict()
            shares.append(entry | {"splits": len(share)})
    columns = [
        "data",
        "row",
        "paper",
        "ours",
        "ours_std",
        "bad",
        "ga",
        "synthetic",
        "splits",
    ]
    return pd.DataFrame(shares, columns=columns)


# --- as text ---


def format_printed(value: Any, deviation: Any = math.nan) -> str:
    """Return ``mean ± std`` with the paper's digits, nothing where there is none.

    Examples
    --------
    >>> format_printed(0.36551, 0.1), format_printed(float("nan")), format_printed(0.029)
    ('0.3655 ± 0.1000', '', '0.0290')
    """
    return format_with_spread(value, deviation, DECIMALS, missing="")


def cells_markdown(experiment: Experiment, table: pd.DataFrame) -> str:
    """Return the cells as Markdown, one table per data set."""
    headers = [
        "row",
        "model",
        "rows of",
        "measure",
        "paper",
        "ours",
        "splits",
        "two std",
    ]
    blocks = [f"# {experiment.title}", ""]
    for data in experiment.rows:
        part = table[table["data"] == data]
        if not len(part):
            continue
        lines = [
            [
                cell.row,
                cell.model,
                PARTS[str(cell.part)],
                MEASURES[str(cell.measure)],
                format_printed(cell.paper, cell.paper_std),
                format_printed(cell.ours, cell.ours_std),
                cell.splits,
                agreement_word(cell.within),
            ]
            for cell in part.itertuples()
        ]
        blocks += [f"## {DATA[data].text}", "", markdown_table(headers, lines), ""]
    return "\n".join(blocks)
