"""Where units run and what each may cost; none of it changes a result."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from amlb_ext.core.errors import ConfigError

#: Bytes of ``k``, ``m``, ... (powers of 1000) and of ``ki``, ``mi``, ... (powers of 1024).
_UNITS = {"": 1}
for _power, _prefix in enumerate("kmgt", start=1):
    _UNITS[_prefix] = 1000**_power
    _UNITS[f"{_prefix}i"] = 1024**_power


def available_cores() -> int:
    """Return the number of cores this process may use.

    It is the minimum of the machine's cores, the CPU affinity, the quota of a container, and the
    variable ``LOKY_MAX_CPU_COUNT``, as in joblib.
    """
    from loky import cpu_count

    return int(cpu_count())


def parse_size(text: str) -> int:
    """Return a size in bytes.

    Raises
    ------
    ConfigError
        The text is not a size.

    Examples
    --------
    >>> parse_size("4GB"), parse_size("512 MiB"), parse_size("1.5g")
    (4000000000, 536870912, 1500000000)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    number = 0.0
    if match is not None:
        number = float(match[1]) * _UNITS.get(match[2], 0)
    if match is None or number == 0:
        raise ConfigError(
            f"{text!r} is not a size", "give a number and a unit, e.g. 4GB or 512MiB"
        )
    return int(number)


@dataclass(frozen=True)
class Execution:
    """Where units run, and what each may cost.

    Attributes
    ----------
    workers : int
        Number of processes on this machine; 0 for one per core. With 1 and no limit, units run in
        this process.
    cluster : str
        A Dask scheduler's address or the path of a scheduler file; empty for this machine.
    timeout : float
        Wall time that a unit may take, in seconds; 0 for no limit.
    memory : int
        Bytes that a unit's process may use; 0 for no limit.
    retries : int
        How many times a unit is run again after its process or worker died.

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
    timeout: float = 0.0
    memory: int = 0
    retries: int = 2

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(
                f"{self.workers} processes", "give 1 or more, or 0 for all cores"
            )
        if not 0 <= self.timeout < math.inf:
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

    @property
    def is_limited(self) -> bool:
        """Whether time or memory is limited."""
        return bool(self.timeout or self.memory)

    @property
    def processes(self) -> int:
        """Number of processes on this machine."""
        return self.workers if self.workers > 0 else available_cores()
