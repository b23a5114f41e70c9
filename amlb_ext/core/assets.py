"""The project's data folders (frameworks, benchmarks, resources), installed or in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def asset_path(*parts: str) -> Path:
    """Return the path of a packaged file or folder.

    Parameters
    ----------
    *parts : str
        Path below the project root, e.g. ``"resources", "constraints.yaml"``.

    Raises
    ------
    FileNotFoundError
        When the installation lacks it.
    """
    for root in (_PACKAGE / "assets", _PACKAGE.parent):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(
        f"{'/'.join(parts)} is missing from this installation of hardsynth"
    )
