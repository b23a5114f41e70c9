"""Plan what would be sent: the chosen folds of a suite as units, checked against every limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import PublishError, suggest_nearest
from amlb_ext.core.files import write_text
from amlb_ext.publish.describe import (
    TAG,
    alias_of,
    certificate_verdict,
    data_description,
    data_set_xml,
    describe_split,
    fit_texts,
    suite_texts,
    suite_xml,
    task_xml,
)
from amlb_ext.publish.limits import (
    DATA,
    STUDY,
    UPLOAD_DEFAULT,
    UPLOAD_LIMIT,
    Licence,
    check_xml,
    settle_licences,
)
from amlb_ext.publish.rows import Fit
from amlb_ext.publish.unit import DataSet, PublishUnit, build_unit
from amlb_ext.suite import MAIN_SUFFIXES, SuiteFiles

#: Stands for a number that the server will give.
UNKNOWN_ID = 0


@dataclass(frozen=True, kw_only=True)
class PlannedUnit:
    """A unit with what is sent for it.

    Attributes
    ----------
    unit : PublishUnit
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


@dataclass(frozen=True, kw_only=True)
class PublishPlan:
    """Everything that would be sent.

    Attributes
    ----------
    suite : SuiteFiles
    units : tuple of PlannedUnit
    url : str
        Where the file suite can be had.
    """

    suite: SuiteFiles
    units: tuple[PlannedUnit, ...]
    url: str

    @property
    def alias(self) -> str:
        """The suite's alias when the server splits every task as wanted."""
        return alias_of(planned.unit for planned in self.units)

    @property
    def texts(self) -> dict[str, str]:
        """Name and description of the suite when the server splits every task as wanted."""
        units = [planned.unit for planned in self.units]
        return suite_texts(self.suite, units, self.url)

    def to_json(self) -> dict[str, Any]:
        """Return the plan with every text that would be sent, but the data files."""
        return {
            "suite": {"alias": self.alias, "tag": TAG, **self.texts},
            "units": [_unit_json(self.suite, planned) for planned in self.units],
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
        See :func:`amlb_ext.publish.rows.choose_sizes`.
    licences : sequence of str
        See :func:`amlb_ext.publish.limits.settle_licences`.
    url : str
        Where the file suite can be had.

    Returns
    -------
    PublishPlan

    Raises
    ------
    PublishError
        A licence that does not allow it, a file that was changed, rows that are too few, or
        anything the server would refuse.
    SuiteError
        No finished suite, or no such task.
    """
    suite = SuiteFiles.load(directory)
    main = [
        name for name, task in suite.amlb_tasks.items() if task.suffix in MAIN_SUFFIXES
    ]
    names = named_tasks(only, suite.amlb_tasks) or main
    # licences are settled first, for all tasks at once: one refusal names all that lack one
    source_licences = {}
    for name in names:
        task = suite.amlb_tasks[name].task
        source_licences[task] = suite.tasks[task].origin.licence
    settled = settle_licences(source_licences, licences)
    units = []
    # all files are made here once, for their checksums: what is sent later must be the same
    for name, fold in _choose_folds(suite, names, folds):
        unit = build_unit(suite, name, fold, fit=fit)
        licence = settled[unit.amlb_task.task]
        texts, notes = fit_texts(
            suite,
            unit.amlb_task.task,
            licence,
            description=data_description(unit, licence, url),
        )
        notes = [*unit.notes, *notes]
        if UPLOAD_DEFAULT < unit.size <= UPLOAD_LIMIT:
            notes.append(
                f"the data file has {megabytes(unit.size)}; a server whose uploads nobody "
                f"configured takes {megabytes(UPLOAD_DEFAULT)}"
            )
        row, *ignored = unit.own_columns
        xml = data_set_xml(unit, texts, target=unit.target, row_id=row, ignored=ignored)
        units.append(
            PlannedUnit(unit=unit, licence=licence, xml=xml, notes=tuple(notes))
        )
    plan = PublishPlan(suite=suite, units=tuple(units), url=url)
    problems = list(_find_problems(plan))
    if problems:
        listed = "; ".join(problems[:5])
        raise PublishError(
            f"the server would refuse this for {len(problems)} reasons: {listed}",
            "leave such tasks out with --only, or send fewer rows with --fit drop",
        )
    return plan


def named_tasks(only: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the tasks that ``--only`` names, each once; raise for one that is not known."""
    for name in only:
        if name not in known:
            remedy = suggest_nearest(name, known)
            raise PublishError(f"--only {name}: no such task", remedy)
    return list(dict.fromkeys(only))


def _choose_folds(
    suite: SuiteFiles, names: Sequence[str], folds: Sequence[int]
) -> list[tuple[str, int]]:
    """Return task and fold of each unit; a task need not have all folds that were asked for."""
    n_folds = {name: len(suite.amlb_tasks[name].folds) for name in names}
    chosen = []
    for name in names:
        wanted = range(n_folds[name])
        chosen += [(name, fold) for fold in wanted if not folds or fold in folds]
    if not chosen:
        raise PublishError(
            f"no task has fold {', '.join(map(str, folds))}",
            f"use 0 to {max(n_folds.values()) - 1}, as AMLB does",
        )
    return chosen


def _find_problems(plan: PublishPlan) -> Iterator[str]:
    """Yield what a server would refuse; checked on what is really sent."""
    for planned in plan.units:
        unit = planned.unit
        task = unit.amlb_task
        where = f"{task.name}, fold {unit.fold}"
        for problem in data_problems(unit, planned.xml):
            yield f"{where}: {problem}"
        # rows that were left out may have been the last of a class
        classes = unit.target_attribute.values
        if classes is not None and len(classes) < 2:
            yield f"{where}: its target has a single class"
    # as if all tasks were good: the suite's texts can only become shorter
    xml = suite_xml(plan.texts, plan.alias, [UNKNOWN_ID])
    for problem in check_xml(xml, STUDY):
        yield f"the suite: {problem}"


def data_problems(data: DataSet, xml: str) -> Iterator[str]:
    """Yield what a server would refuse of a data set and its description."""
    yield from check_xml(xml, DATA)
    if data.size > UPLOAD_LIMIT:
        size = megabytes(data.size)
        yield f"its data file has {size}, more than {megabytes(UPLOAD_LIMIT)}"


def megabytes(size: int) -> str:
    """Return a number of bytes with its unit.

    Examples
    --------
    >>> megabytes(100 * 2**20), megabytes(20480)
    ('100 MB', '20 kB')
    """
    number = size / 2**20
    if number < 0.1:
        return f"{size / 2**10:.0f} kB"
    if number < 10:
        return f"{number:.1f} MB"
    return f"{number:.0f} MB"


def write_plan(plan: PublishPlan, folder: Path) -> list[Path]:
    """Write all that would be sent: per unit an ARFF file and two XML files, and the suite's XML.

    Parameters
    ----------
    plan : PublishPlan
    folder : Path

    Returns
    -------
    list of Path
        The files; numbers that the server will give stand in them as 0.
    """
    contents = {}
    for planned in plan.units:
        unit = planned.unit
        contents[f"{unit.name}.arff"] = unit.arff()
        contents[f"{unit.name}.data.xml"] = planned.xml
        contents[f"{unit.name}.task.xml"] = task_xml(unit, UNKNOWN_ID)
    unknown_ids = [UNKNOWN_ID] * len(plan.units)
    contents["suite.xml"] = suite_xml(plan.texts, plan.alias, unknown_ids)
    return write_contents(folder, contents)


def write_contents(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write texts into a folder by their names, and return the files."""
    for name, text in contents.items():
        write_text(folder / name, text)
    return [folder / name for name in contents]


def _unit_json(suite: SuiteFiles, planned: PlannedUnit) -> dict[str, Any]:
    unit = planned.unit
    task = unit.amlb_task
    rows = unit.rows
    procedure = rows.procedure
    return {
        "name": unit.name,
        "amlb_task": task.name,
        "fold": unit.fold,
        "source_fold": task.folds[unit.fold],
        "type": task.type.value,
        "rows": len(rows),
        # how many are sent, of how many there are
        "train": [len(rows.train), task.train_rows[unit.fold]],
        "test": [len(rows.test), task.test_rows[unit.fold]],
        "repeats": rows.repeats,
        "procedure": {"id": procedure.id, "name": procedure.name},
        "split": describe_split(unit),
        "target": unit.target,
        "measure": unit.measure,
        "licence": asdict(planned.licence),
        "verdict": certificate_verdict(suite, task.task),
        "bytes": unit.size,
        "md5": unit.md5,
        "label": unit.label,
        "renamed": unit.renamed,
        "notes": list(planned.notes),
        "data_xml": planned.xml,
        "task_xml": task_xml(unit, UNKNOWN_ID),
    }
