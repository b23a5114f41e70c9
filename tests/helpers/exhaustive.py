"""Many cases of one behaviour: a few of them by default, all of them with ``make test-all``.

A parametrized test marks those after the first few; a test that loops, or leaves the loop to
hypothesis, asks how many there are.
"""

import os
from pathlib import Path

import pytest

_asked = True


def ask(config):
    """Settle, before any test file is read, whether this run takes all cases; say so.

    A run of everything does not, unless ``HARDSYNTH_EXHAUSTIVE`` is set. Whoever names files or
    tests wants these whole.
    """
    global _asked
    everything = {config.rootpath / path for path in config.getini("testpaths")}
    run = {Path(arg).absolute() for arg in config.args}
    _asked = bool(os.environ.get("HARDSYNTH_EXHAUSTIVE")) or not everything <= run
    return _asked


def count_of(few, many):
    """Return how many random cases a test draws."""
    return many if _asked else few


def first_of(cases, count):
    """Return cases for ``parametrize``; those after the first few carry the mark."""
    cases = list(cases)
    more = []
    for case in cases[count:]:
        values = case if isinstance(case, tuple) else (case,)
        more.append(pytest.param(*values, marks=pytest.mark.exhaustive))
    return [*cases[:count], *more]
