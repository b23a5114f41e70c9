"""A full disk, a spent quota, a folder that must not be written."""

import errno
import os
import shutil
import subprocess
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from commands import words_of
from exhaustive import first_of
from folders import contents
from small_faults import cheap, error_of, flip

from amlb_ext.cli import main
from amlb_ext.core.errors import SuiteError
from amlb_ext.core.files import (
    TEMPORARY_SUFFIX,
    remove_temporary_files,
    write_file,
    write_text,
)
from amlb_ext.core.parquet import write_parquet
from amlb_ext.pipeline.weird import WeirdRequest, write_weird_tasks
from amlb_ext.suite import Layout, verify_suite
from amlb_ext.suite.layout import is_fresh
from amlb_ext.tabarena import export_for_tabarena
from amlb_ext.tasks import TASKS
from amlb_ext.tasks.drop4 import draw_games

# the suite that all is compared with was made with these
pytestmark = pytest.mark.usefixtures("light_models")

PAGE = 4096


def pages(root):
    return sum(
        -(-path.stat().st_size // PAGE) for path in root.rglob("*") if path.is_file()
    )


def fill(folder, free):
    """Leave so many pages of a disk."""
    free_pages = os.statvfs(folder).f_bavail - free
    (folder / "ballast").write_bytes(b"\0" * (free_pages * PAGE))


@pytest.mark.parametrize(
    ("share", "size"), first_of([(0.97, "quick"), (0.45, "none"), (0.03, "none")], 1)
)
def test_a_full_disk_loses_nothing(disk, whole, desk, capsys, share, size):
    folder = disk("size=32m")
    out = folder / "hard"
    fill(folder, int(share * pages(whole)))
    words = [desk / "u.csv", desk / "t.csv", "-o", out, "--certificate", size]
    assert cheap("generate", *words) == 2
    said = error_of(capsys)
    assert "No space left on device (free some space" in said
    assert not list(folder.rglob(f"*{TEMPORARY_SUFFIX}"))
    assert not Layout(out).lock.exists()
    done = {path: path.stat().st_mtime_ns for path in out.rglob("record.json")}
    assert len(done) == {0.03: 0, 0.45: 1, 0.97: 2}[share]
    (folder / "ballast").unlink()
    assert cheap("generate", *words) == 0
    wanted = contents(whole)
    if size == "none":
        certified = ("certificate.json", "null.parquet")
        wanted = {path: wanted[path] for path in wanted if not path.endswith(certified)}
    assert contents(out) == wanted
    assert done == {
        path: path.stat().st_mtime_ns for path in done
    }  # nothing is made twice


def test_a_full_disk_while_repairing_changes_nothing(disk, whole, desk, refused):
    folder = disk("size=32m")
    out = shutil.copytree(whole, folder / "hard")
    flip(out / "data/t_full/t_full_test_0.csv", np.random.default_rng(0))
    before = contents(out)
    fill(folder, 3)
    words = words_of("verify", out, "--repair -q -j 1 --source", desk / "t.csv")
    assert "No space left" in refused(words)
    assert contents(out) == before
    (folder / "ballast").unlink()
    assert main(words) == 0
    assert contents(out) == contents(whole)


def test_a_read_only_folder(disk, whole, desk, refused, capsys):
    folder = disk("size=32m")
    words = [desk / "u.csv", desk / "t.csv", "-o"]
    out = shutil.copytree(whole, folder / "hard")
    before = contents(out)
    (folder / "hard/data/t_full/t_full_test_0.csv.0a.hardsynth-part").write_text(
        "of a killed run"
    )
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    for place in (folder / "new", out):
        assert cheap("generate", *words, place) == 2
        assert "(make the folder writable or choose another" in error_of(capsys)
    for words in (["certify", out, "-q"], ["verify", out, "--repair -q"]):
        assert "Read-only file system" in refused(*words)
    assert main(["verify", str(out), "-q"]) == 0
    found = contents(out)
    found.pop("data/t_full/t_full_test_0.csv.0a.hardsynth-part")
    assert found == before
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, 0]
)
def test_what_the_system_says_is_one_line(tmp_path, code):
    path = tmp_path / "folder" / "a.txt"
    write_text(path, "old")

    def write(part):
        part.write_text("half")
        raise OSError(code, "first\nsecond") if code else OSError("first\nsecond")

    with pytest.raises(SuiteError) as caught:
        write_file(path, write)
    said = str(caught.value)
    assert said.startswith(f"cannot write {path}: ")
    assert "\n" not in said
    assert (os.strerror(code) if code else "first second") in said
    assert ("free some space" in said) == (code in (errno.ENOSPC, errno.EDQUOT, 0))
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("free", [0, 1, 6, 12])
def test_parquet_on_a_full_disk_keeps_nothing_open(disk, free):
    folder = disk("size=256k")
    values = np.frombuffer(np.random.default_rng(0).bytes(12 * PAGE), np.uint8)
    fill(folder, free)
    with pytest.raises(SuiteError, match="No space left on device") as caught:
        write_parquet(pa.table({"a": values}), folder / "a.parquet")
    assert [path.name for path in folder.iterdir()] == ["ballast"]
    assert caught.value.__cause__  # its frames live on, and what they opened must not
    subprocess.run(["umount", str(folder)], check=True)


def test_two_writers_of_one_file_never_mix(tmp_path):
    path = tmp_path / "a.txt"

    def first(part):
        part.write_text("first half, ")
        write_text(
            path, "the second writer's"
        )  # begins and ends while the first is at work
        assert path.read_text() == "the second writer's"
        with part.open("a") as handle:
            handle.write("second half")

    write_file(path, first)
    assert path.read_text() == "first half, second half"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_what_a_killed_run_was_about_to_write_is_swept(tmp_path):
    left = []
    with pytest.raises(SuiteError):
        write_file(
            tmp_path / "data/a.csv", lambda part: left.append(part) or part.rename("/")
        )
    left[0].write_text("half")
    staging = tmp_path / "hardsynth" / f"repair{TEMPORARY_SUFFIX}" / "data"
    staging.mkdir(parents=True)
    (staging / "b.csv").write_text("b")
    assert is_fresh(tmp_path)
    remove_temporary_files(tmp_path)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == []
    assert not staging.exists()
    assert verify_suite(tmp_path)[0].startswith(str(tmp_path))


def write_weird(out):
    task = replace(TASKS["drop4_winners"], draw=partial(draw_games, rows=60))
    write_weird_tasks(out, [task], WeirdRequest(folds=2, salt="disk"))


@pytest.mark.parametrize("free", [0, 2, 5, 8])
@pytest.mark.parametrize("writer", ["weird", "tabarena"])
def test_a_folder_that_did_not_fit_is_written_by_the_same_command(
    disk, whole, writer, free
):
    folder = disk("size=32m")
    out = folder / "out"
    write = write_weird
    if writer == "tabarena":
        write = partial(export_for_tabarena, whole)
    fill(folder, free)
    with pytest.raises(SuiteError, match="No space left on device"):
        write(out)
    (folder / "ballast").unlink()
    write(out)
    wanted = contents(out)
    shutil.rmtree(out)
    write(out)
    assert contents(out) == wanted
    assert not any("started" in name or "part" in name for name in wanted)


def test_folders_that_cannot_be_written_are_one_line(disk, whole, tmp_path, capsys):
    folder = disk("size=32m")
    suite = shutil.copytree(whole, folder / "hard")
    write_weird(folder / "weird")
    export_for_tabarena(whole, folder / "tabarena")
    before = contents(folder)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    export = ["export", str(suite)]
    to_amlb = ["--base-url", "https://e.org/x", "-o"]
    for words in (
        ["tasks", "weird", "-o", str(folder / "weird"), "--folds", "1"],
        ["tasks", "weird", "-o", str(folder / "new"), "--folds", "1"],
        [*export, "--for", "tabarena", "-o", str(folder / "tabarena")],
        [*export, "--for", "tabarena", "-o", str(folder / "new")],
        [*export, *to_amlb, str(folder / "new")],
        ["report", str(suite)],
        ["install", str(suite), "--userdir", str(folder / "user")],
        ["run", "flaml", "-u", str(suite), "-r", str(folder / "r"), "--amlb", "no"],
        ["difficulty", str(suite), "-o", str(folder / "d.parquet")],
        ["score", str(suite), "-r", str(folder / "s"), "-j", "1"],
    ):
        assert main([*words, "-q"]) in (1, 2), words
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1, (words, said)
        assert said[0].startswith("hardsynth: error: "), words
    assert contents(folder) == before
