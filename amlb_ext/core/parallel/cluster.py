"""Units on a Dask cluster: one that runs, or one started through SLURM or PBS.

A worker hands each unit to a process of its own (:mod:`amlb_ext.core.parallel.processes`), so
that limits hold, threads of one worker do not disturb each other, and a crash costs one unit. Dask
itself gives the units of a lost worker to another.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from pathlib import Path
from typing import Any

from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ClusterError
from amlb_ext.core.parallel.batch import BatchJobs
from amlb_ext.core.parallel.execution import BATCH_SYSTEMS, Execution
from amlb_ext.core.parallel.processes import WorkerProcess
from amlb_ext.core.parallel.units import (
    Unit,
    UnitReport,
    WorkerDied,
    WorkerRefused,
    WorkersGone,
)
from amlb_ext.core.parallel.versions import collect_versions, describe_differences

#: Seconds to wait for a scheduler, and for the first worker of a running one.
PATIENCE = 30.0
#: Beginnings of addresses whose peers show certificates.
SECURE = ("tls://", "wss://")
#: Seconds without any worker after which the run ends.
ABSENCE = 300.0
#: Seconds for which the scheduler's list of workers counts as current.
FRESH = 2.0
#: Holds the process of each thread of a worker.
_THREAD = threading.local()


class ClusterPool:
    """A Dask cluster.

    Parameters
    ----------
    execution : Execution
        Its ``cluster`` names the scheduler or the batch system.

    Raises
    ------
    ClusterError
        Dask is not installed, the scheduler does not answer, no worker came, or each has another
        version.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._versions_here = collect_versions()
        #: Reasons by worker.
        self._refused: dict[str, str] = {}
        #: The scheduler's list of workers, and the time of its last answer.
        self._listed: dict[str, dict[str, Any]] = {}
        self._listed_at = -math.inf
        #: Dask's task of each unit, and the only workers that may take it; empty for any.
        self._submitted: dict[Future[UnitReport], tuple[Any, frozenset[str]]] = {}
        self._batch, self._client = _connect(execution)
        try:
            self._check_workers()
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """Number of threads of the workers that are not refused."""
        n_threads = sum(entry["nthreads"] for entry in self._workers().values())
        return max(1, n_threads)

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Hand a unit to the scheduler."""
        limits = (self._execution.timeout, self._execution.memory)
        workers = self._wait_for_workers()
        # Dask knows of no refused workers, so the others are named with every task.
        allowed = workers if self._refused else frozenset()
        with warnings.catch_warnings():
            # Tables are sent with the unit, so that the scheduler has them if a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            task = self._client.submit(
                run_in_own_process,
                unit.function,
                unit.arguments,
                limits,
                self._versions_here,
                key=f"{unit.name}-{index}-{attempt}-{unit.key[:16]}",
                workers=sorted(allowed) or None,
                pure=False,
            )
        future: Future[UnitReport] = Future()
        self._submitted[future] = (task, allowed)
        task.add_done_callback(lambda done: _copy_outcome(done, future))
        return future

    def refuse(self, worker: str, reason: str) -> None:
        """Hand nothing more to a worker; raise when it was the last."""
        if worker not in self._refused:
            self._refused[worker] = reason
            print(
                escape_controls(f"hardsynth: the worker {worker} is refused: {reason}"),
                file=sys.stderr,
            )
        if not self._workers():
            raise ClusterError(
                f"each worker of {self._execution.cluster} is refused, {worker} for one: {reason}",
                "give the workers the environment of this machine",
            )

    def check(self) -> None:
        """Take back units whose workers are gone; raise if no worker comes any more."""
        if self._batch is not None:
            self._batch.report_refusals()
        present = self._wait_for_workers()
        unfinished = {}
        for future, entry in self._submitted.items():
            if not future.done():
                unfinished[future] = entry
        self._submitted = unfinished
        for future, (task, allowed) in unfinished.items():
            if not allowed or allowed & present or future.done():
                continue
            # It may finish at this very moment, and then its outcome stands.
            with contextlib.suppress(InvalidStateError):
                future.set_exception(WorkersGone("its workers are gone"))
            task.cancel()

    def _wait_for_workers(self) -> frozenset[str]:
        """Return the workers that may take units; wait for one if there is none."""
        for _ in range(int(ABSENCE / FRESH)):
            workers = frozenset(self._workers())
            if workers:
                return workers
            time.sleep(FRESH)
        if self._batch is not None and self._batch.refusals:
            raise self._batch.refusal_error(self._batch.refusals[-1])
        raise ClusterError(
            f"{self._execution.cluster} has had no usable worker for {ABSENCE:g} s",
            "start workers and run the same command again; what is finished is kept",
        )

    def close(self) -> None:
        """Disconnect from the cluster; end one that was started here."""
        with contextlib.suppress(Exception):
            self._client.close()
        if self._batch is not None:
            self._batch.close()

    def _workers(self) -> dict[str, dict[str, Any]]:
        """Return the scheduler's entries of the workers that are not refused."""
        if time.monotonic() - self._listed_at > FRESH:
            self._listed = self._client.scheduler_info(n_workers=-1)["workers"]
            self._listed_at = time.monotonic()
        usable = {}
        for name, entry in self._listed.items():
            if name not in self._refused:
                usable[name] = entry
        return usable

    def _wait_for_job(self, batch: BatchJobs) -> None:
        """Wait as long as the queue takes, unless it accepts no job at all."""
        name = self._execution.cluster
        waited = 0.0
        print(
            f"hardsynth: waiting for the first job of {name} to start", file=sys.stderr
        )
        while True:
            try:
                self._client.wait_for_workers(1, timeout=FRESH)
                return
            except TimeoutError:
                if batch.is_refused:
                    raise batch.refusal_error(batch.refusals[0]) from None
            waited += FRESH
            if waited == PATIENCE:
                print(
                    f"hardsynth: no job of {name} has brought a worker yet: ask {name} whether "
                    "they wait (then so does this command) or have ended (then their output, "
                    "slurm-*.out for one, says why; Ctrl-C ends this command)",
                    file=sys.stderr,
                )

    def _check_workers(self) -> None:
        """Wait for a worker, and refuse workers whose versions differ from this machine's."""
        if self._batch is not None:
            self._wait_for_job(self._batch)
        else:
            self._wait_for_first_worker()
        try:
            answers = self._client.run(collect_versions, on_error="return")
        except Exception as error:
            raise ClusterError(
                f"the workers of {self._execution.cluster} do not answer: {error}",
                "install hardsynth where they run",
            ) from None
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, BaseException):
                reason = f"it cannot load hardsynth ({answer})"
            else:
                reason = describe_differences(self._versions_here, answer)
            if reason:
                self.refuse(worker, reason)

    def _wait_for_first_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ClusterError(
                f"no worker came to {self._execution.cluster} within {PATIENCE:g} seconds",
                f"start some: dask worker {self._execution.cluster}",
            ) from None


def run_in_own_process(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    limits: tuple[float, int],
    required_versions: dict[str, str],
) -> UnitReport:
    """Run a unit in a process beside a worker's thread; ``limits`` are seconds and bytes.

    Raises
    ------
    WorkerRefused
        This worker came later, and its versions differ from those of the machine that asks.
    """
    from distributed import get_worker

    differences = describe_differences(required_versions, collect_versions())
    if differences:
        raise WorkerRefused(differences, str(get_worker().address))
    # A process for each thread of this worker, kept for its next unit.
    process = getattr(_THREAD, "process", None)
    if process is None:
        process = WorkerProcess()
        _THREAD.process = process
    timeout, memory = limits
    return process.run(function, arguments, timeout=timeout, memory=memory)


def _copy_outcome(task: Any, future: Future[UnitReport]) -> None:
    """Copy the result or the error of Dask's future to an ordinary one."""
    from distributed import CancelledError, KilledWorker

    # The ordinary one is set already if the unit was taken back.
    with contextlib.suppress(InvalidStateError):
        try:
            if task.status in ("cancelled", "lost"):
                # Its client may be closed, and would never answer: the thread that calls this
                # would keep the whole process from ending.
                raise CancelledError(task.key)
            future.set_result(task.result(timeout=PATIENCE))
        except KilledWorker:
            future.set_exception(
                WorkerDied("the workers that had it were lost, one after another")
            )
        except CancelledError:
            future.set_exception(WorkerDied("its worker was lost"))
        except InvalidStateError:
            raise
        except BaseException as error:
            future.set_exception(error)
    task.release()


def _connect(execution: Execution) -> tuple[BatchJobs | None, Any]:
    """Return the batch system's jobs, or None, and a client of the scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(
            f"--cluster {execution.cluster} needs Dask", "pip install 'hardsynth[dask]'"
        ) from None
    if execution.cluster in BATCH_SYSTEMS:
        batch = BatchJobs(execution)
        return batch, Client(batch.cluster, set_as_default=False)
    location: dict[str, Any] = {"address": execution.cluster}
    if "://" not in execution.cluster and Path(execution.cluster).is_file():
        location = {"scheduler_file": execution.cluster}
    try:
        with warnings.catch_warnings():
            # Workers with other versions are refused later, with the differences.
            warnings.filterwarnings("ignore", "Mismatched versions")
            client = Client(**location, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {execution.cluster}: {error}",
            "give its address, e.g. tcp://head:8786, its scheduler file, slurm or pbs",
        ) from None
    address = str(client.scheduler.address)
    if not address.startswith(SECURE):
        print(
            f"hardsynth: {address} is neither encrypted nor authenticated: whoever reaches it "
            "can run code on its workers; use tls:// with certificates, or a private network",
            file=sys.stderr,
        )
    return None, client
