"""Many cases of one behaviour: a few of them by default, all of them with ``make test-all``.

A parametrized test marks those after the first few; a test that loops, or leaves the loop to
hypothesis, asks how many there are.
"""

import pytest

_asked = False


def ask_for_all(expression):
    """Take over what ``-m`` chose, before any test file is read."""
    global _asked
    _asked = "not exhaustive" not in expression


def count_of(few, many):
    """Return how many random cases a test draws."""
    return many if _asked else few


def first_of(cases, count):
    """Return cases for ``parametrize``; those after the first few carry the mark."""
    cases = list(cases)
    more = [pytest.param(case, marks=pytest.mark.exhaustive) for case in cases[count:]]
    return [*cases[:count], *more]
