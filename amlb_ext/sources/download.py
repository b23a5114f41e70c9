"""Files behind ``http``, ``https`` and ``s3``: downloaded once, checked at every use.

An address may end in ``#sha256=DIGEST``; a file with another checksum is refused and not kept.
``s3://BUCKET/KEY`` is asked for over https (:mod:`amlb_ext.sources.urls`). No credentials are sent,
so a private bucket refuses. Redirects lead to ``http`` and ``https`` only. The size of a file and
the time for it are limited.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitedTooLong
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.core.files import sha256_file
from amlb_ext.core.packed import UnpackLimits
from amlb_ext.sources.urls import check_url, shorten_url, to_https

#: Seconds without an answer after which a try is given up.
TIMEOUT = 30.0
#: Tries of a request in all: a second one gets over a broken connection, and more would only
#: hide for longer that a server is down.
TRIES = 2
#: Most bytes of a file.
MAX_BYTES = 20 << 30
#: Most seconds for a file: 20 GiB come in an hour at 6 MB a second, and a server that drips ends.
MAX_SECONDS = 3600.0
#: Most redirects of one address; browsers follow some 20.
MAX_REDIRECTS = 10

_BLOCK_BYTES = 1 << 16
_BY_HAND = "connect to the network, or download the file and give its path"


def download(
    url: str,
    folder: Path,
    *,
    tries: int = TRIES,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
) -> Path:
    """Return the local copy of ``url``, fetched when it is absent or damaged.

    Beside the copy stands ``<name>.sha256``. A copy that no longer matches it, or not the checksum
    in the address, is fetched again.

    Parameters
    ----------
    url : str
        ``http``, ``https`` or ``s3``, with or without ``#sha256=DIGEST``.
    folder : Path
        The cache; the file goes to a subfolder named by the URL's hash.
    tries : int
        Tries in all, a second apart.
    max_bytes : int
        ``--max-file-size``.
    max_seconds : float
        Of a try, from the request to the last byte.

    Returns
    -------
    Path

    Raises
    ------
    NetworkError
        The server cannot be reached, answers with an error of its own, breaks off, or is slow.
    SourceError
        Another scheme, no such file on the server, one that is too large or has another
        checksum, or a cache that cannot be written.
    """
    address, checksum = _split_checksum(url)
    https_address = to_https(check_url(address))
    path = _cached_path(address, folder)
    checksum_path = path.with_name(path.name + ".sha256")
    if _is_intact(path, checksum or None, checksum_path):
        return path
    # NOTE[OWN] urllib3.Retry repeats a request; here the body may break off or be slow as well, and
    # one count of tries holds for all of it.
    for attempt in range(1, tries + 1):
        try:
            _fetch(
                https_address,
                path,
                checksum_path,
                checksum=checksum,
                max_bytes=max_bytes,
                deadline=time.monotonic() + max_seconds,
            )
            return path
        except NetworkError:
            if attempt == tries:
                raise
            time.sleep(1.0)
    raise AssertionError("tries is at least 1")


def _split_checksum(url: str) -> tuple[str, str]:
    """Return the address without its fragment, and the sha256 that the fragment gives."""
    address, _, fragment = url.partition("#")
    if not fragment.lower().startswith("sha256="):
        return address, ""
    digest = fragment[len("sha256=") :].lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise SourceError(
            f"the address {shorten_url(address)} has the checksum {digest[:80]!r}",
            "write #sha256= and 64 hexadecimal digits, as sha256sum prints them",
        )
    return address, digest


def _cached_path(address: str, folder: Path) -> Path:
    """Return the path of an address's copy, with a name that every file system accepts."""
    url_path = unquote(urlsplit(address).path)
    name = re.sub(r"[^\w. ()+@-]", "_", Path(url_path).name)
    # of a long name the end, which holds the suffix; "." and ".." are folders
    name = name[-100:] if name.strip(".") else "download"
    address_hash = hashlib.sha256(address.encode("utf-8", "replace")).hexdigest()
    return folder / address_hash[:16] / name


def _is_intact(path: Path, checksum: str | None, checksum_path: Path) -> bool:
    """Whether the cached file has the checksum asked for, or else the one it was kept with."""
    with suppress(OSError):
        wanted = checksum or checksum_path.read_text(encoding="ascii").strip()
        return sha256_file(path) == wanted
    return False


def _fetch(
    url: str,
    path: Path,
    checksum_path: Path,
    *,
    checksum: str,
    max_bytes: int,
    deadline: float,
) -> None:
    """Fetch a file and put it in its place once it is complete and has the right checksum."""
    with closing(
        ask_until(lambda: _get(url), deadline=deadline, name=shorten_url(url))
    ) as response:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        except OSError as error:
            raise SourceError(
                f"cannot write to {path.parent}: {error.strerror}",
                "set HARDSYNTH_CACHE to a folder of yours",
            ) from None
        try:
            with os.fdopen(handle, "wb") as file:
                for block in receive(response, max_bytes=max_bytes, deadline=deadline):
                    file.write(block)
            # of what stands on the disk, not of what came from the network
            digest = sha256_file(Path(part))
            if checksum and digest != checksum:
                raise SourceError(
                    f"{shorten_url(url)} has the sha256 {digest}, but {checksum} was expected",
                    "the file has changed, or the address is wrong; if the new file is right, "
                    "write its sha256 behind #sha256=",
                )
            # a run killed between the two leaves a copy that does not match: it is fetched again
            checksum_path.write_text(digest + "\n", encoding="ascii")
            os.replace(part, path)
        except HTTPError as error:
            problem = "closed the connection before the whole file arrived"
            if isinstance(error, ReadTimeoutError):
                problem = f"sent nothing for {TIMEOUT:g} seconds"
            raise NetworkError(
                f"{shorten_url(url)}: the server {problem}",
                "try again later, or download the file and give its path",
            ) from None
        except OSError as error:
            raise SourceError(
                f"cannot write {path}: {error.strerror or error}",
                "free some space, or set HARDSYNTH_CACHE to another folder",
            ) from None
        finally:
            Path(part).unlink(missing_ok=True)


def receive(
    response: requests.Response,
    *,
    max_bytes: int,
    deadline: float,
    unpack: bool = False,
) -> Iterator[bytes]:
    """Yield what the server sends, block by block, within the limits.

    ``read1`` returns what has arrived. ``Response.iter_content`` would wait for a full block, and
    a server that sends a byte a second would never meet the deadline.

    Parameters
    ----------
    response : requests.Response
        Its body was not read.
    max_bytes : int
        Of what is yielded.
    deadline : float
        By :func:`time.monotonic`.
    unpack : bool
        Undo the ``Content-Encoding`` of the answer; what comes out is limited as in
        :class:`~amlb_ext.core.packed.UnpackLimits`.

    Raises
    ------
    NetworkError
        The deadline has passed.
    SourceError
        There are too many bytes.
    """
    url = response.url
    length = response.headers.get("Content-Length", "")
    if length.isdecimal():
        _check_size(url, int(length), max_bytes)
    received = 0
    while block := response.raw.read1(_BLOCK_BYTES, decode_content=unpack):
        received += len(block)
        _check_size(url, received, max_bytes)
        if unpack:
            arrived = response.raw.tell()
            UnpackLimits().check_bytes(shorten_url(url), received, arrived)
        if time.monotonic() > deadline:
            raise NetworkError(
                f"downloading {shorten_url(url)} took too long",
                "try again later, or download the file and give its path",
            )
        yield block


def _check_size(url: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise SourceError(
            f"{shorten_url(url)} is larger than {max_bytes / 2**30:.3g} GiB",
            "raise --max-file-size if you trust it, or download the file and give its path",
        )


def ask_until(
    ask: Callable[[], requests.Response], *, deadline: float, name: str
) -> requests.Response:
    """Return the server's answer to a request, its headers read and its body not.

    NOTE[OWN] the timeout of ``requests`` holds for each read of a socket, so a server that sends a
    header byte by byte never meets it. A thread waits for the headers, and is left behind when the
    deadline passes.

    Parameters
    ----------
    ask : callable
        Sends the request with ``stream=True``; what it raises is raised here.
    deadline : float
        When the headers must have arrived, by :func:`time.monotonic`.
    name : str
        What is asked, as the error names it.

    Raises
    ------
    NetworkError
        The deadline has passed.
    """
    answer: Future[requests.Response] = Future()

    def wait_for_headers() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    threading.Thread(target=wait_for_headers, daemon=True).start()
    try:
        return answer.result(max(deadline - time.monotonic(), 0.0))
    except WaitedTooLong:
        if answer.done():
            raise
        # nobody waits any more, and nobody else would close the connection
        answer.add_done_callback(_close)
        raise NetworkError(
            f"{name} gave no answer in time", "try again later"
        ) from None


def _close(late: Future[requests.Response]) -> None:
    if late.exception() is None:
        late.result().close()


class CarefulSession(requests.Session):
    """A session that sends no user name and no password, and reads no body of a redirect.

    ``requests`` takes the former from ``~/.netrc``, for the first address and for each redirect,
    and would read the latter to its end, however long it is.
    """

    def __init__(self) -> None:
        super().__init__()
        # with an `auth` of its own, requests looks into no ~/.netrc
        self.auth = lambda request: request
        self.max_redirects = MAX_REDIRECTS
        # identity: a file is kept, and its sha256 taken, as it stands on the server.
        self.headers.update({"User-Agent": "hardsynth", "Accept-Encoding": "identity"})

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        """Leave a redirected request as it is."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return where a response leads to; its body counts as read then."""
        target = super().get_redirect_target(resp)
        if target:
            resp._content = b""
            resp.close()
        return target


class LimitedSession(CarefulSession):
    """A session for a client of a server that reads whole answers: each is within limits.

    Parameters
    ----------
    max_bytes : int
        Of an answer, unpacked.
    max_seconds : float
        From the request to the last byte of its answer.
    """

    def __init__(self, *, max_bytes: int, max_seconds: float) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds

    def request(  # type: ignore[override]
        self, method: str, url: str, **settings: Any
    ) -> requests.Response:
        """Send a request, and read its answer."""
        settings = {**settings, "stream": True, "timeout": TIMEOUT}
        deadline = time.monotonic() + self._max_seconds
        send = partial(super().request, method, url, **settings)
        response = ask_until(send, deadline=deadline, name=shorten_url(url))
        with closing(response):
            blocks = receive(
                response, max_bytes=self._max_bytes, deadline=deadline, unpack=True
            )
            try:
                response._content = b"".join(blocks)
            except ReadTimeoutError as error:
                raise requests.ReadTimeout(error) from None
            except HTTPError as error:
                raise requests.ConnectionError(error) from None
        return response


def _get(url: str) -> requests.Response:
    name = shorten_url(url)
    try:
        response = CarefulSession().get(url, timeout=TIMEOUT, stream=True)
    except (requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL):
        raise SourceError(
            f"{name} leads to an address that is neither http nor https",
            "download the file and give its path",
        ) from None
    except requests.TooManyRedirects:
        raise SourceError(
            f"{name} redirects more than {MAX_REDIRECTS} times", "check the address"
        ) from None
    except (requests.RequestException, HTTPError, OSError, ValueError) as error:
        # the text of such an error holds the whole address, secrets included
        is_timeout = isinstance(error, requests.Timeout)
        reason = "it did not answer" if is_timeout else "no connection"
        raise NetworkError(f"{name} cannot be reached: {reason}", _BY_HAND) from None
    if 200 <= response.status_code < 300:
        return response
    response.close()
    region = response.headers.get("x-amz-bucket-region", "")
    status = response.status_code
    # Amazon's global address answers so where the bucket is somewhere else
    is_amazon = (urlsplit(url).hostname or "").endswith("s3.amazonaws.com")
    is_region = re.fullmatch(r"[a-z0-9-]+", region) is not None
    if status in (301, 307) and is_region and is_amazon:
        regional_url = url.replace("s3.amazonaws.com", f"s3.{region}.amazonaws.com", 1)
        return _get(regional_url)
    problem = f"{name}: the server answered {status} {response.reason or ''}".strip()
    # 429, too many requests, passes like an error of the server's own
    if status >= 500 or status == 429:
        raise NetworkError(problem, "try again later")
    remedy = "check the address"
    if status in (401, 403):
        remedy = (
            "the file is private or absent: make it public, write an https address that is signed "
            "for it, or download it (aws s3 cp) and give its path"
        )
    raise SourceError(problem, remedy)
