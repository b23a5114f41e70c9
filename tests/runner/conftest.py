"""A fake AMLB, for the tests that do not run the real one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from imported_files import sklearn_pipeline

from amlb_ext.runner.checkout import Checkout

#: Speaks AMLB's command line and writes results in its shape. Jobs of the task ``unloadable``
#: get no row, those of ``failing`` a row without result; framework ``unknown`` ends the run.
FAKE = """
import argparse, os, sys, yaml
parser = argparse.ArgumentParser()
for name in ("framework", "benchmark", "constraint"):
    parser.add_argument(name)
for flag in ("-u", "-o", "--session"):
    parser.add_argument(flag, required=True)
parser.add_argument("-t", nargs="*")
parser.add_argument("-i")
parser.add_argument("-f", nargs="*", type=int)
parser.add_argument("-X", action="append")
args = parser.parse_args()
assert os.path.isabs(args.benchmark) and os.path.isabs(args.u) and os.path.isabs(args.o)
assert os.path.realpath(os.getcwd()) == os.path.realpath(os.path.dirname(__file__))
assert "amlb_sitecustomize" in os.environ["PYTHONPATH"]
assert args.X == ["setup.live_output=False"]
print("Running benchmark")
if args.framework == "unknown":
    print("[ERROR] [amlb:10:00:00.000] \\nERROR:\\nIncorrect framework `unknown`: not listed.")
    sys.exit(1)
if args.i:
    os.makedirs(args.i)  # nobody else may have it
out = os.path.join(args.o, args.session, "scores")
os.makedirs(out)
rows = ["id,task,framework,constraint,fold,type,result,metric,duration,info"]
for task in yaml.safe_load(open(args.benchmark)):
    name = task["name"].replace(" ", "_")
    if task.get("enabled") is False or args.t and name not in args.t:
        continue
    for k in args.f or range(task.get("folds", 2)):
        if name == "slow" and k == 1 and os.path.exists(args.u + "/wait"):
            import subprocess, time
            open(os.path.join(out, "results.csv"), "w").write("\\n".join(rows) + "\\n")
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
            open(args.u + "/child", "w").write(str(child.pid))
            time.sleep(300)
        job = f"local.{args.benchmark}.{args.constraint}.{name}.{k}.{args.framework}"
        if name == "unloadable":
            print(f"\\x1b[31m[ERROR] Job `local.b.c.{name}.{k}.Fw` failed with error: no file x")
            continue
        score, info = ("", "ValueError: no good") if name == "failing" else ("0.5", "")
        rows.append(f"{name},{name},Fw,c,{k},binary,{score},auc,1.5,{info}")
open(os.path.join(out, "results.csv"), "w").write("\\n".join(rows) + "\\n")
"""

FRAMEWORKS = """\
Fw: {version: stable}
constantpredictor: {version: stable}
base: {abstract: true}
gone: {removed: its authors asked for it}
unknown: {version: stable}
"""

CONFIG = """\
benchmarks:
  definition_dir: ['{user}/benchmarks', '{root}/resources/benchmarks']
  constraints_file: ['{root}/resources/constraints.yaml', '{user}/constraints.yaml']
frameworks:
  definition_file: ['{root}/resources/frameworks.yaml', '{user}/frameworks.yaml']
seed: 7
"""


@pytest.fixture
def fake(tmp_path: Path) -> Checkout:
    """A checkout whose ``runbenchmark.py`` is :data:`FAKE`."""
    root = tmp_path / "amlb"
    (root / "amlb").mkdir(parents=True)
    (root / "resources" / "benchmarks").mkdir(parents=True)
    (root / "runbenchmark.py").write_text(FAKE)
    (root / "requirements.txt").write_text("")
    (root / "amlb" / "__version__.py").write_text(
        '_dev_version = "dev"\n__version__ = "2.1.7"\n'
    )
    (root / "resources" / "constraints.yaml").write_text("test:\n  folds: 2\n")
    (root / "resources" / "frameworks.yaml").write_text(FRAMEWORKS)
    (root / "resources" / "frameworks_2023Q2.yaml").write_text("Fw: {version: 1}\n")
    (root / "hardsynth").mkdir()  # fault 7: a folder of the benchmark's name
    return Checkout(root, Path(sys.executable), "2.1.7")


@pytest.fixture
def userdir(tmp_path: Path) -> Path:
    """A user directory with one good, one unloadable and one failing task."""
    user = tmp_path / "user"
    (user / "benchmarks").mkdir(parents=True)
    (user / "config.yaml").write_text(CONFIG)
    (user / "constraints.yaml").write_text("mine:\n  cores: 1\n")
    (user / "frameworks.yaml").write_text("")
    (user / "benchmarks" / "hardsynth.yaml").write_text(
        "- {name: good one, folds: 2}\n- {name: unloadable, folds: 2}\n"
        "- {name: failing, folds: 1}\n- {name: asleep, enabled: false}\n"
    )
    (user / "benchmarks" / "fine.yaml").write_text("- {name: good one}\n")
    return user


@pytest.fixture(scope="session")
def pipeline() -> ModuleType:
    """``frameworks/HardsynthSklearn/pipeline.py``, imported by path."""
    return sklearn_pipeline()
