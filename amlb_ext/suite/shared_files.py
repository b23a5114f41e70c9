"""The files of a suite that belong to no fold: definitions, settings, frameworks and their code.

All of it follows from the manifest's entries, so it can be written again without any source.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.core.assets import asset_path
from amlb_ext.core.estimators import packaged_folder
from amlb_ext.core.files import TEMPORARY_SUFFIX, write_file, write_text
from amlb_ext.suite.definition import amlb_configuration, benchmark_entries, yaml_text
from amlb_ext.suite.layout import (
    FORECAST_INTEGRATION,
    MAIN_SUFFIXES,
    Layout,
    files_below,
)
from amlb_ext.suite.manifest import AmlbTask, Pair
from amlb_ext.suite.own_entries import write_suite_part
from amlb_ext.suite.twin import pair_entries

#: Packaged integrations that a suite holds only where one of its frameworks runs a model of theirs.
OTHER_INTEGRATIONS = ("LLMCoder", "WeirdReader")


def write_shared_files(
    layout: Layout,
    *,
    name: str,
    seed: int,
    amlb_tasks: Sequence[AmlbTask],
    pair: Pair | None,
    integrations: Mapping[str, Any],
    constraints: str | None = None,
) -> dict[str, str]:
    """Write every file that belongs to no fold, except the manifest and the request.

    Parameters
    ----------
    layout : Layout
    name : str
        Of the benchmark definition.
    seed : int
        Of AMLB's runs.
    amlb_tasks : sequence of AmlbTask
        In the definition's order.
    pair : Pair, optional
        The benchmark that the suite is the hard twin of.
    integrations : mapping
        Content of ``frameworks.yaml``; its modules are copied to ``extensions/``. Entries of the
        user's own that stand in the file are kept.
    constraints : str, optional
        Text of ``constraints.yaml``; the packaged one when omitted.

    Returns
    -------
    dict of str to str
        The sha256 of each file, by relative path.

    Raises
    ------
    SuiteError
        The disk cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> about = {"name": "mine", "seed": 1, "amlb_tasks": [], "pair": None, "integrations": {}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_shared_files(Layout(Path(folder)), **about)
    >>> [path for path in sorted(files) if path.endswith(".yaml")]
    ['benchmarks/mine.yaml', 'benchmarks/mine_all.yaml', 'config.yaml', 'constraints.yaml', \
'frameworks.yaml']
    """
    if constraints is None:
        packaged = _packaged_path("resources", "constraints.yaml")
        if packaged is not None:
            constraints = packaged.read_text(encoding="utf-8")
    contents: dict[Path, Any] = {
        layout.config: amlb_configuration(seed, constraints=constraints is not None),
        layout.frameworks: dict(integrations),
        **definition_entries(layout, name=name, amlb_tasks=amlb_tasks, pair=pair),
    }
    files = {}
    for path, content in contents.items():
        write = write_suite_part if path == layout.frameworks else write_text
        files[layout.relative(path)] = write(path, yaml_text(content))
    if constraints is not None:
        # written as it is: the comments of the packaged file stay
        relative = layout.relative(layout.constraints)
        files[relative] = write_suite_part(layout.constraints, constraints)
    return files | _copy_integrations(layout, _model_folders(integrations))


def definition_entries(
    layout: Layout, *, name: str, amlb_tasks: Sequence[AmlbTask], pair: Pair | None
) -> dict[Path, list[dict[str, Any]]]:
    """Return the content of every benchmark definition of a suite, by its file."""
    main = [task for task in amlb_tasks if task.suffix in MAIN_SUFFIXES]
    entries = {
        layout.definition(name): benchmark_entries(main),
        layout.definition_all(name): benchmark_entries(amlb_tasks),
    }
    if pair is not None:
        by_name = {task.name: task for task in amlb_tasks}
        entries[layout.definition(pair.name)] = pair_entries(pair, by_name)
    return entries


def _packaged_path(*parts: str) -> Path | None:
    """Return a file of the installed package; None where it was installed without it."""
    try:
        return asset_path(*parts)
    except FileNotFoundError:
        return None


def _model_folders(integrations: Mapping[str, Any]) -> set[str]:
    """Return the packaged folders whose models the frameworks run, in AMLB and so from a copy."""
    folders = set()
    for entry in integrations.values():
        params = entry.get("params") or {}
        for family in ("classifier", "regressor"):
            folders.add(packaged_folder(str(params.get(family) or "")))
    return folders - {""}


def _copy_integrations(
    layout: Layout, model_folders: Collection[str]
) -> dict[str, str]:
    """Copy the packaged integrations to ``extensions/``; return the sha256 of each copy.

    Parameters
    ----------
    layout : Layout
    model_folders : collection of str
        Those of :data:`OTHER_INTEGRATIONS` that this suite needs.
    """
    source = _packaged_path("frameworks")
    if source is None:
        return {}
    files = {}
    for relative in files_below(source):
        steps = relative.split("/")
        # what Python, editors and killed runs leave beside the code is none of a suite's files,
        # and would give other bytes on every machine
        is_hidden = any(step.startswith(".") for step in steps)
        is_leftover = relative.endswith((".pyc", TEMPORARY_SUFFIX))
        # that of forecasting tasks stands in their suites alone
        is_other = steps[0] == FORECAST_INTEGRATION
        if is_hidden or is_leftover or is_other or "__pycache__" in steps:
            continue
        # integrations for other folders, unless F is a model of theirs
        if steps[0] in OTHER_INTEGRATIONS and steps[0] not in model_folders:
            continue
        copy = partial(shutil.copyfile, source.joinpath(*steps))
        target = layout.extensions.joinpath(*steps)
        files[layout.relative(target)] = write_file(target, copy)
    return files
