"""The XML of data sets, tasks and suites, written by the OpenML client's own objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

from amlb_ext.core.errors import PublishError
from amlb_ext.publish.unit import PublishUnit

TAG = "hardsynth"


def openml_client() -> ModuleType:
    """Import the client, which reads the user's configuration and makes its cache folder."""
    try:
        import openml
    except OSError as error:
        raise PublishError(
            f"the OpenML client cannot create its cache folder: {error}",
            "set OPENML_CACHE_DIR to a folder that you may write",
        ) from None
    return openml


def data_xml(unit: PublishUnit, texts: Mapping[str, str]) -> str:
    """Return the description of a unit's data set.

    Parameters
    ----------
    unit : PublishUnit
    texts : mapping
        As :func:`amlb_ext.publish.describe.fit_texts` gives them.
    """
    row, *ignored = unit.own_columns
    return data_set_xml(
        unit.name,
        texts,
        label=unit.label,
        target=unit.target,
        row_id=row,
        ignored=ignored,
    )


def data_set_xml(
    name: str,
    texts: Mapping[str, str],
    *,
    label: str,
    target: str | None = None,
    row_id: str | None = None,
    ignored: Sequence[str] = (),
) -> str:
    """Return the description of any data set.

    Parameters
    ----------
    name : str
    texts : mapping
        ``description``, ``citation``, ``creator``, ``licence``, ``original_data_url``.
    label : str
        Names the content, see :attr:`amlb_ext.publish.unit.PublishUnit.label`.
    target, row_id : str, optional
    ignored : sequence of str
        Columns that are no features.
    """
    # The client has no public way to the XML but to send it, which it does without a timeout: so
    # its private one is used here and below.
    data_set = openml_client().datasets.OpenMLDataset(
        name=name,
        description=texts["description"],
        data_format="arff",
        creator=texts["creator"],
        licence=texts["licence"],
        default_target_attribute=target,
        row_id_attribute=row_id,
        ignore_attribute=list(ignored) or None,
        version_label=label,
        citation=texts["citation"],
        # the server's schema refuses an empty element
        original_data_url=texts["original_data_url"] or None,
        # the file travels beside the description
        dataset="",
    )
    return str(data_set._to_xml())


def task_xml(unit: PublishUnit, data_id: int) -> str:
    """Return the inputs of a unit's task on a data set of the server."""
    openml = openml_client()
    procedure = unit.rows.procedure
    task = openml.tasks.create_task(
        task_type=openml.tasks.TaskType(procedure.task_type),
        dataset_id=data_id,
        estimation_procedure_id=procedure.id,
        target_name=unit.target,
        evaluation_measure=unit.measure,
    )
    return str(task._to_xml())


def suite_xml(texts: Mapping[str, str], alias: str, task_ids: Sequence[int]) -> str:
    """Return the description of a suite of tasks on the server."""
    suite = openml_client().study.create_benchmark_suite(
        name=texts["name"],
        description=texts["description"],
        task_ids=list(task_ids),
        alias=alias,
    )
    return str(suite._to_xml())


def alias_of(units: Iterable[PublishUnit], task_ids: Iterable[int] = ()) -> str:
    """Return the alias of a suite: the same units, with the same measures, give the same.

    Parameters
    ----------
    units : iterable of PublishUnit
    task_ids : iterable of int, optional
        Set where a suite of this content stands on the server already, but with other tasks,
        since some were removed there and sent again: aliases cannot be used twice.
    """
    # the measure is a task's, so that a unit's key does not tell it
    contents = []
    for unit in units:
        measure = unit.measure or ""
        contents.append([unit.key, measure])
    content = json.dumps(sorted(contents))
    for number in sorted(task_ids):
        content += f" {number}"
    digest = hashlib.sha256(content.encode()).hexdigest()
    return f"hardsynth-{digest[:12]}"
