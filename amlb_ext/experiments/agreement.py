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


def compare_with_printed(
    values: np.ndarray,
    printed: float,
    *,
    printed_std: float = math.nan,
    least: float = math.nan,
    takes_our_std: bool = False,
) -> dict[str, Any]:
    """Return the part of a cell that sets our repetitions beside the printed mean.

    Parameters
    ----------
    values : ndarray
        Ours, one per repetition; NaN where a repetition has none.
    printed, printed_std : float
        NaN where the paper has no such number.
    least : float
        A difference up to this agrees, however small the deviation.
    takes_our_std : bool
        Judge by our deviation where none is printed; the mark is lenient then where our
        repetitions scatter.

    Returns
    -------
    dict
        ``paper``, ``paper_std``, ``ours``, ``ours_std`` and ``within``, see
        :func:`agrees_with_printed`.

    Examples
    --------
    >>> compare_with_printed(np.array([0.2, 0.3]), 0.26, printed_std=0.01)["within"]
    True
    """
    ours, ours_std = mean_and_deviation(values)
    deviation = printed_std
    if takes_our_std and math.isnan(printed_std):
        deviation = ours_std
    return {
        "paper": printed,
        "paper_std": printed_std,
        "ours": ours,
        "ours_std": ours_std,
        "within": agrees_with_printed(printed, ours, deviation=deviation, least=least),
    }


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
    # NaN is no limit; max() would take or leave it by its place
    limits = [WITHIN * deviation, least]
    limits = [limit for limit in limits if not math.isnan(limit)]
    if not limits:
        return None
    difference = abs(ours - printed)
    return bool(difference <= max(limits) + ROUNDING)


def mean_and_deviation(values: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation of the values that are no NaN; NaN where there is none.

    Examples
    --------
    >>> mean_and_deviation(np.array([1.0, 3.0, np.nan, 2.0]))
    (2.0, 1.0)
    >>> mean_and_deviation(np.array([1.0]))
    (1.0, nan)
    """
    values = values[~np.isnan(values)]
    if not len(values):
        return math.nan, math.nan
    mean = float(values.mean())
    # one repetition has no deviation, and numpy would warn of it
    if len(values) == 1:
        return mean, math.nan
    return mean, float(values.std(ddof=1))


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
    # an empty table has no columns
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
    words = {True: "within", False: "outside"}
    return words.get(within, "–")


def float_or_nan(value: Any) -> float:
    """Return a number read from JSON, where NaN is written as null.

    Examples
    --------
    >>> float_or_nan(3), float_or_nan(None)
    (3.0, nan)
    """
    return math.nan if value is None else float(value)
