"""What happened in the folds of a task: one line for each kind of note, with counts of folds.

The manifest keeps what each fold counted and noted. Here notes of one kind stand together, with
the folds in which it happened. Counts of rows and cells come
from the records' own fields, the rest from their notes, see :mod:`amlb_ext.core.notes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from amlb_ext.core.notes import NO_FAILURES, Note, Span, merge_spans, sentence
from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.manifest import FoldEntry, PartChanges, TableManifest

#: An evaluation set of fewer rows than this is told of.
FEW_ROWS = 3
#: Kinds of notes that the report leaves out, for it has tables of these counts.
ROWS_LEFT_OUT = "rows left out"
CELLS_REPLACED = "cells replaced"
#: Why a made row is dropped, as a summary's ``dropped`` counts it, and in words.
REASONS = {
    "real_row": "repeating the features of a real row",
    "made_row": "repeating those of another made row",
    "good": "good for F",
    "label": "with a label that the oracle does not support",
    "relation": "breaking a relation between columns",
    "unasked": "about which F could not be asked any more",
}
#: Folds, tasks and columns that are listed by name.
MOST_NAMES = 8

Value = TypeVar("Value")
FoldEntries = Mapping[int, FoldEntry]


@dataclass(frozen=True, kw_only=True)
class FoldNote:
    """One kind of note on folds of a task.

    Attributes
    ----------
    kind : str
        See :data:`amlb_ext.core.notes.SENTENCES`.
    folds : tuple of int
        Where it happened.
    total : int
        Folds of the task.
    counts : dict of str to Span
        The numbers of its sentence, over these folds.
    words : dict of str to str
        The names in its sentence. Notes of a kind that have the same can stand together.
    parts : tuple of str
        AMLB tasks that it concerns; empty for all.
    detail : str
        What follows the text where the task stands alone.
    """

    kind: str
    folds: tuple[int, ...]
    total: int
    counts: dict[str, Span] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    detail: str = ""

    @property
    def text(self) -> str:
        """What happened, without where."""
        return sentence(self.kind, self.counts, self.words)

    @property
    def sentence(self) -> str:
        """The note without the name of its task.

        Examples
        --------
        >>> FoldNote(kind="no search", folds=(0, 3), total=5).sentence
        '2 of 5 folds (0, 3): no search, since F is a file of predictions and cannot be asked'
        """
        where = f"all {self.total} folds"
        if self.total == 1:
            where = "the only fold"
        elif len(self.folds) < self.total:
            numbers = _shown_names([str(fold) for fold in self.folds])
            where = f"{len(self.folds)} of {self.total} folds ({numbers})"
        if self.parts:
            where += f" of {', '.join(self.parts)}"
        return f"{where}: {self.text}{self.detail}"


def fold_notes(manifest: TableManifest, task: str) -> list[FoldNote]:
    """Return what happened in the folds of a task, the most important first."""
    folds = manifest.tasks[task].folds
    counted = (
        _folds_without_failures(folds),
        _rows_left_out(folds),
        _cells_replaced(folds),
        _small_evaluation_sets(manifest, task),
        _missing_made_rows(folds, side="test"),
        _missing_made_rows(folds, side="training"),
    )
    return [
        *(note for note in counted if note.folds),
        # the reasons for having no failures stand in the line of their folds
        *(note for note in _noted(folds) if note.kind not in NO_FAILURES),
    ]


def grouped_notes(notes: Mapping[str, Iterable[FoldNote]]) -> list[str]:
    """Return one line for each kind of note, over all tasks.

    Examples
    --------
    >>> def note(folds, rows):
    ...     counts = {"rows": Span(rows, rows)}
    ...     return FoldNote(kind="rows left out", folds=folds, total=2, counts=counts)
    >>> grouped_notes({"a": [note((0,), 3)]})
    ['a: 1 of 2 folds (0): 3 test rows left out, whose class no training row has']
    >>> grouped_notes({"a": [note((0,), 3)], "b": [note((0, 1), 5)]})
    ['3 of 4 folds of 2 tasks (a, b): 3 to 5 test rows left out, whose class no training row has']
    """
    groups: dict[Any, list[tuple[str, FoldNote]]] = {}
    for task, of_task in notes.items():
        for note in of_task:
            key = (note.kind, *sorted(note.words.items()))
            groups.setdefault(key, []).append((task, note))
    lines = []
    for alike in groups.values():
        task, first = alike[0]
        if len(alike) == 1:
            lines.append(f"{task}: {first.sentence}")
            continue
        count = sum(len(note.folds) for _, note in alike)
        total = sum(note.total for _, note in alike)
        tasks = _distinct(task for task, _ in alike)
        counts = merge_spans(note.counts for _, note in alike)
        where = (
            f"{count} of {total} folds of {len(tasks)} tasks ({_shown_names(tasks)})"
        )
        lines.append(f"{where}: {sentence(first.kind, counts, first.words)}")
    return lines


def left_out_text(dropped: int, substituted: Counter[str]) -> str:
    """Return how many rows were left out and cells replaced, for AMLB's definition; or nothing.

    Examples
    --------
    >>> left_out_text(2, Counter(colour=3))
    '2 rows of classes without training rows left out, 3 cells replaced (colour)'
    """
    changes = []
    if dropped:
        s = "" if dropped == 1 else "s"
        changes.append(f"{dropped} row{s} of classes without training rows left out")
    if cells := substituted.total():
        s = "" if cells == 1 else "s"
        columns = _shown_names(sorted(substituted))
        changes.append(f"{cells} cell{s} replaced ({columns})")
    return ", ".join(changes)


def _counted(
    kind: str,
    folds: FoldEntries,
    concerned: Iterable[int],
    *,
    detail: str = "",
    **counts: int,
) -> FoldNote:
    """Return a note that counts over folds; of no folds where none is concerned."""
    return FoldNote(
        kind=kind,
        folds=_distinct(concerned),
        total=len(folds),
        counts={name: Span(count, count) for name, count in counts.items()},
        detail=detail,
    )


def _folds_without_failures(folds: FoldEntries) -> FoldNote:
    concerned = [fold for fold, entry in folds.items() if entry.summary.get("bad") == 0]
    reasons = [note for note in _noted(folds) if note.kind in NO_FAILURES]
    detail = f"; {reasons[0].text}" if reasons else ""
    return _counted("fold without failures", folds, concerned, detail=detail)


def _rows_left_out(folds: FoldEntries) -> FoldNote:
    """Note the test rows that the untouched test folds lack."""
    left_out: Counter[int] = Counter()
    for fold, entry in folds.items():
        # dropped by the writer, or by the caller before it, which counts them by class
        left_out[fold] = entry.parts.get("full", PartChanges()).dropped
        left_out[fold] += sum(entry.summary.get("left_out", {}).values())
    concerned = [fold for fold, rows in left_out.items() if rows]
    return _counted(ROWS_LEFT_OUT, folds, concerned, rows=left_out.total())


def _cells_replaced(folds: FoldEntries) -> FoldNote:
    """Note the cells of the untouched test folds that differ from the source."""
    replaced = {
        fold: entry.parts.get("full", PartChanges()).substituted
        for fold, entry in folds.items()
    }
    by_column: Counter[str] = Counter()
    for of_fold in replaced.values():
        by_column.update(of_fold)
    columns = [f"{name} {count}" for name, count in by_column.most_common()]
    detail = f" ({_shown_names(columns)})"
    concerned = filter(replaced.get, replaced)
    cells = by_column.total()
    return _counted(CELLS_REPLACED, folds, concerned, detail=detail, cells=cells)


def _small_evaluation_sets(manifest: TableManifest, task: str) -> FoldNote:
    entry = manifest.amlb_tasks.get(amlb_name(task, ""))
    sizes = dict(zip(entry.folds, entry.test_rows, strict=True)) if entry else {}
    small = {fold: rows for fold, rows in sizes.items() if rows < FEW_ROWS}
    note = _counted("few rows", manifest.tasks[task].folds, small)
    fewest, most = min(small.values(), default=0), max(small.values(), default=0)
    return replace(note, counts={"rows": Span(fewest, most)})


def _missing_made_rows(folds: FoldEntries, *, side: str) -> FoldNote:
    """Note the folds in which fewer rows were made than asked for, and why."""
    counts: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    # a fold may lack rows of both origins
    concerned = []
    for fold, entry in folds.items():
        summary = entry.summary
        # a fold of a swarm, or without failures, made none
        of_side = summary if side == "test" else summary.get("hard_train", {})
        for origin, dropped_rows in of_side.get("dropped", {}).items():
            wanted = of_side.get(f"{origin}_asked", 0)
            if of_side.get(origin, 0) < wanted:
                concerned.append(fold)
                counts.update(made=of_side[origin], asked=wanted)
                dropped.update(dropped_rows)
    # in the order of the table of reasons, whatever was dropped first
    known = REASONS.items()
    reasons = [f"{dropped[reason]} {text}" for reason, text in known if dropped[reason]]
    detail = f" (dropped: {', '.join(reasons)})" if reasons else ""
    return _counted(
        f"{side} rows made",
        folds,
        concerned,
        detail=detail,
        made=counts["made"],
        asked=counts["asked"],
    )


def _noted(folds: FoldEntries) -> list[FoldNote]:
    """Return the folds' own notes; those that differ in numbers alone become one."""
    groups: dict[Any, list[tuple[int, Note]]] = {}
    for fold, entry in folds.items():
        for note in entry.notes:
            key = (note.kind, *sorted(note.words.items()))
            groups.setdefault(key, []).append((fold, note))
    return [
        FoldNote(
            kind=alike[0][1].kind,
            folds=_distinct(fold for fold, _ in alike),
            total=len(folds),
            counts=merge_spans(note.spans for _, note in alike),
            words=alike[0][1].words,
            parts=_distinct(note.part for _, note in alike if note.part),
        )
        for alike in groups.values()
    ]


def _shown_names(names: Sequence[str]) -> str:
    """Return the first :data:`MOST_NAMES` names, and how many more there are."""
    text = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{text} and {more} more" if more > 0 else text


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return values without repetitions, in order of appearance."""
    return tuple(dict.fromkeys(values))
