"""Requests to an OpenML server: bounded in time, retried where that is safe, without the key.

The client's own calls are not used: they have no timeout, put the key into the address of every
GET, and send a POST again when the connection breaks after the server took it. Here the key
travels in the body of a POST only, and a POST is sent once; its sender looks up what became of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from xml.etree import ElementTree

from amlb_ext.core.errors import NetworkError, PublishError
from amlb_ext.core.redact import redact_text
from amlb_ext.core.version import __version__
from amlb_ext.publish.limits import NAMESPACE
from amlb_ext.sources.openml_client import CONNECT_TIMEOUT

#: Seconds until an answer must begin; a large file takes its time.
ANSWER_TIMEOUT = 300.0
#: Tries of a GET, and seconds before the second; they double.
TRIES, PAUSE = 4, 1.0


class Refused(PublishError):
    """The server answered, and the answer is no: nothing was taken.

    Attributes
    ----------
    code : int
        OpenML's, or else the status of HTTP.
    said : str
        The server's words.
    """

    def __init__(self, what: str, code: int, said: str) -> None:
        reason, remedy = explain(code)
        super().__init__(f"{what}: the server answers '{said}' ({code}){reason}", remedy)
        self.code = code
        self.said = said


class Uncertain(NetworkError):
    """No answer, or one that says nothing: the server may have taken it."""


class Server:
    """An OpenML server.

    Parameters
    ----------
    url : str
        Its API address.
    key : str
        Goes into the body of a POST and nowhere else.
    sleep : callable
        Waits between tries.
    """

    def __init__(self, url: str, key: str, sleep: Callable[[float], object] = time.sleep) -> None:
        self.url = url
        self.sleep = sleep
        self._key = key

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def get(self, path: str) -> ElementTree.Element:
        """Return the XML that the server has at ``path``.

        Raises
        ------
        Refused
            The server says that there is none.
        Uncertain
            No answer after :data:`TRIES` tries.
        """
        return self._parsed(path, self.download(f"{self.url}/{path}"))

    def download(self, address: str) -> str:
        """Return the text at an address that the server gave; errors as :meth:`get`."""
        for attempt in range(1, TRIES + 1):
            try:
                return self._send("GET", address)
            except (Uncertain, Refused) as error:
                passing = isinstance(error, Uncertain) or error.code == 107
                if not passing or attempt == TRIES:
                    raise
            self.sleep(PAUSE * 2 ** (attempt - 1))
        raise AssertionError("not reached")

    def post(
        self, path: str, fields: Mapping[str, str] | None = None, **files: str
    ) -> ElementTree.Element:
        """Send once, and return the answer.

        Parameters
        ----------
        path : str
        fields : mapping of str to str, optional
        **files : str
            Texts to upload.

        Raises
        ------
        Refused
            Nothing was taken.
        Uncertain
            It may have been taken or not.
        """
        data = {**(fields or {}), "api_key": self._key}
        parts = {name: (name, text.encode("utf-8")) for name, text in files.items()}
        text = self._send("POST", f"{self.url}/{path}", data=data, files=parts or None)
        try:
            return self._parsed(path, text)
        except Refused:
            raise
        except PublishError as error:
            raise Uncertain(error.message, error.remedy) from None

    def hide(self, text: object) -> str:
        """Return text without the key, in one line."""
        return " ".join(redact_text(str(text), self._key).split())[:300]

    def _send(self, method: str, address: str, **content: object) -> str:
        import requests

        what = self.hide(f"{method} {address}")
        try:
            answer = requests.request(
                method,
                address,
                timeout=(CONNECT_TIMEOUT, ANSWER_TIMEOUT),
                headers={"user-agent": f"hardsynth/{__version__}"},
                allow_redirects=method == "GET",
                **content,  # type: ignore[arg-type]
            )
        except requests.Timeout:
            raise self._lost(what, "no answer in time") from None
        except requests.ConnectionError:
            raise self._lost(what, "no connection, or it was lost") from None
        except (requests.RequestException, OSError, ValueError) as error:
            raise self._lost(what, f"{type(error).__name__}: {self.hide(error)}") from None
        status = answer.status_code
        answer.encoding = "utf-8"
        if status == 200:
            return answer.text
        code, said = _error(answer.text)
        if code:
            raise Refused(what, code, self.hide(said))
        if status >= 500 or status in (408, 425, 429):
            raise self._lost(what, f"status {status}")
        moved = f"moved to {self.hide(answer.headers.get('location', ''))}"
        raise Refused(what, status, moved if 300 <= status < 400 else answer.reason or "no reason")

    def _lost(self, what: str, why: str) -> Uncertain:
        return Uncertain(f"{what}: {why}", "the same command continues when the server answers")

    def _parsed(self, what: str, text: str) -> ElementTree.Element:
        code, said = _error(text)
        if code:  # some servers answer so with status 200
            raise Refused(what, code, self.hide(said))
        try:
            return ElementTree.fromstring(text)
        except ElementTree.ParseError:
            raise PublishError(
                f"{what}: the answer is no XML: {self.hide(text)[:80]!r}",
                f"check that {self.url} is the API of an OpenML server",
            ) from None


def find(element: ElementTree.Element, path: str) -> str:
    """Return the text of a descendant, in OpenML's namespace; empty when there is none.

    Examples
    --------
    >>> xml = '<oml:d xmlns:oml="http://openml.org/openml"><oml:id> 7 </oml:id></oml:d>'
    >>> find(ElementTree.fromstring(xml), "id"), find(ElementTree.fromstring(xml), "name")
    ('7', '')
    """
    steps = "/".join(step if step.startswith(".") else NAMESPACE + step for step in path.split("/"))
    return (element.findtext(steps) or "").strip()


def _error(text: str) -> tuple[int, str]:
    """OpenML's error code and words in an answer; 0 when it holds none."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return 0, ""
    code = find(root, "code")
    if root.tag != f"{NAMESPACE}error" or not code.isdigit():
        return 0, ""
    more = find(root, "additional_information")
    return int(code), find(root, "message") + (f" - {more}" if more else "")


# OpenML's error codes in plain words, with what to do.

#: code → (what it means, what to do).
CODES: dict[int, tuple[str, str]] = {
    102: ("no API key came", "set OPENML_APIKEY in the environment"),
    103: (
        "the API key is not known to this server",
        "each server has its own keys: set OPENML_APIKEY to the one on your profile page there",
    ),
    104: ("the account may only read", "ask the server's operators for an account that may write"),
    107: ("the server's database is overloaded", "run the same command again later, it continues"),
    112: ("the data set is private", "use the API key of its owner"),
    130: (
        "the file did not arrive whole, most often since it is larger than the server takes",
        "send fewer rows with --fit drop, or leave the task out with --only",
    ),
    131: (
        "the description breaks the server's schema",
        "report it as a bug, with --dry-run --json",
    ),
    137: ("no API key came", "set OPENML_APIKEY in the environment"),
    138: ("the API key is not known to this server", "set OPENML_APIKEY to a key of this server"),
    145: ("the server cannot read the data file", "report it as a bug, with --dry-run --out DIR"),
    163: (
        "the description breaks the server's schema",
        "report it as a bug, with --dry-run --json",
    ),
    413: (
        "the file is larger than the server takes",
        "send fewer rows with --fit drop, or leave the task out with --only",
    ),
    613: ("the task breaks the server's schema", "report it as a bug, with --dry-run --json"),
    614: ("the task exists already", "nothing needs to be done"),
    622: (
        "the server does not offer this procedure, measure or target",
        "a server of one's own needs OpenML's estimation procedures 12 and 28",
    ),
    623: ("the data set is not active yet", "run the same command again later, it continues"),
    696: ("only the server's operators may activate data sets", "wait, or ask them to"),
    1032: ("the suite breaks the server's schema", "report it as a bug, with --dry-run --json"),
    1038: ("a suite of this alias exists already", "nothing needs to be done"),
}
#: With these no other request would fare better.
FATAL = frozenset({102, 103, 104, 137, 138})


def explain(code: int) -> tuple[str, str]:
    """Return what a code means, to be put behind the server's words, and what to do.

    Examples
    --------
    >>> explain(623)
    (': the data set is not active yet', 'run the same command again later, it continues')
    >>> explain(999)
    ('', 'run the same command again, it continues; see docs/publish.md')
    """
    reason, remedy = CODES.get(
        code, ("", "run the same command again, it continues; see docs/publish.md")
    )
    return (f": {reason}" if reason else ""), remedy
