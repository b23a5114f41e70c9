"""The cells of a table as people read them: one line per row, one column per estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from amlb_ext.experiments.osyn.cells import ARMS, BOUNDS, DRAWS, HEADS, printed_numbers
from amlb_ext.experiments.osyn.choices import OsynTable
from amlb_ext.experiments.osyn.cost import PARTS
from amlb_ext.experiments.osyn.tabular import TEXT

NOTES = {
    "osyn-table-1": (
        "S is of one class, so what no estimate from S alone can see is four classes in five.",
    ),
    "osyn-table-2": ("S lacks three classes in five: no interval by class, and it says so.",),
    "osyn-table-3": (
        "CTGAN in the paper; the generator here is fitted on the oracle's rows as well.",
    ),
    "osyn-table-7": ("Targets run from 0 to 1.",),
    "osyn-cost": (
        "Paper: wall-clock minutes with an NVIDIA T4; ours: processor minutes of one thread.",
    ),
}
#: Forms of the cost, as they stand below each other.
FORMS = ("iterative", "closed", "bootstrap", "synthetic", "search, by the clock")
LEGEND = (
    "Each number: mean ± std over repetitions (oracle - estimate). within: at most two printed std "
    "or .01 from the printed mean. held: share of repetitions in which a limit was not above the "
    "true loss, or the interval held it. Tuned estimates need the answer: not available to a user."
)


@dataclass(frozen=True)
class Block:
    """A table of text.

    Attributes
    ----------
    heading : str
    head : list of str
    lines : list of list of str
        The first entry names the line.
    """

    heading: str
    head: list[str]
    lines: list[list[str]]


def format_number(mean: float, spread: float = math.nan, gap: float = math.nan) -> str:
    """Return ``mean ± std (gap)`` in three decimals.

    Examples
    --------
    >>> format_number(0.2, 0.001, 0.017), format_number(0.22), format_number(float("nan"))
    ('0.200 ± 0.001 (+0.017)', '0.220', '')
    """
    if math.isnan(mean):
        return ""
    text = f"{mean:.3f}" if math.isnan(spread) else f"{mean:.3f} ± {spread:.3f}"
    return text if math.isnan(gap) else f"{text} ({gap:+.3f})"


def table_notes(table: OsynTable) -> list[str]:
    """Return what must be known to read a table."""
    return [*NOTES[table.name], *(() if table.name == "osyn-cost" else (LEGEND,))]


def table_blocks(table: OsynTable, found: pd.DataFrame) -> list[Block]:
    """Return one block for each data set."""
    out = []
    for data in dict.fromkeys(found["data"]):
        part = found[found["data"] == data]
        make = _minutes if table.name == "osyn-cost" else _estimates
        out.append(make(TEXT[str(data)], part))
    return out


def table_markdown(table: OsynTable, found: pd.DataFrame) -> str:
    """Return the blocks as Markdown."""
    lines = [f"# {table.title}", ""]
    for block in table_blocks(table, found):
        lines += [f"## {block.heading}", "", "| " + " | ".join(block.head) + " |"]
        lines += ["|" + "---|" * len(block.head)]
        lines += ["| " + " | ".join(line) + " |" for line in block.lines]
        lines.append("")
    return "\n".join([*lines, *(f"{note}\n" for note in table_notes(table))])


def _estimates(heading: str, part: pd.DataFrame) -> Block:
    arms = [arm for arm in ARMS if (part["arm"] == arm).any()]
    head, first = ["row"], part.groupby("arm", sort=False).first()
    for arm in arms:
        name = ARMS[arm][0]
        paper = "OSYN, paper" if name == "osyn" else f"{HEADS[arm]}, paper"
        if name and paper not in head and first["paper"].notna().get(arm, False):
            head.append(paper)
        head.append(HEADS[arm])
    lines = []
    for row, group in part.groupby("row", sort=False):
        by = {str(cell.arm): cell for cell in group.itertuples()}
        line = [str(row)]
        for column in head[1:]:
            line.append(_entry(column, by))
        lines.append(line)
    return Block(heading, head, lines)


def _entry(column: str, by: dict[str, Any]) -> str:
    if column == "OSYN, paper":
        cell = next((by[arm] for arm in ("a_priori", "reading", "tuned") if arm in by), None)
    else:
        name = column.removesuffix(", paper")
        cell = by.get(next(arm for arm, head in HEADS.items() if head == name))
    if cell is None:
        return ""
    if column.endswith(", paper"):
        return format_number(_float(cell.paper), _float(cell.paper_std), _float(cell.paper_gap))
    text = format_number(_float(cell.ours), _float(cell.ours_std), _float(cell.gap))
    if not text:
        return "none"
    if str(cell.note).startswith(DRAWS):
        text += f" ({str(cell.note).removeprefix(DRAWS)})"
    marks = [] if cell.within is None else ["within" if cell.within else "outside"]
    if cell.arm in (*BOUNDS, "low") and not math.isnan(_float(cell.holds)):
        marks.append(f"held {_float(cell.holds):.0%}")
    return ", ".join([text, *marks])


def _minutes(heading: str, part: pd.DataFrame) -> Block:
    head = ["model", "form", "paper", "ours", *PARTS]
    lines = []
    for row, group in part.groupby("row", sort=False):
        by = {str(cell.arm): cell for cell in group.itertuples()}
        for arm in (name for name in FORMS if name in by):
            cell = by[arm]
            parts = [by.get(f"{arm}: {name}") for name in PARTS]
            paper = _float(cell.paper)
            lines.append(
                [str(row), arm, "" if math.isnan(paper) else f"{paper:.3f}",
                 f"{_float(cell.ours):.3f}",
                 *("" if p is None else f"{_float(p.ours):.3f}" for p in parts)]
            )  # fmt: skip
    rows = {str(line[0]) for line in lines}
    for size, told in printed_numbers()["osyn-cost"].items():
        if size != "500" and f"SVM, K = {size}" not in rows:
            lines.append([f"SVM, K = {size}", "iterative", f"{told['osyn']:.3f}", "not run",
                          *[""] * len(PARTS)])  # fmt: skip
    return Block(f"{heading}, minutes", head, lines)


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)
