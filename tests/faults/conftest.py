"""A small table, the cheapest suite that has every kind of file, and a disk of a given size."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock
from small_faults import cheap, write_table
from small_models import lighten


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    """A folder with two tables, ``t.csv`` and ``u.csv``, and a suite of both, not to be changed.

    Its models have few trees: other suites are compared with it under ``light_models`` alone.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "desk"
    with FileLock(shared / "desk.lock"):
        if not (folder / "ready").exists():
            folder.mkdir()
            tables = [
                write_table(folder / "u.csv", 2),
                write_table(folder / "t.csv", 1),
            ]
            with pytest.MonkeyPatch.context() as patch:
                lighten(patch)
                assert cheap("generate", *tables, "-o", folder / "hard") == 0
            (folder / "ready").touch()
    return folder


@pytest.fixture(scope="session")
def whole(desk):
    """An undisturbed suite of both tables with its certificates; not to be written to."""
    return desk / "hard"


@pytest.fixture
def disk():
    """Mount a disk of so many bytes; skips where that is not allowed.

    Not below ``tmp_path``: pytest removes its old folders, and a disk that a killed run left
    mounted there would make every later run fail.
    """
    folder = Path(tempfile.mkdtemp(prefix="disk-"))

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            pytest.skip("there is no mount command")
        if done.returncode:
            pytest.skip(
                f"mounting a small disk is not allowed here: {done.stderr.strip()}"
            )
        return folder

    yield mount
    if os.path.ismount(
        folder
    ):  # lazily: files still open are looked for by a test of their own
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()
