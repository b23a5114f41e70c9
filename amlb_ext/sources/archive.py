"""Archives of data files: unpacked once, and never outside their own folder.

Only ordinary files that are tables are written. A member that would leave the folder (an
absolute path, ``..``, a drive), or a link that could lead out of it, refuses the whole archive.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from amlb_ext.core.atomic import sha256_file
from amlb_ext.core.errors import SourceError
from amlb_ext.sources.reading import READERS

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz", ".tbz2", ".tar.bz2")


def is_archive(name: str) -> bool:
    """Whether ``name`` has an archive's ending.

    Examples
    --------
    >>> is_archive("iris.tar.gz"), is_archive("iris.csv")
    (True, False)
    """
    return name.lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path) -> Path:
    """Unpack the tables of an archive below ``folder`` and return where they are.

    Parameters
    ----------
    path : Path
        A file with one of :data:`ENDINGS`.
    folder : Path
        The cache; the destination is named by the archive's sha256, so another archive of the
        same name never meets old files.

    Returns
    -------
    Path
        A folder; complete, or absent when unpacking was interrupted.

    Raises
    ------
    SourceError
        The archive is missing, damaged, encrypted, holds no table, or a member is unsafe.
    """
    if not path.is_file():
        raise SourceError(f"no such archive: {path}", "check the path")
    destination = folder / sha256_file(path)[:32]
    if destination.is_dir():
        return destination
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
    except OSError as error:
        raise SourceError(
            f"cannot write to {folder}: {error.strerror}", "use --cache-dir DIR"
        ) from None
    try:
        members = _zip if path.name.lower().endswith(".zip") else _tar
        count = sum(_write(part, name, handle) for name, handle in members(path))
        if not count:
            raise SourceError(f"{path.name} holds no table", f"tables end in {', '.join(READERS)}")
        try:
            os.replace(part, destination)
        except OSError:
            # Another process was first.
            if not destination.is_dir():
                raise
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise SourceError(f"cannot unpack {path.name}: {error}", "make the archive again") from None
    except (RuntimeError, NotImplementedError) as error:
        raise SourceError(
            f"cannot unpack {path.name}: {error}", "make it again without a password, as .tar.gz"
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return destination


def _zip(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _unsafe(member.filename, "is no ordinary file")
            _check_place(member.filename)
            if not member.is_dir() and _is_table(member.filename):
                with archive.open(member) as handle:
                    yield member.filename, handle


def _tar(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path) as archive:
        for member in archive:
            if not (member.isreg() or member.isdir()):
                raise _unsafe(member.name, "is no ordinary file")
            _check_place(member.name)
            if member.isreg() and _is_table(member.name):
                handle = archive.extractfile(member)
                if handle is not None:
                    with handle:
                        yield member.name, handle


def _check_place(name: str) -> None:
    windows = PureWindowsPath(name)
    if windows.drive or windows.root or PurePosixPath(name).is_absolute():
        raise _unsafe(name, "has an absolute path")
    if ".." in windows.parts:
        raise _unsafe(name, "leaves the archive's folder")


def _is_table(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts if part != ".")
    return path.suffix.lower() in READERS and not hidden


def _write(folder: Path, name: str, handle: IO[bytes]) -> int:
    path = folder.joinpath(*PureWindowsPath(name).parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        shutil.copyfileobj(handle, out)
    return 1


def _unsafe(name: str, why: str) -> SourceError:
    return SourceError(
        f"the archive is unsafe: its member {name!r} {why}",
        "unpack it yourself if you trust it, and give the folder",
    )
