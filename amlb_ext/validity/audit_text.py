"""How many made rows break a relation of the real ones, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amlb_ext.core.display import format_percent, text_table
from amlb_ext.relations.mining import LOOKED_FOR
from amlb_ext.validity.feasibility_measures import Feasibility

#: What the columns of an audit count.
_LEGEND = """\
infeasible: made rows that break a relation which holds on every real row; looked for were
  {looked_for}
shuffled: rows that would, if columns had nothing to do with each other
not as written: rows with a number that is not written as real ones are, in any number of digits"""


def audit_text(audits: Mapping[str, Feasibility]) -> str:
    """Return a table with a row per task and part, a legend, and the relations broken most."""
    headers = [
        "task",
        "part",
        "rows",
        "infeasible",
        "shuffled",
        "not as written",
        "relations",
    ]
    table: list[list[Any]] = []
    remarks = []
    for task, audit in audits.items():
        for name, part in audit.parts.items():
            # a task without such rows has no share of them
            if not part.rows:
                continue
            table.append(
                [
                    task,
                    name,
                    part.rows,
                    format_percent(part.infeasible / part.rows),
                    format_percent(audit.shuffled_share),
                    format_percent(part.unlike_real / part.rows),
                    audit.n_relations,
                ]
            )
            for relation, count in part.by_relation.most_common(3):
                remarks.append(f"{task}, {name}: {count} rows break {relation}")
    if not table:
        return "no made rows"
    lines = [text_table(headers, table), _LEGEND.format(looked_for=LOOKED_FOR)]
    if remarks:
        lines += ["", *remarks]
    return "\n".join(lines)
