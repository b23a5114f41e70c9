"""A gate on a suite: results of candidates, held against a need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ConfigError
from amlb_ext.gate.checks import GateResult, Need, Where, check_gate, check_settings
from amlb_ext.report import build_report
from amlb_ext.report.tables import report_tables
from amlb_ext.suite import SuiteFiles


def check_suite(
    suite: Path,
    *,
    need: Need,
    where: Where,
    margin: float,
    level: float = 0.95,
    baseline: str | None = None,
    candidates: Collection[str] = (),
    tasks: Collection[str] = (),
    results: Sequence[str] = (),
    predictions: Mapping[str, Path] | None = None,
    loss: Any = None,
    workers: int = 0,
    quiet: bool = True,
) -> tuple[GateResult, tuple[str, ...]]:
    """Hold results on a suite against a need, as :func:`~amlb_ext.gate.checks.check_gate` does.

    Parameters
    ----------
    suite : path
    need, where, margin, level, candidates, tasks
        See :func:`~amlb_ext.gate.checks.check_gate`.
    baseline : str, optional
        What the caller takes for F; the suite has its own.
    results : sequence of str
        Output folders of AMLB.
    predictions : mapping of str to path, optional
        Of the suite's test rows, by candidate.
    loss : optional
        What is compared, see :func:`amlb_ext.report.build.build_report`.
    workers : int
        Processes; 0 for every core.
    quiet : bool
        No progress bar.

    Returns
    -------
    GateResult
    tuple of str
        The commands that complete the results.

    Raises
    ------
    ConfigError
        No results, or another F than the suite's.
    """
    if not (results or predictions):
        raise ConfigError(
            "a suite needs results or predictions of a candidate",
            "add --results OUT or --predictions NAME=FILE",
        )
    check_settings(need, where, margin)
    suites_own = SuiteFiles.load(suite).manifest.config["baseline"]["model"]
    if baseline not in (None, suites_own):
        raise ConfigError(
            f"--baseline {baseline}: the suite has its own F, {suites_own}",
            "leave --baseline out",
        )
    built = build_report(
        suite,
        results,
        predictions=predictions or {},
        loss=loss,
        workers=workers,
        level=level,
        swaps=False,
        charts=False,
        quiet=quiet,
    )
    result = check_gate(
        report_tables(built.report)["contrasts"],
        need=need,
        where=where,
        margin=margin,
        candidates=candidates,
        tasks=tasks,
        level=level,
    )
    return result, (*built.report.commands, *built.report.needed)
