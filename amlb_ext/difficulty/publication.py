"""Difficulty data on an OpenML server: a data set for each task, linked to its source.

A row names the row of the source's data set, and its features stay there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.display import (
    format_percent,
    is_known,
    shorten_text,
    text_table,
)
from amlb_ext.core.errors import HardsynthError, PublishError, suggest_nearest
from amlb_ext.core.files import write_text
from amlb_ext.difficulty.tasks import ROW_COLUMNS, collect_rows, collect_tasks
from amlb_ext.publish import steps
from amlb_ext.publish.arff import Attribute, arff_text
from amlb_ext.publish.describe import PAPER, data_set_xml, fit_to_limits, source_address
from amlb_ext.publish.limits import (
    DATA,
    UPLOAD_LIMIT,
    Licence,
    check_xml,
    server_name,
    settle_licences,
)
from amlb_ext.publish.lookup import Journal
from amlb_ext.publish.plan import megabytes
from amlb_ext.publish.server import FATAL, Refused, Server, Uncertain, host_name
from amlb_ext.suite import SuiteFiles

#: Names of a task are told in the description; the others are columns of the data set.
_NOT_SENT = {"task", "source"}
#: Number of the record: a source row stands in the test rows of several folds, where these overlap.
_ROW_ID = "record"


@dataclass(frozen=True, kw_only=True)
class DifficultyUnit:
    """The difficulty of one task's rows, ready to be sent.

    Attributes
    ----------
    task : str
    content : str
        The ARFF file.
    rows : int
    licence : Licence
    xml : str
    notes : tuple of str
        What was cut or changed in the texts.
    """

    task: str
    content: str
    rows: int
    licence: Licence
    xml: str
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The data set's name on the server."""
        return server_name(f"hardsynth.difficulty.{self.task}")

    @property
    def key(self) -> str:
        """Names the content: two units of one key are the same data set."""
        return content_key(self.content)

    @property
    def label(self) -> str:
        """The key as it is written into the data set's ``version_label``."""
        return f"hardsynth-{self.key}"

    @property
    def md5(self) -> str:
        """Of the data file."""
        return hashlib.md5(self.content.encode(), usedforsecurity=False).hexdigest()

    def arff(self) -> str:
        """Return the data file."""
        return self.content

    def to_json(self) -> dict[str, Any]:
        """Return what would be sent, but the data file."""
        return {
            "name": self.name,
            "task": self.task,
            "rows": self.rows,
            "bytes": len(self.content.encode()),
            "md5": self.md5,
            "licence": {"text": self.licence.text, "stated": self.licence.stated},
            "notes": list(self.notes),
            "data_xml": self.xml,
        }


@dataclass(kw_only=True)
class DifficultyOutcome:
    """What became of a data set.

    Attributes
    ----------
    name, task : str
    status : str
        ``sent``, ``there`` (it was on the server already), ``waiting`` (the same command
        continues) or ``failed``.
    reason : str
        Of the last two.
    data_id : int, optional
    """

    name: str
    task: str
    status: str = "waiting"
    reason: str = "not tried yet"
    data_id: int | None = None


def content_key(content: str) -> str:
    """Return what names the content of a data file."""
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def plan_difficulty(
    directory: str | Path,
    *,
    only: Sequence[str] = (),
    licences: Sequence[str] = (),
) -> list[DifficultyUnit]:
    """Make and check the data sets of a suite's difficulty; no network.

    Parameters
    ----------
    directory : path
        A finished suite.
    only : sequence of str
        Tasks of the suite; all when empty.
    licences : sequence of str
        See :func:`amlb_ext.publish.limits.settle_licences`.

    Raises
    ------
    PublishError
        A licence that does not allow it, no such task, or anything the server would refuse.
    SuiteError
        No finished suite.
    """
    suite = SuiteFiles.load(directory)
    for name in only:
        if name not in suite.tasks:
            raise PublishError(
                f"--only {name}: no such task", suggest_nearest(name, suite.tasks)
            )
    names = list(dict.fromkeys(only)) or list(suite.tasks)
    stated = {name: suite.tasks[name].origin.licence for name in names}
    settled = settle_licences(stated, licences)
    rows = collect_rows(suite)
    tasks = collect_tasks(suite, rows).set_index("task")
    units = []
    for name in names:
        about = {str(key): value for key, value in tasks.loc[name].items()}
        unit = _plan_unit(
            suite,
            name,
            rows[rows["task"] == name],
            about=about,
            licence=settled[name],
        )
        problems = list(check_xml(unit.xml, DATA))
        size = len(unit.content.encode())
        if size > UPLOAD_LIMIT:
            problems.append(
                f"its data file has {megabytes(size)}, more than {megabytes(UPLOAD_LIMIT)}"
            )
        if problems:
            raise PublishError(
                f"the server would refuse the difficulty of {name}: {problems[0]}",
                "leave the task out with --only",
            )
        units.append(unit)
    return units


def _plan_unit(
    suite: SuiteFiles,
    task: str,
    rows: pd.DataFrame,
    *,
    about: dict[str, Any],
    licence: Licence,
) -> DifficultyUnit:
    content = _arff(task, rows)
    origin = suite.tasks[task].origin
    texts, notes = fit_to_limits(
        {
            "description": _description(suite, task, about, licence),
            "citation": origin.citation or PAPER,
            "creator": f"hardsynth {suite.manifest.version}",
            "licence": licence.text,
            "original_data_url": source_address(origin),
        }
    )
    label = f"hardsynth-{content_key(content)}"
    name = server_name(f"hardsynth.difficulty.{task}")
    return DifficultyUnit(
        task=task,
        content=content,
        rows=len(rows),
        licence=licence,
        xml=data_set_xml(
            name,
            texts,
            label=label,
            target="hardness",
            row_id=_ROW_ID,
            ignored=["source_row", "fold"],
        ),
        notes=tuple(notes),
    )


def _arff(task: str, rows: pd.DataFrame) -> str:
    """Return the rows as ARFF, without the columns that are the same in all of them."""
    attributes = [Attribute(_ROW_ID)]
    columns: list[list[str | None]] = [[str(number) for number in range(len(rows))]]
    for column in ROW_COLUMNS:
        if column.name in _NOT_SENT:
            continue
        is_flag = column.croissant == "sc:Boolean"
        values = ("False", "True") if is_flag else None
        attributes.append(Attribute(column.name, values))
        columns.append([_cell(value) for value in rows[column.name]])
    return arff_text(f"hardsynth.difficulty.{task}", attributes, columns)


def _cell(value: Any) -> str | None:
    """Return a value as ARFF holds it; None for a missing one."""
    if value is None or value != value:  # NaN is not itself
        return None
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


def _description(
    suite: SuiteFiles, task: str, about: dict[str, Any], licence: Licence
) -> str:
    origin = suite.tasks[task].origin
    manifest = suite.manifest
    ids = ", ".join(f"{key} {value}" for key, value in sorted(origin.ids.items()))
    terms = licence.text + (" (stated by the publisher)" if licence.stated else "")
    columns = "\n".join(
        f"- {column.name}: {column.about}"
        for column in ROW_COLUMNS
        if column.name not in _NOT_SENT
    )
    return (
        f"How hard each test row of {suite.tasks[task].source_name} is for the model F, "
        f"{about['baseline']}. One record for each row and test fold; no features: 'source_row' is "
        "the row of the source's data set.\n\n"
        f"Source. {origin.spec}; {ids}; {origin.url}. Licence: {terms}.\n\n"
        f"{_gain_sentence(about)}\n\n"
        f"Columns.\n{columns}\n\n"
        f"A failure is what the rule {about['rule']} says (alpha {about['alpha']}). Made by: "
        f"{manifest.command} (hardsynth {manifest.version}, seed {manifest.seed}). "
        f"Method: {PAPER}.\n"
    )


def _gain_sentence(about: dict[str, Any]) -> str:
    if not is_known(about["left_to_gain"]):
        return "Left to gain: not measured."
    low, high = about["left_to_gain_low"], about["left_to_gain_high"]
    interval = ""
    if is_known(low) and is_known(high):
        interval = f" (95 % interval {format_percent(low)} to {format_percent(high)})"
    return (
        f"Left to gain: where F fails, the best of other models saves "
        f"{format_percent(about['left_to_gain'])} of its loss{interval}; {about['finding']}."
    )


def write_difficulty_plan(units: Sequence[DifficultyUnit], folder: Path) -> list[Path]:
    """Write what would be sent: an ARFF and an XML file for each data set.

    Parameters
    ----------
    units : sequence of DifficultyUnit
    folder : Path
    """
    paths = []
    for unit in units:
        for ending, text in ((".arff", unit.content), (".data.xml", unit.xml)):
            path = folder / f"{unit.name}{ending}"
            write_text(path, text)
            paths.append(path)
    return paths


def publish_difficulty(
    directory: str | Path,
    units: Sequence[DifficultyUnit],
    server: Server,
    *,
    say: Callable[[str], object] = lambda text: None,
) -> list[DifficultyOutcome]:
    """Send data sets and tag them, or continue where an earlier run was broken off.

    Parameters
    ----------
    directory : path
        The suite; its journal keeps what was sent.
    units : sequence of DifficultyUnit
    server : Server
    say : callable
        Called with a message about every data set.

    Raises
    ------
    PublishError
        The key is refused, or the journal cannot be written.
    """
    suite = SuiteFiles.load(directory)
    journal = Journal.of(suite.layout, host_name(server.url))
    outcomes = []
    with journal.held():
        # read again: another command may just have ended
        journal = Journal(journal.path)
        for unit in units:
            outcome = DifficultyOutcome(name=unit.name, task=unit.task)
            _send(server, journal, unit, outcome)
            say(f"{unit.name}: {outcome.reason or f'data set {outcome.data_id}'}")
            outcomes.append(outcome)
    return outcomes


def _send(
    server: Server, journal: Journal, unit: DifficultyUnit, outcome: DifficultyOutcome
) -> None:
    """Send one data set and tag it; what went wrong stands in the outcome."""
    try:
        data_id, is_new = steps.ensure_data_set(server, journal, unit, xml=unit.xml)
        outcome.data_id = data_id
        steps.ensure_tag(server, journal, unit.key, kind="data", number=data_id)
    except Uncertain as error:
        outcome.reason = error.message
        return
    except HardsynthError as error:
        if isinstance(error, Refused) and error.code in FATAL:
            raise
        outcome.status, outcome.reason = "failed", str(error)
        return
    outcome.status = "sent" if is_new else "there"
    outcome.reason = ""


def plan_text(units: list[dict[str, Any]], url: str) -> str:
    """Return what would be sent, one row per data set."""
    rows = []
    for unit in units:
        licence = shorten_text(unit["licence"]["text"], 28)
        if unit["licence"]["stated"]:
            licence += " (stated)"
        size = megabytes(unit["bytes"])
        rows.append([shorten_text(unit["name"], 48), unit["rows"], size, licence])
    lines = [text_table(["data set", "rows", "size", "licence"], rows)]
    for unit in units:
        lines += [f"note: {unit['name']}: {note}" for note in unit["notes"]]
    lines.append(
        f"dry run: nothing was sent to {url}; all is within the server's limits"
    )
    return "\n".join(lines)


# How much is left to gain on each task, for a terminal.


def gain_table(tasks: pd.DataFrame) -> str:
    """Return how much is left to gain on each task, for a terminal."""
    headers = [
        "task",
        "rows",
        "bad",
        "F's loss",
        "left to gain where F fails",
        "finding",
    ]
    rows = []
    for task in tasks.to_dict("records"):
        rows.append(
            [
                shorten_text(task["task"]),
                task["rows"],
                task["bad_rows"],
                task["mean_loss"],
                gain_text({str(key): value for key, value in task.items()}),
                task["finding"] or "not certified",
            ]
        )
    return text_table(headers, rows)


def gain_text(task: dict[str, Any]) -> str:
    """Return how much is left to gain, with its interval.

    Examples
    --------
    >>> gain_text({"left_to_gain": 0.2, "left_to_gain_low": 0.1, "left_to_gain_high": 0.4})
    '20 % (10 to 40)'
    """
    if not is_known(task["left_to_gain"]):
        return "-"
    text = format_percent(task["left_to_gain"])
    low, high = task["left_to_gain_low"], task["left_to_gain_high"]
    if not (is_known(low) and is_known(high)):
        return text
    limits = [format_percent(limit).removesuffix(" %") for limit in (low, high)]
    return f"{text} ({limits[0]} to {limits[1]})"
