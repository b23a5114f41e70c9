"""The estimate wing: the true error of a trained model from few labels.

From files to losses: ``asked``, ``inputs``, ``losses`` (with their bounds). What an estimator
answers: ``results``. From labelled rows alone: ``intervals``, ``strata`` (drawn by class). With
real rows without labels: ``powered``. Whether other rows lie where labelled ones do: ``support``;
what may refute an assumption: ``checks``. With generated rows: ``generated``, ``regions`` (the
cells around labelled rows), ``theorem``, ``tallies``, ``assemble`` and ``osyn`` (the seed paper's
bound, iterative and closed), ``explore`` (its whole sweep), ``osyn_run`` (both forms on the rows
at hand), ``partition`` (the sound bound of that kind). All of it: ``work`` → ``report``, with
``estimate`` the door and ``plot`` the picture. How often the intervals hold: ``coverage`` on
simulated ``populations``.
"""

from amlb_ext.estimate.answers import EstimateReport
from amlb_ext.estimate.estimate import estimate
from amlb_ext.stats.error_estimate import ErrorEstimate

__all__ = ["ErrorEstimate", "EstimateReport", "estimate"]
