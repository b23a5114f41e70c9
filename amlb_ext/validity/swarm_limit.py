"""The most that a certificate may say of a task whose test rows a swarm of generators made.

A swarm searches for rows on which its takers fail, so it never earns the verdict ``rank``. It may
describe where models that it never saw order themselves on its rows as on real rows of the same
region, and its labels hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from amlb_ext.validity.certificate import Verdict

#: Agreement of unseen models' order, least plausibility of labels, and most of them rejected.
LEAST_TAU, LEAST_PLAUSIBILITY, MOST_REJECTED = 0.8, -0.02, 0.2


def is_confirmed(record: Mapping[str, Any]) -> bool:
    """Whether real rows of the region and unseen models confirm what a swarm found in a fold.

    Parameters
    ----------
    record : mapping
        ``swarm`` of the fold's summary.

    Examples
    --------
    >>> audit = {"labels": {"plausibility": 0.0, "rejected": 0.01}, "real": None}
    >>> is_confirmed({"chosen": audit})
    False
    >>> audit["real"] = {"unseen": {"tau": 0.9, "gain": 0.05, "se": 0.01}}
    >>> is_confirmed({"chosen": audit})
    True
    """
    audit = record["chosen"]
    labels = audit["labels"]
    if (
        labels["plausibility"] < LEAST_PLAUSIBILITY
        or labels["rejected"] > MOST_REJECTED
    ):
        return False
    if audit["real"] is None:
        return False
    unseen = audit["real"]["unseen"]
    if unseen["tau"] is None or unseen["gain"] is None or unseen["se"] is None:
        return False
    # two standard errors above nothing: else the region is noise
    return unseen["tau"] >= LEAST_TAU and unseen["gain"] > 2 * unseen["se"]


def limit_verdict(
    verdict: Verdict, reason: str, summaries: Sequence[Mapping[str, Any]]
) -> tuple[Verdict, str]:
    """Return the verdict and its reason, with what a swarm may not claim taken off.

    Parameters
    ----------
    verdict : {'rank', 'describe', 'stress-test only'}
    reason : str
    summaries : sequence of mapping
        Of the task's folds; tasks of another kind pass unchanged.

    Examples
    --------
    >>> limit_verdict("rank", "All holds.", [{"bad": 3}])
    ('rank', 'All holds.')
    """
    records = [summary["swarm"] for summary in summaries if "swarm" in summary]
    if not records:
        return verdict, reason
    if verdict == "stress-test only":
        return verdict, reason
    if all(is_confirmed(record) for record in records):
        return "describe", (
            "A swarm searched for these rows, so they must not rank; models that it never saw "
            "keep on them the order they have on real rows of the same region, and its labels hold."
        )
    return "stress-test only", (
        "A swarm searched for these rows, and real rows of their region with models that it never "
        "saw do not confirm what it found: they show robustness, not quality."
    )
