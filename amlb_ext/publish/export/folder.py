"""The folder of an export: only files that an earlier export wrote are ever replaced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import PublishError, SuiteError
from amlb_ext.core.files import remove_temporary_files, sha256_file, write_text
from amlb_ext.core.paths import check_no_links, is_inside, is_plain_name
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.folder_faults import SuiteContents, folder_faults
from amlb_ext.suite.layout import Layout, is_fresh
from amlb_ext.suite.reader import Suite
from amlb_ext.suite.sealed_json import json_text

#: Folder of the files to upload.
UPLOAD = "upload"
#: Lists an export's files; written first and last.
RECORD = "hardsynth/export.json"
FORMAT = 1
#: The form of an export that the OpenML client reads in place of a server.
OPENML_FILES = "openml-files"


@dataclass
class ExportFolder:
    """A folder to export to.

    Attributes
    ----------
    root : Path
    files : dict of str to str
        What an earlier export wrote: the sha256 by relative path, empty where it never finished.
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
        remedy = "choose another folder with -o"
        if is_new_folder(root, suite):
            return cls(root)
        if not root.is_dir():
            raise PublishError(f"{root} is not a folder", remedy)
        record = _read_record(root)
        if record is None:
            raise PublishError(
                f"{root} holds files that are not an export of hardsynth", remedy
            )
        files = record["files"]
        for relative, digest in sorted(files.items()):
            path = root / relative
            # without a checksum it was being written when the earlier export was killed
            if digest and path.is_file() and sha256_file(path) != digest:
                raise PublishError(
                    f"{path} was changed after it was exported",
                    f"{remedy}, or move that file away",
                )
        return cls(root, files)

    def begin(self, planned: Iterable[str]) -> None:
        """Record that an export is under way, so that a killed one is recognised and continued."""
        planned = list(planned)
        for name in planned:
            path = self.root / name
            if name not in self.files and path.exists():
                raise PublishError(
                    f"{path} is in the way: it does not belong to the export there",
                    "choose another folder with -o, or move that file away",
                )
        for name in planned:
            # what stands there may soon be the earlier file or the new one, so that no checksum
            # holds; the name of an upload tells its content, whichever export wrote it
            if not name.startswith(f"{UPLOAD}/"):
                self.files[name] = ""
            self.files.setdefault(name, "")
        self._write_record(finished=False)

    def finished_upload(self, relative: str) -> str:
        """Return the sha256 of an upload that is there and whole already, else nothing.

        Its name tells its content, so it need not be packed again.
        """
        digest = self.files.get(relative, "")
        path = self.root / relative
        is_whole = digest and path.is_file() and sha256_file(path) == digest
        return digest if is_whole else ""

    def finish(self, files: Mapping[str, str], about: Mapping[str, Any]) -> None:
        """Remove what earlier exports left and write the record."""
        for relative in set(self.files) - set(files):
            (self.root / relative).unlink(missing_ok=True)
        remove_temporary_files(self.root)
        # deepest first, so that a folder is empty when its turn comes
        extensions = self.root / "extensions"
        for path in sorted(extensions.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()
        self.files = dict(files)
        self._write_record(finished=True, **about)

    def _write_record(self, **about: Any) -> None:
        entry = {"tool": "hardsynth export", "format": FORMAT, **about}
        write_text(self.root / RECORD, json_text({**entry, "files": self.files}))


def is_new_folder(root: Path, suite: Path) -> bool:
    """Whether nothing stands in a folder yet; raise where it overlaps with the suite."""
    there, here = root.resolve(), suite.resolve()
    if there.is_relative_to(here) or here.is_relative_to(there):
        raise PublishError(
            f"one of {root} and the suite {suite} is inside the other",
            "choose another folder with -o",
        )
    check_no_links(root)
    return not root.exists() or (root.is_dir() and is_fresh(root))


def about_suite(suite: Suite) -> dict[str, Any]:
    """Return what the record of an export says of its suite."""
    manifest = suite.manifest
    return {
        "name": suite.name,
        "seed": manifest.seed,
        "command": manifest.command,
        "manifest": sha256_file(suite.layout.manifest),
    }


def _read_record(root: Path) -> dict[str, Any] | None:
    """Return the record of the export in a folder, or None where there is none."""
    try:
        entry: dict[str, Any] = json.loads((root / RECORD).read_text(encoding="utf-8"))
        if entry["tool"] != "hardsynth export" or entry["format"] != FORMAT:
            return None
        # files that it names may be removed, so none may stand outside
        for name, digest in entry["files"].items():
            if not isinstance(digest, str) or not is_inside(name):
                return None
        return entry
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
        name = (_read_record(root) or {})["suite"]["name"]
    except (KeyError, TypeError):
        return ""
    return name if is_plain_name(name) else ""


def verify_export(root: Path) -> list[str]:
    """Return what is wrong with an export: its files, its settings, foreign code.

    Raises
    ------
    SuiteError
        Its record cannot be used.
    """
    check_no_links(root)
    layout = Layout(root)
    record = _read_record(root) or {}
    try:
        seed = int(record["suite"]["seed"])
    except (ValueError, KeyError, TypeError):
        raise SuiteError(
            f"{root / RECORD} is damaged", "export the suite again"
        ) from None
    texts = {layout.config: yaml_text(amlb_configuration(seed, data=False))}
    places: tuple[str, ...] = (f"{UPLOAD}/", "benchmarks/")
    if record.get("form") == OPENML_FILES:
        # no user directory of AMLB's
        texts, places = {}, ("org/", "tasks.csv")
    contents = SuiteContents(
        layout=layout,
        files=record["files"],
        needed=frozenset(),
        may_list=lambda name: name.startswith(places),
        texts=texts,
        unlisted=frozenset({RECORD}),
    )
    return [*folder_faults(contents)]
