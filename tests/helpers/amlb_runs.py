"""Run AMLB on one definition."""

from typing import Any

from amlb_ext.runner.run import run_benchmarks
from amlb_ext.runner.run_folder import RunOutcome


def run_benchmark(
    framework: str,
    benchmark: str = "hardsynth",
    constraint: str | None = None,
    **options: Any,
) -> RunOutcome:
    """Return the only outcome of :func:`amlb_ext.runner.run.run_benchmarks`."""
    (outcome,) = run_benchmarks(framework, [benchmark], constraint, **options)
    return outcome
