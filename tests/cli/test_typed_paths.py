"""A mistyped path: one line, exit status 2, and nothing heavy is imported to find out."""

import hashlib
import json
import subprocess
import sys

import pytest

from amlb_ext.cli.command import check_written
from amlb_ext.core.errors import ConfigError

#: The checksum of an empty file.
NOTHING = hashlib.sha256(b"").hexdigest()
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


def test_it_is_one_line_and_status_2_and_nothing_heavy_is_imported(tmp_path):
    # nor to refuse a pickle that nobody permitted to load
    given = ["f.joblib", "g.joblib", "t.csv"]
    for name in given:
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
    *lines, last = done.stderr.splitlines()
    assert len(lines) == len(MISTYPED)
    for words, line in zip(MISTYPED, lines, strict=True):
        assert line.startswith("hardsynth: error: "), words
        assert "nope" in line
    assert "f.joblib is a pickle" in last
    assert done.stdout.strip() == "[]"
    assert sorted(path.name for path in tmp_path.iterdir()) == given


@pytest.mark.parametrize(
    "content",
    [
        {"tasks": {"t": {"origin": {"ids": {"train_0": f"t.csv sha256:{NOTHING}"}}}}},
        {"tables": [{"about": {"source": "t.csv", "settings": {}}}]},
    ],
)
@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("t.csv", "the table that hard was made of"),
        ("hard/data/t.csv", "among the files of hard"),
        ("hard/hardsynth/more/t.csv", "among the files of hard"),
    ],
)
def test_a_suite_keeps_its_files_and_the_table_it_was_made_of(
    tmp_path, monkeypatch, content, out, said
):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "hard" / "hardsynth"
    own.mkdir(parents=True)
    (own / "manifest.json").write_text(json.dumps(content))
    (tmp_path / "t.csv").touch()
    with pytest.raises(ConfigError, match=said):
        check_written({"--out": out}, ["hard"])
    (tmp_path / "other.csv").write_text("other")
    check_written({"--out": "other.csv"}, ["hard"])
    check_written({"--out": "hard/report.html"}, ["hard"])
