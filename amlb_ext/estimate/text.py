"""Estimates in words: the one to quote, all of them as a table, and why a check failed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from amlb_ext.core.display import text_table

if TYPE_CHECKING:
    from amlb_ext.estimate.answers import EstimateReport


def report_text(report: EstimateReport) -> str:
    """Return the headline, the table, and why a check failed."""
    headers = ["estimator", "point", "low", "high", "check"]
    rows = []
    for row in report.rows:
        mark = " *" if row.recommended else ""
        numbers = [format_loss(value) for value in (row.point, row.low, row.high)]
        rows.append([row.name + mark, *numbers, row.check])
    lines = [headline(report), "", text_table(headers, rows), ""]

    findings = _group_by_text((row.name, row.reason) for row in report.rows)
    if findings:
        lines.append("found:")
        lines += _grouped_lines(findings)
    lines.append("assumed:")
    lines += _grouped_lines(
        _group_by_text((row.name, row.assumes) for row in report.rows)
    )
    lines += [f"note: {note}" for note in report.notes]
    return "\n".join(lines)


def headline(report: EstimateReport) -> str:
    """Return the estimate to quote and what it assumes, or why none can be quoted."""
    best = report.recommended
    if best is None:
        text = f"no estimate can be recommended: {report.refused}"
        if report.advice:
            text += f"\nwhat to do: {report.advice}"
        return text
    interval = f"{format_loss(best.low)} to {format_loss(best.high)}"
    return (
        f"{best.name}: {format_loss(best.point)}, {report.level:.0%} interval {interval} "
        f"({report.loss}, {report.unit}; {report.n} labelled rows)\n"
        f"assumes that {report.assumption}{_approximate_line(report)}"
    )


def _approximate_line(report: EstimateReport) -> str:
    """Return a line with the narrower interval beside one that holds for every bounded loss."""
    rows = {row.name: row for row in report.rows}
    if report.approximate not in rows:
        return ""
    row = rows[report.approximate]
    interval = f"{format_loss(row.low)} to {format_loss(row.high)}"
    # Only these losses can be capped.
    hint = ""
    if report.loss in ("squared", "absolute"):
        hint = "; --error-cap E narrows the first"
    return (
        f"\napproximately ({row.name}): {format_loss(row.point)}, {interval}, if no rare rows "
        f"lose far more than any labelled row: the losses are too skewed, or too few, to rely on "
        f"that{hint}"
    )


def _group_by_text(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return each text once, with the estimators that it is about; empty texts are left out."""
    names_by_text: dict[str, list[str]] = {}
    for name, text in pairs:
        if text:
            names_by_text.setdefault(text, []).append(name)
    return names_by_text


def _grouped_lines(names_by_text: dict[str, list[str]]) -> list[str]:
    return [f"  {', '.join(names)}: {text}" for text, names in names_by_text.items()]


def format_loss(value: float) -> str:
    """Return a mean loss with four decimals, or three digits of a small one; empty for none."""
    if not math.isfinite(value):
        return ""
    # four decimals would leave nothing of the squared losses of a good model
    return f"{value:.3g}" if 0 < value < 0.005 else f"{value:.4f}"
