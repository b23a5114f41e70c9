"""Over all tasks: which framework is better than F, where F fails too, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent, shorten_text
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import FrameworkRanks, TaskReport
from amlb_ext.report.tables import table_records
from amlb_ext.stats.weighted_mean import holm_adjusted, weighted_mean_interval

#: What is counted of each question.
_COUNTED = (
    "better",
    "worse",
    "undecided",
    "withheld",
    "better_family",
    "relative",
    "low",
    "high",
)
#: Where each question is asked, and what stands before its columns.
_PREFIXES = {"all rows": "overall_", "region": ""}
COLUMNS = (
    "framework",
    "tasks",
    *(f"overall_{name}" for name in _COUNTED),
    *_COUNTED,
    "larger",
    "mean_rank",
)
#: How the report is to be used.
ADVICE = "Read the region for where a change comes from, and how large it is there."
# Lines are dense here since a sentence with four numbers in it is still one sentence.

#: Verdicts of contrasts that are not judged.
_WITHHELD = ("incomplete", "no claim")
#: Ranks differ significantly below this p-value.
_RANK_LEVEL = 0.05


def overall_table(
    tasks: Sequence[TaskReport], ranks: FrameworkRanks, level: float = 0.95
) -> pd.DataFrame:
    """Return one row per framework, the largest saving first; see ``SuiteReport.overall``.

    The mean of the relative contrasts and its t interval take tasks as the sample, each counting
    once; tasks without a verdict are not in it. ``better_family`` counts tasks on which a
    framework is ``better`` even when p-values are Holm-adjusted over all tasks, candidates and
    both questions.
    """
    tables = [task.contrasts for task in tasks if len(task.contrasts)]
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    contrasts = pd.concat(tables, ignore_index=True)
    is_better_family = _better_in_family(contrasts, 1 - level)
    rows = []
    for framework, own_contrasts in contrasts.groupby("framework", sort=False):
        row: dict[str, Any] = {"framework": framework}
        for where, prefix in _PREFIXES.items():
            asked = own_contrasts[own_contrasts["where"] == where]
            row["tasks"] = len(asked)
            counted = _count_verdicts(asked, is_better_family[asked.index], level)
            row |= {f"{prefix}{name}": value for name, value in counted.items()}
        row["larger"] = int((own_contrasts["verdict"] == "larger").sum())
        row["mean_rank"] = float(ranks.mean.get(framework, np.nan))
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    is_control = table["framework"].map(is_control_framework).to_numpy()
    change = table["overall_relative"].to_numpy(dtype=float)
    # The last key sorts first: candidates before F's controls, then the largest saving.
    order = np.lexsort((change, is_control))
    return table.iloc[order].reset_index(drop=True)


def _count_verdicts(
    asked: pd.DataFrame, is_better_family: np.ndarray, level: float
) -> dict[str, Any]:
    """Return what is counted of one framework and one question, over all tasks."""
    verdicts = asked["verdict"]
    is_withheld = verdicts.isin(_WITHHELD)
    changes = asked.loc[~is_withheld, "relative"].to_numpy(dtype=float)
    # A loss of F that is 0 makes the relative change infinite.
    finite_changes = changes[np.isfinite(changes)]
    # Tasks are the sample: folds of one task share training rows and are not independent.
    mean_change = weighted_mean_interval(finite_changes, level=level)
    n_by_verdict = verdicts.value_counts()
    return {
        "better": int(n_by_verdict.get("better", 0)),
        "worse": int(n_by_verdict.get("worse", 0)),
        "undecided": int(n_by_verdict.get("undecided", 0)),
        "withheld": int(is_withheld.sum()),
        "better_family": int(is_better_family.sum()),
        "relative": mean_change.point,
        "low": mean_change.low,
        "high": mean_change.high,
    }


def _contrasts_where(task: TaskReport, where: str) -> pd.DataFrame:
    """Return the contrasts of one question."""
    # Where nothing was compared, the table may have no column to ask for.
    if not len(task.contrasts):
        return task.contrasts
    return task.contrasts[task.contrasts["where"] == where]


def _better_in_family(contrasts: pd.DataFrame, alpha: float) -> np.ndarray:
    """Return which contrasts stay better when p-values are adjusted over the whole report.

    Where F fails both claims behind ``better`` (unlike F, unlike its re-fits) must hold, so the
    larger of the two p-values is adjusted (intersection-union).
    """
    is_control = contrasts["framework"].map(is_control_framework)
    is_withheld = contrasts["verdict"].isin(_WITHHELD)
    is_third = ~contrasts["where"].isin(list(_PREFIXES))
    larger_p = contrasts[["p", "p_null"]].max(axis=1)
    # NaN is no member of the family.
    family_p = larger_p.mask(is_control | is_withheld | is_third).to_numpy(dtype=float)
    is_better = (contrasts["verdict"] == "better").to_numpy()
    return is_better & (holm_adjusted(family_p) < alpha)


def baseline_alarm(tasks: Sequence[TaskReport]) -> tuple[str, ...]:
    """Return the alarm that precedes any verdict, if the F that was run is not the suite's F."""
    alarmed = [_shown_name(task) for task in tasks if task.alarm]
    if not alarmed:
        return ()
    return (
        f"ALARM: on {_list_among(alarmed, tasks)} the F "
        "that was run is not the F of this suite: ignore the contrasts there; the warnings "
        "say how far they are apart and what to do.",
    )


def verdict_sentences(
    tasks: Sequence[TaskReport], overall: pd.DataFrame, ranks: FrameworkRanks
) -> tuple[str, ...]:
    """Return the answer in sentences, the most important first.

    Parameters
    ----------
    tasks : sequence of TaskReport
    overall : DataFrame
        See :func:`overall_table`.
    ranks : FrameworkRanks
    """
    if not len(overall):
        return (
            "No framework has been compared with F: there are no predictions for the untouched "
            "test folds of any task.",
        )
    is_control = overall["framework"].map(is_control_framework)
    candidates = overall[~is_control]
    controls = overall[is_control]
    if not len(candidates):
        return ("Only F itself has been run, no candidate.",)
    # From the answer to what limits it.
    return (
        _decision_sentence(candidates, tasks),
        *_region_winner_sentences(candidates, tasks),
        *_concentration_sentences(candidates, tasks),
        *_saving_sentences(candidates),
        *_loser_sentences(candidates),
        *_rank_sentences(ranks),
        *_weighting_sentences(tasks),
        *_no_claim_sentences(tasks),
        *_control_sentences(controls),
    )


def _decision_sentence(candidates: pd.DataFrame, tasks: Sequence[TaskReport]) -> str:
    """Return who is better than F over all rows: what to decide on."""
    shown, single = _winners(candidates, tasks, "all rows")
    if shown:
        text = f"Decide on the whole test folds: better than F there: {shown}."
    else:
        reason = _reason_for_none(candidates, "all rows", n_tasks=len(tasks))
        counted = " once all of them are counted" if single else ""
        text = (
            "Decide on the whole test folds: no framework is shown to be better than F there, "
            f"{reason}{counted}."
        )
    if single:
        text += (
            f" Taken one task at a time, {'also ' if shown else ''}better: {single}."
        )
    return f"{text} {ADVICE}"


def _region_winner_sentences(
    candidates: pd.DataFrame, tasks: Sequence[TaskReport]
) -> list[str]:
    """Return who improves on F where F fails; counting all comparisons, then task by task."""
    shown, single = _winners(candidates, tasks, "region")
    if shown:
        sentences = [f"Shown to improve on F on the rows where F fails: {shown}."]
    else:
        reason = _reason_for_none(candidates, "region", n_tasks=len(tasks))
        counted = " once all of them are counted" if single else ""
        sentences = [
            "No framework is shown to improve on F on the rows where F fails: "
            f"{reason}{counted}."
        ]
    # ... then what holds only where a task is looked at alone.
    if single:
        also = "also better than F" if shown else "better than F"
        sentences.append(
            "Taken one task at a time, without counting the other tasks, "
            f"{also} there: {single}."
        )
    return sentences


def _winners(
    candidates: pd.DataFrame, tasks: Sequence[TaskReport], where: str
) -> tuple[str, str]:
    """Return who is better counting every comparison of the report, and who task by task."""
    prefix = _PREFIXES[where]
    family, better = f"{prefix}better_family", f"{prefix}better"
    best_first = candidates.sort_values(family, ascending=False, kind="stable")
    in_family = []
    for row in table_records(best_first):
        if row[family] > 0:
            n_judged = _count_tasks(_n_judged(row, where))
            in_family.append(f"{row['framework']} on {row[family]} of {n_judged}")
    single = []
    for row in table_records(candidates):
        if row[better] > row[family]:
            names = [
                _shown_name(task)
                for task in tasks
                if _is_better_on(task, row["framework"], where)
            ]
            single.append(f"{row['framework']} on {_list_few(names)}")
    return "; ".join(in_family), "; ".join(single)


def _reason_for_none(candidates: pd.DataFrame, where: str, n_tasks: int) -> str:
    n_judged = sum(_n_judged(row, where) for row in table_records(candidates))
    if not n_judged:
        return "no comparison could be judged"
    return f"{n_judged} comparisons on {_count_tasks(n_tasks)} show no significant gain"


def _is_better_on(task: TaskReport, framework: str, where: str) -> bool:
    for row in table_records(_contrasts_where(task, where), framework=framework):
        if row["verdict"] == "better":
            return True
    return False


def _concentration_sentences(
    candidates: pd.DataFrame, tasks: Sequence[TaskReport]
) -> list[str]:
    """Return whose gain is larger where F fails than over all rows."""
    texts = []
    for row in table_records(candidates):
        names = []
        for task in tasks:
            contrasts = _contrasts_where(task, "region minus all rows")
            for answer in table_records(contrasts, framework=row["framework"]):
                if answer["verdict"] == "larger":
                    names.append(_shown_name(task))
        if names:
            texts.append(f"{row['framework']} on {_list_few(names)}")
    if not texts:
        return []
    return [f"The gain is larger there than on the whole folds: {'; '.join(texts)}."]


def _n_judged(row: Mapping[str, Any], where: str = "region") -> int:
    """Return on how many tasks a framework has a verdict."""
    prefix = _PREFIXES[where]
    verdicts = ("better", "worse", "undecided")
    return int(sum(row[f"{prefix}{verdict}"] for verdict in verdicts))


def _saving_sentences(candidates: pd.DataFrame) -> list[str]:
    """Return who saves loss on average over tasks."""
    has_interval = False
    texts = []
    for row in table_records(candidates):
        # Below three tasks there is no interval, and nothing to say.
        if not np.isfinite(row["low"]):
            continue
        has_interval = True
        if row["high"] < 0:
            low = format_percent(row["low"])
            high = format_percent(row["high"])
            change = format_percent(row["relative"])
            texts.append(f"{row['framework']} by {change} ({low} to {high})")
    if not has_interval:
        return []
    if not texts:
        return [
            "Averaged over tasks, no framework is shown to save any of F's loss where F fails."
        ]
    return [
        f"Averaged over tasks, these change F's loss where F fails: {'; '.join(texts)}."
    ]


def _loser_sentences(candidates: pd.DataFrame) -> list[str]:
    sentences = []
    for prefix, place in (("overall_", "on the whole folds"), ("", "where F fails")):
        texts = []
        for row in table_records(candidates):
            n_worse = row[f"{prefix}worse"]
            if n_worse > 0:
                texts.append(f"{row['framework']} on {n_worse}")
        if texts:
            sentences.append(f"Significantly worse than F {place}: {'; '.join(texts)}.")
    return sentences


def _rank_sentences(ranks: FrameworkRanks) -> list[str]:
    if not len(ranks.mean):
        return []
    first = ranks.mean.index[0]
    best_mean = ranks.mean.iloc[0]
    n_tasks = _count_tasks(len(ranks.tasks))
    n_entrants = len(ranks.mean)
    text = (
        f"Over {n_tasks} the smallest mean rank is {first}'s "
        f"({best_mean:.2g} of {n_entrants} entrants)"
    )
    # Mean ranks of few tasks are told, but not tested.
    if not len(ranks.p):
        return [f"{text}; too few tasks to test that."]
    beaten = []
    for name, p_value in ranks.p.loc[first].items():
        if name != first and p_value < _RANK_LEVEL:
            beaten.append(str(name))
    if beaten:
        return [f"{text}, significantly ahead of {_list_few(beaten)}."]
    return [f"{text}, not significantly ahead of any."]


def _weighting_sentences(tasks: Sequence[TaskReport]) -> list[str]:
    """Return where the rows of the region are too few to weight by."""
    sentences = []
    # Where no claim is made, it does not matter how its rows would have counted.
    claimable = [task for task in tasks if not task.no_claim]
    unweighted = [_shown_name(task) for task in claimable if not task.weighted]
    if unweighted:
        sentences.append(
            f"On {_list_among(unweighted, tasks)} the "
            "region is worth too few rows to weight by: nothing is claimed where F fails there."
        )
    # A framework that ran on some of the folds only has rows, and a weighting, of its own.
    texts = []
    for task in claimable:
        frameworks = _unweighted_candidates(task) if task.weighted else []
        if frameworks:
            texts.append(f"{_list_few(frameworks)} on {_shown_name(task)}")
    if texts:
        sentences.append(
            f"Run on folds whose weights are worth too few rows: {'; '.join(texts)}. Nothing is "
            "claimed of them where F fails."
        )
    return sentences


def _unweighted_candidates(task: TaskReport) -> list[str]:
    """Return the candidates whose contrast in the region counts all rows alike."""
    frameworks = []
    for row in table_records(_contrasts_where(task, "region")):
        is_unweighted = row["rows"] > 0 and not row["weighted"]
        if is_unweighted and not is_control_framework(row["framework"]):
            frameworks.append(row["framework"])
    return frameworks


def _no_claim_sentences(tasks: Sequence[TaskReport]) -> list[str]:
    withheld = [_shown_name(task) for task in tasks if task.no_claim]
    if not withheld:
        return []
    return [
        f"No claim about gains where F fails is made on {_list_among(withheld, tasks)}; each "
        "says why."
    ]


def _control_sentences(controls: pd.DataFrame) -> list[str]:
    """Return how F's own re-fits fare: they must not be better than F."""
    sentences = []
    # A verdict on F itself is a false alarm: it tells how far the other verdicts can be trusted.
    for row in table_records(controls):
        n_judged = _n_judged(row)
        tasks = _count_tasks(n_judged)
        framework = f"{row['framework']}, which is F itself,"
        if row["better"]:
            sentences.append(
                f"Beware: {framework} is called better than F on {row['better']} of {tasks}."
            )
        elif row["worse"]:
            sentences.append(
                f"Beware: {framework} is called worse than F on {row['worse']} of {tasks}: "
                "F's re-fits scatter less than they should there (hardsynth certify --refits 20 "
                "estimates it better)."
            )
        elif n_judged:
            sentences.append(
                f"The control {framework} is called better on none of {tasks}, as it should be."
            )
    return sentences


def _shown_name(task: TaskReport) -> str:
    return task.title or task.name


def _list_among(names: Sequence[str], tasks: Sequence[TaskReport]) -> str:
    """Return how many of the tasks these are, and the first of them."""
    counts = f"{len(names)} of {_count_tasks(len(tasks))}"
    return f"{counts} ({_list_few(names)})"


def _list_few(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, each cut to 40 characters, and how many more there are."""
    shown = [shorten_text(name, 40) for name in names[:most]]
    listed = ", ".join(shown)
    n_more = len(names) - most
    if n_more > 0:
        listed += f" and {n_more} more"
    return listed


def _count_tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
