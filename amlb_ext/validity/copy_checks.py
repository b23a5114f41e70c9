"""Do made rows repeat rows? All of them are compared, by their features as they are written.

A copy stands on both sides of a fold, or contradicts the row that it repeats; either way a score
on it says nothing of the model.
"""

from __future__ import annotations

from amlb_ext.suite.copy_counts import MADE_PARTS, CopyCounts, count_copies
from amlb_ext.validity.measures import Measure, make_measure
from amlb_ext.validity.task_rows import TaskRows

#: Share of made rows that may repeat others: none do in suites of this version.
MOST_COPIES = 0.02
_SOURCE = "exact comparison of features; limit ours"


def measure_copies(rows: TaskRows) -> list[Measure]:
    """Return the shares of copies, contradictions and repeats; none where nothing was made."""
    counts = CopyCounts()
    for fold, (train, parts) in rows.folds.items():
        if "full" not in parts:
            continue
        made = [parts[name] for name in MADE_PARTS if name in parts]
        pair = rows.hard.get(fold)
        counts += count_copies(train=train, test=parts["full"], made=made, hard=pair)
    out = []
    if counts.made:
        where = "made rows (ga, synthetic and in the training file of _hard)"
        for name, number, text in (
            ("exact copies", counts.copies, "have the features of a real row on either side"),
            (
                "contradictions",
                counts.contradictions,
                "have the features of a real row and another target",
            ),
            ("repeated rows", counts.repeated, "have the features of another made row"),
        ):
            text = f"{number} of {counts.made} {where} {text}"
            out.append(_share(name, number, counts.made, text, MOST_COPIES))
    if counts.hard_training:
        number = counts.on_both_sides
        text = f"{number} of {counts.hard_training} training rows of _hard equal a test row"
        out.append(_share("hard on both sides", number, counts.hard_training, text, 0.0))
    return out


def _share(name: str, number: int, of: int, text: str, limit: float) -> Measure:
    return make_measure(name, number / of, text, _SOURCE, threshold=limit, sense="<=")
