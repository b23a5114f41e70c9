"""What an export has for uploading, and what it tells."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.paths import amlb_places
from amlb_ext.core.progress import Bar
from amlb_ext.publish.export.archives import Upload, write_upload
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
    uploads: dict[str, dict[str, Any]]

    @property
    def bytes(self) -> int:
        """Size of all uploads."""
        return sum(int(about["bytes"]) for about in self.uploads.values())


def write_uploads(
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
