"""The page of a study: tables and pictures with what reproduces them, as Markdown.

Every table that has a file name stands beside the page as CSV with all digits, every picture as
SVG. The same numbers give the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from amlb_ext.core.display import format_with_spread, markdown_table
from amlb_ext.core.files import write_file, write_text

PAGE = "index.md"
#: Letters stay text, and ids follow from the content.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hardsynth",
    "font.size": 9,
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: ``frame`` as people read it, or, with ``file``, all of it as CSV as well."""

    heading: str
    frame: pd.DataFrame | None = None
    file: str = ""
    data: pd.DataFrame | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A picture and what it shows."""

    file: str
    figure: Figure
    caption: str


Part = Table | Picture | str


def mean_and_error(values: Any, decimals: int = 3, *, sign: bool = False) -> str:
    """Return ``mean ± standard error`` of repetitions; NaN are left out.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0]), mean_and_error([2.0]), mean_and_error([])
    ('2.000 ± 1.000', '2.000', '-')
    """
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    mean = known.mean() if len(known) else np.nan
    error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
    return format_with_spread(mean, error, decimals, sign=sign)


def means_table(
    rows: pd.DataFrame, index: str, columns: str, decimals: int = 3
) -> pd.DataFrame:
    """Return ``mean ± standard error`` of the values by two labels, in order of appearance.

    Examples
    --------
    >>> rows = pd.DataFrame({"method": ["a", "a"], "data": ["d", "d"], "value": [0.25, 0.75]})
    >>> means_table(rows, "method", "data").to_numpy().tolist()
    [['a', '0.500 ± 0.250']]
    """
    groups = rows.groupby([index, columns], sort=False)["value"]
    shown = groups.agg(lambda values: mean_and_error(values, decimals)).unstack(columns)
    in_order = shown.reindex(index=rows[index].unique(), columns=rows[columns].unique())
    return in_order.fillna("").reset_index()


def write_page(
    folder: Path,
    *,
    title: str,
    parts: Sequence[Part],
    facts: Mapping[str, str],
    notes: Sequence[str],
) -> Path:
    """Write the parts of a study into its folder; return the page's path."""
    blocks = [f"# {title}"]
    blocks.append("\n".join(f"- {key}: {text}" for key, text in facts.items() if text))
    if notes:
        blocks.append("\n".join(f"- {note}" for note in notes))
    for part in parts:
        if isinstance(part, str):
            blocks.append(part)
        elif isinstance(part, Picture):
            write_text(folder / part.file, svg_text(part.figure))
            blocks += [f"![{part.caption}]({part.file})", part.caption]
        else:
            blocks += _table_blocks(folder, part)
    path = folder / PAGE
    write_text(path, "\n\n".join(blocks) + "\n")
    return path


def _table_blocks(folder: Path, table: Table) -> list[str]:
    blocks = [f"## {table.heading}"]
    if table.note:
        blocks.append(table.note)
    if table.frame is not None:
        headers = [str(column) for column in table.frame.columns]
        blocks.append(markdown_table(headers, table.frame.to_numpy().tolist()))
    if table.file:
        data = table.frame if table.data is None else table.data
        assert data is not None
        # rounded: the last bits of a sum differ between machines
        rounded = data.round(9)
        write_file(folder / table.file, lambda part: rounded.to_csv(part, index=False))
        blocks.append(f"All digits: [{table.file}]({table.file})")
    return blocks


def svg_text(figure: Figure) -> str:
    """Return a figure as SVG, the same bytes every time."""
    FigureCanvasSVG(figure)
    text = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(
            text, format="svg", metadata={"Date": None, "Creator": None}, dpi=140
        )
    return text.getvalue()
