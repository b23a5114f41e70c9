"""Which texts survive AMLB, and what to write instead of those that do not.

AMLB reads CSV with pandas 1.5 and its defaults, makes every text column a ``category``, and
then lower-cases and strips categories and labels for frameworks that want encoded data
(AMLB ``data.py``, ``Feature.normalize``). A text survives when pandas leaves it a text and
normalising it keeps it apart from the others.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from amlb_ext.core.frames import reads_as_missing

#: Labels that would name the last two columns of AMLB's predictions.
TAKEN_LABELS = frozenset({"predictions", "truth"})
#: Characters for which XGBoost, LightGBM or flaml refuses a column, or renames it.
_BAD_NAME = re.compile(
    r"[\[\]{}:,\"<>\s\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]"
)
#: Names that no framework changes; what a text file may need to quote is left out.
_GOOD_NAME = re.compile(r"[A-Za-z0-9_./()?!@$&*+=^|~-]{1,100}")
#: Characters of a written name.
_LONGEST_NAME = 100

#: Integers of one spelling each, which pandas reads into 64 bits.
_PLAIN_INTEGER = re.compile(r"0|-?[1-9]\d{0,14}")
#: More than any one version of pandas reads as a number: doubtful texts are replaced.
_NUMBER = re.compile(
    r"[+-]*(\d+[\d_]*\.?\d*|\.\d+)([eE][+-]?\d*)?|[+-]?(inf|infinity)", re.I
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
#: Characters of a text that its replacement keeps, for the reader.
_KEPT_CHARACTERS = 40


def normalize_text(text: str) -> str:
    """Return what AMLB's encoders see of a text.

    Examples
    --------
    >>> normalize_text(" Yes ")
    'yes'
    """
    return text.strip().lower()


def is_number(text: str) -> bool:
    """Whether pandas, of some version, may read the text as a number.

    Examples
    --------
    >>> [is_number(text) for text in ("007", " 1", "1e5", "inf", "1.2.3", "2020-01-01")]
    [True, True, True, True, False, False]
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        return True
    try:
        float(stripped)
    except ValueError:
        return False
    return True


def is_boolean(text: str) -> bool:
    """Whether pandas reads the text as a truth value."""
    return text.strip().lower() in ("true", "false")


def is_safe_text(text: str) -> bool:
    """Whether a text alone, beside other texts, is read back as itself.

    Examples
    --------
    >>> [is_safe_text(text) for text in ("blue", "NA", "007", "True", "a\\nb", "a\\x00b", "İ")]
    [True, False, False, False, True, False, False]
    """
    return not (
        reads_as_missing(text)
        or is_number(text)
        or is_boolean(text)
        or _CONTROL.search(text)
        or len(text.lower()) != len(text)  # NumPy cuts what grows
    )


def safe_values(values: Sequence[str]) -> tuple[str, ...]:
    """Return what to write for each category of a column.

    Texts that survive stay as they are; the others become ``c<position>_<text>``.

    Parameters
    ----------
    values : sequence of str
        Distinct categories, in the column's order.

    Returns
    -------
    tuple of str
        One per category, distinct after :func:`normalize_text`.

    Examples
    --------
    >>> safe_values(["red", "Blue", "NA", "1", "x", "X"])
    ('red', 'Blue', 'c2_na', 'c3_1', 'c4_x', 'c5_x')
    """
    # Texts that differ by case or surrounding space alone are one to AMLB's encoders.
    counts = Counter(map(normalize_text, values))
    survivors = set()
    for value in values:
        if is_safe_text(value) and counts[normalize_text(value)] == 1:
            survivors.add(value)
    return _replace_texts(values, survivors)


def safe_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return what to write for each class label: all as they are, or all replaced.

    They are replaced when pandas would not read them back as the same texts, or when AMLB
    would name probability columns wrongly: it sorts the raw labels (numbers by value) in one
    place and the normalised texts in another. Replaced labels sort in the order given.

    Examples
    --------
    >>> safe_labels(["no", "yes"]), safe_labels(["0", "1"])
    (('no', 'yes'), ('0', '1'))
    >>> safe_labels(["Yes", "no"]), safe_labels(["2", "9", "10"])
    (('c0_yes', 'c1_no'), ('c0_2', 'c1_9', 'c2_10'))
    """
    if labels_survive(labels):
        return tuple(labels)
    # All or none: a mixture would not sort in the order given.
    return _replace_texts(labels, survivors=set())


def labels_survive(labels: Iterable[str]) -> bool:
    """Whether AMLB scores these class labels rightly as they are.

    Examples
    --------
    >>> [labels_survive(pair) for pair in (["a", "b"], ["a", "A"], ["1", "x"], ["1.0", "2.0"])]
    [True, False, False, False]
    """
    labels = list(labels)
    normalized = [normalize_text(label) for label in labels]
    distinct = set(normalized)
    if len(distinct) < len(normalized) or distinct & TAKEN_LABELS:
        return False
    # pandas reads a column of integers alone as numbers, which sort by value.
    if all(_PLAIN_INTEGER.fullmatch(label) for label in labels):
        order_in_file = sorted(labels, key=int)
    # space around a label could be lost
    elif all(is_safe_text(label) and label == label.strip() for label in labels):
        order_in_file = sorted(labels)
    else:
        return False
    # AMLB names the probabilities in one order and fills them in the other.
    return [normalize_text(label) for label in order_in_file] == sorted(normalized)


def safe_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return column names that every framework takes as they are, distinct, in order.

    Good names stay, unless another one differs from them by case or in marks such as ``-`` alone,
    which some framework would take for the same name. Others become letters, digits and ``_``.

    Examples
    --------
    >>> safe_columns(["age", "a[0]", "a b", "a_b", "A_B", "", "2020", "Größe"])
    ('age', 'a_0_', 'a_b_3', 'a_b', 'A_B_2', 'column', 'c_2020', 'Grosse')
    """
    written: dict[int, str] = {}
    taken: set[str] = set()
    # a name that needs no replacement comes before one that may be replaced by it
    is_plain = [_is_good_name(name) and name == _plain_name(name) for name in names]
    order = sorted(range(len(names)), key=lambda position: not is_plain[position])
    for position in order:
        name = names[position]
        base = name
        if not _is_good_name(name) or _name_key(name) in taken:
            base = _plain_name(name)
        candidate, number = base, 1
        while _name_key(candidate) in taken:
            number += 1
            candidate = f"{base}_{number}"
        taken.add(_name_key(candidate))
        written[position] = candidate
    return tuple(written[position] for position in range(len(names)))


def check_columns(names: Sequence[str]) -> list[str]:
    """Return what a framework would do to column names of a file, one sentence each.

    Examples
    --------
    >>> check_columns(["age", "a b", "a_b"])
    ["The column name 'a b' holds characters that break frameworks.", \
"The column names 'a b' and 'a_b' are one name to a framework."]
    """
    problems = []
    first: dict[str, str] = {}
    for name in names:
        if not name or _BAD_NAME.search(name):
            problems.append(
                f"The column name {name!r} holds characters that break frameworks."
            )
        other = first.setdefault(_name_key(name), name)
        if other != name:
            problems.append(
                f"The column names {other!r} and {name!r} are one name to a framework."
            )
    return problems


def _is_good_name(name: str) -> bool:
    """Whether no framework changes a name, or takes it for a value."""
    looks_like_a_value = reads_as_missing(name) or is_number(name)
    return _GOOD_NAME.fullmatch(name) is not None and not looks_like_a_value


def _name_key(name: str) -> str:
    """Return what names have in common that a framework may take for one."""
    return re.sub(r"[^a-z0-9]", "_", _without_accents(name).lower())


def _plain_name(name: str) -> str:
    """Return a name in letters, digits and ``_`` that stands for another one."""
    plain = re.sub(r"[^A-Za-z0-9]", "_", _without_accents(name))[:_LONGEST_NAME]
    if not plain.strip("_"):
        return "column"
    return plain if _is_good_name(plain) else f"c_{plain}"


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.replace("ß", "ss"))
    return "".join(mark for mark in decomposed if not unicodedata.combining(mark))


def _replace_texts(values: Sequence[str], survivors: set[str]) -> tuple[str, ...]:
    """Replace all texts but the survivors by ``c<position>_<text>``.

    Positions are padded with zeros, so that the order of the texts is the order given.
    """
    width = len(str(max(len(values) - 1, 0)))
    prefix = "c"
    kept = [normalize_text(value) for value in survivors]
    # A survivor that looks like a replacement, as c0_yes does, could be the same text as one.
    while any(re.match(rf"{prefix}\d", text) for text in kept):
        prefix += "c"
    texts = []
    for position, value in enumerate(values):
        if value in survivors:
            texts.append(value)
        else:
            number = str(position).zfill(width)
            texts.append(f"{prefix}{number}_{_to_ascii(value)}")
    return tuple(texts)


def _to_ascii(text: str) -> str:
    """Return what a reader needs to recognise a text, in characters that break nothing."""
    ascii_text = _without_accents(text).encode("ascii", "ignore").decode()
    ascii_text = ascii_text.lower().strip()
    plain = re.sub(r"[^a-z0-9.-]+", "_", ascii_text)
    return plain[:_KEPT_CHARACTERS].strip("_")
