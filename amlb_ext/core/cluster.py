"""Units on the workers of a Dask scheduler.

A worker hands each unit to a process of its own (:mod:`amlb_ext.core.processes`), so that
limits hold, threads of one worker do not disturb each other, and a crash costs one unit. Dask
itself gives the units of a lost worker to another.
"""

from __future__ import annotations

import platform
import sys
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import Future
from importlib import metadata
from pathlib import Path
from typing import Any

from amlb_ext.core.errors import ClusterError
from amlb_ext.core.parallel import Execution, Unit, UnitOutcome, run_unit
from amlb_ext.core.version import __version__

#: Seconds to wait for a scheduler, and for its first worker.
PATIENCE = 30.0
#: Seconds without any worker after which the run ends.
ABSENCE = 300.0
#: Beginnings of addresses whose peers show certificates.
SECURE = ("tls://", "wss://")
#: Packages that compute numbers of a suite.
NUMERICAL_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "torch",
    "deap",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
    "catboost",
    "joblib",
)


class Cluster:
    """The workers of a Dask scheduler.

    Parameters
    ----------
    execution : Execution
        Its ``cluster`` is the scheduler's address or file.

    Raises
    ------
    ClusterError
        Dask is not installed, the scheduler does not answer, no worker came, or one has other
        versions.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._versions = collect_versions()
        self._last_seen = time.monotonic()
        self._client = _connect(execution.cluster)
        try:
            self._check_workers()
        except BaseException:
            self.close()
            raise
        self._executor = self._client.get_executor(pure=False)

    @property
    def slots(self) -> int:
        """Number of threads of all workers; others may come."""
        return max(1, sum(self._client.nthreads().values()))

    def submit(self, index: int, unit: Unit) -> Future[UnitOutcome]:
        """Hand a unit to the scheduler."""
        with warnings.catch_warnings():
            # Tables are sent with the unit, so that the scheduler has them if a worker is lost.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            future: Future[UnitOutcome] = self._executor.submit(
                _run_on_worker, index, unit, self._execution, self._versions
            )
        return future

    def check(self) -> None:
        """Raise if no worker comes any more."""
        now = time.monotonic()
        if self._client.nthreads():
            self._last_seen = now
        elif now - self._last_seen > ABSENCE:
            raise ClusterError(
                f"{self._execution.cluster} has had no worker for {ABSENCE:g} s",
                "start workers and run the same command again; what is finished is kept",
            )

    def close(self) -> None:
        """Disconnect; the scheduler then drops what is under way."""
        self._client.close()

    def _check_workers(self) -> None:
        """Wait for a worker; raise if the versions of any differ from this machine's."""
        address = self._execution.cluster
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ClusterError(
                f"no worker came to {address} within {PATIENCE:g} seconds",
                f"start some: dask worker {address}",
            ) from None
        try:
            answers = self._client.run(collect_versions)
        except Exception as error:
            raise ClusterError(
                f"the workers of {address} do not answer: {error}",
                "install hardsynth where they run",
            ) from None
        for worker, answer in sorted(answers.items()):
            _check_versions(self._versions, answer, worker)


def collect_versions() -> dict[str, str]:
    """Return the versions of hardsynth, Python and the numerical packages, and the processor.

    Examples
    --------
    >>> collect_versions()["hardsynth"] == __version__
    True
    """
    versions = {
        "hardsynth": __version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "processor": platform.machine(),
    }
    for name in NUMERICAL_PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "none"
    return versions


def _check_versions(
    here: Mapping[str, str], there: Mapping[str, str], worker: str
) -> None:
    """Raise if a worker differs: it would give other results."""
    differences = [
        f"{name} {there.get(name, 'none')} ({version} here)"
        for name, version in here.items()
        if there.get(name, "none") != version
    ]
    if differences:
        raise ClusterError(
            f"the worker {worker} has {', '.join(differences)}",
            "give it the environment of this machine, or stop it",
        )


def _run_on_worker(
    index: int, unit: Unit, limits: Execution, versions: Mapping[str, str]
) -> UnitOutcome:
    """Run a unit beside a worker's thread; the worker may have come after the first check."""
    from distributed import get_worker

    _check_versions(versions, collect_versions(), str(get_worker().address))
    return run_unit(index, unit, limits)


def _connect(cluster: str) -> Any:
    """Return a client of the scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError(
            f"--cluster {cluster} needs Dask", "pip install 'hardsynth[dask]'"
        ) from None
    location: dict[str, Any] = {"address": cluster}
    if "://" not in cluster and Path(cluster).is_file():
        location = {"scheduler_file": cluster}
    try:
        with warnings.catch_warnings():
            # Workers with other versions are refused later, with the differences.
            warnings.filterwarnings("ignore", "Mismatched versions")
            client = Client(**location, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {cluster}: {error}",
            "give its address, e.g. tcp://head:8786, or its scheduler file",
        ) from None
    address = str(client.scheduler.address)
    if not address.startswith(SECURE):
        print(
            f"hardsynth: {address} is neither encrypted nor authenticated: whoever reaches it "
            "can run code on its workers; use tls:// with certificates, or a private network",
            file=sys.stderr,
        )
    return client
