"""What an OpenML server takes: names, lengths, characters and sizes; checked before sending.

The lengths and patterns are those of the server's schemas for uploaded data sets and studies.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

NAMESPACE = "{http://openml.org/openml}"
#: Larger data files are refused. What a server takes is its own configuration and not told to
#: clients; this is a size that is surely a mistake for rows of a test fold and their training rows.
UPLOAD_LIMIT = 100 * 2**20
#: What PHP takes where nobody configured it, as in the server's published container.
UPLOAD_DEFAULT = 2 * 2**20
#: Characters of data set, target, ignore and row-id names.
NAME = r"[a-zA-Z0-9_\-\.\(\),]+"
#: Characters of tags and aliases.
TAG = r"[a-zA-Z0-9_\-\.]+"
_LATIN = r"[\x00-\x7f]*"
#: Characters that Unicode does not decompose into ASCII, and how they are spelled.
_ONE_LETTER = dict(zip("‐‑‒–—−‘’“”łøđŁØ", "------''\"\"lodLO", strict=True))
_TWO_LETTERS = {"ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe"}
_SPELLED = str.maketrans({**_ONE_LETTER, **_TWO_LETTERS})
_BREAKS_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class Limit:
    """How long a text may be, and of which characters."""

    length: int
    pattern: str = _LATIN


#: The fields of a data set's description.
DATA = {
    "name": Limit(128, NAME),
    "description": Limit(16384),
    "format": Limit(64, NAME),
    "creator": Limit(128),
    "licence": Limit(64),
    "default_target_attribute": Limit(128, NAME),
    "row_id_attribute": Limit(128, NAME),
    "ignore_attribute": Limit(128, NAME),
    "version_label": Limit(128, NAME),
    "citation": Limit(1024),
    "tag": Limit(64, TAG),
    "original_data_url": Limit(2048),
}
#: The fields of a suite's description, which the server calls a study.
STUDY = {
    "alias": Limit(32, TAG),
    "name": Limit(256),
    "description": Limit(4096),
    "main_entity_type": Limit(4, "task"),
}


def check_xml(xml: str, limits: dict[str, Limit]) -> Iterator[str]:
    """Yield what the server would refuse in a description.

    Examples
    --------
    >>> xml = '<o:d xmlns:o="http://openml.org/openml"><o:name>a b</o:name></o:d>'
    >>> list(check_xml(xml, DATA))
    ["name 'a b' holds characters that the server refuses; it takes a-zA-Z0-9_-.(),"]
    """
    for element in ElementTree.fromstring(xml):
        field = element.tag.removeprefix(NAMESPACE)
        text = element.text or ""
        limit = limits.get(field)
        if limit is None:
            continue
        # the schema demands at least one character of every field that is there
        if not text:
            yield f"{field} is empty"
        elif len(text) > limit.length:
            yield f"{field} has {len(text)} characters, the server takes {limit.length}"
        elif not re.fullmatch(limit.pattern, text):
            allowed = _allowed_characters(limit)
            yield (
                f"{field} {text[:60]!r} holds characters that the server refuses; it takes "
                f"{allowed}"
            )


def _allowed_characters(limit: Limit) -> str:
    """Return which characters a limit allows, as a user reads it."""
    if limit.pattern == _LATIN:
        return "ASCII"
    # the inside of [...]+ without its backslashes
    return re.sub(r"\\|^\[|\]\+$", "", limit.pattern)


def ascii_text(text: str) -> str:
    """Return text in ASCII: accents dropped, everything else escaped.

    Examples
    --------
    >>> ascii_text("Zürich – 5 µm")
    'Zurich - 5 um'
    >>> ascii_text("日")
    '\\\\u65e5'
    """
    spelled = text.translate(_SPELLED)
    # decomposed, an accent is a character of its own, behind its letter
    decomposed = unicodedata.normalize("NFKD", spelled)
    plain = ""
    for character in decomposed:
        if not unicodedata.combining(character):
            plain += character
    # the micro sign decomposes into a Greek mu
    plain = plain.replace("μ", "u")
    escaped = plain.encode("ascii", "backslashreplace").decode()
    return _BREAKS_XML.sub(" ", escaped)


def cut_text(text: str, length: int) -> str:
    """Return text cut to a length, with ``...`` where something is missing.

    Examples
    --------
    >>> cut_text("abcdefgh", 6)
    'abc...'
    """
    if len(text) <= length:
        return text
    return text[: length - 3] + "..."


def server_name(text: str, length: int = 128) -> str:
    """Return a name of the server's characters; what was too long ends in a hash.

    Examples
    --------
    >>> server_name("hardsynth.sick leave.0"), len(server_name("x" * 200))
    ('hardsynth.sick_leave.0', 128)
    """
    plain = ascii_text(text)
    name = re.sub(r"[^a-zA-Z0-9_.()-]", "_", plain) or "_"
    if len(name) <= length:
        return name
    # two long names that begin alike must not become one
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    stem = name[: length - len(digest) - 1]
    return f"{stem}-{digest}"
