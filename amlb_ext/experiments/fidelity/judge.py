"""How well an answer agrees with a reference.

Notation
--------
r : (m,) the reference's delta of each candidate, the twin of F left out;  a : the answer's
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from amlb_ext.experiments.fidelity.draw import Answer
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
    >>> found = judge_answer(Answer(r, r - 0.1, r + 0.1, 50), r)
    >>> found["tau"], found["regret"], found["coverage"], round(found["claims"], 3)
    (1.0, 0.0, 1.0, 0.333)
    """
    r, twin = reference[:-1], answer.point[-1]
    a, low, high = (x[:-1] for x in (answer.point, answer.low, answer.high))
    size = float(np.abs(r).mean())
    known = np.isfinite(low) & np.isfinite(high)
    better = known & (high < 0)
    spread = float(r.mean() - r.min())
    nan = float("nan")
    return {
        "tau": kendall_tau(a, r),
        "regret": float(r[a.argmin()] - r.min()) / spread if spread > 0 else nan,
        "coverage": float(((low <= r) & (r <= high))[known].mean())
        if known.any()
        else nan,
        "width": float((high - low)[known].mean()) / size
        if known.any() and size > 0
        else nan,
        "claims": float(better.mean()) if known.any() else nan,
        "false_claims": float((r > 0)[better].mean()) if better.any() else nan,
        "twin": float(twin) / size if size > 0 else nan,
    }
