"""One process that computes units, one after another, within limits of time and memory.

loky starts it and carries calls and results. It is watched from outside, so that a limit also holds
while compiled code does not let the interpreter run.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amlb_ext.core.memory import release_memory
from amlb_ext.core.progress import Listener, listening, write_stages_to

#: Seconds between two looks at a process.
POLL = 0.1
#: Seconds after which a suspended process (``kill -STOP``) is ended.
PATIENCE = 60.0
#: Seconds after which an idle process ends; loky starts another when it is needed.
IDLE = 60
#: Environment of a process: numerical libraries read these variables when they are loaded.
THREADS = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


class WorkerDied(Exception):
    """The process died, or was suspended and not continued; another attempt may succeed."""


class LimitExceeded(Exception):
    """The unit exceeded a limit of time or memory, and would do so again."""


@dataclass(frozen=True)
class Returned:
    """What came back from a process.

    Attributes
    ----------
    result : object
        What the function returned; None if it raised.
    error : Exception or None
        What it raised.
    trace : str
        The traceback of the error.
    seconds : float
        Wall time.
    peak : int
        Largest memory of the process in bytes.
    process : int
        Id of the process that called it; 0 where none answered.
    """

    result: Any = None
    error: Exception | None = None
    trace: str = ""
    seconds: float = 0.0
    peak: int = 0
    process: int = 0


def call_here(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Returned:
    """Call a function in this process, with numerical libraries held to one thread."""
    from threadpoolctl import threadpool_limits

    began = time.monotonic()
    try:
        with threadpool_limits(1):
            result = function(*arguments)
        seconds = time.monotonic() - began
        return Returned(result, seconds=seconds, process=os.getpid())
    except Exception as error:
        trace = traceback.format_exc()
        return Returned(error=error, trace=trace, process=os.getpid())
    finally:
        # what a unit freed is in pieces, and the next unit may need it in one
        release_memory()


class WorkerProcess:
    """A process that is started when needed, and again after it was killed."""

    def __init__(self) -> None:
        #: loky's pool of one process; None before the first unit and after an end.
        self._pool: Any = None

    def call(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        log: Path,
        timeout: float = 0.0,
        memory: int = 0,
        on_stage: Listener | None = None,
        stop: threading.Event | None = None,
    ) -> Returned:
        """Call a function in the process.

        Parameters
        ----------
        function : callable
        arguments : tuple
        log : Path
            Takes what the function prints.
        timeout : float
            Seconds of wall time; 0 for no limit.
        memory : int
            Bytes; 0 for no limit.
        on_stage : callable, optional
            Called with what the function does now, see :mod:`amlb_ext.core.progress`.
        stop : threading.Event, optional
            Once it is set, the process is ended.

        Raises
        ------
        LimitExceeded
            The unit exceeded a limit, and its process was ended.
        WorkerDied
            Its process died, was suspended and not continued, or was stopped.
        """
        from loky.process_executor import BrokenProcessPool

        future = self._submit(function, arguments, log)
        began = time.monotonic()
        peak = 0
        stage = ""
        n_suspended = 0
        try:
            while not wait([future], POLL).done:
                if stop is not None and stop.is_set():
                    raise WorkerDied("no longer wanted")
                pid = next(iter(self._pool._processes or {}), 0)
                # Looks are counted, not seconds: Ctrl-Z suspends this process as well, and when it
                # goes on, time has passed in which it did not look.
                n_suspended = n_suspended + 1 if _is_suspended(pid) else 0
                if n_suspended * POLL >= PATIENCE:
                    raise WorkerDied(
                        f"its process {pid} was suspended and not continued"
                    )
                # Loading libraries does not count: the clock starts when the log appears.
                if not log.exists():
                    began = time.monotonic()
                    continue
                now = read_end(_stage_file(log)) if on_stage else ""
                # the process may just be writing it
                if on_stage and now and now != stage:
                    stage = now
                    on_stage(stage)
                used = _memory_of(pid, with_children=bool(memory))
                peak = max(peak, used)
                if timeout and time.monotonic() - began > timeout:
                    raise LimitExceeded(f"over the limit of {timeout:g} seconds")
                if memory and used > memory:
                    raise LimitExceeded(
                        f"over the limit of {memory / 1e6:,.0f} MB of memory"
                    )
            returned: Returned = future.result()
        except BrokenProcessPool as error:
            reason = "its process died"
            # Linux ends a process this way when the machine runs out of memory.
            if "SIGKILL" in str(error):
                reason += ", most often for lack of memory"
            self.close()
            raise WorkerDied(reason) from None
        except BaseException:
            self.close()
            raise
        return replace(returned, seconds=time.monotonic() - began, peak=peak)

    def close(self) -> None:
        """End the process, even in the middle of a unit."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None

    def _submit(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], log: Path
    ) -> Future[Returned]:
        from loky.process_executor import BrokenProcessPool as Broken
        from loky.process_executor import ProcessPoolExecutor, ShutdownExecutorError

        # Twice, since an idle process may have died: only the first attempt finds that out.
        for _ in range(2):
            if self._pool is None:
                self._pool = ProcessPoolExecutor(
                    1,
                    timeout=IDLE,
                    env=THREADS,
                    initializer=_prepare,
                    initargs=(os.getpid(),),
                )
            try:
                with _allow_children():
                    future: Future[Returned] = self._pool.submit(
                        _call_and_log, function, arguments, str(log)
                    )
                return future
            except (Broken, ShutdownExecutorError):
                self.close()
        raise WorkerDied("no process could be started")


# Idle processes. To start one takes seconds, most of them for imports, and a command has several
# pools, one after the other.

_idle: list[WorkerProcess] = []
_idle_lock = threading.Lock()


@contextlib.contextmanager
def worker_process() -> Iterator[WorkerProcess]:
    """Lend a process; afterwards it is idle, or ended if an error came out."""
    with _idle_lock:
        process = _idle.pop() if _idle else WorkerProcess()
    try:
        yield process
    except BaseException:
        process.close()
        raise
    with _idle_lock:
        _idle.append(process)


def read_end(path: Path, max_bytes: int = 100_000) -> str:
    """Return the end of a text; empty if there is none."""
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, path.stat().st_size - max_bytes))
            return handle.read().decode("utf-8", "replace")
    except OSError:
        return ""


# What runs in the process.


def _prepare(parent: int) -> None:
    """Prepare the process: it ends with its parent, and is not replaced when it grows.

    loky compares a process with its size after its first call and replaces one that has grown,
    which can lose the next unit.
    """
    from loky import process_executor

    def watch() -> None:
        # A process that waits for work does not notice that its parent was killed; an orphan gets
        # another parent.
        while os.getppid() == parent:
            time.sleep(0.5)
        # sys.exit would end this thread only
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="exit with parent").start()
    process_executor._MAX_MEMORY_LEAK_SIZE = float("inf")


def _call_and_log(
    function: Callable[..., Any], arguments: tuple[Any, ...], log: str
) -> Returned:
    """Call a function with its output in a file; an error is returned with its traceback."""
    stages = write_stages_to(_stage_file(Path(log)))
    with _output_to(log), listening(stages):
        return call_here(function, arguments)


def _stage_file(log: Path) -> Path:
    """Return the file in which a process keeps the stage of its unit, beside the unit's log."""
    return log.with_name("stage")


@contextlib.contextmanager
def _output_to(log: str) -> Iterator[None]:
    """Send the output of this process to a file, also that of compiled libraries.

    Those write to the file descriptors 1 and 2 and ignore ``sys.stdout``.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    saved = [(number, os.dup(number)) for number in (1, 2)]
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for number, _ in saved:
            os.dup2(handle, number)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
        os.close(handle)


# What the operating system knows of a process. A heartbeat from within would also stop while
# compiled code holds the interpreter.


def _is_suspended(pid: int) -> bool:
    """Whether a signal stopped the process, rather than a debugger."""
    import psutil

    try:
        return bool(pid and psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


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
