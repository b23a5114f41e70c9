"""A fixture of pytest: ``hardsynth_gate``, a gate in a test of the user's.

pytest loads this module in every run where hardsynth is installed, so nothing is imported before
the fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def hardsynth_gate() -> Callable[..., Any]:
    """Return a function that fails the test unless a comparison meets a need.

    It takes what :func:`amlb_ext.gate.checks.check_gate` takes, and returns its result. Where
    nothing can be claimed the test fails, too, and says so.
    """

    def check(answer: Any, **needs: Any) -> Any:
        from amlb_ext.gate.checks import check_gate

        result = check_gate(answer, **needs)
        if result.outcome != "met":
            pytest.fail(result.text(), pytrace=False)
        return result

    return check
