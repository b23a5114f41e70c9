"""Over all tasks: which framework improves on F where it fails, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_percent
from amlb_ext.report.compare import is_control_framework
from amlb_ext.report.model import FrameworkRanks, TaskReport
from amlb_ext.stats.weighted_mean import holm_adjusted, weighted_mean_interval

COLUMNS = (
    *("framework", "tasks", "better", "worse", "undecided", "withheld", "better_family"),
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
    some = [t.contrasts[t.contrasts["where"] == "region"] for t in tasks if len(t.contrasts)]
    if not some:
        return pd.DataFrame(columns=list(COLUMNS))
    table = pd.concat(some, ignore_index=True)
    family = _family(table, 1 - level)
    rows = []
    for name, own in table.groupby("framework", sort=False):
        told = own[~own["verdict"].isin(_WITHHELD)]
        values = told["relative"].to_numpy(dtype=float)
        mean = weighted_mean_interval(values[np.isfinite(values)], level=level)
        words = own["verdict"].value_counts()
        rows.append(
            {
                "framework": name,
                "tasks": len(own),
                **{word: int(words.get(word, 0)) for word in ("better", "worse", "undecided")},
                "withheld": int(own["verdict"].isin(_WITHHELD).sum()),
                "better_family": int(family[own.index].sum()),
                "relative": mean.point,
                "low": mean.low,
                "high": mean.high,
                "mean_rank": float(ranks.mean.get(name, np.nan)),
            }
        )
    out = pd.DataFrame(rows, columns=list(COLUMNS))
    order = (
        out["framework"].map(is_control_framework).to_numpy(),
        out["relative"].to_numpy(dtype=float),
    )
    return out.iloc[np.lexsort((order[1], order[0]))].reset_index(drop=True)


def _family(table: pd.DataFrame, alpha: float) -> np.ndarray:
    """Return which contrasts stay better when p-values are adjusted over the whole report.

    Both claims behind ``better`` (unlike F, unlike its re-fits) must hold, so the larger of the
    two p-values is adjusted (intersection-union).
    """
    counts = ~table["framework"].map(is_control_framework) & ~table["verdict"].isin(_WITHHELD)
    p = table[["p", "p_null"]].max(axis=1).to_numpy(dtype=float)
    p = np.where(counts.to_numpy(), p, np.nan)
    adjusted = holm_adjusted(p)
    return (table["verdict"] == "better").to_numpy() & (adjusted < alpha)


def baseline_alarm(tasks: Sequence[TaskReport]) -> tuple[str, ...]:
    """Return the sentence that comes before any verdict: the F that was run is another one."""
    odd = [task.title or task.name for task in tasks if task.alarm]
    if not odd:
        return ()
    return (
        f"ALARM: on {len(odd)} of {_tasks(len(tasks))} ({_few(odd)}) the F that was run is not "
        "the F of this suite: do not read the contrasts there; the warnings say how far they are "
        "apart and what to do.",
    )


def verdict_sentences(
    tasks: Sequence[TaskReport], table: pd.DataFrame, ranks: FrameworkRanks
) -> tuple[str, ...]:
    """Return the answer in sentences, the most important first."""
    if not len(table):
        return (
            "No framework has been compared with F: there are no predictions for the untouched "
            "test folds of any task.",
        )
    candidates = table[~table["framework"].map(is_control_framework)]
    if not len(candidates):
        return ("Only F itself has been run, no candidate.",)
    where = {
        name: [t.title or t.name for t in tasks if _better(t, name)]
        for name in candidates["framework"]
    }
    out = [*_winners(candidates, len(tasks), where), *_savings(candidates), *_losers(candidates),
           _ranking(ranks)]  # fmt: skip
    alike = [t for t in tasks if not t.weighted and not t.no_claim]
    if alike:
        names = _few([t.title or t.name for t in alike])
        out.append(
            f"On {len(alike)} of {_tasks(len(tasks))} ({names}) the region is worth too few "
            "rows to weight by: there all test rows count alike, and the verdict is on them."
        )
    partly = [t for t in tasks if t.weighted and not t.no_claim and _counts_alike(t)]
    if partly:
        each = "; ".join(f"{_few(_counts_alike(t))} on {t.title or t.name}" for t in partly)
        out.append(
            f"Run on folds whose weights are worth too few rows: {each}. There all rows of these "
            "folds count alike, and the verdict is on them."
        )
    withheld = [t for t in tasks if t.no_claim]
    if withheld:
        names = _few([t.title or t.name for t in withheld])
        out.append(
            f"No claim about gains over F is made on {len(withheld)} of {_tasks(len(tasks))} "
            f"({names}); each says why."
        )
    out += _control(table)
    return tuple(sentence for sentence in out if sentence)


def _counts_alike(task: TaskReport) -> list[str]:
    """Return the candidates whose contrast in the region counts all rows alike."""
    table = task.contrasts
    if not len(table):
        return []
    alike = (table["where"] == "region") & (table["rows"] > 0) & ~table["weighted"].astype(bool)
    return [name for name in table.loc[alike, "framework"] if not is_control_framework(name)]


def _winners(candidates: pd.DataFrame, total: int, where: Mapping[str, Sequence[str]]) -> list[str]:
    """Return who improves on F, counting every comparison of the report; then task by task."""
    sure = candidates[candidates["better_family"] > 0]
    single = candidates[candidates["better"] > candidates["better_family"]]
    out = []
    if len(sure):
        told = "; ".join(f"{row['framework']} on {row['better_family']} of {_tasks(_judged(row))}"
                         for row in sure.sort_values("better_family", ascending=False)
                         .to_dict("records"))  # fmt: skip
        out.append(f"Shown to improve on F on the rows where F fails: {told}.")
    else:
        count = int(candidates.apply(_judged, axis=1).sum())
        reason = f"{count} comparisons on {_tasks(total)} hold no significant gain"
        if len(single):
            reason += " once all of them are counted"
        elif not count:
            reason = "no comparison could be judged at all"
        out.append(f"No framework is shown to improve on F on the rows where F fails: {reason}.")
    if len(single):
        told = "; ".join(
            f"{row['framework']} on {_few(where[row['framework']])}"
            for row in single.to_dict("records")
        )
        also = "also better than F" if len(sure) else "better than F"
        out.append(f"Taken one task at a time, without counting the other tasks, {also}: {told}.")
    return out


def _better(task: TaskReport, framework: str) -> bool:
    table = task.contrasts
    if not len(table):
        return False
    own = table[(table["where"] == "region") & (table["framework"] == framework)]
    return bool((own["verdict"] == "better").any())


def _judged(row: Mapping[str, int] | pd.Series) -> int:
    return int(row["better"] + row["worse"] + row["undecided"])


def _savings(candidates: pd.DataFrame) -> list[str]:
    """Return who saves loss on average over tasks."""
    known = candidates[np.isfinite(candidates["low"].to_numpy(dtype=float))]
    if not len(known):
        return []
    saves = known[known["high"] < 0]
    if not len(saves):
        return ["Averaged over tasks, no framework is shown to save any of F's loss there."]
    told = "; ".join(f"{row['framework']} {_change(row)}" for row in saves.to_dict("records"))
    return [f"Averaged over tasks, these change F's loss there: {told}."]


def _change(row: Mapping[str, float]) -> str:
    change, low, high = (format_percent(row[name]) for name in ("relative", "low", "high"))
    return f"by {change} ({low} to {high})"


def _losers(candidates: pd.DataFrame) -> list[str]:
    worse = candidates[candidates["worse"] > 0]
    if not len(worse):
        return []
    told = "; ".join(f"{row['framework']} on {row['worse']}" for row in worse.to_dict("records"))
    return [f"Significantly worse than F there: {told}."]


def _ranking(ranks: FrameworkRanks) -> str:
    if not len(ranks.mean):
        return ""
    first = ranks.mean.index[0]
    text = (
        f"Over {_tasks(len(ranks.tasks))} the smallest mean rank is {first}'s "
        f"({ranks.mean.iloc[0]:.2g} of {len(ranks.mean)} entrants)"
    )
    if not len(ranks.p):
        return f"{text}; too few tasks to test that."
    beaten = [str(n) for n in ranks.p.columns if n != first and ranks.p.loc[first, n] < 0.05]
    told = f"significantly ahead of {_few(beaten)}" if beaten else "not significantly ahead of any"
    return f"{text}, {told}."


def _control(table: pd.DataFrame) -> list[str]:
    out = []
    for row in table[table["framework"].map(is_control_framework)].to_dict("records"):
        judged = row["better"] + row["worse"] + row["undecided"]
        if row["better"]:
            out.append(
                f"Beware: {row['framework']}, which is F itself, is called better than F on "
                f"{row['better']} of {_tasks(judged)}."
            )
        elif row["worse"]:
            out.append(
                f"Beware: {row['framework']}, which is F itself, is called worse than F on "
                f"{row['worse']} of {_tasks(judged)}: F's re-fits scatter less than they should "
                "there (hardsynth certify --refits 20 tells better)."
            )
        elif judged:
            out.append(
                f"The control {row['framework']}, which is F itself, is called better on none of "
                f"{_tasks(judged)}, as it should be."
            )
    return out


def _few(names: Sequence[str], most: int = 4) -> str:
    cut = [name if len(name) <= 40 else name[:39] + "…" for name in names[:most]]
    return ", ".join(cut) + (f" and {len(names) - most} more" if len(names) > most else "")


def _tasks(count: int) -> str:
    return f"{count} task{'' if count == 1 else 's'}"
