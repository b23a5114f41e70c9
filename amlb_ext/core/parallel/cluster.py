"""Units on a Dask cluster: one that runs, or one started through SLURM or PBS.

A worker hands each unit to a process of its own (:mod:`amlb_ext.core.parallel.processes`), so
that limits hold, threads of one worker do not meet, and a crash costs one unit. Dask itself
gives the units of a worker that was lost to another.
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

#: Seconds to wait for a scheduler, and for a first worker of one that runs.
PATIENCE = 30.0
#: How addresses begin whose peers show certificates.
SECURE = ("tls://", "wss://")
#: Seconds without any worker after which the run ends.
ABSENCE = 300.0
#: Seconds for which what the scheduler said of its workers is taken to hold.
FRESH = 2.0
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
        Dask is not installed, the scheduler does not answer, no worker came, or each is of
        another version.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._here = collect_versions()
        self._refused: dict[str, str] = {}
        self._known: dict[str, dict[str, Any]] = {}
        self._asked = -math.inf
        self._held: dict[Future[UnitReport], tuple[Any, frozenset[str]]] = {}
        self._batch, self._client = _connect(execution)
        try:
            self._check_workers()
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """Threads of the workers that are not refused."""
        return max(1, sum(about["nthreads"] for about in self._workers().values()))

    def submit(self, unit: Unit, index: int, attempt: int) -> Future[UnitReport]:
        """Hand a unit to the scheduler."""
        limits = self._execution
        workers = self._wait_for_workers()
        with warnings.catch_warnings():
            # Tables go with the unit, so that the scheduler still has them when a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            task = self._client.submit(
                run_in_own_process,
                unit.function,
                unit.arguments,
                (limits.timeout, limits.memory),
                self._here,
                key=f"{unit.name}-{index}-{attempt}-{unit.key[:16]}",
                workers=sorted(workers) if self._refused else None,
                pure=False,
            )
        future: Future[UnitReport] = Future()
        self._held[future] = task, workers if self._refused else frozenset()
        task.add_done_callback(lambda done: _pass_on(done, future))
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
        """Take back units for workers that are gone; raise when no worker comes any more."""
        if self._batch is not None:
            self._batch.tell()
        here = self._wait_for_workers()
        self._held = {
            future: held for future, held in self._held.items() if not future.done()
        }
        for future, (task, workers) in list(self._held.items()):
            if workers and not workers & here and not future.done():
                with contextlib.suppress(InvalidStateError):
                    future.set_exception(WorkersGone("its workers are gone"))
                task.cancel()

    def _wait_for_workers(self) -> frozenset[str]:
        """Return the workers that may have units; wait for one where there is none."""
        for _ in range(int(ABSENCE / FRESH)):
            workers = frozenset(self._workers())
            if workers:
                return workers
            time.sleep(FRESH)
        if self._batch is not None and self._batch.refusals:
            raise self._batch.error(self._batch.refusals[-1])
        raise ClusterError(
            f"{self._execution.cluster} has had no usable worker for {ABSENCE:g} s",
            "start workers and run the same command again; what is finished is kept",
        )

    def close(self) -> None:
        """Let go of the cluster; one that was started here is ended."""
        with contextlib.suppress(Exception):
            self._client.close()
        if self._batch is not None:
            self._batch.close()

    def _workers(self) -> dict[str, dict[str, Any]]:
        if time.monotonic() - self._asked > FRESH:
            self._known = self._client.scheduler_info(n_workers=-1)["workers"]
            self._asked = time.monotonic()
        return {
            name: about
            for name, about in self._known.items()
            if name not in self._refused
        }

    def _wait_for_job(self, batch: BatchJobs) -> None:
        """Wait as long as the queue makes us wait, unless it takes no job at all."""
        name, waited = self._execution.cluster, 0.0
        print(
            f"hardsynth: waiting for the first job of {name} to start", file=sys.stderr
        )
        while True:
            try:
                self._client.wait_for_workers(1, timeout=FRESH)
                return
            except TimeoutError:
                if batch.is_refused:
                    raise batch.error(batch.refusals[0]) from None
            waited += FRESH
            if waited == PATIENCE:
                print(
                    f"hardsynth: no job of {name} has brought a worker yet: ask {name} whether "
                    "they wait (then so does this command) or have ended (then their output, "
                    "slurm-*.out for one, says why; Ctrl-C ends this command)",
                    file=sys.stderr,
                )

    def _check_workers(self) -> None:
        """Wait for a worker and refuse those that are not like this machine."""
        if self._batch is not None:
            self._wait_for_job(self._batch)
        else:
            try:
                self._client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError:
                raise ClusterError(
                    f"no worker came to {self._execution.cluster} within {PATIENCE:g} seconds",
                    f"start some: dask worker {self._execution.cluster}",
                ) from None
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
                reason = describe_differences(self._here, answer)
            if reason:
                self.refuse(worker, reason)


def run_in_own_process(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    limits: tuple[float, int],
    wanted: dict[str, str],
) -> UnitReport:
    """Run a unit in a process beside a worker's thread.

    Raises
    ------
    WorkerRefused
        This worker came later, and is not like the machine that asks.
    """
    from distributed import get_worker

    differs = describe_differences(wanted, collect_versions())
    if differs:
        raise WorkerRefused(differs, str(get_worker().address))
    process = getattr(_THREAD, "process", None)
    if process is None:
        process = _THREAD.process = WorkerProcess()
    return process.run(function, arguments, *limits)


def _pass_on(task: Any, future: Future[UnitReport]) -> None:
    """Give what came of Dask's future to an ordinary one."""
    from distributed import CancelledError, KilledWorker

    with contextlib.suppress(InvalidStateError):  # it was taken back
        try:
            future.set_result(task.result())
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
    """Return the batch system's jobs, or None, and a client."""
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
            # Each worker that differs is refused below, with what differs.
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
