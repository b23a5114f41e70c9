"""Terminals that know ASCII alone, output that is full or gone, and names that are no text."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import python
from exhaustive import first_of
from small_faults import CHEAP
from small_suites import problems

from amlb_ext.cli import main
from amlb_ext.cli.terminal import guarded_streams, print_commands
from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import DataError, SourceError, SuiteError
from amlb_ext.core.tables import make_task
from amlb_ext.sources import open_specs
from amlb_ext.suite import Layout
from amlb_ext.suite.writer import begin_suite

FULL = "/dev/full"
LATIN = os.fsdecode(b"t\xe9")
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
QUICK = [word for word in CHEAP if word != "-q"] + ["--certificate", "none"]


def command(*words, env=None, **options):
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run(
        [sys.executable, "-m", "amlb_ext", *words],
        env={**os.environ, **(env or {})},
        text=True,
        encoding="utf-8",
        check=False,
        **options,
    )


def write_table(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=90)
    frame = pd.DataFrame(
        {
            "Größe ±": x,
            "colour": rng.choice(["köl", "бел", "red"], 90),
            "y": np.where(x > 0, "é", "b"),
        }
    )
    frame.loc[::9, "y"] = "b"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(frame.to_csv(index=False).encode())
    return path


needs_full = pytest.mark.skipif(
    not os.path.exists(FULL), reason="there is no /dev/full"
)


@needs_full
@pytest.mark.parametrize(
    ("word", "buffering"), first_of([("--help", ""), ("list", "1"), ("list", "")], 2)
)
def test_a_full_output_is_one_line(word, buffering):
    with open(FULL, "w") as full:
        done = command(word, stdout=full, env={"PYTHONUNBUFFERED": buffering})
    assert done.returncode == 1
    assert done.stderr == (
        "hardsynth: error: cannot write to standard output: No space left on device\n"
    )


@needs_full
def test_messages_that_cannot_be_written_change_no_exit_status():
    with open(FULL, "w") as full:
        assert command("lits", stderr=full).returncode == 2


@pytest.mark.parametrize("buffering", first_of(["", "1"], 1))
def test_a_reader_that_has_gone_is_no_error(buffering):
    read, write = os.pipe()
    os.close(read)
    try:
        done = command("list", stdout=write, env={"PYTHONUNBUFFERED": buffering})
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.exhaustive
def test_a_terminal_that_knows_ascii_alone(tmp_path):
    """Names of the table are no ASCII; what is printed of them is, and the suite is whole."""
    path, suite = write_table(tmp_path / "t.csv"), tmp_path / "hard"
    done = command("generate", str(path), "-o", str(suite), *QUICK, env=ASCII)
    assert done.returncode == 0, done.stderr
    done = command("report", str(suite), "--text", env=ASCII)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.isascii()
    assert problems(suite) == []


def test_signs_are_spelled_out():
    code = "from amlb_ext.cli.terminal import guarded_streams\n"
    code += "with guarded_streams(): print('1 \\xb1 2 \\u2192 \\xe9')"
    printed = python(code, env={**os.environ, **ASCII})
    assert printed == "1 +/- 2 -> \\xe9\n"


@pytest.mark.parametrize(
    "line",
    [
        "::error::x",
        "  ::set-output name=a::b",
        "\t::warning::x",
        ":: ::",
        "##[error]x",
        "a\n::error::x",
        "a\r::error::x",
        "a\n\n \n::debug::x",
        "##vso[task.x]y",
    ],
)
@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_no_text_is_a_command_of_a_pipeline(line, name, capsys):
    with guarded_streams():
        # as print writes it: a piece at a time
        print("", line, file=getattr(sys, name))
        print(line, end="", file=getattr(sys, name))
    shown = "".join(capsys.readouterr())
    starts = [part.strip() for part in shown.replace("\r", "\n").split("\n")]
    assert not any(start.startswith(("::", "##")) for start in starts)
    assert any(sign in shown for sign in ("x3a:", "x23#", "\\r:"))


def test_colons_inside_a_line_and_commands_of_our_own_stay(capsys):
    with guarded_streams():
        print("a::b", "::c")
        print_commands(["::notice::d"], sys.stdout)
    assert capsys.readouterr().out == "a::b ::c\n::notice::d\n"


def test_an_error_is_one_line():
    error = DataError("no column 'a\n::error::b'", "give\nanother")
    assert "\n" not in str(error)


@pytest.mark.parametrize("place", ["table", "folder", "out"])
def test_words_that_are_no_text_are_refused_before_anything_is_written(
    tmp_path, refused, place
):
    stem = LATIN if place == "table" else "t"
    folder = tmp_path / (LATIN if place == "folder" else "in")
    out = tmp_path / (LATIN if place == "out" else "hard")
    path = write_table(folder / f"{stem}.csv")
    before = sorted(tmp_path.rglob("*"))
    err = refused("generate", path, "-o", out, QUICK)
    assert err.startswith("hardsynth: error: '")
    assert "t\\xe9" in err
    assert "is not UTF-8 (rename the file or folder" in err
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["report", str(out if place == "out" else folder / stem)]) == 2


def test_a_name_that_the_locale_cannot_hold(tmp_path):
    path = write_table(tmp_path / "té.csv")
    done = command(
        "generate", str(path), "-o", str(tmp_path / "hard"), *QUICK, env=ASCII
    )
    assert done.returncode == 2
    assert "the locale's encoding, ascii, cannot hold" in done.stderr
    assert "set LC_ALL=C.UTF-8 or PYTHONUTF8=1" in done.stderr
    assert not (tmp_path / "hard").exists()


def test_names_that_come_another_way(tmp_path):
    path = write_table(tmp_path / f"{LATIN}_train_0.csv")
    (tmp_path / f"{LATIN}_test_0.csv").write_bytes(path.read_bytes())
    definition = tmp_path / "b.yaml"
    definition.write_text(
        yaml.safe_dump([{"name": "t", "dataset": "."}]), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        with pytest.raises(SourceError, match="is not UTF-8"):
            next(open_specs([str(definition)], SourceConfig())).load()
    good = write_table(tmp_path / "good.csv")
    definition.write_text(
        f'- name: "t\\udce9"\n  dataset: {{train: {good.name}, test: {good.name}}}\n',
        "utf-8",
    )
    with pytest.raises((DataError, SourceError)):
        next(open_specs([str(definition)], SourceConfig())).load()
    with pytest.raises(SuiteError, match="the name of the folder"):
        begin_suite(Layout(tmp_path / LATIN), {})
    frame = pd.DataFrame({"x": range(30), "y": ["a", "b"] * 15})
    frame.columns = pd.Index([LATIN, "y"], dtype=object)
    with pytest.raises(DataError, match="the name of the column"):
        make_task(frame, "y", name="t")
