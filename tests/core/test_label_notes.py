"""Classes that are nearly the same, and classes that combine several values."""

from itertools import combinations

import pytest

from amlb_ext.core.tables import label_notes


@pytest.mark.parametrize(
    "pair",
    [
        ("<=50K", "<=50K."),
        ("<=50K", "<= 50K"),
        ("Yes", "yes"),
        ("STRASSE", "Stra\u00dfe"),
        ("on hold", "on hold "),
        ("on hold", "on\u00a0hold"),
        ("caf\u00e9", "cafe\u0301"),
        ("x", "x\u200b"),
        ("\uff21", "a"),
    ],
)
def test_nearly_the_same_label_is_told(pair):
    (note,) = label_notes([*pair, "other"])
    assert "nearly the same label" in note
    first, second = note.removeprefix("has ").split(", nearly")[0].split(" and ")
    assert first != second


@pytest.mark.parametrize("separator", ["|", ";", ", ", "/", "+"])
def test_combinations_of_values_are_told(separator):
    values = "abcde"
    labels = [
        separator.join(chosen)
        for size in range(1, 6)
        for chosen in combinations(values, size)
    ]
    assert len(labels) == 31
    (note,) = label_notes(labels)
    assert "several values in one cell: its 31 classes combine 5 values" in note


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        ["a", "b.", "c"],
        [".", "..", "..."],
        ["sales/marketing", "sales", "legal"],
        ["Paris, France", "Rome, Italy", "Nice, France"],
        ["he/him", "she/her", "they/them"],
        ["1,5", "2,5", "3,0"],
        ["a|b", "c|d", "e|f"],
    ],
)
def test_other_classes_have_no_note(labels):
    assert label_notes(labels) == []
