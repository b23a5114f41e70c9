"""Files behind ``http`` and ``https``: downloaded once, checked whenever they are used again."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from urllib.parse import unquote, urlsplit

from amlb_ext.core.atomic import sha256_file
from amlb_ext.core.errors import NetworkError, SourceError

#: Seconds without an answer after which a try is given up.
TIMEOUT = 30.0


def is_url(text: str) -> bool:
    """Whether ``text`` has a URL scheme.

    Examples
    --------
    >>> is_url("https://example.org/a.csv"), is_url("data/a.csv")
    (True, False)
    """
    return "://" in text


def download(url: str, folder: Path, *, tries: int = 2, timeout: float = TIMEOUT) -> Path:
    """Return the local copy of ``url``, fetched when it is absent or damaged.

    Beside the copy stands ``<name>.sha256``; a copy that no longer matches it is fetched again.

    Parameters
    ----------
    url : str
        ``http`` or ``https``.
    folder : Path
        The cache; the file goes to a subfolder named by the URL's hash.
    tries : int
        Tries in all, a second apart.
    timeout : float
        Seconds without an answer.

    Returns
    -------
    Path

    Raises
    ------
    NetworkError
        The server cannot be reached, answers with an error of its own, or breaks off.
    SourceError
        Another scheme, no such file on the server, or a cache that cannot be written.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise SourceError(
            f"{_shown(url)} has the scheme {parts.scheme!r}",
            "use http or https, or download the file and give its path",
        )
    name = Path(unquote(parts.path)).name or "download"
    path = folder / hashlib.sha256(url.encode()).hexdigest()[:16] / name
    mark = path.with_name(path.name + ".sha256")
    with suppress(OSError):
        if path.is_file() and sha256_file(path) == mark.read_text(encoding="ascii").strip():
            return path
    for attempt in range(1, tries + 1):
        try:
            _fetch(url, path, mark, timeout)
            return path
        except NetworkError:
            if attempt == tries:
                raise
            time.sleep(1.0)
    raise AssertionError("tries is at least 1")


def _fetch(url: str, path: Path, mark: Path, timeout: float) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "hardsynth"})
    again = "connect to the network, or download the file and give its path"
    try:
        answer = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        with error:
            said = f"{_shown(url)}: the server answers {error.code} {error.reason}"
        if error.code < 500 and error.code != 429:
            raise SourceError(said, "check the address") from None
        raise NetworkError(said, "try again later") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise NetworkError(f"{_shown(url)} cannot be reached: {reason}", again) from None
    with answer:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
        except OSError as error:
            raise SourceError(
                f"cannot write to {path.parent}: {error.strerror}", "use --cache-dir DIR"
            ) from None
        try:
            with os.fdopen(handle, "wb") as out:
                shutil.copyfileobj(answer, out)
            expected = answer.headers.get("Content-Length")
            if expected and int(expected) != Path(part).stat().st_size:
                raise NetworkError(f"{_shown(url)}: the connection broke off", "try again")
            mark.write_text(sha256_file(Path(part)) + "\n", encoding="ascii")
            os.replace(part, path)
        except (OSError, HTTPException) as error:
            raise NetworkError(f"{_shown(url)} was not received whole: {error}", again) from None
        finally:
            Path(part).unlink(missing_ok=True)


def _shown(url: str) -> str:
    """The URL without user, password and query, which may hold secrets."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"
