"""SLURM through dask-jobqueue, with stand-ins for ``sbatch`` and ``scancel`` that run jobs here."""

import os
import time

import pytest

from amlb_ext.core.errors import ClusterError
from amlb_ext.core.parallel import Execution, Unit, run_units

pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")

SBATCH = """#!/bin/sh
cp "$1" "{folder}/script"
setsid sh "{folder}/script" > "{folder}/job.log" 2>&1 &
echo "Submitted batch job $!"
echo "submitted $!" >> "{folder}/calls"
"""
SCANCEL = """#!/bin/sh
echo "cancelled $*" >> "{folder}/calls"
for job in "$@"; do kill -- "-$job" 2> /dev/null; done
exit 0
"""


def double(x):
    return 2 * x


def test_jobs_are_asked_for_used_and_given_back(tmp_path, monkeypatch):
    for name, text in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        command = tmp_path / name
        command.write_text(text.format(folder=tmp_path))
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    here = os.path.dirname(__file__)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    where = Execution(
        workers=1,
        cluster="slurm",
        options={"queue": "short", "memory": "2GB", "interface": "lo"},
    )
    monkeypatch.chdir(tmp_path)
    units = [Unit(f"u{i}", str(i), double, (i,)) for i in range(3)]
    found = {one.index: one.result for one in run_units(units, where)}
    assert found == {0: 0, 1: 2, 2: 4}
    script = (tmp_path / "script").read_text()
    assert "#SBATCH -p short" in script
    calls = (tmp_path / "calls").read_text().split()
    deadline = time.monotonic() + 20
    while "cancelled" not in calls and time.monotonic() < deadline:
        time.sleep(0.2)
        calls = (tmp_path / "calls").read_text().split()
    assert calls.count("submitted") == 1
    assert "cancelled" in calls


def test_no_batch_system_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="slurm"):
        list(run_units([], Execution(cluster="slurm", options={"interface": "lo"})))
