"""A suite as a small AMLB user directory whose data are fetched from an address.

What AMLB v2.1.7 does with an address (``amlb/datasets/file.py``): it keeps the file below the
input folder under the task's name and the address's last part, unpacks an archive into a folder
of the archive's name, looks in it for ``<name>_train_<k>.csv`` and ``<name>_test_<k>.csv`` from 0
on, and asks for nothing that is there already.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tqdm import tqdm

from amlb_ext.core.errors import PublishError, SuiteError, suggest_nearest
from amlb_ext.core.files import sha256_file, write_text
from amlb_ext.publish.export.archives import Member, Upload, archive, changed, copy, write_upload
from amlb_ext.publish.export.base_url import check_base_url
from amlb_ext.publish.export.folder import UPLOAD, ExportFolder
from amlb_ext.suite import AmlbTask, Layout, Suite
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.manifest import open_manifest

#: How the data are packed: an archive per AMLB task, or every file as it is.
FORMS = ("archives", "files")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Export:
    """What was written.

    Attributes
    ----------
    out : Path
        The user directory.
    url : str
        Where ``upload/`` is expected, without its last slash.
    form : str
        One of :data:`FORMS`.
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
    if form not in FORMS:
        raise PublishError(f"there is no form {form!r}", suggest_nearest(form, FORMS))
    suite = Suite.load(directory)
    root = suite.layout.root
    if open_manifest(suite.layout.manifest).content is None:
        raise _damaged("its manifest was changed after it was written")
    target = ExportFolder.of(Path(out) if out else Path(f"{root.resolve().name}_export"), root)
    for name in (*suite.amlb_tasks, *suite.definitions):
        if not _NAME.fullmatch(name):
            raise _damaged(f"{name!r} cannot name a task or a definition")
    packed = {name: _pack(suite, task, form) for name, task in suite.amlb_tasks.items()}
    whole = archive(f"{suite.manifest.name}-suite", list(_everything(suite)))
    uploads = {upload.name: upload for some in packed.values() for upload in some}
    uploads[whole.name] = whole
    copies = [_member(suite, file) for file in suite.manifest.files if _travels(file)]
    texts = _texts(suite, packed, address, form)

    target.begin([*(f"{UPLOAD}/{name}" for name in uploads), *(m.file for m in copies), *texts])
    about, files = {}, {}
    with tqdm(total=len(uploads), desc="export", unit="file", disable=quiet) as bar:
        for name, upload in uploads.items():
            place = f"{UPLOAD}/{name}"
            digest = target.kept(place) or write_upload(upload, target.at(place))
            about[name] = {
                "sha256": digest,
                "bytes": target.at(place).stat().st_size,
                "files": {member.name: member.file for member in upload.members},
            }
            files[place] = digest
            bar.update()
    for member in copies:
        files[member.file] = write_upload(
            Upload(member.name, (member,), is_archive=False), target.at(member.file)
        )
    for place, text in texts.items():
        files[place] = write_text(target.at(place), text)
    done = Export(
        out=target.root,
        url=address,
        form=form,
        suite=whole.name,
        definitions={name: len(tasks) for name, tasks in suite.definitions.items()},
        uploads=about,
    )
    target.finish(files, _record(suite, done))
    return done


def _pack(suite: Suite, task: AmlbTask, form: str) -> list[Upload]:
    """Return an AMLB task's uploads; a list of files has the training files first."""
    sides = {"train": task.train, "test": task.test}
    if form == "files":
        some = [_member(suite, file) for files in sides.values() for file in files]
        for member in some:
            if not _NAME.fullmatch(member.name.removesuffix(".csv")):
                raise _damaged(f"{member.file!r} is no data file of a suite")
        return [copy(member) for member in some]
    members = [  # whatever task they belong to, and numbered as AMLB numbers folds
        _member(suite, file, f"{task.name}_{side}_{fold}.csv")
        for side, files in sides.items()
        for fold, file in enumerate(files)
    ]
    return [archive(task.name, members)]


def _member(suite: Suite, file: str, name: str = "") -> Member:
    """Return a file of the suite, which the manifest lists and which stands inside."""
    root = suite.layout.root
    if file not in suite.manifest.files:
        raise _damaged(f"{file!r} is not among the suite's files")
    path = suite.layout.at(file)
    if not path.resolve().is_relative_to(root.resolve()):
        raise _damaged(f"{file!r} is no file inside the suite")
    if not path.is_file():
        raise SuiteError(
            f"{file} of the suite is missing",
            "see hardsynth verify; the command that made the suite writes it again",
        )
    return Member(name or Path(file).name, file, path, suite.manifest.files[file])


def _damaged(what: str) -> SuiteError:
    return SuiteError(
        f"the manifest is damaged: {what}", "run the command that generated the suite again"
    )


def _everything(suite: Suite) -> Iterator[Member]:
    """Yield what makes the suite, certificates written since included, runs and pages not."""
    for file in suite.manifest.files:
        yield _member(suite, file, file)
    layout = suite.layout
    later = [layout.manifest]
    for task in suite.tasks:
        later += [layout.task_certificate(task), layout.task_null(task)]
    for path in later:
        file = layout.relative(path)
        if path.is_file() and file not in suite.manifest.files:
            yield Member(file, file, path, sha256_file(path))


def _travels(file: str) -> bool:
    """Whether a file of the suite stands as it is in the export."""
    layout = Layout(Path())
    return file.startswith("extensions/") or file in map(
        layout.relative, (layout.frameworks, layout.constraints)
    )


def _texts(
    suite: Suite, packed: Mapping[str, list[Upload]], address: str, form: str
) -> dict[str, str]:
    """Return AMLB's configuration and the definitions, by their place."""
    manifest, layout = suite.manifest, Layout(Path())
    constraints = layout.relative(layout.constraints) in manifest.files
    contents: dict[Path, Any] = {
        layout.config: amlb_configuration(manifest.seed, constraints=constraints, data=False)
    }
    for name in suite.definitions:
        place = layout.definition(name)
        tasks = {task: task for task in manifest.amlb_tasks}
        if manifest.pair is not None and name == manifest.pair.name:
            tasks = {about["name"]: task for task, about in manifest.pair.tasks.items()}
        try:
            contents[place] = [
                {**entry, "dataset": _dataset(entry, packed[tasks[entry["name"]]], address, form)}
                for entry in _entries(suite, layout.relative(place))
            ]
        except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
            raise _damaged(f"it vouches for a definition {name} that is none") from None
    return {layout.relative(path): yaml_text(content) for path, content in contents.items()}


def _entries(suite: Suite, file: str) -> list[dict[str, Any]]:
    """Return the suite's own definition, in its order."""
    member = _member(suite, file)
    try:
        blob = member.path.read_bytes()
    except OSError:
        blob = b""
    if hashlib.sha256(blob).hexdigest() != member.sha256:
        raise changed(member)
    return list(yaml.safe_load(blob))


def _dataset(
    entry: Mapping[str, Any], uploads: Sequence[Upload], address: str, form: str
) -> dict[str, Any]:
    """Return the ``dataset`` of a definition's entry, with addresses in place of files."""
    addresses = [f"{address}/{upload.name}" for upload in uploads]
    where: dict[str, Any] = {"path": addresses[0]}
    if form == "files":
        folds = len(addresses) // 2
        where = {"train": addresses[:folds], "test": addresses[folds:]}
    return {**where, **{key: entry["dataset"][key] for key in ("target", "type")}}


def _record(suite: Suite, done: Export) -> dict[str, Any]:
    """Return what ties an export to its suite."""
    manifest = suite.manifest
    return {
        "version": manifest.version,
        "base_url": done.url,
        "form": done.form,
        "suite": {
            "name": manifest.name,
            "seed": manifest.seed,
            "command": manifest.command,
            "manifest": sha256_file(suite.layout.manifest),
            "archive": done.suite,
        },
        "definitions": done.definitions,
        "uploads": done.uploads,
    }
