"""hardsynth: model-aware hard benchmarks for the AutoML Benchmark (AMLB).

The wings, by phase; an arrow may only point down (``tests/test_layering.py`` holds it):

=========  =====================================================================
floor 8    ``cli``
floor 7    ``experiments``: the papers' tables beside ours, and our own studies
floor 6    ``pipeline``: the only wing that knows the order of the stages;
           ``report``: from AMLB's results to an answer
floor 5    ``validity``: what a task may be used for, by measurement;
           ``estimate``: the true error of a model from few labels
floor 4    ``hardening``: from one fold of a task to its hard rows;
           ``runner``: AMLB itself, and what it wrote;
           ``publish``: a suite for others, on OpenML or at an address
floor 3    ``sources``: a spec string to a :class:`~amlb_ext.core.task.Task`;
           ``synthesizers``: generative models of rows;
           ``suite``: the directory that AMLB runs
floor 2    ``amlb``: the rules of AMLB, each written once;
           ``stats``: estimates and intervals from arrays alone;
           ``relations``: what holds between columns, and rows that keep it
floor 1    ``core``: task, config, losses, rng, parallel, errors, assets
=========  =====================================================================
"""

from amlb_ext.core.version import __version__

# SuiteTables and its former name are loaded on demand, below.
__all__ = ["Suite", "SuiteTables", "__version__"]


def __getattr__(name: str) -> object:
    """Import the notebook's door when it is first asked for: the command line never needs it.

    ``amlb_ext.Suite`` is the former name of :class:`~amlb_ext.report.notebook.SuiteTables`; it
    still works, but ``amlb_ext.suite.Suite`` is another class: the files themselves.
    """
    if name in ("Suite", "SuiteTables"):
        from amlb_ext.report.notebook import SuiteTables

        return SuiteTables
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
