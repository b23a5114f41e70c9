"""Relations in plain words, for people who do not read the rule language."""

from __future__ import annotations

import re

from amlb_ext.relations.grammar import split_at_word

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
        return _describe_dependency(*sides)
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


def _describe_dependency(sources: str, target: str) -> str:
    names = _describe_condition(sources.strip("{}")).replace(", ", " and ")
    return f"each {names} has one {_describe_condition(target)}"


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
