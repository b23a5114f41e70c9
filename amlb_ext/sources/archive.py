"""Archives of data files: unpacked once, and never outside their own folder.

Only ordinary files that are tables are written. A member that would leave the folder (an absolute
path, ``..``, a drive) or a link that could lead out of it refuses the whole archive. So does one
that unpacks to too much (:class:`~amlb_ext.core.packed.UnpackLimits`); members that are skipped
count as well.

NOTE[OWN] ``tarfile.data_filter`` is more lenient: it makes an absolute path relative, allows links
and knows Windows drives on Windows only. One check serves both formats here.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.packed import (
    BY_HAND,
    COPY_BYTES,
    DAMAGED,
    CountingStream,
    UnpackLimits,
    open_decompressed,
    open_zip,
)
from amlb_ext.core.paths import table_ending
from amlb_ext.sources.read_table import READERS

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz", ".tbz2", ".tar.bz2")


def is_archive(name: str) -> bool:
    """Whether ``name`` has an archive's ending.

    Examples
    --------
    >>> is_archive("iris.tar.gz"), is_archive("iris.csv")
    (True, False)
    """
    return name.lower().endswith(ENDINGS)


def unpack(path: Path, folder: Path, limits: UnpackLimits | None = None) -> Path:
    """Unpack the tables of an archive below ``folder`` and return where they are.

    Parameters
    ----------
    path : Path
        A file with one of :data:`ENDINGS`.
    folder : Path
        The cache; the destination is named by the archive's sha256, so another archive of the
        same name never meets old files.
    limits : UnpackLimits, optional
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
    # A folder of that name is complete: it is renamed into place last.
    destination = folder / sha256_file(path)[:32]
    if destination.is_dir():
        return destination
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        raise SourceError(
            f"cannot write to {folder}: {error.strerror}", "use --cache-dir DIR"
        ) from None
    limits = limits or UnpackLimits()
    try:
        _write_tables(path, part, limits.within(free_bytes))
        _rename_into_place(part, destination)
    except (RuntimeError, NotImplementedError) as error:
        # What zipfile raises for a password, and for a method of packing that it does not know.
        raise SourceError(
            f"cannot unpack {path.name}: {error}",
            "make it again without a password, as .tar.gz",
        ) from None
    except DAMAGED as error:
        raise SourceError(
            f"cannot unpack {path.name}: {error}", "make the archive again"
        ) from None
    finally:
        # After the rename nothing is there to remove.
        shutil.rmtree(part, ignore_errors=True)
    return destination


def _write_tables(path: Path, folder: Path, limits: UnpackLimits) -> None:
    is_zip = path.name.lower().endswith(".zip")
    open_tables = _open_zip_tables if is_zip else _open_tar_tables
    written: set[str] = set()
    for name, stream in open_tables(path, limits):
        # A Windows path is split at / and at \ on every system.
        parts = PureWindowsPath(name).parts
        # Some file systems take T.csv and t.csv for one file.
        key = "/".join(parts).lower()
        if key in written:
            raise _unsafe_member(name, "occurs twice")
        written.add(key)
        target = folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            shutil.copyfileobj(stream, file, COPY_BYTES)
    if not written:
        endings = ", ".join(READERS)
        raise SourceError(f"{path.name} holds no table", f"tables end in {endings}")


def _rename_into_place(part: Path, destination: Path) -> None:
    try:
        os.replace(part, destination)
    except OSError:
        # A folder in the way was unpacked by another process, from the same archive.
        if not destination.is_dir():
            raise


def _open_zip_tables(
    path: Path, limits: UnpackLimits
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the counted bytes of each table of a zip file."""
    packed = path.stat().st_size
    with open_zip(path, limits) as archive:
        unpacked = 0
        for member in archive.infolist():
            # The upper half holds the file's mode on Unix; 0 where another system wrote it.
            file_type = stat.S_IFMT(member.external_attr >> 16)
            if file_type not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _unsafe_member(member.filename, "is not an ordinary file")
            _check_stays_inside(member.filename)
            if member.is_dir() or not _is_table(member.filename):
                continue
            with archive.open(member) as stream:
                counted = CountingStream(
                    stream,
                    name=path.name,
                    packed=packed,
                    limits=limits,
                    unpacked=unpacked,
                )
                yield member.filename, cast("IO[bytes]", counted)
                unpacked = counted.unpacked


def _open_tar_tables(
    path: Path, limits: UnpackLimits
) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and the bytes of each table of a tar file."""
    packed = path.stat().st_size
    with open_decompressed(path) as stream:
        # Unlike a zip file, a tar file is one stream: what is skipped is unpacked, and counted.
        counted = CountingStream(stream, name=path.name, packed=packed, limits=limits)
        with tarfile.open(fileobj=cast("IO[bytes]", counted), mode="r:") as archive:
            for number, member in enumerate(archive, start=1):
                limits.check_members(path.name, number)
                # A sparse member stands for more bytes than the stream holds.
                if not (member.isreg() or member.isdir()) or member.issparse():
                    raise _unsafe_member(member.name, "is not an ordinary file")
                _check_stays_inside(member.name)
                end = member.offset_data + member.size
                limits.check_bytes(path.name, end, packed)
                if not member.isreg() or not _is_table(member.name):
                    continue
                table = archive.extractfile(member)
                if table is not None:
                    with table:
                        yield member.name, table


def _check_stays_inside(name: str) -> None:
    # C:\a and \a are harmless names on Linux alone, so that they are read as on Windows.
    windows = PureWindowsPath(name)
    is_absolute = windows.drive or windows.root or PurePosixPath(name).is_absolute()
    if is_absolute:
        raise _unsafe_member(name, "has an absolute path")
    if ".." in windows.parts:
        raise _unsafe_member(name, "leaves the folder of the archive")


def _is_table(name: str) -> bool:
    """Whether a member is a table, and not a hidden file that a system adds."""
    path = PurePosixPath(name)
    # macOS packs its own files below __MACOSX; PurePosixPath leaves "./" out.
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return table_ending(path.name) in READERS and not is_hidden


def _unsafe_member(name: str, problem: str) -> SourceError:
    return SourceError(
        f"the archive is unsafe: its member {name[:200]!r} {problem}", BY_HAND
    )
