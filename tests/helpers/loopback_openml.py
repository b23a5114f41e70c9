"""A small OpenML on 127.0.0.1: tasks, data, splits and suites, as the client asks for them."""

from __future__ import annotations

import gzip
import hashlib
import socket
import struct
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from loopback_http import respond, serving

PREFIX = "/api/v1/xml/"
NAMESPACE = 'xmlns:oml="http://openml.org/openml"'
_RESET = struct.pack("ii", 1, 0)


@dataclass
class Dataset:
    """One data set: its ARFF text and the features that the server would compute from it."""

    name: str
    arff: str
    features: list[tuple[str, str, list[str]]]  # name, data type, nominal values
    target: str
    ignore: list[str] = field(default_factory=list)
    row_id: str = ""
    format: str = "ARFF"


@dataclass
class LoopbackOpenML:
    """Serve data sets, tasks and suites; a context manager.

    ``tasks`` maps a task id to (data id, task type id, splits ARFF or ``None``); ``suites`` maps
    a suite id to task ids. ``requests`` records the paths, with query, in order.
    """

    datasets: dict[int, Dataset]
    tasks: dict[int, tuple[int, int, str | None]]
    suites: dict[int, list[int]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    root: str = field(default="", init=False)

    def __enter__(self) -> LoopbackOpenML:
        self._stack = ExitStack()
        self.root = self._stack.enter_context(serving(self._serve, head=412))
        return self

    def __exit__(self, *about: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop serving; a second call does nothing."""
        self._stack.close()

    def _serve(self, handler: BaseHTTPRequestHandler, over: threading.Event) -> None:
        self.requests.append(handler.path)
        path = urlsplit(handler.path).path
        if handler.command == "POST":
            answer = self.take(path, handler.headers, handler.body)
        else:
            answer = self.answer(path)
        if answer is None:  # the connection breaks
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            handler.close_connection = True
            handler.connection.close()
            return
        status, kind, text = answer
        body = gzip.compress(text.encode())
        headers = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Encoding": "gzip",
            "Content-Length": len(body),
        }
        respond(handler, body, status, **headers)

    @property
    def url(self) -> str:
        """What to give as ``openml_server``."""
        return self.root + PREFIX.rstrip("/")

    def take(
        self, path: str, headers: Message, body: bytes
    ) -> tuple[int, str, str] | None:
        """What is answered to a POST; None breaks the connection. Here: nothing is taken."""
        return self._error(412, 1, "Unknown call")

    def answer(self, path: str) -> tuple[int, str, str] | None:
        """Status, content type and text for a path; None breaks the connection."""
        parts = path.removeprefix(PREFIX).strip("/").split("/")
        xml = "text/xml"
        try:
            if parts[0] == "task":
                return 200, xml, self._task(int(parts[1]))
            if parts[:2] == ["data", "features"]:
                return 200, xml, self._features(int(parts[2]))
            if parts[:2] == ["data", "file"]:
                return 200, "text/plain", self.datasets[int(parts[2])].arff
            if parts[0] == "data":
                return 200, xml, self._description(int(parts[1]))
            if parts[0] == "splits":
                splits = self.tasks[int(parts[1])][2]
                return (
                    (200, "text/plain", splits)
                    if splits
                    else self._error(412, 1, "no split")
                )
            if parts[0] == "study":
                return 200, xml, self._suite(int(parts[1]))
        except KeyError:
            code = {"task": 151, "data": 111, "study": 604}.get(parts[0], 1)
            return self._error(412, code, f"Unknown {parts[0]}")
        return self._error(412, 1, "Unknown call")

    @staticmethod
    def _error(status: int, code: int, message: str) -> tuple[int, str, str]:
        body = f"<oml:code>{code}</oml:code><oml:message>{message}</oml:message>"
        return status, "text/xml", f"<oml:error {NAMESPACE}>{body}</oml:error>"

    def _task(self, task_id: int) -> str:
        data_id, kind, _ = self.tasks[task_id]
        target = self.datasets[data_id].target if data_id in self.datasets else "y"
        words = {
            1: "Supervised Classification",
            2: "Supervised Regression",
            5: "Clustering",
        }
        return (
            f"<oml:task {NAMESPACE}><oml:task_id>{task_id}</oml:task_id>"
            f"<oml:task_type_id>{kind}</oml:task_type_id>"
            f"<oml:task_type>{words[kind]}</oml:task_type>"
            '<oml:input name="source_data"><oml:data_set>'
            f"<oml:data_set_id>{data_id}</oml:data_set_id>"
            f"<oml:target_feature>{escape(target)}</oml:target_feature>"
            '</oml:data_set></oml:input><oml:input name="estimation_procedure">'
            "<oml:estimation_procedure><oml:id>1</oml:id><oml:type>crossvalidation</oml:type>"
            f"<oml:data_splits_url>{self.root}/splits/{task_id}</oml:data_splits_url>"
            '<oml:parameter name="number_repeats">1</oml:parameter>'
            '<oml:parameter name="number_folds">2</oml:parameter>'
            '</oml:estimation_procedure></oml:input><oml:input name="evaluation_measures">'
            "<oml:evaluation_measures><oml:evaluation_measure></oml:evaluation_measure>"
            "</oml:evaluation_measures></oml:input></oml:task>"
        )

    def _description(self, data_id: int) -> str:
        data = self.datasets[data_id]
        rows = {
            "id": data_id,
            "name": data.name,
            "version": 3,
            "description": "made for a test",
            "format": data.format,
            "licence": "CC0",
            "url": f"{self.root}/data/file/{data_id}",
            "default_target_attribute": data.target,
        }
        body = "".join(
            f"<oml:{key}>{escape(str(value))}</oml:{key}>"
            for key, value in rows.items()
        )
        if data.row_id:
            body += f"<oml:row_id_attribute>{data.row_id}</oml:row_id_attribute>"
        for name in data.ignore:
            body += f"<oml:ignore_attribute>{name}</oml:ignore_attribute>"
        md5 = hashlib.md5(data.arff.encode()).hexdigest()
        body += (
            f"<oml:status>active</oml:status><oml:md5_checksum>{md5}</oml:md5_checksum>"
        )
        return (
            f"<oml:data_set_description {NAMESPACE}>{body}</oml:data_set_description>"
        )

    def _features(self, data_id: int) -> str:
        body = ""
        for index, (name, kind, values) in enumerate(self.datasets[data_id].features):
            nominal = "".join(
                f"<oml:nominal_value>{escape(v)}</oml:nominal_value>" for v in values
            )
            body += (
                f"<oml:feature><oml:index>{index}</oml:index><oml:name>{escape(name)}</oml:name>"
                f"<oml:data_type>{kind}</oml:data_type>{nominal}"
                "<oml:number_of_missing_values>0</oml:number_of_missing_values></oml:feature>"
            )
        return f"<oml:data_features {NAMESPACE}>{body}</oml:data_features>"

    def _suite(self, suite_id: int) -> str:
        tasks = self.suites[suite_id]
        data = "".join(f"<oml:data_id>{self.tasks[t][0]}</oml:data_id>" for t in tasks)
        listed = "".join(f"<oml:task_id>{t}</oml:task_id>" for t in tasks)
        return (
            f"<oml:study {NAMESPACE}><oml:id>{suite_id}</oml:id>"
            "<oml:main_entity_type>task</oml:main_entity_type><oml:name>a suite</oml:name>"
            "<oml:description>made for a test</oml:description><oml:status>active</oml:status>"
            "<oml:creation_date>2024-01-01</oml:creation_date><oml:creator>1</oml:creator>"
            f"<oml:data>{data}</oml:data><oml:tasks>{listed}</oml:tasks></oml:study>"
        )


def splits(n: int, folds: int = 2) -> str:
    """A split file: row i is tested in fold i mod ``folds``."""
    lines = [
        "@relation splits",
        "@attribute type {TRAIN,TEST}",
        "@attribute rowid numeric",
        "@attribute repeat numeric",
        "@attribute fold numeric",
        "@data",
    ]
    for fold in range(folds):
        for row in range(n):
            lines.append(f"{'TEST' if row % folds == fold else 'TRAIN'},{row},0,{fold}")
    return "\n".join(lines) + "\n"
