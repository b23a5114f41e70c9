"""``hardsynth certify``: what each task of a suite may be used for. ``show``: as it is stored."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from amlb_ext.cli.command import Jobs, Seed, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.checked_call import Count
from amlb_ext.core.errors import SuiteError, suggest_nearest
from amlb_ext.core.paths import check_suite_folder


@command(group="benchmark")
def show(
    suite: Suite,
    *,
    task: Sequence[str] = (),
) -> Answer:
    """Print a suite's stored certificates.

    Print what each task of a suite may be used for and the numbers behind that verdict, as
    'generate' or 'certify' stored them. Nothing is measured.

    Parameters
    ----------
    task : TASK
        show this task only

    Examples
    --------
    $ hardsynth show hard --task toy
    """
    check_suite_folder(suite)
    from amlb_ext.suite import open_suite
    from amlb_ext.suite.series_manifest import SeriesManifest
    from amlb_ext.validity import certificates_to_json

    are_series = isinstance(open_suite(suite).manifest, SeriesManifest)
    find = _stored_of_series if are_series else _stored_of_tables
    shown, missing = find(suite, task)

    def text() -> str:
        lines = [certificate.text() for certificate in shown]
        for name in missing:
            lines.append(
                f"{name}: no certificate is stored; 'hardsynth certify' measures it"
            )
        return "\n".join(lines)

    return Answer(text, lambda: certificates_to_json(shown))


def _stored_of_tables(suite: Path, tasks: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Return the stored certificates of tasks, and the names of tasks without one."""
    from amlb_ext.suite import SuiteFiles
    from amlb_ext.validity import read_certificates

    files = SuiteFiles.load(suite)
    for task in tasks:
        if task not in files.tasks:
            raise SuiteError(
                f"{suite} has no task {task!r}", suggest_nearest(task, files.tasks)
            )
    stored = read_certificates(files)
    wanted = tasks or list(files.tasks)
    missing = [task for task in wanted if task not in stored]
    if len(missing) == len(wanted):
        raise SuiteError(
            f"{suite} has no stored certificate of {', '.join(missing)}",
            f"measure them: hardsynth certify {shlex.quote(str(suite))}",
        )
    return [stored[task] for task in wanted if task in stored], missing


def _stored_of_series(suite: Path, tasks: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Return the stored certificates of forecasting tasks, of which none is without."""
    from amlb_ext.units.stored_windows import ForecastSuite
    from amlb_ext.validity.window_certificate import read_certificates

    stored = read_certificates(ForecastSuite.load(suite))
    if not stored:
        raise SuiteError(
            f"{suite} was written without certificates",
            "generate it again without --certificate none",
        )
    for task in tasks:
        if task not in stored:
            raise SuiteError(
                f"{suite} has no certificate of {task!r}",
                suggest_nearest(task, list(stored)),
            )
    return [stored[task] for task in tasks or stored], []


@command(group="benchmark")
def certify(
    suite: Suite,
    *,
    size: Literal["quick", "full"] = "quick",
    refits: Count = 5,
    seed: Seed | None = None,
    candidate: Sequence[str] = (),
    trust_suite: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
) -> Answer:
    """Measure what each task may be used for.

    Measure each task of a suite and store its certificate: what the task may be used for (to rank
    models, to describe failures, or for stress tests only), and the numbers behind that verdict.

    Parameters
    ----------
    size : str
        how many candidate models to measure with
    refits : int
        how many times to fit F again
    seed : int
        random seed (default: the suite's own)
    candidate : MODEL
        short name or import path of a candidate, instead of the built-in ones

    Examples
    --------
    $ hardsynth certify hard --size full
    """
    check_suite_folder(suite)
    from amlb_ext.validity import certificates_to_json, certify_suite

    certificates = certify_suite(
        suite,
        jobs,
        size=size,
        refits=refits,
        seed=seed,
        candidates=candidate,
        reuse=False,  # a user who asks for certificates wants them measured
        quiet=quiet,
        trusted=trust_suite,
    )
    return Answer(
        lambda: "\n".join(certificate.text() for certificate in certificates),
        lambda: certificates_to_json(certificates),
    )
