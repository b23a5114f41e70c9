"""The estimate wing: the true error of a trained model from few labels.

``estimate`` is the door. ``inputs`` goes from files to losses; ``answers`` asks every estimator of
:mod:`amlb_ext.stats` that the rows at hand allow, and reports. ``drawing`` and ``checks`` hold
what may refute an assumption; ``advice`` chooses the estimate to quote, and says what to do where
none can be quoted. With generated rows: ``generated`` gives them, ``osyn`` is the seed paper's
bound, ``partition`` the sound bound of that kind. ``plot`` draws the picture.
"""

from amlb_ext.estimate.answers import EstimateReport
from amlb_ext.estimate.estimate import estimate
from amlb_ext.stats.error_estimate import ErrorEstimate

__all__ = ["ErrorEstimate", "EstimateReport", "estimate"]
