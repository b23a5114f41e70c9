"""Which addresses a definition may name, and where ``s3://`` addresses are found."""

from __future__ import annotations

import os
import re
from urllib.parse import quote, urlsplit

from amlb_ext.core.display import redact_url
from amlb_ext.core.errors import SourceError

SCHEMES = ("http", "https", "s3")

#: What nobody writes into an address, and what could end a line of the request.
_SPACE_OR_CONTROL = re.compile(r"[\x00-\x20\x7f]")


def is_url(text: str) -> bool:
    """Whether ``text`` has a URL scheme.

    Examples
    --------
    >>> is_url("https://example.org/a.csv"), is_url("data/a.csv")
    (True, False)
    """
    return "://" in text


def check_url(url: str) -> str:
    """Return an address of :data:`SCHEMES` that has a host and no password.

    Raises
    ------
    SourceError

    Examples
    --------
    >>> check_url("ftp://example.org/a.csv")
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.SourceError: ftp://example.org/a.csv has the scheme 'ftp' (use http, \
https or s3, or download the file and give its path)
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        # reading the port checks it; encoding the host raises UnicodeError, which is a ValueError,
        # where no server can have that name
        _ = parts.port
        host.encode("idna")
    except ValueError:
        raise SourceError(
            f"the address {redact_url(url)[:300]!r} is not valid",
            "check its host and its port",
        ) from None
    if parts.scheme not in SCHEMES:
        raise SourceError(
            f"{shorten_url(url)} has the scheme {parts.scheme!r}",
            "use http, https or s3, or download the file and give its path",
        )
    if not host:
        raise SourceError(
            f"{shorten_url(url)} names no host", "write https://HOST/PATH"
        )
    if "@" in parts.netloc:
        raise SourceError(
            f"{shorten_url(url)} holds a user name or a password",
            "leave it out, no credentials are sent; for a file behind a password, download it and "
            "give its path",
        )
    if _SPACE_OR_CONTROL.search(url):
        raise SourceError(
            f"{shorten_url(url)} holds a space or a control character",
            "write a space as %20",
        )
    return url


def to_https(url: str) -> str:
    """Return the ``https`` address of ``s3://BUCKET/KEY``; other addresses unchanged.

    The bucket is looked for at the endpoint of the environment's ``AWS_ENDPOINT_URL_S3`` or
    ``AWS_ENDPOINT_URL``, else at Amazon's public address.

    Examples
    --------
    >>> to_https("s3://automl-benchmark/data/a.csv")
    'https://automl-benchmark.s3.amazonaws.com/data/a.csv'
    >>> to_https("s3://my.bucket/a.csv")
    'https://s3.amazonaws.com/my.bucket/a.csv'
    """
    parts = urlsplit(url)
    if parts.scheme != "s3":
        return url
    bucket = parts.netloc
    # "%" stays, since the key may be quoted already
    key = quote(parts.path, safe="/%")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3")
    endpoint = endpoint or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        return check_url(f"{endpoint.rstrip('/')}/{bucket}{key}")
    if "." in bucket:
        # Amazon's certificate is for *.s3.amazonaws.com, and a star stands for no dot.
        return f"https://s3.amazonaws.com/{bucket}{key}"
    return f"https://{bucket}.s3.amazonaws.com{key}"


def shorten_url(url: str) -> str:
    """Return an address for a message: without secrets and not endless."""
    return redact_url(url)[:300]
