"""Every form in which a table may lie on disk reads as the same table, and bad files are told."""

import bz2
import gzip
import io
import json
import lzma

import numpy as np
import pandas as pd
import pytest
from hostile_files import zipped

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import HardsynthError
from amlb_ext.core.paths import PACKED_ENDINGS, TABLE_ENDINGS, table_ending, table_stem
from amlb_ext.sources import open_specs
from amlb_ext.sources.read_table import CsvFormat, read_table

N = 30


def load(path, **options):
    return next(open_specs([str(path)], SourceConfig(**options))).load()


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "count": range(N),
            "size": np.arange(N) / 8,
            "gaps": [None, 2.0, 3.0] * 10,
            "colour": ["r\u00f6d", "NA?", "b,c"] * 10,
            "flag": [True, False, False] * 10,
            "y": ["u", "v"] * 15,
        }
    )


def write_json_lines(frame, path):
    frame.to_json(path, orient="records", lines=True, force_ascii=False)


def write_excel(frame, path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    frame.to_excel(path, index=False)


def write_polars(frame, path):
    polars = pytest.importorskip("polars", reason="polars is not installed")
    polars.DataFrame(frame.to_dict("list")).write_ipc_stream(path)


WRITERS = {
    "a.csv": lambda frame, path: frame.to_csv(path, index=False),
    "a.TSV": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "a.xlsx": write_excel,
    "a.parquet": lambda frame, path: frame.to_parquet(path),
    "a.feather": lambda frame, path: frame.to_feather(path),
    "a.arrow": write_polars,
    "a.jsonl": write_json_lines,
    "a.ndjson": write_json_lines,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_form_gives_the_same_task(name, frame, tmp_path):
    WRITERS[name](frame, tmp_path / name)
    task = load(tmp_path / name)
    assert task.name == "a"
    frame.to_parquet(tmp_path / "same.parquet")
    expected = load(tmp_path / "same.parquet")
    assert task.columns == expected.columns
    pd.testing.assert_frame_equal(task.features, expected.features)


def packed(*members):
    return zipped(io.BytesIO(), *members).getvalue()


def packed_table(content):
    return packed(("__MACOSX/._a.csv", "junk"), ("folder/a.csv", content))


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.csv.gz", gzip.compress),
        ("a.csv.GZ", gzip.compress),
        ("a.csv.bz2", bz2.compress),
        ("a.csv.xz", lzma.compress),
        ("a.csv.zip", packed_table),
        ("a.zip", packed_table),
        # a program may have unpacked it on the way and kept the name
        ("a.csv.gz", bytes),
    ],
)
def test_a_packed_table_is_the_table(name, pack, frame, tmp_path):
    content = frame.to_csv(index=False).encode()
    (tmp_path / "plain.csv").write_bytes(content)
    (tmp_path / name).write_bytes(pack(content))
    task, expected = load(tmp_path / name), load(tmp_path / "plain.csv")
    assert (task.name, task.origin.ids["file"]) == ("a", name)
    assert task.content_hash == expected.content_hash


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".feather", ".tsv"])
def test_every_form_may_be_packed(ending, frame, tmp_path):
    plain = tmp_path / f"a{ending}"
    WRITERS[{".tsv": "a.TSV"}.get(ending, plain.name)](frame, plain)
    packed = tmp_path / f"a{ending}.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    pd.testing.assert_frame_equal(read_table(packed).frame, read_table(plain).frame)


def test_json_lines_keep_types_digits_and_texts_that_look_missing(tmp_path):
    rows = [{"n": 2**60 + k, "zip": f"{k:05d}", "t": "NA"} for k in range(N)]
    del rows[3]["t"]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    frame = read_table(tmp_path / "a.jsonl").frame
    assert frame["n"].tolist() == [2**60 + k for k in range(N)]
    assert frame["zip"].iloc[7] == "00007"
    assert frame["t"].isna().tolist() == [k == 3 for k in range(N)]


def test_flags_with_gaps_and_several_sheets_of_a_workbook(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    frame = pd.DataFrame({"flag": [True, None, False], "n": [1, None, 3]})
    with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
        frame.to_excel(book, sheet_name="Jan", index=False)
        frame.to_excel(book, sheet_name="Feb", index=False)
    table = read_table(tmp_path / "a.xlsx")
    assert [value is True for value in table.frame["flag"]] == [True, False, False]
    assert table.frame["flag"].isna().tolist() == [False, True, False]
    assert table.notes == ("a.xlsx has 2 sheets; 'Jan', the first, is read",)


def test_a_workbook_without_openpyxl(tmp_path, monkeypatch):
    (tmp_path / "a.xlsx").write_bytes(packed_table("x"))
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(HardsynthError, match=r"pip install 'hardsynth\[excel\]'"):
        read_table(tmp_path / "a.xlsx")


#: The name of a file, what is in it, and what is said.
BAD = [
    ("a.xlsx", b"a,b\n1,2\n", "a.xlsx is not a valid workbook"),
    ("a.feather", b"a,b\n1,2\n", "a.feather is not a valid Arrow file"),
    ("a.arrow", b"ARROW1\0\0junk", "a.arrow is not a valid Arrow file"),
    ("a.csv.gz", gzip.compress(b"a,b\n" * 999, mtime=0)[:30], "cannot unpack a.csv.gz"),
    ("a.csv.xz", b"\xfd7zXZ\0junk", "cannot unpack a.csv.xz"),
    ("a.zip", b"PK\x03\x04junk", "cannot unpack a.zip"),
    ("a.zip", packed(("a.csv", "x"), ("b.csv", "x")), "a.zip holds 2 tables instead of one"),
    ("a.csv.gz", gzip.compress(b"", mtime=0), "a.csv.gz is empty"),
    ("a.csv.gz", gzip.compress(b"0\n" * (150 << 20)), "more than 250 times its size"),
    ("a.csv.bz2", bz2.compress("\u00e9".encode("latin1")), r"iconv .* a.csv > utf8.csv"),
    ("a.jsonl", b'{"a": 1}\n[1]\n', "a.jsonl: line 2 .* is a list"),
    ("a.jsonl", b'{"a": 1}\n{"a":\n', "a.jsonl: line 2 cannot be read"),
    ("a.jsonl", b'{"a": 1, "a": 2}\n', "a.jsonl: line 1 .* has a name twice"),
    ("a.jsonl", b'{"a": {"b": 2}}\n', "column 'a' holds dict values"),
    ("a.jsonl", b"[" * 99_999, "a.jsonl: line 1 cannot be read"),
    ("a.pq", b"PAR1", r"a.pq has the ending '.pq' \(tables end in .csv, "),
    ("a.gz", b"", "a.gz has the ending '.gz'"),
    ("empty.csv", b"", "empty"),
    ("blank.csv", b"\n\n", "not a valid CSV"),
    ("header.csv", b"a,b\n", "0 rows"),
    ("short.csv", b"a,b\n1,2\n", "1 rows"),
    ("latin.csv", "a,b\n\xe9,2\n".encode("latin-1"), "not UTF-8"),
    ("gzip.csv", gzip.compress("\u00e9".encode(), mtime=0), "no text: it begins like gzip"),
    ("arrow.csv", b"PAR1\x80", "no text: it begins like Parquet"),
    ("utf16.csv", "a,b\n1,2\n".encode("utf-16"), "iconv -f utf-16 "),
    ("page.csv", b"\n<!DOCTYPE html>\n<html><p>Sign in</p></html>", "is a web page"),
    ("double.csv", b"a,a\n1,2\n", "more than once"),
    ("ragged.csv", b"a,b\n1,2\n1,2,3\n", "not a valid CSV|more fields"),
    ("wide.csv", b"a,b\n1,2,3\n1,2,3\n", "more fields"),
    ("quote.csv", b'a,b\n"1,2\n', "not a valid CSV"),
    ("binary.csv", bytes(range(256)), "UTF-8|no valid"),
    ("infinite.csv", b"a,b\n" + b"inf,1\n2,0\n" * 20, "finite"),
    ("one.csv", b"a\n" + b"1\n" * 30, "single value|no feature"),
    ("text.parquet", b"a,b\n1,2\n", "not a valid Parquet"),
    ("cut.parquet", b"PAR1", "not a valid Parquet"),
    ("latin.arff", "@relation \xe9\n@data\n".encode("latin-1"), "not UTF-8"),
    ("value.arff", b"@relation r\n@attribute a {x,y}\n@data\nz\n", "not a valid ARFF.*line 4"),
    ("number.arff", b"@relation r\n@attribute a numeric\n@data\nz\n", "not a valid ARFF.*line 4"),
    ("none.arff", b"@relation r\n@data\n", "no attribute|not a valid ARFF"),
    ("text.arff", b"hello\n", "not a valid ARFF"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "said"), BAD)
def test_a_bad_file_is_told_in_one_line(name, content, said, tmp_path):
    if name.endswith(".xlsx"):
        pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HardsynthError, match=said) as caught:
        load(tmp_path / name) if table_ending(name) else read_table(tmp_path / name)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_a_doubled_name_in_a_workbook(tmp_path):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    pd.DataFrame([[1, 2]], columns=["a", "a"]).to_excel(
        tmp_path / "a.xlsx", index=False
    )
    with pytest.raises(
        HardsynthError, match=r"a\.xlsx: the column name 'a' occurs more"
    ):
        read_table(tmp_path / "a.xlsx")


def test_max_file_size_holds_for_a_packed_table(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"0\n" * (1 << 20)))
    with pytest.raises(HardsynthError, match="--max-file-size"):
        read_table(tmp_path / "a.csv.gz", CsvFormat(max_file_size=0.001))


@pytest.mark.parametrize("packed", ["", *PACKED_ENDINGS])
@pytest.mark.parametrize("ending", TABLE_ENDINGS)
def test_a_table_is_known_by_its_name(ending, packed):
    name = f"a.b{ending.upper()}{packed}"
    assert (table_ending(name), table_stem(name)) == (ending, "a.b")
