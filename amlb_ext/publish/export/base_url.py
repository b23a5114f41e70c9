"""The address below which the files of an export will be found, as AMLB's loader can fetch it.

AMLB fetches a file with ``urllib`` (http, https) or boto3 (s3), after ``str.format`` has replaced
its folders in the address, and names its copy by what follows the last slash.
"""

from __future__ import annotations

import re
from typing import NoReturn
from urllib.parse import urlsplit

from amlb_ext.core.display import redact_url
from amlb_ext.core.errors import PublishError

SCHEMES = ("http", "https", "s3")
_EXAMPLE = "--base-url https://HOST/FOLDER or --base-url s3://BUCKET/FOLDER"
#: What may stand in the path of an address; a brace would be a placeholder to AMLB.
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
#: What may stand in a key of S3 without escapes.
_KEY = re.compile(r"[A-Za-z0-9._!'()*/-]*")
#: Names that S3 allows for buckets.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]")


def check_base_url(url: str) -> str:
    """Return an address without its last slash, after a check that AMLB can fetch from below it.

    Parameters
    ----------
    url : str
        ``http://``, ``https://`` or ``s3://``, then host or bucket, then a folder.

    Raises
    ------
    PublishError
        Another scheme, user or password, a query, or what cannot stand in an address.

    Examples
    --------
    >>> check_base_url("https://host.org/suites/hard/"), check_base_url("S3://my-bucket")
    ('https://host.org/suites/hard', 's3://my-bucket')
    >>> check_base_url("ftp://host.org")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.PublishError: --base-url 'ftp://host.org': AMLB fetches by http, https \
and s3, not by ftp (type --base-url https://HOST/FOLDER or --base-url s3://BUCKET/FOLDER)
    """
    scheme, mark, rest = url.partition("://")
    scheme = scheme.lower()
    if not mark:
        _refuse(
            url, "it does not begin with a scheme such as https://", f"type {_EXAMPLE}"
        )
    if scheme in ("s3a", "s3n"):
        _refuse(
            url,
            f"AMLB calls {scheme} s3",
            f"type --base-url {redact_url(f's3://{rest}')}",
        )
    if scheme not in SCHEMES:
        kind = scheme if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "that"
        _refuse(
            url,
            f"AMLB fetches by http, https and s3, not by {kind}",
            f"type {_EXAMPLE}",
        )
    place, _, path = rest.partition("/")
    if "?" in rest or "#" in rest:
        _refuse(
            url,
            "AMLB names a file by the end of its address, so nothing may follow the name",
            "leave out ? and # and what follows them; a server that wants a key in the address "
            "cannot serve AMLB, but s3:// takes the worker's own credentials",
        )
    # a password may hold a slash, and then "@" stands behind the first one
    has_password = "@" in rest and ":" in place and not _has_port(place)
    if "@" in place or has_password:
        _refuse(
            url,
            "user and password would be written into every definition",
            "leave them out; with s3:// the worker's own credentials are used",
        )
    folders = path.rstrip("/").split("/")
    has_odd_folder = any(folder in ("", ".", "..") for folder in folders)
    # without a folder, the files stand at the root of the server or the bucket
    if path.strip("/") and has_odd_folder:
        _refuse(
            url, "its folder has an empty part, a . or a ..", "write the folder out"
        )
    if scheme == "s3":
        _check_bucket(url, place, path)
    else:
        _check_host(url, place, path)
    return f"{scheme}://{place}/{path}".rstrip("/")


def _check_bucket(url: str, bucket: str, key: str) -> None:
    if not _BUCKET.fullmatch(bucket):
        _refuse(
            url,
            "s3:// must be followed by a bucket: 3 to 63 lower-case letters, digits, - and .",
            "type --base-url s3://BUCKET/FOLDER",
        )
    if not _KEY.fullmatch(key):
        _refuse(
            url,
            "AMLB uses the key as it is written, without decoding escapes",
            "use a folder of letters, digits, - _ . only",
        )


def _check_host(url: str, place: str, path: str) -> None:
    host = place.rpartition(":")[0] if _has_port(place) else place
    if not _HOST.fullmatch(host):
        _refuse(
            url,
            "the scheme must be followed by a host in ASCII, with a port at most",
            f"type {_EXAMPLE}",
        )
    if not _PATH.fullmatch(path):
        _refuse(
            url,
            "it holds a space, a brace or another character that cannot stand in an address",
            "write it percent-encoded, e.g. %20 for a space",
        )
    # reading the port checks it
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address:
        _refuse(url, "it is not an address", f"type {_EXAMPLE}")


def _has_port(place: str) -> bool:
    return re.search(r"[^:]:\d{1,5}$|\]:\d{1,5}$", place) is not None


def _refuse(url: str, why: str, remedy: str) -> NoReturn:
    raise PublishError(f"--base-url {redact_url(url)!r}: {why}", remedy)
