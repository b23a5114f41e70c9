"""Archives of data files: unpacked once, and never outside their own folder.

Only ordinary files that are tables are written. A member that would leave the folder (an
absolute path, ``..``, a drive), or a link that could lead out of it, refuses the whole archive.
So does one that unpacks to too much: the limits of :class:`Limits` hold for what comes out, not
for what the archive says of itself, and members that are skipped count as well.
"""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from lzma import LZMAError
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.sources.read_table import READERS

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


# How much may come out of an archive, and the streams that hold to it.

#: Most bytes of a zip file's list of members, and of one header of a tar file.
MAX_DIRECTORY, MAX_READ = 16 << 20, 1 << 20


@dataclass(frozen=True)
class Limits:
    """What an archive may unpack to.

    Attributes
    ----------
    total : int
        Bytes of all members, those that are no tables included; ``--max-unpacked`` sets it.
    members : int
    ratio : float
        Unpacked bytes per packed byte, once there are more than ``free_of_ratio`` of them. Tables
        of zeros reach 1000, ordinary ones 20.
    free_of_ratio : int

    Examples
    --------
    >>> Limits().check("a.zip", 5 << 30, 5 << 20)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: a.zip unpacks to more than 250 times its size (unpack it \
yourself if you trust it, and give the folder)
    """

    total: int = 20 << 30
    members: int = 10_000
    ratio: float = 250.0
    free_of_ratio: int = 256 << 20

    def within(self, free: int) -> Limits:
        """Return the limits for a disk with so many free bytes."""
        return dataclasses.replace(self, total=min(self.total, free))

    def check(self, name: str, unpacked: int, packed: int) -> None:
        """Raise when so many bytes, out of so many packed ones, are too many."""
        if unpacked > self.total:
            raise SourceError(
                f"{name} unpacks to more than {self.total / 2**30:.3g} GiB, what --max-unpacked or "
                "the disk allows",
                "raise --max-unpacked if you trust it, or free some space",
            )
        if unpacked > max(self.ratio * packed, self.free_of_ratio):
            raise SourceError(
                f"{name} unpacks to more than {self.ratio:g} times its size",
                "unpack it yourself if you trust it, and give the folder",
            )

    def check_members(self, name: str, count: int) -> None:
        """Raise when the archive has too many members."""
        if count > self.members:
            raise SourceError(
                f"{name} has more than {self.members} members",
                "unpack it yourself if you trust it, and give the folder",
            )

    def check_directory(self, name: str, size: int) -> None:
        """Raise when a zip file's list of members is too large to be read at all."""
        if size > MAX_DIRECTORY:
            self.check_members(name, self.members + 1)


class Plain(io.RawIOBase):
    """A stream of unpacked bytes that counts them against the limits.

    Parameters
    ----------
    stream : file
        What comes out of the decompressor; only forward seeks are cheap there.
    name : str
        Of the archive, for messages.
    packed : int
        Bytes of the archive.
    limits : Limits
    before : int
        Bytes that came out of other members.
    """

    def __init__(
        self, stream: IO[bytes], name: str, packed: int, limits: Limits, before: int = 0
    ) -> None:
        super().__init__()
        self._stream, self._name, self._packed = stream, name, packed
        self._limits, self.total = limits, before

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def seekable(self) -> bool:
        """Whether it can seek."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read at most ``size`` bytes; a header that asks for more than a MiB is refused."""
        if size is None or size < 0 or size > MAX_READ:
            raise SourceError(
                f"{self._name} holds a header of more than {MAX_READ >> 20} MiB",
                "unpack it yourself if you trust it, and give the folder",
            )
        found = self._stream.read(size)
        self.total += len(found)
        self._limits.check(self._name, self.total, self._packed)
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position; what is passed over counts as unpacked."""
        if whence == 0:
            self._limits.check(self._name, offset, self._packed)
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._stream.tell()


def plain(path: Path) -> IO[bytes]:
    """Open a tar file's bytes, whatever packed them; its first bytes decide."""
    with path.open("rb") as handle:
        start = handle.read(6)
    opener: Any = open
    for magic, known in ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open)):
        if start.startswith(magic):
            opener = known
    return cast("IO[bytes]", opener(path, "rb"))


def directory_bytes(path: Path) -> int:
    """Return the size that a zip file claims for its list of members; 0 where none is found.

    ``zipfile`` reads that list whole, before anything can be counted.
    """
    with path.open("rb") as handle:
        end = handle.seek(0, io.SEEK_END)
        handle.seek(max(end - (1 << 16) - 98, 0))
        tail = handle.read()
        place = tail.rfind(b"PK\x05\x06")
        if place < 0 or len(tail) < place + 16:
            return 0
        size = int.from_bytes(tail[place + 12 : place + 16], "little")
        if tail[max(place - 20, 0) : place].startswith(b"PK\x06\x07"):
            handle.seek(min(int.from_bytes(tail[place - 12 : place - 4], "little"), end))
            size = max(size, int.from_bytes(handle.read(48)[40:48], "little"))
    return size
