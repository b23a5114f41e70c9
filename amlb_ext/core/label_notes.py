"""Classes of a target that may not be what they seem: two spellings of one, several in one cell."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

#: What may stand between several values of one cell.
_SEPARATORS = "|;,/+&"
#: Fewer classes of several parts may be names: "sales/marketing".
_LEAST_COMBINED = 3
#: Pairs of classes that a note shows.
_MOST_SHOWN = 3


def label_notes(labels: Sequence[str]) -> list[str]:
    """Return notes on classes that are nearly the same, and on classes that combine values.

    Parameters
    ----------
    labels : sequence of str
        Classes of a target, in order.

    Returns
    -------
    list of str
        Each goes on after the target's name.

    Examples
    --------
    >>> for note in label_notes(["<=50K", "<=50K.", ">50K"]):
    ...     print(note)
    has '<=50K' and '<=50K.', nearly the same label, as 2 classes; write them in \
one way if they are one
    >>> for note in label_notes(["a", "a|b", "a|c", "b", "b|c", "c"]):
    ...     print(note)
    looks like several values in one cell: its 6 classes combine 3 values, with \
'|' between; make a column of each value to predict them apart (--targets)
    """
    return [*_near_notes(labels), *_combined_notes(labels)]


def _near_notes(labels: Sequence[str]) -> list[str]:
    alike: dict[str, list[str]] = {}
    for label in labels:
        alike.setdefault(_essence(label), []).append(label)
    groups = [group for group in alike.values() if len(group) > 1]
    notes = []
    for group in groups[:_MOST_SHOWN]:
        # in print, two Unicode forms of a text are one
        is_one_in_print = len({_composed(label) for label in group}) < len(group)
        shown = " and ".join(map(ascii if is_one_in_print else repr, group))
        notes.append(
            f"has {shown}, nearly the same label, as {len(group)} classes; "
            "write them in one way if they are one"
        )
    n_more = len(groups) - _MOST_SHOWN
    if n_more > 0:
        notes.append(f"has {n_more} more groups of nearly the same label")
    return notes


def _composed(label: str) -> str:
    return unicodedata.normalize("NFKC", label)


def _essence(label: str) -> str:
    """Return what is left of a label without case, blanks, a point at its end, and Unicode form."""
    letters = [
        letter
        for letter in _composed(label).casefold()
        # Cf: blanks of no width, marks of direction
        if not letter.isspace() and unicodedata.category(letter) != "Cf"
    ]
    return _composed("".join(letters).rstrip(".")) or label


def _combined_notes(labels: Sequence[str]) -> list[str]:
    for separator in _SEPARATORS:
        parts_of = [
            [part.strip() for part in label.split(separator)] for label in labels
        ]
        combined = [parts for parts in parts_of if len(parts) > 1]
        counts = Counter(part for parts in parts_of for part in set(parts))
        if len(combined) < _LEAST_COMBINED or len(counts) >= len(labels):
            continue
        # every value of a combination stands in another class, too
        if all(part and counts[part] > 1 for parts in combined for part in parts):
            return [
                f"looks like several values in one cell: its {len(labels)} "
                f"classes combine {len(counts)} values, with {separator!r} between; make a column "
                "of each value to predict them apart (--targets)"
            ]
    return []
