"""The project's data folders (frameworks, benchmarks, resources), installed or in a checkout."""

from __future__ import annotations

from pathlib import Path

#: The folder ``amlb_ext``, in a checkout or in site-packages.
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
        The installation lacks it.
    """
    # A wheel holds the data folders in amlb_ext/assets; in a checkout they lie beside amlb_ext.
    for root in (_PACKAGE / "assets", _PACKAGE.parent):
        path = root.joinpath(*parts)
        if path.exists():
            return path
    raise FileNotFoundError(
        f"{'/'.join(parts)} is missing from this installation of hardsynth"
    )
