"""What happened while a fold was made, as records; their sentences are written when shown.

A record keeps the kind of a note and its numbers and names. Notes of one kind from several folds
become one by their fields, and no sentence is ever read back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

#: Reasons for having no failures, of which a fold has one; both are notes.
NO_FAILURES = ("no wrong decision", "no failures")
#: The sentence of each kind. A field is a count or a word of the note; ``s`` as its format is the
#: plural's ending.
SENTENCES = {
    # of the whole fold
    "no wrong decision": (
        "F decides none of {rows} rows wrongly: there are no failures to make hard rows of; "
        "--rule band makes them of the rows of which F is least sure"
    ),
    "no failures": (
        "no failures found at alpha = {alpha:.4g} under the rule {rule}: the worst row reaches "
        "{worst:.4g}; --alpha {enough:.4g} would give {wanted} rows, or use --rule quantile "
        "--share {share:.2g}"
    ),
    "asked": (
        "F was asked about {rows} rows in {calls} calls, at most {limit}: a forest fitted to its "
        "answers searched, and F confirmed {confirmed} of the {proposed} rows that it proposed; "
        "the others are dropped"
    ),
    "column replaced": (
        "column {column!r}: {cells} of {rows} test cells ({share:.1%}) hold a value that no "
        "training row has and were replaced"
    ),
    "replaced unasked": (
        "F cannot be asked about replaced values, so each is the most frequent training value, or "
        "missing where training rows miss it"
    ),
    "replaced copies": (
        "{rows} test row{rows:s} with replaced cells repeat the features of a training row"
    ),
    "copies": (
        "{rows} of {tested} test rows copy a training row, target included, and the table has more "
        "copies than chance makes: drop them first, or keep them together with --group"
    ),
    "target read off": (
        "the target {target!r} can be read off other columns: {relation} in every one of "
        "{rows:,} training rows; if these are not known before the target is, leave them out "
        "with {flags}"
    ),
    "infeasible failures": (
        "{rows} bad test row{rows:s} break a relation that holds on every training row, or one "
        "that is declared; they stay in the test files, and no rows are made from them"
    ),
    # of one side's made rows
    "least support": (
        "every column has few values, so a made row must have a label that the oracle gives a "
        "probability of at least {least:.3g}"
    ),
    "no support": (
        "every column has few values, so a made row has only the oracle's label, and where F fails "
        "on the training rows the oracle is right too seldom: no row is made"
    ),
    "no search": "no search, since F is a file of predictions and cannot be asked",
    "nothing to search": (
        "no row was augmented: no column is numeric and categories stay as they are, so every "
        "augmented row would repeat the features of its bad row"
    ),
    "not all searched": "{searched} of {bad} bad rows were searched (max_rows)",
    "learnt from failures": (
        "F is a file of predictions, so rows are learnt from its failures"
    ),
    "few to learn from": (
        "{rows} row{rows:s} to learn from, fewer than {least}: the synthesizer 'local' replaces "
        "{synthesizer!r}"
    ),
    # of a synthesizer that searches
    "nothing searched": "no search, since {reason}; the base generator makes the rows",
    "nothing to beat": (
        "no search, since no model can be beaten here: on {rows} real rows an ensemble gains "
        "{gain:+.3f} over the best of {models} models, with a standard error of {error:.3f}; the "
        "base generator makes the rows"
    ),
    "searched": (
        "{search} saw {seen:.3f} of {objective} at best among {mixtures} mixtures; fresh rows of "
        "the chosen one give {fresh:.3f}, of the base generator {base:.3f}"
    ),
    "searched in vain": (
        "{search} saw {seen:.3f} of {objective} at best among {mixtures} mixtures; fresh rows of "
        "the chosen one give {fresh:.3f}, of the base generator {base:.3f}, which makes the rows"
    ),
    # of the task _hard
    "no hard failures": "no _hard: no training row failed out of fold",
    "real training rows met": (
        "_hard: left out {rows} real training row{rows:s} with the features of a test row"
    ),
    "made training rows met": (
        "_hard: left out {rows} made training row{rows:s} with the features of a test row"
    ),
    "made test rows met": (
        "_hard: left out {rows} made test row{rows:s} that repeat another row as they are written "
        "there"
    ),
    "little hard training": (
        "no _hard: its training file would have {rows} row{rows:s} and {targets} distinct "
        "target{targets:s}"
    ),
    # why kappa is 0
    "kappa unseen": (
        "kappa 0: F came fitted, so no failures can be had that it surely did not see "
        "({problem})"
    ),
    "kappa few failures": (
        "kappa 0: not enough rows: {failures} failure{failures:s} of the training rows"
    ),
    "kappa many classes": "kappa 0: not tried for {classes} classes",
    "kappa unfitted": (
        "kappa 0: on parts of the training rows a model could not be fitted: {error}"
    ),
    "kappa few candidates": (
        "kappa 0: only {candidates} candidate{candidates:s} could be fitted"
    ),
    "kappa failed": (
        "kappa 0: no kappa passes on {failures} failures of the training rows; the last "
        "one fails: {checks}"
    ),
    # of one AMLB task
    "no test rows": "left out, no test rows",
    "few training rows": "left out, {rows} training row{rows:s}",
    "few training classes": "left out, training rows of {classes} class",
    # written from counts of the folds' records, see fold_notes
    "fold without failures": "F fails on no test row, so the hard tasks lack these folds",
    "rows left out": "{rows} test row{rows:s} left out, whose class no training row has",
    "cells replaced": (
        "{cells} cell{cells:s} of test rows replaced, for AMLB could not read what no training row "
        "holds"
    ),
    "few rows": (
        "the evaluation set has only {rows} row{rows:s}, and AMLB counts each fold alike: read no "
        "score of such a fold by itself (hardsynth report counts rows)"
    ),
    "test rows made": (
        "{made} rows were made from failures of test rows, {asked} were asked for"
    ),
    "training rows made": (
        "{made} rows were made from failures of training rows, {asked} were asked for"
    ),
}


@dataclass(frozen=True)
class Span:
    """A number of one fold, or the lowest and the highest of several.

    Examples
    --------
    >>> f"{Span(1, 1)} row{Span(1, 1):s}, {Span(0.25, 2):.1f} row{Span(0.25, 2):s}"
    '1 row, 0.2 to 2.0 rows'
    """

    low: float
    high: float

    def __format__(self, spec: str) -> str:
        if spec == "s":
            return "" if self.high == 1 else "s"
        low = format(self.low, spec)
        high = format(self.high, spec)
        return low if low == high else f"{low} to {high}"


def merge_spans(mappings: Iterable[Mapping[str, Span]]) -> dict[str, Span]:
    """Return the lowest and the highest of each number.

    Examples
    --------
    >>> merge_spans([{"rows": Span(3, 4)}, {"rows": Span(1, 1)}])
    {'rows': Span(low=1, high=4)}
    """
    merged: dict[str, Span] = {}
    for mapping in mappings:
        for name, span in mapping.items():
            known = merged.get(name, span)
            merged[name] = Span(min(known.low, span.low), max(known.high, span.high))
    return merged


def sentence(kind: str, counts: Mapping[str, Span], words: Mapping[str, str]) -> str:
    """Return the sentence of a kind of note.

    Examples
    --------
    >>> sentence("few training rows", {"rows": Span(0, 1)}, {})
    'left out, 0 to 1 training row'
    """
    return SENTENCES[kind].format_map({**counts, **words})


@dataclass(frozen=True, kw_only=True)
class Note:
    """One thing that happened while a fold was made.

    Attributes
    ----------
    kind : str
        A key of :data:`SENTENCES`.
    side : {'', 'test', 'train'}
        The rows it is about; empty for both.
    part : str
        The AMLB task it is about; empty for the whole fold.
    counts : mapping of str to int or float
        The numbers of its sentence, finite.
    words : mapping of str to str
        The names in its sentence.

    Raises
    ------
    ValueError
        Its sentence wants another number or name, or there is no such kind.

    Examples
    --------
    >>> note = Note(kind="not all searched", side="test", counts={"searched": 3, "bad": 10})
    >>> note.text
    '3 of 10 bad rows were searched (max_rows)'
    """

    kind: str
    side: str = ""
    part: str = ""
    counts: Mapping[str, int | float] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # told where it is made or read, not where somebody wants to see it
        if not all(math.isfinite(number) for number in self.counts.values()):
            raise ValueError(f"a note {self.kind[:80]!r} has a number that is none")
        try:
            _ = self.text
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"a note {self.kind[:80]!r} is of no known kind, or lacks a field: {error}"
            ) from None

    @property
    def spans(self) -> dict[str, Span]:
        """Its numbers, to be merged with those of others."""
        return {name: Span(number, number) for name, number in self.counts.items()}

    @property
    def text(self) -> str:
        """Its sentence, without the side and the part."""
        return sentence(self.kind, self.spans, self.words)
