"""``hardsynth generate``: a hard benchmark of any sources. ``harden``: of a benchmark, its twin."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from amlb_ext.cli.command import Flag, Jobs, Parts, command
from amlb_ext.cli.display import Answer
from amlb_ext.cli.series import (
    ORIGINS,
    SERIES,
    generate_rows,
    generate_series,
    hardens_series,
    takes_series,
)
from amlb_ext.core.checked_call import Count, CountOrNone
from amlb_ext.core.config import build_config, read_config
from amlb_ext.core.paths import check_sources

if TYPE_CHECKING:
    from amlb_ext.core.parallel import Execution

#: What declares the flags of a command that makes a suite.
_MAKING = {
    "the suite": "amlb_ext.cli.generate.make_suite",
    "execution": "amlb_ext.cli.generate.read_execution",
}
_NO_FLAGS = ("sources", "twin", "defaults", "settings", "words")
_EVERYDAY = {
    "the table": ("--target", "--kind", "--drop", "--as", "--folds"),
    "what is hard": ("--preset", "--baseline", "--rule", "--alpha"),
    "the suite": ("out", "certificate", "config", "seed", "dry_run", "jobs"),
}


@command(
    group="benchmark",
    of=_MAKING | SERIES,
    without=_NO_FLAGS,
    settings="all",
    everyday={"what to make hard": ("sources",), **_EVERYDAY},
)
def generate(
    sources: Sequence[str] = ("bundled",),
    *,
    as_rows: Count | None = None,
    quiet: bool = False,
    settings: dict[str, Any],
    words: Sequence[str],
    typed: Mapping[str, Flag],
    parts: Parts,
) -> Answer:
    """Write a hard benchmark.

    Find the rows on which the baseline fails, augment them, learn their distribution, and write a
    suite that AMLB runs unchanged. Run the same command again to continue an interrupted run.

    Parameters
    ----------
    sources : SOURCE
        bundled, the file of a table, an AMLB definition, openml/t/ID or openml/s/ID; of series also
        fev's tasks.yaml (default: bundled)
    as_rows : L
        with --series: a plain table of L lags and the value --horizon steps ahead, split forward in
        time, for tabular systems

    Examples
    --------
    $ hardsynth generate -o hard
    $ hardsynth generate data.csv --target price -o hard
    $ hardsynth generate openml/t/31 openml/s/271 -o hard
    """
    making = {
        **parts["the suite"],
        **parts["execution"],
        "words": words,
        "quiet": quiet,
    }
    if not takes_series(sources, typed, settings):
        return make_suite(tuple(sources), settings=settings, **making)
    if as_rows is None:
        return generate_series(sources, parts, settings)
    return generate_rows(sources, as_rows, parts, settings=settings, **making)


@command(
    group="benchmark",
    of=_MAKING | ORIGINS,
    without=_NO_FLAGS,
    settings="all",
    everyday={"what to make hard": ("benchmark",), **_EVERYDAY},
)
def harden(
    benchmark: str,
    *,
    quiet: bool = False,
    settings: dict[str, Any],
    words: Sequence[str],
    typed: Mapping[str, Flag],
    parts: Parts,
) -> Answer:
    """Write the hard twin of an AMLB benchmark.

    Make every task of an AMLB benchmark hard, as 'generate' does, and add the definition NAME_hard:
    the same task names, limits and metrics on hard rows, so that results of NAME and NAME_hard can
    be compared side by side. Unless --name is given, the main definitions are called
    hardsynth_NAME, so that the twins of several benchmarks can be installed together. Run the same
    command again to continue an interrupted run.

    Parameters
    ----------
    benchmark : BENCHMARK
        name of an AMLB definition (validation, small, or one of your own), its file, or openml/s/ID
        or openml/t/ID

    Examples
    --------
    $ hardsynth harden validation -o hard
    """
    check_sources((benchmark,))
    from amlb_ext.pipeline.twin import default_twin_name

    name = default_twin_name(benchmark)
    if hardens_series(benchmark, typed, settings):
        return generate_series([benchmark], parts, settings, name=name, is_twin=True)
    return make_suite(
        (benchmark,),
        twin=True,
        # a name from the settings file or the command line takes precedence
        defaults={"name": name},
        settings=settings,
        words=words,
        quiet=quiet,
        **parts["the suite"],
        **parts["execution"],
    )


def make_suite(
    sources: tuple[str, ...],
    *,
    out: Path,
    config: Path | None = None,
    relations: Path | None = None,
    dry_run: bool = False,
    force: bool = False,
    certificate: Literal["quick", "full", "none"] = "quick",
    logs: Path | None = None,
    quiet: bool = False,
    twin: bool = False,
    defaults: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any],
    words: Sequence[str],
    **execution: Any,
) -> Answer:
    """Make a suite and print what came of it; see :func:`amlb_ext.pipeline.generate_suite`.

    Parameters
    ----------
    sources : tuple of str
    out : DIR
        the suite's folder
    config : FILE
        YAML file of settings, over which flags take precedence
    relations : FILE
        file of relations that made rows must satisfy: YAML as 'hardsynth relations' prints it, or
        JSON with the constraints of SDV
    dry_run : bool
        print what would be made without writing anything
    force : bool
        replace a suite that was made with other settings, or of a table that has changed since
    certificate : str
        how many candidate models the certificates are measured with
    logs : FOLDER
        folder for a log of every fold (default: logs of failed folds only, in the suite)
    twin : bool
        Also write the hard twin of the one benchmark in ``sources``.
    defaults : mapping, optional
        Settings over which those of the file and of the flags take precedence.
    settings : mapping
        Those of the flags.
    words : sequence of str
        The command line.
    **execution
        As :func:`read_execution`.
    """
    from_file = read_config(config) if config else {}
    declared: dict[str, Any] = {}
    if relations:
        from amlb_ext.relations.declared import read_relations

        declared = read_relations(relations)
    # each layer takes precedence over those before it
    layers = [dict(defaults or {}), from_file, declared, dict(settings)]
    chosen = build_config(*layers)
    check_sources(sources)
    where = read_execution(**execution)
    # after the settings are checked: the error of a mistyped flag must not wait for heavy imports
    from amlb_ext.pipeline import Request, generate_suite
    from amlb_ext.pipeline.summary import generation_summary, planned_tasks

    request = Request(
        sources=sources,
        config=chosen,
        out=out,
        execution=where,
        force=force,
        dry_run=dry_run,
        quiet=quiet,
        certificate=certificate,
        twin=twin,
        logs=logs,
    )
    report = generate_suite(request)
    return Answer(
        lambda: planned_tasks(report) if dry_run else generation_summary(report, words),
        lambda: dataclasses.asdict(report),
        status=1 if report.failures else 0,
    )


def read_execution(
    *,
    jobs: Jobs = 0,
    cluster: str = "",
    fold_timeout: Annotated[float, Field(ge=0)] = 0.0,
    fold_memory: str = "",
    fold_retries: CountOrNone = 2,
) -> Execution:
    """Return where folds are computed and what each may cost, which never changes a result.

    Parameters
    ----------
    jobs : int
        number of processes, 0 for one per core
    cluster : WHERE
        address or file of a Dask scheduler (default: this machine)
    fold_timeout : SECONDS
        longest time that a fold may take (default: no limit)
    fold_memory : SIZE
        largest amount of memory that a fold may use, e.g. 4GB (default: no limit)
    fold_retries : int
        how many times a fold is tried again after its process or worker died
    """
    from amlb_ext.core.parallel import Execution, parse_size

    return Execution(
        workers=jobs,
        cluster=cluster,
        timeout=fold_timeout,
        memory=parse_size(fold_memory) if fold_memory else 0,
        retries=fold_retries,
    )
