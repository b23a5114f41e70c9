"""Hide passwords, keys and tokens before a text or an address is shown."""

from __future__ import annotations

import re

#: Takes the place of a secret.
MASK = "***"

#: ``api_key=...`` in a query, ``api_key%3D...`` in an escaped query, ``"apikey": ...`` in JSON.
_API_KEY = re.compile(
    r"""(api_?key(?:=|%3d|['"]?\s*:\s*['"]?))[^&\s'")]+""",
    re.IGNORECASE,
)
#: ``user:password@`` or ``token@`` before the host.
_USER_AND_PASSWORD = re.compile(r"(://)[^/\s]*@")


def redact_text(text: str, *secrets: str) -> str:
    """Hide the passwords and API keys in a text, for instance in the answer of a server.

    Parameters
    ----------
    text : str
    *secrets : str
        Texts to hide wherever they occur; empty ones are ignored.

    Examples
    --------
    >>> redact_text("GET /task/1?api_key=abc123&x=1 failed for secret", "secret")
    'GET /task/1?api_key=***&x=1 failed for ***'
    >>> redact_text("fatal: unable to access 'https://me:pass@host.org/x'")
    "fatal: unable to access 'https://***@host.org/x'"
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, MASK)
    text = _API_KEY.sub(rf"\1{MASK}", text)
    return _USER_AND_PASSWORD.sub(rf"\1{MASK}@", text)


def redact_url(url: str) -> str:
    """Hide user, password, query and fragment of an address, also of a malformed one.

    Everything up to the last ``@`` is hidden: a password may hold a slash or another ``@``.

    Examples
    --------
    >>> redact_url("https://me:secret@example.org:8443/a.csv?token=secret")
    'https://***@example.org:8443/a.csv?***'
    """
    without_query = re.sub(r"[?#].*", f"?{MASK}", url, flags=re.DOTALL)
    return re.sub(r"//.*@", f"//{MASK}@", without_query, flags=re.DOTALL)
