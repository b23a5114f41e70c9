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
from pathlib import Path
from typing import Any

import yaml

from amlb_ext.core.errors import PublishError, suggest_nearest
from amlb_ext.core.files import sha256_file
from amlb_ext.publish.export.archives import (
    Member,
    Upload,
    changed_error,
    damaged_manifest,
    plan_archive,
    plan_copy,
    suite_member,
)
from amlb_ext.publish.export.base_url import check_base_url
from amlb_ext.publish.export.folder import ExportFolder
from amlb_ext.publish.export.write import Export, write_export
from amlb_ext.suite import AmlbTask, Layout, SuiteFiles
from amlb_ext.suite.definition import amlb_configuration, yaml_text

#: How the data are packed: an archive per AMLB task, or every file as it is.
FORMS = ("archives", "files")
#: Names that are safe as parts of an address and of a path, wherever AMLB runs.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


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
    suite = SuiteFiles.load(directory)
    root = suite.layout.root
    out = Path(out) if out else Path(f"{root.resolve().name}_export")
    folder = ExportFolder.of(out, root)
    for name in (*suite.amlb_tasks, *suite.definitions):
        if not _NAME.fullmatch(name):
            raise damaged_manifest(f"{name!r} cannot name a task or a definition")

    # everything is planned before the first byte is written
    by_task: dict[str, list[Upload]] = {}
    # by name: parts of a task share their training file, which is uploaded once
    uploads: dict[str, Upload] = {}
    for name, task in suite.amlb_tasks.items():
        by_task[name] = _plan_uploads(suite, task, form)
        for upload in by_task[name]:
            uploads[upload.name] = upload
    all_members = list(_all_members(suite))
    whole_suite = plan_archive(f"{suite.manifest.name}-suite", all_members)
    uploads[whole_suite.name] = whole_suite
    copies = []
    for file in suite.manifest.files:
        if _is_copied(file):
            copies.append(_suite_member(suite, file))
    texts = _definition_texts(suite, by_task, address=address, form=form)
    manifest = suite.manifest
    export = Export(
        out=folder.root,
        url=address,
        form=form,
        suite=whole_suite.name,
        definitions={name: len(tasks) for name, tasks in suite.definitions.items()},
    )
    return write_export(
        export,
        folder,
        uploads=uploads,
        copies=copies,
        texts=texts,
        version=manifest.version,
        suite={
            "name": manifest.name,
            "seed": manifest.seed,
            "command": manifest.command,
            "manifest": sha256_file(suite.layout.manifest),
        },
        quiet=quiet,
    )


def _plan_uploads(suite: SuiteFiles, task: AmlbTask, form: str) -> list[Upload]:
    """Return an AMLB task's uploads; a list of files has the training files first."""
    if form == "files":
        copies = []
        for file in (*task.train, *task.test):
            member = _suite_member(suite, file)
            if not _NAME.fullmatch(member.name.removesuffix(".csv")):
                raise damaged_manifest(f"{file!r} is not a data file of a suite")
            copies.append(plan_copy(member))
        return copies
    # named by the task, whatever task the files belong to, and numbered as AMLB numbers folds
    members = []
    for side, files in (("train", task.train), ("test", task.test)):
        for fold, file in enumerate(files):
            name = f"{task.name}_{side}_{fold}.csv"
            members.append(_suite_member(suite, file, name))
    return [plan_archive(task.name, members)]


def _suite_member(suite: SuiteFiles, file: str, name: str = "") -> Member:
    return suite_member(suite.layout, suite.manifest.files, file, name)


def _all_members(suite: SuiteFiles) -> Iterator[Member]:
    """Yield what makes the suite: certificates written since included, runs and pages left out."""
    for file in suite.manifest.files:
        yield _suite_member(suite, file, file)
    layout = suite.layout
    # what is written after the manifest, and the manifest itself, it cannot list
    later = [layout.manifest]
    for task in suite.tasks:
        later += [layout.task_certificate(task), layout.task_null(task)]
    for path in later:
        file = layout.relative(path)
        if path.is_file() and file not in suite.manifest.files:
            yield Member(name=file, file=file, path=path, sha256=sha256_file(path))


def _is_copied(file: str) -> bool:
    """Whether a file of the suite stands as it is in the export."""
    if file.startswith("extensions/"):
        return True
    layout = Layout(Path())
    copied = (layout.frameworks, layout.constraints)
    return file in [layout.relative(path) for path in copied]


def _definition_texts(
    suite: SuiteFiles, by_task: Mapping[str, list[Upload]], *, address: str, form: str
) -> dict[str, str]:
    """Return AMLB's configuration and the definitions, by their place."""
    manifest = suite.manifest
    # relative places, which are the same in the suite and in the export
    layout = Layout(Path())
    config_place = layout.relative(layout.config)
    has_constraints = layout.relative(layout.constraints) in manifest.files
    contents: dict[str, Any] = {
        config_place: amlb_configuration(
            manifest.seed,
            constraints=has_constraints,
            data=False,
        )
    }
    for name in suite.definitions:
        place = layout.relative(layout.definition(name))
        try:
            amlb_task_of = _task_names(suite, name)
            entries = []
            for entry in _read_entries(suite, place):
                uploads = by_task[amlb_task_of[entry["name"]]]
                dataset = _dataset_entry(entry, uploads, address=address, form=form)
                entries.append({**entry, "dataset": dataset})
        # whatever a definition that somebody else wrote may lack
        except (yaml.YAMLError, KeyError, TypeError, ValueError, RecursionError):
            raise damaged_manifest(
                f"its definition {name} is not one of AMLB's"
            ) from None
        contents[place] = entries
    return {place: yaml_text(content) for place, content in contents.items()}


def _task_names(suite: SuiteFiles, definition: str) -> dict[str, str]:
    """Return the AMLB task behind each name in a definition."""
    pair = suite.manifest.pair
    if pair is None or definition != pair.name:
        return {task: task for task in suite.manifest.amlb_tasks}
    # the twin's entries have the names of the original's
    task_of = {}
    for task, entry in pair.tasks.items():
        task_of[entry.name] = task
    return task_of


def _read_entries(suite: SuiteFiles, file: str) -> list[dict[str, Any]]:
    """Return the suite's own definition, in its order."""
    member = _suite_member(suite, file)
    # what cannot be read has no content, and so not the one that was recorded
    try:
        blob = member.path.read_bytes()
    except OSError:
        blob = b""
    if hashlib.sha256(blob).hexdigest() != member.sha256:
        raise changed_error(member)
    return list(yaml.safe_load(blob))


def _dataset_entry(
    entry: Mapping[str, Any], uploads: Sequence[Upload], *, address: str, form: str
) -> dict[str, Any]:
    """Return the ``dataset`` of a definition's entry, with addresses in place of files."""
    addresses = [f"{address}/{upload.name}" for upload in uploads]
    if form == "files":
        folds = len(addresses) // 2
        dataset: dict[str, Any] = {
            "train": addresses[:folds],
            "test": addresses[folds:],
        }
    else:
        dataset = {"path": addresses[0]}
    for key in ("target", "type"):
        dataset[key] = entry["dataset"][key]
    return dataset
