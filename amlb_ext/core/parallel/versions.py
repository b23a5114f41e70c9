"""The versions that every machine of a cluster must share to give the same results."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib import metadata

from amlb_ext.core.version import __version__

#: Packages that compute numbers of a suite.
NUMERICAL_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "torch",
    "deap",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
    "catboost",
    "joblib",
)


def collect_versions() -> dict[str, str]:
    """Return the versions of hardsynth, Python and the numerical packages, and the processor.

    Examples
    --------
    >>> collect_versions()["hardsynth"] == __version__
    True
    """
    versions = {
        "hardsynth": __version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "processor": platform.machine(),
    }
    for name in NUMERICAL_PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    return versions


def describe_differences(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Return the differences as text; empty if there are none.

    Examples
    --------
    >>> describe_differences({"numpy": "2.1", "scipy": "1"}, {"numpy": "1.26", "scipy": "1"})
    'numpy 1.26 (2.1 here)'
    """
    differences = []
    for name, version in here.items():
        version_there = there.get(name, "none")
        if version_there != version:
            differences.append(f"{name} {version_there} ({version} here)")
    return ", ".join(differences)
