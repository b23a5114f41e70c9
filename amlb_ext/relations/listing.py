"""Relations as a YAML file that a user reads, edits and hands back to ``--relations``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from amlb_ext.relations.kinds import Dependency, Relation, reach_columns
from amlb_ext.relations.mining import LOOKED_FOR, MinedRelations

_HEADINGS = {
    "sum": "sums",
    "linear": "a multiple of another column, and a constant",
    "equality": "a linear formula of several columns",
    "shares": "shares of one total",
    "product": "products of two columns",
    "quotient": "quotients of two columns",
    "determines": "one column follows from others",
    "order": "order of two numbers; between codes it is often an accident",
    "exclusive": "one of two numbers always has its usual value",
    "implies": "one value implies another",
    "never": "values that never meet",
}


def relations_as_yaml(
    mined: MinedRelations,
    about: str,
    targets: Sequence[str] = (),
) -> str:
    """Return mined relations as YAML, each with the evidence for it.

    Parameters
    ----------
    mined : MinedRelations
    about : str
        The table, for the heading.
    targets : sequence of str
        Relations from which a target can be read off are marked.

    Returns
    -------
    str
        A file for ``--relations``: every line may be deleted or changed.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from amlb_ext.relations.mining import mine_relations
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame({"a": rng.integers(0, 9, 100) * 1.0, "c": rng.normal(size=100)})
    >>> listed = relations_as_yaml(mine_relations(rows.assign(b=rows["a"] + 1)), "toy")
    >>> print(listed)  # doctest: +ELLIPSIS
    # toy: relations that hold in each of 100 rows. At most 3 % of all rows break one (3/n).
    # E: rows that would break it if its columns had nothing to do with each other.
    # Looked for: one-hot groups, sums, multiples, linear equalities of up to 9 columns, ...
    relations:
      mine: false  # the rules below, and no others
      frozen: []  # columns that keep the value of the real row
      one_way: {}  # columns that may only grow (up) or shrink (down)
      rules:
        # one column follows from others
        - a determines b  # E = 78
        # - b determines a  # E = 78; the reverse of a rule above
        # order of two numbers; between codes it is often an accident
        - a < b  # E = 34
    <BLANKLINE>
    """
    percent = 100 * mined.most_exceptions
    lines = [
        f"# {about}: relations that hold in each of {mined.n_rows:,} rows. At most "
        f"{percent:.2g} % of all rows break one (3/n).",
        "# E: rows that would break it if its columns had nothing to do with each other.",
        f"# Looked for: {LOOKED_FOR}.",
        "relations:",
        "  mine: false  # the rules below, and no others",
        "  frozen: []  # columns that keep the value of the real row",
        "  one_way: {}  # columns that may only grow (up) or shrink (down)",
    ]
    groups = [relation for relation in mined.relations if relation.kind == "one_hot"]
    if groups:
        lines.append("  one_hot:  # exactly one of them is 1")
    for group in groups:
        item = yaml.safe_dump(
            list(group.columns),
            width=10_000,
            allow_unicode=True,
            default_flow_style=True,
        )
        lines.append(f"    - {item.strip()}  # E = {group.evidence:,.0f}")
    rules = [relation for relation in mined.relations if relation.kind != "one_hot"]
    lines.append("  rules:" if rules else "  rules: []")
    last_heading = ""
    # what follows from each column, by the dependencies that are listed
    follows: dict[str, list[str]] = {}
    for relation in rules:
        heading = _HEADINGS[relation.kind]
        if heading != last_heading:
            lines.append(f"    # {heading}")
        last_heading = heading
        item = _list_item(relation.text)
        remark = f"E = {relation.evidence:,.0f}"
        if _is_reverse(relation, follows):
            # a comment, because declared dependencies must not run in a circle
            item = f"# {item}"
            remark += "; the reverse of a rule above"
        elif set(relation.columns) & set(targets):
            remark += "; names the target"
        if isinstance(relation, Dependency):
            for source in relation.sources:
                follows.setdefault(source, []).append(relation.target)
        lines.append(f"    {item}  # {remark}")
    for kind, count in mined.left_out.items():
        heading = _HEADINGS[kind]
        lines.append(f"    # and {count:,} more under '{heading}', with less evidence")
    return "\n".join(lines) + "\n"


def _list_item(text: str) -> str:
    """Return an item of a YAML list, quoted where YAML wants it."""
    # so wide that no rule is wrapped
    item = yaml.safe_dump([text], width=10_000, allow_unicode=True)
    return item.strip()


def _is_reverse(
    relation: Relation,
    follows: Mapping[str, Sequence[str]],
) -> bool:
    """Whether a dependency leads back to where one that is listed starts.

    Declared dependencies must not run in a circle; of two columns that determine each other one
    direction says it all.
    """
    if not isinstance(relation, Dependency):
        return False
    reached = reach_columns([relation.target], follows)
    return not reached.isdisjoint(relation.sources)
