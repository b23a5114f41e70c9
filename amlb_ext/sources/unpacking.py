"""How much may come out of an archive, and the streams that hold to it."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from amlb_ext.core.errors import SourceError

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
