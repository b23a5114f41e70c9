"""Hands units of work to a pool, repeats lost ones a few times, and yields their outcomes.

:func:`run_units` yields the outcome of every unit, also of lost ones. :func:`run_jobs` is for
callers that want the results of a function and end with its first error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.parallel.execution import Execution
from amlb_ext.core.parallel.processes import LocalPool, ThisProcess
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

#: Seconds without a result after which a pool must check whether it can still go on.
CHECK_SECONDS = 5.0
#: Most units that wait in a pool beside the running ones: enough to keep every worker busy.
MAX_WAITING = 32


class Pool(Protocol):
    """Runs units."""

    @property
    def slots(self) -> int:
        """Number of units that run at once."""

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Start or enqueue a unit."""

    def refuse(self, worker: str, reason: str) -> None:
        """Give no more units to a worker."""

    def check(self) -> None:
        """Check whether the submitted units can still be done."""

    def close(self) -> None:
        """End all work."""


@dataclass
class _PendingUnit:
    """A unit without an outcome, and its history so far."""

    index: int
    unit: Unit
    times_submitted: int = 0
    times_died: int = 0
    attempts: list[str] = field(default_factory=list)

    def with_report(self, report: UnitReport | None, lost: str = "") -> UnitOutcome:
        """Return the outcome with its report."""
        return UnitOutcome(
            index=self.index,
            unit=self.unit,
            report=report,
            lost=lost,
            attempts=tuple(self.attempts),
        )

    def as_lost(self, reason: str, log: str = "") -> UnitOutcome:
        """Return the outcome without a result; a log is worth a report even so."""
        report = UnitReport(None, log=log) if log else None
        return self.with_report(report, reason)


def open_pool(
    execution: Execution, on_stage: Callable[[str, str], None] | None = None
) -> Pool:
    """Return the pool that an execution asks for.

    Parameters
    ----------
    execution : Execution
    on_stage : callable, optional
        See :func:`run_units`.

    Raises
    ------
    ClusterError
        There is no cluster, or none of its workers has the versions of this machine.
    """
    if execution.cluster:
        from amlb_ext.core.parallel.cluster import ClusterPool

        return ClusterPool(execution)
    if execution.processes == 1 and not execution.is_limited:
        return ThisProcess(on_stage)
    return LocalPool(execution, on_stage)


def run_units(
    units: Iterable[Unit],
    execution: Execution,
    raises: tuple[type[Exception], ...] = (Exception,),
    on_stage: Callable[[str, str], None] | None = None,
) -> Iterator[UnitOutcome]:
    """Yield the outcome of each unit as it finishes.

    Parameters
    ----------
    units : iterable of Unit
        Drawn as workers become free.
    execution : Execution
    raises : tuple of type
        Errors of a unit's function that end the run; after any other error the unit is lost.
    on_stage : callable, optional
        Called with the name of a unit of this machine and what it does now, see
        :mod:`amlb_ext.core.progress`; from any thread.

    Yields
    ------
    UnitOutcome

    Raises
    ------
    ClusterError
        See :func:`open_pool`.
    """
    pool = open_pool(execution, on_stage)
    running: dict[Future[UnitReport], _PendingUnit] = {}
    to_repeat: deque[_PendingUnit] = deque()
    queue = enumerate(units)
    try:
        while True:
            # Fill the pool; units to repeat come first.
            while len(running) < pool.slots + min(pool.slots, MAX_WAITING):
                pending = to_repeat.popleft() if to_repeat else _next_unit(queue)
                if pending is None:
                    break
                pending.times_submitted += 1
                future = pool.submit(
                    pending.unit, pending.index, pending.times_submitted
                )
                running[future] = pending
                # In this process a unit is done on return; its outcome must not wait for others.
                if future.done():
                    break
            if not running:
                return
            done, _ = wait(running, CHECK_SECONDS, FIRST_COMPLETED)
            if not done:
                pool.check()
            for future in done:
                pending = running.pop(future)
                outcome = _settle(
                    future, pending, pool, retries=execution.retries, raises=raises
                )
                if outcome is None:
                    to_repeat.append(pending)
                else:
                    yield outcome
    finally:
        pool.close()


def _next_unit(queue: Iterator[tuple[int, Unit]]) -> _PendingUnit | None:
    for index, unit in queue:
        return _PendingUnit(index, unit)
    return None


def _settle(
    future: Future[UnitReport],
    pending: _PendingUnit,
    pool: Pool,
    *,
    retries: int,
    raises: tuple[type[Exception], ...],
) -> UnitOutcome | None:
    """Return the outcome of a unit, or None if it must run again."""
    try:
        return pending.with_report(future.result())
    except WorkerRefused as refused:
        # Not the unit's fault: it does not count as an attempt.
        pool.refuse(refused.worker, refused.reason)
        return None
    except WorkersGone:
        # Nor is this: no worker has begun it.
        return None
    except (WorkerDied, CancelledError) as error:
        pending.times_died += 1
        reason = str(error) or "its worker was lost"
        if pending.times_died <= retries:
            pending.attempts.append(reason)
            return None
        if pending.times_died > 1:
            reason += f" ({pending.times_died} attempts)"
        return pending.as_lost(reason, getattr(error, "log", ""))
    except Mishap as error:
        return pending.as_lost(str(error), error.log)
    except UnitFailed as failed:
        if isinstance(failed.error, raises):
            raise failed.error from None
        return pending.as_lost(_describe_error(failed.error), failed.log + failed.trace)
    except Exception as error:
        # Not an error of the unit's function: it happened on the way to a worker, or back.
        return pending.as_lost(_describe_error(error))


def _describe_error(error: BaseException) -> str:
    if isinstance(error, HardsynthError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def run_jobs(
    function: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    workers: int | Execution = 1,
    on_stage: Callable[[str, str], None] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, function(*job))`` as each job finishes.

    Parameters
    ----------
    function : callable
        A module-level function. An exception of it is raised here.
    jobs : iterable of tuple
        Arguments of each call; drawn as workers become free.
    workers : int or Execution
        Number of processes; with 1 the jobs run here, in order.
    on_stage : callable, optional
        As for :func:`run_units`; a job is called ``job``, and its index follows.

    Yields
    ------
    index : int
    result : object

    Raises
    ------
    HardsynthError
        The process of a job died repeatedly.
    """
    # A generator, so that jobs are drawn as workers become free.
    units = (
        Unit(name=f"job {index}", key="", function=function, arguments=job)
        for index, job in enumerate(jobs)
    )
    if not isinstance(workers, Execution):
        workers = Execution(workers=max(1, workers), retries=1)
    for outcome in run_units(units, workers, on_stage=on_stage):
        if outcome.lost:
            raise HardsynthError(
                f"a worker process was lost: {outcome.lost}",
                "run the same command with -j 1; what is finished is kept",
            )
        yield outcome.index, outcome.result
