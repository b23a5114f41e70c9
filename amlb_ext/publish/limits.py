"""What an OpenML server takes, names, lengths, characters and sizes, and what a licence allows.

The lengths and patterns are those of the server's schemas for uploaded data sets and studies. All
of it is checked before anything is sent.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from amlb_ext.core.errors import PublishError, suggest_nearest

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
            # as a user reads it: the inside of [...]+ without its backslashes
            allowed = re.sub(r"\\|^\[|\]\+$", "", limit.pattern)
            if limit.pattern == _LATIN:
                allowed = "ASCII"
            yield (
                f"{field} {text[:60]!r} holds characters that the server refuses; it takes "
                f"{allowed}"
            )


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
    letters = [letter for letter in decomposed if not unicodedata.combining(letter)]
    # the micro sign decomposes into a Greek mu
    plain = "".join(letters).replace("μ", "u")
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


# May a task's rows be published again? The source's licence decides, or the publisher.


#: No derivatives, or no redistribution: then nobody may publish hard rows of the data.
_FORBIDS = re.compile(
    r"\bnd\b|\b(?:may|must) not\b|\bexcept\b|^not\b|^no licen|no[- ]?(?:deriv|modif)|propriet"
    r"|all rights reserved|confidential|internal use"
    r"|(?:\bno|\bnot?(?: be| for)?|non|without)[- ]?(?:re)?distribut|do not (?:re)?distribute"
)
#: Licences that are known to allow redistribution; the whole text must match.
_ALLOWS = re.compile(
    r"public(?:[- ]domain\b.*| *[(,;:.].*)?|(?:cc|creative commons)[- ]?(?:0|zero)\b.*"
    r"|cc[- ]?by\b.*|creative commons[- ,:(]+attribution\b.*|attribution[- ](?:4|3|share|non).*"
    r"|(?:odbl|odc|pddl|open data commons|open database)\b.*|cdla\b.*"
    r"|(?:the )?(?:mit|isc|apache|bsd|zlib)\b.*|[0-9]-clause bsd\b.*"
    r"|(?:gnu )?(?:[la]?gpl|general public|lesser general|affero)\b.*|(?:mpl|eupl|unlicense)\b.*"
    r"|(?:ogl|open government|dl-de|etalab|licence ouverte|u\.?s\.? government work)\b.*"
)


@dataclass(frozen=True)
class Licence:
    """The licence under which a task is published.

    Attributes
    ----------
    text : str
    stated : bool
        Whether the publisher stated it, and not the source.
    """

    text: str
    stated: bool = False


def why_not_allowed(licence: str) -> str:
    """Return why a licence does not let its data be published again; empty when it does.

    Examples
    --------
    >>> [why_not_allowed(text) for text in ("CC BY-SA 4.0", "Public", "Apache-2.0")]
    ['', '', '']
    >>> why_not_allowed("CC BY-ND 4.0"), why_not_allowed("see website"), why_not_allowed("")
    ("forbids it ('CC BY-ND 4.0')", "is not known to allow it ('see website')", 'is not stated')
    """
    text = re.sub(r"[\s_]+", " ", licence).strip().casefold()
    if text in ("", "unknown", "none", "n/a", "-", "?"):
        return "is not stated"
    shown = licence.strip()[:60]
    # first, since "CC BY-ND" begins like licences that allow it
    if _FORBIDS.search(text):
        return f"forbids it ({shown!r})"
    if not _ALLOWS.fullmatch(text):
        return f"is not known to allow it ({shown!r})"
    return ""


def settle_licences(
    licences: Mapping[str, str], stated: Sequence[str]
) -> dict[str, Licence]:
    """Return the licence of every task, or refuse.

    Parameters
    ----------
    licences : mapping of str to str
        What the source of each task states.
    stated : sequence of str
        What the publisher states, each ``TEXT`` for every task whose source does not allow it, or
        ``TASK=TEXT`` for one.

    Raises
    ------
    PublishError
        A task that nobody allowed to publish, or two statements for the same.

    Examples
    --------
    >>> settled = settle_licences({"a": "CC0", "b": ""}, ["by permission of the owner"])
    >>> settled["a"].stated, settled["b"].text
    (False, 'by permission of the owner')
    """
    for_all_tasks = ""
    for_one_task: dict[str, str] = {}
    for typed in stated:
        task, equals, text = typed.partition("=")
        if equals and task in licences:
            for_one_task[task] = text.strip()
        elif equals and re.fullmatch(r"[A-Za-z0-9_-]+", task):
            # what stands before = looks like a task's name: a slip of the pen, not a licence
            raise PublishError(
                f"--licence {typed!r}: there is no task {task!r}",
                suggest_nearest(task, licences),
            )
        elif for_all_tasks:
            raise PublishError(
                "--licence states two licences for every task",
                "use --licence TASK=TEXT",
            )
        else:
            for_all_tasks = typed.strip()
    settled = {}
    refused = []
    for task, licence in licences.items():
        problem = why_not_allowed(licence)
        if not problem and task not in for_one_task:
            settled[task] = Licence(licence.strip())
            continue
        statement = for_one_task.get(task, for_all_tasks)
        if not statement:
            refused.append(f"{task}: its licence {problem}")
        # the publisher may state any other licence, whether it is known here or not
        elif _FORBIDS.search(statement.casefold()):
            problem = why_not_allowed(statement)
            refused.append(f"{task}: its licence as stated {problem}")
        else:
            settled[task] = Licence(statement, stated=True)
    if refused:
        listed = "; ".join(refused[:5])
        if len(refused) > 5:
            listed += f"; and {len(refused) - 5} more"
        raise PublishError(
            f"nothing was written or sent, since rows may not be published: {listed}",
            "if you may publish them, state under which licence: --licence [TASK=]TEXT; "
            "or leave their tasks out",
        )
    return settled
