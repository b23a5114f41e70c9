"""May a task's rows be published again? The source's licence decides, or the publisher."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from amlb_ext.core.errors import PublishError, suggest_nearest
from amlb_ext.publish.limits import DATA, ascii_text, cut_text

#: No derivatives, or no redistribution: then nobody may publish hard rows of the data.
_FORBIDS = re.compile(
    r"\bnd\b|no[- ]?deriv|propriet|all rights reserved|confidential|internal use"
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

    @property
    def sent(self) -> str:
        """The text within the server's limits."""
        return cut_text(ascii_text(self.text), DATA["licence"].length)


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
    >>> settled["a"].stated, settled["b"].sent
    (False, 'by permission of the owner')
    """
    for_all_tasks, for_one_task = _parse_statements(stated, licences)
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
            f"nothing was sent, since rows may not be published: {listed}",
            "if you may publish them, state under which licence: --licence [TASK=]TEXT; "
            "or leave them out with --only",
        )
    return settled


def _parse_statements(
    stated: Sequence[str], tasks: Collection[str]
) -> tuple[str, dict[str, str]]:
    """Return the licence stated for every task, empty if none, and those stated for one task."""
    for_all_tasks = ""
    for_one_task: dict[str, str] = {}
    for statement in stated:
        task, equals, text = statement.partition("=")
        is_name = re.fullmatch(r"[A-Za-z0-9_-]+", task) is not None
        if equals and task in tasks:
            for_one_task[task] = text.strip()
        elif equals and is_name:
            # what stands before = looks like a task's name: a slip of the pen, not a licence
            raise PublishError(
                f"--licence {statement!r}: there is no task {task!r}",
                suggest_nearest(task, tasks),
            )
        elif for_all_tasks:
            raise PublishError(
                "--licence states two licences for every task",
                "use --licence TASK=TEXT",
            )
        else:
            for_all_tasks = statement.strip()
    return for_all_tasks, for_one_task
