"""Fixtures shared by all wings."""

import os

# before anything numerical is imported: tests run side by side, and threads that wait for each
# other on a busy machine are slower than one
os.environ.setdefault("OMP_NUM_THREADS", "1")
# commands work in one process where a test does not ask for more, for the same reason
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")

import shutil
from pathlib import Path

import pytest

from amlb_ext.core.errors import RunError
from amlb_ext.runner.checkout import Checkout, ensure

#: Files that take longest. They go first, so that short ones fill the gaps at the end; and the
#: first makes the suite that the report's other tests would stand and wait for.
LONGEST = (
    "test_report_build",
    "test_readme",
    "test_pipeline",
    "test_end_to_end",
    "test_validity_certificate",
    "test_validity_calibrate",
    "test_faults_cluster",
    "test_hardening_fold",
    "test_report_notebook",
    "test_validity_shared_fits",
)

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items):
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture
def openml_cache(tmp_path):
    """A private copy of the offline OpenML cache with real tasks."""
    source = REAL_DATA / "openml_cache"
    if not source.is_dir():
        pytest.skip("the offline OpenML cache with real tasks is not beside this checkout")
    target = tmp_path / "openml_cache"
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    return target


@pytest.fixture(scope="session")
def amlb() -> Checkout:
    """The real AMLB, cloned and installed into the cache; skips where it cannot be had."""
    try:
        return ensure(quiet=True)
    except RunError as error:
        pytest.skip(f"AMLB cannot be had: {error}")
