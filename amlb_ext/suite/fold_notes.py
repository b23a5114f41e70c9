"""What happened in the folds of a task: one line for each kind of note, with counts of folds.

The manifest keeps what each fold counted and noted. Here notes of one kind stand together, with
the folds (and, over several tasks, the tasks) in which it happened. Counts of rows and cells come
from the records' own fields, the rest from their notes, see :mod:`amlb_ext.suite.recorded_notes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from amlb_ext.suite.layout import amlb_name
from amlb_ext.suite.manifest import Manifest
from amlb_ext.suite.recorded_notes import CountedText, RecordedNote, read_note

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
#: A task's folds as the manifest keeps them, see :class:`amlb_ext.suite.manifest.TaskEntry`.
FoldEntries = Mapping[int, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class FoldNote:
    """One kind of note on folds of a task.

    Attributes
    ----------
    kind : str
        Notes of one kind can stand together.
    task : str
    folds : tuple of int
        Where it happened.
    total : int
        Folds of the task.
    text : CountedText
        The same for notes of one kind, but for its numbers.
    parts : tuple of str
        AMLB tasks that it concerns; empty for all.
    detail : str
        What follows the text where the task stands alone.
    """

    kind: str
    task: str
    folds: tuple[int, ...]
    total: int
    text: CountedText
    parts: tuple[str, ...] = ()
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The note without the name of its task.

        Examples
        --------
        >>> text = CountedText.of("no row was made")
        >>> FoldNote(kind="k", task="wine", folds=(0, 3), total=5, text=text).sentence
        '2 of 5 folds (0, 3): no row was made'
        """
        where = _folds_text(self.folds, self.total)
        if self.parts:
            where += f" of {', '.join(self.parts)}"
        return f"{where}: {self.text}{self.detail}"


def fold_notes(manifest: Manifest, task: str) -> list[FoldNote]:
    """Return what happened in the folds of a task, the most important first."""
    folds = manifest.tasks[task].folds
    return [
        *_folds_without_failures(task, folds),
        *_rows_left_out(task, folds),
        *_cells_replaced(task, folds),
        *_small_evaluation_sets(manifest, task),
        *_missing_made_rows(task, folds, side="test"),
        *_missing_made_rows(task, folds, side="training"),
        *_recorded_notes(task, folds),
    ]


def grouped_notes(notes: Iterable[FoldNote]) -> list[str]:
    """Return one line for each kind of note, over all tasks.

    Examples
    --------
    >>> def note(task, folds, rows):
    ...     text = CountedText.of("{} rows", rows)
    ...     return FoldNote(kind="k", task=task, folds=folds, total=2, text=text)
    >>> grouped_notes([note("a", (0,), 3)])
    ['a: 1 of 2 folds (0): 3 rows']
    >>> grouped_notes([note("a", (0,), 3), note("b", (0, 1), 5)])
    ['3 of 4 folds of 2 tasks (a, b): 3 to 5 rows']
    """
    # in the order in which kinds first occur: the most important come first
    by_kind: dict[str, list[FoldNote]] = {}
    for note in notes:
        by_kind.setdefault(note.kind, []).append(note)
    lines = []
    for alike in by_kind.values():
        first = alike[0]
        if len(alike) == 1:
            lines.append(f"{first.task}: {first.sentence}")
            continue
        count = sum(len(note.folds) for note in alike)
        total = sum(note.total for note in alike)
        tasks = _distinct(note.task for note in alike)
        text = CountedText.merged([note.text for note in alike])
        where = (
            f"{count} of {total} folds of {len(tasks)} tasks ({_shown_names(tasks)})"
        )
        lines.append(f"{where}: {text}")
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
        changes.append(
            f"{dropped} row{_plural_s(dropped)} of classes without training rows left out"
        )
    cells = sum(substituted.values())
    if cells:
        columns = _shown_names(sorted(substituted))
        changes.append(f"{cells} cell{_plural_s(cells)} replaced ({columns})")
    return ", ".join(changes)


def _folds_without_failures(task: str, folds: FoldEntries) -> list[FoldNote]:
    concerned = []
    reasons = []
    for fold, entry in folds.items():
        summary = entry["summary"]
        if summary.get("bad") != 0:
            continue
        concerned.append(fold)
        for reason in _reasons_without_failures(summary):
            reasons.append(CountedText.read(reason))
    if not concerned:
        return []
    text = CountedText.of("F fails on no test row, so the hard tasks lack these folds")
    note = FoldNote(
        kind="no failures",
        task=task,
        folds=tuple(concerned),
        total=len(folds),
        text=text,
        detail=f"; {CountedText.merged(reasons)}" if reasons else "",
    )
    return [note]


def _reasons_without_failures(summary: Mapping[str, Any]) -> list[str]:
    """Return why a fold has no failures; in suites of 0.1.0 its first note alone says so."""
    if "no_failures" in summary:
        return [summary["no_failures"]]
    return list(summary["notes"][:1])


def _rows_left_out(task: str, folds: FoldEntries) -> list[FoldNote]:
    """Note the test rows that the untouched test folds lack."""
    left_out: dict[int, int] = {}
    for fold, entry in folds.items():
        # dropped by the writer, or by the caller before it, which counts them by class
        dropped = entry["parts"].get("full", {}).get("dropped", 0)
        by_class = entry["summary"].get("left_out", {})
        rows = dropped + sum(by_class.values())
        if rows:
            left_out[fold] = rows
    if not left_out:
        return []
    rows = sum(left_out.values())
    text = CountedText.of(
        f"{{}} test row{_plural_s(rows)} left out, whose class no training row has",
        rows,
    )
    note = FoldNote(
        kind=ROWS_LEFT_OUT,
        task=task,
        folds=tuple(left_out),
        total=len(folds),
        text=text,
    )
    return [note]


def _cells_replaced(task: str, folds: FoldEntries) -> list[FoldNote]:
    """Note the cells of the untouched test folds that differ from the source."""
    by_fold = {}
    for fold, entry in folds.items():
        substituted = entry["parts"].get("full", {}).get("substituted")
        if substituted:
            by_fold[fold] = substituted
    if not by_fold:
        return []
    by_column: Counter[str] = Counter()
    for substituted in by_fold.values():
        by_column.update(substituted)
    cells = sum(by_column.values())
    text = CountedText.of(
        f"{{}} cell{_plural_s(cells)} of test rows replaced, for AMLB could not read what no "
        "training row holds",
        cells,
    )
    columns = [f"{name} {count}" for name, count in by_column.most_common()]
    note = FoldNote(
        kind=CELLS_REPLACED,
        task=task,
        folds=tuple(by_fold),
        total=len(folds),
        text=text,
        detail=f" ({_shown_names(columns)})",
    )
    return [note]


def _small_evaluation_sets(manifest: Manifest, task: str) -> list[FoldNote]:
    entry = manifest.amlb_tasks.get(amlb_name(task, ""))
    if entry is None:
        return []
    sizes = zip(entry.folds, entry.test_rows, strict=True)
    small = {fold: rows for fold, rows in sizes if rows < FEW_ROWS}
    if not small:
        return []
    fewest = min(small.values())
    most = max(small.values())
    # a range at once, without the sentences of single folds that would be merged to it
    text = CountedText(
        pieces=(
            "the evaluation set has only ",
            f" row{_plural_s(most)}, and AMLB counts each fold alike: read no score of such a "
            "fold by itself (hardsynth report counts rows)",
        ),
        ranges=((str(fewest), str(most)),),
    )
    note = FoldNote(
        kind="few rows",
        task=task,
        folds=tuple(small),
        total=len(manifest.tasks[task].folds),
        text=text,
    )
    return [note]


def _missing_made_rows(task: str, folds: FoldEntries, *, side: str) -> list[FoldNote]:
    """Note the folds in which fewer rows were made than asked for, and why."""
    made = 0
    asked = 0
    dropped: Counter[str] = Counter()
    concerned = []
    for fold, entry in folds.items():
        summary = entry["summary"]
        counts = summary if side == "test" else summary.get("hard_train", {})
        # suites of older versions count no dropped rows, and lack this key
        for origin, dropped_rows in counts.get("dropped", {}).items():
            wanted = counts.get(f"{origin}_asked", 0)
            if counts.get(origin, 0) >= wanted:
                continue
            concerned.append(fold)
            made += counts[origin]
            asked += wanted
            dropped.update(dropped_rows)
    if not concerned:
        return []
    text = CountedText.of(
        f"{{}} rows were made from failures of {side} rows, {{}} were asked for",
        made,
        asked,
    )
    # in the order of the table of reasons, whatever was dropped first
    reasons = []
    for reason, description in REASONS.items():
        if dropped[reason]:
            reasons.append(f"{dropped[reason]} {description}")
    note = FoldNote(
        kind=f"{side} rows made",
        task=task,
        # a fold may lack rows of both origins
        folds=_distinct(concerned),
        total=len(folds),
        text=text,
        detail=f" (dropped: {', '.join(reasons)})" if reasons else "",
    )
    return [note]


def _recorded_notes(task: str, folds: FoldEntries) -> list[FoldNote]:
    """Group the folds' own notes; notes that differ in numbers alone become one."""
    by_pieces: dict[tuple[str, ...], list[tuple[int, RecordedNote]]] = {}
    for fold, entry in folds.items():
        for text in _texts_of_fold(entry):
            note = read_note(text, task, fold)
            # _rows_left_out counts these, from the records' own fields
            if note.counts_dropped_rows:
                continue
            alike = by_pieces.setdefault(note.text.pieces, [])
            alike.append((fold, note))
    notes = []
    for pieces, alike in by_pieces.items():
        merged = FoldNote(
            # "#" stands for each number: notes of other tasks with these pieces are of this kind
            kind="#".join(pieces),
            task=task,
            folds=_distinct(fold for fold, _ in alike),
            total=len(folds),
            text=CountedText.merged([note.text for _, note in alike]),
            parts=_distinct(note.part for _, note in alike if note.part),
        )
        notes.append(merged)
    return notes


def _texts_of_fold(entry: Mapping[str, Any]) -> list[str]:
    """Return the notes of a fold, without the reason for having no failures.

    That reason has a line of its own.
    """
    summary = entry["summary"]
    texts = list(entry["notes"])
    # 0.1.0 noted nothing but the reason in such a fold
    if summary.get("bad") == 0 and "no_failures" not in summary:
        return texts
    for text in summary.get("notes", ()):
        if text != summary.get("no_failures"):
            texts.append(text)
    return texts


def _folds_text(folds: Sequence[int], total: int) -> str:
    if total == 1:
        return "the only fold"
    if len(folds) == total:
        return f"all {total} folds"
    numbers = _shown_names([str(fold) for fold in folds])
    return f"{len(folds)} of {total} folds ({numbers})"


def _shown_names(names: Sequence[str]) -> str:
    """Return the first :data:`MOST_NAMES` names, and how many more there are."""
    text = ", ".join(names[:MOST_NAMES])
    more = len(names) - MOST_NAMES
    return f"{text} and {more} more" if more > 0 else text


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return values without repetitions, in order of appearance."""
    return tuple(dict.fromkeys(values))


def _plural_s(count: int) -> str:
    return "" if count == 1 else "s"
