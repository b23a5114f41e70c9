"""Units of work, one thread each: here, in processes of this machine, or on a cluster.

``execution`` where to run and what a unit may cost · ``units`` a unit, what came of it, and
what can befall it · ``loop`` hands out units, tries again within a bound, gives back outcomes ·
``local`` in this process, or in loky's · ``child`` what runs inside such a process ·
``supervise`` one such process under limits · ``cluster`` Dask, the only place that imports it ·
``versions`` what must be the same everywhere.

Every unit runs single-threaded wherever it runs: sums then have one order, and neither the
number of workers nor their place can change a byte.
"""

from amlb_ext.core.parallel.execution import Execution, available_cores
from amlb_ext.core.parallel.jobs import run_jobs, run_units
from amlb_ext.core.parallel.units import Unit, UnitOutcome

__all__ = ["Execution", "Unit", "UnitOutcome", "available_cores", "run_jobs", "run_units"]
