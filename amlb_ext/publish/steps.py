"""The steps of publishing; each may be broken off anywhere and begun again.

A step first looks at the journal, then at the server, and only then sends. What was sent without
an answer is looked for again before it is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from amlb_ext.core.errors import PublishError
from amlb_ext.publish import lookup
from amlb_ext.publish.describe import TAG, suite_xml, task_xml
from amlb_ext.publish.lookup import Journal
from amlb_ext.publish.server import OVERLOADED, Refused, Server, Uncertain, find_text
from amlb_ext.publish.unit import DataSet, PublishUnit

#: How often something is sent when no answer came and the server does not have it.
POSTS = 3
#: Seconds before each look for what was sent without an answer: the server may still be at it.
SETTLE = (0.0, 3.0, 10.0)
#: OpenML's error codes: the task, the tag or the alias of a suite exists already.
_DUPLICATE_TASK = 614
_DUPLICATE_TAG = 473
_DUPLICATE_ALIAS = 1038

Find = Callable[[], "int | None"]


@dataclass(frozen=True)
class Steps:
    """The steps on one server, noted in one journal."""

    server: Server
    journal: Journal

    def ensure_data_set(self, unit: DataSet, xml: str) -> tuple[int, bool]:
        """Return the number of the unit's data set on the server, and whether it was sent now."""

        def is_ours(number: int) -> bool:
            return lookup.read_data_set(self.server, number).holds(unit)

        recorded = self._recorded(unit.key, "data", is_ours)
        if recorded is not None:
            return recorded, False

        def find_ours() -> int | None:
            return lookup.find_data_set(self.server, unit)

        data_id = self._look_first(unit.key, "data", find_ours)
        if data_id is not None:
            self.journal.write(unit.key, "data", "found", id=data_id, name=unit.name)
            return data_id, False
        content = unit.arff()
        data_id = self._send(
            unit.key,
            "data",
            lambda: self._post("data/", description=xml, dataset=content),
            find=lambda _: self._look_repeatedly(SETTLE, find_ours),
            name=unit.name,
        )
        return data_id, True

    def ensure_task(self, unit: PublishUnit, data_id: int) -> int:
        """Return the number of the unit's task on the server.

        The server itself refuses a second task of the same inputs and names the first one, so that
        nothing need be looked up before a task is sent again.
        """

        def is_ours(number: int) -> bool:
            return lookup.read_task(self.server, number).asks(unit, data_id)

        recorded = self._recorded(unit.key, "task", is_ours)
        if recorded is not None:
            return recorded
        xml = task_xml(unit, data_id)

        def find_named(error: Refused | Uncertain) -> int | None:
            # the server ends its refusal of a duplicate with their numbers: [7, 12]
            said = error.said if error.code == _DUPLICATE_TASK else ""
            listed = re.search(r"\[([\d,\s]+)\]", said)
            existing = re.findall(r"\d+", listed[1]) if listed else []
            if not existing:
                self.server.sleep(SETTLE[1])
            # the oldest one, so that everybody finds the same
            return min(map(int, existing), default=None)

        return self._send(
            unit.key,
            "task",
            lambda: self._post("task/", description=xml),
            find=find_named,
            duplicate_code=_DUPLICATE_TASK,
            data=data_id,
        )

    def compare_split(self, unit: PublishUnit, data_id: int, task_id: int) -> str:
        """Return how the server's split differs from ours; empty when it does not."""
        last = self.journal.last(unit.key, "split")
        if last.get("state") == "same" and last.get("task") == task_id:
            return ""
        task = lookup.read_task(self.server, task_id)
        if task.asks(unit, data_id):
            difference = lookup.compare_split(self.server, unit, task)
        else:
            difference = f"it asks for {task.target!r} by procedure {task.procedure}"
        how = {"how": difference} if difference else {}
        state = "differs" if difference else "same"
        self.journal.write(unit.key, "split", state, task=task_id, **how)
        return difference

    def ensure_tag(self, key: str, kind: str, number: int) -> None:
        """Tag a data set or a task; a tag that is there already is no error."""
        step = f"tag {kind}"
        last = self.journal.last(key, step)
        if last.get("state") == "posted" and last.get("id") == number:
            return

        def post() -> int:
            self.server.post(f"{kind}/tag", {f"{kind}_id": str(number), "tag": TAG})
            return number

        def find_named(error: Refused | Uncertain) -> int | None:
            if error.code == _DUPLICATE_TAG:
                return number
            # a tag that was sent twice is one tag, so none is looked up before it is sent again
            self.server.sleep(SETTLE[1])
            return None

        self._send(key, step, post, find=find_named, duplicate_code=_DUPLICATE_TAG)

    def ensure_suite(
        self, alias: str, texts: dict[str, str], task_ids: Iterable[int]
    ) -> int:
        """Return the number of the suite of these tasks on the server."""
        wanted = set(task_ids)

        def find_ours() -> int | None:
            number, tasks = lookup.find_suite(self.server, alias) or (None, wanted)
            if tasks != wanted:
                raise PublishError(
                    f"suite {number} on the server has our alias {alias} but other tasks",
                    "leave one of the tasks out with --only: other tasks have another alias",
                )
            return number

        suite_id = self._look_first(alias, "suite", find_ours)
        if suite_id is not None:
            if self.journal.last(alias, "suite").get("id") != suite_id:
                self.journal.write(alias, "suite", "found", id=suite_id)
            return suite_id
        xml = suite_xml(texts, alias, sorted(wanted))
        return self._send(
            alias,
            "suite",
            lambda: self._post("study/", description=xml),
            find=lambda _: self._look_repeatedly(SETTLE, find_ours),
            duplicate_code=_DUPLICATE_ALIAS,
        )

    def _send(
        self,
        key: str,
        step: str,
        post: Callable[[], int],
        *,
        find: Callable[[Refused | Uncertain], int | None],
        duplicate_code: int | None = None,
        **about: Any,
    ) -> int:
        """Send something until the server has it, and return the number that the server gave it.

        Parameters
        ----------
        key, step : str
            Of the journal's lines; ``about`` is written into each.
        post : callable
            Sends once and returns the number.
        find : callable
            Given why there is no number, looks for what was sent and returns its number, if the
            server has it.
        duplicate_code : int, optional
            Code of a refusal that says that the server has it already.
        """
        for attempt in range(1, POSTS + 1):
            self.journal.write(key, step, "posting", attempt=attempt, **about)
            try:
                number: int | None = post()
            except (Uncertain, Refused) as error:
                is_duplicate = error.code == duplicate_code
                # the server may have taken what it did not confirm, or may take it later
                may_have_taken = (
                    isinstance(error, Uncertain) or error.code == OVERLOADED
                )
                if not is_duplicate and not may_have_taken:
                    self.journal.write(key, step, "refused", code=error.code)
                    raise
                # what has no answer is looked for before it is sent again; a duplicate that cannot
                # be found would be refused again
                number = find(error)
                if number is None and (is_duplicate or attempt == POSTS):
                    raise
            if number is not None:
                self.journal.write(key, step, "posted", id=number, **about)
                return number
        raise AssertionError("not reached")

    def _recorded(
        self, key: str, step: str, is_ours: Callable[[int], bool]
    ) -> int | None:
        """Return the number that the journal has of a step, if it is there as it was."""
        number = self.journal.last(key, step).get("id")
        try:
            return number if isinstance(number, int) and is_ours(number) else None
        except Refused:
            # gone from the server
            return None

    def _post(self, path: str, **files: str) -> int:
        """Send once, and return the number that the server gave to what was sent."""
        text = find_text(self.server.post(path, None, **files), "id")
        if not text.isdigit():
            raise Uncertain(
                "the server's answer holds no number",
                "run the same command again; it continues",
            )
        return int(text)

    def _look_first(self, key: str, step: str, find: Find) -> int | None:
        """Look for what is to be sent."""
        # after a run that was cut off the server may still be at work on what it was sent
        was_posting = self.journal.last(key, step).get("state") == "posting"
        return self._look_repeatedly(SETTLE if was_posting else SETTLE[:1], find)

    def _look_repeatedly(self, pauses: Iterable[float], find: Find) -> int | None:
        """Look after each pause until something is found."""
        for pause in pauses:
            if pause:
                self.server.sleep(pause)
            found = find()
            if found is not None:
                return found
        return None
