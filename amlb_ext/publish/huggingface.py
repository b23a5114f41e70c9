"""A suite as a data set of Hugging Face: the suite, a card, and metadata in the Croissant format.

The folder is the suite itself, file by file, so that every command takes it as one. Beside it stand
``README.md``, whose header tells the hub what to show and in which types, and ``croissant.json``,
which names each file with its sha256 and each column with its type.

References
----------
Croissant 1.0: https://docs.mlcommons.org/croissant/docs/croissant-spec.html.
Cards: https://huggingface.co/docs/hub/datasets-cards.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from amlb_ext.amlb.coding import NUMBERS
from amlb_ext.core.assets import asset_path
from amlb_ext.core.display import escape_controls, format_count, markdown_table
from amlb_ext.core.errors import PublishError
from amlb_ext.core.files import sha256_file, write_text
from amlb_ext.core.task import Kind, Origin
from amlb_ext.publish.croissant import (
    describe_data_set,
    field,
    file_object,
    record_set,
)
from amlb_ext.publish.describe import PAPER, certificate_verdict, licence_terms
from amlb_ext.publish.export.base_url import check_base_url
from amlb_ext.publish.export.export import all_members, write_copy
from amlb_ext.publish.export.folder import is_new_folder
from amlb_ext.publish.limits import Licence, settle_licences
from amlb_ext.suite.definition import yaml_text
from amlb_ext.suite.manifest import AmlbTask
from amlb_ext.suite.reader import Suite, open_suite
from amlb_ext.suite.sealed_json import json_text

#: Licences that the hub has an identifier for.
_HUB_LICENCE = re.compile(
    r"(?:cc-by(?:-nc)?(?:-sa)?-\d\.\d|cc0|mit|apache-2\.0|odbl|gpl-[23]\.0)(?![\w.])"
)
#: The hub's steps of sizes, in rows, and their names.
_SIZES = {1_000: "n<1K", 10_000: "1K<n<10K", 100_000: "10K<n<100K", 10**6: "100K<n<1M"}


@dataclass(frozen=True, kw_only=True)
class HubExport:
    """What was written.

    Attributes
    ----------
    out : Path
    tasks : tuple of str
        Names of the AMLB tasks.
    files : int
        Those of the suite.
    licences : dict of str to Licence
        By source task.
    """

    out: Path
    tasks: tuple[str, ...]
    files: int
    licences: dict[str, Licence]


#: Types of the columns of each CSV file of a suite, ``number`` or ``text``.
_Tables = Mapping[str, Mapping[str, str]]
_SC_TYPES = {"number": "sc:Float", "text": "sc:Text"}
_HUB_TYPES = {"number": "float64", "text": "string"}
_MEDIA_TYPES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".parquet": "application/vnd.apache.parquet",
}


def export_for_huggingface(
    directory: str | Path,
    out: str | Path | None = None,
    *,
    licences: Sequence[str] = (),
    url: str = "",
) -> HubExport:
    """Write a suite as a folder to upload to Hugging Face.

    The same suite gives the same bytes.

    Parameters
    ----------
    directory : path
        A finished suite of tables, or a folder of tasks.
    out : path, optional
        Default: the suite's name with ``_huggingface``, in the current directory. An earlier export
        of the same suite is written again.
    licences : sequence of str
        See :func:`amlb_ext.publish.limits.settle_licences`.
    url : str
        Where the data set will stand, for the metadata; may be empty.

    Returns
    -------
    HubExport

    Raises
    ------
    PublishError
        The folder holds something else, the suite is one of series, or a licence does not allow it.
    SuiteError
        There is no whole suite, or the disk cannot be written.
    """
    suite = open_suite(directory)
    origins = suite.manifest.origins
    if not origins:
        raise PublishError(
            f"{suite.root} holds {suite.manifest.holds}, of which no data set is made",
            "hardsynth export --base-url URL takes every suite",
        )
    settled = settle_licences(
        {task: origin.licence for task, origin in origins.items()}, licences
    )
    address = check_base_url(url) if url else ""
    folder = Path(out) if out else Path(f"{suite.root.resolve().name}_huggingface")
    manifest = suite.layout.manifest
    if not is_new_folder(folder, suite.root):
        earlier = folder / suite.layout.relative(manifest)
        is_same = earlier.is_file() and sha256_file(earlier) == sha256_file(manifest)
        if not is_same:
            raise PublishError(
                f"{folder} holds something else than this suite; nothing was written",
                "give an empty folder or a new one with -o",
            )
    # the manifest first, so that an interrupted export is known and goes on
    members = sorted(all_members(suite), key=lambda member: member.path != manifest)
    for member in members:
        write_copy(member, folder / member.file)
    tables = _read_tables(suite)
    digests = {member.file: member.sha256 for member in members}
    croissant = _croissant(suite, origins, settled, tables, digests, address)
    write_text(folder / "README.md", _card(suite, origins, settled, tables))
    write_text(folder / "croissant.json", json_text(croissant))
    names = tuple(task.name for task in suite.manifest.pairs)
    return HubExport(out=folder, tasks=names, files=len(members), licences=settled)


def _read_tables(suite: Suite) -> _Tables:
    """Return each CSV file of the tasks; parts of a task share their training files."""
    tables: dict[str, dict[str, str]] = {}
    for task in suite.manifest.pairs:
        for file in task.data_files:
            if file in tables:
                continue
            names = list(pd.read_csv(suite.layout.at(file), nrows=0).columns)
            # AMLB reads numbers alone in a folder of tasks
            numbers = set(names)
            if task.task in suite.tasks:
                columns = suite.tasks[task.task].coding.columns
                numbers = {one.written for one in columns if one.form in NUMBERS}
            if task.type is Kind.REGRESSION:
                numbers.add(task.target)
            else:
                numbers.discard(task.target)
            tables[file] = {
                name: "number" if name in numbers else "text" for name in names
            }
    return tables


def hub_licence(text: str) -> str:
    """Return the hub's identifier of a licence; ``other`` where it has none.

    Examples
    --------
    >>> [hub_licence(text) for text in ("CC BY-SA 4.0", "CC0 (Palmer Station)", "Public")]
    ['cc-by-sa-4.0', 'cc0-1.0', 'other']
    """
    words = re.sub(r"[\s_-]+", "-", text.strip().lower())
    found = _HUB_LICENCE.match(words)
    if found is None:
        return "other"
    return "cc0-1.0" if found[0] == "cc0" else found[0]


def _card(
    suite: Suite,
    origins: Mapping[str, Origin],
    licences: Mapping[str, Licence],
    tables: _Tables,
) -> str:
    """Return ``README.md``: a header for the hub, and what a reader must know."""
    template = asset_path("resources", "export", "huggingface_card.md")
    tasks = suite.manifest.pairs
    rows = []
    for task in tasks:
        row = {
            "configuration": task.name,
            "type": task.type.value,
            "target": _cell(task.target),
            "folds": format_count(len(task.folds), "fold"),
            "training rows": f"{min(task.train_rows):,} to {max(task.train_rows):,}",
            "test rows": f"{min(task.test_rows):,} to {max(task.test_rows):,}",
            "what it is": _cell(task.description),
        }
        rows.append(row)
    sources = []
    for name, origin in origins.items():
        verdict = "nothing was made hard"
        if name in suite.tasks:
            verdict = certificate_verdict(suite, name)
        cells = [
            name,
            origin.spec,
            licence_terms(licences[name]),
            origin.citation or "none stated",
            verdict,
        ]
        sources.append([_cell(cell) for cell in cells])
    text = template.read_text(encoding="utf-8").format(
        name=suite.name,
        version=suite.manifest.version,
        paper=PAPER,
        first=f"{tasks[0].name}.0",
        tasks=markdown_table(list(rows[0]), [list(row.values()) for row in rows]),
        sources=markdown_table(
            ["task", "source", "licence", "citation", "what it may be used for"],
            sources,
        ),
        manifest=sha256_file(suite.layout.manifest),
    )
    return yaml_text(_header(tasks, licences, tables)) + "---\n\n" + text


def _cell(text: str) -> str:
    """Return foreign text as it may stand in a table of a card."""
    plain = escape_controls(" ".join(text.split()))
    return re.sub(r"([|\\\[\]<>`*_])", r"\\\1", plain)


def _header(
    tasks: Sequence[AmlbTask], licences: Mapping[str, Licence], tables: _Tables
) -> dict[str, Any]:
    """Return the header of the card: licence, sizes, and a configuration for each fold."""
    terms = {hub_licence(licence.text) for licence in licences.values()}
    licence = terms.pop() if len(terms) == 1 else "other"
    n_rows = sum(sum(task.train_rows) + sum(task.test_rows) for task in tasks)
    size = next((name for most, name in _SIZES.items() if n_rows < most), "n>1M")
    header: dict[str, Any] = {"license": licence}
    if licence == "other":
        texts = dict.fromkeys(licence.text for licence in licences.values())
        header["license_name"] = "see-the-card"
        header["license_link"] = "README.md"
        header["license_details"] = "; ".join(texts)
    kinds = {task.type.is_classification for task in tasks}
    header["task_categories"] = [
        "tabular-classification" if is_classes else "tabular-regression"
        for is_classes in sorted(kinds, reverse=True)
    ]
    header["tags"] = ["tabular", "automl", "benchmark", "amlb", "hardsynth"]
    header["size_categories"] = [size]
    header["configs"], header["dataset_info"] = [], []
    for task in tasks:
        for fold, (train, test) in enumerate(zip(task.train, task.test, strict=True)):
            name = f"{task.name}.{fold}"
            # a CSV file has no types, and the hub would guess those of each file for itself
            features = [
                {"name": column, "dtype": _HUB_TYPES[kind]}
                for column, kind in tables[train].items()
            ]
            files = [{"split": "train", "path": train}, {"split": "test", "path": test}]
            header["configs"].append({"config_name": name, "data_files": files})
            header["dataset_info"].append({"config_name": name, "features": features})
    header["configs"][0]["default"] = True
    return header


def _croissant(
    suite: Suite,
    origins: Mapping[str, Origin],
    licences: Mapping[str, Licence],
    tables: _Tables,
    digests: Mapping[str, str],
    url: str,
) -> dict[str, Any]:
    """Return the metadata: every file of the suite, and every column of its tables."""
    citations = [PAPER, *(origin.citation for origin in origins.values())]
    texts = dict.fromkeys(licence.text for licence in licences.values())
    record_sets = []
    for file, columns in tables.items():
        name = Path(file).stem
        fields = []
        for column, kind in columns.items():
            key = f"{name}/{quote(column, safe='')}"
            fields.append(field(key, column, _SC_TYPES[kind], file=file))
        record_sets.append(record_set(name, fields))
    return describe_data_set(
        suite.name,
        description=f"A benchmark for the AutoML Benchmark, made by hardsynth "
        f"{suite.manifest.version}: {suite.manifest.command}",
        # of the program, and of the bytes: a suite has no number and no date of its own
        version=f"{suite.manifest.version}+{sha256_file(suite.layout.manifest)[:12]}",
        license=list(texts),
        citeAs="; ".join(dict.fromkeys(filter(None, citations))),
        creator={"@type": "sc:Organization", "name": "hardsynth"},
        keywords=["tabular", "automl", "benchmark", "amlb"],
        distribution=[
            file_object(
                file,
                file,
                _MEDIA_TYPES.get(Path(file).suffix, "text/plain"),
                sha256=digest,
            )
            for file, digest in sorted(digests.items())
        ],
        recordSet=record_sets,
        **({"url": url} if url else {}),
    )


def hub_summary(export: HubExport) -> str:
    """Return what was written, and the commands that check, upload and read it."""
    out = shlex.quote(str(export.out))
    return "\n".join(
        [
            f"{out}: a data set for Hugging Face, {format_count(len(export.tasks), 'AMLB task')}, "
            f"{format_count(export.files, 'file')}, README.md and croissant.json",
            f"  check:    hardsynth verify {out}",
            f"  upload:   hf upload OWNER/NAME {out} --repo-type dataset",
            f"  read:     datasets.load_dataset({str(export.out)!r}, '{export.tasks[0]}.0')",
            f"  run:      hardsynth run FRAMEWORK -u {out}",
        ]
    )
