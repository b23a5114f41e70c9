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
import time
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from amlb_ext.core.atomic import sha256_file
from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.sources.asking import AGAIN, ask, by_https, checked, shown

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
