"""Files behind ``http``, ``https`` and ``s3``: downloaded once, checked at every use.

An address may end in ``#sha256=DIGEST``; a file with another checksum is refused and not kept.
``s3://BUCKET/KEY`` is asked for over https from Amazon's public address of the bucket, or below
``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL`` where that is set; no credentials are sent, so a
private bucket refuses. Redirects lead to ``http`` and ``https`` only. Size and time of a whole
download are limited.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote, urlsplit

from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.core.files import sha256_file

#: Seconds without an answer after which a try is given up.
TIMEOUT = 30.0
#: Most bytes of a file, and most seconds for it.
MAX_BYTES, MAX_SECONDS = 20 << 30, 3600.0


def is_url(text: str) -> bool:
    """Whether ``text`` has a URL scheme.

    Examples
    --------
    >>> is_url("https://example.org/a.csv"), is_url("data/a.csv")
    (True, False)
    """
    return "://" in text


def download(
    url: str,
    folder: Path,
    *,
    tries: int = 2,
    timeout: float = TIMEOUT,
    max_bytes: int = MAX_BYTES,
    max_seconds: float = MAX_SECONDS,
) -> Path:
    """Return the local copy of ``url``, fetched when it is absent or damaged.

    Beside the copy stands ``<name>.sha256``; a copy that no longer matches it, or not the
    checksum in the address, is fetched again.

    Parameters
    ----------
    url : str
        ``http``, ``https`` or ``s3``, with or without ``#sha256=DIGEST``.
    folder : Path
        The cache; the file goes to a subfolder named by the URL's hash.
    tries : int
        Tries in all, a second apart.
    timeout : float
        Seconds without an answer.
    max_bytes : int
        ``--max-download``.
    max_seconds : float
        Of a try, from the request to the last byte; ``--download-time``.

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
    plain, wanted = _checksum(url)
    address = by_https(checked(plain))
    name = re.sub(r"[^\w. ()+@-]", "_", Path(unquote(urlsplit(plain).path)).name)[-100:]
    name = name if name.strip(".") else "download"
    path = folder / hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:16] / name
    mark = path.with_name(path.name + ".sha256")
    with suppress(OSError):
        found = sha256_file(path) if path.is_file() else ""
        if found and found == (wanted or mark.read_text(encoding="ascii").strip()):
            return path
    for attempt in range(1, tries + 1):
        try:
            _fetch(address, path, mark, wanted, timeout, max_bytes, max_seconds)
            return path
        except NetworkError:
            if attempt == tries:
                raise
            time.sleep(1.0)
    raise AssertionError("tries is at least 1")


def _checksum(url: str) -> tuple[str, str]:
    """The address, and the sha256 behind its ``#``."""
    plain, _, fragment = url.partition("#")
    if not fragment.lower().startswith("sha256="):
        return plain, ""
    digest = fragment[7:].lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise SourceError(
            f"{shown(plain)} has the checksum {digest[:80]!r}",
            "write #sha256= and 64 hexadecimal digits, as sha256sum prints them",
        )
    return plain, digest


def _fetch(
    url: str,
    path: Path,
    mark: Path,
    wanted: str,
    timeout: float,
    max_bytes: int,
    max_seconds: float,
) -> None:
    end = time.monotonic() + max_seconds
    with ask(url, timeout, end) as answer:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        except OSError as error:
            raise SourceError(
                f"cannot write to {path.parent}: {error.strerror}", "use --cache-dir DIR"
            ) from None
        try:
            with os.fdopen(handle, "wb") as out:
                _copy(answer, out, shown(url), max_bytes, end)
            digest = sha256_file(Path(part))
            if wanted and digest != wanted:
                raise SourceError(
                    f"{shown(url)} has the sha256 {digest}, {wanted} was wanted",
                    "the file was changed, or the address is wrong; if the new one is right, "
                    "write its sha256 behind #",
                )
            mark.write_text(digest + "\n", encoding="ascii")
            os.replace(part, path)
        except (OSError, HTTPException) as error:
            raise NetworkError(f"{shown(url)} was not received whole: {error}", AGAIN) from None
        finally:
            Path(part).unlink(missing_ok=True)


def _copy(answer: Any, out: Any, name: str, max_bytes: int, end: float) -> None:
    """Copy what the server sends, as it comes, so that one that drips is noticed too."""
    expected = answer.length
    _check_size(name, expected or 0, max_bytes)
    received = 0
    while block := answer.read1(1 << 18):
        received += len(block)
        _check_size(name, received, max_bytes)
        if time.monotonic() > end:
            raise NetworkError(
                f"{name} took longer than --download-time allows", "raise it, or try again later"
            )
        out.write(block)
    if expected is not None and received != expected:
        raise NetworkError(f"{name}: the connection broke off", "try again")


def _check_size(name: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise SourceError(
            f"{name} is larger than {max_bytes / 2**30:.3g} GiB",
            "raise --max-download if you trust it, or download the file and give its path",
        )


# One GET: which addresses may be asked, where a redirect may lead, how long an answer may take.

SCHEMES = ("http", "https", "s3")
AGAIN = "connect to the network, or download the file and give its path"


def checked(url: str) -> str:
    """Return an address of :data:`SCHEMES` with a host and without a password.

    Raises
    ------
    SourceError

    Examples
    --------
    >>> checked("ftp://example.org/a.csv")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: ftp://example.org/a.csv has the scheme 'ftp' (use http, \
https or s3, or download the file and give its path)
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:  # UnicodeError is one
        raise SourceError("an address cannot be read", "check its host and port") from None
    if parts.scheme not in SCHEMES:
        raise SourceError(
            f"{shown(url)} has the scheme {parts.scheme!r}",
            "use http, https or s3, or download the file and give its path",
        )
    if not host or "@" in parts.netloc or re.search(r"[\x00-\x20\x7f]", url):
        raise SourceError(
            f"{shown(url)} has no host, or a password, or a space",
            "write spaces as %20; for a file behind a password, download it and give its path",
        )
    return url


def by_https(url: str) -> str:
    """Return where ``s3://BUCKET/KEY`` is found; other addresses as they are.

    A bucket with a dot in its name has no certificate of its own, and is asked for by path.

    Examples
    --------
    >>> by_https("s3://automl-benchmark/data/a.csv")
    'https://automl-benchmark.s3.amazonaws.com/data/a.csv'
    >>> by_https("s3://my.bucket/a.csv")
    'https://s3.amazonaws.com/my.bucket/a.csv'
    """
    parts = urlsplit(url)
    if parts.scheme != "s3":
        return url
    bucket, key = parts.netloc, quote(parts.path, safe="/%")
    own = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if own:
        return checked(f"{own.rstrip('/')}/{bucket}{key}")
    if "." in bucket:
        return f"https://s3.amazonaws.com/{bucket}{key}"
    return f"https://{bucket}.s3.amazonaws.com{key}"


def ask(url: str, timeout: float, end: float) -> Any:
    """Return the server's answer, its headers read.

    Parameters
    ----------
    url : str
        ``http`` or ``https``.
    timeout : float
        Seconds without a byte.
    end : float
        When the answer must have begun, by :func:`time.monotonic`.

    Raises
    ------
    NetworkError, SourceError
        As :func:`amlb_ext.sources.download.download`.
    """
    found: list[Any] = []
    late = threading.Event()

    def run() -> None:
        # A server that sends a header byte by byte never runs into the socket's own timeout.
        try:
            answer = _open(url, timeout)
        except Exception as error:
            found.append(error)
            return
        found.append(answer)
        if late.is_set():
            answer.close()

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(max(end - time.monotonic(), 0.0))
    if not found:
        late.set()
        raise NetworkError(f"{shown(url)} gives no answer in time", "try again later")
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def shown(url: str) -> str:
    """Return an address without user, password, query and fragment, which may hold secrets.

    Examples
    --------
    >>> shown("https://me:secret@example.org:8443/a.csv?token=secret")
    'https://example.org:8443/a.csv'
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"[:300]
    except ValueError:
        return "an address"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows to http and https only."""

    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message
    ) -> Any:
        place = headers.get("location") or headers.get("uri") or ""
        scheme = place.partition("://")[0].lower() if "://" in place else ""
        if scheme not in ("", "http", "https") or re.match(r"(?!https?:)[\w+.-]+:", place, re.I):
            with fp:
                raise SourceError(
                    f"{shown(req.full_url)} leads to an address that is no http or https",
                    "download the file and give its path",
                )
        return super().http_error_302(req, fp, code, msg, headers)  # type: ignore[arg-type]

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _open(url: str, timeout: float) -> Any:
    opener = urllib.request.OpenerDirector()
    for handler in (
        *(urllib.request.ProxyHandler(), urllib.request.HTTPHandler()),
        *(urllib.request.HTTPSHandler(), urllib.request.HTTPDefaultErrorHandler()),
        *(_Redirects(), urllib.request.HTTPErrorProcessor(), urllib.request.UnknownHandler()),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(url, headers={"User-Agent": "hardsynth"})
    try:
        return opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            region = error.headers.get("x-amz-bucket-region", "")
            said = f"{shown(url)}: the server answers {error.code} {error.reason}"
        elsewhere = error.code in (301, 307) and re.fullmatch("[a-z0-9-]+", region)
        if elsewhere and (urlsplit(url).hostname or "").endswith("s3.amazonaws.com"):
            there = url.replace("s3.amazonaws.com", f"s3.{region}.amazonaws.com", 1)
            return _open(there, timeout)
        if error.code < 500 and error.code != 429:
            raise SourceError(said, _remedy(error.code)) from None
        raise NetworkError(said, "try again later") from None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NetworkError(f"{shown(url)} cannot be reached: {reason}", AGAIN) from None


def _remedy(code: int) -> str:
    if code in (401, 403):
        return (
            "it is private or absent: make it public, write an https address that is signed for "
            "it, or download it (aws s3 cp) and give its path"
        )
    return "check the address"
