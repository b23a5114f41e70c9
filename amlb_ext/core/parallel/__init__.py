"""Units of work, one thread each: here, in processes of this machine, or on a cluster.

===============  ===========================================================================
``execution``    where units run, and what each may cost
``units``        a unit, what came of it, and what can befall it
``jobs``         hands out units, runs them again within a bound, gives back what came of them
``processes``    pools of this machine: this process, or several under limits
``child``        what runs inside such a process
``cluster``      a pool on a Dask cluster; with ``batch`` one of SLURM's or PBS's jobs
``versions``     what must be the same on every machine of a cluster
===============  ===========================================================================

Every unit runs single-threaded wherever it runs: sums then have one order, and neither the
number of workers nor their place can change a byte.
"""

from amlb_ext.core.parallel.execution import Execution, available_cores
from amlb_ext.core.parallel.jobs import run_jobs, run_units
from amlb_ext.core.parallel.units import Unit, UnitOutcome

__all__ = [
    "Execution",
    "Unit",
    "UnitOutcome",
    "available_cores",
    "run_jobs",
    "run_units",
]
