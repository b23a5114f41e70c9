"""Files to upload: zip archives, or copies, named by their content and always of the same bytes.

AMLB keeps what it fetched under its base name and never asks again, so a base name must never
stand for two contents.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import write_file
from amlb_ext.suite.own_entries import read_own_entries, read_suite_part
from amlb_ext.suite.reader import Suite

#: The earliest time that a zip archive can hold.
_EPOCH = (1980, 1, 1, 0, 0, 0)
#: Mode of every entry, and the system it is of: archives must not differ between machines.
_REGULAR_FILE = 0o100644
_UNIX = 3
_BLOCK_BYTES = 1 << 20
#: Hexadecimal digits of a content's hash in a name: 64 bits.
_DIGITS = 16
_VERIFY = "hardsynth verify tells what differs; the command that made the suite writes it again"


@dataclass(frozen=True)
class Member:
    """One file of a suite that goes into an upload.

    Attributes
    ----------
    name : str
        In the archive.
    file : str
        In the suite, relative to its root.
    path : Path
    sha256 : str
        What its content must be.
    suite_part : bytes, optional
        The content without entries of the user's own, where the file has some: these are no part
        of the suite, and are not published.
    """

    name: str
    file: str
    path: Path
    sha256: str
    suite_part: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of the content."""
        if self.suite_part is not None:
            return len(self.suite_part)
        return self.path.stat().st_size


@dataclass(frozen=True)
class Upload:
    """One file to upload.

    Attributes
    ----------
    name : str
        Unique to the content.
    members : tuple of Member
        One alone for a copy.
    is_archive : bool
        Whether it is an archive, not a copy.
    """

    name: str
    members: tuple[Member, ...]
    is_archive: bool


def suite_member(suite: Suite, file: str, name: str = "") -> Member:
    """Return a file of a suite of any kind, which its manifest lists.

    Parameters
    ----------
    suite : Suite
    file : str
        Relative to the suite's root.
    name : str, optional
        In the archive; that of the file when omitted.

    Raises
    ------
    SuiteError
        It is not in the manifest, or not there.
    """
    layout, files = suite.layout, suite.manifest.files
    if file not in files:
        raise damaged_manifest(f"{file!r} is not among the suite's files")
    path = layout.at(file)
    if not path.is_file():
        raise SuiteError(f"{file} of the suite is missing", _VERIFY)
    suite_part = None
    if path in (layout.frameworks, layout.constraints) and read_own_entries(path):
        suite_part = read_suite_part(path).encode("utf-8")
    return Member(
        name=name or path.name,
        file=file,
        path=path,
        sha256=files[file],
        suite_part=suite_part,
    )


def damaged_manifest(problem: str) -> SuiteError:
    """Return the error for a manifest that does not describe its suite."""
    return SuiteError(
        f"the manifest is damaged: {problem}",
        "run the command that generated the suite again",
    )


def plan_archive(stem: str, members: Sequence[Member]) -> Upload:
    """Return the archive of some files, in the order of their names.

    Examples
    --------
    >>> one = Member("a_train_0.csv", "data/a/a_train_0.csv", Path("a.csv"), "0" * 64)
    >>> plan_archive("a", [one]).name
    'a-b21d1c15ba4e8272.zip'
    """
    ordered = sorted(members, key=lambda member: member.name)
    # the hash is of names and checksums, so that nothing is packed to learn the archive's name
    content = json.dumps([[member.name, member.sha256] for member in ordered])
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Upload(
        name=f"{stem}-{digest[:_DIGITS]}.zip",
        members=tuple(ordered),
        is_archive=True,
    )


def plan_copy(member: Member) -> Upload:
    """Return the upload of a file as it is.

    Examples
    --------
    >>> plan_copy(Member("a_train_0.csv", "data/a/a_train_0.csv", Path("a.csv"), "0" * 64)).name
    'a_train_0-0000000000000000.csv'
    """
    stem, _, ending = member.name.rpartition(".")
    return Upload(
        name=f"{stem}-{member.sha256[:_DIGITS]}.{ending}",
        members=(member,),
        is_archive=False,
    )


def write_upload(upload: Upload, path: Path) -> str:
    """Write an upload and return its sha256.

    Raises
    ------
    SuiteError
        A file is missing or not what the manifest says, or the disk cannot be written; nothing
        is left behind.
    """

    if upload.is_archive:
        return write_file(path, partial(_write_archive, upload.members))
    return write_copy(upload.members[0], path)


def write_copy(member: Member, path: Path) -> str:
    """Write a file of the suite as it is, and return its sha256; errors as of an upload."""

    def write(part: Path) -> None:
        with part.open("wb") as target:
            _copy_content(member, target)

    return write_file(path, write)


def _write_archive(members: Sequence[Member], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as opened:
        for member in members:
            entry = zipfile.ZipInfo(member.name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _REGULAR_FILE << 16
            # beyond 2 GiB the entry takes another form, so the size is told before the content
            entry.file_size = member.size
            with opened.open(entry, "w") as target:
                _copy_content(member, target)


def _copy_content(member: Member, target: IO[bytes]) -> None:
    """Write the content of a file of the suite, if it is what the manifest promises."""
    source: IO[bytes]
    try:
        if member.suite_part is not None:
            source = io.BytesIO(member.suite_part)
        else:
            source = member.path.open("rb")
    except OSError as error:
        raise SuiteError(
            f"cannot read {member.file} of the suite: {error.strerror}", _VERIFY
        ) from None
    digest = hashlib.sha256()
    with source:
        while block := source.read(_BLOCK_BYTES):
            digest.update(block)
            target.write(block)
    if digest.hexdigest() != member.sha256:
        raise SuiteError(
            f"{member.file} was changed after the suite was written: its sha256 differs",
            _VERIFY,
        )
