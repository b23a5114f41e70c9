"""Over all tasks: which framework improves on F where it fails, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import FrameworkRanks, TaskReport
from amlb_ext.report.tables import table_records
from amlb_ext.stats.weighted_mean import holm_adjusted, weighted_mean_interval

COLUMNS = (
    *(
        "framework",
        "tasks",
        "better",
        "worse",
        "undecided",
        "withheld",
        "better_family",
    ),
    *("relative", "low", "high", "mean_rank"),
)
_WITHHELD = ("incomplete", "no claim")


def overall_table(
    tasks: Sequence[TaskReport], ranks: FrameworkRanks, level: float = 0.95
) -> pd.DataFrame:
    """Return one row per framework, the largest saving first; see ``Report.overall``.

    The mean of the relative contrasts and its t interval take tasks as the sample, each counting
    once; tasks without a verdict are not in it. ``better_family`` counts tasks on which a
    framework is ``better`` even when p-values are Holm-adjusted over all tasks and candidates.
    """
    region_tables = []
    for task in tasks:
        if len(task.contrasts):
            region_tables.append(task.contrasts[task.contrasts["where"] == "region"])
    if not region_tables:
        return pd.DataFrame(columns=list(COLUMNS))
    contrasts = pd.concat(region_tables, ignore_index=True)
    is_better_family = _better_in_family(contrasts, 1 - level)
    rows = []
    # Tasks are the sample: folds of one task share training rows and are not independent.
    for framework, own_contrasts in contrasts.groupby("framework", sort=False):
        is_withheld = own_contrasts["verdict"].isin(_WITHHELD)
        # A loss of F that is 0 makes the relative change infinite.
        changes = own_contrasts.loc[~is_withheld, "relative"].to_numpy(dtype=float)
        mean_change = weighted_mean_interval(changes[np.isfinite(changes)], level=level)
        n_by_verdict = own_contrasts["verdict"].value_counts()
        row = {
            "framework": framework,
            "tasks": len(own_contrasts),
            "better": int(n_by_verdict.get("better", 0)),
            "worse": int(n_by_verdict.get("worse", 0)),
            "undecided": int(n_by_verdict.get("undecided", 0)),
            "withheld": int(is_withheld.sum()),
            "better_family": int(is_better_family[own_contrasts.index].sum()),
            "relative": mean_change.point,
            "low": mean_change.low,
            "high": mean_change.high,
            "mean_rank": float(ranks.mean.get(framework, np.nan)),
        }
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    is_control = table["framework"].map(is_control_framework).to_numpy()
    # The last key sorts first: candidates before F's controls, then the largest saving.
    order = np.lexsort((table["relative"].to_numpy(dtype=float), is_control))
    return table.iloc[order].reset_index(drop=True)


def _better_in_family(contrasts: pd.DataFrame, alpha: float) -> np.ndarray:
    """Return which contrasts stay better when p-values are adjusted over the whole report.

    Both claims behind ``better`` (unlike F, unlike its re-fits) must hold, so the larger of the
    two p-values is adjusted (intersection-union).
    """
    is_control = contrasts["framework"].map(is_control_framework)
    is_withheld = contrasts["verdict"].isin(_WITHHELD)
    p_values = contrasts[["p", "p_null"]].max(axis=1).to_numpy(dtype=float)
    # NaN is no member of the family.
    p_values = np.where((~is_control & ~is_withheld).to_numpy(), p_values, np.nan)
    is_better = (contrasts["verdict"] == "better").to_numpy()
    return is_better & (holm_adjusted(p_values) < alpha)


def baseline_alarm(tasks: Sequence[TaskReport]) -> tuple[str, ...]:
    """Return the sentence that comes before any verdict: the F that was run is another one."""
    alarmed = [_shown_name(task) for task in tasks if task.alarm]
    if not alarmed:
        return ()
    return (
        f"ALARM: on {len(alarmed)} of {_count_tasks(len(tasks))} ({_list_few(alarmed)}) the F "
        "that was run is not the F of this suite: do not read the contrasts there; the warnings "
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
    candidates, controls = overall[~is_control], overall[is_control]
    if not len(candidates):
        return ("Only F itself has been run, no candidate.",)
    return (
        *_winner_sentences(candidates, tasks),
        *_saving_sentences(candidates),
        *_loser_sentences(candidates),
        *_rank_sentences(ranks),
        *_weighting_sentences(tasks),
        *_no_claim_sentences(tasks),
        *_control_sentences(controls),
    )


def _winner_sentences(
    candidates: pd.DataFrame, tasks: Sequence[TaskReport]
) -> list[str]:
    """Return who improves on F, counting every comparison of the report; then task by task."""
    in_family = candidates[candidates["better_family"] > 0]
    on_single_tasks = candidates[candidates["better"] > candidates["better_family"]]
    sentences = []
    # First what holds when every comparison of the report is counted, ...
    if len(in_family):
        texts = []
        for row in table_records(
            in_family.sort_values("better_family", ascending=False)
        ):
            judged = _count_tasks(_n_judged(row))
            texts.append(f"{row['framework']} on {row['better_family']} of {judged}")
        winners = "; ".join(texts)
        sentences.append(f"Shown to improve on F on the rows where F fails: {winners}.")
    else:
        n_comparisons = sum(_n_judged(row) for row in table_records(candidates))
        reason = f"{n_comparisons} comparisons on {_count_tasks(len(tasks))} hold no significant gain"
        if len(on_single_tasks):
            reason += " once all of them are counted"
        elif not n_comparisons:
            reason = "no comparison could be judged at all"
        sentences.append(
            f"No framework is shown to improve on F on the rows where F fails: {reason}."
        )
    # ... then what holds only where a task is looked at alone.
    if len(on_single_tasks):
        texts = []
        for framework in on_single_tasks["framework"]:
            names = [
                _shown_name(task) for task in tasks if _is_better_on(task, framework)
            ]
            texts.append(f"{framework} on {_list_few(names)}")
        also = "also better than F" if len(in_family) else "better than F"
        sentences.append(
            f"Taken one task at a time, without counting the other tasks, {also}: "
            f"{'; '.join(texts)}."
        )
    return sentences


def _is_better_on(task: TaskReport, framework: str) -> bool:
    contrasts = task.contrasts
    if not len(contrasts):
        return False
    is_own = (contrasts["where"] == "region") & (contrasts["framework"] == framework)
    return bool((contrasts.loc[is_own, "verdict"] == "better").any())


def _n_judged(row: Mapping[str, Any]) -> int:
    """Return on how many tasks a framework has a verdict."""
    return int(row["better"] + row["worse"] + row["undecided"])


def _saving_sentences(candidates: pd.DataFrame) -> list[str]:
    """Return who saves loss on average over tasks."""
    has_interval = np.isfinite(candidates["low"].to_numpy(dtype=float))
    if not has_interval.any():
        return []
    saving = candidates[has_interval & (candidates["high"] < 0).to_numpy()]
    if not len(saving):
        return [
            "Averaged over tasks, no framework is shown to save any of F's loss there."
        ]
    texts = []
    for row in table_records(saving):
        interval = f"{format_percent(row['low'])} to {format_percent(row['high'])}"
        texts.append(
            f"{row['framework']} by {format_percent(row['relative'])} ({interval})"
        )
    return [f"Averaged over tasks, these change F's loss there: {'; '.join(texts)}."]


def _loser_sentences(candidates: pd.DataFrame) -> list[str]:
    worse = candidates[candidates["worse"] > 0]
    if not len(worse):
        return []
    losers = "; ".join(
        f"{row['framework']} on {row['worse']}" for row in table_records(worse)
    )
    return [f"Significantly worse than F there: {losers}."]


def _rank_sentences(ranks: FrameworkRanks) -> list[str]:
    if not len(ranks.mean):
        return []
    first = ranks.mean.index[0]
    text = (
        f"Over {_count_tasks(len(ranks.tasks))} the smallest mean rank is {first}'s "
        f"({ranks.mean.iloc[0]:.2g} of {len(ranks.mean)} entrants)"
    )
    if not len(ranks.p):
        return [f"{text}; too few tasks to test that."]
    beaten = []
    for name in ranks.p.columns:
        if name != first and ranks.p.loc[first, name] < 0.05:
            beaten.append(str(name))
    if beaten:
        return [f"{text}, significantly ahead of {_list_few(beaten)}."]
    return [f"{text}, not significantly ahead of any."]


def _weighting_sentences(tasks: Sequence[TaskReport]) -> list[str]:
    """Return where the rows of the region are too few to weight by."""
    sentences = []
    claimable = [task for task in tasks if not task.no_claim]
    unweighted = [_shown_name(task) for task in claimable if not task.weighted]
    if unweighted:
        sentences.append(
            f"On {len(unweighted)} of {_count_tasks(len(tasks))} ({_list_few(unweighted)}) the "
            "region is worth too few rows to weight by: there all test rows count alike, and the "
            "verdict is on them."
        )
    partly = []
    for task in claimable:
        frameworks = _unweighted_candidates(task) if task.weighted else []
        if frameworks:
            partly.append(f"{_list_few(frameworks)} on {_shown_name(task)}")
    if partly:
        sentences.append(
            f"Run on folds whose weights are worth too few rows: {'; '.join(partly)}. There all "
            "rows of these folds count alike, and the verdict is on them."
        )
    return sentences


def _unweighted_candidates(task: TaskReport) -> list[str]:
    """Return the candidates whose contrast in the region counts all rows alike."""
    contrasts = task.contrasts
    if not len(contrasts):
        return []
    is_compared = (contrasts["where"] == "region") & (contrasts["rows"] > 0)
    is_unweighted = is_compared & ~contrasts["weighted"].astype(bool)
    names = contrasts.loc[is_unweighted, "framework"]
    return [name for name in names if not is_control_framework(name)]


def _no_claim_sentences(tasks: Sequence[TaskReport]) -> list[str]:
    withheld = [_shown_name(task) for task in tasks if task.no_claim]
    if not withheld:
        return []
    return [
        f"No claim about gains over F is made on {len(withheld)} of {_count_tasks(len(tasks))} "
        f"({_list_few(withheld)}); each says why."
    ]


def _control_sentences(controls: pd.DataFrame) -> list[str]:
    """Return how F's own re-fits fare: they must not be better than F."""
    sentences = []
    for row in table_records(controls):
        n_judged = _n_judged(row)
        if row["better"]:
            sentences.append(
                f"Beware: {row['framework']}, which is F itself, is called better than F on "
                f"{row['better']} of {_count_tasks(n_judged)}."
            )
        elif row["worse"]:
            sentences.append(
                f"Beware: {row['framework']}, which is F itself, is called worse than F on "
                f"{row['worse']} of {_count_tasks(n_judged)}: F's re-fits scatter less than they "
                "should there (hardsynth certify --refits 20 tells better)."
            )
        elif n_judged:
            sentences.append(
                f"The control {row['framework']}, which is F itself, is called better on none of "
                f"{_count_tasks(n_judged)}, as it should be."
            )
    return sentences


def _shown_name(task: TaskReport) -> str:
    return task.title or task.name


def _list_few(names: Sequence[str], most: int = 4) -> str:
    """Return the first names, each cut to 40 characters, and how many more there are."""
    shown = [name if len(name) <= 40 else name[:39] + "…" for name in names[:most]]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more


def _count_tasks(count: int) -> str:
    return f"{count} task{'' if count == 1 else 's'}"
