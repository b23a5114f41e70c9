"""What happened in folds: one line for each kind of thing, with the folds counted."""

import pytest

from amlb_ext.core.notes import Note
from amlb_ext.core.task import Kind, Origin
from amlb_ext.suite import Coding, SuiteRequest, TableManifest, TaskEntry
from amlb_ext.suite.fold_notes import fold_notes
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
    few = [Note(kind="few training rows", counts={"rows": n}, part="p") for n in (4, 8)]
    [line] = lines(wine=[fold(notes=[note]) for note in few])
    assert line.startswith("all 2 folds of p: ")
    assert "4 to 8" in line


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
    test, train = lines(wine=[one, other, fold()])
    assert test.startswith("2 of 3 folds (0, 1): 6 rows were made")
    assert ("4 repeating" in test, "14 good" in test) == (True, True)
    assert train.startswith("1 of 3 folds (0): 7 rows were made")
    assert ("15 were asked" in train, "11 good" in train) == (True, True)


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
