"""The cells of a table as people read them: one line per row, one column per estimate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from amlb_ext.core.display import format_decimals, format_with_spread, markdown_table
from benchmarks.studies.agreement import agreement_word, float_or_nan
from benchmarks.studies.osyn.cells import ARMS, printed_numbers
from benchmarks.studies.osyn.choices import Choice, OsynTable
from benchmarks.studies.osyn.cost import CLOCK_ARM, PARTS, form_part, sized_row
from benchmarks.studies.osyn.tabular import TEXT
from benchmarks.studies.text_blocks import Block

NOTES = {
    "osyn-table-1": (
        "S is of one class, so what no estimate from S alone can see is four classes in five.",
    ),
    "osyn-table-2": (
        "S lacks three classes in five: no interval by class, and it says so.",
    ),
    "osyn-table-3": (
        "CTGAN in the paper; the generator here is fitted on the oracle's rows as well.",
    ),
    "osyn-table-7": ("Targets run from 0 to 1.",),
    "osyn-cost": (
        "Paper: wall-clock minutes with an NVIDIA T4; ours: processor minutes of one thread.",
    ),
}
LEGEND = (
    "Each number: mean ± std over repetitions (oracle - estimate). within: at most two printed std "
    "or .01 from the printed mean. held: share of repetitions in which a limit was not above the "
    "true loss, or the interval held it. Tuned estimates need the answer: not available to a user."
)
#: Forms of the cost, as they stand below each other.
FORMS = ("iterative", "closed", "bootstrap", "synthetic", CLOCK_ARM)
#: The paper prints one OSYN. It is the same beside each of these, so the first at hand shows it.
PRINTED_OSYN_ARMS = ("a_priori", "reading", "tuned")


@dataclass(frozen=True, kw_only=True)
class _Column:
    """A column of estimates: the first of the arms that a row has; ours, or the printed number."""

    heading: str
    arms: tuple[str, ...]
    is_printed: bool = False


def format_number(mean: float, spread: float = math.nan, gap: float = math.nan) -> str:
    """Return ``mean ± std (gap)`` in three decimals.

    Examples
    --------
    >>> format_number(0.2, 0.001, 0.017), format_number(0.22), format_number(float("nan"))
    ('0.200 ± 0.001 (+0.017)', '0.220', '')
    """
    text = format_with_spread(mean, spread, missing="")
    if not text or math.isnan(gap):
        return text
    return f"{text} ({format_decimals(gap, sign=True)})"


def table_notes(table: OsynTable) -> list[str]:
    """Return what must be known to read a table."""
    notes = list(NOTES[table.name])
    if table.name != "osyn-cost":
        notes.append(LEGEND)
    return notes


def table_blocks(table: OsynTable, cells: pd.DataFrame) -> list[Block]:
    """Return one block for each data set."""
    make_block = _minutes_block if table.name == "osyn-cost" else _estimates_block
    blocks = []
    for data in dict.fromkeys(cells["data"]):
        blocks.append(make_block(TEXT[str(data)], cells[cells["data"] == data]))
    return blocks


def table_markdown(table: OsynTable, cells: pd.DataFrame) -> str:
    """Return the blocks as Markdown."""
    lines = [f"# {table.title}", ""]
    for block in table_blocks(table, cells):
        lines += [
            f"## {block.heading}",
            "",
            markdown_table(block.head, block.lines),
            "",
        ]
    lines += [f"{note}\n" for note in table_notes(table)]
    return "\n".join(lines)


def _estimates_block(heading: str, cells: pd.DataFrame) -> Block:
    columns = _needed_columns(cells)
    lines = []
    for row, group in cells.groupby("row", sort=False):
        by_arm = {str(cell.arm): cell for cell in group.itertuples()}
        entries = [_column_entry(column, by_arm) for column in columns]
        lines.append([str(row), *entries])
    head = ["row", *(column.heading for column in columns)]
    return Block(heading=heading, head=head, lines=lines)


def _needed_columns(cells: pd.DataFrame) -> list[_Column]:
    """Return the columns that a data set needs; a printed one stands before its first arm."""
    columns: list[_Column] = []
    is_osyn_printed = False
    first_row = cells.groupby("arm", sort=False).first()
    for name, arm in ARMS.items():
        if name not in first_row.index:
            continue
        is_printed = bool(arm.printed) and pd.notna(first_row.loc[name, "paper"])
        if is_printed and arm.printed != "osyn":
            heading = f"{arm.heading}, paper"
            columns.append(_Column(heading=heading, arms=(name,), is_printed=True))
        # the paper has one OSYN, and here are several: it stands once, before the first
        if is_printed and arm.printed == "osyn" and not is_osyn_printed:
            is_osyn_printed = True
            columns.append(
                _Column(heading="OSYN, paper", arms=PRINTED_OSYN_ARMS, is_printed=True)
            )
        columns.append(_Column(heading=arm.heading, arms=(name,)))
    return columns


def _column_entry(column: _Column, by_arm: Mapping[str, Any]) -> str:
    # Table 1's last row, for one, has no true loss
    arms = [arm for arm in column.arms if arm in by_arm]
    if not arms:
        return ""
    cell = by_arm[arms[0]]
    if column.is_printed:
        return format_number(
            float_or_nan(cell.paper),
            float_or_nan(cell.paper_std),
            float_or_nan(cell.paper_gap),
        )
    text = format_number(
        float_or_nan(cell.ours), float_or_nan(cell.ours_std), float_or_nan(cell.gap)
    )
    # no interval by class, for one, where S lacks a class
    if not text:
        return "none"
    each = getattr(cell, "each", "")  # a result written before this column has none
    if each:
        text += f" ({each})"
    marks = [] if cell.within is None else [agreement_word(cell.within)]
    holds = float_or_nan(cell.holds)
    # the lower end says how often the interval held; its upper end need not repeat it
    if (ARMS[cell.arm].is_limit or cell.arm == "low") and not math.isnan(holds):
        marks.append(f"held {holds:.0%}")
    return ", ".join([text, *marks])


def _minutes_block(heading: str, cells: pd.DataFrame) -> Block:
    lines = []
    for row, group in cells.groupby("row", sort=False):
        by_arm = {str(cell.arm): cell for cell in group.itertuples()}
        for form in FORMS:
            if form not in by_arm:
                continue
            cell = by_arm[form]
            paper = _format_minutes(cell.paper)
            line = [str(row), form, paper, _format_minutes(cell.ours)]
            for part in PARTS:
                part_cell = by_arm.get(form_part(form, part))
                line.append(
                    "" if part_cell is None else _format_minutes(part_cell.ours)
                )
            lines.append(line)
    lines += _lines_not_run({line[0] for line in lines})
    head = ["model", "form", "paper", "ours", *PARTS]
    return Block(heading=f"{heading}, minutes", head=head, lines=lines)


def _lines_not_run(rows: set[str]) -> list[list[str]]:
    """Return the printed sizes beside which nothing of ours stands."""
    lines = []
    for size, printed in printed_numbers()["osyn-cost"].items():
        row = sized_row(int(size))
        # the paper's first size is that of the row "SVM"
        if int(size) != Choice().size and row not in rows:
            empty = [""] * len(PARTS)
            lines.append(
                [row, "iterative", _format_minutes(printed["osyn"]), "not run", *empty]
            )
    return lines


def _format_minutes(value: Any) -> str:
    return format_decimals(value, missing="")
