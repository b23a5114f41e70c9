"""The existing benchmark that a suite is the hard twin of, and what differs between the two."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Any

from amlb_ext.amlb.configuration import (
    ENDINGS,
    is_openml_benchmark,
    search_definition,
)
from amlb_ext.amlb.definition import read_definition, sanitize_name
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError, suggest_nearest
from amlb_ext.pipeline.request import Request
from amlb_ext.sources.amlb_yaml import AmlbSource
from amlb_ext.suite import (
    Original,
    TableManifest,
    changed_metrics,
    check_twin,
    safe_names,
    source_folds_text,
)


def benchmark_name(spec: str) -> str:
    """Return the name that AMLB gives the benchmark of a spec.

    Examples
    --------
    >>> benchmark_name("my/credit.yaml#german"), benchmark_name("validation")
    ('credit', 'validation')
    >>> benchmark_name("openml/s/271")
    'openml_s_271'
    """
    if is_openml_benchmark(spec):
        return sanitize_name(spec)
    definition, _, _ = spec.partition("#")
    file_name = PureWindowsPath(definition)
    is_file = file_name.suffix.lower() in ENDINGS
    return file_name.stem if is_file else file_name.name


def default_twin_name(spec: str) -> str:
    """Return what a twin's suite is called where the user names none.

    Suites of several benchmarks can so be installed side by side.

    Examples
    --------
    >>> default_twin_name("validation")
    'hardsynth_validation'
    """
    return safe_names([f"hardsynth_{benchmark_name(spec)}"])[0]


def find_original(request: Request, source_names: Mapping[str, str]) -> Original:
    """Return the benchmark that the request names.

    Parameters
    ----------
    request : Request
    source_names : mapping of str to str
        Names of the definition's tasks, by the suite's.

    Raises
    ------
    SourceError
        Several sources, or one that is no benchmark definition.
    SuiteError
        The twin would take another definition's name.
    """
    options = request.config.source
    if len(request.sources) != 1:
        raise SourceError(
            f"{len(request.sources)} benchmarks were named, one is hardened at a time",
            "run the command once per benchmark, each with its own -o",
        )
    spec = request.sources[0]
    if is_openml_benchmark(spec):
        entries = _openml_entries(source_names)
    else:
        entries = _definition_entries(spec, source_names, options)
    name = benchmark_name(spec)
    # The twin takes a definition's name beside the suite's own two.
    check_twin(name, request.config.name)
    return Original(name, entries)


def _definition_entries(
    spec: str, source_names: Mapping[str, str], options: SourceConfig
) -> dict[str, dict[str, Any]]:
    """Return the entries of a definition's tasks: AMLB's limits and metrics stand in them."""
    definition, _, _ = spec.partition("#")
    # An address has no definition of AMLB's behind it, and is not asked for one.
    path = None if "://" in definition else search_definition(definition, options)
    if path is None:
        nearest = suggest_nearest(definition, AmlbSource().suggestions(options))
        raise SourceError(
            f"{definition!r} is no AMLB benchmark definition",
            f"{nearest}; of OpenML AMLB takes openml/s/ID and openml/t/ID; for another source: "
            f"hardsynth generate {shlex.quote(spec)} -o DIR",
        )
    defined = dict(read_definition(path))
    return {
        suite_name: {**defined[source_name], "name": source_name}
        for suite_name, source_name in source_names.items()
    }


def _openml_entries(source_names: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the entries that AMLB makes of an OpenML suite or task: names of data sets alone."""
    entries = {}
    taken: set[str] = set()
    for suite_name, source_name in source_names.items():
        name = sanitize_name(source_name)
        # Several tasks of one data set: AMLB would name them all alike, and a definition must not.
        if name.lower() in taken:
            name = suite_name
        taken.add(name.lower())
        entries[suite_name] = {"name": name}
    return entries


def twin_notes(original: Original, manifest: TableManifest) -> list[str]:
    """Return what differs between a benchmark and its hard twin, beside the rows."""
    pair = manifest.pair
    if pair is None:
        return []
    metrics = changed_metrics(pair, original)
    notes = []
    for twin in pair.tasks:
        name, source_name = twin.task, twin.name
        folds = source_folds_text(manifest.amlb_tasks[name])
        if folds:
            notes.append(f"{pair.name}: {source_name}: {folds}")
        # The report joins results by AMLB's spelling of the original's name.
        suite_name = manifest.amlb_tasks[name].task
        if sanitize_name(source_name) != suite_name:
            notes.append(
                f"{pair.name}: {source_name} is called {suite_name} in the suite, so hardsynth "
                "report cannot join its results there; "
                f"run {name} of {manifest.name} for it"
            )
        if name in metrics:
            notes.append(
                f"{pair.name}: {source_name} is scored by {metrics[name]}, since a hard test "
                f"file lacks a class; score {pair.of} by it too, or leave the task out"
            )
    return notes
