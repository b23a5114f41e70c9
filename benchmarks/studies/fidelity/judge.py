"""How well an answer agrees with a reference.

Notation
--------
r : (m,) the reference's delta of each candidate, the twin of F left out;  a : the answer's
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.studies.fidelity.answer import Answer
from amlb_ext.stats.ranking import kendall_tau

#: One sample of a draw: where it is from, and the figures of each method on each reference.
Record = Mapping[str, Any]
#: What stands for every table together.
ALL_TABLES = "all tables"
#: The figures of :func:`judge_answer`, and what they mean.
FIGURES = {
    "tau": "agreement of rankings (Kendall's tau-b)",
    "regret": "loss of the model one would pick, 0 the best, 1 an average candidate",
    "coverage": "share of candidates whose interval holds the reference",
    "width": "mean width of intervals, in mean |delta| of the reference",
    "claims": "share of candidates called significantly better than F",
    "false_claims": "share of those claims where the reference says worse than F",
    "twin": "the twin of F against F, in mean |delta|; negative: it seems better",
}


def judge_answer(answer: Answer, reference: np.ndarray) -> dict[str, float]:
    """Return :data:`FIGURES` of an answer; NaN where one has no meaning.

    Examples
    --------
    >>> r = np.array([-0.2, 0.1, 0.3, 0.0])
    >>> figures = judge_answer(Answer(r, r - 0.1, r + 0.1, 50), r)
    >>> figures["tau"], figures["regret"], figures["coverage"], round(figures["claims"], 3)
    (1.0, 0.0, 1.0, 0.333)
    """
    # the last model is the twin: it is judged apart, since it is F but for chance
    r = reference[:-1]
    a = answer.point[:-1]
    low = answer.low[:-1]
    high = answer.high[:-1]
    figures = dict.fromkeys(FIGURES, float("nan"))
    figures["tau"] = kendall_tau(a, r)

    # candidates that are all alike leave nothing to regret
    spread = float(r.mean() - r.min())
    if spread > 0:
        figures["regret"] = float(r[a.argmin()] - r.min()) / spread

    # differences of loss have the unit of the reference's own
    size = float(np.abs(r).mean())
    if size > 0:
        figures["twin"] = float(answer.point[-1]) / size

    has_interval = np.isfinite(low) & np.isfinite(high)
    if has_interval.any():
        is_covered = (low <= r) & (r <= high)
        figures["coverage"] = float(is_covered[has_interval].mean())
        if size > 0:
            figures["width"] = float((high - low)[has_interval].mean()) / size
        is_claimed = has_interval & (high < 0)
        figures["claims"] = float(is_claimed.mean())
        if is_claimed.any():
            figures["false_claims"] = float((r > 0)[is_claimed].mean())
    return figures
