"""``hardsynth generate``: the only wing that knows the order of the stages.

Sources give tasks, each task its folds; every fold is hardened and written by one job, in
whatever order jobs finish; last the definitions and the manifest. A fold that stands finished
under the same key is not computed again, so a killed run continues.

``request`` what is asked for and what must hold first · ``generate`` the order of the stages ·
``folds`` all folds, on several processes, and the job that is one of them · ``twin`` the benchmark
that a suite is the hard twin of · ``repair`` makes again what is damaged, a lost manifest too,
``origins`` from which sources · ``series_faults`` what files of series say against each other ·
``weird`` the weird tasks.
"""

from amlb_ext.pipeline.generate import generate_suite
from amlb_ext.pipeline.origins import RepairOptions
from amlb_ext.pipeline.repair import RepairReport, repair_suite
from amlb_ext.pipeline.request import GenerationReport, Request

__all__ = [
    "GenerationReport",
    "RepairOptions",
    "RepairReport",
    "Request",
    "generate_suite",
    "repair_suite",
]
