"""The folder of an export: only files that an earlier export wrote are ever replaced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import PublishError
from amlb_ext.core.files import remove_temporary_files, sha256_file, write_text
from amlb_ext.suite.layout import is_fresh, is_plain_name
from amlb_ext.suite.sealed_json import json_text

#: Folder of the files to upload.
UPLOAD = "upload"
#: Lists an export's files; written first and last.
RECORD = "hardsynth/export.json"
FORMAT = 1


@dataclass
class ExportFolder:
    """A folder to export to.

    Attributes
    ----------
    root : Path
    files : dict of str to str
        What is there of us: the sha256 by relative path, empty where it was never finished.
    """

    root: Path
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path, suite: Path) -> ExportFolder:
        """Return the folder ``root`` after a check that the export of a suite may go there.

        Raises
        ------
        PublishError
            It overlaps with the suite, holds something else than an export, or files of the
            export there were changed by hand.
        """
        here, there = root.resolve(), suite.resolve()
        remedy = "choose another folder with -o"
        if here.is_relative_to(there) or there.is_relative_to(here):
            raise PublishError(f"{root} and the suite {suite} stand one in the other", remedy)
        if not root.exists() or (root.is_dir() and is_fresh(root)):
            return cls(root)
        if not root.is_dir():
            raise PublishError(f"{root} is no folder", remedy)
        files = _read(root)
        if files is None:
            raise PublishError(f"{root} holds files that are no export of hardsynth", remedy)
        for relative, digest in sorted(files.items()):
            path = root / relative
            if digest and path.is_file() and sha256_file(path) != digest:
                raise PublishError(
                    f"{path} was changed since it was exported",
                    f"{remedy}, or move that file away",
                )
        return cls(root, files)

    def at(self, relative: str) -> Path:
        """Return the path of a file given relative to the root."""
        return self.root.joinpath(*relative.split("/"))

    def begin(self, planned: Iterable[str]) -> None:
        """Say that an export is under way, so that a killed one is known and continued."""
        planned = list(planned)
        foreign = [name for name in planned if name not in self.files and self.at(name).exists()]
        if foreign:
            raise PublishError(
                f"{self.at(foreign[0])} is in the way and is no file of the export there",
                "choose another folder with -o, or move that file away",
            )
        for name in planned:  # what stands there may soon be the earlier file or the new one
            if not name.startswith(f"{UPLOAD}/"):
                self.files[name] = ""
            self.files.setdefault(name, "")
        self._write({"finished": False}, self.files)

    def kept(self, relative: str) -> str:
        """Return the sha256 of an upload that is there and whole already, else nothing.

        Its name tells its content, so it need not be packed again.
        """
        digest, path = self.files.get(relative, ""), self.at(relative)
        return digest if digest and path.is_file() and sha256_file(path) == digest else ""

    def finish(self, files: Mapping[str, str], about: Mapping[str, Any]) -> None:
        """Remove what earlier exports left and write the record."""
        for relative in set(self.files) - set(files):
            self.at(relative).unlink(missing_ok=True)
        remove_temporary_files(self.root)
        for folder in sorted(self.root.joinpath("extensions").rglob("*"), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        self.files = dict(files)
        self._write({"finished": True, **about}, files)

    def _write(self, about: Mapping[str, Any], files: Mapping[str, str]) -> None:
        entry = {"tool": "hardsynth export", "format": FORMAT, **about, "files": dict(files)}
        write_text(self.at(RECORD), json_text(entry))


def _read(root: Path) -> dict[str, str] | None:
    """Return the files of the export in a folder, or None where there is none."""
    try:
        entry = json.loads((root / RECORD).read_text(encoding="utf-8"))
        files = entry["files"]
        if entry["tool"] != "hardsynth export" or entry["format"] != FORMAT:
            return None
        inside = root.resolve()
        for name, digest in files.items():
            if not isinstance(digest, str) or not (root / name).resolve().is_relative_to(inside):
                return None
        return dict(files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def exported_suite_name(root: Path) -> str:
    """Return the name of the main definition of an export; empty where there is none.

    Examples
    --------
    >>> exported_suite_name(Path("nowhere"))
    ''
    """
    try:
        entry = json.loads((root / RECORD).read_text(encoding="utf-8"))
        name = entry["suite"]["name"]
        return name if is_plain_name(name) else ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
