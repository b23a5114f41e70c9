"""The bytes of two suites and of a report, held from one change of the code to the next.

A change that is meant to leave results alone (a new name, a moved function, another library) must
leave every checksum here alone. A change that is meant to move a number moves some of them:
``HARDSYNTH_GOLDEN=write python -m pytest tests/golden`` writes the new ones, ``git diff`` shows
which files changed, and CHANGELOG.md says why.

All of it is exhaustive: `make test` leaves it out, CI and whoever names this folder run it.

Numbers depend on the processor and on the numerical libraries in their last digits, so checksums
are kept per environment; in an environment without any the tests skip, and say how to add it.
"""

import hashlib
import json
import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import threadpoolctl
import torch
from commands import hardsynth, words_of

from amlb_ext.cli import main

CHECKSUMS = Path(__file__).with_name("checksums.json")
LIBRARIES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "scikit-learn",
    "torch",
    "matplotlib",
)
WRITE = os.environ.get("HARDSYNTH_GOLDEN") == "write"


def environment():
    """Return in words what the last digits of a number depend on."""
    libraries = [f"{name} {version(name)}" for name in LIBRARIES]
    kernels = {info.get("architecture") for info in threadpoolctl.threadpool_info()} - {
        None
    }
    kernels.add(f"torch {torch.backends.cpu.get_cpu_capability()}")
    return ", ".join([*libraries, *sorted(kernels), processor()])


def processor():
    """Return the processor's model, by which MKL chooses among kernels of one instruction set."""
    said = Path("/proc/cpuinfo")
    if not said.exists():
        return platform.processor()
    about = dict(re.findall(r"^(.*?)\s*: (.*)$", said.read_text(), flags=re.M))
    names = ("vendor_id", "cpu family", "model")
    return " ".join(about.get(name, "") for name in names)


def checksums_of(folder, skip=()):
    """Return the sha256 of every file below a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in files
        if path.name not in skip
    }


def kept_checksums():
    """Return the kept checksums by environment."""
    return json.loads(CHECKSUMS.read_text()) if CHECKSUMS.exists() else {}


# asked before any suite is made, which takes a minute and a half
pytestmark = pytest.mark.skipif(
    not WRITE and environment() not in kept_checksums(),
    reason=f"no golden checksums for {environment()}; "
    "HARDSYNTH_GOLDEN=write keeps those of the code as it stands",
)


def hold(name, found):
    """Compare checksums with those kept for this environment, or keep them where asked to."""
    kept = kept_checksums()
    if WRITE:
        kept.setdefault(environment(), {})[name] = found
        CHECKSUMS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    known = kept[environment()].get(name)
    if known is None:
        pytest.skip(f"no golden checksums of the {name} for {environment()}")
    differ = sorted(
        path
        for path in known.keys() | found.keys()
        if known.get(path) != found.get(path)
    )
    assert differ == [], "bytes changed; see this file's docstring"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    root = tmp_path_factory.mktemp("golden") / "suite"
    sources = ["bundled/toy", "bundled/wine", "bundled/titanic"]
    assert hardsynth("generate", sources, "--folds 1 -o", root, "-j 1 -q") == 0
    return root


@pytest.mark.exhaustive
def test_a_suite_keeps_its_bytes(suite):
    hold("suite", checksums_of(suite))


@pytest.mark.exhaustive
def test_a_suite_with_two_targets_keeps_its_bytes(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"area": rng.random(120).round(3), "town": rng.choice(["n", "s"], 120)}
    )
    broken = 1.0 * (table["area"] > 0.7) * (table["town"] == "s")
    table["price"] = (table["area"] - broken + rng.normal(0, 0.1, 120)).round(3)
    table["rent"] = np.round(
        100 * (table["area"] - 0.6 * broken) + rng.normal(0, 10, 120)
    )
    table.to_csv(tmp_path / "flats.csv", index=False)
    words = words_of("--targets price rent --baseline ridge --synthesizer local")
    words += ["--folds", "2", "-o", str(tmp_path / "suite"), "-j", "1", "-q"]
    assert main(["generate", str(tmp_path / "flats.csv"), *words]) == 0
    hold("two targets", checksums_of(tmp_path / "suite"))


@pytest.mark.exhaustive
def test_the_tables_of_a_report_keep_their_bytes(suite, tmp_path):
    results, page = tmp_path / "results", tmp_path / "page"
    assert main(["score", str(suite), "-r", str(results), "-j", "1", "-q"]) == 0
    assert hardsynth("report", suite, "-r", results, "-o", page, "-j 1 -q") == 0
    # results.csv and jobs.csv name the folder and the time of the run
    hold("report", checksums_of(page, skip=("report.html", "results.csv", "jobs.csv")))
