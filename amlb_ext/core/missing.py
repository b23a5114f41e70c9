"""Which texts of a CSV file stand for a missing value, as AMLB reads them.

AMLB 2.1 pins pandas 1.5.3 and reads CSV with its defaults. Later versions of pandas read ``None``
as missing too, so the defaults of the version installed here could lose a class or a category of
that name.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Texts that pandas 1.5.3, AMLB's, reads as missing: its ``pandas._libs.parsers.STR_NA_VALUES``.
NA_TEXTS = frozenset(
    [
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "n/a",
        "nan",
        "null",
    ]
)
#: In lower case, the texts that some version of pandas, or a reader that ignores case, takes for
#: missing.
_LOWER_CASE_LOOKALIKES = {text.lower() for text in NA_TEXTS} | {"none", "nat"}


def reads_as_missing(text: str) -> bool:
    """Whether some version of pandas may read the text as missing.

    Examples
    --------
    >>> [reads_as_missing(text) for text in ("", "NA", "None", " nan ", "nano")]
    [True, True, True, True, False]
    """
    return text.strip().lower() in _LOWER_CASE_LOOKALIKES


def missing_lookalikes(texts: Iterable[str]) -> list[str]:
    """Return, sorted, the texts that are values here but may be missing to another reader.

    Examples
    --------
    >>> missing_lookalikes(["red", "None", "NaT"])
    ['NaT', 'None']
    """
    return sorted(filter(reads_as_missing, texts))
