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

#: Loggers that report errors in callbacks and tasks with a traceback; dask-jobqueue submits there.
_LOGGERS = ("tornado.application", "asyncio")


class BatchJobs:
    """Jobs of a batch system: submitted, replaced when their time is over, and ended.

    Parameters
    ----------
    execution : Execution
        Its ``cluster`` names the batch system. Its ``options`` are those of dask-jobqueue, and
        ``security``: ``tls``, or ``none`` for connections that anyone can make and read.

    Attributes
    ----------
    cluster : dask_jobqueue.JobQueueCluster
    refusals : list of str
        Messages of the batch system about jobs that it did not accept.
    accepted : list of str
        Numbers of the jobs that it accepted.

    Raises
    ------
    ClusterError
        dask-jobqueue is not installed, the batch system does not exist here, or an option is
        unknown to it.
    """

    def __init__(self, execution: Execution) -> None:
        name = execution.cluster
        dask_jobqueue = _import_dask_jobqueue(name)
        submit_command = BATCH_SYSTEMS[name]
        if shutil.which(submit_command) is None:
            raise ClusterError(
                f"--cluster {name}, but there is no command {submit_command} here",
                "run it where jobs are submitted, or give a Dask scheduler's address",
            )
        cluster_class = getattr(dask_jobqueue, f"{name.upper()}Cluster")
        options: dict[str, Any] = {"cores": 1, "memory": "4GB", **execution.options}
        shared_folder = Path(options.pop("shared_temp_directory", "."))
        self._keys = _write_keys(options.pop("security", "tls"), shared_folder, name)
        self._name = name
        self._n_jobs = execution.workers or 1
        self._n_reported = 0
        self.refusals: list[str] = []
        self.accepted: list[str] = []
        # A refused job is reported below in one line, so its traceback is kept out of the log.
        for logger in _LOGGERS:
            logging.getLogger(logger).addFilter(_is_unreported)
        try:
            options["cores"] = int(options["cores"])
            self.cluster = _start_cluster(
                cluster_class,
                job_cls=_recording_job_class(cluster_class.job_cls, self),
                security=_dask_security(self._keys),
                options=options,
            )
            self.cluster.adapt(minimum_jobs=self._n_jobs, maximum_jobs=self._n_jobs)
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            self._remove_keys()
            raise self.refusal_error(str(error)) from None
        _print_address(
            name, self.cluster.scheduler_address, is_secure=self._keys is not None
        )

    def refusal_error(self, message: str) -> ClusterError:
        """Return the error that says why there are no jobs."""
        return ClusterError(
            f"{self._name} takes no jobs: {' '.join(message.split())}",
            "see dask-jobqueue's options, e.g. --cluster-option queue=short",
        )

    @property
    def is_refused(self) -> bool:
        """Whether the batch system accepted none of the jobs."""
        return not self.accepted and len(self.refusals) >= self._n_jobs

    def report_refusals(self) -> None:
        """Print each refused job once; the other jobs do its work."""
        for message in self.refusals[self._n_reported :]:
            text = " ".join(message.split())
            print(
                escape_controls(f"hardsynth: {self._name} did not take a job: {text}"),
                file=sys.stderr,
            )
        self._n_reported = len(self.refusals)

    def close(self) -> None:
        """End the jobs."""
        # If no job was accepted, the error of the run has said so already.
        if self.accepted:
            self.report_refusals()
        with contextlib.suppress(Exception):
            self.cluster.close()
        self._remove_keys()

    def _remove_keys(self) -> None:
        if self._keys is not None:
            with contextlib.suppress(OSError):
                self._keys.cleanup()


def _write_keys(
    security: str, shared_folder: Path, name: str
) -> TemporaryDirectory[str] | None:
    """Write keys for this run alone to a folder that its jobs can read.

    Parameters
    ----------
    security : str
        ``tls``, or ``none`` for no keys.
    shared_folder : Path
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
        Another value of ``security``, a folder that cannot be used, or no library for keys.
    """
    from distributed.security import Security

    if security == "none":
        return None
    if security != "tls":
        raise ClusterError(
            f"--cluster-option security={security}",
            "give security=tls, or security=none",
        )
    try:
        keys = Security.temporary()
    except ImportError:
        raise ClusterError(
            f"--cluster {name} makes keys for its connections, which needs cryptography",
            "pip install 'hardsynth[jobqueue]', or add --cluster-option security=none where "
            "everyone on the network may run code as you",
        ) from None
    shared_folder = shared_folder.expanduser().absolute()
    remedy = (
        "give --cluster-option shared_temp_directory=FOLDER, which the jobs see, too"
    )
    # dask-jobqueue writes the path into a shell script without quotes
    if shlex.quote(str(shared_folder)) != str(shared_folder):
        raise ClusterError(
            f"the keys of the jobs cannot stand in {str(shared_folder)!r}", remedy
        )
    try:
        folder = TemporaryDirectory(prefix=".hardsynth-keys-", dir=shared_folder)
        certificate_file, key_file = _key_files(folder)
        certificate_file.write_text(keys.tls_scheduler_cert, encoding="ascii")
        key_file.write_text(keys.tls_scheduler_key, encoding="ascii")
    except OSError as error:
        raise ClusterError(
            f"the keys of the jobs cannot be written into {shared_folder}: {error.strerror}",
            remedy,
        ) from None
    return folder


def _key_files(keys: TemporaryDirectory[str]) -> tuple[Path, Path]:
    """Return the files of the certificate and of its key."""
    return Path(keys.name, "cert.pem"), Path(keys.name, "key.pem")


def _dask_security(keys: TemporaryDirectory[str] | None) -> Any:
    """Return Dask's settings: all sides show the one certificate, and accept no other."""
    from distributed.security import Security

    if keys is None:
        return None
    certificate_file, key_file = _key_files(keys)
    # The certificate signs itself, so it is also the authority that vouches for it.
    options: dict[str, Any] = {"tls_ca_file": str(certificate_file)}
    for role in ("scheduler", "worker", "client"):
        options[f"tls_{role}_cert"] = str(certificate_file)
        options[f"tls_{role}_key"] = str(key_file)
    return Security(require_encryption=True, **options)


def _start_cluster(
    cluster_class: type, *, job_cls: type, security: Any, options: dict[str, Any]
) -> Any:
    """Return a cluster that listens where its workers look for it, and nowhere else."""
    from distributed.utils import get_ip

    # Without a host the scheduler would listen on every interface. So would its web pages, which
    # ask for no certificate: they stay on this machine.
    scheduler_options = {"dashboard_address": "127.0.0.1:0"}
    if not options.get("interface"):
        scheduler_options["host"] = get_ip()
    worker_arguments = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    # The user's options come last and take precedence.
    all_options: dict[str, Any] = {
        "scheduler_options": scheduler_options,
        "worker_extra_args": worker_arguments,
        **options,
    }
    return cluster_class(job_cls=job_cls, security=security, **all_options)


def _print_address(name: str, address: str, *, is_secure: bool) -> None:
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


def _import_dask_jobqueue(name: str) -> Any:
    handler = signal.getsignal(signal.SIGINT)
    try:
        import dask_jobqueue
    except ImportError:
        raise ClusterError(
            f"--cluster {name} needs dask-jobqueue",
            "pip install 'hardsynth[dask,jobqueue]'",
        ) from None
    # Its import replaces the handler of Ctrl-C, which would then end with status 0.
    if signal.getsignal(signal.SIGINT) is not handler:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
    return dask_jobqueue


def _recording_job_class(job_class: type, batch: BatchJobs) -> type:
    """Return a class of jobs that record whether the batch system accepted them."""
    from distributed.core import Status

    class RecordingJob(job_class):
        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                # dask-jobqueue quotes what the command wrote to stderr after this heading
                _, _, quoted = str(error).partition("\nstderr:\n")
                batch.refusals.append(quoted.strip() or str(error))
                error.is_reported = True  # type: ignore[union-attr]
                # without this status, closing the cluster stops half-way
                self.status = Status.failed
                raise
            batch.accepted.append(str(self.job_id))

    return RecordingJob


def _is_unreported(record: logging.LogRecord) -> bool:
    """Whether a log record is about anything but a refused job."""
    if not record.exc_info:
        return True
    return not getattr(record.exc_info[1], "is_reported", False)
