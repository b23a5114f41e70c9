"""The address below which the files of an export will be found, as AMLB's loader can fetch it.

AMLB fetches a file with ``urllib`` (http, https) or boto3 (s3), after ``str.format`` has replaced
its folders in the address, and names its copy by what follows the last slash.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from amlb_ext.core.display import redact_url
from amlb_ext.core.errors import PublishError

_EXAMPLE = "type --base-url https://HOST/FOLDER or --base-url s3://BUCKET/FOLDER"
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
    problem = _find_problem(scheme.lower(), rest) if mark else _NO_SCHEME
    if problem:
        why, remedy = problem
        raise PublishError(f"--base-url {redact_url(url)!r}: {why}", remedy)
    place, _, path = rest.partition("/")
    return f"{scheme.lower()}://{place}/{path}".rstrip("/")


_NO_SCHEME = ("it does not begin with a scheme such as https://", _EXAMPLE)


def _find_problem(scheme: str, rest: str) -> tuple[str, str] | None:
    """Return why AMLB cannot fetch from an address, and what to type instead; None if it can."""
    if scheme not in ("http", "https", "s3"):
        kind = scheme if re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme) else "that"
        return f"AMLB fetches by http, https and s3, not by {kind}", _EXAMPLE
    if "?" in rest or "#" in rest:
        return (
            "AMLB names a file by the end of its address, so nothing may follow the name",
            "leave out ? and # and what follows them; a server that wants a key in the address "
            "cannot serve AMLB, but s3:// takes the worker's own credentials",
        )
    place, _, path = rest.partition("/")
    has_port = re.search(r"[^:]:\d{1,5}$|\]:\d{1,5}$", place) is not None
    # a password may hold a slash, and then "@" stands behind the first one
    if "@" in place or ("@" in rest and ":" in place and not has_port):
        return (
            "user and password would be written into every definition",
            "leave them out; with s3:// the worker's own credentials are used",
        )
    folders = path.rstrip("/").split("/")
    # without a folder, the files stand at the root of the server or the bucket
    if path.strip("/") and not {"", ".", ".."}.isdisjoint(folders):
        return "its folder has an empty part, a . or a ..", "write the folder out"
    if scheme == "s3":
        if not _BUCKET.fullmatch(place):
            return (
                "s3:// must be followed by a bucket: 3 to 63 lower-case letters, digits, - and .",
                "type --base-url s3://BUCKET/FOLDER",
            )
        if not _KEY.fullmatch(path):
            return (
                "AMLB uses the key as it is written, without decoding escapes",
                "use a folder of letters, digits, - _ . only",
            )
        return None
    host = place.rpartition(":")[0] if has_port else place
    if not _HOST.fullmatch(host):
        return (
            "the scheme must be followed by a host in ASCII, with a port at most",
            _EXAMPLE,
        )
    if not _PATH.fullmatch(path):
        return (
            "it holds a space, a brace or another character that cannot stand in an address",
            "write it percent-encoded, e.g. %20 for a space",
        )
    # reading the port checks it
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        is_address = bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_address = False
    return None if is_address else ("it is not an address", _EXAMPLE)
