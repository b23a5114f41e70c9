"""What must be the same on every machine for results to be the same."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib import metadata

from amlb_ext import __version__

#: Packages whose numbers end up in a suite.
NUMERICAL = (
    "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "torch", "deap", "xgboost",
    "xgboost-cpu", "lightgbm", "catboost", "joblib",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of this tool, of Python, of what computes, and the kind of processor.

    Examples
    --------
    >>> versions()["hardsynth"] == __version__
    True
    """
    found = {"hardsynth": __version__, "python": ".".join(map(str, sys.version_info[:2]))}
    found["processor"] = platform.machine()
    for name in NUMERICAL:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def difference(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return what differs, in words; empty where nothing does.

    Examples
    --------
    >>> difference({"numpy": "2.1", "scipy": "1"}, {"numpy": "1.26", "scipy": "1"})
    'numpy 1.26 (2.1 here)'
    """
    names = [name for name in here if here[name] != there.get(name, "none")]
    return ", ".join(f"{name} {there.get(name, 'none')} ({here[name]} here)" for name in names)
