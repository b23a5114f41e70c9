"""What is written is what is read: by our reader and by liac-arff."""

import re

import arff
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amlb_ext.core.errors import PublishError
from amlb_ext.publish.arff import (
    Attribute,
    arff_text,
    attribute_names,
    quote,
    read_split,
)
from amlb_ext.sources.arff import read_arff

AWKWARD = [
    "?",
    "'",
    '"',
    "\\",
    "a\\",
    "\\'",
    "a b",
    " lead",
    "trail ",
    "a,b",
    "{",
    "}",
    "{a}",
    "%",
    "% comment",
    "@data",
    "it's",
    'say "hi"',
    "\" x' y",
    "a\nb",
    "a\tb",
    "Zürich",
    "日本",
    "<&>",
    "-",
    "1e5",
    "true",
    "NaN",
    "a" * 300,
    "\\n",
    "\\134",
    "c0_",
]


def test_awkward_categories_survive_both_readers(tmp_path):
    text = arff_text(
        "r 1",
        [
            Attribute("my name", tuple(AWKWARD)),
            Attribute("x"),
            Attribute("t", text=True),
        ],
        [
            [*AWKWARD, None],
            [str(i) for i in range(len(AWKWARD))] + [None],
            [*AWKWARD, None],
        ],
    )
    decoded = arff.loads(text)
    assert decoded["attributes"][0] == ("my name", AWKWARD)
    assert [row[0] for row in decoded["data"]] == [*AWKWARD, None]
    assert [row[2] for row in decoded["data"]] == [*AWKWARD, None]
    path = tmp_path / "a.arff"
    path.write_text(text, encoding="utf-8")
    table = read_arff(path)
    assert table.categories["my name"] == tuple(AWKWARD)
    assert table.frame["t"].tolist() == [*AWKWARD, None]
    assert table.frame["x"].isna().tolist().index(True) == len(AWKWARD)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_any_category_survives(values):
    text = arff_text(
        "r",
        [Attribute("a b", tuple(values)), Attribute("c")],
        [values, ["1"] * len(values)],
    )
    decoded = arff.loads(text)
    assert decoded["attributes"][0][1] == values
    assert [row[0] for row in decoded["data"]] == values


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1),
        min_size=1,
        max_size=6,
        unique=True,
    )
)
def test_any_name_survives_once_it_is_made_safe(names):
    safe = attribute_names(names)
    assert len(set(safe)) == len(names)
    assert attribute_names(safe) == safe
    attributes = [Attribute(safe[0], ('" x', "b c")), *map(Attribute, safe[1:])]
    rows = [["b c"], *[["1.5"] for _ in names[1:]]]
    decoded = arff.loads(arff_text("r", attributes, rows))
    assert tuple(name for name, _ in decoded["attributes"]) == safe


def test_no_quote_or_backslash_stands_inside_a_quoted_text():
    # OpenML's upload check takes a quote after a backslash for an escaped one, whatever stands
    # before the backslash: 'a\\' would never end
    for value in AWKWARD:
        written = quote(value)
        inner = written[1:-1] if written[0] == "'" else written
        assert not re.search(r"['\"\n]|\\(?![0-7]{3})", inner), value


@pytest.mark.parametrize(
    "text", ["", "<html>", "@relation r\n@attribute x numeric\n@data\n1\n"]
)
def test_what_is_no_split_is_refused(text):
    with pytest.raises(PublishError, match="not a split file"):
        read_split(text)
