"""Fixtures shared by all wings."""

import os

# before anything numerical is imported: tests run side by side, and threads that wait for each
# other on a busy machine are slower than one
os.environ.setdefault("OMP_NUM_THREADS", "1")
# commands work in one process where a test does not ask for more, for the same reason
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")

import gc
import inspect
import shutil
from pathlib import Path

import exhaustive
import pytest
from commands import hardsynth
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from small_models import lighten

from amlb_ext.core.errors import RunError
from amlb_ext.runner.checkout import Checkout, ensure_checkout

#: Files that take longest. They go first, so that what is left at the end can be shared out; and
#: the first makes the suite that the report's other tests would stand and wait for.
LONGEST = (
    "report/test_build.py",
    "faults/test_bytes.py",
    "report/test_notebook.py",
    "pipeline/test_generate.py",
    "hardening/test_feasibility.py",
    "validity/test_certificate.py",
    "golden/test_golden_bytes.py",
    "validity/test_calibration.py",
    "synthesizers/test_conformance.py",
    "hardening/test_copies.py",
    "hardening/test_harden_function.py",
    "hardening/test_fold.py",
    "pipeline/test_multi_output.py",
    "test_end_to_end.py",
    "test_readme.py",
    "studies/test_every_study.py",
    "pipeline/test_one_f.py",
    "runner/test_install.py",
    "faults/test_disk.py",
    "hardening/test_population_teacher.py",
    "validity/test_certificate_whole.py",
    "faults/test_cluster.py",
)

HERE = Path(__file__).parent
REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Leave exhaustive tests out of a run of everything, and say so; remember signatures."""
    config.pluginmanager.register(_Exhaustive(config, exhaustive.ask(config)))
    _remember_signatures()


def _remember_signatures():
    """Let scikit-learn work out the parameters of a tree once, not once for each tree of a forest.

    `inspect.signature` returns a `__signature__` as it stands. A forest on two hundred rows, as
    there are thousands here, is fitted in five sixths of the time.
    """
    for tree in (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreeClassifier,
        ExtraTreeRegressor,
    ):
        tree.__init__.__signature__ = inspect.signature(tree.__init__)


class _Exhaustive:
    """Leaves exhaustive tests out, and tells of it in one line at the end.

    Each of the processes that share out the tests collects all of them, and none of them prints.
    """

    def __init__(self, config, is_asked):
        self.config = config
        self.is_asked = is_asked
        self.left_out = 0

    def pytest_collection_modifyitems(self, items):
        if self.is_asked:
            return
        kept = [item for item in items if not item.get_closest_marker("exhaustive")]
        left_out = [item for item in items if item.get_closest_marker("exhaustive")]
        self.left_out = len(left_out)
        self.config.hook.pytest_deselected(items=left_out)
        items[:] = kept

    def pytest_sessionfinish(self):
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["left_out"] = self.left_out

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        # a process that died has nothing to tell
        self.left_out = getattr(node, "workeroutput", {}).get("left_out", 0)

    def pytest_terminal_summary(self, terminalreporter):
        if self.left_out:
            terminalreporter.write_line(
                f"{self.left_out} exhaustive tests left out; make test-all runs them"
            )


def pytest_collection_finish():
    """Leave the thousands of collected tests out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    rank = {name: place for place, name in enumerate(LONGEST)}

    def place_of(item):
        inside = item.path.is_relative_to(HERE)
        name = item.path.relative_to(HERE).as_posix() if inside else ""
        return rank.get(name, len(rank))

    items.sort(key=place_of)


@pytest.fixture
def direct(monkeypatch):
    """No proxy stands between the tests and 127.0.0.1."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """An empty folder for what is downloaded; a request that fails is not tried again."""
    monkeypatch.setenv("HARDSYNTH_CACHE", str(tmp_path / "own"))
    monkeypatch.setattr("amlb_ext.sources.download.TRIES", 1)
    return tmp_path / "own"


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


@pytest.fixture
def refused(capsys):
    """A function: run a command that ends with status 2 and one line; return that line."""

    def run(*parts):
        capsys.readouterr()
        assert hardsynth(*parts) == 2
        said = capsys.readouterr().err
        assert said.startswith("hardsynth: error: ")
        assert said.count("\n") == 1, said
        return said

    return run


@pytest.fixture
def output_of(capsys):
    """A function: run a command that ends with a status, 0 if none is named; return its output."""

    def run(*parts, status=0):
        assert hardsynth(*parts) == status
        return capsys.readouterr().out

    return run
