"""Errors that a user meets: what is wrong, what is expected, and what to type instead.

Every error of this package derives from :class:`HardsynthError`; the command line prints it
as one line and exits with status 2.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from amlb_ext.core.display import escape_controls


class HardsynthError(Exception):
    """Base of all errors that a user can put right.

    A message may quote names from foreign tables and files, so its control characters are escaped.

    Parameters
    ----------
    message : str
        What is wrong, and what is expected.
    remedy : str, optional
        The command, flag or argument that puts it right.

    Examples
    --------
    >>> try:
    ...     raise HardsynthError("y has 9 rows and X has 10", "give one for each row of X")
    ... except HardsynthError as error:
    ...     error.remedy
    'give one for each row of X'
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        # Both as arguments of Exception, so that a worker process can send the error back.
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"{self.message} ({self.remedy})" if self.remedy else self.message
        # an error is one line, whatever name it quotes
        return escape_controls(text).replace("\n", "\\n")


class ConfigError(HardsynthError):
    """A setting is unknown, or its value is not allowed."""


class SourceError(HardsynthError):
    """A source cannot be found, read or understood."""


class NetworkError(SourceError):
    """A server could not be reached."""


class DataError(HardsynthError):
    """A table breaks a rule that every task must keep."""


class ModelError(HardsynthError):
    """A baseline cannot be built, or its ``predict`` fails."""


class ServiceError(ModelError):
    """A baseline behind an address did not answer, or answered wrongly; later it may not."""


class SuiteError(HardsynthError):
    """A suite directory is missing, foreign, incomplete or damaged."""


class RunError(HardsynthError):
    """The AutoML Benchmark could not be found, set up or run."""


class DefinitionError(SourceError, RunError):
    """A benchmark definition or AMLB's configuration cannot be read or understood.

    Sources of tasks read them, and so do runs of AMLB.
    """


class ClusterError(HardsynthError):
    """A cluster cannot be reached, or none of its workers can be used."""


class PublishError(HardsynthError):
    """A suite cannot be published: its licence, its size, the server or the key forbid it."""


def is_utf8(text: str) -> bool:
    """Whether the text can be written as UTF-8.

    The name of a file that is not UTF-8 reaches Python with lone surrogates, which no file can
    hold.

    Examples
    --------
    >>> is_utf8("Zürich"), is_utf8("Z\\udcfcrich")
    (True, False)
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """Return a remedy that names the nearest known word.

    Examples
    --------
    >>> suggest_nearest("rigde", ["ridge", "knn"])
    "did you mean 'ridge'? known: knn, ridge"
    >>> suggest_nearest("boosting", ["gradient_boosting", "xgboost"])
    "did you mean 'gradient_boosting'? known: gradient_boosting, xgboost"
    """
    names = sorted(known)
    # a word of a name is nearer to it than letters in common
    close = [name for name in names if word in re.split(r"[_ ]", name)]
    close = close or difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}known: {', '.join(names)}"
