"""A Dask cluster on this machine: workers are killed, suspended, and of another version."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cluster_units import note_and_sleep
from folders import contents
from small_faults import CHEAP, write_table

from amlb_ext.core.errors import ClusterError
from amlb_ext.core.parallel import Execution, Unit, run_units

distributed = pytest.importorskip("distributed", reason="Dask is not installed")

#: Seconds without a sign of life after which the scheduler gives a worker up.
TTL = "25s"
COMMAND = [sys.executable, "-m", "amlb_ext", "generate", *CHEAP[:-3]]
COMMAND += ["--folds", "3"]


HELPERS = Path(__file__).parents[1] / "helpers"


class Loopback:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [
                    str(Path(__file__).parents[2]),
                    str(Path(__file__).parents[1] / "helpers"),
                    str(folder),
                ]
            ),
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": TTL,
            "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h",
        }
        self.file = folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                   "--scheduler-file", str(self.file))  # fmt: skip
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.address = json.loads(self.file.read_text())["address"]

    def start(self, *words, **changes):
        with (self.folder / "dask.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                env={**self.env, **changes},
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        self.processes.append(process)
        return process

    def worker(self, name, **changes):
        """Start a worker without a nanny, so that the process is the worker."""
        return self.start("worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
                          "--name", name, **changes)  # fmt: skip

    def wait(self, count):
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count, timeout=90)

    def close(self):
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@pytest.fixture
def loopback(tmp_path):
    cluster = Loopback(tmp_path)
    yield cluster
    cluster.close()


def other_numpy(folder):
    """A place on the path that says NumPy is of another version."""
    told = folder / "other" / "numpy-0.1.dist-info" / "METADATA"
    told.parent.mkdir(parents=True)
    told.write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n")
    return str(folder / "other")


@pytest.mark.exhaustive  # six processes; the others below need two or three each
def test_one_worker_is_killed_and_one_suspended(loopback, tmp_path):
    table = write_table(tmp_path / "t.csv", seed=1, n=120)
    command = [*COMMAND, str(table)]
    subprocess.run(
        [*command, "-o", str(tmp_path / "here"), "-j", "1", "-q"], check=True
    )
    killed, suspended = loopback.worker("killed"), loopback.worker("suspended")
    loopback.worker("good")
    loopback.wait(3)
    there = [*command, "-o", str(tmp_path / "there"), "--cluster", str(loopback.file)]
    with subprocess.Popen([*there, "--logs", str(tmp_path / "logs")]) as process:
        deadline = time.monotonic() + 120
        while not list(tmp_path.glob("logs/*")) and time.monotonic() < deadline:
            time.sleep(0.05)  # until a first fold is in, so that others are in flight
        killed.kill()
        suspended.send_signal(signal.SIGSTOP)
    assert process.returncode == 0
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert len(list(tmp_path.glob("logs/*.log"))) == 3


def test_units_of_a_lost_worker_are_run_by_another(loopback, tmp_path):
    first = loopback.worker("first")
    loopback.wait(1)
    marks = tmp_path / "marks"
    marks.mkdir()
    units = [
        Unit(f"u{i}", str(i), note_and_sleep, (str(marks), f"u{i}", 1.0))
        for i in range(3)
    ]
    outcomes = run_units(units, Execution(cluster=loopback.address))
    found = [next(outcomes)]
    loopback.worker("second")
    loopback.wait(2)
    first.kill()
    found += list(outcomes)
    assert sorted(one.result for one in found) == ["u0", "u1", "u2"]
    assert len({path.suffix for path in marks.iterdir()}) == 2


def test_a_worker_of_another_version_alone_is_one_clear_line(loopback, tmp_path, capfd):
    path = os.pathsep.join([other_numpy(tmp_path), loopback.env["PYTHONPATH"]])
    loopback.worker("other", PYTHONPATH=path)
    loopback.wait(1)
    with pytest.raises(ClusterError, match=r"numpy 0\.1 \(.* here\)"):
        list(run_units([], Execution(cluster=loopback.address)))
    said = capfd.readouterr().err
    assert (
        f"hardsynth: {loopback.address} is neither encrypted nor authenticated" in said
    )


def test_no_scheduler_is_one_clear_line(monkeypatch):
    from amlb_ext.core import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    with pytest.raises(ClusterError, match="no Dask scheduler answers"):
        list(run_units([], Execution(cluster="tcp://127.0.0.1:9")))
