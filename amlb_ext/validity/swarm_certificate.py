"""The certificate of a task whose test rows a swarm of generators made.

A swarm searches for rows on which its takers fail, so it never earns the verdict ``rank``. It may
describe where its labels hold, where rows stand among real ones, and where models that it never
saw order themselves on its rows as on real rows of the same region, of which a better model could
mend something. All of that was measured when the suite was made, on rows that took no part in the
search, and stands in the record of each fold; of several folds the worst one counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from amlb_ext.validity.certificate import Certificate, Verdict
from amlb_ext.validity.measures import Measure, make_measure
from amlb_ext.validity.task_rows import TaskRows

#: Least plausibility of labels; the same slack as for other made rows.
LEAST_PLAUSIBILITY = -0.02
#: Most labels that an auditor may reject, and least rows that must stand among real ones.
MOST_REJECTED, LEAST_SUPPORTED = 0.2, 0.8
#: Least agreement of the order of unseen models on made rows and on real rows of the region.
LEAST_TAU = 0.8
#: Standard errors by which the auditor's gain on real rows must exceed nothing.
GAIN_ERRORS = 2.0

_SOURCE = "the swarm's audit, on rows that took no part in the search"


def swarm_records(summaries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records of a swarm's folds; none for a task of another kind."""
    return [summary["swarm"] for summary in summaries if "swarm" in summary]


def is_confirmed(record: Mapping[str, Any]) -> bool:
    """Whether real rows of the region and unseen models confirm what a swarm found in a fold.

    Parameters
    ----------
    record : mapping
        ``swarm`` of the fold's summary.
    """
    # what could not be measured has not passed
    return all(measure.passed is True for measure in measure_swarm([record]))


def measure_swarm(records: Sequence[Mapping[str, Any]]) -> list[Measure]:
    """Return the measures of a swarm's certificate, each of the worst fold."""
    audits = [record["chosen"] for record in records]
    labels = [audit["labels"] for audit in audits]
    gains = [_lower_gain(audit) for audit in audits]
    taus = [_unseen(audit, "tau") for audit in audits]
    return [
        make_measure(
            "label support",
            min(entry["plausibility"] for entry in labels),
            "What an auditor gives the labels beyond what it expects to give there.",
            _SOURCE,
            threshold=LEAST_PLAUSIBILITY,
            sense=">=",
        ),
        make_measure(
            "labels rejected",
            max(entry["rejected"] for entry in labels),
            "Share of labels that an auditor holds for wrong.",
            _SOURCE,
            threshold=MOST_REJECTED,
            sense="<=",
        ),
        make_measure(
            "supported rows",
            min(audit["supported"] for audit in audits),
            "Share of made rows that are as near to a real row as real rows are to each other.",
            _SOURCE,
            threshold=LEAST_SUPPORTED,
            sense=">=",
        ),
        make_measure(
            "order of unseen models",
            _worst(taus),
            "Agreement (tau) of models that the swarm never saw, on made rows and on real rows of "
            "the same region.",
            _SOURCE,
            threshold=LEAST_TAU,
            sense=">=",
        ),
        make_measure(
            "gain on real rows",
            _worst(gains),
            "By how much an auditor beats the best unseen model on real rows of the region, less "
            "two standard errors.",
            _SOURCE,
            threshold=0.0,
            sense=">=",
        ),
    ]


def certify_swarm(rows: TaskRows, *, size: str, refits: int, seed: int) -> Certificate:
    """Return the certificate of a swarm's task; nothing is fitted for it.

    Parameters
    ----------
    rows : TaskRows
        With records of a swarm in its summaries.
    size, refits, seed
        As asked for; they change nothing here.
    """
    records = swarm_records(rows.summaries)
    measures = measure_swarm(records)
    verdict, reason = _verdict(measures)
    counts = {"full": 0, "synthetic": 0}
    for _, parts in rows.folds.values():
        counts["full"] += len(parts["full"])
    for record in records:
        counts["synthetic"] += record["rows"]["written"]
    return Certificate(
        task=rows.name,
        kind=rows.kind.value,
        verdict=verdict,
        reason=reason,
        measures=tuple(measures),
        rows=counts,
        notes=(_search_note(records),),
        size=size,
        refits=refits,
        seed=seed,
    )


def _verdict(measures: Sequence[Measure]) -> tuple[Verdict, str]:
    for measure in measures:
        if measure.passed is True:
            continue
        value = "could not be measured, for too few real rows are there"
        if measure.value is not None:
            value = f"is {measure.value:.3g}, {measure.sense} {measure.threshold:g} is asked for"
        return "stress-test only", (
            f"A swarm searched for these rows, and '{measure.name}' {value}: they show robustness, "
            "not quality."
        )
    return "describe", (
        "A swarm searched for these rows, so they must not rank; models that it never saw keep on "
        "them the order they have on real rows of the same region, and its labels hold."
    )


def _search_note(records: Sequence[Mapping[str, Any]]) -> str:
    first = records[0]
    return (
        f"rows of a swarm: objective {first['objective']}, preset {first['preset']}, labels "
        f"{first['labels']}; the search reported {first['reported']:.3f}, a fresh sample gives "
        f"{first['chosen']['fresh']:.3f}"
    )


def _unseen(audit: Mapping[str, Any], name: str) -> float:
    """Return a figure of unseen models on real rows of the region; NaN where none are there."""
    if audit["real"] is None:
        return math.nan
    value = audit["real"]["unseen"][name]
    return math.nan if value is None else float(value)


def _lower_gain(audit: Mapping[str, Any]) -> float:
    return _unseen(audit, "gain") - GAIN_ERRORS * _unseen(audit, "se")


def _worst(values: Sequence[float]) -> float:
    """Return the least value; NaN where any fold has none."""
    return math.nan if any(math.isnan(value) for value in values) else min(values)
