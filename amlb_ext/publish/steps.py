"""The steps of publishing; each may be broken off anywhere and begun again.

A step first looks at the journal, then at the server, and only then sends. What was sent without
an answer is looked for again before it is sent again: nothing is sent twice.

The journal ``hardsynth/publish/<host>.jsonl`` in the suite has one line before each POST and one
after, on disk before the program goes on. Lines are keyed by content, so what was published of an
earlier state of the suite is not mixed up with the present.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.errors import PublishError
from amlb_ext.core.locks import lock_open_file
from amlb_ext.publish.arff import read_split
from amlb_ext.publish.describe import TAG, suite_xml, task_xml
from amlb_ext.publish.limits import NAMESPACE
from amlb_ext.publish.server import OVERLOADED, Refused, Server, Uncertain, find_text
from amlb_ext.publish.unit import DataSet, PublishUnit

#: Every line has these.
_REQUIRED_KEYS = {"key", "step", "state"}


class Journal:
    """A server's journal in a suite; a context manager that keeps others out.

    Parameters
    ----------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(Path(folder) / "a.jsonl").held() as journal:
    ...         journal.write("key", "data", "posted", id=7)
    ...     Journal(Path(folder) / "a.jsonl").last("key", "data")["id"]
    7
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last: dict[tuple[str, str], dict[str, Any]] = {}
        # the last line of a step wins
        for entry in self.entries():
            self._last[entry["key"], entry["step"]] = entry

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the lines; one that was cut off by a crash is left out."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PublishError(
                f"cannot read {self.path}: {reason}", "repair or remove it"
            ) from None
        for line in text.splitlines():
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and set(entry) >= _REQUIRED_KEYS:
                    yield entry

    def last(self, key: str, step: str) -> dict[str, Any]:
        """Return the last line of a step; empty when it was never begun."""
        return self._last.get((key, step), {})

    def write(self, key: str, step: str, state: str, **about: object) -> None:
        """Add a line and wait until it is on disk.

        Parameters
        ----------
        key : str
            Of the content.
        step : str
            ``data``, ``active``, ``task``, ``split``, ``tag``, ``suite``.
        state : str
            ``posting``, ``posted``, ``found``, ``refused`` and the like.
        **about
            Numbers and names; never a key of a server.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        entry = {"key": key, "step": step, "state": state, **about, "time": now}
        line = json.dumps(entry, ensure_ascii=True) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as handle:
                # a line that a crash cut off is ended, so that it does not spoil this one
                if handle.tell():
                    handle.seek(-1, os.SEEK_END)
                    if handle.read(1) != b"\n":
                        handle.write(b"\n")
                handle.write(line.encode())
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise self._write_error(error) from None
        self._last[key, step] = entry

    @contextmanager
    def held(self) -> Iterator[Journal]:
        """Hold the journal, so that no second command publishes the same suite meanwhile.

        Raises
        ------
        PublishError
            Another command holds it, or the folder cannot be written.
        """

        def refuse() -> None:
            raise PublishError(
                f"another hardsynth publish is using {self.path}", "wait until it ends"
            )

        with ExitStack() as stack:
            try:
                stack.enter_context(lock_open_file(self.path, refuse))
            except OSError as error:
                raise self._write_error(error) from None
            # read again: another command may just have ended
            yield Journal(self.path)

    def _write_error(self, error: OSError) -> PublishError:
        return PublishError(
            f"cannot write {self.path}: {error.strerror or error}",
            "make the suite's folder writable: without a journal something could be sent twice",
        )


#: OpenML's error code for a list without entries.
NO_RESULTS = 372


@dataclass(frozen=True)
class ServerDataSet:
    """What a server says of a data set."""

    name: str
    status: str
    md5: str
    label: str
    error: str

    def holds(self, unit: DataSet) -> bool:
        """Whether it is this unit's, by content: its checksum, and our label where it is kept."""
        if self.name != unit.name:
            return False
        # without a checksum nothing but our label can tell
        if not self.md5:
            return self.label == unit.label
        return self.md5 == unit.md5 and self.label in (unit.label, "")


def read_data_set(server: Server, data_id: int) -> ServerDataSet:
    """Return what the server says of a data set; ``Refused`` when it has none of that number."""
    root = server.get(f"data/{data_id}")
    return ServerDataSet(
        name=find_text(root, "name"),
        status=find_text(root, "status"),
        md5=find_text(root, "md5_checksum").lower(),
        label=find_text(root, "version_label"),
        error=find_text(root, "error"),
    )


def find_data_set(server: Server, unit: DataSet) -> int | None:
    """Return the number of the data set that holds this unit, if the server has it.

    A deactivated one does not count: it was taken back.
    """
    # the oldest one first, so that everybody finds the same
    for data_id, status in sorted(
        list_statuses(server, "data_name", unit.name).items()
    ):
        if status != "deactivated" and read_data_set(server, data_id).holds(unit):
            return data_id
    return None


def list_statuses(server: Server, by: str, *values: object) -> dict[int, str]:
    """Return number and status of the data sets that a server lists, in one request.

    Parameters
    ----------
    server : Server
    by : str
        ``data_name`` or ``data_id``.
    *values
        Names or numbers; those that the server does not list are left out.
    """
    listed = ",".join(map(str, values))
    try:
        root = server.get(f"data/list/{by}/{listed}/status/all")
    except Refused as error:
        if error.code == NO_RESULTS:
            return {}
        raise
    statuses = {}
    for entry in root.findall(f"{NAMESPACE}dataset"):
        text = find_text(entry, "did")
        if text.isdigit():
            statuses[int(text)] = find_text(entry, "status")
    return statuses


@dataclass(frozen=True)
class ServerTask:
    """What a server says of a task."""

    data_id: str
    target: str
    procedure: str
    split_url: str

    def asks(self, unit: PublishUnit, data_id: int) -> bool:
        """Whether it is this unit's task on that data set."""
        procedure = unit.rows.procedure
        wanted = (str(data_id), unit.target, str(procedure.id))
        return (self.data_id, self.target, self.procedure) == wanted


def read_task(server: Server, task_id: int) -> ServerTask:
    """Return what the server says of a task; ``Refused`` when it has none of that number."""
    root = server.get(f"task/{task_id}")
    procedure = "input/estimation_procedure"
    return ServerTask(
        data_id=find_text(root, "input/data_set/data_set_id"),
        target=find_text(root, "input/data_set/target_feature"),
        procedure=find_text(root, f"{procedure}/id"),
        split_url=find_text(root, f"{procedure}/data_splits_url"),
    )


def compare_split(server: Server, unit: PublishUnit, task: ServerTask) -> str:
    """Return how the server's split differs from ours; empty when it does not.

    Raises
    ------
    Refused, Uncertain
        The split cannot be downloaded.
    PublishError
        What was downloaded is not a split.
    """
    if not task.split_url:
        return "the server names no split"
    rows = read_split(server.download(task.split_url))
    parts = rows.groupby(["repeat", "fold", "sample"]).ngroups
    # both procedures split once: repeat 0, fold 0, sample 0
    if parts != 1 or rows[["repeat", "fold", "sample"]].any(axis=None):
        return f"the server splits the rows {parts} times instead of once"
    # a server lists rows in the order in which it drew them
    train = np.sort(rows.loc[rows["type"] == "TRAIN", "rowid"])
    test = np.sort(rows.loc[rows["type"] == "TEST", "rowid"])
    wanted_test = unit.rows.test_positions
    wanted_train = np.setdiff1d(np.arange(len(unit.rows)), wanted_test)
    if np.array_equal(train, wanted_train) and np.array_equal(test, wanted_test):
        return ""
    n_common = len(np.intersect1d(test, wanted_test))
    return (
        f"the server has {len(train)} training and {len(test)} test rows, {n_common} of them ours, "
        f"instead of {len(wanted_train)} and {len(wanted_test)}"
    )


def find_suite(server: Server, alias: str) -> tuple[int, set[int]] | None:
    """Return number and tasks of the suite of an alias, if the server has it."""
    try:
        root = server.get(f"study/{alias}")
    except Refused:
        return None
    number = find_text(root, "id")
    if not number.isdigit():
        return None
    listed = root.findall(f"{NAMESPACE}tasks/{NAMESPACE}task_id")
    texts = [(element.text or "").strip() for element in listed]
    return int(number), {int(text) for text in texts if text.isdigit()}


# The steps.

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
            return read_data_set(self.server, number).holds(unit)

        recorded = self._recorded(unit.key, "data", is_ours)
        if recorded is not None:
            return recorded, False

        def find_ours() -> int | None:
            return find_data_set(self.server, unit)

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
            return read_task(self.server, number).asks(unit, data_id)

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
        task = read_task(self.server, task_id)
        if task.asks(unit, data_id):
            difference = compare_split(self.server, unit, task)
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
            number, tasks = find_suite(self.server, alias) or (None, wanted)
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
