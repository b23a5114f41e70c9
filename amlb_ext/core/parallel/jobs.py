"""Hands out units, tries again within a bound, gives back what came of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.parallel.execution import Execution
from amlb_ext.core.parallel.processes import Here, Processes
from amlb_ext.core.parallel.units import (
    Mishap,
    Unit,
    UnitFailed,
    UnitOutcome,
    UnitReport,
    WorkerDied,
    WorkerRefused,
    WorkersGone,
)

#: Seconds without a result after which a pool is looked at.
CHECK = 5.0


class Pool(Protocol):
    """Where units run."""

    @property
    def slots(self) -> int:
        """Units that run at once."""

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Hand in a unit."""

    def refuse(self, worker: str, reason: str) -> None:
        """Hand nothing more to a worker."""

    def check(self) -> None:
        """Look whether what was handed in can still be done."""

    def close(self) -> None:
        """End all work."""


@dataclass
class _Held:
    index: int
    unit: Unit
    handed: int = 0
    died: int = 0
    attempts: list[str] = field(default_factory=list)


def pool_of(execution: Execution) -> Pool:
    """Return where an execution's units run.

    Raises
    ------
    ClusterError
        No cluster, or none of its workers is like this machine.
    """
    if execution.cluster:
        from amlb_ext.core.parallel.cluster import Cluster

        return Cluster(execution)
    if execution.processes == 1 and not execution.is_limited:
        return Here()
    return Processes(execution)


def run_units(
    units: Iterable[Unit], execution: Execution, raises: tuple[type[Exception], ...] = (Exception,)
) -> Iterator[UnitOutcome]:
    """Yield what came of each unit, as they finish.

    Parameters
    ----------
    units : iterable of Unit
        Drawn as workers become free.
    execution : Execution
    raises : tuple of type
        Errors of a unit's function that end everything; of any other the unit is lost.

    Yields
    ------
    Outcome

    Raises
    ------
    ClusterError
        See :func:`pool_of`.
    """
    pool = pool_of(execution)
    held: dict[Future[UnitReport], _Held] = {}
    again: deque[_Held] = deque()
    queue = enumerate(units)
    try:
        while True:
            while len(held) < pool.slots + min(pool.slots, 32):
                if not again:
                    drawn = next(queue, None)
                    if drawn is None:
                        break
                    again.append(_Held(*drawn))
                one = again.popleft()
                # In this process the unit is done on return: it is given back at once.
                one.handed += 1
                future = pool.submit(one.unit, one.index, one.handed)
                held[future] = one
                if future.done():
                    break
            if not held:
                return
            done, _ = wait(held, CHECK, FIRST_COMPLETED)
            if not done:
                pool.check()
            for future in done:
                one = held.pop(future)
                outcome = _outcome(future, one, pool, execution.retries, raises)
                if outcome is None:
                    again.append(one)
                else:
                    yield outcome
    finally:
        pool.close()


def _outcome(
    future: Future[UnitReport],
    one: _Held,
    pool: Pool,
    retries: int,
    raises: tuple[type[Exception], ...],
) -> UnitOutcome | None:
    """What came of a unit; None for one that is to be run again."""

    def lost(reason: str, log: str = "") -> UnitOutcome:
        report = UnitReport(None, log=log) if log else None
        return UnitOutcome(one.index, one.unit, report, reason, tuple(one.attempts))

    try:
        return UnitOutcome(one.index, one.unit, future.result(), "", tuple(one.attempts))
    except WorkerRefused as refused:
        pool.refuse(refused.worker, refused.reason)
        return None
    except WorkersGone:
        return None
    except (WorkerDied, CancelledError) as error:
        one.died += 1
        reason = str(error) or "its worker was lost"
        if one.died <= retries:
            one.attempts.append(reason)
            return None
        times = "" if one.died == 1 else f" ({one.died} attempts)"
        return lost(f"{reason}{times}", getattr(error, "log", ""))
    except Mishap as error:
        return lost(str(error), error.log)
    except UnitFailed as failed:
        if isinstance(failed.error, raises):
            raise failed.error from None
        return lost(_words(failed.error), failed.log + failed.trace)
    except Exception as error:  # on its way to or from a worker
        return lost(_words(error))


def _words(error: BaseException) -> str:
    if isinstance(error, HardsynthError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def run_jobs(
    function: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    workers: int | Execution = 1,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, function(*job))`` as jobs finish.

    Parameters
    ----------
    function : callable
        A module-level function; an exception it raises is raised here.
    jobs : iterable of tuple
        Arguments of each call; drawn as workers become free.
    workers : int or Execution
        Processes; with 1 the jobs run here, in order.

    Yields
    ------
    index : int
    result : object

    Raises
    ------
    HardsynthError
        A job's process died again and again.
    """
    units = (Unit(f"job {index}", "", function, job) for index, job in enumerate(jobs))
    if not isinstance(workers, Execution):
        workers = Execution(workers=max(1, workers), retries=1)
    for outcome in run_units(units, workers):
        if outcome.lost:
            raise HardsynthError(
                f"a worker process was lost: {outcome.lost}",
                "run the same command with -j 1; what is finished is kept",
            )
        yield outcome.index, outcome.result
