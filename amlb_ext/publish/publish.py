"""Publish a plan: send data sets, wait until they are active, make tasks, compare splits.

Tasks whose splits are as wanted are tagged, and the suite is made of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from amlb_ext.core.display import shorten_text, text_table
from amlb_ext.core.errors import HardsynthError
from amlb_ext.publish.describe import alias_of, suite_texts
from amlb_ext.publish.plan import PlannedUnit, PublishPlan, megabytes
from amlb_ext.publish.server import (
    FATAL,
    NOT_ACTIVE,
    OVERLOADED,
    Refused,
    Server,
    Uncertain,
    host_name,
)
from amlb_ext.publish.steps import (
    Journal,
    Steps,
    find_suite,
    list_statuses,
    read_data_set,
)

#: Seconds to wait until data sets are active.
WAIT = 900.0
#: Seconds between two looks at the data sets' status: at first, and at most.
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 30.0
#: How many times longer each pause is than the one before.
_PAUSE_GROWTH = 1.5
#: After so many units in a row without an answer the others are not tried.
_SILENT_UNITS = 2

#: Refusals after which the same request may succeed later.
_PASSING = (OVERLOADED, NOT_ACTIVE)

Say = Callable[[str], object]


@dataclass(kw_only=True)
class DataOutcome:
    """What became of a data set.

    Attributes
    ----------
    name : str
    status : str
        ``waiting``: the same command continues · ``failed``: the server refused it · or in which
        way it is done.
    reason : str
        Why it is not done.
    data_id : int, optional
        Its number on the server.
    """

    name: str
    status: str = "waiting"
    reason: str = "not tried yet"
    data_id: int | None = None


@dataclass(kw_only=True)
class PublishOutcome(DataOutcome):
    """What became of a unit; it is ``good`` or ``differs``, where the server split otherwise."""

    amlb_task: str
    fold: int
    task_id: int | None = None


@dataclass(kw_only=True)
class PublishReport:
    """What became of everything.

    Attributes
    ----------
    server : str
        Its API address.
    outcomes : list of PublishOutcome
    alias : str
    suite_id : int, optional
        None when there is no suite yet.
    reason : str
        Why there is none.
    journal : str
        Path of the journal.
    """

    server: str
    outcomes: list[PublishOutcome]
    alias: str = ""
    suite_id: int | None = None
    reason: str = ""
    journal: str = ""

    @property
    def ok(self) -> bool:
        """Whether every unit is good and in the suite."""
        all_good = all(outcome.status == "good" for outcome in self.outcomes)
        return self.suite_id is not None and all_good

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain mappings and lists."""
        return {**asdict(self), "ok": self.ok}


def publish_plan(
    plan: PublishPlan,
    server: Server,
    *,
    wait: float = WAIT,
    say: Say = lambda text: None,
    clock: Callable[[], float] = time.monotonic,
) -> PublishReport:
    """Publish a plan, or continue where an earlier run was broken off.

    Parameters
    ----------
    plan : PublishPlan
    server : Server
    wait : float
        Seconds to wait until data sets are active.
    say : callable
        Called with a message about every step.
    clock : callable
        Seconds from some moment on.

    Returns
    -------
    PublishReport

    Raises
    ------
    PublishError
        The key is refused, or the journal cannot be written.
    """
    journal = Journal(plan.suite.layout.publication(host_name(server.url)))
    with journal.held() as held:
        run = _Publication(plan, Steps(server, held), wait, say, clock)
        run.finish()
        return run.report


@dataclass
class _Publication:
    """One run of :func:`publish_plan`."""

    plan: PublishPlan
    steps: Steps
    wait: float
    say: Say
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.server = self.steps.server
        self.journal = self.steps.journal
        outcomes = []
        for planned in self.plan.units:
            unit = planned.unit
            task = unit.amlb_task.name
            outcomes.append(
                PublishOutcome(name=unit.name, amlb_task=task, fold=unit.fold)
            )
        self.units = list(zip(self.plan.units, outcomes, strict=True))
        self.report = PublishReport(
            server=self.server.url, outcomes=outcomes, journal=str(self.journal.path)
        )

    def finish(self) -> None:
        """Run all steps for all units, and fill the report."""
        # all data sets are sent before the first is waited for: the server works on them meanwhile
        run_step(self._send_data_set, self.units, self.say)
        active = self._wait_until_active()
        with_active_data = [unit for unit in self.units if unit[1].data_id in active]
        run_step(self._make_task, with_active_data, self.say)
        statuses = [outcome.status for outcome in self.report.outcomes]
        unsettled = statuses.count("waiting") + statuses.count("failed")
        # the suite's alias stands for its tasks, so that it is made when all are settled
        if unsettled:
            self.report.reason = f"{unsettled} of {len(statuses)} are not done"
        elif "good" not in statuses:
            self.report.reason = "the server split none of the tasks as wanted"
        else:
            self._make_suite()

    def _make_suite(self) -> None:
        """Make the suite of the tasks whose splits are as wanted."""
        units = []
        task_ids = []
        for planned, outcome in self.units:
            if outcome.status == "good" and outcome.task_id is not None:
                units.append(planned.unit)
                task_ids.append(outcome.task_id)
        report = self.report
        report.alias = alias_of(units)
        texts = suite_texts(self.plan.suite, units, self.plan.url)
        try:
            existing = find_suite(self.server, report.alias)
            if existing is not None and existing[1] != set(task_ids):
                report.alias = alias_of(units, task_ids)
            report.suite_id = self.steps.ensure_suite(report.alias, texts, task_ids)
        except HardsynthError as error:
            _stop_if_fatal(error)
            report.reason = str(error)
            return
        self.say(f"suite {report.suite_id} ({report.alias}) with {len(task_ids)} tasks")

    def _send_data_set(self, planned: PlannedUnit, outcome: PublishOutcome) -> None:
        data_id, is_new = self.steps.ensure_data_set(planned.unit, planned.xml)
        outcome.data_id = data_id
        outcome.reason = "its data set is not active yet"
        action = "was sent" if is_new else "is on the server already"
        self.say(f"{outcome.name}: data set {data_id} {action}")

    def _make_task(self, planned: PlannedUnit, outcome: PublishOutcome) -> None:
        unit = planned.unit
        data_id = outcome.data_id
        assert data_id is not None
        # what is reported where the next request gets no answer
        outcome.reason = "it has no task yet"
        task_id = self.steps.ensure_task(unit, data_id)
        outcome.task_id = task_id
        difference = self.steps.compare_split(unit, data_id, task_id)
        if difference:
            outcome.status = "differs"
            outcome.reason = difference
            self.say(f"{outcome.name}: task {task_id} is left out: {difference}")
            return
        # tagged once the split is known: a tag is what others find our tasks by
        self.steps.ensure_tag(unit.key, "data", data_id)
        self.steps.ensure_tag(unit.key, "task", task_id)
        outcome.status = "good"
        outcome.reason = ""
        self.say(f"{outcome.name}: task {task_id}, split as wanted")

    def _wait_until_active(self) -> set[int]:
        """Wait until the data sets are active; return those that are."""
        outcomes = {outcome.data_id: outcome for outcome in self.report.outcomes}
        pending = {data_id for data_id in outcomes if data_id is not None}
        total = len(pending)
        active: set[int] = set()
        begun = self.clock()
        pause = _FIRST_PAUSE
        looks = 0
        while pending:
            try:
                statuses = list_statuses(self.server, "data_id", *sorted(pending))
            except (Uncertain, Refused) as error:
                statuses = {}
                self.say(f"cannot ask for the status of the data sets: {error.message}")
            active |= {one for one in pending if statuses.get(one) == "active"}
            pending -= active
            elapsed = self.clock() - begun
            looks += 1
            # one request for each data set: only at looks 1, 2, 4, 8 ... and at the end
            is_power_of_two = looks & (looks - 1) == 0
            is_over = elapsed >= self.wait
            if is_power_of_two or is_over:
                for data_id in sorted(pending):
                    if self._has_failed(data_id, outcomes[data_id]):
                        pending.discard(data_id)
            if not pending or is_over:
                break
            if is_power_of_two:
                self.say(
                    f"waiting until {len(pending)} of {total} data sets are active: "
                    f"{elapsed:.0f} of at most {self.wait:.0f} s"
                )
            self.server.sleep(min(pause, self.wait - elapsed))
            pause = min(_LONGEST_PAUSE, pause * _PAUSE_GROWTH)
        for data_id in pending:
            reason = f"data set {data_id} is not active after {self.wait:.0f} s"
            outcomes[data_id].reason = reason
        return active

    def _has_failed(self, data_id: int, outcome: PublishOutcome) -> bool:
        """Whether the server could not process a data set, or somebody deactivated it."""
        try:
            data_set = read_data_set(self.server, data_id)
        except (Uncertain, Refused):
            return False
        if data_set.error:
            problem = (
                f"the server could not process it: {self.server.hide(data_set.error)}"
            )
        elif data_set.status == "deactivated":
            problem = "it was deactivated on the server"
        else:
            return False
        outcome.status = "failed"
        outcome.reason = f"data set {data_id}: {problem}"
        self.say(f"{outcome.name}: {outcome.reason}")
        return True


Unit = TypeVar("Unit")
Outcome = TypeVar("Outcome", bound=DataOutcome)


def run_step(
    step: Callable[[Unit, Outcome], None],
    units: Iterable[tuple[Unit, Outcome]],
    say: Say,
) -> None:
    """Run a step for some data sets; an error of one does not stop the others."""
    silent = 0
    for unit, outcome in units:
        if silent >= _SILENT_UNITS:
            outcome.reason = "the server does not answer"
            continue
        try:
            step(unit, outcome)
            silent = 0
        except Uncertain as error:
            silent += 1
            outcome.status = "waiting"
            outcome.reason = error.message
            say(f"{outcome.name}: {error.message}")
        except HardsynthError as error:
            _stop_if_fatal(error)
            outcome.status = "failed"
            if isinstance(error, Refused) and error.code in _PASSING:
                outcome.status = "waiting"
            outcome.reason = str(error)
            say(f"{outcome.name}: {error}")


def _stop_if_fatal(error: HardsynthError) -> None:
    if isinstance(error, Refused) and error.code in FATAL:
        raise error


# What a publication would send, and what became of it, for a terminal.


def plan_text(plan: PublishPlan, url: str) -> str:
    """Return what would be sent, one row per data set, then verdicts, notes and splits."""
    units = plan.to_json()["units"]
    rows = [
        {
            "data set": shorten_text(unit["name"], 48),
            "rows": unit["rows"],
            "train": "{} of {}".format(*unit["train"]),
            "test": "{} of {}".format(*unit["test"]),
            "times": unit["repeats"],
            "split": unit["procedure"]["id"],
            "measure": unit["measure"] or "-",
            "size": megabytes(unit["bytes"]),
            "licence": licence_cell(unit),
        }
        for unit in units
    ]
    lines = [text_table(list(rows[0]), [list(row.values()) for row in rows]), ""]
    # Several data sets belong to one task, whose verdict is printed once.
    verdicts = {}
    for unit in units:
        task = plan.suite.amlb_tasks[unit["amlb_task"]].task
        verdicts[task] = unit["verdict"]
    lines += [f"{task}: {verdict}" for task, verdict in verdicts.items()]
    for unit in units:
        lines += [f"note: {unit['name']}: {note}" for note in unit["notes"]]
    procedures = {unit["procedure"]["id"]: unit["procedure"]["name"] for unit in units}
    splits = [f"{number} is '{name}'" for number, name in sorted(procedures.items())]
    lines += [
        "",
        f"split: {', '.join(splits)}; test rows are sent as often as 'times' says",
        f"suite: {plan.alias}, {len(units)} tasks, tagged hardsynth",
        f"dry run: nothing was sent to {url}; all is within the server's limits",
    ]
    return "\n".join(lines)


def licence_cell(unit: dict[str, Any]) -> str:
    """Return a data set's licence as a table of a plan has it."""
    # What the command line states replaces what the source lacks, so it is marked.
    licence = shorten_text(unit["licence"]["text"], 28)
    return f"{licence} (stated)" if unit["licence"]["stated"] else licence


def report_text(report: PublishReport, server: str) -> str:
    """Return what became of each data set, then the suite or why there is none."""
    headers = ["data set", "data id", "task id", "status"]
    rows = []
    for outcome in report.outcomes:
        name = shorten_text(outcome.name, 48)
        rows.append([name, outcome.data_id, outcome.task_id, outcome.status])
    lines = [text_table(headers, rows), ""]
    for outcome in report.outcomes:
        if outcome.reason:
            lines.append(f"{outcome.name}: {outcome.reason}")
    lines.append(f"journal: {report.journal}")
    if report.suite_id is None:
        lines.append(f"no suite yet: {report.reason}")
        if any(outcome.status == "waiting" for outcome in report.outcomes):
            lines.append("the same command continues")
        return "\n".join(lines)
    lines.append(f"suite: {report.suite_id} ({report.alias})")
    spec = f"openml/s/{report.suite_id}"
    if server == "test":
        spec = f"test.{spec}"
    # AMLB knows two servers only, so it cannot run a suite of another one
    is_known = server in ("test", "production")
    flag = "" if is_known else f" --openml-server {report.server}"
    lines.append(f"  read it:  hardsynth generate {spec}{flag} --dry-run -o DIR")
    if is_known:
        lines.append(f"  run it:   python runbenchmark.py FRAMEWORK {spec}")
    return "\n".join(lines)
