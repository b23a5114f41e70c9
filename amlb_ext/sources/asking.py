"""One GET: which addresses may be asked, where a redirect may lead, how long an answer may take."""

from __future__ import annotations

import os
import re
import threading
import time
import urllib.error
import urllib.request
from email.message import Message
from http.client import HTTPException
from typing import IO, Any
from urllib.parse import quote, urlsplit

from amlb_ext.core.errors import NetworkError, SourceError

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
        As :func:`amlb_ext.sources.remote.download`.
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
