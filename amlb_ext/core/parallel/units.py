"""A unit of work, its outcome, and what can go wrong with it."""

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
        Name that the user sees.
    key : str
        Hash of all that the result depends on. It names the unit on a cluster.
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
    """The result of a unit, and what it cost.

    Attributes
    ----------
    result : object
    seconds : float
        Wall time.
    peak : int
        Largest memory of its process in bytes; 0 if it was not measured.
    where : str
        Host and process.
    log : str
        Output of the unit.
    """

    result: Any
    seconds: float = 0.0
    peak: int = 0
    where: str = ""
    log: str = ""


@dataclass(frozen=True)
class UnitOutcome:
    """The end of a unit: a report, or the reason why there is none.

    Attributes
    ----------
    index : int
        Position of the unit in the order in which units were drawn.
    unit : Unit
    report : UnitReport or None
        None for a lost unit, unless it left a log.
    lost : str
        Why there is no result; empty if there is one.
    attempts : tuple of str
        Why each attempt before the last failed.
    """

    index: int
    unit: Unit
    report: UnitReport | None
    lost: str = ""
    attempts: tuple[str, ...] = ()

    @property
    def result(self) -> Any:
        """What the function returned; None for a lost unit."""
        return None if self.report is None else self.report.result


class Mishap(Exception):
    """A unit has no result, for a reason other than an error of its function.

    Parameters
    ----------
    reason : str
    log : str
        Output of the unit until then.
    """

    def __init__(self, reason: str, log: str = "") -> None:
        # All arguments, so that a cluster's worker can send the error here.
        super().__init__(reason, log)
        self.reason = reason
        self.log = log

    def __str__(self) -> str:
        return self.reason


class LimitExceeded(Mishap):
    """The unit exceeded a limit of time or memory, and would do so again."""


class WorkerDied(Mishap):
    """The process or the worker died; another attempt may succeed."""


class WorkersGone(Mishap):
    """The workers that were allowed to take the unit are gone; others may come."""


class WorkerRefused(Mishap):
    """The worker's versions differ from this machine's; the unit must go to another worker."""

    def __init__(self, reason: str, worker: str) -> None:
        super().__init__(reason, worker)
        self.worker = worker


class UnitFailed(Exception):
    """The unit's function raised, here with the traceback of its process.

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
