"""The steps of publishing; each may be broken off anywhere and begun again.

A step first looks at the journal, then at the server, and only then sends. What was sent without
an answer is looked for again before it is sent again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar
from xml.etree.ElementTree import Element

from amlb_ext.core.errors import PublishError
from amlb_ext.publish import lookup
from amlb_ext.publish.journal import Journal
from amlb_ext.publish.objects import TAG, suite_xml, task_xml
from amlb_ext.publish.plan import PlannedUnit
from amlb_ext.publish.server import Refused, Server, Uncertain, find
from amlb_ext.publish.unit import PublishUnit

#: How often something is sent when no answer came and the server does not have it.
POSTS = 3
#: Seconds before each look for what was sent without an answer: the server may still be at it.
SETTLE = (0.0, 3.0, 10.0)
_OVERLOADED, _DUPLICATE_TASK, _TAGGED, _DUPLICATE_ALIAS = 107, 614, 473, 1038

Found = TypeVar("Found")


def ensure_data(server: Server, journal: Journal, planned: PlannedUnit) -> tuple[int, bool]:
    """Return the number of the unit's data set on the server, and whether it was sent now."""
    unit = planned.unit
    last = journal.last(unit.key, "data")
    known = last.get("id")
    if isinstance(known, int) and _still(lambda: lookup.data_set(server, known).holds(unit)):
        return known, False
    looks = SETTLE if last.get("state") == "posting" else SETTLE[:1]
    found = _look(server, looks, lambda: lookup.find_data(server, unit))
    if found is not None:
        journal.write(unit.key, "data", "found", id=found, name=unit.name)
        return found, False
    text = unit.arff()
    for attempt in range(1, POSTS + 1):
        journal.write(unit.key, "data", "posting", name=unit.name, attempt=attempt)
        try:
            found = _number(server.post("data/", description=planned.xml, dataset=text))
        except (Uncertain, Refused) as error:
            if not _maybe(error):
                journal.write(unit.key, "data", "refused", code=getattr(error, "code", 0))
                raise
            found = _look(server, SETTLE, lambda: lookup.find_data(server, unit))
            if found is None and attempt == POSTS:
                raise
        if found is not None:
            journal.write(unit.key, "data", "posted", id=found, name=unit.name)
            return found, True
    raise AssertionError("not reached")


def ensure_task(server: Server, journal: Journal, unit: PublishUnit, data_id: int) -> int:
    """Return the number of the unit's task on the server.

    The server itself refuses a second task of the same inputs and names the first one.
    """
    known = journal.last(unit.key, "task").get("id")
    if isinstance(known, int) and _still(lambda: lookup.task(server, known).asks(unit, data_id)):
        return known
    xml = task_xml(unit, data_id)
    for attempt in range(1, POSTS + 1):
        journal.write(unit.key, "task", "posting", data=data_id, attempt=attempt)
        try:
            found, state = _number(server.post("task/", description=xml)), "posted"
        except (Uncertain, Refused) as error:
            ids = _matched(error)
            if not ids:
                if not _maybe(error):
                    journal.write(unit.key, "task", "refused", code=getattr(error, "code", 0))
                if not _maybe(error) or attempt == POSTS:
                    raise
                server.sleep(SETTLE[1])
                continue
            found, state = min(ids), "found"
        journal.write(unit.key, "task", state, id=found, data=data_id)
        return found
    raise AssertionError("not reached")


def compare(server: Server, journal: Journal, unit: PublishUnit, data_id: int, task_id: int) -> str:
    """Return how the server's split differs from ours; empty when it does not."""
    last = journal.last(unit.key, "split")
    if last.get("state") == "same" and last.get("task") == task_id:
        return ""
    found = lookup.task(server, task_id)
    if not found.asks(unit, data_id):
        differs = f"it asks for {found.target!r} by procedure {found.procedure}"
    else:
        differs = lookup.difference(server, unit, found)
    state = "differs" if differs else "same"
    journal.write(unit.key, "split", state, task=task_id, **({"how": differs} if differs else {}))
    return differs


def ensure_tags(
    server: Server, journal: Journal, unit: PublishUnit, data_id: int, task_id: int
) -> None:
    """Tag the unit's data set and task; a tag that is there already is no error."""
    for kind, number in (("data", data_id), ("task", task_id)):
        step = f"tag {kind}"
        last = journal.last(unit.key, step)
        if last.get("state") == "posted" and last.get("id") == number:
            continue
        for attempt in range(1, POSTS + 1):
            journal.write(unit.key, step, "posting", id=number)
            try:
                server.post(f"{kind}/tag", {f"{kind}_id": str(number), "tag": TAG})
            except (Uncertain, Refused) as error:
                if isinstance(error, Refused) and error.code == _TAGGED:
                    break
                if not _maybe(error) or attempt == POSTS:
                    raise
                server.sleep(SETTLE[1])
            else:
                break
        journal.write(unit.key, step, "posted", id=number)


def ensure_suite(
    server: Server, journal: Journal, alias: str, texts: dict[str, str], tasks: Iterable[int]
) -> int:
    """Return the number of the suite of these tasks on the server."""
    wanted = frozenset(tasks)

    def there() -> int | None:
        found = lookup.find_suite(server, alias)
        if found is not None and found.tasks != wanted:
            raise PublishError(
                f"suite {found.id} on the server has our alias {alias} but other tasks",
                "leave one of the tasks out with --only: other tasks have another alias",
            )
        return None if found is None else found.id

    pending = journal.last(alias, "suite").get("state") == "posting"
    number = _look(server, SETTLE if pending else SETTLE[:1], there)
    if number is not None:
        if journal.last(alias, "suite").get("id") != number:
            journal.write(alias, "suite", "found", id=number)
        return number
    xml = suite_xml(texts, alias, sorted(wanted))
    for attempt in range(1, POSTS + 1):
        journal.write(alias, "suite", "posting", attempt=attempt)
        try:
            number = _number(server.post("study/", description=xml))
        except (Uncertain, Refused) as error:
            duplicate = isinstance(error, Refused) and error.code == _DUPLICATE_ALIAS
            if not duplicate and not _maybe(error):
                journal.write(alias, "suite", "refused", code=getattr(error, "code", 0))
                raise
            number = _look(server, SETTLE, there)
            if number is None and (duplicate or attempt == POSTS):
                raise
        if number is not None:
            journal.write(alias, "suite", "posted", id=number)
            return number
    raise AssertionError("not reached")


def _number(answer: Element) -> int:
    """The number that the server gave to what was sent."""
    text = find(answer, "id")
    if not text.isdigit():
        raise Uncertain("the server's answer holds no number", "the same command continues")
    return int(text)


def _maybe(error: PublishError | Uncertain) -> bool:
    """Whether the server may have taken what it did not confirm, or may take it later."""
    return isinstance(error, Uncertain) or getattr(error, "code", 0) == _OVERLOADED


def _matched(error: Exception) -> list[int]:
    """The tasks that a refusal as duplicate names."""
    if not isinstance(error, Refused) or error.code != _DUPLICATE_TASK:
        return []
    listed = re.search(r"\[([\d,\s]+)\]", error.said)
    return [int(text) for text in re.findall(r"\d+", listed[1])] if listed else []


def _look(server: Server, pauses: Iterable[float], ask: Callable[[], Found | None]) -> Found | None:
    """Ask after each pause until there is an answer."""
    for pause in pauses:
        if pause:
            server.sleep(pause)
        found = ask()
        if found is not None:
            return found
    return None


def _still(ask: Callable[[], bool]) -> bool:
    """Whether what the journal names is there as it was; gone is no error."""
    try:
        return ask()
    except Refused:
        return False
