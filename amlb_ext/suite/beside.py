"""What stands beside the folds: definitions, configuration, frameworks, constraints, code.

All of it follows from the manifest's entries, so it can be written again without any source.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.core.assets import asset
from amlb_ext.core.atomic import TEMPORARY, write_file, write_text
from amlb_ext.suite.definition import benchmark, configuration, yaml_text
from amlb_ext.suite.layout import MAIN_SUFFIXES, Layout, files_below
from amlb_ext.suite.manifest import AmlbTask, Pair
from amlb_ext.suite.pair import pair_entries


def write_beside(
    layout: Layout,
    *,
    name: str,
    seed: int,
    amlb_tasks: Sequence[AmlbTask],
    pair: Pair | None,
    integrations: Mapping[str, Any],
    constraints: str | None = None,
) -> dict[str, str]:
    """Write every file of a suite that belongs to no fold, but the manifest and the request.

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
        Content of ``frameworks.yaml``; its modules are copied to ``extensions/``.
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
    ...     files = write_beside(Layout(Path(folder)), **about)
    >>> [path for path in sorted(files) if path.endswith(".yaml")]
    ['benchmarks/mine.yaml', 'benchmarks/mine_all.yaml', 'config.yaml', 'constraints.yaml', \
'frameworks.yaml']
    """
    if constraints is None:
        packaged = _packaged("resources", "constraints.yaml")
        constraints = packaged.read_text(encoding="utf-8") if packaged else None
    texts: dict[Path, Any] = {
        layout.config: configuration(seed, constraints=constraints is not None),
        layout.frameworks: dict(integrations),
        layout.definition(name): benchmark(t for t in amlb_tasks if t.suffix in MAIN_SUFFIXES),
        layout.definition_all(name): benchmark(amlb_tasks),
    }
    if pair is not None:
        entries = pair_entries(pair, {task.name: task for task in amlb_tasks})
        texts[layout.definition(pair.name)] = entries
    files = {
        layout.relative(path): write_text(path, yaml_text(content))
        for path, content in texts.items()
    }
    if constraints is not None:
        files[layout.relative(layout.constraints)] = write_text(layout.constraints, constraints)
    return files | _copy_integrations(layout)


def _packaged(*parts: str) -> Path | None:
    try:
        return asset(*parts)
    except FileNotFoundError:
        return None


def _copy_integrations(layout: Layout) -> dict[str, str]:
    source = _packaged("frameworks")
    files: dict[str, str] = {}
    if source is None:
        return files
    for relative in files_below(source):
        steps = relative.split("/")
        if "__pycache__" in steps or any(step.startswith(".") for step in steps):
            continue
        if relative.endswith((".pyc", TEMPORARY)):
            continue
        home = layout.extensions.joinpath(*steps)
        copy = partial(shutil.copyfile, source.joinpath(*steps))
        files[layout.relative(home)] = write_file(home, copy)
    return files
