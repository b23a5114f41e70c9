"""A study's results as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from amlb_ext.core.display import markdown_table
from amlb_ext.experiments.fidelity.judge import ALL_TABLES, FIGURES, Record
from amlb_ext.experiments.fidelity.protocol import REFERENCES, Phase, Protocol

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
    tables = sorted({str(r["table"]) for r in records})
    draws = len({int(r["seed"]) for r in records})
    declared = getattr(protocol.seeds, phase).draws
    plural = "" if len(tables) == 1 else "s"
    return f"{len(tables)} table{plural}, {draws} of {declared} declared draws"


def contrast_rows(found: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return headers and cells of contrasts, see :func:`~.summary.paired`."""
    headers = [
        "n",
        "method",
        "against",
        "reference",
        "difference in tau",
        "p",
        "p (Holm)",
    ]
    headers += ["draws", "left out", "tables"]
    rows = [
        [
            *(
                str(r.n),
                "*" * r.primary + r.method,
                r.against,
                r.reference,
                format_mean(r.difference, r.se, "+"),
            ),
            *(
                format_p_value(r.p),
                format_p_value(r.p_holm),
                str(r.draws),
                str(r.left_out),
            ),
            f"{r.agree}/{r.tables}",
        ]
        for r in found.itertuples()
    ]
    return headers, rows


def level_rows(
    every: pd.DataFrame,
    table: str,
    n: int,
    figures: Sequence[str],
    references: Sequence[str],
) -> tuple[list[str], list[list[str]]]:
    """Return headers and cells of methods: some figures against some references."""
    part = every[(every["table"] == table) & (every["n"] == n)]
    cells: dict[tuple[str, str, str], Any] = {
        (r.method, r.reference, r.figure): r for r in part.itertuples()
    }
    shown = [(reference, figure) for figure in figures for reference in references]
    headers = [
        "method",
        "draws",
        "rows",
        *(f"{f.replace('_', ' ')}, {r}" for r, f in shown),
    ]
    rows = []
    for method in dict.fromkeys(part["method"]):
        size = cells[method, references[0], "rows"]
        line = [method, str(size.draws), f"{size.mean:.0f}" if size.draws else "-"]
        for reference, figure in shown:
            found = cells[method, reference, figure]
            line.append(format_mean(found.mean, found.se))
        rows.append(line)
    return headers, rows


def phase_markdown(
    phase: Phase,
    records: Sequence[Record],
    protocol: Protocol,
    found: pd.DataFrame,
    every: pd.DataFrame,
) -> str:
    """Return the contrasts and the levels of a phase as Markdown.

    Parameters
    ----------
    phase : {'exploratory', 'confirmatory'}
    records : sequence of dict
    protocol : Protocol
    found : DataFrame
        From :func:`~amlb_ext.experiments.fidelity.summary.paired_contrasts`.
    every : DataFrame
        From :func:`~amlb_ext.experiments.fidelity.summary.summarize_levels`, every reference.

    Returns
    -------
    str
    """
    lines = [f"# {protocol.name}, {phase} phase", ""]
    lines += [
        f"{describe_progress(records, protocol, phase)}; protocol `{protocol.sha256[:12]}`.",
        "",
    ]
    lines += ["## Declared contrasts", ""]
    if len(found):
        lines += [_READING, ""]
        for table in dict.fromkeys(found["table"]):
            lines += [
                f"### {table}",
                "",
                markdown_table(*contrast_rows(found[found["table"] == table])),
                "",
            ]
    else:
        lines += ["No contrast is declared.", ""]
    lines += ["## Levels", "", _LEVELS, ""]
    lines += [
        *(f"- {figure.replace('_', ' ')}: {text}" for figure, text in FIGURES.items()),
        "",
    ]
    others = [figure for figure in FIGURES if figure not in ("tau", "coverage")]
    for n in sorted(every["n"].unique()):
        lines += [f"### n = {n}", ""]
        for figure in ("tau", "coverage"):
            lines += [
                markdown_table(*level_rows(every, ALL_TABLES, n, [figure], REFERENCES)),
                "",
            ]
        lines += [
            markdown_table(*level_rows(every, ALL_TABLES, n, others, REFERENCES[:1])),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def format_mean(mean: float, se: float, sign: str = "") -> str:
    """Return a mean and its s.e.

    Examples
    --------
    >>> format_mean(0.1, 0.02, "+"), format_mean(0.5, float("nan")), format_mean(float("nan"), 0.0)
    ('+0.100 ± 0.020', '0.500', '-')
    """
    if math.isnan(mean):
        return "-"
    return f"{mean:{sign}.3f}" + ("" if math.isnan(se) else f" ± {se:.3f}")


def format_p_value(p: float) -> str:
    """Return a p-value in few digits.

    Examples
    --------
    >>> format_p_value(0.0421), format_p_value(0.00004), format_p_value(float("nan"))
    ('0.042', '<0.001', '-')
    """
    if math.isnan(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
