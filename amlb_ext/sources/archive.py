"""Archives of data files: unpacked once, and never outside their own folder.

Only ordinary files that are tables are written. A member that would leave the folder (an absolute
path, ``..``, a drive) or a link that could lead out of it refuses the whole archive. So does one
that unpacks to too much. :class:`UnpackLimits` holds for the bytes that come out, not for what the
archive says of itself, and members that are skipped count as well.

NOTE[OWN] ``tarfile.data_filter`` is more lenient: it makes an absolute path relative, allows links
and knows Windows drives on Windows only. One check serves both formats here.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.sources.read_table import READERS

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz", ".tbz2", ".tar.bz2")

#: Most bytes of a zip file's list of members.
MAX_DIRECTORY = 16 << 20
#: Most bytes that are read at once; only a tar header asks for more.
MAX_READ = 1 << 20

_COPY_BYTES = 1 << 16
_BY_HAND = "unpack it yourself if you trust it, and give the folder"

#: What the standard library raises for an archive that is damaged.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    OverflowError,
)


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
    except _DAMAGED as error:
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
            shutil.copyfileobj(stream, file, _COPY_BYTES)
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
    limits.check_directory(path.name, directory_bytes(path))
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        limits.check_members(path.name, len(members))
        stated_bytes = sum(member.file_size for member in members)
        # What the list states may be a lie, but an honest bomb is refused before any is unpacked.
        limits.check_bytes(path.name, stated_bytes, packed)
        unpacked = 0
        for member in members:
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
    return path.suffix.lower() in READERS and not is_hidden


def _unsafe_member(name: str, problem: str) -> SourceError:
    return SourceError(
        f"the archive is unsafe: its member {name[:200]!r} {problem}", _BY_HAND
    )


# --- How much may come out of an archive, and the stream that counts it --------------------------


@dataclass(frozen=True, kw_only=True)
class UnpackLimits:
    """What an archive may unpack to.

    Attributes
    ----------
    max_bytes : int
        Of all members, those that are no tables included; ``--max-unpacked`` sets it.
    max_members : int
    max_ratio : float
        Unpacked bytes per packed byte. Tables of zeros reach 1000, ordinary ones 20.
    ratio_from : int
        The ratio holds from so many unpacked bytes on.

    Examples
    --------
    >>> UnpackLimits().check_bytes("a.zip", 5 << 30, 5 << 20)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: a.zip unpacks to more than 250 times its size (unpack it \
yourself if you trust it, and give the folder)
    """

    max_bytes: int = 20 << 30
    max_members: int = 10_000
    max_ratio: float = 250.0
    ratio_from: int = 256 << 20

    def within(self, free_bytes: int) -> UnpackLimits:
        """Return the limits on a disk with so many free bytes."""
        return dataclasses.replace(self, max_bytes=min(self.max_bytes, free_bytes))

    def check_bytes(self, name: str, unpacked: int, packed: int) -> None:
        """Raise when so many bytes, out of so many packed ones, are too many."""
        if unpacked > self.max_bytes:
            raise SourceError(
                f"{name} unpacks to more than {self.max_bytes / 2**30:.3g} GiB, which is what "
                "--max-unpacked or the disk allows",
                "raise --max-unpacked if you trust it, or free some space",
            )
        # Small files may be packed to nothing: a ratio alone would refuse a table of zeros.
        allowed_by_ratio = max(self.max_ratio * packed, self.ratio_from)
        if unpacked > allowed_by_ratio:
            raise SourceError(
                f"{name} unpacks to more than {self.max_ratio:g} times its size",
                _BY_HAND,
            )

    def check_members(self, name: str, count: int) -> None:
        """Raise when the archive has too many members."""
        if count > self.max_members:
            raise SourceError(
                f"{name} has more than {self.max_members} members", _BY_HAND
            )

    def check_directory(self, name: str, size: int) -> None:
        """Raise when a zip file's list of members is too large to be read at all."""
        if size > MAX_DIRECTORY:
            self.check_members(name, self.max_members + 1)


class CountingStream(io.RawIOBase):
    """A stream of unpacked bytes that counts them against the limits.

    Parameters
    ----------
    stream : file
        What comes out of the decompressor; only forward seeks are cheap there.
    name : str
        Of the archive, for messages.
    packed : int
        Bytes of the archive.
    limits : UnpackLimits
    unpacked : int
        Bytes that came out of other members.
    """

    def __init__(
        self,
        stream: IO[bytes],
        *,
        name: str,
        packed: int,
        limits: UnpackLimits,
        unpacked: int = 0,
    ) -> None:
        super().__init__()
        self._stream = stream
        self._name = name
        self._packed = packed
        self._limits = limits
        self.unpacked = unpacked

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
                _BY_HAND,
            )
        block = self._stream.read(size)
        self.unpacked += len(block)
        self._limits.check_bytes(self._name, self.unpacked, self._packed)
        return block

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position; what is passed over counts as unpacked."""
        if whence == io.SEEK_SET:
            self._limits.check_bytes(self._name, offset, self._packed)
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._stream.tell()


def open_decompressed(path: Path) -> IO[bytes]:
    """Open the plain bytes of a tar file; its first bytes tell the compression, not its name."""
    # The longest of these marks has six bytes.
    openers: dict[bytes, Callable[..., object]] = {
        b"\x1f\x8b": gzip.open,
        b"BZh": bz2.open,
        b"\xfd7zXZ\0": lzma.open,
    }
    with path.open("rb") as file:
        start = file.read(6)
    for magic, opener in openers.items():
        if start.startswith(magic):
            return cast("IO[bytes]", opener(path, "rb"))
    return path.open("rb")


def directory_bytes(path: Path) -> int:
    """Return the size that a zip file states for its list of members; 0 where none is found.

    ``zipfile`` reads that list as a whole, before anything can be counted. Numbers of bytes are
    those of PKWARE's APPNOTE.TXT, sections 4.3.14 to 4.3.16.
    """
    # The end record of 22 bytes and a comment of at most 2^16; before them, in a ZIP64 file, a
    # record of 56 bytes and its locator of 20.
    tail_bytes = (1 << 16) + 22 + 56 + 20
    with path.open("rb") as file:
        file_size = file.seek(0, io.SEEK_END)
        file.seek(max(file_size - tail_bytes, 0))
        tail = file.read()
        end_record = tail.rfind(b"PK\x05\x06")
        if end_record < 0 or len(tail) < end_record + 16:
            return 0
        size_field = tail[end_record + 12 : end_record + 16]
        size = int.from_bytes(size_field, "little")
        locator_start = max(end_record - 20, 0)
        locator = tail[locator_start:end_record]
        if locator.startswith(b"PK\x06\x07"):
            # A ZIP64 file may state its size in either record, and zipfile believes this one.
            zip64_position = int.from_bytes(locator[8:16], "little")
            file.seek(min(zip64_position, file_size))
            zip64_record = file.read(48)
            zip64_size = int.from_bytes(zip64_record[40:48], "little")
            size = max(size, zip64_size)
    return size
