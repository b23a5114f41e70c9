"""Difficulty data on an OpenML server: a data set for each task, linked to its source.

A row names the row of the source's data set, and its features stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from amlb_ext.core.display import (
    format_percent,
    is_known,
    shorten_text,
    text_table,
)
from amlb_ext.core.errors import PublishError
from amlb_ext.difficulty.files import ROW_COLUMNS, collect_rows, collect_tasks
from amlb_ext.publish.arff import Attribute, arff_text
from amlb_ext.publish.describe import PAPER, data_set_xml, fit_texts, licence_terms
from amlb_ext.publish.limits import Licence, server_name, settle_licences
from amlb_ext.publish.plan import (
    data_problems,
    megabytes,
    named_tasks,
    write_contents,
)
from amlb_ext.publish.publish import DataOutcome, licence_cell, run_step
from amlb_ext.publish.server import Server, host_name
from amlb_ext.publish.steps import Journal, Steps
from amlb_ext.publish.unit import DataSet
from amlb_ext.suite import SuiteFiles

#: Names of a task are told in the description; the others are columns of the data set.
_NOT_SENT = {"task", "source"}
#: Number of the record: a source row stands in the test rows of several folds, where these overlap.
_ROW_ID = "record"


@dataclass(frozen=True, kw_only=True)
class DifficultyUnit(DataSet):
    """The difficulty of one task's rows, ready to be sent.

    Attributes
    ----------
    task : str
    content : str
        The ARFF file.
    rows : int
    licence : Licence
    texts : dict of str to str
        Of the description.
    notes : tuple of str
        What was cut or changed in the texts.
    """

    task: str
    content: str
    rows: int
    licence: Licence
    texts: dict[str, str]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The data set's name on the server."""
        return server_name(f"hardsynth.difficulty.{self.task}")

    @property
    def key(self) -> str:
        """Names the content: two units of one key are the same data set."""
        return self.sha256[:32]

    @property
    def xml(self) -> str:
        """The description."""
        return data_set_xml(
            self,
            self.texts,
            target="hardness",
            row_id=_ROW_ID,
            ignored=["source_row", "fold"],
        )

    def arff(self) -> str:
        """Return the data file."""
        return self.content

    def to_json(self) -> dict[str, Any]:
        """Return what would be sent, but the data file."""
        return {
            "name": self.name,
            "task": self.task,
            "rows": self.rows,
            "bytes": self.size,
            "md5": self.md5,
            "licence": asdict(self.licence),
            "notes": list(self.notes),
            "data_xml": self.xml,
        }


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
    names = named_tasks(only, suite.tasks) or list(suite.tasks)
    stated = {name: suite.tasks[name].origin.licence for name in names}
    settled = settle_licences(stated, licences)
    rows = collect_rows(suite)
    tasks = collect_tasks(suite, rows).set_index("task")
    units = []
    for name in names:
        about = {str(key): value for key, value in tasks.loc[name].items()}
        licence = settled[name]
        texts, notes = fit_texts(
            suite,
            name,
            licence,
            description=_description(suite, name, about, licence),
        )
        of_task = rows[rows["task"] == name]
        unit = DifficultyUnit(
            task=name,
            content=_arff(name, of_task),
            rows=len(of_task),
            licence=licence,
            texts=texts,
            notes=tuple(notes),
        )
        for problem in data_problems(unit, unit.xml):
            raise PublishError(
                f"the server would refuse the difficulty of {name}: {problem}",
                "leave the task out with --only",
            )
        units.append(unit)
    return units


def _arff(task: str, rows: pd.DataFrame) -> str:
    """Return the rows as ARFF, without the columns that are the same in all of them."""
    attributes = [Attribute(_ROW_ID)]
    columns: list[list[str | None]] = [[str(number) for number in range(len(rows))]]
    for column in ROW_COLUMNS:
        if column.name in _NOT_SENT:
            continue
        values = ("False", "True") if column.kind == "flag" else None
        attributes.append(Attribute(column.name, values))
        columns.append([_cell(value) for value in rows[column.name]])
    return arff_text(f"hardsynth.difficulty.{task}", attributes, columns)


def _cell(value: Any) -> str | None:
    """Return a value as ARFF holds it; None for a missing one."""
    if pd.isna(value):
        return None
    return repr(float(value)) if isinstance(value, float) else str(value)


def _description(
    suite: SuiteFiles, task: str, about: dict[str, Any], licence: Licence
) -> str:
    origin = suite.tasks[task].origin
    manifest = suite.manifest
    ids = ", ".join(f"{key} {value}" for key, value in sorted(origin.ids.items()))
    columns = "\n".join(
        f"- {column.name}: {column.about}"
        for column in ROW_COLUMNS
        if column.name not in _NOT_SENT
    )
    gain = "Left to gain: not measured."
    if is_known(about["left_to_gain"]):
        gain = (
            "Left to gain: where F fails, the best of other models saves this share of its loss "
            f"(with its 95 % interval): {gain_text(about)}; {about['finding']}."
        )
    return (
        f"How hard each test row of {suite.tasks[task].source_name} is for the model F, "
        f"{about['baseline']}. One record for each row and test fold; no features: 'source_row' is "
        "the row of the source's data set.\n\n"
        f"Source. {origin.spec}; {ids}; {origin.url}. Licence: {licence_terms(licence)}.\n\n"
        f"{gain}\n\n"
        f"Columns.\n{columns}\n\n"
        f"A failure is what the rule {about['rule']} says (alpha {about['alpha']}). Made by: "
        f"{manifest.command} (hardsynth {manifest.version}, seed {manifest.seed}). "
        f"Method: {PAPER}.\n"
    )


def write_difficulty_plan(units: Sequence[DifficultyUnit], folder: Path) -> list[Path]:
    """Write what would be sent: an ARFF and an XML file for each data set.

    Parameters
    ----------
    units : sequence of DifficultyUnit
    folder : Path
    """
    contents = {}
    for unit in units:
        contents[f"{unit.name}.arff"] = unit.content
        contents[f"{unit.name}.data.xml"] = unit.xml
    return write_contents(folder, contents)


def publish_difficulty(
    directory: str | Path,
    units: Sequence[DifficultyUnit],
    server: Server,
    *,
    say: Callable[[str], object] = lambda text: None,
) -> list[DataOutcome]:
    """Send data sets and tag them, or continue where an earlier run was broken off.

    One that is done is ``sent``, or ``there``, on the server already.

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
    outcomes = [DataOutcome(name=unit.name) for unit in units]
    path = suite.layout.publication(host_name(server.url))
    with Journal(path).held() as journal:
        steps = Steps(server, journal)

        def send(unit: DifficultyUnit, outcome: DataOutcome) -> None:
            data_id, is_new = steps.ensure_data_set(unit, unit.xml)
            outcome.data_id = data_id
            steps.ensure_tag(unit.key, "data", data_id)
            outcome.status = "sent" if is_new else "there"
            outcome.reason = ""
            say(f"{unit.name}: data set {data_id}")

        run_step(send, zip(units, outcomes, strict=True), say)
    return outcomes


def plan_text(units: list[dict[str, Any]], url: str) -> str:
    """Return what would be sent, one row per data set."""
    rows = []
    for unit in units:
        name, size = shorten_text(unit["name"], 48), megabytes(unit["bytes"])
        rows.append([name, unit["rows"], size, licence_cell(unit)])
    lines = [text_table(["data set", "rows", "size", "licence"], rows)]
    for unit in units:
        lines += [f"note: {unit['name']}: {note}" for note in unit["notes"]]
    lines.append(
        f"dry run: nothing was sent to {url}; all is within the server's limits"
    )
    return "\n".join(lines)


def outcomes_text(outcomes: Sequence[DataOutcome]) -> str:
    """Return what became of each data set."""
    rows = [
        [shorten_text(outcome.name, 48), outcome.data_id, outcome.status]
        for outcome in outcomes
    ]
    return text_table(["data set", "data id", "status"], rows)


# How much is left to gain on each task, for a terminal.


def gain_table(tasks: pd.DataFrame) -> str:
    """Return how much is left to gain on each task, for a terminal."""
    table = pd.DataFrame(
        {
            "task": tasks["task"].map(shorten_text),
            "rows": tasks["rows"],
            "bad": tasks["bad_rows"],
            "F's loss": tasks["mean_loss"],
            "left to gain where F fails": tasks.apply(gain_text, axis=1),
            "finding": tasks["finding"].replace("", "not certified"),
        }
    )
    return text_table(list(table), table.astype(object).to_numpy().tolist())


def gain_text(task: Mapping[str, Any]) -> str:
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
