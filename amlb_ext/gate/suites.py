"""A gate on a suite: results of candidates, held against a need."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from amlb_ext.core.checked_call import checked_call
from amlb_ext.core.errors import ConfigError
from amlb_ext.gate.checks import GateResult, Margin, Need, Where, check_gate
from amlb_ext.report.suites import build_suite_report
from amlb_ext.report.tables import report_tables
from amlb_ext.suite import open_suite

#: How often F is fitted again in each fold, as in ``hardsynth compare``.
REFITS = 5


@checked_call
def check_suite(
    suite: Path,
    *,
    need: Need,
    where: Where,
    margin: Margin,
    level: float = 0.95,
    baseline: str | None = None,
    candidates: Collection[str] = (),
    tasks: Collection[str] = (),
    results: Sequence[str] = (),
    predictions: Mapping[str, Path] | None = None,
    loss: Any = None,
    segments: Sequence[str] = (),
    no_harm: bool = False,
    max_flips: float | None = None,
    refits: int = REFITS,
    workers: int = 0,
    quiet: bool = True,
) -> tuple[GateResult, tuple[str, ...]]:
    """Hold results on a suite against a need, as :func:`~amlb_ext.gate.checks.check_gate` does.

    Parameters
    ----------
    suite : path
    need, where, margin, level, candidates, tasks, no_harm, max_flips
        See :func:`~amlb_ext.gate.checks.check_gate`.
    baseline : str, optional
        What the caller takes for F; the suite has its own.
    results : sequence of str
        Output folders of AMLB.
    predictions : mapping of str to path, optional
        Of the suite's test rows, by candidate.
    loss : optional
        What is compared, see :func:`amlb_ext.report.suites.build_suite_report`.
    segments : sequence of str
        Rows that must not get worse, either, see
        :func:`amlb_ext.swap.segments.read_segments`.
    refits : int
        How often F is fitted again in each fold, where harm is judged on tables.
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
        No results, another F than the suite's, or a folder of tasks, which has none.
    """
    if not (results or predictions):
        raise ConfigError(
            "a suite needs results or predictions of a candidate",
            "add --results OUT or --predictions NAME=FILE",
        )
    manifest = open_suite(suite).manifest
    suites_own = manifest.baselines
    if not suites_own:
        raise ConfigError(
            f"{suite} is a folder of tasks, which has no F to hold a candidate against",
            f"hardsynth report {shlex.quote(str(suite))} compares frameworks on it",
        )
    if baseline is not None and baseline not in suites_own:
        raise ConfigError(
            f"--baseline {baseline}: the suite has its own F, {', '.join(suites_own)}",
            "leave --baseline out",
        )
    report = build_suite_report(
        suite,
        results,
        predictions=predictions or {},
        loss=loss,
        segments=segments,
        workers=workers,
        level=level,
        swaps=bool(segments) or no_harm or max_flips is not None,
        refits=refits if no_harm and not manifest.no_refits else 0,
        charts=False,
        quiet=quiet,
    )
    result = check_gate(
        report_tables(report)["contrasts"],
        need=need,
        where=where,
        margin=margin,
        candidates=candidates,
        tasks=tasks,
        level=level,
        unit=report.unit,
        no_harm=no_harm,
        max_flips=max_flips,
        swaps={task.name: task.swap for task in report.tasks},
    )
    return result, (*report.commands, *report.needed)
