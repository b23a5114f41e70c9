"""A small OpenML that can be published to, with faults to order.

It computes splits, checks descriptions and refuses duplicates by code of its own, written from the
rules of the server and sharing nothing with the package.
"""

from __future__ import annotations

import email
import hashlib
import re
import threading
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import parse_qs
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import arff
from loopback_openml import NAMESPACE, PREFIX, Dataset, LoopbackOpenML

KEY = "0123456789abcdef0123456789abcdef"
OML = "{http://openml.org/openml}"
_CASUAL, _URL, _LATIN = r"[a-zA-Z0-9_\-.(),]+", r"[a-zA-Z0-9_\-.]+", r"[\x00-\x7f]*"
_RULES = {
    "data_set_description": {
        "name": (128, _CASUAL),
        "description": (16384, _LATIN),
        "creator": (128, _LATIN),
        "licence": (64, _LATIN),
        "default_target_attribute": (1024, _CASUAL),
        "row_id_attribute": (128, _CASUAL),
        "ignore_attribute": (128, _CASUAL),
        "version_label": (128, _CASUAL),
        "citation": (1024, _LATIN),
    },
    "study": {
        "alias": (32, _URL),
        "name": (256, _LATIN),
        "description": (4096, _LATIN),
    },
}
_ORDER = (
    *("id", "name", "version", "description", "format", "creator", "licence", "url"),
    *(
        "default_target_attribute",
        "row_id_attribute",
        "ignore_attribute",
        "version_label",
    ),
    *("citation", "tag", "visibility", "original_data_url", "paper_url"),
)


@dataclass
class Fault:
    """Something goes wrong with requests whose method and path begin so, ``times`` times.

    ``how``: ``500``, ``107``, ``413``, ``html`` answer so and take nothing; ``lost`` breaks the
    connection before, ``reset`` after the request was taken; ``garbled`` takes it and answers
    nonsense.
    """

    where: str
    how: str
    times: int = 1


@dataclass
class PublishingOpenML(LoopbackOpenML):
    """Takes data sets, tasks, tags and suites.

    ``active_after`` looks at a new data set find it in preparation; ``wrong`` names data sets whose
    split comes out shifted; ``broken`` those that cannot be processed; ``largest`` is the size of
    upload that is taken.
    """

    datasets: dict[int, Dataset] = field(default_factory=dict)
    tasks: dict[int, tuple[int, int, str | None]] = field(default_factory=dict)
    active_after: int = 0
    wrong: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    largest: int = 50_000_000
    faults: list[Fault] = field(default_factory=list)
    posts: list[str] = field(default_factory=list)
    about: dict[int, dict[str, str]] = field(default_factory=dict)
    inputs: dict[int, dict[str, str]] = field(default_factory=dict)
    studies: dict[int, dict[str, str]] = field(default_factory=dict)
    tags: list[tuple[str, int, str]] = field(default_factory=list)
    status: dict[int, str] = field(default_factory=dict)
    looks: dict[int, int] = field(default_factory=dict)
    last_data: int = 99
    last_task: int = 999
    bodies: list[bytes] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def state(self) -> dict[str, object]:
        """All that was published, to compare two servers by."""
        return {
            "data": {
                n: (d.name, d.arff, self.about[n]) for n, d in self.datasets.items()
            },
            "tasks": self.inputs,
            "suites": self.suites,
            "studies": self.studies,
            "tags": sorted(self.tags),
        }

    # answers

    def answer(self, path: str) -> tuple[int, str, str] | None:
        with self.guard:
            fault = self._fault(f"GET {path.removeprefix(PREFIX)}")
            if fault:
                return self._fail(fault)
            parts = path.removeprefix(PREFIX).strip("/").split("/")
            if parts[:2] == ["data", "list"]:
                return self._list(dict(zip(parts[2::2], parts[3::2], strict=True)))
            if parts[0] == "study" and not parts[1].isdigit():
                known = {s["alias"]: n for n, s in self.studies.items()}
                if parts[1] not in known:
                    return self._error(412, 601, "Study does not exist.")
                return super().answer(f"{PREFIX}study/{known[parts[1]]}")
            if (
                parts[:2] == ["data", "features"]
                and self._look(int(parts[2])) != "active"
            ):
                return self._error(412, 273, "Dataset not processed yet")
            return super().answer(path)

    def _look(self, data_id: int) -> str:
        """The status; each look brings a new data set nearer to being active."""
        if self.status.get(data_id) == "in_preparation":
            self.looks[data_id] += 1
            name = self.datasets[data_id].name
            if self.looks[data_id] > self.active_after and name not in self.broken:
                self.status[data_id] = "active"
        return self.status.get(data_id, "active")

    def _list(self, filters: dict[str, str]) -> tuple[int, str, str]:
        ids = sorted(self.datasets)
        if "data_id" in filters:
            ids = [n for n in ids if str(n) in filters["data_id"].split(",")]
        if "data_name" in filters:
            ids = [n for n in ids if self.datasets[n].name == filters["data_name"]]
        found = {n: self._look(n) for n in ids}
        if filters.get("status") != "all":
            found = {n: status for n, status in found.items() if status == "active"}
        if not found:
            return self._error(412, 372, "No results")
        body = "".join(
            f"<oml:dataset><oml:did>{n}</oml:did><oml:name>{self.datasets[n].name}</oml:name>"
            f"<oml:version>1</oml:version><oml:status>{status}</oml:status>"
            "<oml:format>ARFF</oml:format></oml:dataset>"
            for n, status in found.items()
        )
        return 200, "text/xml", f"<oml:data {NAMESPACE}>{body}</oml:data>"

    def _description(self, data_id: int) -> str:
        data, about = self.datasets[data_id], self.about[data_id]
        body = f"<oml:id>{data_id}</oml:id><oml:version>1</oml:version>"
        body += f"<oml:url>{self.root}/data/file/{data_id}</oml:url>"
        body += "".join(f"<oml:{k}>{escape(v)}</oml:{k}>" for k, v in about.items())
        body += "".join(
            f"<oml:ignore_attribute>{n}</oml:ignore_attribute>" for n in data.ignore
        )
        body += f"<oml:status>{self._look(data_id)}</oml:status>"
        if data.name in self.broken:
            body += "<oml:error>Weka: java.io.IOException: premature end of line</oml:error>"
        md5 = hashlib.md5(data.arff.encode()).hexdigest()
        body += f"<oml:md5_checksum>{md5}</oml:md5_checksum>"
        return (
            f"<oml:data_set_description {NAMESPACE}>{body}</oml:data_set_description>"
        )

    def _task(self, task_id: int) -> str:
        asked = self.inputs[task_id]
        procedure = {"28": "holdout_ordered", "12": "holdout"}[
            asked["estimation_procedure"]
        ]
        text = super()._task(task_id)
        text = text.replace(
            "<oml:id>1</oml:id>", f"<oml:id>{asked['estimation_procedure']}</oml:id>"
        )
        text = text.replace("crossvalidation", procedure)
        measure = asked.get("evaluation_measures", "")
        return text.replace(
            "<oml:evaluation_measure></", f"<oml:evaluation_measure>{measure}</"
        )

    def _suite(self, suite_id: int) -> str:
        about = self.studies[suite_id]
        text = super()._suite(suite_id)
        text = text.replace(
            f"{suite_id}</oml:id>",
            f"{suite_id}</oml:id><oml:alias>{about['alias']}</oml:alias>",
            1,
        )
        return text.replace("<oml:name>a suite<", f"<oml:name>{escape(about['name'])}<")

    # what is taken

    def take(
        self, path: str, headers: Message, body: bytes
    ) -> tuple[int, str, str] | None:
        with self.guard:
            path = path.removeprefix(PREFIX)
            fault = self._fault(f"POST {path}")
            if fault and fault.how not in ("reset", "garbled"):
                return self._fail(fault)
            self.bodies.append(body)
            fields = _fields(headers, body)
            answer = self._taken(path, fields)
            if fault and fault.how == "garbled":
                return 200, "text/html", "<html><br>PHP warning: something"
            return None if fault else answer

    def _taken(self, path: str, fields: dict[str, str]) -> tuple[int, str, str]:
        if "api_key" not in fields or not fields["api_key"]:
            return self._error(412, 102, "No authentication")
        if fields["api_key"] != KEY:
            return self._error(412, 103, "Authentication failed")
        self.posts.append(path)
        if path == "data/":
            return self._take_data(fields)
        if path == "task/":
            return self._take_task(fields)
        if path == "study/":
            return self._take_study(fields)
        if path in ("data/tag", "task/tag"):
            kind = path.split("/")[0]
            entry = (kind, int(fields[f"{kind}_id"]), fields["tag"])
            if entry in self.tags:
                return self._error(412, 473, "Entity already tagged by this tag.")
            self.tags.append(entry)
            return (
                200,
                "text/xml",
                f"<oml:{kind}_tag {NAMESPACE}><oml:id>1</oml:id></oml:{kind}_tag>",
            )
        return self._error(412, 100, "Function not valid")

    def _take_data(self, fields: dict[str, str]) -> tuple[int, str, str]:
        if len(fields["dataset"].encode()) > self.largest:
            return (
                413,
                "text/html",
                "<html><h1>413 Request Entity Too Large</h1></html>",
            )
        root = ElementTree.fromstring(fields["description"])
        wrong = _invalid(root)
        if wrong:
            return self._error(412, 131, wrong)
        try:
            decoded = arff.loads(fields["dataset"])
        except arff.ArffException as error:
            return self._error(412, 145, str(error))
        known = {str(name): kind for name, kind in decoded["attributes"]}
        features = [
            (
                name,
                "nominal"
                if isinstance(kind, list)
                else {"STRING": "string"}.get(kind, "numeric"),
                kind if isinstance(kind, list) else [],
            )
            for name, kind in known.items()
        ]
        about = {e.tag.removeprefix(OML): e.text or "" for e in root}
        ignore = [e.text or "" for e in root.findall(f"{OML}ignore_attribute")]
        about.pop("ignore_attribute", None)
        self.last_data += 1
        number = self.last_data
        self.datasets[number] = Dataset(
            about["name"],
            fields["dataset"],
            features,
            about["default_target_attribute"],
            ignore,
            about["row_id_attribute"],
        )
        self.about[number] = about
        self.status[number], self.looks[number] = "in_preparation", 0
        return self._id("upload_data_set", number)

    def _take_task(self, fields: dict[str, str]) -> tuple[int, str, str]:
        root = ElementTree.fromstring(fields["description"])
        asked = {e.attrib["name"]: e.text or "" for e in root.findall(f"{OML}input")}
        asked["task_type"] = root.findtext(f"{OML}task_type_id") or ""
        data_id = int(asked["source_data"])
        if data_id not in self.datasets or self.status[data_id] != "active":
            return self._error(
                412, 623, "Tasks can only be created upon active datasets."
            )
        data = self.datasets[data_id]
        kinds = {name: kind for name, kind, _ in data.features}
        wanted = {"1": ("nominal", "28"), "2": ("numeric", "12")}[asked["task_type"]]
        if (
            kinds.get(asked["target_feature"]),
            asked["estimation_procedure"],
        ) != wanted:
            return self._error(412, 622, "Input value does not match allowed values")
        same = [str(n) for n, known in self.inputs.items() if known == asked]
        if same:
            status, kind, text = self._error(412, 614, "Task already exists.")
            more = f"matched id(s): [{','.join(same)}]"
            more = f"<oml:additional_information>{more}</oml:additional_information></oml:error>"
            return status, kind, text.replace("</oml:error>", more)
        self.last_task += 1
        number = self.last_task
        n = len(arff.loads(data.arff)["data"])
        test = ordered(n) if asked["estimation_procedure"] == "28" else holdout(n)
        if data.name in self.wrong:
            test = {(row + 1) % n for row in test}
        self.tasks[number] = (data_id, int(asked["task_type"]), split_file(n, test))
        self.inputs[number] = asked
        return self._id("upload_task", number)

    def _take_study(self, fields: dict[str, str]) -> tuple[int, str, str]:
        root = ElementTree.fromstring(fields["description"])
        wrong = _invalid(root)
        if wrong:
            return self._error(412, 1032, wrong)
        about = {e.tag.removeprefix(OML): e.text or "" for e in root}
        if about["alias"] in [known["alias"] for known in self.studies.values()]:
            return self._error(412, 1038, "Study alias not unique")
        ids = [int(e.text or "") for e in root.findall(f"{OML}tasks/{OML}task_id")]
        number = 1 + len(self.suites)
        self.suites[number], self.studies[number] = ids, about
        return self._id("study_upload", number)

    # faults

    def _fault(self, request: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and request.startswith(fault.where):
                fault.times -= 1
                return fault
        return None

    def _fail(self, fault: Fault) -> tuple[int, str, str] | None:
        if fault.how == "107":
            return self._error(412, 107, "Database connection error.")
        if fault.how in ("lost", "reset"):
            return None
        status = {"html": 200}.get(fault.how) or int(fault.how)
        return status, "text/html", "<html><h1>Sorry</h1><br></html>"

    @staticmethod
    def _id(word: str, number: int) -> tuple[int, str, str]:
        body = f"<oml:{word} {NAMESPACE}><oml:id>{number}</oml:id></oml:{word}>"
        return 200, "text/xml", body


def _fields(headers: Message, body: bytes) -> dict[str, str]:
    kind = headers["Content-Type"]
    if kind.startswith("application/x-www-form-urlencoded"):
        return {name: values[0] for name, values in parse_qs(body.decode()).items()}
    message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    return {
        str(part.get_param("name", header="content-disposition")): part.get_payload(
            decode=True
        ).decode()
        for part in message.get_payload()
    }


def _invalid(root: ElementTree.Element) -> str:
    """What the schema does not allow; also a wrong order of elements."""
    rules = _RULES[root.tag.removeprefix(OML)]
    places = []
    for element in root:
        name, text = element.tag.removeprefix(OML), element.text or ""
        length, pattern = rules.get(name, (10**6, r"[\s\S]*"))
        if name not in ("tasks",) and not (
            0 < len(text) <= length and re.fullmatch(pattern, text)
        ):
            return f"Element {name}: {text[:50]!r} is not valid"
        places += (
            [_ORDER.index(name)] if root.tag == f"{OML}data_set_description" else []
        )
    return "" if places == sorted(places) else "This element is not expected"


def ordered(n: int) -> set[int]:
    """20 % holdout, ordered: a row is for training where its number is at most 0.8 n."""
    return {row for row in range(n) if not row <= n - n * 20 / 100.0}


def holdout(n: int, percentage: int = 33) -> set[int]:
    """33 % holdout: Weka shuffles by ``java.util.Random(0)``, the first rows are test rows."""
    rows = list(range(n))
    draw = _java_ints()
    for last in reversed(range(1, n)):
        other = next_int(draw, last + 1)
        rows[last], rows[other] = rows[other], rows[last]
    return set(rows[: n * percentage // 100])


def _java_ints():
    """The 31-bit numbers of a ``java.util.Random(0)``."""
    seed = 25214903917 ^ 0
    while True:
        seed = (seed * 25214903917 + 11) % 2**48
        yield seed // 2**17


def next_int(draw, bound: int) -> int:
    bits = next(draw)
    if bin(bound).count("1") == 1:
        return bound * bits // 2**31
    while (
        bits // bound * bound + bound > 2**31
    ):  # the last, incomplete block is left out
        bits = next(draw)
    return bits % bound


def split_file(n: int, test: set[int]) -> str:
    lines = ["@relation a_splits", "", "@attribute type {TRAIN,TEST}"]
    lines += [f"@attribute {name} numeric" for name in ("rowid", "repeat", "fold")]
    lines += ["", "@data"]
    lines += [f"{'TEST' if row in test else 'TRAIN'},{row},0,0" for row in range(n)]
    return "\n".join(lines) + "\n"
