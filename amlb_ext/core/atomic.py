"""Files that are whole or absent: written beside their place, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from amlb_ext.core.errors import SuiteError

TEMPORARY = ".hardsynth-part"


def write_file(path: Path, write: Callable[[Path], object]) -> str:
    """Let ``write`` fill a temporary file, then rename it to ``path``.

    Parameters
    ----------
    path : Path
        Where the file shall stand; its folder is made when missing.
    write : callable
        Called with the temporary path.

    Returns
    -------
    str
        The sha256 of the file, as 64 hexadecimal digits.

    Raises
    ------
    SuiteError
        When the disk is full or the folder cannot be written; nothing is left behind.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        digest = sha256_file(temporary)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise SuiteError(
            f"cannot write {path}: {error.strerror or error}",
            "free some space or choose another folder with -o, then run the same command again",
        ) from error
    return digest


def write_text(path: Path, text: str) -> str:
    """Write ``text`` as UTF-8 with Unix line ends; return the sha256."""
    return write_file(path, lambda part: part.write_text(text, encoding="utf-8", newline="\n"))


def sha256_file(path: Path) -> str:
    """Return the sha256 of a file as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        for block in iter(lambda: handle.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def sweep(folder: Path) -> None:
    """Remove temporary files that a killed run left below ``folder``."""
    for part in folder.rglob(f"*{TEMPORARY}"):
        part.unlink(missing_ok=True)
