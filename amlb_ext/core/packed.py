"""Packed files: how much may come out of one, and the one table of a ``.csv.gz`` or ``.csv.zip``.

:class:`UnpackLimits` holds for the bytes that come out, not for what a file says of itself.
"""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import lzma
import shutil
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from amlb_ext.core.errors import SourceError
from amlb_ext.core.paths import TABLE_ENDINGS, table_ending

#: Most bytes of a zip file's list of members.
MAX_DIRECTORY = 16 << 20
#: Most bytes that are read at once; only a tar header asks for more.
MAX_READ = 1 << 20
#: Bytes that are copied at once.
COPY_BYTES = 1 << 16
BY_HAND = "unpack it yourself if you trust it, and give the folder"

#: What the standard library raises for a packed file that is damaged.
DAMAGED = (
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


@contextmanager
def lend_unpacked(path: Path, limits: UnpackLimits) -> Iterator[tuple[Path, str]]:
    """Lend the one table of a packed file as a file, with the ending of that table.

    Parameters
    ----------
    path : Path
        One of :data:`amlb_ext.core.paths.PACKED_ENDINGS`. The file that is lent has its name, so
        that an error names what the user gave.
    limits : UnpackLimits

    Raises
    ------
    SourceError
        Damaged, encrypted, with several tables or none, or unpacks to more than the limits or the
        disk allow.
    """
    with tempfile.TemporaryDirectory(prefix="hardsynth-") as folder:
        limits = limits.within(shutil.disk_usage(folder).free)
        target = Path(folder, path.name)
        try:
            with (
                _open_packed(path, limits) as (stream, name),
                target.open("wb") as file,
            ):
                counted = CountingStream(
                    stream, name=path.name, packed=path.stat().st_size, limits=limits
                )
                shutil.copyfileobj(counted, file, COPY_BYTES)
        except (*DAMAGED, RuntimeError, NotImplementedError) as error:
            raise SourceError(
                f"cannot unpack {path.name}: {error}", "unpack it, and give the table"
            ) from None
        yield target, table_ending(name)


@contextmanager
def _open_packed(path: Path, limits: UnpackLimits) -> Iterator[tuple[IO[bytes], str]]:
    """Open what a packed file holds, with the name that it has without its packing."""
    if path.suffix.lower() != ".zip":
        with open_decompressed(path) as stream:
            yield stream, path.stem
        return
    with open_zip(path, limits) as archive:
        # macOS packs its own files below __MACOSX
        names = [
            member.filename
            for member in archive.infolist()
            if Path(member.filename).suffix.lower() in TABLE_ENDINGS
            and not member.filename.startswith("__MACOSX")
        ]
        if len(names) != 1:
            raise SourceError(
                f"{path.name} holds {len(names)} tables instead of one",
                "unpack it, and give the table",
            )
        with archive.open(names[0]) as stream:
            yield stream, names[0]


def open_zip(path: Path, limits: UnpackLimits) -> zipfile.ZipFile:
    """Open a zip file whose list of members is within the limits.

    What the list states may be a lie, but an honest bomb is refused before any is unpacked.

    Raises
    ------
    SourceError
    """
    limits.check_directory(path.name, directory_bytes(path))
    archive = zipfile.ZipFile(path)
    members = archive.infolist()
    try:
        limits.check_members(path.name, len(members))
        stated_bytes = sum(member.file_size for member in members)
        limits.check_bytes(path.name, stated_bytes, path.stat().st_size)
    except SourceError:
        archive.close()
        raise
    return archive


@dataclass(frozen=True, kw_only=True)
class UnpackLimits:
    """What an archive may unpack to.

    Attributes
    ----------
    max_bytes : int
        Of all members, those that are no tables included; ``--max-file-size`` sets it.
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
                "--max-file-size or the disk allows",
                "raise --max-file-size if you trust it, or free some space",
            )
        # Small files may be packed to nothing: a ratio alone would refuse a table of zeros.
        allowed_by_ratio = max(self.max_ratio * packed, self.ratio_from)
        if unpacked > allowed_by_ratio:
            raise SourceError(
                f"{name} unpacks to more than {self.max_ratio:g} times its size",
                BY_HAND,
            )

    def check_members(self, name: str, count: int) -> None:
        """Raise when the archive has too many members."""
        if count > self.max_members:
            raise SourceError(
                f"{name} has more than {self.max_members} members", BY_HAND
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
                BY_HAND,
            )
        block = self._stream.read(size)
        self.unpacked += len(block)
        self._limits.check_bytes(self._name, self.unpacked, self._packed)
        return block

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, as ``io.BufferedReader`` asks for it."""
        block = self.read(min(len(buffer), MAX_READ))
        buffer[: len(block)] = block
        return len(block)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position; what is passed over counts as unpacked."""
        if whence == io.SEEK_SET:
            self._limits.check_bytes(self._name, offset, self._packed)
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._stream.tell()


def open_decompressed(path: Path) -> IO[bytes]:
    """Open the plain bytes of a packed file; its first bytes tell the packing, not its name."""
    # The longest of these marks has six bytes.
    openers: dict[bytes, Callable[..., object]] = {
        b"\x1f\x8b": gzip.open,
        b"BZh": bz2.open,
        b"\xfd7zXZ\0": lzma.open,
        b"\x28\xb5\x2f\xfd": _open_zstandard,
    }
    with path.open("rb") as file:
        start = file.read(6)
    for magic, opener in openers.items():
        if start.startswith(magic):
            return cast("IO[bytes]", opener(path, "rb"))
    return path.open("rb")


def _open_zstandard(path: Path, mode: str) -> object:
    import pyarrow as pa

    return pa.CompressedInputStream(pa.OSFile(str(path), mode), "zstd")


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
