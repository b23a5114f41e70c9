"""Sentences on rows of a table as sentences on windows of series."""

from __future__ import annotations

import re

_REPLACED = {
    "fails | x)": "fails | past)",
    "(bad | x)": "(bad | past)",
    "the whole fold": "all windows",
    "the whole test folds, all windows alike": "all windows alike",
    "the test folds hold": "the test origins hold",
    "run more folds or take a larger table": "take more series",
    "on synthetic over": "on made windows over",
    "re-fits": "twins",
    "tells synthetic from": "tells made from",
    "a freshly fitted oracle": "the median of the candidates",
    "a fresh oracle": "the median of the candidates",
    "features alone": "features of the past alone",
    "features are not": "features of the past are not",
    "comparisons by fold": "comparisons by origin",
}


def of_windows(text: str) -> str:
    """Return a sentence on rows of a table as one on windows of series.

    Examples
    --------
    >>> of_windows("all rows weighted by P(F fails | x)"), of_windows("on the whole fold")
    ('all windows weighted by P(F fails | past)', 'on all windows')
    """
    # whole words: "narrow" is none
    replaced = re.sub(r"\brow(s?)\b", r"window\1", text)
    for before, after in _REPLACED.items():
        replaced = replaced.replace(before, after)
    return replaced
