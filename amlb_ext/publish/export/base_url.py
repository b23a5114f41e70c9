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
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
#: What a folder may be called; a brace would be a placeholder to AMLB.
_FOLDER = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+")
#: Names that S3 allows for buckets, and what may stand in a key of S3 without escapes.
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_KEY = re.compile(r"[A-Za-z0-9._!'()*-]+")


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
and s3 alone (type --base-url https://HOST/FOLDER or --base-url s3://BUCKET/FOLDER)
    """
    start = f"--base-url {redact_url(url)!r}"
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if scheme not in ("http", "https", "s3"):
        raise PublishError(
            f"{start}: AMLB fetches by http, https and s3 alone", _EXAMPLE
        )
    if "?" in rest or "#" in rest:
        raise PublishError(
            f"{start}: AMLB names a file by the end of its address, so nothing may follow the name",
            "leave out ? and # and what follows them; a server that wants a key in the address "
            "cannot serve AMLB, but s3:// takes the worker's own credentials",
        )
    place, *folders = rest.rstrip("/").split("/")
    place_form, folder_form = (_BUCKET, _KEY) if scheme == "s3" else (_HOST, _FOLDER)
    is_address = place_form.fullmatch(place) and all(
        map(folder_form.fullmatch, folders)
    )
    # reading the port checks it
    try:
        _ = urlsplit(url).port
    except ValueError:
        is_address = False
    if not is_address or not {".", ".."}.isdisjoint(folders):
        raise PublishError(
            f"{start}: AMLB could not fetch from below it; what follows https:// is a host in "
            "ASCII, with a port at most and no user or password, what follows s3:// a bucket of 3 "
            "to 63 lower-case letters, digits, - and .; then folders, none of them empty, . or ..",
            f"{_EXAMPLE}; in https:// percent-encode a space, a brace and the like (%20), in "
            "s3:// use letters, digits, - _ . alone",
        )
    return "/".join([f"{scheme}://{place}", *folders])
