"""The relations that the made rows of a task keep, as the suite's manifest has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from amlb_ext.relations.wording import describe_rule

COLUMNS = ("task", "relation", "in_words", "kind", "from", "evidence", "folds")


def tabulate_relations(
    task: str, summaries: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Return the relations that made rows keep, one row for each.

    Parameters
    ----------
    task : str
    summaries : sequence of mapping
        Of the folds, from the manifest.

    Returns
    -------
    DataFrame
        ``task``, ``relation`` (in the rule language), ``in_words``, ``kind``, ``from`` (``mined``
        or ``declared``), ``evidence`` (the least of all folds; missing where a user declared the
        relation) and ``folds`` (how many keep it). What most folds keep comes first.

    Examples
    --------
    >>> rule = {"rule": "a <= b", "kind": "order", "from": "mined", "evidence": 12.0}
    >>> table = tabulate_relations("t", [{"relations": {"list": [rule]}}, {}])
    >>> table[["in_words", "folds"]].values.tolist()
    [['a is at most b', 1]]
    """
    by_rule: dict[str, dict[str, Any]] = {}
    n_folds: Counter[str] = Counter()
    for summary in summaries:
        for entry in summary.get("relations", {}).get("list", ()):
            rule = entry["rule"]
            n_folds[rule] += 1
            known = by_rule.setdefault(rule, dict(entry))
            if entry["evidence"] is not None:
                # one number per relation: the fold in which it is least certain
                known["evidence"] = min(known["evidence"], entry["evidence"])
    rows = [
        {
            "task": task,
            "relation": rule,
            "in_words": describe_rule(rule),
            "kind": entry["kind"],
            "from": entry["from"],
            "evidence": entry["evidence"],
            "folds": n_folds[rule],
        }
        for rule, entry in by_rule.items()
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return table.sort_values("folds", ascending=False, kind="stable", ignore_index=True)


def count_rejected_rows(summaries: Sequence[Mapping[str, Any]]) -> int:
    """Return how many made rows were rejected in all folds, since they broke a relation."""
    return sum(summary.get("dropped", {}).get("relation", 0) for summary in summaries)
