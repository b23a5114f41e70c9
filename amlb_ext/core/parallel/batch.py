"""A Dask cluster whose workers are jobs of SLURM or PBS, through dask-jobqueue."""

from __future__ import annotations

import contextlib
import logging
import shlex
import shutil
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ClusterError
from amlb_ext.core.parallel.execution import BATCH_SYSTEMS, Execution

#: They tell of errors in callbacks and tasks, with a traceback; dask-jobqueue submits in these.
_LOGGERS = ("tornado.application", "asyncio")


class BatchJobs:
    """Jobs that are asked for, replaced when their time is over, and ended.

    Parameters
    ----------
    execution : Execution
        Its ``cluster`` names the batch system, its ``options`` are dask-jobqueue's, and
        ``security``: ``tls``, or ``none`` for connections that anyone can make and read.

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
        submit = BATCH_SYSTEMS[execution.cluster]
        if shutil.which(submit) is None:
            raise ClusterError(
                f"--cluster {execution.cluster}, but there is no command {submit} here",
                "run it where jobs are submitted, or give a Dask scheduler's address",
            )
        kind = getattr(dask_jobqueue, f"{execution.cluster.upper()}Cluster")
        options: dict[str, Any] = {"cores": 1, "memory": "4GB", **execution.options}
        folder = Path(options.pop("shared_temp_directory", "."))
        self._keys = _keys(options.pop("security", "tls"), folder, execution.cluster)
        self._name = execution.cluster
        self._jobs, self._told = execution.workers or 1, 0
        self.refusals: list[str] = []
        self.taken: list[str] = []
        for logger in _LOGGERS:
            logging.getLogger(logger).addFilter(_is_news)
        try:
            options["cores"] = int(options["cores"])
            self.cluster = _started(
                kind, _telling(kind.job_cls, self), _security(self._keys), options
            )
            self.cluster.adapt(minimum_jobs=self._jobs, maximum_jobs=self._jobs)
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            self._remove_keys()
            raise self.error(str(error)) from None
        _tell_address(
            self._name, self.cluster.scheduler_address, self._keys is not None
        )

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
            print(
                escape_controls(f"hardsynth: {self._name} did not take a job: {text}"),
                file=sys.stderr,
            )
        self._told = len(self.refusals)

    def close(self) -> None:
        """End the jobs."""
        if self.taken:
            self.tell()
        with contextlib.suppress(Exception):
            self.cluster.close()
        self._remove_keys()

    def _remove_keys(self) -> None:
        if self._keys is not None:
            with contextlib.suppress(OSError):
                self._keys.cleanup()


def _keys(wish: str, shared: Path, name: str) -> TemporaryDirectory[str] | None:
    """Write keys made for this run alone where its jobs find them.

    Parameters
    ----------
    wish : str
        ``tls``, or ``none`` for no keys.
    shared : Path
        A folder that the jobs see under the same path.
    name : str
        The batch system.

    Returns
    -------
    TemporaryDirectory or None
        Readable by this user alone.

    Raises
    ------
    ClusterError
        A wish that is none, a folder that cannot be used, or no library that makes keys.
    """
    from distributed.security import Security

    if wish == "none":
        return None
    if wish != "tls":
        raise ClusterError(
            f"--cluster-option security={wish}", "give security=tls, or security=none"
        )
    try:
        made = Security.temporary()
    except ImportError:
        raise ClusterError(
            f"--cluster {name} makes keys for its connections, which needs cryptography",
            "pip install 'hardsynth[jobqueue]', or add --cluster-option security=none where "
            "everyone on the network may run code as you",
        ) from None
    shared = shared.expanduser().absolute()
    remedy = (
        "give --cluster-option shared_temp_directory=FOLDER, which the jobs see, too"
    )
    if shlex.quote(str(shared)) != str(
        shared
    ):  # dask-jobqueue writes it into a script as it is
        raise ClusterError(
            f"the keys of the jobs cannot stand in {str(shared)!r}", remedy
        )
    try:
        folder = TemporaryDirectory(prefix=".hardsynth-keys-", dir=shared)
        Path(folder.name, "cert.pem").write_text(
            made.tls_scheduler_cert, encoding="ascii"
        )
        Path(folder.name, "key.pem").write_text(
            made.tls_scheduler_key, encoding="ascii"
        )
    except OSError as error:
        raise ClusterError(
            f"the keys of the jobs cannot be written into {shared}: {error.strerror}",
            remedy,
        ) from None
    return folder


def _security(keys: TemporaryDirectory[str] | None) -> Any:
    """Return Dask's settings: all sides show the one certificate, and take no other."""
    from distributed.security import Security

    if keys is None:
        return None
    cert, key = str(Path(keys.name, "cert.pem")), str(Path(keys.name, "key.pem"))
    roles = ("scheduler", "worker", "client")
    return Security(
        require_encryption=True,
        tls_ca_file=cert,
        **{f"tls_{role}_cert": cert for role in roles},
        **{f"tls_{role}_key": key for role in roles},
    )


def _started(kind: type, job_cls: type, security: Any, options: dict[str, Any]) -> Any:
    """Return a cluster that listens where its workers look for it, and nowhere else."""
    from distributed.utils import get_ip

    # Without a host the scheduler would listen on every interface; and its pages, which ask for
    # no certificate, would do so with one.
    scheduler = {"dashboard_address": "127.0.0.1:0"}
    if not options.get("interface"):
        scheduler["host"] = get_ip()
    pages = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    chosen: dict[str, Any] = {
        "scheduler_options": scheduler,
        "worker_extra_args": pages,
        **options,
    }
    return kind(job_cls=job_cls, security=security, **chosen)


def _tell_address(name: str, address: str, is_secure: bool) -> None:
    if is_secure:
        text = (
            f"{name}: listening on {address}, for jobs with this run's own keys alone"
        )
    else:
        text = (
            f"{name}: listening on {address} without encryption or keys: whoever reaches it can "
            "run code as you"
        )
    print(f"hardsynth: {text}", file=sys.stderr)


def _imported(name: str) -> Any:
    handler = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    except ImportError:
        raise ClusterError(
            f"--cluster {name} needs dask-jobqueue",
            "pip install 'hardsynth[dask,jobqueue]'",
        ) from None
    if signal.getsignal(signal.SIGINT) is not handler:  # Ctrl-C would end with status 0
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
    return dask_jobqueue


def _telling(kind: type, batch: BatchJobs) -> type:
    """Return a kind of job that notes whether the batch system took it, or what it said."""
    from distributed.core import Status

    class Telling(kind):
        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                # what the command wrote to stderr, where dask-jobqueue tells it
                batch.refusals.append(
                    str(error).partition("\nstderr:\n")[2].strip() or str(error)
                )
                error.is_told = True  # type: ignore[union-attr]
                self.status = (
                    Status.failed
                )  # without it, closing the cluster stops half-way
                raise
            batch.taken.append(str(self.job_id))

    return Telling


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and getattr(record.exc_info[1], "is_told", False))
