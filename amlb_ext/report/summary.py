"""Over all tasks: which framework is better than F, where F fails too, and by how much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_count, format_percent, shorten_text
from amlb_ext.core.unit import F, Unit
from amlb_ext.report.compare import is_baseline_framework, is_control_framework
from amlb_ext.report.model import FrameworkRanks, TaskReport
from amlb_ext.report.overall import (
    JUDGED,
    SURELY_BETTER,
    AnswerMatrix,
    MatrixRow,
)
from amlb_ext.report.ranks import RANK_LEVEL
from amlb_ext.report.tables import table_records


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


def verdict_sentences(matrix: AnswerMatrix, unit: Unit) -> tuple[str, ...]:
    """Return the answer: where F is beaten, then one sentence per candidate."""
    if not matrix.rows:
        return (
            "No framework has been compared with F: there are no predictions for the untouched "
            f"{unit.folds} of any task.",
        )
    if not matrix.frameworks:
        return ("Only F itself has been run, no candidate.",)
    sentences = [_framework_sentence(matrix, name) for name in matrix.frameworks]
    return (_headline(matrix), *sentences)


def caveat_sentences(
    tasks: Sequence[TaskReport],
    overall: pd.DataFrame,
    ranks: FrameworkRanks,
    unit: Unit,
) -> tuple[str, ...]:
    """Return what stands behind the answer and limits it, a sentence each.

    Parameters
    ----------
    tasks : sequence of TaskReport
    overall : DataFrame
        See :func:`amlb_ext.report.overall.overall_table`.
    ranks : FrameworkRanks
    unit : Unit
    """
    if not len(overall):
        return ()
    is_control = overall["framework"].map(is_control_framework)
    candidates = overall[~is_control]
    if not len(candidates):
        return ()
    return (
        *_control_sentences(overall[is_control], unit),
        *_concentration_sentences(candidates, tasks),
        *_saving_sentences(candidates, unit),
        *_rank_sentences(ranks),
        *_withheld_sentences(tasks, unit),
    )


def _headline(matrix: AnswerMatrix) -> str:
    """Return on which tasks a candidate beats F on all rows: what to decide on."""
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
        text = f"F is beaten on {len(beaten)} of {len(judged)} tasks: {_join_names(by_whom)}"
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
    names = _list_few([row.task.shown_name for row in alone])
    return f"{text}; on {names} only if looked at alone."


def _framework_sentence(matrix: AnswerMatrix, framework: str) -> str:
    """Return a candidate's verdicts on all rows."""
    better, worse, undecided, withheld = [], [], [], []
    rows = [row for row in matrix.rows if framework in row.cells]

    def change_of(row: MatrixRow) -> float:
        change = row.cells[framework].overall.change
        # tasks without a change last
        return change if np.isfinite(change) else np.inf

    for row in sorted(rows, key=change_of):
        overall = row.cells[framework].overall
        name = _cut_name(row.task.shown_name)
        if overall.is_better:
            how = "only if looked at alone"
            if overall.verdict == SURELY_BETTER:
                how = "safe after counting all comparisons"
            better.append(f"{name} ({overall.text()}, {how})")
        elif overall.verdict == "worse":
            worse.append(f"{name} ({overall.text()})")
        elif overall.verdict == "undecided":
            undecided.append(name)
        else:
            withheld.append(name)
    verdicts = []
    for verdict, named in (
        ("better on", better),
        # the names that are cut off must not be those of the largest losses
        ("worse on", worse[::-1]),
    ):
        if named:
            verdicts.append(f"{verdict} {_join_names(named)}")
    for verdict, names in (("undecided", undecided), ("withheld", withheld)):
        if not names:
            continue
        counted = f"{len(names)} {verdict}"
        if len(names) == len(rows):
            where = f"all {len(rows)} tasks" if len(rows) > 1 else names[0]
            counted = f"{verdict} on {where}"
        verdicts.append(counted)
    return f"{_cut_name(framework)}: {'; '.join(verdicts)}."


def _concentration_sentences(
    candidates: pd.DataFrame, tasks: Sequence[TaskReport]
) -> list[str]:
    """Return whose gain is larger where F fails than elsewhere."""
    texts = []
    for row in table_records(candidates):
        names = []
        for task in tasks:
            contrasts = task.asked("region minus elsewhere")
            for answer in table_records(contrasts, framework=row["framework"]):
                if answer["verdict"] == "larger gain":
                    names.append(task.shown_name)
        if names:
            texts.append(f"{row['framework']} on {_list_few(names)}")
    if not texts:
        return []
    who = "; ".join(texts)
    return [
        f"The gain is larger where F fails than elsewhere, relative to F's loss: {who}."
    ]


def _saving_sentences(candidates: pd.DataFrame, unit: Unit) -> list[str]:
    """Return who saves loss on average over tasks, by both questions."""
    sentences = []
    places = {"overall_": f"on all {unit.many}", "": "where F fails"}
    for prefix, place in places.items():
        # Below three tasks there is no interval, and nothing to say.
        has_interval = np.isfinite(candidates[f"{prefix}low"].to_numpy(dtype=float))
        # a description without a verdict is no finding
        counts = candidates[[f"{prefix}{word}" for word in JUDGED]]
        has_interval &= (counts.sum(axis=1) > 0).to_numpy()
        if not has_interval.any():
            continue
        texts = []
        for row in table_records(candidates[has_interval]):
            if row[f"{prefix}high"] < 0:
                change = format_percent(row[f"{prefix}relative"], sign=True)
                low = format_percent(row[f"{prefix}low"], sign=True)
                high = format_percent(row[f"{prefix}high"], sign=True)
                texts.append(f"{row['framework']} {change} ({low} to {high})")
        who = "; ".join(texts)
        if texts:
            sentences.append(f"Mean change of F's loss over tasks {place}: {who}.")
        else:
            sentences.append(
                f"On average over the tasks, no framework is shown to reduce the loss {place}."
            )
    return sentences


def _rank_sentences(ranks: FrameworkRanks) -> list[str]:
    """Return who has the smallest mean rank, and whether that is significant.

    Examples
    --------
    >>> from amlb_ext.report.ranks import rank_tasks
    >>> _rank_sentences(rank_tasks(pd.DataFrame({"F": [0.3], "a": [0.3]})))[0][:46]
    'Over 1 task, F, a share the smallest mean rank'
    """
    if not len(ranks.mean):
        return []
    first = ranks.mean.index[0]
    best_mean = ranks.mean.iloc[0]
    leaders = list(ranks.mean.index[ranks.mean == best_mean])
    verb = "has" if len(leaders) == 1 else "share"
    n_tasks = format_count(len(ranks.tasks), "task")
    n_entrants = len(ranks.mean)
    text = (
        f"Over {n_tasks}, {', '.join(leaders)} {verb} the smallest mean rank "
        f"({best_mean:.2g} among {n_entrants} entrants)"
    )
    # Mean ranks of few tasks are told, but not tested.
    if not len(ranks.p):
        return [f"{text}; there are too few tasks to test that."]
    beaten = []
    for name, p_value in ranks.p.loc[first].items():
        if name != first and p_value < RANK_LEVEL:
            beaten.append(str(name))
    if beaten:
        return [f"{text}, significantly ahead of {_list_few(beaten)}."]
    return [f"{text}, not significantly ahead of any other."]


def _withheld_sentences(tasks: Sequence[TaskReport], unit: Unit) -> list[str]:
    """Return on which tasks nothing is claimed, and why."""
    sentences = []
    # Where no claim is made, it does not matter how its units would have counted.
    unweighted = [task for task in tasks if not task.no_claim and not task.weighted]
    if unweighted:
        sentences.append(
            f"On {_list_among(unweighted, tasks)} the weights of the region are worth too few "
            f"{unit.many}: nothing is claimed where F fails there."
        )
    unclaimed = [task for task in tasks if task.no_claim]
    if unclaimed:
        sentences.append(
            f"No claim about gains where F fails is made on {_list_among(unclaimed, tasks)}; the "
            "section of each task says why."
        )
    heavy = [task for task in tasks if task.heavy_tail]
    if heavy:
        sentences.append(
            f"The largest errors decide on {_list_among(heavy, tasks)}: where that is so no "
            "verdict is given, and the figures are of errors as they are. Decide there by another "
            "loss, e.g. the absolute error."
        )
    return sentences


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
                f"Beware: {framework} is called {_join_names(alarms)}. Other verdicts can be wrong "
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


def _cut_name(name: str) -> str:
    return shorten_text(name, 40)


def _join_names(names: Sequence[str], most: int = 8) -> str:
    """Return the first names as they stand in a sentence: a, b and c."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    *others, last = shown
    return f"{', '.join(others)} and {last}" if others else last


def _list_among(named: Sequence[TaskReport], tasks: Sequence[TaskReport]) -> str:
    """Return how many of the tasks these are, and the first of them."""
    names = _list_few([task.shown_name for task in named])
    if len(tasks) == 1:
        return names
    return f"{_share_of_tasks(len(named), len(tasks))} ({names})"


def _share_of_tasks(count: int, n_tasks: int) -> str:
    return "the only task" if n_tasks == 1 else f"{count} of {n_tasks} tasks"


def _list_few(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, each cut to 40 characters, and how many more there are."""
    shown = [_cut_name(name) for name in names[:most]]
    listed = ", ".join(shown)
    n_more = len(names) - most
    if n_more > 0:
        listed += f" and {n_more} more"
    return listed
