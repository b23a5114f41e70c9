"""What happened in folds: one line for each kind of thing, with the folds counted."""

import pytest

from amlb_ext.core.notes import Note
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite import AmlbTask, Coding, SuiteRequest, TableManifest, TaskEntry
from amlb_ext.suite.fold_notes import fold_notes, grouped_notes
from amlb_ext.suite.manifest import FoldEntry, PartChanges


def fold(bad=5, notes=(), full=None):
    parts = {"full": PartChanges(**(full or {}))}
    return FoldEntry(key="", notes=tuple(notes), summary={"bad": bad}, parts=parts)


def no_failures(alpha, worst, rule="band"):
    counts = {"alpha": alpha, "worst": worst, "enough": 0.1, "wanted": 9, "share": 0.2}
    return Note(kind="no failures", counts=counts, words={"rule": rule})


def manifest(**tasks):
    coding = Coding(
        kind=Kind.BINARY,
        target="y",
        written_target="y",
        labels=("a", "b"),
        written_labels=("a", "b"),
        columns=(),
    )
    entries = {
        name: TaskEntry(
            name, "y", Kind.BINARY, Origin(name), "", coding, [], dict(enumerate(folds))
        )
        for name, folds in tasks.items()
    }
    return TableManifest(
        version="0",
        name="hard",
        seed=1,
        request=SuiteRequest(command=""),
        config={},
        tasks=entries,
        amlb_tasks={},
    )


def lines(**tasks):
    about = manifest(**tasks)
    return [note.sentence for name in tasks for note in fold_notes(about, name)]


def test_folds_without_failures_are_counted_and_named():
    quiet = fold(bad=0, notes=[no_failures(0.3, 0.12)])
    other = fold(bad=0, notes=[no_failures(0.3, 0.2)])
    (line,) = lines(wine=[fold(), quiet, fold(), other])
    assert line.startswith("2 of 4 folds (1, 3): F fails on no test row")
    assert "the hard tasks lack these folds" in line
    assert "reaches 0.12 to 0.2" in line


def test_rows_left_out_and_cells_replaced_are_counted_once():
    changed = fold(
        full={"substituted": {"colour": 3, "street": 9}, "dropped": 2},
    )
    found = lines(wine=[fold(), changed])
    assert found == [
        "1 of 2 folds (1): 2 test rows left out, whose class no training row has",
        "1 of 2 folds (1): 12 cells of test rows replaced, for AMLB could not read what no "
        "training row holds (street 9, colour 3)",
    ]


def test_notes_that_differ_in_numbers_are_one_line():
    folds = []
    for rows in (4, 8):
        counts = {"rows": rows, "targets": 1}
        folds.append(fold(notes=[Note(kind="little hard training", counts=counts)]))
    assert lines(wine=folds) == [
        "all 2 folds: no _hard: its training file would have 4 to 8 rows and 1 distinct target"
    ]


def test_parts_left_out_are_named():
    folds = [fold(notes=[Note(kind="no test rows", part="wine_ga")]) for _ in range(2)]
    assert lines(wine=[*folds, fold()]) == [
        "2 of 3 folds (0, 1) of wine_ga: left out, no test rows"
    ]


def test_small_evaluation_sets_are_told():
    about = manifest(wine=[fold(), fold()])
    entry = AmlbTask(
        "wine",
        "wine",
        "",
        Kind.BINARY,
        "y",
        "",
        None,
        [0, 1],
        ["a", "b"],
        ["a", "b"],
        ["a", "b"],
        [90, 90],
        [1, 40],
    )
    about.amlb_tasks["wine"] = entry
    (note,) = fold_notes(about, "wine")
    assert note.sentence.startswith(
        "1 of 2 folds (0): the evaluation set has only 1 row,"
    )


def test_what_differs_in_more_than_numbers_is_left_out_of_a_shared_line():
    quiet = fold(bad=0, notes=[no_failures(0.3, 0.2)])
    other = fold(bad=0, notes=[no_failures(9.0, 0.2, "absolute")])
    changed = fold(full={"substituted": {"colour": 3}})
    about = manifest(
        wine=[quiet, changed], cars=[other, fold(full={"substituted": {"make": 5}})]
    )
    notes = [note for name in ("wine", "cars") for note in fold_notes(about, name)]
    assert grouped_notes(notes) == [
        "2 of 4 folds of 2 tasks (wine, cars): F fails on no test row, so the hard tasks lack "
        "these folds",
        "2 of 4 folds of 2 tasks (wine, cars): 3 to 5 cells of test rows replaced, for AMLB could "
        "not read what no training row holds",
    ]


def test_tasks_share_a_line_for_each_kind():
    def searched(rows):
        counts = {"searched": rows, "bad": 10}
        return Note(kind="not all searched", side="test", counts=counts)

    about = manifest(
        wine=[fold(notes=[searched(3)]), fold()], iris=[fold(notes=[searched(5)])]
    )
    notes = [note for name in ("wine", "iris") for note in fold_notes(about, name)]
    assert grouped_notes(notes) == [
        "2 of 3 folds of 2 tasks (wine, iris): 3 to 5 of 10 bad rows were searched (max_rows)"
    ]


def test_rows_that_were_not_made_are_one_line_a_side():
    """Counted from the fields of the summaries, over folds and kinds of rows."""
    lost = {"real_row": 2, "made_row": 0, "good": 7, "label": 1}
    counts = {
        "augmented": 3,
        "augmented_asked": 10,
        "synthetic": 5,
        "synthetic_asked": 5,
        "dropped": {"augmented": lost, "synthetic": {"good": 4}},
    }
    one, other = fold(), fold()
    one.summary.update(counts, hard_train={**counts, "synthetic": 4})
    other.summary.update(counts)
    assert lines(wine=[one, other, fold()]) == [
        "2 of 3 folds (0, 1): 6 rows were made from failures of test rows, 20 were asked for "
        "(dropped: 4 repeating the features of a real row, 14 good for F, 2 with a label that the "
        "oracle does not support)",
        "1 of 3 folds (0): 7 rows were made from failures of training rows, 15 were asked for "
        "(dropped: 2 repeating the features of a real row, 11 good for F, 1 with a label that the "
        "oracle does not support)",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "other"},
        {"kind": "not all searched", "counts": {"bad": 3}},
        {"kind": "few training rows", "counts": {"rows": float("nan")}},
        {"kind": "least support", "words": {"least": "much"}},
    ],
)
def test_a_note_without_a_sentence_is_none(fields):
    with pytest.raises(ValueError, match="a note"):
        Note(**fields)
