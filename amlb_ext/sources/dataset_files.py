"""What a definition's ``dataset`` names: the files of each fold.

A dataset may be

* ``{train: ..., test: ...}``, each a path or a list of paths, one pair per fold;
* ``[train_0, test_0, train_1, test_1, ...]``;
* a path, or ``{path: ...}``: a folder or archive with ``{name}_train.csv`` and
  ``{name}_test.csv``, or ``{name}_train_0.csv``, ``{name}_test_0.csv``, ...; or a single table,
  which then has no folds.

Every path may be an address (``http``, ``https``, ``s3``; see :mod:`amlb_ext.sources.download`),
hold ``{user}``, ``{input}`` or ``{root}``, and start with ``~``. A relative path is looked for
below the current folder, then beside the definition.
"""

from __future__ import annotations

import os
import re
import reprlib
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from amlb_ext.amlb.configuration import expand_path, substitute_directories
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import cache_folder, sha256_file
from amlb_ext.core.packed import (
    BY_HAND,
    COPY_BYTES,
    DAMAGED,
    CountingStream,
    UnpackLimits,
    open_decompressed,
    open_zip,
)
from amlb_ext.core.paths import table_ending, table_stem
from amlb_ext.sources.read_table import READERS
from amlb_ext.sources.urls import is_url

#: Most files below a folder that is searched for tables.
MAX_FILES = 20_000

#: ``iris_train_0``: the data set, the part and the fold.
_FILE_NAME = re.compile(
    r"(?:(?P<data_set>.*)[_-])?(?P<part>train|test)(?:[_-](?P<fold>\d+))?"
)

#: ("train" or "test", fold or None) to file.
_Parts = dict[tuple[str, int | None], Path]


@dataclass(frozen=True)
class Place:
    """What turns a path of a definition into a file.

    Attributes
    ----------
    task : str
        Name of the task, for messages and for the naming convention.
    beside : Path
        Folder of the definition.
    directories : dict of str to str
        What ``{user}``, ``{input}`` and ``{root}`` stand for.
    options : SourceConfig
        ``max_file_size`` is used.
    """

    task: str
    beside: Path
    directories: dict[str, str]
    options: SourceConfig

    def resolve(self, text: Any) -> Path:
        """Return the file or folder that ``text`` names, downloaded and unpacked."""
        if not isinstance(text, str) or not text:
            raise SourceError(
                f"{self.task}: {reprlib.repr(text)} is not a path",
                "write the path of a file",
            )
        full = substitute_directories(text, self.directories)
        most = self.options.max_file_bytes
        if is_url(full):
            # Imported here, since it brings requests, which most specs do not need.
            from amlb_ext.sources.download import download

            path = download(full, cache_folder("downloads"), max_bytes=most)
        else:
            path = self._find_local(full)
        if path.is_file() and path.name.lower().endswith(ENDINGS):
            limits = UnpackLimits(max_bytes=most)
            return unpack(path, cache_folder("archives"), limits)
        return path

    def _find_local(self, text: str) -> Path:
        path = expand_path(text)
        # What no file system can hold, for its length or a null byte, does not exist either.
        with suppress(OSError, ValueError):
            if path.exists():
                return path
            beside = self.beside / path
            if not path.is_absolute() and beside.exists():
                return beside
        raise SourceError(
            f"{self.task}: no such file or folder: {text[:500]}",
            "check the path; {user} and {root} are set by --userdir and --amlb, {input} by "
            "AMLB's config.yaml",
        )

    def resolve_file(self, text: Any) -> Path:
        """Return the single table that ``text`` names; as :meth:`resolve` otherwise."""
        path = self.resolve(text)
        if not path.is_dir():
            return path
        files = _list_tables(path)
        if len(files) != 1:
            raise SourceError(
                f"{self.task}: {text} holds {len(files)} tables instead of one",
                "give the folder or archive as 'path:', or one file",
            )
        return files[0]


def find_files(dataset: Any, place: Place) -> list[tuple[Path, Path]] | Path:
    """Return the files of each fold, or the one file of a task without folds.

    Parameters
    ----------
    dataset : dict, list or str
        As in the definition.
    place : Place

    Returns
    -------
    list of (Path, Path), or Path
        Training and test file of each fold.

    Raises
    ------
    SourceError
        A form that is none of the above, a missing file, unequal numbers of files, a folder
        that does not follow the naming convention, an unsafe archive.
    NetworkError
        A remote file cannot be fetched.

    Examples
    --------
    >>> place = Place("iris", Path(), {}, SourceConfig())
    >>> find_files({"train": "a.csv"}, place)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: iris: the dataset has the keys ['train'] (it needs 'path', \
or 'train' and 'test')
    """
    if isinstance(dataset, dict) and dataset.get("path") is not None:
        dataset = dataset["path"]
    if isinstance(dataset, dict):
        if dataset.get("train") is None or dataset.get("test") is None:
            raise SourceError(
                f"{place.task}: the dataset has the keys {sorted(map(str, dataset))[:20]}",
                "it needs 'path', or 'train' and 'test'",
            )
        train, test = dataset["train"], dataset["test"]
        train = train if isinstance(train, list) else [train]
        test = test if isinstance(test, list) else [test]
    elif isinstance(dataset, list):
        train = dataset[::2]
        test = dataset[1::2]
    else:
        path = place.resolve(dataset)
        return _search_folder(path, place.task) if path.is_dir() else path
    if len(train) != len(test) or not train:
        raise SourceError(
            f"{place.task}: the dataset names {len(train)} training files and {len(test)} test "
            "files",
            "give one test file for each training file",
        )
    files = map(place.resolve_file, train), map(place.resolve_file, test)
    return list(zip(*files, strict=True))


def _search_folder(folder: Path, task: str) -> list[tuple[Path, Path]] | Path:
    """Return the pairs of a folder by AMLB's naming convention, or the only table in it.

    AMLB leaves derived copies in other formats beside a file, so the first format in the order
    of the readers that has a pair is taken alone.
    """
    files = _list_tables(folder)
    if len(files) == 1:
        return files[0]
    for ending in READERS:
        data_sets: dict[str, _Parts] = {}
        for file in files:
            match = _FILE_NAME.fullmatch(table_stem(file.name))
            if match and table_ending(file.name) == ending:
                fold = None if match["fold"] is None else int(match["fold"])
                parts = data_sets.setdefault(match["data_set"] or "", {})
                parts[match["part"], fold] = file
        if not data_sets:
            continue
        # The data set of the task's name is taken whatever else is there, else the only one.
        name = task if task in data_sets else next(iter(data_sets))
        if len(data_sets) > 1 and name != task:
            raise SourceError(
                f"{task}: the folder holds several data sets: {', '.join(sorted(data_sets))}",
                "name the task like one of them, or give 'train' and 'test'",
            )
        pairs = _pair_up(data_sets[name], task)
        if pairs:
            return pairs
    shown = ", ".join(file.name for file in files[:5]) or "no table"
    raise SourceError(
        f"{task}: no training and test files found among: {shown}",
        f"name them {task}_train_0.csv, {task}_test_0.csv, {task}_train_1.csv, ...",
    )


def _pair_up(parts: _Parts, task: str) -> list[tuple[Path, Path]]:
    """Return training and test file of each fold; files without a number go first, and alone."""
    if ("train", None) in parts and ("test", None) in parts:
        return [(parts["train", None], parts["test", None])]
    pairs: list[tuple[Path, Path]] = []
    while ("train", fold := len(pairs)) in parts and ("test", fold) in parts:
        pairs.append((parts["train", fold], parts["test", fold]))
    # Numbers beyond the last whole pair show that a file between them was lost.
    if any(number is not None and number >= fold for _, number in parts):
        raise SourceError(
            f"{task}: fold {fold} lacks its training or its test file",
            "number the folds from 0 without gaps, each with _train_N and _test_N",
        )
    return pairs


def _list_tables(folder: Path) -> list[Path]:
    tables = []
    for count, path in enumerate(folder.rglob("*"), start=1):
        if count > MAX_FILES:
            raise SourceError(
                f"{folder} holds more than {MAX_FILES} files",
                "name a folder of tables only",
            )
        if _is_table(path.name) and path.is_file():
            tables.append(path)
    # Folders are walked in no order of their own.
    return sorted(tables)


# Archives of data files: unpacked once, and never outside their own folder.
#
# Only ordinary files that are tables are written. A member that would leave the folder (an absolute
# path, ``..``, a drive) or a link that could lead out of it refuses the whole archive. So does one
# that unpacks to too much (:class:`~amlb_ext.core.packed.UnpackLimits`); members that are skipped
# count as well.
#
# NOTE[OWN] ``tarfile.data_filter`` is more lenient: it makes an absolute path relative, allows
# links and knows Windows drives on Windows only. One check serves both formats here.

ENDINGS = (".zip", ".tar", ".tgz", ".tar.gz", ".tbz", ".tbz2", ".tar.bz2")


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
            f"cannot write to {folder}: {error.strerror}",
            "set HARDSYNTH_CACHE to a folder of yours",
        ) from None
    limits = limits or UnpackLimits()
    try:
        _write_tables(path, part, limits.within(free_bytes))
        try:
            os.replace(part, destination)
        except OSError:
            # A folder in the way was unpacked by another process, from the same archive.
            if not destination.is_dir():
                raise
    # zipfile raises the first two for a password, and for a method of packing that it does not know
    except (RuntimeError, NotImplementedError, *DAMAGED) as error:
        raise SourceError(
            f"cannot unpack {path.name}: {error}",
            "make it again without a password, as .tar.gz",
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
        raise SourceError(
            f"{path.name} holds no table", f"tables end in {', '.join(READERS)}"
        )


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
    if windows.anchor or PurePosixPath(name).is_absolute():
        raise _unsafe_member(name, "has an absolute path")
    if ".." in windows.parts:
        raise _unsafe_member(name, "leaves the folder of the archive")


def _is_table(name: str) -> bool:
    """Whether a file is a table, and not a hidden one that a system adds."""
    path = PurePosixPath(name)
    # macOS puts ._a.csv beside a.csv, and packs its own files below __MACOSX; PurePosixPath leaves
    # "./" out.
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
    return table_ending(path.name) in READERS and not is_hidden


def _unsafe_member(name: str, problem: str) -> SourceError:
    return SourceError(
        f"the archive is unsafe: its member {name[:200]!r} {problem}", BY_HAND
    )
