"""A small suite with results, made once for all tests of the report."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest
from commands import BRIEF, words_of
from filelock import FileLock
from hostile_files import reseal
from small_models import lighten

from amlb_ext.cli import main
from amlb_ext.runner import compare_scores

#: One task of each kind; everything chosen to be quick.
SOURCES = ("bundled/toy", "bundled/wine", "bundled/titanic")
# more bad rows than a tenth, so that few test rows are worth a claim where F fails
FAST = words_of(BRIEF, "--baseline ridge --folds 2 --kappa .005 --rule paper -q")


class Scored(NamedTuple):
    """A suite, and results as AMLB writes them."""

    suite: Path
    results: Path

    def run_dir(self, framework: str) -> Path:
        """Return the folder of a framework's run."""
        (found,) = self.results.glob(f"{framework.lower()}.*")
        return found

    def predictions(self, framework: str, task: str, fold: int) -> Path:
        """Return where a job's predictions stand."""
        return (
            self.run_dir(framework)
            / "predictions"
            / task
            / str(fold)
            / "predictions.csv"
        )

    def edit(self, framework: str, task: str, fold: int, change) -> pd.DataFrame:
        """Write predictions anew as ``change`` makes them, all text; return what was written."""
        path = self.predictions(framework, task, fold)
        table = change(pd.read_csv(path, dtype=str, keep_default_na=False))
        table.to_csv(path, index=False)
        return table


@pytest.fixture(scope="session")
def scored(tmp_path_factory) -> Scored:
    """A suite of a regression, a binary and a multiclass task, scored by its integrations.

    The processes that share out the tests make it once: the first of them, while others wait.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return _made(tmp_path_factory.mktemp("scored"), SOURCES, "quick")
    root = tmp_path_factory.getbasetemp().parent / "scored"
    with FileLock(f"{root}.lock"):
        if not (root / "done").exists():
            shutil.rmtree(root, ignore_errors=True)
            _made(root, SOURCES, "quick")
            (root / "done").touch()
    return Scored(root / "hard", root / "results")


@pytest.fixture
def made_of(tmp_path):
    """A function: a source to a suite of it, without certificate, and results."""
    return lambda source: _made(tmp_path, (str(source),), "none")


def _made(root: Path, sources: tuple[str, ...], certificate: str) -> Scored:
    flags = words_of("-o", root / "hard", FAST, "--certificate", certificate)
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        assert main(["generate", *sources, *flags]) == 0
    compare_scores(root / "hard", workers=1, results=root / "results")
    return Scored(root / "hard", root / "results")


@pytest.fixture
def copied(scored, tmp_path) -> Scored:
    """A copy of the suite and its results that a test may break."""
    out = Scored(tmp_path / "hard", tmp_path / "results")
    for source, target in zip(scored, out, strict=True):
        shutil.copytree(source, target)
    return out


@pytest.fixture
def small(copied) -> Scored:
    """The copy, its manifest cut down to ``toy``: a report of it takes a third of the time."""
    return keep_task(copied, "toy")


def keep_task(copied: Scored, name: str) -> Scored:
    """Cut the manifest of a copy down to one task."""

    def cut(manifest):
        manifest["tasks"] = {name: manifest["tasks"][name]}
        manifest["amlb_tasks"] = {
            amlb_name: task
            for amlb_name, task in manifest["amlb_tasks"].items()
            if task["task"] == name
        }
        manifest["order"] = [name]

    reseal(copied.suite, cut)
    return copied


@pytest.fixture
def binary(copied) -> Scored:
    """The copy, cut down to ``titanic``."""
    return keep_task(copied, "titanic")
