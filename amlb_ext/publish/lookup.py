"""What a server already has: asked before anything is sent, so that nothing is sent twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from amlb_ext.publish.arff import read_split
from amlb_ext.publish.limits import NAMESPACE
from amlb_ext.publish.server import Refused, Server, find
from amlb_ext.publish.unit import PublishUnit

#: OpenML's answer to a list without entries.
NO_RESULTS = 372


@dataclass(frozen=True)
class ServerDataSet:
    """What a server says of a data set."""

    id: int
    name: str
    status: str
    md5: str
    label: str
    error: str

    def holds(self, unit: PublishUnit) -> bool:
        """Whether it is this unit's, by content: its checksum, and our label where it is kept."""
        same = self.name == unit.name and self.md5 in ("", unit.md5)
        return same and self.label in ((unit.label, "") if self.md5 else (unit.label,))


def data_set(server: Server, data_id: int) -> ServerDataSet:
    """Return what the server says of a data set; ``Refused`` when it has none of that number."""
    root = server.get(f"data/{data_id}")
    return ServerDataSet(
        id=data_id,
        name=find(root, "name"),
        status=find(root, "status"),
        md5=find(root, "md5_checksum").lower(),
        label=find(root, "version_label"),
        error=find(root, "error"),
    )


def find_data(server: Server, unit: PublishUnit) -> int | None:
    """Return the number of the data set that holds this unit, if the server has it.

    A deactivated one does not count: it was taken back.
    """
    try:
        root = server.get(f"data/list/data_name/{unit.name}/status/all")
    except Refused as error:
        if error.code == NO_RESULTS:
            return None
        raise
    entries = root.findall(f"{NAMESPACE}dataset")
    known = [_id(entry) for entry in entries if find(entry, "status") != "deactivated"]
    return next((n for n in sorted(known) if n and data_set(server, n).holds(unit)), None)


def statuses(server: Server, data_ids: Sequence[int]) -> dict[int, str]:
    """Return the status of data sets; those that the server does not list are left out."""
    listed = ",".join(map(str, data_ids))
    try:
        root = server.get(f"data/list/data_id/{listed}/status/all")
    except Refused as error:
        if error.code == NO_RESULTS:
            return {}
        raise
    entries = root.findall(f"{NAMESPACE}dataset")
    return {_id(entry): find(entry, "status") for entry in entries}


def _id(entry: Element) -> int:
    """The number of a listed data set; 0 where it has none."""
    text = find(entry, "did")
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
        wanted = (str(data_id), unit.target, str(unit.rows.procedure.id))
        return (self.data_id, self.target, self.procedure) == wanted


def task(server: Server, task_id: int) -> ServerTask:
    """Return what the server says of a task; ``Refused`` when it has none of that number."""
    root = server.get(f"task/{task_id}")
    procedure = "input/estimation_procedure"
    return ServerTask(
        id=task_id,
        data_id=find(root, "input/data_set/data_set_id"),
        target=find(root, "input/data_set/target_feature"),
        procedure=find(root, f"{procedure}/id"),
        split_url=find(root, f"{procedure}/data_splits_url"),
    )


def difference(server: Server, unit: PublishUnit, found: ServerTask) -> str:
    """Return how the server's split differs from ours; empty when it does not.

    Raises
    ------
    Refused, Uncertain
        The split cannot be had.
    PublishError
        It is no split.
    """
    if not found.split_url:
        return "the server names no split"
    parts = read_split(server.download(found.split_url))
    if set(parts) != {(0, 0, 0)}:
        return f"the server splits {len(parts)} times, once was wanted"
    train, test = parts[0, 0, 0]
    wanted = unit.rows.test_positions
    rest = np.setdiff1d(np.arange(len(unit.rows)), wanted)
    if np.array_equal(test, wanted) and np.array_equal(train, rest):
        return ""
    common = len(np.intersect1d(test, wanted))
    return (
        f"the server has {len(train)} training and {len(test)} test rows, {common} of them ours; "
        f"{len(rest)} and {len(wanted)} were wanted"
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
    number = find(root, "id")
    if not number.isdigit():
        return None
    ids = [e.text or "" for e in root.findall(f"{NAMESPACE}tasks/{NAMESPACE}task_id")]
    return ServerSuite(
        id=int(number),
        alias=find(root, "alias"),
        tasks=frozenset(int(text) for text in ids if text.strip().isdigit()),
    )
