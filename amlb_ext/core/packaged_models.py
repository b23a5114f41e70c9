"""Models that hardsynth brings itself, named as AMLB finds them in a suite: below ``extensions``.

A suite holds a copy of their code, which AMLB runs. Here the code of this installation runs, under
the same name, whatever a folder called ``extensions`` holds.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping

from amlb_ext.core.assets import asset_path

#: Import path of each model that a suite may name, with its parameters, which are numbers.
PACKAGED_MODELS: Mapping[str, tuple[str, ...]] = {
    "extensions.WeirdReader.readers.OutlineReader": ("is_hard", "grid"),
}


def packaged_folder(path: str) -> str:
    """Return the folder below ``frameworks`` that holds a packaged model; empty for any other.

    Examples
    --------
    >>> packaged_folder("extensions.WeirdReader.readers.OutlineReader")
    'WeirdReader'
    >>> packaged_folder("sklearn.linear_model.Ridge")
    ''
    """
    return path.split(".")[1] if path in PACKAGED_MODELS else ""


def make_importable(path: str) -> None:
    """Let Python find a packaged model by its import path; nothing happens for any other path.

    Parameters
    ----------
    path : str
        Import path of a class.

    Raises
    ------
    FileNotFoundError
        The installation lacks it.

    Examples
    --------
    >>> import importlib
    >>> make_importable("extensions.WeirdReader.readers.OutlineReader")
    >>> importlib.import_module("extensions.WeirdReader.readers").OutlineReader(grid=24)
    OutlineReader(grid=24)
    """
    folder = packaged_folder(path)
    name = f"extensions.{folder}"
    if not folder or name in sys.modules:
        return
    root = asset_path("frameworks", folder)
    spec = importlib.util.spec_from_file_location(
        name, root / "__init__.py", submodule_search_locations=[str(root)]
    )
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"cannot load {root}")
    # the package alone: its modules are imported by their own names, below it
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
