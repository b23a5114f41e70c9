"""A mistyped path: one line, exit status 2, and nothing heavy is imported to find out."""

import subprocess
import sys

import pytest

MISTYPED = [
    "generate nope.csv -o out",
    "harden nope.yaml -o out",
    "generate bundled/toy --config nope.yaml -o out",
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
def test_it_is_one_line_and_status_2(words, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    error = refused(words.split())
    assert "nope" in error
    assert list(tmp_path.iterdir()) == []


def test_nothing_heavy_is_imported(tmp_path):
    # nor to refuse a pickle that nobody permitted to load
    for name in ("t.csv", "f.joblib", "g.joblib"):
        (tmp_path / name).touch()
    pickles = "compare t.csv --target y --baseline f.joblib --candidate g.joblib"
    code = (
        "import sys\n"
        "from amlb_ext.cli.main import main\n"
        f"for words in {[*MISTYPED, pickles]!r}:\n    assert main(words.split()) == 2\n"
        "heavy = {'numpy', 'pandas', 'sklearn', 'torch', 'pyarrow', 'requests'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "f.joblib is a pickle" in done.stderr
    assert done.stdout.strip() == "[]"
