"""A mistyped path: one line, exit status 2, and nothing heavy is imported to find out."""

import subprocess
import sys

import pytest

from amlb_ext.cli.main import main

MISTYPED = [
    "generate nope.csv -o out",
    "harden nope.yaml -o out",
    "compare nope.csv --target y --baseline a.skops --candidate b.skops",
    "estimate nope.skops nope.csv",
    "estimate ridge nope.csv",
    "relations nope.csv",
    "score nope",
    "report nope",
    "gate nope --predictions p.csv",
    "gate nope.csv --target y --baseline a.csv --candidate b.csv",
    "verify nope",
    "show nope",
    "certify nope",
    "run constantpredictor -u nope",
    "publish nope --server test --dry-run",
    "export nope --base-url https://a.org/b",
    "install nope",
    "difficulty nope -o d.parquet",
]


@pytest.mark.parametrize("words", MISTYPED)
def test_it_is_one_line_and_status_2(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith("hardsynth: error: ")
    assert error.count("\n") == 1
    assert "nope" in error
    assert list(tmp_path.iterdir()) == []


def test_nothing_heavy_is_imported():
    code = (
        "import sys\n"
        "from amlb_ext.cli.main import main\n"
        f"for words in {MISTYPED!r}:\n    main(words.split())\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'torch', 'pyarrow', 'requests'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
