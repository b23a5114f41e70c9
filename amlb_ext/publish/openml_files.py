"""A suite as files that the OpenML client reads in place of a server.

The folder has the layout of the client's cache, ``org/openml/www/{datasets,tasks}/ID/``: ARFF,
descriptions, and a split file for each task. So every row and the exact split stay, which no server
takes. The numbers are not OpenML's, and begin where OpenML's do not reach.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from amlb_ext.core.display import format_count
from amlb_ext.core.files import write_text
from amlb_ext.publish.export.folder import OPENML_FILES, ExportFolder, about_suite
from amlb_ext.publish.limits import NAMESPACE
from amlb_ext.publish.plan import PlannedUnit, plan_suite
from amlb_ext.publish.unit import PublishUnit

#: The number of the first data set and of the first task.
FIRST_ID = 900_000_001
#: Where the client keeps what it had from www.openml.org.
_CACHE = "org/openml/www"
_TASK_TYPES = {1: "Supervised Classification", 2: "Supervised Regression"}


@dataclass(frozen=True, kw_only=True)
class OpenMLFiles:
    """What was written.

    Attributes
    ----------
    out : Path
    tasks : dict of int to str
        AMLB task and fold, ``TASK.FOLD``, by the number of the task.
    """

    out: Path
    tasks: dict[int, str]


def export_openml_files(
    directory: str | Path,
    out: str | Path | None = None,
    *,
    licences: Sequence[str] = (),
) -> OpenMLFiles:
    """Write the main tasks of a suite, a data set and a task for each fold.

    The same suite gives the same bytes.

    Parameters
    ----------
    directory : path
        A finished suite of tables.
    out : path, optional
        Default: the suite's name with ``_openml``, in the current directory. An earlier export is
        brought up to date.
    licences : sequence of str
        See :func:`amlb_ext.publish.limits.settle_licences`.

    Returns
    -------
    OpenMLFiles

    Raises
    ------
    PublishError
        The folder holds something else, a licence does not allow it, or a name or size that OpenML
        does not take.
    SuiteError
        There is no whole suite, or the disk cannot be written.
    """
    plan = plan_suite(directory, fit="all", licences=licences)
    suite = plan.suite
    target = Path(out) if out else Path(f"{suite.root.resolve().name}_openml")
    folder = ExportFolder.of(target, suite.root)
    numbered = dict(enumerate(plan.units, start=FIRST_ID))
    contents = _contents(numbered)
    folder.begin(contents)
    files = {}
    for place, make_text in contents.items():
        files[place] = write_text(folder.root / place, make_text())
    folder.finish(files, {"form": OPENML_FILES, "suite": about_suite(suite)})
    names = {number: _name(planned.unit) for number, planned in numbered.items()}
    return OpenMLFiles(out=folder.root, tasks=names)


def _contents(numbered: Mapping[int, PlannedUnit]) -> dict[str, Callable[[], str]]:
    """Return what makes each file, by its place; the table of all comes last."""
    contents: dict[str, Callable[[], str]] = {}
    for number, planned in numbered.items():
        unit = planned.unit
        data, task = f"{_CACHE}/datasets/{number}", f"{_CACHE}/tasks/{number}"
        contents[f"{data}/dataset.arff"] = unit.arff
        contents[f"{data}/description.xml"] = partial(_description, number, planned)
        contents[f"{data}/features.xml"] = partial(_features, unit)
        contents[f"{task}/datasplits.arff"] = partial(_split, unit)
        contents[f"{task}/task.xml"] = partial(_task, number, unit)
    contents["tasks.csv"] = partial(_index, numbered)
    return contents


def _name(unit: PublishUnit) -> str:
    return f"{unit.amlb_task.name}.{unit.fold}"


def _index(numbered: Mapping[int, PlannedUnit]) -> str:
    """Return the table of what each number is."""
    rows = []
    for number, planned in numbered.items():
        unit = planned.unit
        rows.append(
            {
                "task_id": number,
                "data_id": number,
                "amlb_task": unit.amlb_task.name,
                "fold": unit.fold,
                "rows": len(unit.rows),
                "licence": planned.licence.text,
                "sha256": unit.sha256,
            }
        )
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


def _add(
    parent: ElementTree.Element, tag: str, text: str = "", /, **attributes: str
) -> ElementTree.Element:
    """Add an element in OpenML's namespace, and return it."""
    child = ElementTree.SubElement(parent, NAMESPACE + tag, attributes)
    child.text = text or None
    return child


def _description(number: int, planned: PlannedUnit) -> str:
    """Return what would be sent of a data set, with what a server adds to it."""
    root = ElementTree.fromstring(planned.xml)
    _add(root, "id", str(number))
    _add(root, "version", "1")
    _add(root, "url", "dataset.arff")
    _add(root, "status", "active")
    _add(root, "md5_checksum", planned.unit.md5)
    return _xml(root)


def _features(unit: PublishUnit) -> str:
    """Return the columns of a data set, as a server counts them."""
    root = ElementTree.Element(f"{NAMESPACE}data_features")
    row, *ignored = unit.own_columns
    columns = zip(unit.attributes, unit.columns(), strict=True)
    for index, (attribute, values) in enumerate(columns):
        kind = "string" if attribute.text else "numeric"
        feature = _add(root, "feature")
        _add(feature, "index", str(index))
        _add(feature, "name", attribute.name)
        _add(feature, "data_type", kind if attribute.values is None else "nominal")
        for value in attribute.values or ():
            _add(feature, "nominal_value", value)
        _add(feature, "is_target", str(attribute.name == unit.target).lower())
        _add(feature, "is_ignore", str(attribute.name in ignored).lower())
        _add(feature, "is_row_identifier", str(attribute.name == row).lower())
        _add(feature, "number_of_missing_values", str(values.count(None)))
    return _xml(root)


def _split(unit: PublishUnit) -> str:
    """Return the split file: one repeat, one fold."""
    is_test, _, _ = unit.rows.layout()
    lines = ["@relation splits", "@attribute type {TRAIN,TEST}"]
    lines += [f"@attribute {name} NUMERIC" for name in ("rowid", "repeat", "fold")]
    lines.append("@data")
    for row, side in enumerate(np.where(is_test, "TEST", "TRAIN")):
        lines.append(f"{side},{row},0,0")
    return "\n".join(lines) + "\n"


def _task(number: int, unit: PublishUnit) -> str:
    """Return a task as a server describes it, with a procedure that no server has."""
    root = ElementTree.Element(f"{NAMESPACE}task")
    kind = unit.rows.procedure.task_type
    _add(root, "task_id", str(number))
    _add(root, "task_name", f"{_name(unit)}, split as in the suite")
    _add(root, "task_type_id", str(kind))
    _add(root, "task_type", _TASK_TYPES[kind])
    data_set = _add(_add(root, "input", name="source_data"), "data_set")
    _add(data_set, "data_set_id", str(number))
    _add(data_set, "target_feature", unit.target)
    name = "estimation_procedure"
    procedure = _add(_add(root, "input", name=name), name)
    _add(procedure, "id", "0")
    _add(procedure, "type", "customholdout")
    _add(procedure, "data_splits_url", "datasplits.arff")
    _add(procedure, "parameter", "1", name="number_repeats")
    _add(procedure, "parameter", "1", name="number_folds")
    name = "evaluation_measures"
    measures = _add(_add(root, "input", name=name), name)
    _add(measures, "evaluation_measure", unit.measure or "")
    return _xml(root)


def _xml(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("oml", NAMESPACE.strip("{}"))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def openml_files_summary(export: OpenMLFiles) -> str:
    """Return what was written, and the commands that check and read it."""
    out = shlex.quote(str(export.out))
    first = next(iter(export.tasks))
    return "\n".join(
        [
            f"{out}: {format_count(len(export.tasks), 'task')} in the files of OpenML's client; "
            "tasks.csv says what each number is",
            f"  check:    hardsynth verify {out}",
            f"  read:     hardsynth generate openml/t/{first} --openml-cache {out} -o DIR",
            f"            openml.config.set_root_cache_directory({str(export.out)!r}); "
            f"openml.tasks.get_task({first})",
        ]
    )
