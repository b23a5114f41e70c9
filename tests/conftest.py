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
from exhaustive import ask_for_all
from small_models import lighten

from amlb_ext.core.errors import RunError
from amlb_ext.runner.checkout import Checkout, ensure_checkout

#: Files that take longest. They go first, so that short ones fill the gaps at the end; and the
#: first makes the suite that the report's other tests would stand and wait for.
LONGEST = (
    "report/test_build.py",
    "test_readme.py",
    "pipeline/test_generate.py",
    "test_end_to_end.py",
    "validity/test_certificate.py",
    "validity/test_calibration.py",
    "faults/test_cluster.py",
    "hardening/test_fold.py",
    "report/test_notebook.py",
    "validity/test_shared_fits.py",
)

HERE = Path(__file__).parent
REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def pytest_collection_modifyitems(items):
    rank = {name: place for place, name in enumerate(LONGEST)}

    def place_of(item):
        inside = item.path.is_relative_to(HERE)
        name = item.path.relative_to(HERE).as_posix() if inside else ""
        return rank.get(name, len(rank))

    items.sort(key=place_of)


#: Exhaustive tests that this run leaves out.
LEFT_OUT = pytest.StashKey[int]()


def pytest_configure(config):
    ask_for_all(config.option.markexpr)
    config.stash[LEFT_OUT] = 0
    config.pluginmanager.register(_LeftOut(config))


class _LeftOut:
    """Counts exhaustive tests that are not run, and says so in one line at the end.

    Each of the processes that share out the tests collects all of them, and none of them prints.
    """

    def __init__(self, config):
        self.config = config

    def pytest_deselected(self, items):
        marked = sum(
            item.get_closest_marker("exhaustive") is not None for item in items
        )
        self.config.stash[LEFT_OUT] += marked

    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left_out"] = self.config.stash[LEFT_OUT]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get(
            "left_out", 0
        )

    def pytest_terminal_summary(self, terminalreporter):
        if count := self.config.stash[LEFT_OUT]:
            terminalreporter.write_line(
                f"{count} exhaustive tests were left out; make test-all runs them"
            )


@pytest.fixture
def openml_cache(tmp_path):
    """A private copy of the offline OpenML cache with real tasks."""
    source = REAL_DATA / "openml_cache"
    if not source.is_dir():
        pytest.skip(
            "the offline OpenML cache with real tasks is not beside this checkout"
        )
    target = tmp_path / "openml_cache"
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    return target


@pytest.fixture(scope="module")
def light_models():
    """Models with few trees for a whole file: ``pytestmark = pytest.mark.usefixtures(...)``."""
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        yield


@pytest.fixture(scope="session")
def amlb() -> Checkout:
    """The real AMLB, cloned and installed into the cache; skips where it cannot be had."""
    try:
        return ensure_checkout(quiet=True)
    except RunError as error:
        pytest.skip(f"AMLB cannot be had: {error}")
