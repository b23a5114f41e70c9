"""The estimate wing: the true error of a trained model from few labels.

``estimate`` is the entry point, and provides generated rows. ``inputs`` goes from files to losses.
``answers`` applies every estimator of :mod:`amlb_ext.stats` that the rows at hand allow, and
reports. ``drawing`` tests the assumptions. ``advice`` chooses the estimate to quote, and says what
to do if there is none. For generated rows ``osyn`` is the bound of the seed paper and ``partition``
the sound bound of that kind. ``plot`` draws the picture.
"""

from amlb_ext.estimate.answers import EstimateReport
from amlb_ext.estimate.estimate import estimate
from amlb_ext.stats.error_estimate import ErrorEstimate

__all__ = ["ErrorEstimate", "EstimateReport", "estimate"]
