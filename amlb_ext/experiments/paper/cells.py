"""Mean ± std over splits beside the printed number, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import yaml

from amlb_ext.core.assets import asset_path
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
#: A cell agrees when our mean lies within so many printed standard deviations.
WITHIN = 2.0
COLUMNS = (
    "data", "row", "model", "part", "measure", "paper", "paper_std", "ours", "ours_std",
    "splits", "within",
)  # fmt: skip


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
    found = []
    table = printed_numbers().get(experiment.name, {})
    for data, rows in experiment.rows.items():
        splits = [d for d in done if d.data == data]
        names = (["initial"] if experiment.name == "table-1" else []) + list(rows)
        for row in names:
            for model, parts in table.get(row, {}).items():
                if model in ("F", "G"):
                    for part, measures in parts.items():
                        for measure, numbers in measures.items():
                            values = _values(splits, row, rows, part, model, measure)
                            found.append((data, row, model, part, measure, *_cell(numbers, values)))
    return pd.DataFrame(found, columns=list(COLUMNS))


def _values(
    splits: Sequence[SplitResult], row: str, rows: Any, part: str, model: str, measure: str
) -> np.ndarray:
    key = next(iter(rows)) if row == "initial" else row
    name = "w_features" if measure == "wasserstein" else measure
    out = [
        split.rows[key]["scores"].get(part, {}).get(model, {}).get(name, math.nan)
        for split in splits
    ]
    return np.array([math.nan if value is None else value for value in out], dtype=float)


def _cell(numbers: Sequence[float], values: np.ndarray) -> tuple[Any, ...]:
    values = values[~np.isnan(values)]
    paper, deviation = numbers[0], numbers[1] if len(numbers) > 1 else math.nan
    if not len(values):
        return paper, deviation, math.nan, math.nan, 0, None
    ours = float(values.mean())
    scatter = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    limit = WITHIN * (scatter if math.isnan(deviation) else deviation)
    within = None if math.isnan(limit) else bool(abs(ours - paper) <= limit)
    return paper, deviation, ours, scatter, len(values), within


def compare_shares(experiment: Experiment, done: Sequence[SplitResult]) -> pd.DataFrame:
    """Return the share of bad points of each row beside the printed one, and how many rows made.

    Returns
    -------
    DataFrame
        ``data, row, paper, ours, ours_std, bad, ga, synthetic, splits``; counts are means.
    """
    out = []
    for data, rows in experiment.rows.items():
        splits = [d for d in done if d.data == data]
        for row in rows:
            counts = pd.DataFrame([split.rows[row]["counts"] for split in splits])
            share = counts["bad"] / counts["test"]
            told = printed_numbers().get(experiment.name, {}).get(row, {}).get("share", math.nan)
            means = counts[["bad", "ga", "synthetic"]].mean()
            spread = float(share.std()) if len(share) > 1 else math.nan
            out.append((data, row, told, float(share.mean()), spread, *means, len(share)))
    names = ["data", "row", "paper", "ours", "ours_std", "bad", "ga", "synthetic", "splits"]
    return pd.DataFrame(out, columns=names)


def count_verdicts(table: pd.DataFrame) -> dict[str, int]:
    """Return how many cells agree, disagree, and have nothing to compare."""
    if not len(table):
        return {"within": 0, "outside": 0, "none": 0}
    within = table["within"]
    agree, differ = int((within == True).sum()), int((within == False).sum())  # noqa: E712
    return {"within": agree, "outside": differ, "none": len(table) - agree - differ}


def format_number(value: float, deviation: float = math.nan) -> str:
    """Return ``mean ± std`` in four decimals.

    Examples
    --------
    >>> format_number(0.36551, 0.1), format_number(float("nan")), format_number(0.029)
    ('0.3655 ± 0.1000', '', '0.0290')
    """
    if math.isnan(value):
        return ""
    return f"{value:.4f}" if math.isnan(deviation) else f"{value:.4f} ± {deviation:.4f}"


def agreement_word(within: Any) -> str:
    """Return the word for a cell's agreement."""
    return {True: "within", False: "outside"}.get(within, "–")


def cells_markdown(experiment: Experiment, table: pd.DataFrame) -> str:
    """Return the cells as Markdown, one table per data set."""
    blocks = [f"# {experiment.title}", ""]
    for data in experiment.rows:
        part = table[table["data"] == data]
        if not len(part):
            continue
        blocks += [f"## {DATA[data].text}", "", *_lines(part), ""]
    return "\n".join(blocks)


def _lines(part: pd.DataFrame) -> list[str]:
    head = ["row", "model", "rows of", "measure", "paper", "ours", "splits", "two std"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for cell in part.itertuples():
        entries = (
            cell.row,
            cell.model,
            PARTS[str(cell.part)],
            MEASURES[str(cell.measure)],
            format_number(float(cell.paper), float(cell.paper_std)),
            format_number(float(cell.ours), float(cell.ours_std)),
            cell.splits,
            agreement_word(cell.within),
        )
        lines.append("| " + " | ".join(map(str, entries)) + " |")
    return lines
