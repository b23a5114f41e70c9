"""Units of work, one thread each: here, in processes of this machine, or on a Dask cluster.

:func:`run_units` hands out units, repeats lost ones a few times, and yields the outcome of every
one, also of those that stay lost. :func:`run_jobs` is for callers that want the results of a
function and end with its first error. :mod:`amlb_ext.core.processes` has one process that computes
units within limits, :mod:`amlb_ext.core.cluster` the workers of a Dask scheduler.

Every unit runs in a single thread, wherever it runs: sums then have one order, and neither the
number of workers nor their place can change a byte.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ConfigError, HardsynthError
from amlb_ext.core.processes import (
    LimitExceeded,
    Returned,
    WorkerDied,
    call_here,
    read_end,
    worker_process,
)
from amlb_ext.core.progress import listening

#: Bytes of ``k``, ``m``, ... (powers of 1000) and of ``ki``, ``mi``, ... (powers of 1024).
_UNITS = {"": 1}
for _power, _prefix in enumerate("kmgt", start=1):
    _UNITS[_prefix] = 1000**_power
    _UNITS[f"{_prefix}i"] = 1024**_power


def available_cores() -> int:
    """Return the number of cores this process may use.

    It is the minimum of the machine's cores, the CPU affinity, the quota of a container, and the
    variable ``LOKY_MAX_CPU_COUNT``, as in joblib.
    """
    from loky import cpu_count

    return int(cpu_count())


def parse_size(text: str) -> int:
    """Return a size in bytes.

    Raises
    ------
    ConfigError
        The text is not a size.

    Examples
    --------
    >>> parse_size("4GB"), parse_size("512 MiB"), parse_size("1.5g")
    (4000000000, 536870912, 1500000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    number = float(match[1]) * _UNITS.get(match[2], 0) if match else 0.0
    if number == 0:
        raise ConfigError(
            f"{text!r} is not a size", "give a number and a unit, e.g. 4GB or 512MiB"
        )
    return int(number)


@dataclass(frozen=True)
class Execution:
    """Where units run, and what each may cost.

    Attributes
    ----------
    workers : int
        Number of processes on this machine; 0 for one per core. With 1 and no limit, units run in
        this process.
    cluster : str
        A Dask scheduler's address or the path of a scheduler file; empty for this machine.
    timeout : float
        Wall time that a unit may take, in seconds; 0 for no limit.
    memory : int
        Bytes that a unit's process may use; 0 for no limit.
    retries : int
        How many times a unit is run again after its process or worker died.

    Raises
    ------
    ConfigError
        A value out of range.

    Examples
    --------
    >>> Execution(workers=4, timeout=600).is_limited
    True
    >>> Execution(timeout=-1)
    Traceback (most recent call last):
    ...
    amlb_ext.core.errors.ConfigError: timeout = -1 (give a number, 0 or more)
    """

    workers: int = 1
    cluster: str = ""
    timeout: float = 0.0
    memory: int = 0
    retries: int = 2

    def __post_init__(self) -> None:
        for name in ("workers", "timeout", "memory", "retries"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ConfigError(f"{name} = {value:g}", "give a number, 0 or more")

    @property
    def is_limited(self) -> bool:
        """Whether time or memory is limited."""
        return bool(self.timeout or self.memory)

    @property
    def processes(self) -> int:
        """Number of processes on this machine."""
        return self.workers if self.workers > 0 else available_cores()


#: Seconds without a result after which a cluster must check whether it can still go on.
CHECK_SECONDS = 5.0
#: Takes the name of a unit and what it does now.
OnStage = Callable[[str, str], None]


@dataclass(frozen=True)
class Unit:
    """A call that may be made again without harm.

    Attributes
    ----------
    name : str
        Name that the user sees.
    key : str
        Hash of all that the result depends on.
    function : callable
        A module-level function.
    arguments : tuple
    """

    name: str
    key: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnitOutcome(Returned):
    """The end of a unit: what came back from its process, or the reason why there is no result.

    Attributes
    ----------
    index : int
        Position of the unit in the order in which units were drawn.
    unit : Unit
    lost : str
        Why there is no result; empty if there is one.
    attempts : tuple of str
        Why each attempt before the last failed.
    where : str
        Host and process.
    log : str
        Output of the unit.
    """

    index: int
    unit: Unit
    lost: str = ""
    attempts: tuple[str, ...] = ()
    where: str = ""
    log: str = ""


def run_unit(
    index: int,
    unit: Unit,
    limits: Execution,
    *,
    on_stage: OnStage | None = None,
    stop: threading.Event | None = None,
) -> UnitOutcome:
    """Run a unit in a process of its own beside the caller, and again if the process dies.

    Parameters
    ----------
    index : int
    unit : Unit
    limits : Execution
        Its ``timeout``, ``memory`` and ``retries`` hold.
    on_stage : callable, optional
    stop : threading.Event, optional
        Once it is set, the process is ended, and the unit is lost.
    """
    attempts: list[str] = []
    while True:
        # the process creates the log when the unit begins
        with tempfile.TemporaryDirectory(prefix="hardsynth-") as folder:
            log = Path(folder, "log")
            reason = ""
            returned = Returned()
            try:
                with worker_process() as process:
                    returned = process.call(
                        unit.function,
                        unit.arguments,
                        log=log,
                        timeout=limits.timeout,
                        memory=limits.memory,
                        on_stage=on_stage and functools.partial(on_stage, unit.name),
                        stop=stop,
                    )
            except LimitExceeded as error:
                reason = str(error)
            except WorkerDied as error:
                reason = str(error)
                is_wanted = stop is None or not stop.is_set()
                if is_wanted and len(attempts) < limits.retries:
                    attempts.append(reason)
                    continue
                if attempts:
                    reason += f" ({len(attempts) + 1} attempts)"
            outcome = _outcome(index, unit, returned)
            return replace(
                outcome,
                lost=reason or outcome.lost,
                attempts=tuple(attempts),
                where=f"{socket.gethostname()}, process {returned.process}",
                log=read_end(log) + outcome.log,
            )


def _outcome(index: int, unit: Unit, returned: Returned) -> UnitOutcome:
    lost = ""
    error = returned.error
    if error is not None:
        is_ours = isinstance(error, HardsynthError)
        lost = str(error) if is_ours else f"{type(error).__name__}: {error}"
    return UnitOutcome(
        **vars(returned), index=index, unit=unit, lost=lost, log=returned.trace
    )


class Processes:
    """Processes of this machine, each with a thread here that watches it."""

    def __init__(self, execution: Execution, on_stage: OnStage | None) -> None:
        self.slots = execution.processes
        self._execution = execution
        self._on_stage = on_stage
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="unit")
        self._stop = threading.Event()

    def submit(self, index: int, unit: Unit) -> Future[UnitOutcome]:
        """Hand a unit to the next free thread."""
        return self._threads.submit(
            run_unit,
            index,
            unit,
            self._execution,
            on_stage=self._on_stage,
            stop=self._stop,
        )

    def check(self) -> None:
        """Do nothing: the threads watch their processes."""

    def close(self) -> None:
        """End everything, also units under way."""
        self._stop.set()
        self._threads.shutdown(wait=True, cancel_futures=True)


def run_units(
    units: Iterable[Unit],
    execution: Execution,
    raises: tuple[type[Exception], ...] = (Exception,),
    on_stage: OnStage | None = None,
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
        There is no cluster, or a worker of it has other versions than this machine.
    """
    # closed at once where an error ends the run, and with it the processes
    with closing(_outcomes(enumerate(units), execution, on_stage)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome.error, raises):
                raise outcome.error
            yield outcome


def _outcomes(
    queue: Iterator[tuple[int, Unit]], execution: Execution, on_stage: OnStage | None
) -> Generator[UnitOutcome, None, None]:
    pool: Any
    if execution.cluster:
        from amlb_ext.core.cluster import Cluster

        pool = Cluster(execution)
    elif execution.processes > 1 or execution.is_limited:
        pool = Processes(execution, on_stage)
    else:
        for index, unit in queue:
            with listening(on_stage and functools.partial(on_stage, unit.name)):
                returned = call_here(unit.function, unit.arguments)
            yield _outcome(index, unit, returned)
        return
    running: set[Future[UnitOutcome]] = set()
    try:
        while True:
            # As many wait as run, so that every worker stays busy.
            for index, unit in itertools.islice(queue, 2 * pool.slots - len(running)):
                running.add(pool.submit(index, unit))
            if not running:
                return
            done, running = wait(running, CHECK_SECONDS, FIRST_COMPLETED)
            if not done:
                pool.check()
            for future in done:
                yield future.result()
    finally:
        pool.close()


def run_jobs(
    function: Callable[..., Any],
    jobs: Iterable[tuple[Any, ...]],
    workers: int = 1,
    on_stage: OnStage | None = None,
) -> Iterator[tuple[int, Any]]:
    """Yield ``(index, function(*job))`` as each job finishes.

    Parameters
    ----------
    function : callable
        A module-level function. An exception of it is raised here.
    jobs : iterable of tuple
        Arguments of each call; drawn as workers become free.
    workers : int
        Number of processes of this machine, 0 for one per core; with 1 the jobs run here, in order.
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
    execution = Execution(workers=workers, retries=1)
    for outcome in run_units(units, execution, on_stage=on_stage):
        if outcome.lost:
            raise HardsynthError(
                f"a worker process was lost: {outcome.lost}",
                "run the same command with -j 1; what is finished is kept",
            )
        yield outcome.index, outcome.result
