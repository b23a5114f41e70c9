"""The existing benchmark that a suite is the hard twin of, and what differs between the two."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from amlb_ext.amlb.configuration import search_definition
from amlb_ext.amlb.definition import read_definition, sanitize_name
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
    base = spec.partition("#")[0].replace("\\", "/").rsplit("/", 1)[-1]
    for ending in (".yaml", ".yml"):
        if base.lower().endswith(ending):
            return base[: -len(ending)]
    return base


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
    base = spec.partition("#")[0]
    path = None if "://" in base else search_definition(base, options)
    if path is None:
        hint = suggest_nearest(base, AmlbSource().suggestions(options))
        if base.startswith(("openml/", "test.openml/", "bundled")) or "." in base:
            hint = f"for a source that is none: hardsynth generate {shlex.quote(spec)} -o DIR"
        raise SourceError(f"{base!r} is no AMLB benchmark definition", hint)
    name = benchmark_name(spec)
    check_twin(name, request.config.name)
    entries = dict(read_definition(path))
    chosen = {
        safe: {**entries[said], "name": said} for safe, said in source_names.items()
    }
    return Original(name, chosen)


def twin_notes(original: Original, manifest: Manifest) -> list[str]:
    """Return what differs between a benchmark and its hard twin, beside the rows."""
    pair = manifest.pair
    if pair is None:
        return []
    metrics = changed_metrics(pair, original)
    notes = []
    for name, about in pair.tasks.items():
        said, folds = about["name"], source_folds_text(manifest.amlb_tasks[name])
        if folds:
            notes.append(f"{pair.name}: {said}: {folds}")
        if sanitize_name(said) != name:
            notes.append(
                f"{pair.name}: {said} is called {name} in the suite, so hardsynth report cannot "
                f"join its results there; run {name} of {manifest.name} for it"
            )
        if name in metrics:
            notes.append(
                f"{pair.name}: {said} is scored by {metrics[name]}, since a hard test file lacks "
                f"a class; score {pair.of} by it too, or leave the task out"
            )
    return notes
