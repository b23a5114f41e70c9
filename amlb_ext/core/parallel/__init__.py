"""Units of work, one thread each: here, in processes of this machine, or on a Dask cluster.

=============  ==============================================================================
``execution``  where units run, and what each may cost
``units``      hands out units, and yields the outcome of each
``process``    one process that computes units within limits
``cluster``    the workers of a Dask scheduler, which must have the versions of this machine
=============  ==============================================================================

Every unit runs in a single thread, wherever it runs: sums then have one order, and neither the
number of workers nor their place can change a byte.
"""

from amlb_ext.core.parallel.execution import Execution, available_cores
from amlb_ext.core.parallel.units import Unit, UnitOutcome, run_jobs, run_units

__all__ = [
    "Execution",
    "Unit",
    "UnitOutcome",
    "available_cores",
    "run_jobs",
    "run_units",
]
