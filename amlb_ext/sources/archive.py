"""Archives of data files: unpacked once, and never outside their own folder.

Only ordinary files that are tables are written. A member that would leave the folder (an
absolute path, ``..``, a drive), or a link that could lead out of it, refuses the whole archive.
So does one that unpacks to too much: the limits of :class:`Limits` hold for what comes out, not
for what the archive says of itself, and members that are skipped count as well.
"""

from __future__ import annotations

import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from lzma import LZMAError
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from amlb_ext.core.atomic import sha256_file
from amlb_ext.core.errors import SourceError
from amlb_ext.sources.reading import READERS
from amlb_ext.sources.unpacking import Limits, Plain, directory_bytes, plain

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz", ".tbz2", ".tar.bz2")

#: What the standard library raises for an archive that is damaged.
_DAMAGED = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, struct.error),
    *(EOFError, OSError, ValueError, LookupError, OverflowError),
)


def is_archive(name: str) -> bool:
    """Whether ``name`` has an archive's ending.

    Examples
    --------
    >>> is_archive("iris.tar.gz"), is_archive("iris.csv")
    (True, False)
    """
    return name.lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path, limits: Limits | None = None) -> Path:
    """Unpack the tables of an archive below ``folder`` and return where they are.

    Parameters
    ----------
    path : Path
        A file with one of :data:`ENDINGS`.
    folder : Path
        The cache; the destination is named by the archive's sha256, so another archive of the
        same name never meets old files.
    limits : Limits, optional
        How much may come out of it.

    Returns
    -------
    Path
        A folder; complete, or absent when unpacking was interrupted.

    Raises
    ------
    SourceError
        The archive is missing, damaged, encrypted, holds no table, a member is unsafe, or it
        unpacks to more than the limits or the disk allow; nothing is left behind.
    """
    if not path.is_file():
        raise SourceError(f"no such archive: {path}", "check the path")
    destination = folder / sha256_file(path)[:32]
    if destination.is_dir():
        return destination
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise SourceError(
            f"cannot write to {folder}: {error.strerror}", "use --cache-dir DIR"
        ) from None
    limits = (limits or Limits()).within(free)
    try:
        members = _zip if path.name.lower().endswith(".zip") else _tar
        written: set[str] = set()
        for name, handle in members(path, limits):
            _write(part, name, handle, written)
        if not written:
            raise SourceError(f"{path.name} holds no table", f"tables end in {', '.join(READERS)}")
        try:
            os.replace(part, destination)
        except OSError:
            # Another process was first.
            if not destination.is_dir():
                raise
    except (RuntimeError, NotImplementedError) as error:
        raise SourceError(
            f"cannot unpack {path.name}: {error}", "make it again without a password, as .tar.gz"
        ) from None
    except _DAMAGED as error:
        raise SourceError(f"cannot unpack {path.name}: {error}", "make the archive again") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return destination


def _zip(path: Path, limits: Limits) -> Iterator[tuple[str, IO[bytes]]]:
    packed = path.stat().st_size
    limits.check_directory(path.name, directory_bytes(path))
    with zipfile.ZipFile(path) as archive:
        found = archive.infolist()
        limits.check_members(path.name, len(found))
        limits.check(path.name, sum(member.file_size for member in found), packed)
        total = 0
        for member in found:
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _unsafe(member.filename, "is no ordinary file")
            _check_place(member.filename)
            if not member.is_dir() and _is_table(member.filename):
                with archive.open(member) as handle:
                    counted = Plain(handle, path.name, packed, limits, total)
                    yield member.filename, cast("IO[bytes]", counted)
                    total = counted.total


def _tar(path: Path, limits: Limits) -> Iterator[tuple[str, IO[bytes]]]:
    packed = path.stat().st_size
    with plain(path) as raw:
        counted = Plain(raw, path.name, packed, limits)
        with tarfile.open(fileobj=counted, mode="r:") as archive:
            for number, member in enumerate(archive, start=1):
                limits.check_members(path.name, number)
                if not (member.isreg() or member.isdir()) or member.issparse():
                    raise _unsafe(member.name, "is no ordinary file")
                _check_place(member.name)
                limits.check(path.name, member.offset_data + member.size, packed)
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


def _write(folder: Path, name: str, handle: IO[bytes], written: set[str]) -> None:
    parts = PureWindowsPath(name).parts
    place = "/".join(parts)
    if place.lower() in written:
        raise _unsafe(name, "is there twice")
    written.add(place.lower())
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as out:
        shutil.copyfileobj(handle, out, 1 << 16)


def _unsafe(name: str, why: str) -> SourceError:
    return SourceError(
        f"the archive is unsafe: its member {name[:200]!r} {why}",
        "unpack it yourself if you trust it, and give the folder",
    )
