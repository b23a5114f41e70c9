"""The existing benchmark that a suite is the hard twin of, and what differs between the two."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from amlb_ext.amlb.configuration import ENDINGS, search_definition
from amlb_ext.amlb.definition import read_definition, sanitize_name
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError, suggest_nearest
from amlb_ext.pipeline.request import Request
from amlb_ext.sources.amlb_yaml import AmlbSource
from amlb_ext.suite import (
    Manifest,
    Original,
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
    """
    definition, _, _ = spec.partition("#")
    file_name = definition.replace("\\", "/").rpartition("/")[2]
    for ending in ENDINGS:
        if file_name.lower().endswith(ending):
            return file_name[: -len(ending)]
    return file_name


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
    definition, _, _ = spec.partition("#")
    # An address has no definition of AMLB's behind it, and is not asked for one.
    path = None if "://" in definition else search_definition(definition, options)
    if path is None:
        raise _unknown_definition_error(definition, spec, options)
    name = benchmark_name(spec)
    # The twin takes a definition's name beside the suite's own two.
    check_twin(name, request.config.name)
    entries = dict(read_definition(path))
    # AMLB's limits and metrics of a task stand in its entry, under the name that it has there.
    chosen = {}
    for suite_name, source_name in source_names.items():
        chosen[suite_name] = {**entries[source_name], "name": source_name}
    return Original(name, chosen)


def _unknown_definition_error(
    definition: str, spec: str, options: SourceConfig
) -> SourceError:
    """Return the error of a spec that names no definition: a slip, or a source of another kind."""
    is_other_source = definition.startswith(("openml/", "test.openml/", "bundled"))
    if is_other_source or "." in definition:
        hint = (
            f"for a source that is none: hardsynth generate {shlex.quote(spec)} -o DIR"
        )
    else:
        hint = suggest_nearest(definition, AmlbSource().suggestions(options))
    return SourceError(f"{definition!r} is no AMLB benchmark definition", hint)


def twin_notes(original: Original, manifest: Manifest) -> list[str]:
    """Return what differs between a benchmark and its hard twin, beside the rows."""
    pair = manifest.pair
    if pair is None:
        return []
    metrics = changed_metrics(pair, original)
    notes = []
    for name, entry in pair.tasks.items():
        source_name = entry["name"]
        folds = source_folds_text(manifest.amlb_tasks[name])
        if folds:
            notes.append(f"{pair.name}: {source_name}: {folds}")
        # The report joins results by AMLB's spelling of the original's name.
        if sanitize_name(source_name) != name:
            notes.append(
                f"{pair.name}: {source_name} is called {name} in the suite, so hardsynth "
                "report cannot join its results there; "
                f"run {name} of {manifest.name} for it"
            )
        if name in metrics:
            notes.append(
                f"{pair.name}: {source_name} is scored by {metrics[name]}, since a hard test "
                f"file lacks a class; score {pair.of} by it too, or leave the task out"
            )
    return notes
