"""Pools of this machine: processes that compute one unit after another, within limits.

:class:`WorkerProcess` is one process under limits of time and memory, :class:`LocalPool` several of
them, :class:`ThisProcess` a pool that starts none.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from amlb_ext.core.parallel.child import (
    THREADS,
    exit_with_parent,
    run_and_report,
    run_single_threaded,
    stage_file,
)
from amlb_ext.core.parallel.execution import Execution
from amlb_ext.core.parallel.units import (
    LimitExceeded,
    Unit,
    UnitFailed,
    UnitReport,
    WorkerDied,
)
from amlb_ext.core.progress import Listener, listening

#: Seconds between two looks at a process.
POLL = 0.1
#: Seconds after which the user is told that a process is suspended.
NOTICE = 5.0
#: Seconds after which a suspended process is ended.
PATIENCE = 60.0


class WorkerProcess:
    """A process of loky that is started when needed, and again after it was killed.

    Attributes
    ----------
    is_busy : bool
        Whether it computes a unit.
    """

    def __init__(self) -> None:
        #: loky's pool of one process; None before the first unit and after an end.
        self._pool: Any = None
        self.is_busy = False

    def run(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        timeout: float = 0.0,
        memory: int = 0,
        on_stage: Listener | None = None,
    ) -> UnitReport:
        """Return what the function returns, computed in the process.

        Parameters
        ----------
        function : callable
        arguments : tuple
        timeout : float
            Seconds of wall time; 0 for no limit.
        memory : int
            Bytes; 0 for no limit.
        on_stage : callable, optional
            Called with what the function does now, see :mod:`amlb_ext.core.progress`.

        Raises
        ------
        LimitExceeded
            The unit exceeded a limit, and its process was ended.
        WorkerDied
            Its process died, or was suspended (``kill -STOP``) and not continued.
        UnitFailed
            The function raised.
        """
        self.is_busy = True
        try:
            return self._run(
                function, arguments, timeout=timeout, memory=memory, on_stage=on_stage
            )
        finally:
            self.is_busy = False

    def _run(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        timeout: float,
        memory: int,
        on_stage: Listener | None,
    ) -> UnitReport:
        with tempfile.TemporaryDirectory(prefix="hardsynth-") as folder:
            # The process creates the log when the unit begins.
            log = Path(folder, "log")
            future = self._submit(function, arguments, str(log))
            seconds, peak = self._watch(
                future, timeout=timeout, memory=memory, log=log, on_stage=on_stage
            )
            has_result, result, trace = self._take_result(future, log)
            if not has_result:
                raise UnitFailed(result, trace, _read_end(log))
            return UnitReport(
                result=result,
                seconds=seconds,
                peak=peak,
                where=f"{socket.gethostname()}, process {self._process_id()}",
                log=_read_end(log),
            )

    def close(self) -> None:
        """End the process, even in the middle of a unit."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def _submit(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], log: str
    ) -> Future[Any]:
        from loky.process_executor import BrokenProcessPool as Broken
        from loky.process_executor import ProcessPoolExecutor, ShutdownExecutorError

        # Twice, since an idle process may have died: only the first attempt finds that out.
        for _ in range(2):
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    1, env=THREADS, initializer=_prepare, initargs=(os.getpid(),)
                )
            try:
                with _allow_children():
                    future: Future[Any] = self._pool.submit(
                        run_and_report, function, arguments, log
                    )
                return future
            except (Broken, ShutdownExecutorError):
                self.close()
        raise WorkerDied("no process could be started")

    def _watch(
        self,
        future: Future[Any],
        *,
        timeout: float,
        memory: int,
        log: Path,
        on_stage: Listener | None = None,
    ) -> tuple[float, int]:
        """Wait for the end; return the seconds since it began, and its largest memory in bytes."""
        began = time.monotonic()
        peak = 0
        suspension = _Suspension()
        shown = ""
        while not wait([future], POLL).done:
            pid = self._process_id()
            if suspension.is_over_patience(pid):
                self.close()
                raise WorkerDied(
                    f"its process {pid} was suspended and not continued", _read_end(log)
                )
            # Loading libraries does not count: the clock starts when the log appears.
            if not log.exists():
                began = time.monotonic()
                continue
            stage = _read_end(stage_file(log)) if on_stage else ""
            # the process may just be writing it
            if on_stage and stage and stage != shown:
                shown = stage
                on_stage(stage)
            used = _memory_of(pid, with_children=bool(memory))
            peak = max(peak, used)
            excess = ""
            if timeout and time.monotonic() - began > timeout:
                excess = f"over the limit of {timeout:g} seconds"
            elif memory and used > memory:
                excess = f"over the limit of {memory / 1e6:,.0f} MB of memory"
            if excess:
                self.close()
                raise LimitExceeded(excess, _read_end(log))
        return time.monotonic() - began, peak

    def _take_result(self, future: Future[Any], log: Path) -> tuple[bool, Any, str]:
        """Return what :func:`run_and_report` returned in the process."""
        from loky.process_executor import BrokenProcessPool

        try:
            has_result, result, trace = future.result()
            return has_result, result, trace
        except BrokenProcessPool as error:
            self.close()
            reason = "its process died"
            # Linux ends a process this way when the machine runs out of memory.
            if "SIGKILL" in str(error):
                reason += ", most often for lack of memory"
            raise WorkerDied(reason, _read_end(log)) from None

    def _process_id(self) -> int:
        """Return the id of the process; 0 where there is none."""
        if not self._pool:
            return 0
        return next(iter(self._pool._processes or {}), 0)


class _Suspension:
    """Measures how long a process has been suspended; a busy process never is.

    The operating system knows the state of the process. A heartbeat from within would also stop
    while compiled code holds the interpreter.
    """

    def __init__(self) -> None:
        self._n_looks = 0
        self._is_announced = False

    def is_over_patience(self, pid: int) -> bool:
        """Look at the process; whether it has been suspended for :data:`PATIENCE`."""
        if not _is_suspended(pid):
            self._n_looks = 0
            self._is_announced = False
            return False
        # Looks are counted, not seconds: Ctrl-Z suspends this process as well, and when it goes
        # on, time has passed in which it did not look.
        self._n_looks += 1
        seconds = self._n_looks * POLL
        if seconds >= NOTICE and not self._is_announced:
            self._is_announced = True
            print(
                f"hardsynth: the worker process {pid} is suspended; continue it with "
                f"'kill -CONT {pid}', or in {PATIENCE - NOTICE:g} s it is ended and its work "
                "done by another",
                file=sys.stderr,
            )
        return seconds >= PATIENCE


def _is_suspended(pid: int) -> bool:
    """Whether a signal stopped the process, rather than a debugger."""
    import psutil

    try:
        return bool(pid and psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def _prepare(parent: int) -> None:
    """Prepare a process: it ends with its parent, and is not replaced when it grows.

    loky compares a process with its size after its first call and replaces one that has grown,
    which can lose the next unit.
    """
    from loky import process_executor

    exit_with_parent(parent)
    process_executor._MAX_MEMORY_LEAK_SIZE = float("inf")


def _memory_of(pid: int, *, with_children: bool) -> int:
    """Return the bytes that a process uses, with those of its children on request."""
    import psutil

    try:
        parent = psutil.Process(pid)
        processes = [parent]
        if with_children:
            processes += parent.children(recursive=True)
    except psutil.Error:
        return 0
    total = 0
    for process in processes:
        # it may have ended meanwhile
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


@contextlib.contextmanager
def _allow_children() -> Iterator[None]:
    """Let a Dask worker start a process although its nanny made it a daemon.

    Daemons may not have children, which could outlive them; ours ends with the worker.
    """
    config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    daemon = config.pop("daemon", None)
    try:
        yield
    finally:
        if daemon is not None:
            config["daemon"] = daemon


def _read_end(log: Path, max_bytes: int = 100_000) -> str:
    """Return the end of the printed output; empty if there is none."""
    try:
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - max_bytes))
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""


# Processes that one pool of a run leaves to the next. To start one takes seconds, most of them for
# imports, and a run that makes a suite and certifies it has several pools, one after the other.

#: Idle processes; None outside of :func:`keep_processes`.
_kept: list[WorkerProcess] | None = None
_kept_lock = threading.Lock()


@contextlib.contextmanager
def keep_processes() -> Iterator[None]:
    """Let pools that are closed within leave their idle processes to those opened after them.

    They end with the context.
    """
    global _kept
    with _kept_lock:
        is_outermost = _kept is None
        if _kept is None:
            _kept = []
    try:
        yield
    finally:
        if is_outermost:
            with _kept_lock:
                idle, _kept = _kept or [], None
            for process in idle:
                process.close()


def _take_kept() -> WorkerProcess:
    """Return an idle process, or one that is not started yet."""
    with _kept_lock:
        return _kept.pop() if _kept else WorkerProcess()


def _keep(process: WorkerProcess) -> bool:
    """Keep an idle process for the next pool; whether it is kept."""
    with _kept_lock:
        if _kept is None:
            return False
        _kept.append(process)
        return True


# Pools of this machine. Units run in this process, or in processes with one thread here to watch
# each. A process that dies loses one unit; the others do not notice.


#: Takes the name of a unit and what it does now.
OnStage = Callable[[str, str], None]


def _stage_listener(unit: Unit, on_stage: OnStage | None) -> Listener | None:
    if on_stage is None:
        return None
    return functools.partial(on_stage, unit.name)


class ThisProcess:
    """A pool of this process alone: a unit is done when ``submit`` returns.

    Parameters
    ----------
    on_stage : callable, optional
        See :func:`amlb_ext.core.parallel.jobs.run_units`.
    """

    slots = 1

    def __init__(self, on_stage: OnStage | None = None) -> None:
        self._on_stage = on_stage

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Run a unit."""
        future: Future[UnitReport] = Future()
        began = time.monotonic()
        try:
            with listening(_stage_listener(unit, self._on_stage)):
                result = run_single_threaded(unit.function, unit.arguments)
            future.set_result(UnitReport(result, time.monotonic() - began))
        except Exception as error:
            future.set_exception(UnitFailed(error, traceback.format_exc()))
        return future

    def refuse(self, worker: str, reason: str) -> None:
        """Do nothing: this process is never refused."""

    def check(self) -> None:
        """Do nothing: no unit is under way."""

    def close(self) -> None:
        """Do nothing: there is nothing to end."""


class LocalPool:
    """Processes of this machine.

    Parameters
    ----------
    execution : Execution
    on_stage : callable, optional
        See :func:`amlb_ext.core.parallel.jobs.run_units`.
    """

    def __init__(self, execution: Execution, on_stage: OnStage | None = None) -> None:
        self._on_stage = on_stage
        self.slots = execution.processes
        self._execution = execution
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="unit")
        self._thread = threading.local()
        self._processes: list[WorkerProcess] = []
        self._closed = False

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Hand a unit to the next free thread."""
        return self._threads.submit(self._run, unit)

    def refuse(self, worker: str, reason: str) -> None:
        """Do nothing: a process of this machine is never refused."""

    def check(self) -> None:
        """Do nothing: the threads watch their processes."""

    def close(self) -> None:
        """End every process, but for idle ones that are kept; unfinished units are lost."""
        self._closed = True
        for process in self._processes:
            if process.is_busy or not _keep(process):
                process.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, unit: Unit) -> UnitReport:
        if self._closed:
            raise WorkerDied("no longer wanted")
        # each thread keeps its process for the next unit
        process = getattr(self._thread, "process", None)
        if process is None:
            process = _take_kept()
            self._thread.process = process
            self._processes.append(process)
        return process.run(
            unit.function,
            unit.arguments,
            timeout=self._execution.timeout,
            memory=self._execution.memory,
            on_stage=_stage_listener(unit, self._on_stage),
        )
