"""Which texts of a CSV file stand for a missing value: what AMLB decides, in one place.

AMLB 2.1 pins pandas 1.5.3 and reads CSV with its defaults. Later versions of pandas take ``None``
for missing as well, so reading with the defaults of whatever pandas is installed here would lose
a class or a category of that name.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Texts that pandas 1.5.3, AMLB's, reads as missing: its ``pandas._libs.parsers.STR_NA_VALUES``.
NA_TEXTS = frozenset(
    {"", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>"}
    | {"#NA", "#N/A", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)
#: What some pandas version, or a reader that ignores case, takes for missing.
_LIKE_NA = {text.lower() for text in NA_TEXTS} | {"none", "nat"}


def reads_as_missing(text: str) -> bool:
    """Whether pandas, of some version, may read the text as missing.

    Examples
    --------
    >>> [reads_as_missing(text) for text in ("", "NA", "None", " nan ", "nano")]
    [True, True, True, True, False]
    """
    return text.strip().lower() in _LIKE_NA


def missing_lookalikes(texts: Iterable[str]) -> list[str]:
    """Return the texts that are values here and that another reader may take for missing.

    Examples
    --------
    >>> missing_lookalikes(["red", "None", "NaT"])
    ['NaT', 'None']
    """
    return sorted(filter(reads_as_missing, texts))
