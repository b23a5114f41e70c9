"""A study's results as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_with_spread, markdown_table
from benchmarks.studies.fidelity.judge import ALL_TABLES, FIGURES, Record
from benchmarks.studies.fidelity.protocol import REFERENCES, Phase, Protocol

_READING = """A difference is the mean over draws of tau(method) - tau(against) within the same
draw, ± its standard error. The samples of one draw are averaged first. Draws of one table share a
population, so the ± over all tables holds for these tables only; "tables" counts those whose own
difference has the same sign. p is a two-sided t test over draws, p (Holm) is adjusted over all
rows of its table, the primary contrasts (*) and the others apart."""
_LEVELS = """Mean over draws ± standard error, all tables together. A method's draws are those in
which it has an answer; a figure's mean is over those in which the figure exists. Coverage is fair
only against the reference a method aims at."""


def describe_progress(
    records: Sequence[Record], protocol: Protocol, phase: Phase
) -> str:
    """Return how much of what was declared has been drawn.

    Examples
    --------
    >>> records = [{"table": "a", "seed": 4}, {"table": "a", "seed": 7}]
    >>> describe_progress(records, Protocol(), "exploratory")
    '1 table, 2 of 10 declared draws'
    """
    tables = {str(record["table"]) for record in records}
    # a draw is a seed: every table is drawn by the same ones
    draws = len({int(record["seed"]) for record in records})
    declared = getattr(protocol.seeds, phase).draws
    plural = "" if len(tables) == 1 else "s"
    return f"{len(tables)} table{plural}, {draws} of {declared} declared draws"


def contrast_rows(contrasts: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return headers and cells of contrasts, see :func:`~.summary.paired_contrasts`."""
    headers = [
        "n",
        "method",
        "against",
        "reference",
        "difference in tau",
        "p",
        "p (Holm)",
        "draws",
        "left out",
        "tables",
    ]
    rows = []
    for contrast in contrasts.itertuples():
        # the legend above the table says what the star means
        star = "*" if contrast.primary else ""
        rows.append(
            [
                str(contrast.n),
                f"{star}{contrast.method}",
                contrast.against,
                contrast.reference,
                format_with_spread(contrast.difference, contrast.se, sign=True),
                format_p_value(contrast.p),
                format_p_value(contrast.p_holm),
                str(contrast.draws),
                str(contrast.left_out),
                f"{contrast.agree}/{contrast.tables}",
            ]
        )
    return headers, rows


def level_rows(
    levels: pd.DataFrame,
    table: str,
    *,
    n: int,
    figures: Sequence[str],
    references: Sequence[str],
) -> tuple[list[str], list[list[str]]]:
    """Return headers and cells of methods: some figures against some references."""
    # the levels hold every table and n; one Markdown table shows one of each
    part = levels[(levels["table"] == table) & (levels["n"] == n)]
    cells: dict[tuple[str, str, str], Any] = {}
    for cell in part.itertuples():
        cells[cell.method, cell.reference, cell.figure] = cell
    headers = ["method", "draws", "rows"]
    for figure in figures:
        for reference in references:
            headers.append(f"{figure.replace('_', ' ')}, {reference}")
    rows = []
    for method in dict.fromkeys(part["method"]):
        # draws and rows of a method are the same against every reference
        size = cells[method, references[0], "rows"]
        n_rows = f"{size.mean:.0f}" if size.draws else "-"
        line = [method, str(size.draws), n_rows]
        for figure in figures:
            for reference in references:
                cell = cells[method, reference, figure]
                line.append(format_with_spread(cell.mean, cell.se))
        rows.append(line)
    return headers, rows


def phase_markdown(
    phase: Phase,
    records: Sequence[Record],
    *,
    protocol: Protocol,
    contrasts: pd.DataFrame,
    levels: pd.DataFrame,
) -> str:
    """Return the contrasts and the levels of a phase as Markdown.

    Parameters
    ----------
    phase : {'exploratory', 'confirmatory'}
    records : sequence of dict
    protocol : Protocol
    contrasts : DataFrame
        From :func:`~benchmarks.studies.fidelity.summary.paired_contrasts`.
    levels : DataFrame
        From :func:`~benchmarks.studies.fidelity.summary.summarize_levels`, every reference.

    Returns
    -------
    str
    """
    # blocks are parted by empty lines, as Markdown wants its tables
    progress = describe_progress(records, protocol, phase)
    blocks = [
        f"# {protocol.name}, {phase} phase",
        f"{progress}; protocol `{protocol.sha256[:12]}`.",
        "## Declared contrasts",
        *_contrast_blocks(contrasts),
        "## Levels",
        _LEVELS,
        _figure_list(),
    ]
    for n in sorted(levels["n"].unique()):
        blocks += _level_blocks(levels, n)
    return "\n\n".join(blocks).rstrip() + "\n"


def _contrast_blocks(contrasts: pd.DataFrame) -> list[str]:
    """Return how to read the contrasts, then one table of them for each table of the study."""
    if not len(contrasts):
        return ["No contrast is declared."]
    blocks = [_READING]
    for table in dict.fromkeys(contrasts["table"]):
        headers, rows = contrast_rows(contrasts[contrasts["table"] == table])
        blocks += [f"### {table}", markdown_table(headers, rows)]
    return blocks


def _figure_list() -> str:
    lines = [f"- {name.replace('_', ' ')}: {text}" for name, text in FIGURES.items()]
    return "\n".join(lines)


def _level_blocks(levels: pd.DataFrame, n: int) -> list[str]:
    """Return the tables of one n, over all tables of the study."""
    # the two figures that depend on what a method aims at stand against every reference
    shown: list[tuple[list[str], Sequence[str]]] = [
        (["tau"], REFERENCES),
        (["coverage"], REFERENCES),
    ]
    others = [figure for figure in FIGURES if figure not in ("tau", "coverage")]
    shown.append((others, REFERENCES[:1]))
    blocks = [f"### n = {n}"]
    for figures, references in shown:
        headers, rows = level_rows(
            levels,
            ALL_TABLES,
            n=n,
            figures=figures,
            references=references,
        )
        blocks.append(markdown_table(headers, rows))
    return blocks


def format_p_value(p: float) -> str:
    """Return a p-value in few digits.

    Examples
    --------
    >>> format_p_value(0.0421), format_p_value(0.00004), format_p_value(float("nan"))
    ('0.042', '<0.001', '-')
    """
    # one draw has no spread to test by
    if math.isnan(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
