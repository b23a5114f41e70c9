"""Fixtures shared by all wings."""

import os

# before anything numerical is imported: tests run side by side, and threads that wait for each
# other on a busy machine are slower than one
os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
from pathlib import Path

import pytest

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def openml_cache(tmp_path):
    """A private copy of the offline OpenML cache with real tasks."""
    source = REAL_DATA / "openml_cache"
    if not source.is_dir():
        pytest.skip("the offline OpenML cache with real tasks is not beside this checkout")
    target = tmp_path / "openml_cache"
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    return target
