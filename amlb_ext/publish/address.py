"""Which server, and which key: from the environment or the OpenML client's configuration."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from amlb_ext.core.errors import PublishError
from amlb_ext.core.redact import redact_url
from amlb_ext.publish.objects import openml_client

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
    path = Path(config.determine_config_file_path())
    remedy = (
        f"set {KEY_VARIABLE} in the environment, or write 'apikey = ...' and 'server = {url}' "
        f"into {_with_tilde(path)}; you find your key on your profile page of the server"
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


def _with_tilde(path: Path) -> str:
    """Return a path as a user writes it, below ``~`` where it is there."""
    try:
        return f"~/{path.relative_to(Path.home().resolve()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)
