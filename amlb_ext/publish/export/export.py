"""A suite as a small AMLB user directory whose data are fetched from an address.

What AMLB v2.1.7 does with an address (``amlb/datasets/file.py``): it keeps the file below the
input folder under the task's name and the address's last part, unpacks an archive into a folder
of the archive's name, looks in it for ``<name>_train_<k>.csv`` and ``<name>_test_<k>.csv`` from 0
on, and asks for nothing that is there already. The address of a long table of series it gives to
pandas as it is: it keeps no copy, and unpacks no archive. So each of those is uploaded as it is,
over http or https.

Files to upload are zip archives, or copies, named by their content and always of the same bytes:
AMLB keeps what it fetched under its base name and never asks again, so a base name must never
stand for two contents.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from amlb_ext.core.errors import PublishError, SuiteError
from amlb_ext.core.files import sha256_file, write_file, write_text
from amlb_ext.core.paths import amlb_places
from amlb_ext.core.progress import Bar
from amlb_ext.publish.export.base_url import check_base_url
from amlb_ext.publish.export.folder import UPLOAD, ExportFolder, about_suite
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.layout import Layout
from amlb_ext.suite.reader import Suite, open_suite
from amlb_ext.suite.shared_files import read_own_entries, read_suite_part

#: Files of a suite that stand as they are in an export.
_COPIED = ("extensions/", "frameworks.yaml", "constraints.yaml")
#: Names that are safe as parts of an address and of a path, wherever AMLB runs.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


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


@dataclass(frozen=True, kw_only=True)
class Export:
    """What was written.

    Attributes
    ----------
    out : Path
        The user directory.
    url : str
        Where ``upload/`` is expected, without its last slash.
    form : {'archives', 'files'}
        How the data are packed.
    suite : str
        Archive of the suite itself; its results are reported with the suite, not the export.
    definitions : dict of str to int
        Number of AMLB tasks by benchmark definition.
    uploads : dict of str to dict
        By name: ``sha256``, ``bytes`` and, by name in the archive, the suite's ``files``.
    """

    out: Path
    url: str
    form: str
    suite: str
    definitions: dict[str, int]
    uploads: dict[str, dict[str, Any]]

    @property
    def bytes(self) -> int:
        """Size of all uploads."""
        return sum(int(about["bytes"]) for about in self.uploads.values())


def export_suite(
    directory: str | Path,
    url: str,
    out: str | Path | None = None,
    *,
    form: str = "archives",
    quiet: bool = True,
) -> Export:
    """Write a user directory for AMLB that fetches a suite's data from an address.

    The same suite gives the same bytes. An earlier export in the folder is brought up to date:
    its files stay usable until the new ones are whole, and files of others are left alone.

    Parameters
    ----------
    directory : path
        A finished suite.
    url : str
        Where the files in ``upload/`` will be found: ``http(s)://`` or ``s3://``.
    out : path, optional
        Default: the suite's name with ``_export``, in the current directory.
    form : {'archives', 'files'}
        An archive per AMLB task, or every file as it is. A framework that asks AMLB for Parquet
        (AutoGluon) leaves it beside the unpacked files, and AMLB then never again loads that
        fold of an archive from the same input folder; files as they are stay loadable.
    quiet : bool
        Show no progress.

    Returns
    -------
    Export

    Raises
    ------
    PublishError
        The address is none that AMLB could fetch from, or the folder holds something else.
    SuiteError
        There is no whole suite, or the disk cannot be written.
    """
    address = check_base_url(url)
    suite = open_suite(directory)
    manifest = suite.manifest
    out = Path(out) if out else Path(f"{suite.root.resolve().name}_export")
    folder = ExportFolder.of(out, suite.root)
    definitions = suite.definition_entries()
    for name in (*definitions, *(task.name for task in manifest.listed)):
        if not _NAME.fullmatch(name):
            raise damaged_manifest(f"{name!r} cannot name a task or a definition")

    # everything is planned before the first byte is written; by name, as parts of a task share
    # their training file, which is uploaded once
    uploads: dict[str, Upload] = {}
    archives: dict[str, str] = {}
    copies_of: dict[str, str] = {}
    for task in manifest.listed:
        names = task.names_in_archive if form == "archives" else {}
        if names:
            members = [suite_member(suite, file, name) for name, file in names.items()]
            archive = plan_archive(task.name, members)
            uploads[archive.name] = archive
            archives[task.name] = f"{address}/{archive.name}"
            continue
        if not task.names_in_archive and address.startswith("s3://"):
            raise PublishError(
                f"--base-url {address}: AMLB reads series through pandas, which needs more "
                "packages for S3",
                "give --base-url https://HOST/FOLDER",
            )
        for file in task.data_files:
            copy = plan_copy(suite_member(suite, file))
            uploads[copy.name] = copy
            copies_of[file] = f"{address}/{copy.name}"
    whole_suite = plan_archive(f"{suite.name}-suite", list(all_members(suite)))
    uploads[whole_suite.name] = whole_suite
    copies = [
        suite_member(suite, file) for file in manifest.files if file.startswith(_COPIED)
    ]

    # the definitions, with addresses in place of files; of an archive AMLB finds out what is in it
    own_place = Layout(Path())
    texts = {own_place.relative(own_place.config): suite.configuration(data=False)}
    addressed = manifest.definitions(
        lambda task, file: archives.get(task.name) or copies_of[file]
    )
    for name, entries in addressed.items():
        for entry in entries:
            dataset = entry["dataset"]
            [place, *_] = dataset.get("train", [""])
            if place in archives.values():
                kept = {"target": dataset["target"], "type": dataset["type"]}
                entry["dataset"] = {"path": place, **kept}
        texts[own_place.relative(own_place.definition(name))] = yaml_text(entries)
    # now everything is planned; a killed export is recognised by what is recorded first
    places = [f"{UPLOAD}/{name}" for name in uploads]
    places += [member.file for member in copies]
    folder.begin([*places, *texts])
    files = {}
    about: dict[str, dict[str, Any]] = {}
    with Bar(total=len(uploads), desc="export", unit="file", disable=quiet) as bar:
        for name, upload in uploads.items():
            place = f"{UPLOAD}/{name}"
            path = folder.root / place
            digest = folder.finished_upload(place) or write_upload(upload, path)
            files[place] = digest
            about[name] = {
                "sha256": digest,
                "bytes": path.stat().st_size,
                "files": {member.name: member.file for member in upload.members},
            }
            bar.update()
    for member in copies:
        files[member.file] = write_copy(member, folder.root / member.file)
    for place, text in texts.items():
        files[place] = write_text(folder.root / place, text)
    export = Export(
        out=folder.root,
        url=address,
        form="archives" if archives else "files",
        suite=whole_suite.name,
        definitions={name: len(entries) for name, entries in definitions.items()},
        uploads=about,
    )
    record = {
        "version": manifest.version,
        "base_url": export.url,
        "form": export.form,
        "suite": {**about_suite(suite), "archive": export.suite},
        "definitions": export.definitions,
        "uploads": export.uploads,
    }
    folder.finish(files, record)
    return export


def all_members(suite: Suite) -> Iterator[Member]:
    """Yield what makes the suite: certificates written since included, runs and pages left out."""
    files = suite.manifest.files
    for file in files:
        yield suite_member(suite, file, file)
    layout = suite.layout
    # what is written after the manifest, and the manifest itself, it cannot list
    later = [layout.manifest]
    for task in suite.tasks:
        later += [layout.task_certificate(task), layout.task_null(task)]
    for path in later:
        file = layout.relative(path)
        if path.is_file() and file not in files:
            yield Member(name=file, file=file, path=path, sha256=sha256_file(path))


def export_summary(export: Export, suite: str) -> str:
    """Return what was written, and the commands that upload, run and report it."""
    out = shlex.quote(str(export.out))
    folder = shlex.quote(str(export.out / UPLOAD))
    definitions = [f"{name} ({n} tasks)" for name, n in export.definitions.items()]
    main_definition = next(iter(export.definitions))

    size = f"{export.bytes / 2**20:.1f} MB"
    put = (
        f"put the {len(export.uploads)} files of {folder} ({size}) below {export.url}/"
    )
    # only S3 has one command for all files
    if export.url.startswith("s3://"):
        put += (
            f"\n            aws s3 cp --recursive {folder} {shlex.quote(export.url)}/"
        )
    lines = [
        f"{out}: an AMLB user directory with the definitions {', '.join(definitions)}",
        f"  upload:   {put}",
        f"  run:      hardsynth run FRAMEWORK -u {out} -b {main_definition} -r results",
        f"            or AMLB itself: python runbenchmark.py FRAMEWORK {main_definition} "
        f"{amlb_places(export.out)}",
        f"  report:   hardsynth report {shlex.quote(suite)} --results results",
    ]
    if export.form == "archives":
        lines.append(
            "  note:     give every run of AutoGluon an input folder of its own (-i), or export "
            "with --form files"
        )
    return "\n".join(lines)
