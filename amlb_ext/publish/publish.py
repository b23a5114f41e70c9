"""Publish a plan: send data sets, wait until they are active, make tasks, compare splits, tag,
and make the suite of the tasks whose splits are as wanted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from amlb_ext.core.errors import HardsynthError
from amlb_ext.publish import lookup, steps
from amlb_ext.publish.address import host_name
from amlb_ext.publish.describe import suite_texts
from amlb_ext.publish.journal import Journal
from amlb_ext.publish.objects import alias_of
from amlb_ext.publish.plan import PlannedUnit, PublishPlan
from amlb_ext.publish.server import (
    FATAL,
    NOT_ACTIVE,
    OVERLOADED,
    Refused,
    Server,
    Uncertain,
)

#: Seconds to wait until data sets are active.
WAIT = 900.0
#: Seconds between two looks at the data sets' status: at first, at most, and what they grow by.
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 2.0, 30.0, 1.5
#: After so many units in a row without an answer the others are not tried.
_SILENT_UNITS = 2

Say = Callable[[str], object]


@dataclass(kw_only=True)
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
        Why it is not good.
    data_id, task_id : int, optional
        Their numbers on the server.
    """

    name: str
    amlb_task: str
    fold: int
    status: str = "waiting"
    reason: str = "not tried yet"
    data_id: int | None = None
    task_id: int | None = None


@dataclass(frozen=True, kw_only=True)
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
    plan : Plan
    server : Server
    wait : float
        Seconds to wait until data sets are active.
    say : callable
        Told of every step.
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
    journal = Journal.of(plan.suite.layout, host_name(server.url))
    with journal.held():
        # read again: another command may just have ended
        journal = Journal(journal.path)
        run = _Publication(plan, server, journal, wait=wait, say=say, clock=clock)
        return run.finish()


class _Publication:
    """One run of :func:`publish_plan`."""

    def __init__(
        self,
        plan: PublishPlan,
        server: Server,
        journal: Journal,
        *,
        wait: float,
        say: Say,
        clock: Callable[[], float],
    ) -> None:
        self.plan, self.server, self.journal = plan, server, journal
        self.wait, self.say, self.clock = wait, say, clock
        self.units: list[tuple[PlannedUnit, PublishOutcome]] = []
        for planned in plan.units:
            unit = planned.unit
            outcome = PublishOutcome(
                name=unit.name, amlb_task=unit.amlb_task.name, fold=unit.fold
            )
            self.units.append((planned, outcome))

    def finish(self) -> PublishReport:
        """Do all steps for all units, and report."""
        self._each(self._send_data_set)
        active = self._wait_until_active()
        self._each(self._make_task, lambda outcome: outcome.data_id in active)
        outcomes = [outcome for _, outcome in self.units]
        unsettled = sum(outcome.status in ("waiting", "failed") for outcome in outcomes)
        if unsettled:
            return self._report(reason=f"{unsettled} of {len(outcomes)} are not done")
        if not any(outcome.status == "good" for outcome in outcomes):
            return self._report(reason="the server split none of the tasks as wanted")
        return self._make_suite()

    def _report(
        self, *, alias: str = "", suite_id: int | None = None, reason: str = ""
    ) -> PublishReport:
        return PublishReport(
            server=self.server.url,
            outcomes=[outcome for _, outcome in self.units],
            alias=alias,
            suite_id=suite_id,
            reason=reason,
            journal=str(self.journal.path),
        )

    def _make_suite(self) -> PublishReport:
        """Make the suite of the tasks whose splits are as wanted."""
        units, task_ids = [], []
        for planned, outcome in self.units:
            if outcome.status == "good" and outcome.task_id is not None:
                units.append(planned.unit)
                task_ids.append(outcome.task_id)
        alias = alias_of(units)
        texts = suite_texts(self.plan.suite, units, self.plan.url)
        try:
            existing = lookup.find_suite(self.server, alias)
            if existing is not None and existing.tasks != frozenset(task_ids):
                alias = alias_of(units, task_ids)
            suite_id = steps.ensure_suite(
                self.server, self.journal, alias, texts=texts, task_ids=task_ids
            )
        except HardsynthError as error:
            self._stop_if_fatal(error)
            return self._report(alias=alias, reason=str(error))
        self.say(f"suite {suite_id} ({alias}) with {len(task_ids)} tasks")
        return self._report(alias=alias, suite_id=suite_id)

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
            if silent >= _SILENT_UNITS:
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
                is_passing = isinstance(error, Refused) and error.code in (
                    OVERLOADED,
                    NOT_ACTIVE,
                )
                outcome.status = "waiting" if is_passing else "failed"
                outcome.reason = str(error)
                self.say(f"{outcome.name}: {error}")

    @staticmethod
    def _stop_if_fatal(error: HardsynthError) -> None:
        if isinstance(error, Refused) and error.code in FATAL:
            raise error

    def _send_data_set(self, planned: PlannedUnit, outcome: PublishOutcome) -> None:
        data_id, is_new = steps.ensure_data_set(self.server, self.journal, planned)
        outcome.data_id, outcome.reason = data_id, "its data set is not active yet"
        did = "was sent" if is_new else "is on the server already"
        self.say(f"{outcome.name}: data set {data_id} {did}")

    def _make_task(self, planned: PlannedUnit, outcome: PublishOutcome) -> None:
        unit, data_id = planned.unit, outcome.data_id
        assert data_id is not None
        outcome.reason = "it has no task yet"
        task_id = steps.ensure_task(self.server, self.journal, unit, data_id)
        outcome.task_id = task_id
        difference = steps.compare_split(
            self.server, self.journal, unit, data_id=data_id, task_id=task_id
        )
        if difference:
            outcome.status, outcome.reason = "differs", difference
            self.say(f"{outcome.name}: task {task_id} is left out: {difference}")
            return
        steps.ensure_tags(
            self.server, self.journal, unit, data_id=data_id, task_id=task_id
        )
        outcome.status, outcome.reason = "good", ""
        self.say(f"{outcome.name}: task {task_id}, split as wanted")

    def _wait_until_active(self) -> set[int]:
        """Wait until the data sets are active; return those that are."""
        by_id = {}
        for planned, outcome in self.units:
            if outcome.data_id is not None:
                by_id[outcome.data_id] = (planned.unit, outcome)
        pending, active = set(by_id), set[int]()
        begun, pause, looks, next_message = self.clock(), _FIRST_PAUSE, 0, 5.0
        while pending:
            now_active = self._now_active(pending)
            for data_id in sorted(now_active):
                unit, _ = by_id[data_id]
                if self.journal.last(unit.key, "active").get("id") != data_id:
                    self.journal.write(unit.key, "active", "active", id=data_id)
            active |= now_active
            pending -= now_active
            elapsed = self.clock() - begun
            looks += 1
            # one request for each data set: only at looks 1, 2, 4, 8 ... and at the end
            is_power_of_two = looks & (looks - 1) == 0
            if pending and (is_power_of_two or elapsed >= self.wait):
                pending -= {
                    n for n in sorted(pending) if self._has_failed(n, by_id[n][1])
                }
            if not pending or elapsed >= self.wait:
                break
            if elapsed >= next_message or looks == 1:
                next_message = max(next_message, 2 * elapsed)
                self.say(
                    f"waiting until {len(pending)} of {len(by_id)} data sets are active: "
                    f"{elapsed:.0f} of at most {self.wait:.0f} s"
                )
            self.server.sleep(min(pause, max(0.0, self.wait - elapsed)))
            pause = min(_LONGEST_PAUSE, pause * _GROWTH)
        for data_id in pending:
            _, outcome = by_id[data_id]
            outcome.reason = f"data set {data_id} is not active after {self.wait:.0f} s"
        return active

    def _now_active(self, pending: set[int]) -> set[int]:
        """Return which of the data sets are active; none where the server does not say."""
        try:
            statuses = lookup.list_statuses(self.server, sorted(pending))
        except (Uncertain, Refused) as error:
            self.say(f"cannot ask for the status of the data sets: {error.message}")
            return set()
        return {data_id for data_id in pending if statuses.get(data_id) == "active"}

    def _has_failed(self, data_id: int, outcome: PublishOutcome) -> bool:
        """Whether the server could not process a data set, or somebody deactivated it."""
        try:
            data_set = lookup.read_data_set(self.server, data_id)
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
