"""Units of work, one thread each: here, in processes of this machine, or on a cluster.

===============  ===========================================================================
``execution``    where units run, and what each may cost
``units``        a unit, its outcome, and what can go wrong with it
``jobs``         hands out units, repeats lost ones a few times, and yields their outcomes
``processes``    pools of this machine: this process, or several under limits
``child``        the code inside such a process
``cluster``      a pool on a Dask cluster, with ``batch`` on jobs of SLURM or PBS
``versions``     the versions that every machine of a cluster must share
===============  ===========================================================================

Every unit runs in a single thread, wherever it runs: sums then have one order, and neither the
number of workers nor their place can change a byte.
"""

from amlb_ext.core.parallel.execution import Execution, available_cores
from amlb_ext.core.parallel.jobs import run_jobs, run_units
from amlb_ext.core.parallel.processes import keep_processes
from amlb_ext.core.parallel.units import Unit, UnitOutcome

__all__ = [
    "Execution",
    "Unit",
    "UnitOutcome",
    "available_cores",
    "keep_processes",
    "run_jobs",
    "run_units",
]
