"""Text of others on a terminal: names, labels and messages that must not act there."""

from __future__ import annotations

import re

#: Characters that move a terminal's cursor, or turn or hide what stands around them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def escape_controls(text: str) -> str:
    """Return text with its control characters written out.

    Tabs and line feeds stay, whatever else a terminal would obey does not.

    Examples
    --------
    >>> print(escape_controls("red: \\x1b[31m"))
    red: \\x1b[31m
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
