"""Send requests to an OpenML server, with timeouts and with errors in plain language.

The client's own calls are not used: they have no timeout, put the key into the address of every
GET, and send a POST again when the connection breaks after the server took it. Here the key
travels in the body of a POST only. A GET is tried again; a POST is sent once, and its sender looks
up what became of it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit
from xml.etree import ElementTree

from amlb_ext.core.display import redact_text, redact_url
from amlb_ext.core.errors import NetworkError, PublishError
from amlb_ext.core.version import __version__
from amlb_ext.publish.describe import openml_client
from amlb_ext.publish.limits import NAMESPACE
from amlb_ext.sources.openml_client import CONNECT_TIMEOUT

# Which server, and which key: from the environment or the OpenML client's configuration.


SERVERS = {
    "production": "https://www.openml.org/api/v1/xml",
    "test": "https://test.openml.org/api/v1/xml",
}
#: Holds the key of the server that --server names; wins over the client's configuration.
KEY_VARIABLE = "OPENML_APIKEY"
#: This machine: what is sent there does not travel.
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def server_url(server: str) -> str:
    """Return the API address of a server.

    Parameters
    ----------
    server : str
        ``test``, ``production`` or an address.

    Raises
    ------
    PublishError
        No such server, or an address over which a key would travel for all to read.

    Examples
    --------
    >>> server_url("test"), server_url("http://localhost:8080/")
    ('https://test.openml.org/api/v1/xml', 'http://localhost:8080/api/v1/xml')
    """
    if server in SERVERS:
        return SERVERS[server]
    remedy = "use --server test, --server production or an address like https://HOST/api/v1/xml"
    try:
        parts = urlsplit(server)
        host = parts.hostname
        # reading the port checks it
        _ = parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise PublishError(
            f"--server {redact_url(server)!r} is not the address of a server", remedy
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PublishError(
            f"--server {redact_url(server)!r} holds more than an address",
            "leave out user, password and query; the key comes from the environment",
        )
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise PublishError(
            f"--server {server!r}: over http others could read the API key on the way",
            "use https",
        )
    # a user types the address of the site; its API is below
    url = server.rstrip("/")
    return url if "/api/" in url else f"{url}/api/v1/xml"


def host_name(url: str) -> str:
    """Return the server's name for a file.

    Examples
    --------
    >>> host_name("http://127.0.0.1:8080/api/v1/xml"), host_name(SERVERS["production"])
    ('127.0.0.1_8080', 'www.openml.org')
    """
    return re.sub(r"[^A-Za-z0-9.-]", "_", urlsplit(url).netloc.lower())


def api_key(url: str) -> str:
    """Return the key for a server.

    The environment's key is meant for the server that the command names; the key in the client's
    configuration goes to the server that it was configured for and to no other.

    Raises
    ------
    PublishError
        There is none, or it is of another server.
    """
    from_environment = os.environ.get(KEY_VARIABLE, "").strip()
    if from_environment:
        return from_environment
    config = openml_client().config
    path = config.determine_config_file_path()
    remedy = (
        f"set {KEY_VARIABLE} in the environment, or write 'apikey = ...' and 'server = {url}' "
        f"into {path}; you find your key on your profile page of the server"
    )
    if not config.apikey:
        raise PublishError(
            f"there is no API key for {url} (102), nothing was sent", remedy
        )
    # the client sends its key to whatever server it is told to use; here only to its own
    if urlsplit(config.server).netloc.lower() != urlsplit(url).netloc.lower():
        raise PublishError(
            f"there is no API key for {url} (102), nothing was sent: the configured key is for "
            f"{redact_url(config.server)}",
            remedy,
        )
    return str(config.apikey).strip()


#: Seconds until an answer must begin; a large file takes its time.
ANSWER_TIMEOUT = 300.0
#: Tries of a GET.
TRIES = 4
#: Seconds before the second try; they double from try to try.
FIRST_PAUSE = 1.0
#: Longest text of a server that an error quotes, in characters.
_LONGEST_QUOTE = 300


# What OpenML's error codes mean, and what to do

_NO_KEY = ("the request had no API key", "set OPENML_APIKEY in the environment")
_WRONG_KEY = (
    "the API key is not known to this server",
    "each server has its own keys: set OPENML_APIKEY to the one on your profile page there",
)
_NOT_BY_SCHEMA = (
    "what was sent does not follow the server's schema",
    "report it as a bug, with the output of --dry-run --json",
)
_SMALLER_FILE = "send fewer rows with --fit drop, or leave the task out with --only"
_LATER = "run the same command again later; it continues where it stopped"
_UNKNOWN_CODE = (
    "run the same command again, it continues where it stopped; "
    "see docs/how-to/publish.md"
)
#: The server's database is overloaded: it may take the request a moment later.
OVERLOADED = 107
#: The data set is still being processed, so that no task can be made of it.
NOT_ACTIVE = 623
#: code → (what it means, what to do). 413 is the status of HTTP, the others are OpenML's.
CODES: dict[int, tuple[str, str]] = {
    102: _NO_KEY,
    103: _WRONG_KEY,
    104: (
        "the account may only read",
        "ask the server's operators for an account that may write",
    ),
    OVERLOADED: ("the server's database is overloaded", _LATER),
    112: ("the data set is private", "use the API key of its owner"),
    130: (
        "the upload is incomplete, most often because the file is larger than the server takes",
        _SMALLER_FILE,
    ),
    131: _NOT_BY_SCHEMA,
    137: _NO_KEY,
    138: _WRONG_KEY,
    145: (
        "the server cannot read the data file",
        "report it as a bug, with the files of --dry-run --out DIR",
    ),
    163: _NOT_BY_SCHEMA,
    413: ("the file is larger than the server takes", _SMALLER_FILE),
    613: _NOT_BY_SCHEMA,
    614: ("the task already exists", "nothing needs to be done"),
    622: (
        "the server does not offer this estimation procedure, measure or target",
        "a server of your own needs OpenML's estimation procedures 12 and 28",
    ),
    NOT_ACTIVE: ("the data set is not active yet", _LATER),
    696: (
        "only the server's operators may activate data sets",
        "wait, or ask them to do it",
    ),
    1032: _NOT_BY_SCHEMA,
    1038: ("a suite with this alias already exists", "nothing needs to be done"),
}
#: With these no other request would fare better.
FATAL = frozenset({102, 103, 104, 137, 138})


# Requests and their answers


class Refused(PublishError):
    """The server answered that it refuses: nothing was taken.

    Attributes
    ----------
    code : int
        OpenML's, or else the status of HTTP.
    said : str
        The server's words.
    """

    def __init__(self, what: str, code: int, said: str) -> None:
        reason, remedy = CODES.get(code, ("", _UNKNOWN_CODE))
        meaning = f": {reason}" if reason else ""
        super().__init__(
            f"{what}: the server answered '{said}' ({code}){meaning}", remedy
        )
        self.code = code
        self.said = said


class Uncertain(NetworkError):
    """No answer, or one that nobody can read: the server may have taken what was sent."""

    code = 0
    said = ""


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

    def __init__(
        self, url: str, key: str, sleep: Callable[[float], object] = time.sleep
    ) -> None:
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
                may_pass = isinstance(error, Uncertain) or error.code == OVERLOADED
                if not may_pass or attempt == TRIES:
                    raise
            self.sleep(FIRST_PAUSE * 2 ** (attempt - 1))
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
        # in the body: addresses end up in the logs of every proxy on the way
        data = {**(fields or {}), "api_key": self._key}
        parts = {name: (name, text.encode("utf-8")) for name, text in files.items()}
        text = self._send("POST", f"{self.url}/{path}", data=data, files=parts or None)
        try:
            return self._parsed(path, text)
        except PublishError as error:
            raise Uncertain(error.message, error.remedy) from None

    def hide(self, text: object) -> str:
        """Return text without the key, in one line."""
        one_line = " ".join(redact_text(str(text), self._key).split())
        return one_line[:_LONGEST_QUOTE]

    def _send(self, method: str, address: str, **content: object) -> str:
        import requests

        what = self.hide(f"{method} {address}")
        try:
            answer = requests.request(
                method,
                address,
                timeout=(CONNECT_TIMEOUT, ANSWER_TIMEOUT),
                headers={"user-agent": f"hardsynth/{__version__}"},
                # a POST that follows a redirect could hand the key to another host
                allow_redirects=method == "GET",
                **content,  # type: ignore[arg-type]
            )
        except requests.Timeout:
            raise self._uncertain(what, "the server did not answer in time") from None
        except requests.ConnectionError:
            raise self._uncertain(what, "the connection failed or was closed") from None
        except (requests.RequestException, OSError, ValueError) as error:
            reason = f"{type(error).__name__}: {self.hide(error)}"
            raise self._uncertain(what, reason) from None
        # OpenML answers in UTF-8, but does not always say so, and requests would guess
        answer.encoding = "utf-8"
        status = answer.status_code
        # some servers refuse with status 200
        code, message = _openml_error(answer.text)
        if code:
            raise Refused(what, code, self.hide(message))
        if status == 200:
            return answer.text
        # a proxy or a server in trouble: it may have taken the request nevertheless
        if status >= 500 or status in (408, 425, 429):
            raise self._uncertain(what, f"the server answered with status {status}")
        reason = answer.reason or "no reason"
        if 300 <= status < 400:
            reason = f"moved to {self.hide(answer.headers.get('location', ''))}"
        raise Refused(what, status, reason)

    def _uncertain(self, what: str, reason: str) -> Uncertain:
        return Uncertain(
            f"{what}: {reason}",
            "run the same command again when the server answers; it continues",
        )

    def _parsed(self, what: str, text: str) -> ElementTree.Element:
        try:
            return ElementTree.fromstring(text)
        except ElementTree.ParseError:
            raise PublishError(
                f"{what}: the answer is not XML: {self.hide(text)[:80]!r}",
                f"check that {self.url} is the API of an OpenML server",
            ) from None


def find_text(element: ElementTree.Element, path: str) -> str:
    """Return the text of a descendant, in OpenML's namespace; empty when there is none.

    Examples
    --------
    >>> xml = '<oml:d xmlns:oml="http://openml.org/openml"><oml:id> 7 </oml:id></oml:d>'
    >>> find_text(ElementTree.fromstring(xml), "id"), find_text(ElementTree.fromstring(xml), "name")
    ('7', '')
    """
    steps = []
    for step in path.split("/"):
        # "." and ".." are steps of XPath, and no elements
        steps.append(step if step.startswith(".") else NAMESPACE + step)
    text = element.findtext("/".join(steps)) or ""
    return text.strip()


def _openml_error(text: str) -> tuple[int, str]:
    """Return the code and the message of an error of OpenML's; 0 when the answer is none."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return 0, ""
    code = find_text(root, "code")
    if root.tag != f"{NAMESPACE}error" or not code.isdigit():
        return 0, ""
    message = find_text(root, "message")
    details = find_text(root, "additional_information")
    if details:
        message += f" - {details}"
    return int(code), message
