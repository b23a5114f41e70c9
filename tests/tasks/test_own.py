"""Tasks of the user's own: whatever a function draws is one line of error, or a task."""

import pytest

from amlb_ext.cli import main
from amlb_ext.suite import open_suite
from amlb_ext.suite.task_folder import TaskFolder

HEAD = """
import numpy as np, pandas as pd
from amlb_ext.tasks import Draw, Rows
calls = []

def rows(rng, n=30, labels=("a", "b"), **columns):
    x = rng.normal(size=n)
    frame = pd.DataFrame({"x": x, "z": x ** 2, **columns})
    return Rows(features=frame, labels=np.array(labels)[(x > 0).astype(int)])

def draw(rng):
    calls.append(1)
"""
GOOD = "return Draw(train=rows(rng), test=rows(rng))"


def write(tmp_path, monkeypatch, body, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name}.py").write_text(f"{HEAD}    {body}\n")
    return main(["tasks", "weird", "-o", "out", "--task", f"{name}:draw", "-q"])


def test_a_draw_is_a_task_and_what_was_begun_is_no_obstacle(tmp_path, monkeypatch):
    late = f"if len(calls) > 1: raise KeyError(7)\n    {GOOD}"
    assert write(tmp_path, monkeypatch, late, "late_fault") == 2
    assert write(tmp_path, monkeypatch, GOOD, "good_draw") == 0
    manifest = open_suite(tmp_path / "out").manifest
    assert isinstance(manifest, TaskFolder)
    assert manifest.tasks[0].labels == ("a", "b")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 5", "draws int"),
        ("raise ValueError('no luck')", "ValueError: no luck"),
        (f"if len(calls) > 1: raise KeyError(7)\n    {GOOD}", "KeyError: 7"),
        ("return Draw(train=5, test=5)", "train is no Rows"),
        (
            "return Draw(train=Rows(features=np.ones((3, 2)), labels='aba'), test=0)",
            "train is no Rows",
        ),
        ("return Draw(train=rows(rng), test=rows(rng, 0))", "test has no rows"),
        (
            "return Draw(train=rows(rng, u=np.nan), test=rows(rng, u=1.0))",
            "column 'u' of train holds something that is no finite number",
        ),
        (
            "return Draw(train=rows(rng, u=1.0), test=rows(rng, u=np.inf))",
            "column 'u' of test holds",
        ),
        (
            "return Draw(train=rows(rng, u='t'), test=rows(rng, u='t'))",
            "column 'u' of train holds",
        ),
        (
            "return Draw(train=rows(rng, target=1.0), test=rows(rng, target=1.0))",
            "one is called 'target'",
        ),
        (
            "return Draw(train=rows(rng), test=rows(rng, u=1.0))",
            "the columns of test are not those of train",
        ),
        (
            "r = rows(rng); return Draw(train=Rows(features=r.features, "
            "labels=r.labels[1:]), test=r)",
            "train has 30 rows, and labels of shape (29,)",
        ),
        (
            "r = rows(rng); return Draw(train=Rows(features=r.features, labels=None), "
            "test=r)",
            "labels of shape ()",
        ),
        (
            "return Draw(train=rows(rng, labels=('a', None)), test=rows(rng))",
            "a label of train is missing",
        ),
        (
            "return Draw(train=rows(rng, labels=('a', 'a')), test=rows(rng))",
            "all labels of train are 'a'",
        ),
        (
            "return Draw(train=rows(rng), test=rows(rng, labels=('a', 'c')))",
            "no row of train has the label 'c'",
        ),
        (
            "k = ('a', f'b{len(calls)}'); "
            "return Draw(train=rows(rng, labels=k), test=rows(rng, labels=k))",
            "the label 'b2' was not in the first draw",
        ),
        (
            "k = (12, 2); return Draw(train=rows(rng, labels=k), test=rows(rng, labels=k))",
            "AMLB would read or order the labels 12, 2 wrongly",
        ),
        (
            "k = ('a', 'NA'); return Draw(train=rows(rng, labels=k), test=rows(rng))",
            "a label of train is missing, or reads so",
        ),
        (
            "k = {'a b': 1.0}; return Draw(train=rows(rng, **k), test=rows(rng, **k))",
            "The column name 'a b' holds characters that break frameworks",
        ),
        (
            "r = rows(rng); t = Rows(features=r.features, labels=r.labels, texts=('x',)); "
            "return Draw(train=t, test=rows(rng))",
            "train has 30 rows, and 1 texts",
        ),
        (
            "r = rows(rng); t = ('two\\nlines',) * 30; "
            "t = Rows(features=r.features, labels=r.labels, texts=t); "
            "return Draw(train=t, test=rows(rng))",
            "a text of train is longer than a line",
        ),
        (
            "u = pd.DataFrame({'x': ['t'], 'z': [1.0]}); "
            "return Draw(train=rows(rng), test=rows(rng), unlabelled=u)",
            "column 'x' of unlabelled holds",
        ),
        ("raise SystemExit(0)", "code that the command ran ended the program"),
        (
            "r = rows(rng); return Draw(train=r, test=r)",
            "30 of 30 rows of test are rows of train",
        ),
        (
            "rng = np.random.default_rng(0); "
            "return Draw(train=rows(rng), test=rows(rng))",
            "two draws are the same rows",
        ),
    ],
)
def test_a_draw_that_is_no_table_is_one_line(body, told, tmp_path, monkeypatch, capsys):
    name = tmp_path.name
    assert write(tmp_path, monkeypatch, body, name) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
