"""Models in hand: which one is better where F fails, from fitted models and one table.

No suite is written and AMLB is not needed: F has never seen the table, so every row of it is a
test row. The questions, the weights and the intervals are those of a suite's report.
"""

from amlb_ext.comparison.compare import compare
from amlb_ext.comparison.failures import FailureReport, failures
from amlb_ext.comparison.losses_alone import compare_losses
from amlb_ext.comparison.result import ModelComparison

__all__ = ["FailureReport", "ModelComparison", "compare", "compare_losses", "failures"]
