"""Write an export: what is uploaded, what stands beside it, and the record of both."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from amlb_ext.core.files import write_text
from amlb_ext.core.paths import amlb_places
from amlb_ext.core.progress import Bar
from amlb_ext.publish.export.archives import Member, Upload, write_upload
from amlb_ext.publish.export.folder import UPLOAD, ExportFolder


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
    uploads: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Size of all uploads."""
        return sum(int(about["bytes"]) for about in self.uploads.values())


def write_export(
    export: Export,
    folder: ExportFolder,
    *,
    uploads: Mapping[str, Upload],
    copies: Sequence[Member],
    texts: Mapping[str, str],
    version: str,
    suite: Mapping[str, Any],
    quiet: bool,
) -> Export:
    """Write a planned export; return it with what is uploaded.

    Parameters
    ----------
    export : Export
        Without its uploads.
    folder : ExportFolder
    uploads : mapping of str to Upload
        By name.
    copies : sequence of Member
        Files of the suite that stand in the export as they are.
    texts : mapping of str to str
        What else is written, by its place.
    version : str
        Of the tool that made the suite.
    suite : mapping
        What the record says of the suite, beside its archive.
    quiet : bool
        Show no progress.

    Raises
    ------
    PublishError
        A file of somebody else is in the way.
    SuiteError
        A file of the suite was changed meanwhile, or the disk cannot be written.
    """
    places = [f"{UPLOAD}/{name}" for name in uploads]
    places += [member.file for member in copies]
    folder.begin([*places, *texts])
    about = _write_uploads(folder, uploads, quiet)
    files = {}
    for name, entry in about.items():
        files[f"{UPLOAD}/{name}"] = entry["sha256"]
    for member in copies:
        copy = Upload(member.name, (member,), is_archive=False)
        files[member.file] = write_upload(copy, folder.at(member.file))
    for place, text in texts.items():
        files[place] = write_text(folder.at(place), text)
    written = replace(export, uploads=about)
    record = {
        "version": version,
        "base_url": written.url,
        "form": written.form,
        "suite": {**suite, "archive": written.suite},
        "definitions": written.definitions,
        "uploads": written.uploads,
    }
    folder.finish(files, record)
    return written


def _write_uploads(
    folder: ExportFolder, uploads: Mapping[str, Upload], quiet: bool
) -> dict[str, dict[str, Any]]:
    """Write the uploads that are not there already, and return what the record says of each."""
    about = {}
    with Bar(total=len(uploads), desc="export", unit="file", disable=quiet) as bar:
        for name, upload in uploads.items():
            place = f"{UPLOAD}/{name}"
            path = folder.at(place)
            digest = folder.finished_upload(place) or write_upload(upload, path)
            about[name] = {
                "sha256": digest,
                "bytes": path.stat().st_size,
                "files": {member.name: member.file for member in upload.members},
            }
            bar.update()
    return about


def export_summary(export: Export, suite: str) -> str:
    """Return what was written, and the commands that upload, run and report it."""
    out = shlex.quote(str(export.out))
    folder = shlex.quote(str(export.out / UPLOAD))
    definitions = []
    for name, n_tasks in export.definitions.items():
        definitions.append(f"{name} ({n_tasks} tasks)")
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
