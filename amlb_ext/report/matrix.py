"""The answer as one table: tasks by candidates, with the change of F's loss and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import TaskReport
from amlb_ext.report.overall import WITHHELD, better_in_family
from amlb_ext.report.parts import F

#: A verdict that holds when every comparison of the report is counted, too.
SURELY_BETTER = "better, counting all"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """How a verdict looks: a sign that needs no colour, words for those who cannot see it.

    Attributes
    ----------
    sign, words : str
    tone : {'yes', 'some', 'no', 'none'}
        Colour on the page.
    """

    sign: str
    words: str
    tone: str


MARKS = {
    SURELY_BETTER: Mark(
        sign="✓✓", words="better, safe after counting all comparisons", tone="yes"
    ),
    "better": Mark(
        sign="✓", words="better, if this task is looked at alone", tone="yes"
    ),
    "worse": Mark(sign="✗", words="worse", tone="no"),
    "undecided": Mark(sign="?", words="undecided: the data allow both", tone="none"),
    "incomplete": Mark(
        sign="…", words="withheld: jobs failed or are missing", tone="some"
    ),
    "no claim": Mark(sign="–", words="withheld: no claim can be made", tone="some"),
}


@dataclass(frozen=True, kw_only=True)
class MatrixAnswer:
    """What one candidate did to F's loss on one task, by one question.

    Attributes
    ----------
    verdict : str
        A key of :data:`MARKS`.
    change, low, high : float
        Relative to F's loss, negative is better; NaN where there is no estimate or no interval.
    """

    verdict: str
    change: float
    low: float
    high: float

    @property
    def mark(self) -> Mark:
        """How the verdict looks."""
        return MARKS[self.verdict]

    @property
    def is_better(self) -> bool:
        """Whether the candidate is better than F, counting all comparisons or this task alone."""
        return self.verdict in ("better", SURELY_BETTER)

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict."""
        return self.verdict not in WITHHELD

    def text(self) -> str:
        """Return the change with its sign, where there is a verdict."""
        return format_percent(self.change, sign=True) if self.is_judged else "–"


@dataclass(frozen=True, kw_only=True)
class MatrixCell:
    """One candidate on one task: on all rows, which decide, and where F fails."""

    overall: MatrixAnswer
    region: MatrixAnswer


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    """One task.

    Attributes
    ----------
    task : TaskReport
    cells : dict of str to MatrixCell
        By candidate; one that did not run on the task has none.
    """

    task: TaskReport
    cells: Mapping[str, MatrixCell]

    @property
    def title(self) -> str:
        """The task's name as a reader knows it."""
        return self.task.title or self.task.name

    @property
    def choice(self) -> str:
        """The candidate that saves most of F's loss, F where none is better, "" if none is judged.

        A candidate counts where it is shown to be better on all rows.
        """
        judged = {
            name: cell.overall
            for name, cell in self.cells.items()
            if cell.overall.is_judged
        }
        better = {name: answer for name, answer in judged.items() if answer.is_better}
        if better:
            return min(better, key=lambda name: better[name].change)
        return F if judged else ""


@dataclass(frozen=True, kw_only=True)
class AnswerMatrix:
    """Tasks by candidates.

    Attributes
    ----------
    frameworks : tuple of str
        The candidates, the largest mean saving first.
    rows : tuple of MatrixRow
        Those on which F is beaten first.
    means : dict of str to dict
        The candidates' rows of :func:`amlb_ext.report.overall.overall_table`.
    """

    frameworks: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    means: Mapping[str, Mapping[str, Any]]

    @property
    def verdicts(self) -> dict[str, Mark]:
        """The marks that occur, for a legend."""
        shown = set()
        for row in self.rows:
            for cell in row.cells.values():
                shown |= {cell.overall.verdict, cell.region.verdict}
        return {verdict: mark for verdict, mark in MARKS.items() if verdict in shown}


def answer_matrix(
    tasks: Sequence[TaskReport], overall: pd.DataFrame, level: float = 0.95
) -> AnswerMatrix:
    """Return the answer of each candidate on each task; F's own controls are left out.

    Parameters
    ----------
    tasks : sequence of TaskReport
    overall : DataFrame
        See :func:`amlb_ext.report.overall.overall_table`.
    level : float
    """
    means = {}
    for record in overall.to_dict("records"):
        if not is_control_framework(record["framework"]):
            means[record["framework"]] = record
    compared = [task for task in tasks if len(task.contrasts)]
    if not compared:
        return AnswerMatrix(frameworks=tuple(means), rows=(), means=means)
    contrasts = pd.concat([task.contrasts for task in compared], ignore_index=True)
    is_sure = better_in_family(contrasts, 1 - level)
    verdicts = contrasts["verdict"].mask(is_sure, SURELY_BETTER)
    contrasts = contrasts.assign(verdict=verdicts)
    rows = []
    for task in compared:
        own = contrasts[contrasts["task"] == task.name]
        everywhere = _answers(own[own["where"] == "all rows"])
        region = _answers(own[own["where"] == "region"])
        cells = {}
        for name in means:
            if name in everywhere and name in region:
                cells[name] = MatrixCell(overall=everywhere[name], region=region[name])
        rows.append(MatrixRow(task=task, cells=cells))
    rows.sort(key=_winners_first)
    return AnswerMatrix(frameworks=tuple(means), rows=tuple(rows), means=means)


def _winners_first(row: MatrixRow) -> tuple[bool, bool, float]:
    """Sort tasks: those on which F is beaten, by how much, and those without a verdict last."""
    change = 0.0
    if row.choice and row.choice != F:
        change = row.cells[row.choice].overall.change
    return not row.choice, change == 0, change


def _answers(contrasts: pd.DataFrame) -> dict[str, MatrixAnswer]:
    """Return the answers to one question on one task, by framework."""
    answers = {}
    for row in contrasts.to_dict("records"):
        # Without a loss of F there is nothing that a change could be relative to.
        unit = row["loss_f"] if row["loss_f"] > 0 else np.nan
        answers[row["framework"]] = MatrixAnswer(
            verdict=row["verdict"],
            change=row["relative"],
            # no model can save more than all of F's loss
            low=max(row["low"] / unit, -1.0),
            high=row["high"] / unit,
        )
    return answers
