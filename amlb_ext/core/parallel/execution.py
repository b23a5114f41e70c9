"""Where units run, and what each may cost; none of it is part of a result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from amlb_ext.core.errors import ConfigError

#: Batch systems that ``--cluster`` names instead of an address, and what submits a job to each.
BATCH_SYSTEMS = {"slurm": "sbatch", "pbs": "qsub"}
#: Bytes of ``k``, ``m``, ... (powers of 1000) and of ``ki``, ``mi``, ... (powers of 1024).
_UNITS = {"": 1}
for _power, _prefix in enumerate("kmgt", start=1):
    _UNITS[_prefix] = 1000**_power
    _UNITS[f"{_prefix}i"] = 1024**_power


def available_cores() -> int:
    """Return the number of cores this process may use.

    The least of the machine's, of its affinity, of a container's quota, and of the variable
    ``LOKY_MAX_CPU_COUNT``, as joblib counts them.
    """
    from loky import cpu_count

    return int(cpu_count())


def parse_size(text: str) -> int:
    """Return a size in bytes.

    Raises
    ------
    ConfigError
        Text that is no size.

    Examples
    --------
    >>> parse_size("4GB"), parse_size("512 MiB"), parse_size("1.5g")
    (4000000000, 536870912, 1500000000)
    """
    size = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if size is None or size[2] not in _UNITS or float(size[1]) == 0:
        raise ConfigError(
            f"{text!r} is not a size", "give a number and a unit, e.g. 4GB or 512MiB"
        )
    return int(float(size[1]) * _UNITS[size[2]])


@dataclass(frozen=True)
class Execution:
    """Where units run, and what each may cost.

    Attributes
    ----------
    workers : int
        Processes on this machine; 0 for every core. With 1 and no limit units run in this
        process. On a batch system the number of its jobs.
    cluster : str
        A Dask scheduler's address, the path of a scheduler file, ``slurm`` or ``pbs``; empty
        for this machine.
    options : mapping of str to str
        Of the batch system's job, as dask-jobqueue names them: queue, account, cores, memory,
        walltime, ...
    shared : bool
        The cluster's workers reach this machine's files under the same paths; otherwise results
        are sent back.
    timeout : float
        Seconds by the clock that a unit may take; 0 without a limit.
    memory : int
        Bytes that a unit's process may hold; 0 without a limit.
    retries : int
        How often a unit whose process or worker died is run again.

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
    amlb_ext.core.errors.ConfigError: a limit of -1 seconds (give a number above 0, or 0 for none)
    """

    workers: int = 1
    cluster: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    shared: bool = False
    timeout: float = 0.0
    memory: int = 0
    retries: int = 2

    def __post_init__(self) -> None:
        if self.timeout < 0:
            raise ConfigError(
                f"a limit of {self.timeout:g} seconds",
                "give a number above 0, or 0 for none",
            )
        if self.memory < 0:
            raise ConfigError(
                f"a limit of {self.memory} bytes", "give a size such as 4GB"
            )
        if self.retries < 0:
            raise ConfigError(f"{self.retries} retries", "give 0 or more")
        if self.options and self.cluster not in BATCH_SYSTEMS:
            raise ConfigError(
                f"options of a batch system ({', '.join(self.options)}) without one",
                f"add --cluster {next(iter(BATCH_SYSTEMS))}, or leave --cluster-option out",
            )

    @property
    def is_limited(self) -> bool:
        """Whether a unit can come to a limit."""
        return bool(self.timeout or self.memory)

    @property
    def processes(self) -> int:
        """Processes on this machine."""
        return self.workers if self.workers > 0 else available_cores()
