"""Relations for people: in plain words, and as a YAML file to read, edit and hand back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import yaml

from amlb_ext.relations.grammar import split_at_word
from amlb_ext.relations.kinds import Dependency, reach_columns
from amlb_ext.relations.mining import LOOKED_FOR, MinedRelations

#: Quoted texts and names in backticks; what stands inside is never reworded.
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|`(?:``|[^`])*`')
#: What the signs of the language are called. The longer sign comes first: ``<=`` before ``<``.
_SIGNS = (
    ("<=", "is at most"),
    (">=", "is at least"),
    ("==", "is"),
    ("!=", "is not"),
    ("<", "is below"),
    (">", "is above"),
)


def describe_rule(text: str) -> str:
    """Return a rule of the language in words.

    Parameters
    ----------
    text : str
        A rule as :mod:`amlb_ext.relations.grammar` reads it, or a dependency.

    Returns
    -------
    str
        Without a full stop.

    Examples
    --------
    >>> describe_rule("total_bedrooms <= total_rooms")
    'total_bedrooms is at most total_rooms'
    >>> describe_rule('pdays == -1 implies previous == 0')
    'where pdays is -1, previous is 0'
    >>> describe_rule('not (marital == "Divorced" and role == "Husband")')
    'never together: marital is Divorced and role is Husband'
    >>> describe_rule("{holiday, `week day`} determines workingday")
    'each holiday and week day has one workingday'
    >>> describe_rule("usd == 1.1 * eur within 0.005")
    'usd is 1.1 * eur, up to 0.005'
    >>> describe_rule("education determines education_num")
    'each education has one education_num'
    """
    sides = split_at_word(text, "determines")
    if len(sides) == 2:
        sources = _describe_condition(sides[0].strip("{}")).replace(", ", " and ")
        return f"each {sources} has one {_describe_condition(sides[1])}"
    sides = split_at_word(text, "implies")
    if len(sides) == 2:
        premise, conclusion = (_describe_condition(side) for side in sides)
        return f"where {premise}, {conclusion}"
    sides = split_at_word(text, "within")
    if len(sides) == 2:
        return f"{_describe_condition(sides[0])}, up to {sides[1]}"
    # a mined rule of this form has one bracket around two comparisons
    if text.startswith("not (") and text.endswith(")") and text.count("(") == 1:
        return f"never together: {_describe_condition(text[5:-1])}"
    return _describe_condition(text)


def _describe_condition(text: str) -> str:
    """Replace signs by words, and take quotes away from names and values."""
    described = []
    end = 0
    for quoted in _QUOTED.finditer(text):
        described.append(_describe_signs(text[end : quoted.start()]))
        described.append(quoted[0][1:-1].replace("``", "`").replace('\\"', '"'))
        end = quoted.end()
    described.append(_describe_signs(text[end:]))
    return " ".join("".join(described).split())


def _describe_signs(text: str) -> str:
    for sign, words in _SIGNS:
        text = text.replace(sign, f" {words} ")
    return text


# Mined relations as a file to edit.


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
    # quoted where YAML wants it, and so wide that no rule is wrapped
    write: Any = partial(yaml.safe_dump, width=10_000, allow_unicode=True)
    groups = [relation for relation in mined.relations if relation.kind == "one_hot"]
    if groups:
        lines.append("  one_hot:  # exactly one of them is 1")
    for group in groups:
        item = write(list(group.columns), default_flow_style=True).strip()
        lines.append(f"    - {item}  # E = {group.evidence:,.0f}")
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
        item = write([relation.text]).strip()
        remark = f"E = {relation.evidence:,.0f}"
        is_reverse = False
        if isinstance(relation, Dependency):
            # of two columns that determine each other one direction says it all
            reached = reach_columns([relation.target], follows)
            is_reverse = not reached.isdisjoint(relation.sources)
            for source in relation.sources:
                follows.setdefault(source, []).append(relation.target)
        if is_reverse:
            # a comment, because declared dependencies must not run in a circle
            item = f"# {item}"
            remark += "; the reverse of a rule above"
        elif set(relation.columns) & set(targets):
            remark += "; names the target"
        lines.append(f"    {item}  # {remark}")
    for kind, count in mined.left_out.items():
        heading = _HEADINGS[kind]
        lines.append(f"    # and {count:,} more under '{heading}', with less evidence")
    return "\n".join(lines) + "\n"
