"""What would be sent: the chosen folds of a suite as units, checked against every limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import PublishError, suggest_nearest
from amlb_ext.core.files import write_text
from amlb_ext.publish.describe import fitted, split_words, suite_texts, verdict
from amlb_ext.publish.licence import Licence, settle
from amlb_ext.publish.limits import DATA, STUDY, UPLOAD_DOUBT, UPLOAD_LIMIT, check_xml
from amlb_ext.publish.objects import alias_of, data_xml, suite_xml, task_xml
from amlb_ext.publish.rows import Fit
from amlb_ext.publish.unit import PublishUnit, build_unit
from amlb_ext.suite import MAIN_SUFFIXES, Suite

#: Stands for a number that the server will give.
UNKNOWN_ID = 0


@dataclass(frozen=True)
class PlannedUnit:
    """A unit with what is sent for it.

    Attributes
    ----------
    unit : Unit
    licence : Licence
    xml : str
        Description of the data set.
    notes : tuple of str
        What was cut, renamed or is odd; nothing of it stops publishing.
    """

    unit: PublishUnit
    licence: Licence
    xml: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PublishPlan:
    """Everything that would be sent.

    Attributes
    ----------
    suite : Suite
    units : tuple of Planned
    url : str
        Where the file suite can be had.
    """

    suite: Suite
    units: tuple[PlannedUnit, ...]
    url: str

    @property
    def alias(self) -> str:
        """The suite's alias when the server splits every task as wanted."""
        return alias_of(planned.unit for planned in self.units)

    def to_json(self) -> dict[str, Any]:
        """Return the plan with every text that would be sent, but the data files."""
        texts = suite_texts(self.suite, [planned.unit for planned in self.units], self.url)
        return {
            "suite": {"alias": self.alias, "tag": "hardsynth", **texts},
            "units": [_entry(self.suite, planned) for planned in self.units],
        }


def plan_suite(
    directory: str | Path,
    *,
    only: Sequence[str] = (),
    folds: Sequence[int] = (),
    fit: Fit = "repeat",
    licences: Sequence[str] = (),
    url: str = "",
) -> PublishPlan:
    """Choose and check what is to be published; no network.

    Parameters
    ----------
    directory : str or Path
        A finished suite.
    only : sequence of str
        AMLB tasks; those of the suite's main definition when empty.
    folds : sequence of int
        AMLB's fold numbers; all when empty.
    fit : str
        See :func:`amlb_ext.publish.rows.sizes`.
    licences : sequence of str
        See :func:`amlb_ext.publish.licence.settle`.
    url : str
        Where the file suite can be had.

    Returns
    -------
    Plan

    Raises
    ------
    PublishError
        A licence that does not allow it, a file that was changed, rows that are too few, or
        anything the server would refuse.
    SuiteError
        No finished suite, or no such task.
    """
    suite = Suite.load(directory)
    names = list(dict.fromkeys(only)) or [
        name for name, task in suite.amlb_tasks.items() if task.suffix in MAIN_SUFFIXES
    ]
    for name in names:
        if name not in suite.amlb_tasks:
            raise PublishError(
                f"--only {name}: no such task", suggest_nearest(name, suite.amlb_tasks)
            )
    sources = dict.fromkeys(suite.amlb_tasks[name].task for name in names)
    settled = settle({task: suite.tasks[task].origin.licence for task in sources}, licences)
    chosen = [
        (name, fold)
        for name in names
        for fold in range(len(suite.amlb_tasks[name].folds))
        if not folds or fold in folds
    ]
    if not chosen:
        most = max(len(suite.amlb_tasks[name].folds) for name in names) - 1
        raise PublishError(
            f"no task has fold {', '.join(map(str, folds))}", f"use 0 to {most}, as AMLB does"
        )
    units = []
    for name, fold in chosen:
        unit = build_unit(suite, name, fold, fit)
        licence = settled[unit.amlb_task.task]
        texts, notes = fitted(unit, licence, url)
        xml = data_xml(unit, texts)
        units.append(PlannedUnit(unit, licence, xml, (*unit.notes, *notes, *_doubts(unit))))
    plan = PublishPlan(suite, tuple(units), url)
    problems = list(_problems(plan))
    if problems:
        raise PublishError(
            f"the server would refuse {len(problems)} things: {'; '.join(problems[:5])}",
            "leave such tasks out with --only, or send fewer rows with --fit drop",
        )
    return plan


def _problems(plan: PublishPlan) -> Iterator[str]:
    """What a server would refuse; checked on what is really sent."""
    for planned in plan.units:
        unit = planned.unit
        where = f"{unit.amlb_task.name}, fold {unit.fold}"
        for problem in check_xml(planned.xml, DATA):
            yield f"{where}: {problem}"
        if unit.size > UPLOAD_LIMIT:
            yield (
                f"{where}: its data file has {megabytes(unit.size)}, more than "
                f"{megabytes(UPLOAD_LIMIT)}"
            )
        target = next(a for a in unit.attributes if a.name == unit.target)
        if target.values is not None and len(target.values) < 2:
            yield f"{where}: its target has a single class"
    texts = suite_texts(plan.suite, [planned.unit for planned in plan.units], plan.url)
    for problem in check_xml(suite_xml(texts, plan.alias, [UNKNOWN_ID]), STUDY):
        yield f"the suite: {problem}"


def _doubts(unit: PublishUnit) -> Iterator[str]:
    if UPLOAD_DOUBT < unit.size <= UPLOAD_LIMIT:
        yield (
            f"the data file has {megabytes(unit.size)}; a server whose uploads nobody configured "
            f"takes {megabytes(UPLOAD_DOUBT)}"
        )


def megabytes(size: int) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> megabytes(100 * 2**20), megabytes(20480)
    ('100 MB', '20 kB')
    """
    value = size / 2**20
    if value < 0.1:
        return f"{size / 2**10:.0f} kB"
    return f"{value:.0f} MB" if value >= 10 else f"{value:.1f} MB"


def write_plan(plan: PublishPlan, folder: Path) -> list[Path]:
    """Write all that would be sent: per unit an ARFF file and two XML files, and the suite's XML.

    Parameters
    ----------
    plan : Plan
    folder : Path

    Returns
    -------
    list of Path
        The numbers that the server gives stand as 0.
    """
    paths = []

    def put(name: str, text: str) -> None:
        write_text(folder / name, text)
        paths.append(folder / name)

    for planned in plan.units:
        unit = planned.unit
        put(f"{unit.name}.arff", unit.arff())
        put(f"{unit.name}.data.xml", planned.xml)
        put(f"{unit.name}.task.xml", task_xml(unit, UNKNOWN_ID))
    texts = suite_texts(plan.suite, [planned.unit for planned in plan.units], plan.url)
    put("suite.xml", suite_xml(texts, plan.alias, [UNKNOWN_ID] * len(plan.units)))
    return paths


def _entry(suite: Suite, planned: PlannedUnit) -> dict[str, Any]:
    unit, task = planned.unit, planned.unit.amlb_task
    return {
        "name": unit.name,
        "amlb_task": task.name,
        "fold": unit.fold,
        "source_fold": task.folds[unit.fold],
        "type": task.type.value,
        "rows": len(unit.rows),
        "train": [len(unit.rows.train), task.train_rows[unit.fold]],
        "test": [len(unit.rows.test), task.test_rows[unit.fold]],
        "repeats": unit.rows.repeats,
        "procedure": {"id": unit.rows.procedure.id, "name": unit.rows.procedure.name},
        "split": split_words(unit),
        "target": unit.target,
        "measure": unit.measure,
        "licence": {"text": planned.licence.text, "stated": planned.licence.stated},
        "verdict": verdict(suite, task.task),
        "bytes": unit.size,
        "md5": unit.md5,
        "label": unit.label,
        "renamed": unit.renamed,
        "notes": list(planned.notes),
        "data_xml": planned.xml,
        "task_xml": task_xml(unit, UNKNOWN_ID),
    }
