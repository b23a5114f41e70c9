"""A Dask cluster whose workers are jobs of SLURM or PBS, through dask-jobqueue."""

from __future__ import annotations

import contextlib
import logging
import shutil
import signal
import sys
from typing import Any

from amlb_ext.core.display import printable
from amlb_ext.core.errors import ClusterError
from amlb_ext.core.parallel.execution import BATCH, Execution

#: They tell of errors in callbacks and tasks, with a traceback; dask-jobqueue submits in these.
_LOGGERS = ("tornado.application", "asyncio")


class Batch:
    """Jobs that are asked for, replaced when their time is over, and ended.

    Parameters
    ----------
    execution : Execution
        Its ``cluster`` names the batch system, its ``options`` are dask-jobqueue's.

    Attributes
    ----------
    cluster : dask_jobqueue.JobQueueCluster
    refusals : list of str
        What the batch system said of jobs that it did not take.
    taken : list of str
        Jobs that it took, by their number there.

    Raises
    ------
    ClusterError
        dask-jobqueue is not installed, there is no such batch system here, or an option is none
        of its.
    """

    def __init__(self, execution: Execution) -> None:
        dask_jobqueue = _imported(execution.cluster)
        submit = BATCH[execution.cluster]
        if shutil.which(submit) is None:
            raise ClusterError(
                f"--cluster {execution.cluster}, but there is no command {submit} here",
                "run it where jobs are submitted, or give a Dask scheduler's address",
            )
        kind = getattr(dask_jobqueue, f"{execution.cluster.upper()}Cluster")
        options: dict[str, Any] = {"cores": 1, "memory": "4GB", **execution.options}
        self._name = execution.cluster
        self._jobs, self._told = execution.workers or 1, 0
        self.refusals: list[str] = []
        self.taken: list[str] = []
        for logger in _LOGGERS:
            logging.getLogger(logger).addFilter(_is_news)
        try:
            options["cores"] = int(options["cores"])
            self.cluster = kind(job_cls=_telling(kind.job_cls, self), **options)
            self.cluster.adapt(minimum_jobs=self._jobs, maximum_jobs=self._jobs)
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            raise self.error(str(error)) from None

    def error(self, said: str) -> ClusterError:
        """Return the error that says why there are no jobs."""
        return ClusterError(
            f"{self._name} takes no jobs: {' '.join(said.split())}",
            "see dask-jobqueue's options, e.g. --cluster-option queue=short",
        )

    @property
    def is_refused(self) -> bool:
        """Whether none of the jobs was taken."""
        return not self.taken and len(self.refusals) >= self._jobs

    def tell(self) -> None:
        """Say once of each job that was not taken that others must do without it."""
        for said in self.refusals[self._told :]:
            text = " ".join(said.split())
            print(printable(f"hardsynth: {self._name} did not take a job: {text}"), file=sys.stderr)
        self._told = len(self.refusals)

    def close(self) -> None:
        """End the jobs."""
        if self.taken:
            self.tell()
        with contextlib.suppress(Exception):
            self.cluster.close()


def _imported(name: str) -> Any:
    handler = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    except ImportError:
        raise ClusterError(
            f"--cluster {name} needs dask-jobqueue", "pip install 'hardsynth[dask,jobqueue]'"
        ) from None
    if signal.getsignal(signal.SIGINT) is not handler:  # Ctrl-C would end with status 0
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
    return dask_jobqueue


def _telling(kind: type, batch: Batch) -> type:
    """Return a kind of job that notes whether the batch system took it, or what it said."""
    from distributed.core import Status

    class Telling(kind):
        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                # what the command wrote to stderr, where dask-jobqueue tells it
                batch.refusals.append(str(error).partition("\nstderr:\n")[2].strip() or str(error))
                error.is_told = True  # type: ignore[union-attr]
                self.status = Status.failed  # without it, closing the cluster stops half-way
                raise
            batch.taken.append(str(self.job_id))

    return Telling


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and getattr(record.exc_info[1], "is_told", False))
