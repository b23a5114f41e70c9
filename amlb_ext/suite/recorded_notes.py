"""A fold's notes as its record keeps them: texts, written and taken apart in this module alone.

Records and manifests of every version hold notes as text, so the text is their format. Whatever
decides on a note does so on the fields of a :class:`RecordedNote`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from amlb_ext.suite.layout import SUFFIXES, amlb_name

# an exponent belongs to its number, as JSON and Python write small ones: 1e-05
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
#: A number that is no part of a word or of a version, or a range of two.
_NUMBER_OR_RANGE = re.compile(
    rf"(?<![\w.])({_NUMBER})(?: to ({_NUMBER}))?(?![\w]|\.\d)"
)
#: Rows of a fold that a note speaks of, as it begins.
_SIDES = ("test", "train")
#: What the writer notes where test rows have a class that no training row has.
_DROPPED_ROWS = "{} test rows of classes not in train dropped"


@dataclass(frozen=True)
class CountedText:
    """A sentence apart from its numbers: sentences that differ in these alone are one.

    Attributes
    ----------
    pieces : tuple of str
        What stands before, between and after the numbers.
    ranges : tuple of (str, str)
        The lowest and the highest of each number, as they were written; one more piece than these.

    Examples
    --------
    >>> text = CountedText.read("4 rows of 9")
    >>> text.pieces, str(text)
    (('', ' rows of ', ''), '4 rows of 9')
    >>> text == CountedText.of("{} rows of {}", 4, 9)
    True
    """

    pieces: tuple[str, ...]
    ranges: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, template: str, *numbers: float) -> CountedText:
        """Return a sentence from a template with ``{}`` for each number."""
        ranges = tuple((str(number), str(number)) for number in numbers)
        return cls(tuple(template.split("{}")), ranges)

    @classmethod
    def read(cls, text: str) -> CountedText:
        """Take a sentence apart; ``4 to 7`` is the range of one number."""
        pieces: list[str] = []
        ranges: list[tuple[str, str]] = []
        end = 0
        for match in _NUMBER_OR_RANGE.finditer(text):
            start = match.start()
            pieces.append(text[end:start])
            low, high = match.groups()
            ranges.append((low, high or low))
            end = match.end()
        pieces.append(text[end:])
        return cls(pieces=tuple(pieces), ranges=tuple(ranges))

    @classmethod
    def merged(cls, texts: Sequence[CountedText]) -> CountedText:
        """Return sentences of the same kind as one, with ranges; the first where they cannot be.

        Examples
        --------
        >>> texts = [CountedText.read(text) for text in ("1 row of 9", "5 to 7 rows of 9")]
        >>> str(CountedText.merged(texts))
        '1 to 7 rows of 9'
        """
        first = texts[0]
        counts = {len(text.ranges) for text in texts}
        has_equal_counts = len(counts) == 1
        if not first.ranges or not has_equal_counts:
            return first
        ranges = []
        for place in range(len(first.ranges)):
            lows = [text.ranges[place][0] for text in texts]
            highs = [text.ranges[place][1] for text in texts]
            # compared as numbers, kept as they were written: "0.10" stays "0.10"
            lowest = min(lows, key=float)
            highest = max(highs, key=float)
            ranges.append((lowest, highest))

        def first_count(text: CountedText) -> float:
            _, high = text.ranges[0]
            return float(high)

        # the words of the largest count: "1 row" and "5 rows" are "1 to 5 rows"
        largest = max(texts, key=first_count)
        return cls(largest.pieces, tuple(ranges))

    def __str__(self) -> str:
        text = self.pieces[0]
        for (low, high), piece in zip(self.ranges, self.pieces[1:], strict=True):
            number = low if low == high else f"{low} to {high}"
            text += number + piece
        return text


@dataclass(frozen=True, kw_only=True)
class RecordedNote:
    """What a fold's record notes, by its fields.

    Attributes
    ----------
    text : CountedText
        Without the AMLB task and the side it is about.
    part : str
        The AMLB task it is about; empty for the whole fold.
    side : {'', 'test', 'train'}
        The rows it is about; empty for both.
    """

    text: CountedText
    part: str = ""
    side: str = ""

    @property
    def counts_dropped_rows(self) -> bool:
        """Whether it tells of dropped test rows, which the records count in their own field."""
        # the pieces of a sentence do not depend on its numbers, so any number will do
        template = CountedText.of(_DROPPED_ROWS, 0)
        return self.text.pieces == template.pieces


def dropped_rows_note(part: str, fold: int, rows: int) -> str:
    """Return what the record of a fold notes where test rows of a part were dropped."""
    return _part_prefix(part, fold) + _DROPPED_ROWS.format(rows)


def left_out_note(part: str, fold: int, reason: str) -> str:
    """Return what the record of a fold notes where a part was left out."""
    return f"{_part_prefix(part, fold)}left out, {reason}"


def read_note(text: str, task: str, fold: int) -> RecordedNote:
    """Take a note of a fold of a task apart.

    Examples
    --------
    >>> note = read_note("iris_ga, fold 2: left out, no test rows", "iris", 2)
    >>> note.part, str(note.text)
    ('iris_ga', 'left out, no test rows')
    >>> read_note("test: 3 of 10 bad rows were searched", "iris", 2).side
    'test'
    """
    # the longest name first: the name of the main part begins those of all others
    parts = [amlb_name(task, suffix) for suffix in SUFFIXES]
    parts.sort(key=len, reverse=True)
    noted_part = ""
    for part in parts:
        prefix = _part_prefix(part, fold)
        if text.startswith(prefix):
            noted_part = part
            text = text.removeprefix(prefix)
            break
    # the side is taken off, so that what holds of both sides is one remark
    noted_side = ""
    for side in _SIDES:
        prefix = f"{side}: "
        if text.startswith(prefix):
            noted_side = side
            text = text.removeprefix(prefix)
            break
    return RecordedNote(text=CountedText.read(text), part=noted_part, side=noted_side)


def _part_prefix(part: str, fold: int) -> str:
    return f"{part}, fold {fold}: "
