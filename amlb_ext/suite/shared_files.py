"""The files of a suite that belong to no task: definitions, settings, frameworks and their code.

All of it follows from the manifest's entries, so it can be written again without any source.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from amlb_ext.core.assets import asset_path
from amlb_ext.core.estimators import packaged_folder
from amlb_ext.core.files import TEMPORARY_SUFFIX, write_file, write_text
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import TABLE_INTEGRATION, Layout, files_below
from amlb_ext.suite.own_entries import write_suite_part
from amlb_ext.suite.reader import Suite

#: Code of an integration that stands elsewhere in the package, by its place in a suite.
CODE_ELSEWHERE = {
    "extensions/HardsynthForecast/local_methods.py": Path(__file__).parents[1]
    / "models"
    / "local_methods.py"
}
#: What Python, or a set-up of it, leaves beside the code of an integration.
_LEFTOVERS = frozenset({"__pycache__", "venv", "programs", "lib"})


def write_shared_files(
    suite: Suite, *, frameworks: Mapping[str, Any]
) -> dict[str, str]:
    """Write every file that belongs to no task, except the manifest and the request.

    Parameters
    ----------
    suite : Suite
        Of its manifest everything but the files.
    frameworks : mapping
        Content of ``frameworks.yaml``; the integrations that it names are copied to
        ``extensions/``. Entries of the user's own that stand there and among the constraints are
        kept.

    Returns
    -------
    dict of str to str
        The sha256 of each file, by relative path. A definition that names the suite's folder has
        none.

    Raises
    ------
    SuiteError
        The disk cannot be written.
    """
    layout = suite.layout
    digests = {layout.config: write_text(layout.config, suite.configuration())}
    for path, text in suite.definition_texts().items():
        digest = write_text(path, text)
        if not suite.manifest.names_its_folder:
            digests[path] = digest
    # the comments of the packaged constraints stay
    grown = {
        layout.frameworks: yaml_text(dict(frameworks)),
        layout.constraints: suite.manifest.constraints,
    }
    for path, text in grown.items():
        digests[path] = write_suite_part(path, text)
    files = {layout.relative(path): digest for path, digest in digests.items()}
    modules = {*suite.manifest.integrations, *named_integrations(frameworks)}
    for module in sorted(modules):
        files |= copy_integration(layout, module)
    return files


def named_integrations(frameworks: Mapping[str, Any]) -> list[str]:
    """Return the folders of ``extensions/`` whose code framework definitions run.

    Examples
    --------
    >>> named_integrations({"a": {"module": "extensions.One"}, "b": {"extends": "a"}})
    ['One']
    """
    modules = set()
    for entry in frameworks.values():
        package, _, module = str(entry.get("module", "")).partition(".")
        if package == "extensions" and module:
            modules.add(module.split(".")[0])
        # a model of ours is run from a copy, too
        params = entry.get("params") or {}
        for family in ("classifier", "regressor"):
            modules.add(packaged_folder(str(params.get(family) or "")))
    return sorted(modules - {""})


def copy_integration(layout: Layout, module: str, name: str = "") -> dict[str, str]:
    """Copy a packaged integration to ``extensions/``; return the sha256 of each copy.

    Its folder there bears another name where it is a user's addition to a suite.
    """
    source = asset_path("frameworks", module)
    folder = layout.extensions / (name or module)
    copies = {}
    for relative in _code(source):
        copies[folder / relative] = source / relative
    for place, path in CODE_ELSEWHERE.items():
        if place.startswith(f"extensions/{module}/"):
            copies[folder / path.name] = path
    if module == TABLE_INTEGRATION:
        # it tells how a framework of one's own is added
        copies[layout.extensions / "README.md"] = source.parent / "README.md"
    written = {}
    for target, path in copies.items():
        copy = partial(shutil.copyfile, path)
        written[layout.relative(target)] = write_file(target, copy)
    return written


def _code(source: Path) -> Iterable[str]:
    """Yield the files of a packaged integration, without what would differ between machines."""
    for relative in files_below(source):
        steps = relative.split("/")
        # editors and killed runs leave files, too
        is_hidden = any(step.startswith(".") for step in steps)
        is_leftover = relative.endswith((".pyc", TEMPORARY_SUFFIX))
        if not (is_hidden or is_leftover or _LEFTOVERS & set(steps)):
            yield relative
