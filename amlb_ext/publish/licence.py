"""May a task's rows be published again? The source's licence decides, or the publisher's word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amlb_ext.core.errors import PublishError, suggest_nearest
from amlb_ext.publish.limits import DATA, ascii_text, cut

_FORBIDS = re.compile(
    r"\bnd\b|no[- ]?deriv|propriet|all rights reserved|confidential|internal use"
    r"|(?:\bno|\bnot?(?: be| for)?|non|without)[- ]?(?:re)?distribut|do not (?:re)?distribute"
)
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

    @property
    def sent(self) -> str:
        """The text within the server's limits."""
        return cut(ascii_text(self.text), DATA["licence"].length)


def forbidden(licence: str) -> str:
    """Return why a licence does not let its data be published again; empty when it does.

    Examples
    --------
    >>> [forbidden(text) for text in ("CC BY-SA 4.0", "Public", "Apache-2.0")]
    ['', '', '']
    >>> forbidden("CC BY-ND 4.0"), forbidden("see website"), forbidden("")
    ("forbids it ('CC BY-ND 4.0')", "is not known to allow it ('see website')", 'is not stated')
    """
    text = re.sub(r"[\s_]+", " ", licence).strip().casefold()
    if not text or text in ("unknown", "none", "n/a", "-", "?"):
        return "is not stated"
    if _FORBIDS.search(text):
        return f"forbids it ({licence.strip()[:60]!r})"
    if not _ALLOWS.fullmatch(text):
        return f"is not known to allow it ({licence.strip()[:60]!r})"
    return ""


def settle(licences: Mapping[str, str], stated: Sequence[str]) -> dict[str, Licence]:
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
    >>> found = settle({"a": "CC0", "b": ""}, ["by permission of the owner"])
    >>> found["a"].stated, found["b"].sent
    (False, 'by permission of the owner')
    """
    everywhere, single = "", dict[str, str]()
    for word in stated:
        task, equals, text = word.partition("=")
        if equals and task in licences:
            single[task] = text.strip()
        elif equals and re.fullmatch(r"[A-Za-z0-9_-]+", task):
            raise PublishError(
                f"--licence {word!r}: no task {task!r}", suggest_nearest(task, licences)
            )
        elif everywhere:
            raise PublishError("two licences were stated for every task", "use TASK=TEXT")
        else:
            everywhere = word.strip()
    out, refused = {}, []
    for task, licence in licences.items():
        reason, text = forbidden(licence), single.get(task, everywhere)
        if not reason and task not in single:
            out[task] = Licence(licence.strip())
            continue
        if not text or _FORBIDS.search(text.casefold()):
            why = reason if not text else f"as stated {forbidden(text)}"
            refused.append(f"{task}: its licence {why}")
            continue
        out[task] = Licence(text, stated=True)
    if refused:
        more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise PublishError(
            f"nothing was sent, since rows may not be published: {'; '.join(refused[:5])}{more}",
            "if you may publish them, state under which licence: --licence [TASK=]TEXT; "
            "or leave them out with --only",
        )
    return out
