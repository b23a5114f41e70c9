"""Tables on disk: CSV, Parquet, ARFF, and what is wrong with them."""

import numpy as np
import pytest

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.sources import open_specs

N = 30


def load(path, **options):
    return next(open_specs([str(path)], SourceConfig(**options))).load()


def write_arff(path, header, rows):
    lines = ["@relation r", *(f"@attribute {line}" for line in header), "@data", *rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_csv_and_parquet_agree(table, tmp_path):
    table.to_csv(tmp_path / "small.csv", index=False)
    table.to_parquet(tmp_path / "small.parquet")
    csv, parquet = load(tmp_path / "small.csv"), load(tmp_path / "small.parquet")
    assert csv.content_hash == parquet.content_hash
    # a mark of the byte order and Windows' ends of lines change nothing; nor does a named index
    text = table.to_csv(index=False, lineterminator="\r\n")
    (tmp_path / "small.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert load(tmp_path / "small.csv").content_hash == csv.content_hash
    table.set_index("count").to_parquet(tmp_path / "small.parquet")
    assert load(tmp_path / "small.parquet").content_hash == csv.content_hash
    table.rename(columns={"class": "answer"}).to_csv(tmp_path / "b.csv", index=False)
    assert load(tmp_path / "b.csv").target_name == "answer"
    assert (csv.name, csv.target_name, csv.kind.value) == ("small", "class", "binary")
    assert [c.type for c in csv.columns] == ["integer", "numeric", "categorical"]
    assert csv.folds == ()
    assert csv.origin.ids["file"] == "small.csv"
    assert len(csv.origin.ids["sha256"]) == 64


def test_target_and_kind_are_taken_from_the_options(table, tmp_path):
    table.to_csv(tmp_path / "a.csv", index=False)
    task = load(tmp_path / "a.csv", target="count", kind="regression")
    assert (task.target_name, task.kind.value) == ("count", "regression")
    with pytest.raises(
        DataError, match=r"no column 'klass' \(columns: count, size, colour, cl"
    ):
        load(tmp_path / "a.csv", target="klass")


def test_test_file_is_one_fold(table, tmp_path):
    table.iloc[:22].to_csv(tmp_path / "train.csv", index=False)
    table.iloc[22:].to_csv(tmp_path / "test.csv", index=False)
    task = load(tmp_path / "train.csv", test_file=str(tmp_path / "test.csv"))
    assert len(task.folds) == 1
    assert task.folds[0].train.tolist() == list(range(22))
    assert task.folds[0].test.tolist() == list(range(22, 30))
    assert task.target.iloc[29] == "yes"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.drop(columns="size"), r"lacks \['size'\]"),
        (lambda t: t.assign(more=1), r"adds \['more'\]"),
        (lambda t: t[["size", "count", "colour", "class"]], "another order"),
        (lambda t: t.assign(size="large"), "numeric in train.csv and text in test.csv"),
    ],
)
def test_test_file_with_other_columns(table, tmp_path, change, said):
    table.to_csv(tmp_path / "train.csv", index=False)
    change(table).to_csv(tmp_path / "test.csv", index=False)
    with pytest.raises(DataError, match=said):
        load(tmp_path / "train.csv", test_file=str(tmp_path / "test.csv"))


def test_test_file_with_an_empty_column_keeps_the_type(table, tmp_path):
    table.to_csv(tmp_path / "train.csv", index=False)
    table.assign(size=None, colour=None).to_csv(tmp_path / "test.csv", index=False)
    task = load(tmp_path / "train.csv", test_file=str(tmp_path / "test.csv"))
    assert [c.type for c in task.columns] == ["integer", "numeric", "categorical"]


def test_arff_dense(tmp_path):
    header = [
        "a numeric",
        "b {x,'y z',unused}",
        "c {True,False}",
        "d string",
        "e date yyyy",
    ]
    rows = [f"{i},{'?' if i == 1 else 'x'},True,'t {i}',2001" for i in range(N - 1)]
    task = load(
        write_arff(
            tmp_path / "a.arff",
            [*header, "t {no,yes}"],
            [f"{row},{'yes' if i % 2 else 'no'}" for i, row in enumerate(rows)]
            + ["?,'y z',False,?,?,yes"],
        ),
        target="t",
    )
    assert [c.type for c in task.columns] == [
        "integer",
        "categorical",
        "boolean",
        "text",
        "date",
    ]
    assert task.columns[1].categories == ("x", "y z", "unused")
    assert task.columns[1].has_missing
    assert task.features["b"].iloc[-1] == "y z"
    assert np.isnan(task.features["a"].iloc[-1])
    assert task.labels == ("no", "yes")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        load(tmp_path / "no.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(SourceError, match="is not a file"):
        load(tmp_path / "folder.csv")
