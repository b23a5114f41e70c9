"""The estimate wing: the true error of a trained model from few labels.

``asked`` and ``inputs`` from files to losses · ``results`` what an estimator answers · ``losses``
per-row losses with their bounds · ``intervals`` from labelled rows alone · ``powered`` with real
rows without labels · ``support`` whether other rows lie where labelled ones do · ``checks`` what
may refute an assumption · ``generated`` rows of a synthesizer or a file · ``regions`` (the cells
around labelled rows), ``osyn`` (seed paper's bound, iterative and closed), ``explore`` (its whole
sweep), ``osyn_run`` (both on the rows at hand) and ``partition`` (the sound bound of that kind) ·
``work`` all of it, ``report`` the answers, the recommended one first, ``estimate`` the door ·
``plot`` the picture · ``coverage`` how often the intervals hold, measured.
"""

from amlb_ext.estimate.estimate import estimate
from amlb_ext.estimate.report import Report
from amlb_ext.estimate.results import ErrorEstimate

__all__ = ["ErrorEstimate", "Report", "estimate"]
