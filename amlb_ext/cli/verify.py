"""``hardsynth verify``: check a suite, and restore what is missing or changed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amlb_ext.cli.command import Form, Jobs, Suite, command
from amlb_ext.cli.display import Answer
from amlb_ext.core.config import build_config
from amlb_ext.core.errors import ConfigError, RunError
from amlb_ext.core.paths import check_suite_folder, is_export_folder

_FORMS = [
    Form(
        where="with --definition",
        holds=lambda given: given["definition"] is not None,
        only=("definition", "source settings"),
        instead="leave it out: nothing is mended",
    ),
    Form(
        where="without --repair",
        holds=lambda given: given["definition"] is None and not given["repair"],
        only=(),
        instead="hardsynth verify DIR --repair --source SPEC",
    ),
]


@command(
    group="benchmark",
    settings="source",
    forms=_FORMS,
    everyday={
        "what is checked": ("suite", "definition"),
        "repair": ("repair", "source", "trust_suite", "trust_pickle"),
        "run and output": ("jobs", "quiet", "json"),
    },
)
def verify(
    suite: Suite | None = None,
    *,
    definition: str | None = None,
    repair: bool = False,
    source: Sequence[str] = (),
    trust_pickle: bool = False,
    trust_suite: bool = False,
    jobs: Jobs = 0,
    quiet: bool = False,
    settings: dict[str, Any],
) -> Answer:
    """Check a suite, or repair it; or check an AMLB definition of your own.

    Check every checksum and AMLB's rules for loading data, without AMLB. With --repair, restore
    what is missing or changed from the suite's own sources and settings, keep everything else, and
    check the suite once more. A repair that cannot restore the same bytes is refused and changes
    nothing. Files that are not part of the suite stay. With --definition,
    hold the files of a definition against the same rules: what AMLB would fail on, or score wrongly
    without a word. Exit status 1: there is a problem.

    Parameters
    ----------
    definition : FILE
        file or name of an AMLB definition, of tables or series, in place of a suite
    repair : bool
        restore missing or changed files
    source : SPEC
        with --repair: present place of a source of the suite, whose name must be the same
    trust_pickle : bool
        with --repair: load F from a pickle; a pickle can run any code, so use this for your own
        only

    Examples
    --------
    $ hardsynth verify hard
    $ hardsynth verify hard --repair --source data/prices.csv
    $ hardsynth verify --definition benchmarks/mine.yaml
    """
    if definition is not None:
        if suite is not None:
            raise ConfigError(
                "a definition is checked by itself", "leave the suite out"
            )
        return _verify_definition(definition, settings)
    if suite is None:
        raise ConfigError("no suite is named", "give its folder, or --definition FILE")
    if not is_export_folder(suite):
        check_suite_folder(suite)
    mended: Sequence[str] = ()
    if repair:
        options = build_config(settings).source
        trusted = {"trust_pickle": trust_pickle, "trust_suite": trust_suite}
        mended, findings = _repair(
            suite, source, options=options, workers=jobs, quiet=quiet, **trusted
        )
    else:
        findings = verify_folder(suite)
    problems = _problems(findings)
    warnings = [finding for finding in findings if finding not in problems]
    lines = [*(f"{path} was made again." for path in mended), *findings]
    if not problems:
        lines.append(
            f"{shlex.quote(str(suite))}: checksums, provenance and AMLB's rules hold"
        )
    entry = {"suite": suite, "problems": problems, "warnings": warnings}
    if repair:
        entry["mended"] = list(mended)
    return Answer(
        lambda: "\n".join(lines),
        lambda: entry,
        status=1 if problems else 0,
        is_urgent=bool(findings),
    )


def _verify_definition(definition: str, settings: dict[str, Any]) -> Answer:
    """Return what AMLB would fail on or mis-score, of a definition that stands anywhere."""
    from amlb_ext.sources.definition_check import check_definition

    found = check_definition(definition, build_config(settings).source)
    lines = list(found.problems)
    if found.unseen:
        lines.append(f"not looked at, without CSV files: {', '.join(found.unseen)}")
    if found.checked and not found.problems:
        count = len(found.checked)
        tasks = "1 task" if count == 1 else f"{count} tasks"
        lines.append(f"{shlex.quote(definition)}: AMLB's rules hold for {tasks}")
    return Answer(
        lambda: "\n".join(lines),
        lambda: vars(found),
        status=1 if found.problems else 0,
    )


def verify_folder(root: Path, *, where_it_stands: bool = True) -> list[str]:
    """Return what is wrong with a suite, whatever it holds, or with an export of one.

    Parameters
    ----------
    root : Path
    where_it_stands : bool
        As of :func:`amlb_ext.suite.verify.verify_suite`.

    Raises
    ------
    SuiteError
        There is none of them, or its manifest cannot be used.
    """
    from amlb_ext.publish.export.folder import verify_export
    from amlb_ext.suite import open_suite, verify_suite
    from amlb_ext.suite.layout import Layout

    if is_export_folder(root):
        return verify_export(root)
    # an unfinished suite is a finding, a manifest that cannot be used an error
    if Layout(root).manifest.exists():
        open_suite(root)
    return _with_contents(root, verify_suite(root, where_it_stands=where_it_stands))


def _with_contents(root: Path, findings: list[str]) -> list[str]:
    """Return findings with those on certificates and series, which only whole files can tell."""
    from amlb_ext.suite import open_suite

    if _problems(findings):
        return findings
    from amlb_ext.pipeline.series_faults import series_faults
    from amlb_ext.validity.certify import certificate_faults

    suite = open_suite(root)
    return [*findings, *certificate_faults(suite), *series_faults(suite)]


def _problems(findings: Sequence[str]) -> list[str]:
    from amlb_ext.suite.folder_faults import WARNING

    return [finding for finding in findings if not finding.startswith(WARNING)]


def _repair(
    root: Path, sources: Sequence[str], *, workers: int, **options: Any
) -> tuple[Sequence[str], list[str]]:
    """Return the files that were restored, and what is wrong with the folder after that."""
    if is_export_folder(root):
        raise ConfigError(
            f"{root} is an export, which is not repaired but written again",
            "hardsynth export, with the flags it was written with",
        )
    # verifying needs neither of these, and starts sooner without them
    from amlb_ext.core.parallel import Execution
    from amlb_ext.pipeline import RepairOptions, repair_suite

    execution = Execution(workers=workers)
    repair = repair_suite(
        root, RepairOptions(sources=tuple(sources), execution=execution, **options)
    )
    return repair.mended, _with_contents(root, list(repair.findings))


def check_verified(root: Path, wanted: str) -> None:
    """Raise where AMLB would execute what ``verify`` does not pass.

    Parameters
    ----------
    root : Path
    wanted : str
        The command that asks.

    Raises
    ------
    RunError
        It names the first problem.
    """
    # AMLB gets definitions that name the present place, and nothing that was derived from tables
    problems = _problems(verify_folder(root, where_it_stands=False))
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise RunError(
            f"no {wanted} of {root}, since hardsynth verify does not pass it: "
            f"{problems[0]}{more}",
            f"hardsynth verify {shlex.quote(str(root))} lists all; where you trust whatever "
            "stands there: --unverified",
        )
