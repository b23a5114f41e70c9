r"""Whether a comparison meets a need: a candidate better than F, or not worse by a margin.

No number is computed here but a quotient. ``better`` takes the verdict of the comparison. ``not
worse`` takes the interval of the comparison, as a trial of non-inferiority does: with the mean
loss of F :math:`\bar l_F`, the upper limit u of the difference in loss, and a margin m,

.. math:: u / \bar l_F < m

so the gain is shown to lie above -m. The upper limit of a two-sided interval of 95 % is a
one-sided limit of 97.5 %: a candidate that is worse by the margin or more passes with a chance of
about 2.5 % at most, and of more where differences are skewed and rows are few
(docs/evidence/comparison_claims.md has how often). Where several checks must all be met, that
chance holds for the whole gate (Berger 1982, intersection-union), so limits are not adjusted.

References
----------
ICH E9, *Statistical principles for clinical trials*, 1998, section 3.3.2; Berger (1982),
Technometrics 24, 295-300.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.stats import binomtest

from amlb_ext.comparison.result import ModelComparison, change_text, rmse_text
from amlb_ext.core.checked_call import Level, Names, checked_call
from amlb_ext.core.display import (
    escape_controls,
    format_count,
    format_level,
    format_percent,
    html_view,
    is_known,
)
from amlb_ext.core.errors import ConfigError, suggest_nearest
from amlb_ext.core.unit import ROW, Unit
from amlb_ext.report.compare import WHERE, is_control_framework
from amlb_ext.stats.claims import OVERALL, REGION
from amlb_ext.swap.answer import SwapAnswer
from amlb_ext.swap.segments import unjudged_text

Need = Literal["better", "not-worse"]
#: A margin of 0 would ask for better, under another name.
Margin = Annotated[float, Field(gt=0, lt=1)]
Where = Literal["overall", "failures"]
#: ``no claim``: nothing can be said, which is neither.
Outcome = Literal["met", "not met", "no claim"]
#: How much more loss than F still counts as not worse, as a share of F's loss.
MARGIN = 0.05
#: The question of each place, as comparisons have it.
_QUESTIONS: dict[str, str] = {"overall": OVERALL, "failures": REGION}
_TITLES: dict[Outcome, str] = {
    "met": "gate passed",
    "not met": "gate not met",
    "no claim": "no claim possible",
}
#: Exit status of each outcome; 2 is wrong use.
EXIT_STATUS: dict[Outcome, int] = {"met": 0, "not met": 1, "no claim": 3}
_LEVELS: dict[Outcome, str] = {"met": "notice", "not met": "error", "no claim": "error"}
#: Verdicts after which nothing can be decided.
_WITHHELD = ("no claim", "incomplete")


@dataclass(frozen=True, kw_only=True)
class GateCheck:
    """One candidate on one table or task.

    Attributes
    ----------
    data : str
        The table or the task.
    candidate : str
    outcome : {'met', 'not met', 'no claim'}
    change, low, high : float
        Change of F's loss as a share of it, negative is better, with its interval; NaN where it
        is not known.
    rmse, rmse_f : float
        Of the candidate and of F, in the target's unit, no error capped; NaN where not known.
    verdict : str
        Of the comparison.
    sentence : str
        What was found, and what was needed.
    needed : str
        What was needed, in words.
    """

    data: str
    candidate: str
    outcome: Outcome
    change: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    rmse: float = float("nan")
    rmse_f: float = float("nan")
    verdict: str = ""
    sentence: str
    needed: str


@dataclass(frozen=True, kw_only=True, repr=False)
class GateResult:
    """All checks of a gate.

    Attributes
    ----------
    need : {'better', 'not-worse'}
    where : {'overall', 'failures'}
    margin : float
        Of ``not-worse``.
    level : float
        Coverage of the intervals.
    checks : tuple of GateCheck
    verb : str
        What F does on bad units: ``fails``, or ``is unsure``.
    unit : Unit
        What was compared on.
    """

    need: Need
    where: Where
    margin: float
    level: float
    checks: tuple[GateCheck, ...]
    verb: str = "fails"
    unit: Unit = ROW

    @property
    def place(self) -> str:
        """Where the need is to be met, in words."""
        if self.where == "overall":
            return f"over all {self.unit.many}"
        return f"where F {self.verb}"

    @property
    def outcome(self) -> Outcome:
        """Met where all checks are; no claim where none is failed, but some cannot be decided."""
        outcomes = {check.outcome for check in self.checks}
        if "not met" in outcomes:
            return "not met"
        return "no claim" if "no claim" in outcomes else "met"

    def need_text(self, place: str = "") -> str:
        """What is needed of a candidate, in words; where, unless it is where the gate asks."""
        place = place or self.place
        if self.need == "better":
            return f"better than F {place}"
        margin = format_percent(self.margin)
        return f"not worse than F by {margin} of its loss or more {place}"

    @property
    def outcome_line(self) -> str:
        """The outcome in one line."""
        counted = format_count(len(self.checks), "check")
        n_met = sum(check.outcome == "met" for check in self.checks)
        interval = f"{format_level(self.level)} intervals"
        line = f"{_TITLES[self.outcome]}: {n_met} of {counted} met ({interval})"
        if self.outcome == "no claim":
            line += f"; these {self.unit.many} cannot decide, which is neither a pass nor a failure"
        return line

    def text(self) -> str:
        """Return a line for each check, and the outcome in a last one."""
        width = max(len(check.outcome) for check in self.checks)
        lines = [
            f"{check.outcome:<{width}}  {escape_controls(check.sentence)}"
            for check in self.checks
        ]
        return "\n".join([*lines, self.outcome_line]) + "\n"

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        shown = ["data", "candidate", "outcome", "sentence"]
        return html_view([self.outcome_line], pd.DataFrame(self.checks)[shown])


@checked_call
def check_gate(
    answer: ModelComparison | pd.DataFrame,
    *,
    need: Need = "better",
    where: Where = "overall",
    margin: Margin = MARGIN,
    candidates: Names = (),
    tasks: Names = (),
    no_harm: bool = False,
    max_flips: Annotated[float, Field(gt=0, lt=1)] | None = None,
    level: Level | None = None,
    data: str = "",
    unit: Unit | None = None,
    swaps: Any = None,
) -> GateResult:
    """Hold a comparison against a need.

    Parameters
    ----------
    answer : ModelComparison, or DataFrame
        What :func:`hardsynth.compare` or :func:`hardsynth.compare_forecasts` returns, or the
        table ``contrasts`` of a suite, ``hs.Suite.load("hard").table("contrasts", ...)``.
    need : {'better', 'not-worse'}
        ``better``: the comparison's verdict is better. ``not-worse``: the interval of the change
        of F's loss ends below ``margin``.
    where : {'overall', 'failures'}
        Over all rows, or where F fails.
    margin : float
        How much more loss still counts as not worse, as a share of F's loss, between 0 and 1.
    candidates : collection of str
        Those that must meet the need; all that are compared when empty.
    tasks : collection of str
        Of a suite; all when empty.
    no_harm : bool
        Also needed: no harm is shown beyond what F fitted again does.
    max_flips : float, optional
        Also needed: the share of rows that F decides rightly and the candidate wrongly is shown to
        be no more than this.
    level : float, optional
        Of the intervals of a table of contrasts, for the words; .95 when omitted.
    data : str
        What the table is called.
    unit : Unit, optional
        What a suite is judged on, rows when omitted; that of the comparison.
    swaps : mapping of str to SwapAnswer, optional
        What replacing F does, by task of a suite: harm, flips and segments are held against it.

    Returns
    -------
    GateResult

    Raises
    ------
    ConfigError
        An unknown need, place, candidate or task; a margin that is not above 0; nothing to check.

    Examples
    --------
    >>> row = {"task": "t", "framework": "G", "where": "all rows", "relative": -0.1, "low": -0.03,
    ...        "high": -0.01, "loss_f": 0.2, "verdict": "better", "reason": ""}
    >>> check_gate(pd.DataFrame([row])).outcome
    'met'
    >>> worse = row | {"relative": 0.02, "low": -0.01, "high": 0.018, "verdict": "undecided"}
    >>> check_gate(pd.DataFrame([worse]), need="not-worse", margin=0.1).outcome
    'met'
    """
    contrasts = _common_table(answer, data)
    verb, unit, swaps = "fails", unit or ROW, swaps or {}
    if isinstance(answer, ModelComparison):
        if level not in (None, answer.level):
            raise ConfigError(
                f"level is {level}, and the comparison's intervals are of {answer.level}",
                f"give level={level} to the comparison",
            )
        level, verb, unit = answer.level, answer.verb, answer.unit
        swaps = {data or "the table": answer.swap}
    elif (no_harm or max_flips is not None) and not swaps:
        raise ConfigError(
            "contrasts tell nothing of harm and of flips",
            "give the result of hs.compare, or hardsynth gate SUITE --no-harm",
        )
    names = [name for name in contrasts["candidate"].unique() if name]
    names = [name for name in names if not is_control_framework(name)]
    chosen = _choose(candidates, names, "candidate")
    chosen_tasks = _choose(tasks, list(contrasts["data"].unique()), "task")
    if not chosen or not chosen_tasks:
        raise ConfigError(
            "there is no candidate to check", "give results or predictions of one"
        )
    rows = contrasts[contrasts["question"] == _QUESTIONS[where]]
    result = GateResult(
        need=need,
        where=where,
        margin=margin,
        level=level or 0.95,
        checks=(),
        verb=verb,
        unit=unit,
    )
    checks = []
    for task in chosen_tasks:
        for name in chosen:
            is_own = (rows["data"] == task) & (rows["candidate"] == name)
            found = rows[is_own].to_dict("records")
            row = {str(key): value for key, value in found[0].items()} if found else {}
            checks.append(_check(result, task, name, row))
    # of a suite's tasks those of numbers have no decisions that could turn
    deciding = {
        task for task in chosen_tasks if task in swaps and len(swaps[task].flips)
    }
    for task in chosen_tasks:
        if task not in swaps:
            continue
        for name in chosen:
            checks += _segment_checks(result, swaps[task], task, name)
            if no_harm:
                checks.append(_harm_check(swaps[task], task, name, unit))
            if max_flips is not None and (task in deciding or not deciding):
                checks.append(
                    _flip_check(swaps[task], task, name, max_flips, result.level)
                )
    return replace(result, checks=tuple(checks))


def _common_table(answer: ModelComparison | pd.DataFrame, data: str) -> pd.DataFrame:
    """Return contrasts under the same names, of a comparison and of a suite."""
    if isinstance(answer, ModelComparison):
        table = answer.contrasts.rename(columns={"model": "candidate"})
        return table.assign(data=data or "the table")
    table = answer.rename(columns={"framework": "candidate", "task": "data"})
    questions = {place: question for question, place in WHERE.items()}
    if not {"candidate", "data", "where"} <= set(table.columns):
        raise ConfigError(
            "the table has no contrasts with F",
            'give the result of hs.compare, or a suite\'s table("contrasts", ...)',
        )
    return table.assign(question=table["where"].map(questions))


def _choose(wanted: Collection[str], names: list[str], what: str) -> list[str]:
    """Return the names that are wanted, all where none is named."""
    for name in wanted:
        if name not in names:
            raise ConfigError(
                f"no {what} is called {name!r}", suggest_nearest(name, names)
            )
    return list(dict.fromkeys(wanted)) or names


def _check(
    gate: GateResult, data: str, name: str, row: Mapping[str, Any], place: str = ""
) -> GateCheck:
    """Decide one candidate on one table or task, by its row of contrasts."""
    place = place or gate.place
    outcome, finding = _decide(gate, row, place)
    needed = gate.need_text(place)
    scale = row.get("loss_f", np.nan)
    # figures of some of the rows would be taken for those of all
    if row.get("verdict") == "incomplete":
        row = {**row, "rmse": np.nan, "rmse_f": np.nan}
        scale = np.nan
    has_scale = is_known(scale) and scale > 0
    rmse = f"; {rmse_text(row)}" if rmse_text(row) else ""
    return GateCheck(
        data=data,
        candidate=name,
        outcome=outcome,
        change=float(row.get("relative", np.nan)) if has_scale else np.nan,
        low=float(row["low"] / scale) if has_scale else np.nan,
        high=float(row["high"] / scale) if has_scale else np.nan,
        rmse=float(row.get("rmse", np.nan)),
        rmse_f=float(row.get("rmse_f", np.nan)),
        verdict=str(row.get("verdict", "")),
        sentence=f"{name} on {data}: {finding}{rmse}; needed: {needed}",
        needed=needed,
    )


def _decide(
    gate: GateResult, row: Mapping[str, Any], place: str
) -> tuple[Outcome, str]:
    """Return whether a need is met, and what was found."""
    if not row:
        return "no claim", f"no claim {place}: it has no results there"
    verdict = row["verdict"]
    if verdict in _WITHHELD:
        return "no claim", f"no claim {place}: {row['reason']}"
    if not is_known(row["high"]):
        reason = row["reason"] or "there is no interval"
        return "no claim", f"no claim {place}: {reason}"
    if not row["loss_f"] > 0:
        if verdict == "worse" or gate.need == "better":
            return "not met", f"{verdict} {place}, where F has no loss at all"
        return "no claim", (
            f"no claim {place}: F has no loss at all, so that a margin of its loss is none"
        )
    change = f"change of F's loss {place} {change_text(dict(row))}"
    outcome: Outcome
    if gate.need == "better":
        outcome = "met" if verdict == "better" else "not met"
        return outcome, f"{verdict}, {change}"
    upper = row["high"] / row["loss_f"]
    limit = format_percent(upper, sign=True).replace("−", "-")
    # a candidate may be shown to be worse, and by less than the margin
    outcome = "met" if upper < gate.margin else "not met"
    plain = _plain_change(row)
    if outcome == "met" and plain >= gate.margin:
        more = format_percent(plain, sign=True)
        return "no claim", (
            f"no claim {place}: {change} with the largest errors capped, but {more} without a "
            "cap; decide by another loss, e.g. the absolute error"
        )
    return outcome, f"{change}, upper limit {limit}"


def _segment_checks(
    gate: GateResult, swap: SwapAnswer, data: str, name: str
) -> list[GateCheck]:
    """Hold each of the user's segments against a need of "not worse"."""
    if gate.need != "not-worse" or gate.where != "overall" or not len(swap.segments):
        return []
    checks = []
    own = swap.segments
    for row in own[own["model"] == name].to_dict("records"):
        why_not = unjudged_text(row, gate.unit)
        verdict = "no claim" if why_not else row["verdict"]
        if verdict == "not shown":
            verdict = "undecided"
        record = {
            **row,
            "verdict": verdict,
            "relative": row["difference"] / row["loss_f"] if row["loss_f"] else np.nan,
            "reason": why_not,
        }
        where = f"{data}, {row['segment']}"
        checks.append(_check(gate, where, name, record, place="in this segment"))
    return checks


def _harm_check(answer: SwapAnswer, data: str, name: str, unit: Unit) -> GateCheck:
    outcome: Outcome = "no claim"
    finding = f"too few {unit.many} to look for harm, or no claim on them"
    if name in answer.swaps:
        swap = answer.swaps[name]
        outcomes: dict[str, Outcome] = {"harms": "not met", "no verdict": "no claim"}
        finding = " ".join(swap.sentences()[:2])
        outcome = outcomes.get(swap.verdict, "met")
    return _bare_check(data, name, outcome, finding, "a swap without harm")


def _flip_check(
    answer: SwapAnswer, data: str, name: str, most: float, level: float
) -> GateCheck:
    """Hold the share of negative flips, with its one-sided limit, against the most allowed."""
    needed = (
        f"at most {format_percent(most)} of the rows right under F and wrong under it"
    )
    own = answer.flips
    if len(own):
        own = own[own["model"] == name]
    if not len(own):
        finding = "it decides no classes, or nothing may be said of it"
        return _bare_check(data, name, "no claim", finding, needed)
    first = own.iloc[0]
    n_flips, n = int(first["negative"]), int(first["rows"])
    upper = binomtest(n_flips, n).proportion_ci(2 * level - 1).high
    finding = (
        f"{n_flips} of {n} rows ({format_percent(n_flips / n)}) are right under F and wrong under "
        f"it, at most {format_percent(upper)} ({format_level(level)} limit)"
    )
    outcome: Outcome = "met" if upper <= most else "no claim"
    if n_flips / n > most:
        outcome = "not met"
    return _bare_check(data, name, outcome, finding, needed)


def _bare_check(
    data: str, name: str, outcome: Outcome, finding: str, needed: str
) -> GateCheck:
    """Return a check that is of no change of loss."""
    return GateCheck(
        data=data,
        candidate=name,
        outcome=outcome,
        sentence=f"{name} on {data}: {finding}; needed: {needed}",
        needed=needed,
    )


def _plain_change(row: Mapping[str, Any]) -> float:
    """Return the change of F's squared error, none of it capped; NaN where it is not known."""
    rmse, rmse_f = row.get("rmse", np.nan), row.get("rmse_f", np.nan)
    if not (is_known(rmse) and is_known(rmse_f) and rmse_f > 0):
        return float("nan")
    return float((rmse / rmse_f) ** 2 - 1)


def junit_xml(gate: GateResult) -> str:
    """Return the checks as JUnit's XML: one test case each.

    A check that is not met is a failure; one that cannot be decided is an error.
    """
    counts = {
        "tests": str(len(gate.checks)),
        "failures": str(sum(check.outcome == "not met" for check in gate.checks)),
        "errors": str(sum(check.outcome == "no claim" for check in gate.checks)),
    }
    about = {"name": "hardsynth gate", **counts}
    root = ElementTree.Element("testsuites", about)
    suite = ElementTree.SubElement(root, "testsuite", about)
    for check in gate.checks:
        sentence = escape_controls(check.sentence)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=escape_controls(check.data),
            name=escape_controls(f"{check.candidate} is {check.needed}"),
        )
        if check.outcome == "met":
            ElementTree.SubElement(case, "system-out").text = sentence
            continue
        tag = "failure" if check.outcome == "not met" else "error"
        problem = ElementTree.SubElement(
            case, tag, type=check.outcome, message=sentence
        )
        problem.text = sentence
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def github_annotations(gate: GateResult) -> list[str]:
    """Return the lines that GitHub Actions shows beside a run, one for each check.

    Source: GitHub, *Workflow commands for GitHub Actions*, "Setting an error message".
    """
    lines = []
    for check in gate.checks:
        message = _escape_message(escape_controls(check.sentence))
        title = f"hardsynth gate {check.outcome}"
        lines.append(f"::{_LEVELS[check.outcome]} title={title}::{message}")
    return lines


def _escape_message(text: str) -> str:
    """Return a text that a workflow command takes as its message.

    Examples
    --------
    >>> _escape_message("-20 %\\nnext")
    '-20 %25%0Anext'
    """
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
