"""Negative flips: rows that F decides rightly and G wrongly, and the reverse.

References
----------
Milani Fard, Cormier, Canini & Gupta (2016), *Launch and iterate: reducing prediction churn*, NIPS;
Yan et al. (2021), *Positive-congruent training*, CVPR, for the name; McNemar (1947), Psychometrika
12, 153-157.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from amlb_ext.swap.segments import Segment

#: Columns of :func:`count_flips`.
COLUMNS = ["model", "segment", "rows", "negative", "positive", "churn", "p", "refits"]


def count_flips(
    right_f: np.ndarray,
    right: Mapping[str, np.ndarray],
    segments: Sequence[Segment] = (),
    refits: Sequence[np.ndarray] = (),
) -> pd.DataFrame:
    """Count the decisions that change from right to wrong and from wrong to right.

    Parameters
    ----------
    right_f : ndarray of shape (n,), bool
        Whether F decides a row rightly.
    right : mapping of str to ndarray of shape (n,), bool
        The same of each model.
    segments : sequence of Segment
    refits : sequence of ndarray of shape (n,), bool
        The same of F fitted again.

    Returns
    -------
    DataFrame
        For each model, over all rows and in each segment: ``rows``; ``negative`` flips (right, then
        wrong), ``positive`` ones, and their sum as a share, ``churn``; ``p`` of McNemar's exact
        test that both are alike; and ``refits``, the mean share of negative flips where F is only
        fitted again, NaN without.

    Examples
    --------
    >>> f = np.array([True, True, False, False])
    >>> count_flips(f, {"G": ~f})[["negative", "positive"]].values.tolist()
    [[2, 2]]
    """
    records = []
    places = [("all rows", np.ones(len(right_f), dtype=bool))]
    places += [(segment.name, segment.inside) for segment in segments]
    for model, right_g in right.items():
        for name, inside in places:
            negative = int((right_f & ~right_g & inside).sum())
            positive = int((~right_f & right_g & inside).sum())
            n_inside = int(inside.sum())
            p = 1.0
            if negative + positive:
                p = float(binomtest(negative, negative + positive, 0.5).pvalue)
            again = [(right_f & ~twin & inside).sum() / n_inside for twin in refits]
            records.append(
                {
                    "model": model,
                    "segment": name,
                    "rows": n_inside,
                    "negative": negative,
                    "positive": positive,
                    "churn": (negative + positive) / n_inside,
                    "p": p,
                    "refits": float(np.mean(again)) if again else np.nan,
                }
            )
    return pd.DataFrame(records, columns=COLUMNS)
