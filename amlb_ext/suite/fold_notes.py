"""What happened in the folds of a task, as few lines: one for each kind of thing, folds counted.

The manifest keeps the notes of every fold. Here those that say the same thing stand together,
with the folds (and, over several tasks, the tasks) in which it happened. Counts of rows and cells
come from the records' own fields.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from amlb_ext.suite.layout import SUFFIXES, amlb_name
from amlb_ext.suite.manifest import Manifest

#: An evaluation set of fewer rows than this is told of.
FEW_ROWS = 3
#: Kinds of notes.
ROWS_LEFT_OUT, CELLS_REPLACED = "rows left out", "cells replaced"
#: Why a made row is dropped, as a summary's ``dropped`` counts it, and in words.
REASONS = {
    "real_row": "repeating the features of a real row",
    "made_row": "repeating those of another made row",
    "good": "good for F",
    "label": "with a label that the oracle does not support",
}
#: Folds, tasks and columns that are listed by name.
_MOST = 8
_ONE = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
#: A number, or a range of numbers.
_NUMBER = re.compile(rf"(?<![\w.])({_ONE})(?: to ({_ONE}))?(?![\w]|\.\d)")


@dataclass(frozen=True)
class FoldNote:
    """One kind of thing that happened in folds of a task.

    Attributes
    ----------
    kind : str
        Notes of one kind can stand together.
    task : str
    folds : tuple of int
        Where it happened.
    total : int
        Folds of the task.
    text : str
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
    text: str
    parts: tuple[str, ...] = ()
    detail: str = ""

    @property
    def sentence(self) -> str:
        """The note without the name of its task.

        Examples
        --------
        >>> FoldNote("k", "wine", (0, 3), 5, "no row was made").sentence
        '2 of 5 folds (0, 3): no row was made'
        """
        where = f" of {', '.join(self.parts)}" if self.parts else ""
        return f"{_folds(self.folds, self.total)}{where}: {self.text}{self.detail}"


def fold_notes(manifest: Manifest, task: str) -> list[FoldNote]:
    """Return what happened in the folds of a task, the most important first.

    Parameters
    ----------
    manifest : Manifest
    task : str
    """
    folds = manifest.tasks[task].folds
    total = len(folds)
    out = _without_failures(task, folds)
    out += _changed_rows(task, folds)
    out += _small_sets(manifest, task, total)
    out += _made_rows(task, folds)
    out += _said(task, folds)
    return out


def grouped_notes(notes: Iterable[FoldNote]) -> list[str]:
    """Return one line for each kind of note, over all tasks.

    Examples
    --------
    >>> notes = [FoldNote("k", "a", (0,), 2, "3 rows"), FoldNote("k", "b", (0, 1), 2, "5 rows")]
    >>> grouped_notes(notes[:1]), grouped_notes(notes)
    (['a: 1 of 2 folds (0): 3 rows'], ['3 of 4 folds of 2 tasks (a, b): 3 to 5 rows'])
    """
    kinds: dict[str, list[FoldNote]] = {}
    for note in notes:
        kinds.setdefault(note.kind, []).append(note)
    lines = []
    for alike in kinds.values():
        if len(alike) == 1:
            lines.append(f"{alike[0].task}: {alike[0].sentence}")
            continue
        count = sum(len(note.folds) for note in alike)
        total = sum(note.total for note in alike)
        tasks = list(dict.fromkeys(note.task for note in alike))
        text = merged_text([note.text for note in alike])
        lines.append(f"{count} of {total} folds of {len(tasks)} tasks ({_few(tasks)}): {text}")
    return lines


def merged_text(texts: Sequence[str]) -> str:
    """Return texts that differ in their numbers as one, with ranges.

    Examples
    --------
    >>> merged_text(["4 rows of 9", "7 rows of 9"]), merged_text(["alike", "alike"])
    ('4 to 7 rows of 9', 'alike')
    >>> merged_text(["4 to 7 rows", "5 to 9 rows"])
    '4 to 9 rows'
    """
    found = [_NUMBER.findall(text) for text in texts]
    if len({len(numbers) for numbers in found}) > 1:
        return texts[0]
    ranges = iter(zip(*found, strict=True))

    def span(_: re.Match[str]) -> str:
        ends = [number for pair in next(ranges) for number in pair if number]
        low, high = min(ends, key=float), max(ends, key=float)
        return low if low == high else f"{low} to {high}"

    return _NUMBER.sub(span, texts[0])


def left_out_text(dropped: int, substituted: Counter[str]) -> str:
    """Return how many rows were left out and cells replaced, for AMLB's definition; or nothing.

    Examples
    --------
    >>> left_out_text(2, Counter(colour=3))
    '2 rows of classes without training rows left out, 3 cells replaced (colour)'
    """
    out = []
    if dropped:
        out.append(f"{dropped} row{_s(dropped)} of classes without training rows left out")
    if cells := sum(substituted.values()):
        out.append(f"{cells} cell{_s(cells)} replaced ({_few(sorted(substituted))})")
    return ", ".join(out)


def _without_failures(task: str, folds: dict[int, dict[str, Any]]) -> list[FoldNote]:
    quiet = tuple(fold for fold, about in folds.items() if about["summary"].get("bad") == 0)
    if not quiet:
        return []
    why: list[str] = []
    for fold in quiet:
        summary = folds[fold]["summary"]
        # suites of 0.1.0 have it as the first note alone
        why += [summary["no_failures"]] if "no_failures" in summary else summary["notes"][:1]
    reason = f"; {merged_text(why)}" if why else ""
    text = "F fails on no test row, so the hard tasks lack these folds"
    return [FoldNote("no failures", task, quiet, len(folds), text, detail=reason)]


def _changed_rows(task: str, folds: dict[int, dict[str, Any]]) -> list[FoldNote]:
    """Tell of test rows left out and cells replaced, in the untouched test folds."""
    total, full = len(folds), {}
    for fold, about in folds.items():
        full[fold] = about["parts"].get("full", {})
    out = []
    dropped = {}
    for fold, part in full.items():
        left_out = folds[fold]["summary"].get("left_out", {})
        count = part.get("dropped", 0) + sum(left_out.values())
        if count:
            dropped[fold] = count
    if dropped:
        rows = sum(dropped.values())
        text = f"{rows} test row{_s(rows)} left out, whose class no training row has"
        out.append(FoldNote(ROWS_LEFT_OUT, task, tuple(dropped), total, text))
    cells: Counter[str] = Counter()
    changed = tuple(fold for fold, part in full.items() if part.get("substituted"))
    for fold in changed:
        cells.update(full[fold]["substituted"])
    if changed:
        count = sum(cells.values())
        named = [f"{name} {number}" for name, number in cells.most_common()]
        text = (
            f"{count} cell{_s(count)} of test rows replaced, for AMLB could not read what no "
            "training row holds"
        )
        detail = f" ({_few(named)})"
        out.append(FoldNote(CELLS_REPLACED, task, changed, total, text, detail=detail))
    return out


def _small_sets(manifest: Manifest, task: str, total: int) -> list[FoldNote]:
    entry = manifest.amlb_tasks.get(amlb_name(task, ""))
    if entry is None:
        return []
    sizes = zip(entry.folds, entry.test_rows, strict=True)
    small = {fold: rows for fold, rows in sizes if rows < FEW_ROWS}
    if not small:
        return []
    rows = merged_text([str(count) for count in small.values()])
    text = (
        f"the evaluation set has only {rows} row{_s(max(small.values()))}, and AMLB counts each "
        "fold alike: read no score of such a fold by itself (hardsynth report counts rows)"
    )
    return [FoldNote("few rows", task, tuple(small), total, text)]


def _made_rows(task: str, folds: dict[int, dict[str, Any]]) -> list[FoldNote]:
    """Tell of folds in which fewer rows were made than asked for, and why; a line for each side."""
    out = []
    for side in ("test", "training"):
        made, asked = 0, 0
        dropped: Counter[str] = Counter()
        where = []
        for fold, about in folds.items():
            counts = about["summary"]
            counts = counts if side == "test" else counts.get("hard_train", {})
            kinds = [kind for kind in counts.get("dropped", {}) if f"{kind}_asked" in counts]
            short = [kind for kind in kinds if counts[kind] < counts[f"{kind}_asked"]]
            if short:
                where.append(fold)
            for kind in short:
                made += counts[kind]
                asked += counts[f"{kind}_asked"]
                dropped.update(counts["dropped"][kind])
        if where:
            text = f"of failures of {side} rows, {made} of {asked} rows asked for were made"
            reasons = [f"{dropped[key]} {words}" for key, words in REASONS.items() if dropped[key]]
            detail = f" (dropped: {', '.join(reasons)})" if reasons else ""
            kind = f"{side} rows made"
            out.append(FoldNote(kind, task, tuple(where), len(folds), text, detail=detail))
    return out


def _said(task: str, folds: dict[int, dict[str, Any]]) -> list[FoldNote]:
    """Put the folds' own notes together, those that differ in numbers alone as one."""
    alike: dict[str, list[tuple[int, str, str]]] = {}
    for fold, about in folds.items():
        own = [*about["notes"]]
        summary = about["summary"]
        if summary.get("bad") != 0 or "no_failures" in summary:
            told = summary.get("no_failures")
            own += [note for note in summary.get("notes", ()) if note != told]
        for note in own:
            part, text = _part_of(note, task, fold)
            text = text.removeprefix("test: ").removeprefix("train: ")  # one remark on both sides
            if text.endswith(_DROPPED):  # counted in the records' fields
                continue
            alike.setdefault(_NUMBER.sub("#", text), []).append((fold, part, text))
    out = []
    for kind, entries in alike.items():
        where = tuple(dict.fromkeys(fold for fold, _, _ in entries))
        parts = tuple(dict.fromkeys(part for _, part, _ in entries if part))
        text = merged_text([text for _, _, text in entries])
        out.append(FoldNote(kind, task, where, len(folds), text, parts))
    return out


#: How the writer's note of rows left out ends.
_DROPPED = "test rows of classes not in train dropped"


def _part_of(note: str, task: str, fold: int) -> tuple[str, str]:
    """Return which AMLB task a fold's note begins with, if any, and the rest of the note."""
    for name in sorted((amlb_name(task, suffix) for suffix in SUFFIXES), key=len, reverse=True):
        prefix = f"{name}, fold {fold}: "
        if note.startswith(prefix):
            return name, note.removeprefix(prefix)
    return "", note


def _folds(folds: Sequence[int], total: int) -> str:
    if len(folds) == total:
        return f"all {total} folds" if total > 1 else "the only fold"
    return f"{len(folds)} of {total} folds ({_few([str(fold) for fold in folds])})"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _s(count: int) -> str:
    return "" if count == 1 else "s"
