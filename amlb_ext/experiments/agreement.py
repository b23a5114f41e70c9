"""Does a cell of ours lie within the printed one? One rule for the tables of both papers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

#: A cell agrees when our mean lies within so many printed standard deviations.
WITHIN = 2.0
#: Rounding of sums may not decide about a mean that lies exactly on the limit.
ROUNDING = 1e-12


def agrees_with_printed(
    printed: float, ours: float, *, deviation: float, least: float = math.nan
) -> bool | None:
    """Return whether our mean lies within :data:`WITHIN` deviations of the printed one.

    Parameters
    ----------
    printed, ours : float
        Means; NaN where there is none.
    deviation : float
        Standard deviation over repetitions: the printed one, or ours where none is printed.
    least : float
        A difference up to this agrees, however small the deviation.

    Returns
    -------
    bool or None
        None where there is nothing to compare: no printed mean, none of ours, no limit.

    Examples
    --------
    >>> agrees_with_printed(0.2, 0.209, deviation=0.001, least=0.01)
    True
    >>> agrees_with_printed(0.2, 0.211, deviation=0.001, least=0.01)
    False
    >>> agrees_with_printed(0.2, 0.2, deviation=float("nan")) is None
    True
    """
    if math.isnan(printed) or math.isnan(ours):
        return None
    limits = [limit for limit in (WITHIN * deviation, least) if not math.isnan(limit)]
    if not limits:
        return None
    return bool(abs(ours - printed) <= max(limits) + ROUNDING)


def mean_and_deviation(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation of the known values; NaN where there is none.

    Examples
    --------
    >>> mean_and_deviation(np.array([1.0, 3.0, np.nan, 2.0]))
    (2.0, 1.0)
    >>> mean_and_deviation(np.array([1.0]))
    (1.0, nan)
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return math.nan, math.nan
    deviation = float(known.std(ddof=1)) if len(known) > 1 else math.nan
    return float(known.mean()), deviation


def count_verdicts(cells: pd.DataFrame) -> dict[str, int]:
    """Return how many cells agree, disagree, and have nothing to compare.

    Parameters
    ----------
    cells : DataFrame
        With a column ``within`` of True, False and None; or an empty one.

    Examples
    --------
    >>> count_verdicts(pd.DataFrame({"within": [True, None, False, True]}))
    {'within': 2, 'outside': 1, 'none': 1}
    """
    verdicts = list(cells["within"]) if len(cells) else []
    n_within = sum(verdict is True for verdict in verdicts)
    n_outside = sum(verdict is False for verdict in verdicts)
    n_open = len(verdicts) - n_within - n_outside
    return {"within": n_within, "outside": n_outside, "none": n_open}


def agreement_word(within: Any) -> str:
    """Return the word for a cell's agreement.

    Examples
    --------
    >>> agreement_word(True), agreement_word(None)
    ('within', '–')
    """
    return {True: "within", False: "outside"}.get(within, "–")


def float_or_nan(value: Any) -> float:
    """Return a number read from JSON, where NaN is written as null.

    Examples
    --------
    >>> float_or_nan(3), float_or_nan(None)
    (3.0, nan)
    """
    return math.nan if value is None else float(value)
