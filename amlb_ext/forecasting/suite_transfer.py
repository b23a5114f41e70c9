"""A suite of forecasting tasks elsewhere: in a user's AMLB configuration, or at an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from amlb_ext.core.errors import PublishError
from amlb_ext.core.files import sha256_file
from amlb_ext.forecasting.suite_definitions import amlb_definitions
from amlb_ext.forecasting.suite_files import ForecastSuite
from amlb_ext.forecasting.suite_manifest import manifest_path
from amlb_ext.publish.export.archives import (
    Member,
    Upload,
    plan_archive,
    plan_copy,
    suite_member,
)
from amlb_ext.publish.export.base_url import check_base_url
from amlb_ext.publish.export.folder import ExportFolder
from amlb_ext.publish.export.write import Export, write_export
from amlb_ext.runner.install.change import Change, install
from amlb_ext.runner.install.copies import SuiteContent
from amlb_ext.suite.definition import amlb_configuration, yaml_text
from amlb_ext.suite.layout import Layout


def install_forecasts(
    folder: Path,
    userdir: Path | None = None,
    name: str | None = None,
    dry_run: bool = False,
) -> Change:
    """Add a suite of forecasting tasks to an AMLB user directory.

    The definitions there name the place where the suite stands now. ``uninstall`` takes it back as
    any other.

    Raises
    ------
    RunError, SuiteError
        As :func:`amlb_ext.runner.install.change.install`.
    """
    suite = ForecastSuite.load(folder)
    root = suite.layout.root
    content = SuiteContent(
        name=suite.name,
        seed=suite.manifest.seed,
        root=root,
        manifest=manifest_path(root),
        files=tuple(suite.manifest.files),
        definitions=amlb_definitions(suite, root),
    )
    return install(folder, userdir, name=name, dry_run=dry_run, content=content)


def export_forecasts(
    folder: str | Path,
    url: str,
    out: str | Path | None = None,
    *,
    quiet: bool = True,
) -> Export:
    """Write a user directory for AMLB whose series are read from an address.

    AMLB v2.1.7 gives the address of series to pandas as it is: it keeps no copy, and unpacks no
    archive. So each file is uploaded as it is, over http or https.

    Parameters
    ----------
    folder : path
        A finished suite of forecasting tasks.
    url : str
        Where the files in ``upload/`` will be found.
    out : path, optional
        Default: the suite's name with ``_export``, in the current directory.
    quiet : bool

    Raises
    ------
    PublishError
        The address is none that pandas can read from, or the folder holds something else.
    SuiteError
        There is no whole suite, or the disk cannot be written.
    """
    address = check_base_url(url)
    if address.startswith("s3://"):
        raise PublishError(
            f"--base-url {address}: AMLB reads series through pandas, which needs more packages "
            "for S3",
            "give --base-url https://HOST/FOLDER",
        )
    suite = ForecastSuite.load(folder)
    root = suite.layout.root
    target = Path(out) if out else Path(f"{root.resolve().name}_export")
    export_folder = ExportFolder.of(target, root)

    # everything is planned before the first byte is written
    listed = suite.manifest.files
    by_path = {}
    for task in suite.tasks:
        by_path[task.path] = plan_copy(suite_member(suite.layout, listed, task.path))
    members = [suite_member(suite.layout, listed, file) for file in listed]
    manifest = Member(
        name=suite.layout.relative(manifest_path(root)),
        file=suite.layout.relative(manifest_path(root)),
        path=manifest_path(root),
        sha256=sha256_file(manifest_path(root)),
    )
    whole = [Member(m.file, m.file, m.path, m.sha256) for m in members]
    whole_suite = plan_archive(f"{suite.name}-suite", [*whole, manifest])
    uploads = {upload.name: upload for upload in (*by_path.values(), whole_suite)}
    copies = [member for member in members if _is_copied(member.file)]
    texts = _definition_texts(suite, by_path, address)

    export = Export(
        out=export_folder.root,
        url=address,
        form="files",
        suite=whole_suite.name,
        definitions={
            name: len(entries) for name, entries in amlb_definitions(suite).items()
        },
    )
    return write_export(
        export,
        export_folder,
        uploads=uploads,
        copies=copies,
        texts=texts,
        version=suite.manifest.version,
        suite={
            "name": suite.name,
            "seed": suite.manifest.seed,
            "manifest": sha256_file(manifest_path(root)),
        },
        quiet=quiet,
    )


def _is_copied(file: str) -> bool:
    """Whether a file of the suite stands as it is in the export."""
    return file.startswith("extensions/") or file in (
        "frameworks.yaml",
        "constraints.yaml",
    )


def _definition_texts(
    suite: ForecastSuite, by_path: dict[str, Upload], address: str
) -> dict[str, str]:
    """Return AMLB's configuration and the definitions, by their place."""
    layout = Layout(Path())
    seed = suite.manifest.seed
    configuration = amlb_configuration(seed, constraints=True, data=False)
    contents: dict[str, Any] = {layout.relative(layout.config): configuration}
    for name, tasks in amlb_definitions(suite).items():
        entries = []
        for task in tasks:
            dataset = task["dataset"]
            place = f"{address}/{by_path[dataset['path']].name}"
            # a copy: the twin shares its data sets with the definition of all tasks
            entries.append({**task, "dataset": {**dataset, "path": place}})
        contents[layout.relative(layout.definition(name))] = entries
    return {place: yaml_text(content) for place, content in contents.items()}
