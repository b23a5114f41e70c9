"""Print the lowest declared version of each package, as constraints for pip.

    python tests/helpers/lowest_versions.py > resources/lowest-versions.txt

``make lowest`` runs the tests with them. torch stays at the version of our own checks: its
older builds bring gigabytes of GPU libraries, so that its lowest version is declared, not tried.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
HEADER = """\
# Written by `python tests/helpers/lowest_versions.py`: the lowest version of each package in
# pyproject, for `make lowest`. torch is the exception: older builds bring gigabytes of GPU
# libraries, so its declared lowest version is not tried.
"""
#: Not tried: torch for the above, sdv and what `make bench` needs for their licence, tools that
#: check the project and take no part in it.
LEFT_OUT = {"torch", "sdv", "ctgan", "pytest-benchmark", "ruff", "mypy"}


def declared() -> dict[str, str]:
    """Return the lowest version of each declared package, or nothing where none is named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    # what builds the site takes no part in what is tested
    extras = project["optional-dependencies"].items()
    lists = [
        project["dependencies"],
        *(group for name, group in extras if name != "docs"),
    ]
    lowest: dict[str, str] = {}
    for requirement in (text for group in lists for text in group):
        name = re.match(r"[\w.-]+", requirement)[0].lower()
        bound = re.search(r">=([\w.]+)", requirement)
        lowest[name] = bound[1] if bound else ""
    return lowest


def pins() -> str:
    """Return the text of ``resources/lowest-versions.txt``."""
    checked = (ROOT / "resources" / "pip-constraints.txt").read_text(encoding="utf-8")
    torch = re.search(r"^torch==.*$", checked, re.M)[0]
    lines = [
        f"{name}=={version}"
        for name, version in declared().items()
        if version and name not in LEFT_OUT
    ]
    return HEADER + "\n".join([torch, *sorted(lines)]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(pins())
