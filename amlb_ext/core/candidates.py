"""What candidates may be called, at every door that compares models or forecasters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amlb_ext.core.errors import ConfigError

#: Columns of tables of results that stand beside those of candidates.
RESERVED = ("F", "is_bad", "weight")
#: Frameworks of a suite that are F itself begin so, and gates pass them over.
OWN_PREFIX = "Hardsynth"


def check_candidates(candidates: Any, example: str) -> None:
    """Refuse candidates that are not named, or whose names stand for something else.

    Parameters
    ----------
    candidates : object
        A mapping of names to models.
    example : str
        What to write.

    Raises
    ------
    ConfigError

    Examples
    --------
    >>> check_candidates({"F": 1}, '{"new": model}')
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: a candidate is called 'F', which names F itself or a column \
of the results (give it another name)
    """
    if not isinstance(candidates, Mapping) or not candidates:
        raise ConfigError(
            f"candidates is {str(candidates)[:200]!r}",
            f"give them by name, e.g. {example}",
        )
    for name in candidates:
        check_candidate_name(name)


def check_candidate_name(name: Any) -> None:
    """Refuse a name that is no text or empty, and those of columns and controls.

    Raises
    ------
    ConfigError
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(
            f"a candidate is called {name!r}",
            "give it a name, a text that is not empty",
        )
    if name in RESERVED or name.startswith(OWN_PREFIX):
        raise ConfigError(
            f"a candidate is called {name!r}, which names F itself or a column of the results",
            "give it another name",
        )
