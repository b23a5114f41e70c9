"""The page of a study: tables and pictures with what reproduces them, as Markdown.

Every table that has a file name stands beside the page as CSV with all digits, every picture as
SVG. The same numbers give the same bytes. Our repetitions stand beside a printed number by one rule
and in one table, for all papers with numbers.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import yaml
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from amlb_ext.core.display import format_decimals, is_known, markdown_table
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


def format_with_spread(
    value: Any,
    spread: Any,
    decimals: int = 3,
    *,
    sign: bool = False,
    missing: str = "-",
) -> str:
    """Return a number and its standard deviation or error, the number alone if that is unknown.

    Examples
    --------
    >>> format_with_spread(0.36551, 0.1, 4), format_with_spread(0.1, None, sign=True)
    ('0.3655 ± 0.1000', '+0.100')
    """
    text = format_decimals(value, decimals, sign=sign, missing=missing)
    if not (is_known(value) and is_known(spread)):
        return text
    return f"{text} ± {format_decimals(spread, decimals)}"


def mean_and_error(values: Any, decimals: int = 3) -> str:
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
    return format_with_spread(mean, error, decimals)


def means_table(
    rows: pd.DataFrame,
    index: str | list[str],
    columns: str,
    text: Callable[[Any], str] = mean_and_error,
) -> pd.DataFrame:
    """Return a text of the values by labels, in order of appearance.

    Examples
    --------
    >>> rows = pd.DataFrame({"method": ["a", "a"], "data": ["d", "d"], "value": [0.25, 0.75]})
    >>> means_table(rows, "method", "data").to_numpy().tolist()
    [['a', '0.500 ± 0.250']]
    """
    names = [index] if isinstance(index, str) else index
    groups = rows.groupby([*names, columns], sort=False)["value"]
    shown = groups.agg(text).unstack(columns)
    lines = rows.set_index(names).index.unique()
    in_order = shown.reindex(index=lines, columns=rows[columns].unique())
    return in_order.fillna("").reset_index()


def summarize_means(
    *index: str, columns: str = "figure"
) -> Callable[[pd.DataFrame, Any], list[Part]]:
    """Return a summary of a study: the mean and standard error of each figure, by labels."""

    def summarize(rows: pd.DataFrame, _: Any) -> list[Part]:
        groups = rows.groupby([*index, columns], sort=False)["value"]
        means = groups.agg(mean="mean", se="sem", count="count").reset_index()
        shown = means_table(rows, list(index), columns)
        return [Table(heading="Means", frame=shown, data=means, file="means.csv")]

    return summarize


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


def text_tables(
    cells: pd.DataFrame,
    texts: Iterable[str],
    by: list[str],
    *,
    index: str | list[str],
    columns: str,
) -> list[Table]:
    """Return one table of texts for each value of some labels, in order of appearance."""
    tables = []
    for place, part in cells.assign(text=list(texts)).groupby(by, sort=False):
        wide = part.pivot_table(
            index=index, columns=columns, values="text", aggfunc="first", sort=False
        )
        frame = wide.fillna("").reset_index()
        tables.append(Table(heading=", ".join(map(str, place)), frame=frame))
    return tables


def compared_tables(
    cells: pd.DataFrame, texts: Iterable[str], *, index: list[str], columns: str
) -> list[Table]:
    """Return one table for each data set, and the file of all cells.

    Parameters
    ----------
    cells : DataFrame
        With a column ``data`` and those of :func:`compare_with_printed`.
    texts : iterable of str
        Of each cell, as the tables show it.
    index : list of str
        Columns that name a line.
    columns : str
        Column whose values are the columns of the tables.
    """
    counts = cells["within"].value_counts()
    verdict = (
        f"{counts.get(True, 0)} cells within, {counts.get(False, 0)} outside: at most "
        "two printed standard deviations from the printed mean. Each number: mean ± standard "
        "deviation over draws."
    )
    return [
        Table(heading="All cells", file="agreement.csv", data=cells, note=verdict),
        *text_tables(cells, texts, ["data"], index=index, columns=columns),
    ]
