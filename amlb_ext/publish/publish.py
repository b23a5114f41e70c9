"""Publishes a plan: data sets, their activation, tasks, splits compared, tags, the suite."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from amlb_ext.core.errors import HardsynthError
from amlb_ext.publish import lookup, steps
from amlb_ext.publish.address import host_name
from amlb_ext.publish.describe import suite_texts
from amlb_ext.publish.journal import Journal
from amlb_ext.publish.objects import alias_of
from amlb_ext.publish.plan import PlannedUnit, PublishPlan
from amlb_ext.publish.server import FATAL, Refused, Server, Uncertain

#: Seconds to wait until data sets are active.
WAIT = 900.0
#: Seconds between two looks: the first, the growth, the longest.
_FIRST, _GROWTH, _LONGEST = 2.0, 1.5, 30.0
#: After so many units in a row without an answer the others are not tried.
_SILENT = 2

Say = Callable[[str], object]


@dataclass
class PublishOutcome:
    """What became of a unit.

    Attributes
    ----------
    name : str
        Of the data set.
    amlb_task : str
    fold : int
    status : str
        ``good``: published and split as wanted · ``differs``: the server split otherwise ·
        ``waiting``: the same command continues · ``failed``: the server refused it.
    reason : str
    data_id, task_id : int, optional
    """

    name: str
    amlb_task: str
    fold: int
    status: str = "waiting"
    reason: str = "it was not tried"
    data_id: int | None = None
    task_id: int | None = None


@dataclass(frozen=True)
class PublishReport:
    """What became of everything.

    Attributes
    ----------
    server : str
    outcomes : list of Outcome
    alias : str
    suite_id : int, optional
        None when there is no suite yet.
    reason : str
        Why there is none.
    journal : str
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
        return self.suite_id is not None and all(o.status == "good" for o in self.outcomes)

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
    plan : Plan
    server : Server
    wait : float
        Seconds to wait until data sets are active.
    say : callable
        Told of every step.
    clock : callable

    Returns
    -------
    Report

    Raises
    ------
    PublishError
        The key is refused, or the journal cannot be written.
    """
    journal = Journal.of(plan.suite.layout, host_name(server.url))
    with journal.held():  # read again: another command may just have ended
        return _Run(plan, server, Journal(journal.path), wait, say, clock).report()


class _Run:
    """One run of :func:`publish_plan`."""

    def __init__(
        self,
        plan: PublishPlan,
        server: Server,
        journal: Journal,
        wait: float,
        say: Say,
        clock: Callable[[], float],
    ) -> None:
        self.plan, self.server, self.journal = plan, server, journal
        self.wait, self.say, self.clock = wait, say, clock
        self.units = [
            (p, PublishOutcome(p.unit.name, p.unit.amlb_task.name, p.unit.fold)) for p in plan.units
        ]

    def report(self) -> PublishReport:
        self._each(self._data)
        active = self._until_active()
        self._each(self._task, lambda outcome: outcome.data_id in active)
        good = [planned.unit for planned, outcome in self.units if outcome.status == "good"]
        outcomes = [outcome for _, outcome in self.units]
        told = partial(
            PublishReport,
            server=self.server.url,
            outcomes=outcomes,
            journal=str(self.journal.path),
        )
        unsettled = sum(outcome.status in ("waiting", "failed") for outcome in outcomes)
        if unsettled or not good:
            why = f"{unsettled} of {len(outcomes)} are not done" if unsettled else "none is good"
            return told(reason=why)
        alias = alias_of(good)
        tasks = [o.task_id for o in outcomes if o.status == "good" and o.task_id is not None]
        texts = suite_texts(self.plan.suite, good, self.plan.url)
        try:
            there = lookup.find_suite(self.server, alias)
            if there is not None and there.tasks != frozenset(tasks):
                alias = alias_of(good, tasks)
            number = steps.ensure_suite(self.server, self.journal, alias, texts, tasks)
        except HardsynthError as error:
            self._stop_if_fatal(error)
            return told(alias=alias, reason=str(error))
        self.say(f"suite {number} ({alias}) with {len(tasks)} tasks")
        return told(alias=alias, suite_id=number)

    def _each(
        self,
        step: Callable[[PlannedUnit, PublishOutcome], None],
        which: Callable[[PublishOutcome], bool] = lambda outcome: True,
    ) -> None:
        """Do a step for the units; what one refuses does not stop the others."""
        silent = 0
        for planned, outcome in self.units:
            if not which(outcome):
                continue
            if silent >= _SILENT:
                outcome.reason = "the server does not answer"
                continue
            try:
                step(planned, outcome)
                silent = 0
            except Uncertain as error:
                silent += 1
                outcome.status, outcome.reason = "waiting", error.message
                self.say(f"{outcome.name}: {error.message}")
            except HardsynthError as error:
                self._stop_if_fatal(error)
                later = isinstance(error, Refused) and error.code in (107, 623)
                outcome.status = "waiting" if later else "failed"
                outcome.reason = str(error)
                self.say(f"{outcome.name}: {error}")

    @staticmethod
    def _stop_if_fatal(error: HardsynthError) -> None:
        if isinstance(error, Refused) and error.code in FATAL:
            raise error

    def _data(self, planned: PlannedUnit, outcome: PublishOutcome) -> None:
        number, new = steps.ensure_data(self.server, self.journal, planned)
        outcome.data_id, outcome.reason = number, "its data set is not active yet"
        self.say(f"{outcome.name}: data set {number} {'sent' if new else 'is there'}")

    def _task(self, planned: PlannedUnit, outcome: PublishOutcome) -> None:
        unit, data_id = planned.unit, outcome.data_id
        assert data_id is not None
        outcome.reason = "it has no task yet"
        number = steps.ensure_task(self.server, self.journal, unit, data_id)
        outcome.task_id = number
        differs = steps.compare(self.server, self.journal, unit, data_id, number)
        if differs:
            outcome.status, outcome.reason = "differs", differs
            self.say(f"{outcome.name}: task {number} is left out: {differs}")
            return
        steps.ensure_tags(self.server, self.journal, unit, data_id, number)
        outcome.status, outcome.reason = "good", ""
        self.say(f"{outcome.name}: task {number}, split as wanted")

    def _until_active(self) -> set[int]:
        """Wait until the data sets are active; return those that are."""
        by_id = {o.data_id: (p, o) for p, o in self.units if o.data_id is not None}
        pending, active = set(by_id), set[int]()
        begun, pause, look, told = self.clock(), _FIRST, 0, 5.0
        while pending:
            try:
                found = lookup.statuses(self.server, sorted(pending))
            except (Uncertain, Refused) as error:
                self.say(f"cannot ask for the data sets: {error.message}")
                found = {}
            now = {number for number in pending if found.get(number) == "active"}
            for number in sorted(now):
                unit = by_id[number][0].unit
                if self.journal.last(unit.key, "active").get("id") != number:
                    self.journal.write(unit.key, "active", "active", id=number)
            active |= now
            pending -= now
            elapsed = self.clock() - begun
            look += 1
            if pending and (look & (look - 1) == 0 or elapsed >= self.wait):
                pending -= {n for n in sorted(pending) if self._broken(n, by_id[n][1])}
            if not pending or elapsed >= self.wait:
                break
            if elapsed >= told or look == 1:
                told = max(told, 2 * elapsed)
                self.say(
                    f"waiting until {len(pending)} of {len(by_id)} data sets are active: "
                    f"{elapsed:.0f} of at most {self.wait:.0f} s"
                )
            self.server.sleep(min(pause, max(0.0, self.wait - elapsed)))
            pause = min(_LONGEST, pause * _GROWTH)
        for number in pending:
            by_id[number][1].reason = f"data set {number} is not active after {self.wait:.0f} s"
        return active

    def _broken(self, number: int, outcome: PublishOutcome) -> bool:
        """Whether the server could not process a data set, or somebody deactivated it."""
        try:
            found = lookup.data_set(self.server, number)
        except (Uncertain, Refused):
            return False
        if not found.error and found.status != "deactivated":
            return False
        why = f"could not process it: {found.error}" if found.error else "holds it deactivated"
        outcome.status = "failed"
        outcome.reason = f"data set {number}: the server {self.server.hide(why)}"
        self.say(f"{outcome.name}: {outcome.reason}")
        return True
