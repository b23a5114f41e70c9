"""OpenML's error codes in plain words, with what to do."""

from __future__ import annotations

#: code → (what it means, what to do).
CODES: dict[int, tuple[str, str]] = {
    102: ("no API key came", "set OPENML_APIKEY in the environment"),
    103: (
        "the API key is not known to this server",
        "each server has its own keys: set OPENML_APIKEY to the one on your profile page there",
    ),
    104: ("the account may only read", "ask the server's operators for an account that may write"),
    107: ("the server's database is overloaded", "run the same command again later, it continues"),
    112: ("the data set is private", "use the API key of its owner"),
    130: (
        "the file did not arrive whole, most often since it is larger than the server takes",
        "send fewer rows with --fit drop, or leave the task out with --only",
    ),
    131: (
        "the description breaks the server's schema",
        "report it as a bug, with --dry-run --json",
    ),
    137: ("no API key came", "set OPENML_APIKEY in the environment"),
    138: ("the API key is not known to this server", "set OPENML_APIKEY to a key of this server"),
    145: ("the server cannot read the data file", "report it as a bug, with --dry-run --out DIR"),
    163: (
        "the description breaks the server's schema",
        "report it as a bug, with --dry-run --json",
    ),
    413: (
        "the file is larger than the server takes",
        "send fewer rows with --fit drop, or leave the task out with --only",
    ),
    613: ("the task breaks the server's schema", "report it as a bug, with --dry-run --json"),
    614: ("the task exists already", "nothing needs to be done"),
    622: (
        "the server does not offer this procedure, measure or target",
        "a server of one's own needs OpenML's estimation procedures 12 and 28",
    ),
    623: ("the data set is not active yet", "run the same command again later, it continues"),
    696: ("only the server's operators may activate data sets", "wait, or ask them to"),
    1032: ("the suite breaks the server's schema", "report it as a bug, with --dry-run --json"),
    1038: ("a suite of this alias exists already", "nothing needs to be done"),
}
#: With these no other request would fare better.
FATAL = frozenset({102, 103, 104, 137, 138})


def explain(code: int) -> tuple[str, str]:
    """Return what a code means, to be put behind the server's words, and what to do.

    Examples
    --------
    >>> explain(623)
    (': the data set is not active yet', 'run the same command again later, it continues')
    >>> explain(999)
    ('', 'run the same command again, it continues; see docs/publish.md')
    """
    reason, remedy = CODES.get(
        code, ("", "run the same command again, it continues; see docs/publish.md")
    )
    return (f": {reason}" if reason else ""), remedy
