"""Public functions that hold their arguments to their annotations: one clear error, no traceback.

Numbers are of the declared type: ``True``, ``"3"`` and ``2.0`` are no whole numbers, and no number
is NaN or infinite. Models and tables are ``Any`` in an annotation; who reads them says more. The
names of candidates have rules of their own, :func:`check_candidates`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ParamSpec, TypeVar

from annotated_types import Ge, Gt, Le, Lt, MinLen

from amlb_ext.core.display import shorten_text
from amlb_ext.core.errors import ConfigError, suggest_nearest

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class _Check:
    """A check of an argument, as pydantic's ``AfterValidator`` is, which takes long to import."""

    function: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic import AfterValidator

        check = AfterValidator(self.function)
        return check.__get_pydantic_core_schema__(source, handler)


def _refuse_text(names: Collection[str]) -> Collection[str]:
    # each letter of a text would count as a name
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError("a list of texts is wanted")
    return names


def _read_pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError("rows with their targets are wanted: give (X, y)")
    return given[0], given[1]


#: Confidence level of intervals.
Level = Annotated[float, Gt(0), Lt(1)]
Seed = Annotated[int, Ge(0), Lt(2**31)]
#: How many there are of what cannot be absent.
Count = Annotated[int, Ge(1), Le(10**9)]
CountOrNone = Annotated[int, Ge(0), Le(10**9)]
Text = Annotated[str, MinLen(1)]
#: Rows and their targets.
Pair = Annotated[Any, _Check(_read_pair)]
Names = Annotated[Collection[str], _Check(_refuse_text)]


def checked_call(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function refuse arguments that are not as annotated.

    Examples
    --------
    >>> @checked_call
    ... def forecast(horizon: Count) -> int:
    ...     return horizon
    >>> forecast(2.5)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: horizon = 2.5: input should be a valid integer
    >>> forecast(horizont=2)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: forecast takes no argument 'horizont' (did you mean \
'horizon'? known: horizon)
    >>> forecast()
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: forecast: missing a required argument: 'horizon' (it takes \
horizon)
    """

    @functools.cache
    def validated() -> Callable[P, R]:
        # made when it is first needed: a method's class does not stand yet, and pydantic is most of
        # what comparing models would import beside their library
        from pydantic import ConfigDict, validate_call

        strict = ConfigDict(
            strict=True, arbitrary_types_allowed=True, allow_inf_nan=False
        )
        return validate_call(config=strict)(function)

    signature = inspect.signature(function)
    parameters = signature.parameters
    names = list(parameters)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        plain = [_plain_scalar(value) for value in args]
        named = {name: _plain_scalar(value) for name, value in kwargs.items()}
        unknown = [name for name in named if name not in names]
        if unknown and not takes_any:
            raise ConfigError(
                f"{function.__name__} takes no argument {unknown[0]!r}",
                suggest_nearest(unknown[0], names),
            )
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ConfigError(
                f"{function.__name__}: {error}",
                f"it takes {', '.join(n for n in names if n not in ('cls', 'self'))}",
            ) from None
        from pydantic import ValidationError

        try:
            return validated()(*plain, **named)
        except ValidationError as error:
            problem = error.errors()[0]
            first, *rest = problem["loc"]
            # arguments that were given by position have a number
            if isinstance(first, int) and first < len(names):
                first = names[first]
            raise explain_problem({**problem, "loc": (first, *rest)}) from None

    return call


def explain_problem(problem: Any) -> ConfigError:
    """Return one of pydantic's complaints as an error of one line."""
    # pydantic names the branch of a union, too: "dict[str,float]"
    parts = [str(part) for part in problem["loc"]]
    name = ".".join(part for part in parts if "[" not in part)
    given = shorten_text(repr(problem["input"]), 80)
    message = problem["msg"].removeprefix("Value error, ")
    return ConfigError(f"{name} = {given}: {message[:1].lower()}{message[1:]}")


def _plain_scalar(value: Any) -> Any:
    """Return a number of numpy as one of Python, and anything else as it is."""
    is_scalar = getattr(value, "ndim", None) == 0 and hasattr(value, "item")
    return value.item() if is_scalar else value


#: Columns of tables of results that stand beside those of candidates.
RESERVED = ("F", "is_bad", "weight", "risk", "where_f_fails")
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
        given = "empty"
        if not isinstance(candidates, Mapping):
            given = f"of type {type(candidates).__name__}"
        raise ConfigError(
            f"candidates is {given}", f"give them by name, e.g. {example}"
        )
    for name in candidates:
        check_candidate_name(name)


def check_refits(count: int, name: str = "refits") -> None:
    """Raise where one re-fit, or twin, is asked for, which shows no scatter; or less than none.

    Parameters
    ----------
    count : int
    name : str
        Of the argument.

    Raises
    ------
    ConfigError
    """
    if count == 1 or count < 0:
        raise ConfigError(f"{name} = {count}", "give 2 or more, or 0 for none")


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
