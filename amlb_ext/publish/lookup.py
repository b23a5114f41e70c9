"""Look up what a server already has, before anything is sent: nothing is sent twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from xml.etree.ElementTree import Element

import numpy as np

from amlb_ext.publish.arff import read_split
from amlb_ext.publish.limits import NAMESPACE
from amlb_ext.publish.server import Refused, Server, find_text
from amlb_ext.publish.unit import PublishUnit

#: OpenML's error code for a list without entries.
NO_RESULTS = 372


class SentDataSet(Protocol):
    """A data set that is sent: a fold of a task, or the difficulty of its rows."""

    @property
    def name(self) -> str:
        """Its name on the server."""

    @property
    def key(self) -> str:
        """Names the content."""

    @property
    def label(self) -> str:
        """The key as it is written into the data set's ``version_label``."""

    @property
    def md5(self) -> str:
        """Of the data file."""

    def arff(self) -> str:
        """Return the data file."""


@dataclass(frozen=True)
class ServerDataSet:
    """What a server says of a data set."""

    id: int
    name: str
    status: str
    md5: str
    label: str
    error: str

    def holds(self, unit: SentDataSet) -> bool:
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
        id=data_id,
        name=find_text(root, "name"),
        status=find_text(root, "status"),
        md5=find_text(root, "md5_checksum").lower(),
        label=find_text(root, "version_label"),
        error=find_text(root, "error"),
    )


def find_data_set(server: Server, unit: SentDataSet) -> int | None:
    """Return the number of the data set that holds this unit, if the server has it.

    A deactivated one does not count: it was taken back.
    """
    try:
        root = server.get(f"data/list/data_name/{unit.name}/status/all")
    except Refused as error:
        if error.code == NO_RESULTS:
            return None
        raise
    candidates = []
    for entry in root.findall(f"{NAMESPACE}dataset"):
        data_id = _listed_id(entry)
        if data_id and find_text(entry, "status") != "deactivated":
            candidates.append(data_id)
    # the oldest one first, so that everybody finds the same
    for data_id in sorted(candidates):
        if read_data_set(server, data_id).holds(unit):
            return data_id
    return None


def list_statuses(server: Server, data_ids: Sequence[int]) -> dict[int, str]:
    """Return the status of data sets; those that the server does not list are left out."""
    # one request for all of them
    listed = ",".join(map(str, data_ids))
    try:
        root = server.get(f"data/list/data_id/{listed}/status/all")
    except Refused as error:
        if error.code == NO_RESULTS:
            return {}
        raise
    statuses = {}
    for entry in root.findall(f"{NAMESPACE}dataset"):
        statuses[_listed_id(entry)] = find_text(entry, "status")
    return statuses


def _listed_id(entry: Element) -> int:
    """Return the number of a listed data set; 0 where it has none."""
    text = find_text(entry, "did")
    return int(text) if text.isdigit() else 0


@dataclass(frozen=True)
class ServerTask:
    """What a server says of a task."""

    id: int
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
        id=task_id,
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
    parts = read_split(server.download(task.split_url))
    # both procedures split once: repeat 0, fold 0, sample 0
    if set(parts) != {(0, 0, 0)}:
        return f"the server splits the rows {len(parts)} times instead of once"
    train, test = parts[0, 0, 0]
    all_positions = np.arange(len(unit.rows))
    wanted_test = unit.rows.test_positions
    wanted_train = np.setdiff1d(all_positions, wanted_test)
    has_wanted_train = np.array_equal(train, wanted_train)
    has_wanted_test = np.array_equal(test, wanted_test)
    if has_wanted_train and has_wanted_test:
        return ""
    n_train = len(train)
    n_test = len(test)
    n_common = len(np.intersect1d(test, wanted_test))
    return (
        f"the server has {n_train} training and {n_test} test rows, {n_common} of them ours, "
        f"instead of {len(wanted_train)} and {len(wanted_test)}"
    )


@dataclass(frozen=True)
class ServerSuite:
    """What a server says of a suite."""

    id: int
    alias: str
    tasks: frozenset[int]


def find_suite(server: Server, name: int | str) -> ServerSuite | None:
    """Return the suite of a number or an alias, if the server has it."""
    try:
        root = server.get(f"study/{name}")
    except Refused:
        return None
    number = find_text(root, "id")
    if not number.isdigit():
        return None
    listed = root.findall(f"{NAMESPACE}tasks/{NAMESPACE}task_id")
    task_ids = set()
    for element in listed:
        text = (element.text or "").strip()
        if text.isdigit():
            task_ids.add(int(text))
    return ServerSuite(
        id=int(number),
        alias=find_text(root, "alias"),
        tasks=frozenset(task_ids),
    )
