"""Use the OpenML client without traces: its settings, its cache folder, its errors.

The client keeps its settings in module globals, installs a handler on the root logger, deletes
cache folders when a load fails, leaves pickles that other versions cannot read, writes the API key
into exception texts, and puts it into the query of every GET: to the server, and to whatever host
the server names for data and splits. So it reads without the key. Nothing of that reaches the user.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.display import redact_text, redact_url
from amlb_ext.core.errors import HardsynthError, NetworkError, SourceError, SuiteError
from amlb_ext.core.files import write_file

#: Seconds until a server that does not answer counts as unreachable.
CONNECT_TIMEOUT = 10.0
_LOCK = threading.RLock()
_PUBLIC = (
    "hardsynth reads what is public, and sends no API key to do so; download what is private "
    "yourself and give the path of its table"
)
#: What to do about an answer of the server, by the number of its error.
_HINTS = {
    102: _PUBLIC,
    103: _PUBLIC,
    107: "the server is overloaded, try again later",
    111: "check the number",
    112: _PUBLIC,
    151: "check the number",
    273: "the server has not processed this data set yet, try again later",
}


@contextmanager
def borrowed(
    openml: ModuleType, options: SourceConfig, spec: str
) -> Iterator[ModuleType]:
    """Hold the client with the options' settings, and give it back as it was.

    Parameters
    ----------
    openml : module
    options : SourceConfig
        ``openml_server``, ``openml_cache``, ``max_file_size``.
    spec : str
        What is asked for; whatever the client raises is one clear error that names it.

    Yields
    ------
    module
        It has no API key, its requests have limits of time and size, and its warnings and log
        lines are silent meanwhile; one thread at a time may hold it.
    """
    import requests

    from amlb_ext.sources.download import MAX_SECONDS, TRIES, LimitedSession

    with _LOCK:
        config = openml.config
        root_logger = logging.getLogger()
        before = dict(config.get_config_as_dict())
        # With no handler the client's logging.warning() would install one for good.
        silent_handler = logging.NullHandler()
        root_logger.addHandler(silent_handler)
        # The client waits for ever, and unpacks whatever a server sends into memory.
        calls = openml._api_calls
        limited = partial(
            LimitedSession,
            max_bytes=options.max_file_bytes,
            max_seconds=MAX_SECONDS,
        )
        calls.requests = SimpleNamespace(**{**vars(requests), "Session": limited})
        try:
            server = (options.openml_server or "").rstrip("/")
            if server and server != before["server"]:
                config.server = server
            # what is public needs no key
            config.apikey = ""
            if options.openml_cache:
                config.set_root_cache_directory(Path(options.openml_cache).expanduser())
            config.set_retry_policy("human", TRIES)
            with warnings.catch_warnings(), _explained(openml, spec):
                warnings.simplefilter("ignore")
                yield openml
        finally:
            calls.requests = requests
            root_logger.removeHandler(silent_handler)
            config.server = before["server"]
            config.apikey = before["apikey"]
            config.set_root_cache_directory(before["cachedir"])
            config.retry_policy = before["retry_policy"]
            config.connection_n_retries = before["connection_n_retries"]


@contextmanager
def _explained(openml: ModuleType, spec: str) -> Iterator[None]:
    """Turn whatever the client raises into one clear error without API keys."""
    from requests.exceptions import RequestException

    cache = openml.config.get_config_as_dict()["cachedir"]
    try:
        yield
    except HardsynthError:
        raise
    except (RequestException, ConnectionError) as error:
        raise unreachable(openml, spec, error) from None
    except openml.exceptions.OpenMLNotAuthorizedError:
        raise SourceError(f"{spec}: the server wants an API key", _HINTS[102]) from None
    except openml.exceptions.OpenMLServerException as error:
        # the client appends the additional information of the answer, which may be None
        answer = redact_text(str(error.message), openml.config.apikey)
        answer = answer.removesuffix(" - None")
        raise SourceError(
            f"{spec}: OpenML answers {answer} (code {error.code})",
            _HINTS.get(error.code or 0, "check the number and the server"),
        ) from None
    # damaged files in the cache end in whatever XML, ARFF and pickle readers raise
    except Exception as error:
        text = redact_text(str(error), openml.config.apikey)
        problem = " ".join(text.split())[:300]
        raise SourceError(
            f"{spec} cannot be read: {type(error).__name__}: {problem}",
            f"if its files in {cache} are damaged, delete them and try again",
        ) from None


def unreachable(openml: ModuleType, spec: str, error: Exception) -> NetworkError:
    """Return the error for a server that does not answer."""
    config = openml.config
    # requests, urllib3 and the client each have classes of their own for it
    is_timeout = isinstance(error, NetworkError) or "imeout" in type(error).__name__
    reason = "it does not answer in time" if is_timeout else "no connection"
    return NetworkError(
        f"{spec} is not completely in the cache, and the server "
        f"{redact_text(config.server, config.apikey)} cannot be reached: {reason}",
        "connect to the network, or use --openml-cache DIR with a cache that holds it",
    )


def check_server(openml: ModuleType, spec: str) -> None:
    """Raise soon when the server cannot be reached; the client itself has no timeout.

    Raises
    ------
    NetworkError
        No connection within :data:`CONNECT_TIMEOUT` seconds, however often it is tried.
    SourceError
        The server's address is no URL.
    """
    import requests

    from amlb_ext.sources.download import TRIES, CarefulSession, ask_until

    server = openml.config.server
    for attempt in range(1, TRIES + 1):
        try:
            ask_until(
                partial(CarefulSession().head, server, timeout=CONNECT_TIMEOUT),
                deadline=time.monotonic() + CONNECT_TIMEOUT,
                name=redact_url(server),
            ).close()
            return
        except (requests.ConnectionError, requests.Timeout, NetworkError) as error:
            if attempt == TRIES:
                raise unreachable(openml, spec, error) from None
            time.sleep(1.0)
        except (requests.RequestException, ValueError):
            raise SourceError(
                f"{server!r} is not the address of a server",
                "give one like https://www.openml.org/api/v1/xml to --openml-server",
            ) from None


def link_cached_files(kept: Path, work: Path) -> None:
    """Link the cached files of folder ``kept`` into folder ``work``, except pickles.

    Links, so that deleting ``work`` leaves ``kept`` alone; copies where links are forbidden.
    """
    if not kept.is_dir():
        return
    work.mkdir(parents=True, exist_ok=True)
    for path in kept.iterdir():
        link = work / path.name
        if not path.is_file() or link.exists() or not _is_data(path):
            continue
        try:
            link.symlink_to(path.resolve())
        except OSError:
            shutil.copyfile(path, link)


def copy_new_files(work: Path, kept: Path) -> None:
    """Copy new files from ``work`` to the cache ``kept``; a read-only cache stays as it is."""
    for path in sorted(work.rglob("*")):
        target = kept / path.relative_to(work)
        is_new_file = path.is_file() and not path.is_symlink() and not target.exists()
        if not is_new_file or not _is_data(path):
            continue
        # under another name first, so that other processes never see half a file
        with suppress(SuiteError):
            write_file(target, partial(shutil.copyfile, path))


def cached_data_id(path: Path) -> str:
    """Return the data set's number in a cached ``task.xml``, or nothing."""
    text = ""
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8")
    match = re.search(r"<oml:data_set_id>\s*(\d+)", text)
    return match[1] if match else ""


@contextmanager
def environment(name: str, value: str | None) -> Iterator[None]:
    """Set (or, with ``None``, leave) an environment variable for a while."""
    if value is None:
        yield
        return
    before = {name: os.environ[name]} if name in os.environ else {}
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        os.environ.update(before)


def _is_data(path: Path) -> bool:
    # the client also pickles what it decoded, for its own version
    return path.suffix in (".xml", ".arff", ".pq")
