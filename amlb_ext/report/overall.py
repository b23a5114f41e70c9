"""The answer over all tasks: who is better than F and by how much, as tables and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent, shorten_text
from amlb_ext.core.unit import F, Unit
from amlb_ext.models.columns import list_names
from amlb_ext.report.compare import is_baseline_framework, is_control_framework
from amlb_ext.report.model import FrameworkRanks, TaskReport
from amlb_ext.report.tables import table_records
from amlb_ext.stats.weighted_mean import (
    MeanEstimate,
    holm_adjusted,
    weighted_mean_interval,
)

#: Verdicts that were given, on the first two questions.
JUDGED = ("better", "worse", "undecided")
#: What is counted of each question.
_COUNTED = (*JUDGED, "withheld", "better_family", "relative", "low", "high")
#: Where each question is asked, and what stands before its columns.
PREFIXES = {"all rows": "overall_", "region": ""}
COLUMNS = (
    "framework",
    "tasks",
    *(f"overall_{name}" for name in _COUNTED),
    *_COUNTED,
    "larger",
    "mean_rank",
)
#: Stands for "no claim" where F fails and there is a figure with its interval all the same.
DESCRIBED = "described"
#: Verdicts of contrasts that are not judged.
WITHHELD = ("incomplete", "no claim", DESCRIBED)
#: A loss this many times F's, or this many times smaller, counts as that in a mean: a loss of 0
#: has no logarithm, and one task would decide the mean of all.
LARGEST_RATIO = 100.0


def overall_table(
    tasks: Sequence[TaskReport], ranks: FrameworkRanks, level: float = 0.95
) -> pd.DataFrame:
    """Return one row per framework, the largest saving first; see ``SuiteReport.overall``.

    The mean change of F's loss over tasks is geometric; tasks without a verdict are not in it, and
    there is none where results of a task are missing.
    ``better_family`` counts tasks on which a framework is ``better`` even when p-values are
    Holm-adjusted over all tasks, candidates and both questions.
    """
    if not any(len(task.contrasts) for task in tasks):
        return pd.DataFrame(columns=list(COLUMNS))
    contrasts = _stack_contrasts(tasks)
    is_better_family = better_in_family(contrasts, 1 - level)
    rows = []
    for framework, own_contrasts in contrasts.groupby("framework", sort=False):
        row: dict[str, Any] = {"framework": framework}
        for where, prefix in PREFIXES.items():
            asked = own_contrasts[own_contrasts["where"] == where]
            row["tasks"] = len(asked)
            counted = _count_verdicts(asked, is_better_family[asked.index], level)
            # whoever leaves out a task may have left out the worst
            if "incomplete" in set(asked["verdict"]):
                counted |= dict.fromkeys(("relative", "low", "high"), np.nan)
            row |= {f"{prefix}{name}": value for name, value in counted.items()}
        row["larger"] = int((own_contrasts["verdict"] == "larger gain").sum())
        row["mean_rank"] = float(ranks.mean.get(framework, np.nan))
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    is_control = table["framework"].map(is_control_framework).to_numpy()
    change = table["overall_relative"].to_numpy(dtype=float)
    # The last key sorts first: candidates before F's controls, then the largest saving.
    order = np.lexsort((change, is_control))
    return table.iloc[order].reset_index(drop=True)


def _stack_contrasts(tasks: Sequence[TaskReport]) -> pd.DataFrame:
    """Return the contrasts of all tasks; those with an interval alone are ``described``."""
    tables = []
    for task in tasks:
        table = task.contrasts
        if not len(table):
            continue
        if not task.no_claim:
            # where too few rows are, or the largest errors decide, there is no interval
            is_described = (
                (table["where"] == "region")
                & (table["verdict"] == "no claim")
                & np.isfinite(table["low"])
            )
            table = table.assign(verdict=table["verdict"].mask(is_described, DESCRIBED))
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _count_verdicts(
    asked: pd.DataFrame, is_better_family: np.ndarray, level: float
) -> dict[str, Any]:
    """Return what is counted of one framework and one question, over all tasks."""
    verdicts = asked["verdict"]
    is_withheld = verdicts.isin(WITHHELD)
    has_change = ~is_withheld | (verdicts == DESCRIBED)
    changes = asked.loc[has_change, "relative"].to_numpy(dtype=float)
    mean = mean_change(changes, level)
    return {
        **{word: int((verdicts == word).sum()) for word in JUDGED},
        "withheld": int(is_withheld.sum()),
        "better_family": int(is_better_family.sum()),
        "relative": mean.point,
        "low": mean.low,
        "high": mean.high,
    }


def mean_change(changes: np.ndarray, level: float) -> MeanEstimate:
    """Return the geometric mean of 1 + change over tasks, less 1, and its t interval.

    Parameters
    ----------
    changes : ndarray of shape (tasks,)
        NaN where there is none.
    level : float

    Notes
    -----
    Twice F's loss on one task and half of it on another cancel; the arithmetic mean of +100 % and
    -50 % would call that a loss. Tasks are the sample: folds of one task share training rows and
    are not independent.
    """
    is_ratio = ~np.isnan(changes)
    ratios = np.clip(1 + changes[is_ratio], 1 / LARGEST_RATIO, LARGEST_RATIO)
    mean = weighted_mean_interval(np.log(ratios), level=level)
    return replace(
        mean,
        point=float(np.expm1(mean.point)),
        low=float(np.expm1(mean.low)),
        high=float(np.expm1(mean.high)),
    )


def better_in_family(contrasts: pd.DataFrame, alpha: float) -> np.ndarray:
    """Return which contrasts stay better when p-values are adjusted over the whole report.

    Where F fails both claims behind ``better`` (unlike F, unlike its re-fits) must hold, so the
    larger of the two p-values is adjusted (intersection-union).
    """
    is_control = contrasts["framework"].map(is_control_framework)
    is_withheld = contrasts["verdict"].isin(WITHHELD)
    is_third = ~contrasts["where"].isin(list(PREFIXES))
    larger_p = contrasts[["p", "p_null"]].max(axis=1)
    # NaN is no member of the family.
    family_p = larger_p.mask(is_control | is_withheld | is_third).to_numpy(dtype=float)
    is_better = (contrasts["verdict"] == "better").to_numpy()
    return is_better & (holm_adjusted(family_p) < alpha)


# The answer as one table: tasks by candidates.

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
    DESCRIBED: Mark(
        sign="≈",
        words="described with its interval, not judged",
        tone="none",
    ),
}


@dataclass(frozen=True, kw_only=True)
class MatrixAnswer:
    """What one candidate did to F's loss on one task, by one question.

    Attributes
    ----------
    verdict : str
        A key of :data:`MARKS`.
    change : float
        Relative to F's loss, negative is better; NaN where there is no estimate.
    """

    verdict: str
    change: float

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
        """Return the change with its sign, where there is a verdict or a description."""
        if self.is_judged or self.verdict == DESCRIBED:
            return format_percent(self.change, sign=True)
        return "–"

    def shown(self) -> str:
        """Return the change, or why there is none in a word."""
        text = self.text()
        return self.verdict if text == "–" else text


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
    contrasts = _stack_contrasts(compared)
    is_sure = better_in_family(contrasts, 1 - level)
    verdicts = contrasts["verdict"].mask(is_sure, SURELY_BETTER)
    contrasts = contrasts.assign(verdict=verdicts)
    rows = []
    for task in compared:
        own = contrasts[contrasts["task"] == task.name]
        everywhere = _answers(own[own["where"] == "all rows"])
        region = _answers(own[own["where"] == "region"])
        cells = {
            name: MatrixCell(overall=everywhere[name], region=region[name])
            for name in means
            if name in everywhere and name in region
        }
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
    return {
        row["framework"]: MatrixAnswer(verdict=row["verdict"], change=row["relative"])
        for row in contrasts.to_dict("records")
    }


# The answer in sentences.


def advice(unit: Unit) -> str:
    """Return how the report is to be used."""
    return (
        f"Decide on all {unit.many}. The region shows where a change comes from, and how large it "
        "is there."
    )


def baseline_alarm(tasks: Sequence[TaskReport]) -> tuple[str, ...]:
    """Return the alarm that precedes any verdict, if the F that was run is not the suite's F."""
    alarmed = [task for task in tasks if task.alarm]
    if not alarmed:
        return ()
    return (
        f"ALARM: on {_list_among(alarmed, tasks)} the F "
        "that was run is not the F of this suite. Ignore the contrasts there. The warnings say how "
        "far the two are apart, and what to do.",
    )


def verdict_sentence(matrix: AnswerMatrix, unit: Unit) -> str:
    """Return on which tasks a candidate beats F on all units: what to decide on."""
    if not matrix.rows:
        return (
            "No framework has been compared with F: there are no predictions for the untouched "
            f"{unit.folds} of any task."
        )
    if not matrix.frameworks:
        return "Only F itself has been run, no candidate."
    judged = [row for row in matrix.rows if row.choice]
    if not judged:
        return "No comparison with F could be judged."
    beaten = [row for row in judged if row.choice != F]
    if not beaten:
        where = f"any of {len(judged)} tasks"
        if len(judged) == 1:
            where = _cut_name(judged[0].task.shown_name)
        return f"No framework is shown to beat F on {where}."
    by_whom = [
        f"{_cut_name(row.task.shown_name)} (by {_cut_name(row.choice)}, "
        f"{row.cells[row.choice].overall.text()})"
        for row in beaten
    ]
    text = f"F is beaten on {by_whom[0]}"
    if len(judged) > 1:
        text = f"F is beaten on {len(beaten)} of {len(judged)} tasks: {list_names(by_whom)}"
    alone = [
        row
        for row in beaten
        if not any(c.overall.verdict == SURELY_BETTER for c in row.cells.values())
    ]
    if not alone:
        return f"{text}."
    if len(alone) == len(beaten):
        which = "the task is" if len(alone) == 1 else "each task is"
        return f"{text}, but only if {which} looked at alone."
    names = list_names(_cut_name(row.task.shown_name) for row in alone)
    return f"{text}; on {names} only if looked at alone."


def caveat_sentences(
    tasks: Sequence[TaskReport], overall: pd.DataFrame, unit: Unit
) -> list[str]:
    """Return what stands behind the answer and limits it, a sentence each.

    Parameters
    ----------
    tasks : sequence of TaskReport
    overall : DataFrame
        See :func:`overall_table`.
    unit : Unit
    """
    is_control = overall["framework"].map(is_control_framework).astype(bool)
    # without a candidate there is no answer to limit
    if is_control.all():
        return []
    return [
        *_control_sentences(overall[is_control], unit),
        *_withheld_sentences(tasks, unit),
    ]


def _control_sentences(controls: pd.DataFrame, unit: Unit) -> list[str]:
    """Return how F itself fares when it is run, and its re-fits: none may differ from F."""
    sentences = []
    # A verdict on F itself is a false alarm: it tells how far the other verdicts can be trusted.
    for row in table_records(controls):
        is_f = is_baseline_framework(row["framework"])
        what = "F itself" if is_f else "F fitted again on a part of its rows"
        framework = f"{row['framework']}, which is {what},"
        alarms = []
        places = {"overall_": f"over all {unit.many}", "": "where F fails"}
        for prefix, where in places.items():
            n_judged = sum(row[f"{prefix}{word}"] for word in JUDGED)
            for word in ("better", "worse"):
                # with fewer rows it may well be worse
                is_expected = word == "worse" and bool(prefix) and not is_f
                count = row[f"{prefix}{word}"]
                if count and not is_expected:
                    share = _share_of_tasks(count, n_judged)
                    alarms.append(f"{word} than F {where} on {share}")
        if alarms:
            sentences.append(
                f"Beware: {framework} is called {list_names(alarms)}. Other verdicts can be wrong "
                "likewise: F's re-fits vary less than they should (hardsynth certify --refits 20 "
                "gives a better estimate)."
            )
        elif n_judged := max(
            sum(row[f"{prefix}{word}"] for word in JUDGED)
            for prefix in ("overall_", "")
        ):
            where = "the only task" if n_judged == 1 else f"any of {n_judged} tasks"
            verdict = "called neither better nor worse" if is_f else "not called better"
            sentences.append(
                f"The control {framework} is {verdict} than F on {where}, as it should be."
            )
    return sentences


def _withheld_sentences(tasks: Sequence[TaskReport], unit: Unit) -> list[str]:
    """Return on which tasks nothing is claimed, and why."""
    # Where no claim is made, it does not matter how its units would have counted.
    unweighted = [task for task in tasks if not task.no_claim and not task.weighted]
    unclaimed = [task for task in tasks if task.no_claim]
    heavy = [task for task in tasks if task.heavy_tail]
    reasons = (
        (
            unweighted,
            f"the weights of the region are worth too few {unit.many}: nothing is claimed where F "
            "fails there",
        ),
        (
            unclaimed,
            "no claim about gains where F fails is made; the section of each task says why",
        ),
        (
            heavy,
            "the largest errors decide: where that is so no verdict is given, and the figures are "
            "of errors as they are. Decide there by another loss, e.g. the absolute error",
        ),
    )
    return [f"On {_list_among(named, tasks)} {why}." for named, why in reasons if named]


def _cut_name(name: str) -> str:
    return shorten_text(name, 40)


def _list_among(named: Sequence[TaskReport], tasks: Sequence[TaskReport]) -> str:
    """Return how many of the tasks these are, and the first of them."""
    names = list_names(_cut_name(task.shown_name) for task in named)
    if len(tasks) == 1:
        return names
    return f"{_share_of_tasks(len(named), len(tasks))} ({names})"


def _share_of_tasks(count: int, n_tasks: int) -> str:
    return "the only task" if n_tasks == 1 else f"{count} of {n_tasks} tasks"
