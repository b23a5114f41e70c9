"""Pools of this machine: processes that compute one unit after another, within limits.

:class:`WorkerProcess` is one process under limits of time and memory, :class:`LocalPool` several of
them, :class:`ThisProcess` a pool that starts none.
"""

from __future__ import annotations

import contextlib
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
)
from amlb_ext.core.parallel.execution import Execution
from amlb_ext.core.parallel.units import (
    LimitExceeded,
    Unit,
    UnitFailed,
    UnitReport,
    WorkerDied,
)

#: Seconds between two looks at a process.
POLL = 0.1
#: Seconds for which a process may be suspended before the user is told, and before it is ended.
NOTICE, PATIENCE = 5.0, 60.0


class WorkerProcess:
    """A process of loky's that is started when it is needed, and again when it was killed."""

    def __init__(self) -> None:
        self._pool: Any = None

    def run(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        timeout: float = 0.0,
        memory: int = 0,
    ) -> UnitReport:
        """Return what the function gives, computed in the process.

        Parameters
        ----------
        function : callable
        arguments : tuple
        timeout : float
            Seconds by the clock; 0 without a limit.
        memory : int
            Bytes; 0 without a limit.

        Raises
        ------
        Overrun
            It came to a limit; its process was ended.
        Died
            Its process died, or was suspended (``kill -STOP``) and not continued.
        Failed
            The function raised.
        """
        with tempfile.TemporaryDirectory(prefix="hardsynth-") as folder:
            log = Path(folder, "log")  # made by the process when it begins
            future = self._submit(function, arguments, str(log))
            seconds, peak = self._watch(future, timeout, memory, log)
            done, result, trace = self._result(future, log)
            if not done:
                raise UnitFailed(result, trace, _read_end(log))
            where = f"{socket.gethostname()}, process {self._pid()}"
            return UnitReport(result, seconds, peak, where, _read_end(log))

    def close(self) -> None:
        """End the process, whatever it does."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def _submit(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], log: str
    ) -> Future[Any]:
        from loky.process_executor import BrokenProcessPool as Broken
        from loky.process_executor import ProcessPoolExecutor, ShutdownExecutorError

        for _ in range(2):  # a process may have died while it had nothing to do
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    1, env=THREADS, initializer=_begin, initargs=(os.getpid(),)
                )
            try:
                with _may_have_children():
                    future: Future[Any] = self._pool.submit(
                        run_and_report, function, arguments, log
                    )
                return future
            except (Broken, ShutdownExecutorError):
                self.close()
        raise WorkerDied("no process could be started")

    def _watch(
        self, future: Future[Any], timeout: float, memory: int, log: Path
    ) -> tuple[float, int]:
        """Wait for the end; return seconds since it began, and the most bytes that were seen."""
        began, peak, suspended = time.monotonic(), 0, _Suspension()
        while not wait([future], POLL).done:
            pid = self._pid()
            if suspended.is_over_patience(pid):
                self.close()
                raise WorkerDied(
                    f"its process {pid} was suspended and not continued", _read_end(log)
                )
            if not log.exists():  # the process is starting
                began = time.monotonic()
                continue
            held = _memory_of(pid, with_children=bool(memory))
            peak = max(peak, held)
            over = ""
            if timeout and time.monotonic() - began > timeout:
                over = f"over the limit of {timeout:g} seconds"
            elif memory and held > memory:
                over = f"over the limit of {memory / 1e6:,.0f} MB of memory"
            if over:
                self.close()
                raise LimitExceeded(over, _read_end(log))
        return time.monotonic() - began, peak

    def _result(self, future: Future[Any], log: Path) -> tuple[bool, Any, str]:
        from loky.process_executor import BrokenProcessPool

        try:
            done, result, trace = future.result()
            return done, result, trace
        except BrokenProcessPool as error:
            self.close()
            lack = (
                "" if "SIGKILL" not in str(error) else ", most often for lack of memory"
            )
            raise WorkerDied(f"its process died{lack}", _read_end(log)) from None

    def _pid(self) -> int:
        return next(iter(self._pool._processes or {}), 0) if self._pool else 0


class _Suspension:
    """For how long a process has been suspended; a busy one never is, however long it computes.

    The system is asked for the state of the process. A sign of life from within would fail to
    come, too, while compiled code holds the interpreter.
    """

    def __init__(self) -> None:
        self._looks, self._is_told = 0, False

    def is_over_patience(self, pid: int) -> bool:
        """Look at the process; whether it has been suspended for :data:`PATIENCE`."""
        if not _is_suspended(pid):
            self._looks, self._is_told = 0, False
            return False
        # Looks are counted, not seconds: who was suspended together with it (Ctrl-Z) and goes on
        # finds that much time has passed, during which it did not look.
        self._looks += 1
        if self._looks * POLL >= NOTICE and not self._is_told:
            self._is_told = True
            print(
                f"hardsynth: the worker process {pid} is suspended; continue it with "
                f"'kill -CONT {pid}', or in {PATIENCE - NOTICE:g} s it is ended and its work "
                "done by another",
                file=sys.stderr,
            )
        return self._looks * POLL >= PATIENCE


def _is_suspended(pid: int) -> bool:
    """Whether a process was stopped by a signal, and not by a debugger."""
    import psutil

    try:
        return bool(pid and psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def _begin(parent: int) -> None:
    """Prepare a process: it ends with its parent, and is not replaced when it grows.

    loky holds a process against what it was after its first call and replaces it beyond that,
    which can take the next unit with it.
    """
    from loky import process_executor

    exit_with_parent(parent)
    process_executor._MAX_MEMORY_LEAK_SIZE = float("inf")


def _memory_of(pid: int, *, with_children: bool) -> int:
    """Return the bytes that a process holds, with those of its children where asked for."""
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
        with contextlib.suppress(psutil.Error):  # it may have ended meanwhile
            total += process.memory_info().rss
    return total


@contextlib.contextmanager
def _may_have_children() -> Iterator[None]:
    """Let a worker that its nanny made a daemon start a process: ours ends with the worker."""
    config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    daemon = config.pop("daemon", None)
    try:
        yield
    finally:
        if daemon is not None:
            config["daemon"] = daemon


def _read_end(log: Path, max_bytes: int = 100_000) -> str:
    """Return the end of what was printed."""
    try:
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - max_bytes))
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""


# --- Pools of this machine ------------------------------------------------------------------------
#
# Units run in this process, or in processes each of which is minded by a thread. A process that
# dies takes one unit with it; the others do not notice.


class ThisProcess:
    """This process: a unit is done when it was handed in."""

    slots = 1

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Run a unit."""
        future: Future[UnitReport] = Future()
        began = time.monotonic()
        try:
            result = run_single_threaded(unit.function, unit.arguments)
            future.set_result(UnitReport(result, time.monotonic() - began))
        except Exception as error:
            future.set_exception(UnitFailed(error, traceback.format_exc()))
        return future

    def refuse(self, worker: str, reason: str) -> None:
        """Nothing refuses this process."""

    def check(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is left."""


class LocalPool:
    """Processes of this machine.

    Parameters
    ----------
    execution : Execution
    """

    def __init__(self, execution: Execution) -> None:
        self.slots = execution.processes
        self._execution = execution
        self._threads = ThreadPoolExecutor(self.slots, thread_name_prefix="unit")
        self._thread = threading.local()
        self._processes: list[WorkerProcess] = []
        self._closed = False

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Hand a unit to the next thread that has nothing to do."""
        return self._threads.submit(self._run, unit)

    def refuse(self, worker: str, reason: str) -> None:
        """Nothing refuses a process of this machine."""

    def check(self) -> None:
        """The threads look after their processes."""

    def close(self) -> None:
        """End every process; what it did not finish is lost."""
        self._closed = True
        for process in self._processes:
            process.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, unit: Unit) -> UnitReport:
        if self._closed:
            raise WorkerDied("no longer wanted")
        process = getattr(self._thread, "process", None)
        if process is None:
            process = self._thread.process = WorkerProcess()
            self._processes.append(process)
        limits = self._execution
        return process.run(unit.function, unit.arguments, limits.timeout, limits.memory)
