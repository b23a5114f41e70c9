"""A unit of work, what came of it, and what can befall it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unit:
    """A call that may be made again without harm.

    Attributes
    ----------
    name : str
        As the user sees it.
    key : str
        Hash of all that the result depends on; names the unit on a cluster.
    function : callable
        A module-level function.
    arguments : tuple
    """

    name: str
    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class UnitReport:
    """A unit that came to its end.

    Attributes
    ----------
    result : object
    seconds : float
        By the clock.
    peak : int
        Largest number of bytes seen in its process; 0 where nobody looked.
    where : str
        Host and process.
    log : str
        What it printed.
    """

    result: Any
    seconds: float = 0.0
    peak: int = 0
    where: str = ""
    log: str = ""


@dataclass(frozen=True)
class UnitOutcome:
    """What came of a unit.

    Attributes
    ----------
    index : int
        Of the unit, in the order they were drawn.
    unit : Unit
    report : Report or None
        None for a unit that is lost.
    lost : str
        Why there is no result; empty where there is one.
    attempts : tuple of str
        What happened at each attempt before the last.
    """

    index: int
    unit: Unit
    report: UnitReport | None
    lost: str = ""
    attempts: tuple[str, ...] = ()

    @property
    def result(self) -> Any:
        """What the function returned; None for a unit that is lost."""
        return None if self.report is None else self.report.result


class Mishap(Exception):
    """Something befell a unit that is no error of its function.

    Parameters
    ----------
    reason : str
    log : str
        What the unit printed until then.
    """

    def __init__(self, reason: str, log: str = "") -> None:
        super().__init__(reason, log)
        self.reason = reason
        self.log = log

    def __str__(self) -> str:
        return self.reason


class LimitExceeded(Mishap):
    """The unit came to a limit of time or memory, and would again."""


class WorkerDied(Mishap):
    """The process or the worker died; another attempt may succeed."""


class WorkersGone(Mishap):
    """The workers that could have taken the unit are gone; others may come."""


class WorkerRefused(Mishap):
    """The worker is not like this machine; the unit must go to another."""

    def __init__(self, reason: str, worker: str) -> None:
        super().__init__(reason, worker)
        self.worker = worker


class UnitFailed(Exception):
    """The unit's function raised; with the traceback of the process it ran in.

    Parameters
    ----------
    error : Exception
    trace : str
    log : str
    """

    def __init__(self, error: BaseException, trace: str = "", log: str = "") -> None:
        super().__init__(error, trace, log)
        self.error = error
        self.trace = trace
        self.log = log
