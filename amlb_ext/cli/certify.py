"""``hardsynth certify``: what each task of a suite may be used for. ``show``: as it is stored."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from amlb_ext.cli.command import Jobs, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.checked_call import Count, Seed
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
    from amlb_ext.validity import read_certificates

    opened = open_suite(suite)
    certified = opened.manifest.certified
    if not certified:
        raise SuiteError(
            f"{suite} was written without certificates",
            "hardsynth generate, without --certificate none, writes a suite with them",
        )
    for name in task:
        if name not in certified:
            raise SuiteError(
                f"{suite} has no certificate of {name!r}",
                suggest_nearest(name, certified),
            )
    stored = read_certificates(opened)
    wanted = task or certified
    missing = [name for name in wanted if name not in stored]
    measure = f"measure them: hardsynth certify {shlex.quote(str(suite))}"
    if len(missing) == len(wanted):
        raise SuiteError(
            f"{suite} has no stored certificate of {', '.join(missing)}", measure
        )
    shown = [stored[name] for name in wanted if name in stored]
    lines = [certificate.text() for certificate in shown]
    lines += [f"{name}: no certificate is stored; {measure}" for name in missing]
    return Answer(
        lambda: "\n".join(lines), lambda: {each.task: each.to_json() for each in shown}
    )


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
    from amlb_ext.validity import certify_suite

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
        lambda: {each.task: each.to_json() for each in certificates},
    )
