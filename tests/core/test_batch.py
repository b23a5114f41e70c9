"""SLURM through dask-jobqueue, with stand-ins for ``sbatch`` and ``scancel`` that run jobs here."""

import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import time

import psutil
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


TLS = importlib.util.find_spec("cryptography") is not None
LOOPBACK = {"memory": "2GB", "interface": "lo", "security": "tls" if TLS else "none"}


def double(x):
    return 2 * x


def pause(x):
    time.sleep(1)
    return x


@pytest.fixture
def batch_system(tmp_path, monkeypatch):
    """Put commands first on the path, given as texts of shell scripts."""

    def make(**commands):
        for name, text in commands.items():
            command = tmp_path / name
            command.write_text(text.format(folder=tmp_path))
            command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        here = os.path.dirname(__file__)
        monkeypatch.setenv(
            "PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        )
        monkeypatch.chdir(tmp_path)

    return make


def test_jobs_are_asked_for_used_and_given_back(tmp_path, batch_system, capfd):
    batch_system(sbatch=SBATCH, scancel=SCANCEL)
    # without keys, of which everybody is warned; the test below has them
    options = {**LOOPBACK, "queue": "short", "security": "none"}
    where = Execution(workers=1, cluster="slurm", options=options)
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
    warning = "without encryption or keys: whoever reaches it can run code"
    assert warning in capfd.readouterr().err


def look(x):
    """Addresses on which this process, the worker that started it, and its kin listen."""
    worker = psutil.Process().parent()
    addresses = []
    for process in [worker, *worker.parents()]:
        if "distributed" in " ".join(process.cmdline()):
            addresses += _listening(process)
    return x, addresses


@pytest.mark.parametrize(
    "asked", [pytest.param({}, marks=pytest.mark.exhaustive), {"interface": "lo"}]
)
@pytest.mark.skipif(not TLS, reason="cryptography is not installed")
def test_a_cluster_asks_for_keys_and_listens_on_one_interface(
    tmp_path, batch_system, capfd, asked
):
    from distributed import Client
    from distributed.security import Security
    from distributed.utils import get_ip

    batch_system(sbatch=SBATCH, scancel=SCANCEL)
    before = set(_listening())
    options = {"memory": "2GB", **asked}
    where = Execution(workers=1, cluster="slurm", options=options)
    outcomes = run_units([Unit(f"u{i}", str(i), look, (i,)) for i in range(40)], where)
    first = next(outcomes)
    here = set(_listening()) - before
    wanted = "127.0.0.1" if asked else get_ip()
    theirs = first.result[1]
    assert theirs
    assert {address for address, _ in {*here, *theirs}} <= {wanted, "127.0.0.1"}
    said = capfd.readouterr().err
    address = next(word for word in said.split() if word.startswith("tls://")).rstrip(
        ","
    )
    assert (
        f"hardsynth: slurm: listening on {address}, for jobs with this run's own keys"
        in said
    )
    strangers = Security.temporary()
    with pytest.raises(OSError, match=r"(?i)certificate|closed|reset|timed out"):
        Client(address, security=strangers, timeout=5)
    with pytest.raises(OSError, match=r"(?i)expected tls|closed|reset|timed out"):
        Client(address.replace("tls://", "tcp://"), timeout=5)
    outcomes.close()
    assert not [*tmp_path.glob(".hardsynth-keys-*"), *tmp_path.glob(".dask-jobqueue*")]


def test_an_unknown_wish_for_keys_is_refused(batch_system):
    batch_system(sbatch=SBATCH, scancel=SCANCEL)
    where = Execution(cluster="slurm", options={**LOOPBACK, "security": "some"})
    with pytest.raises(ClusterError, match="give security=tls, or security=none"):
        list(run_units([], where))


def _listening(process=None):
    """Addresses on which a process, by default this one, listens."""
    connections = (process or psutil.Process()).net_connections("inet")
    return [tuple(c.laddr) for c in connections if c.status == psutil.CONN_LISTEN]


def test_a_job_that_is_not_taken_ends_the_wait(batch_system, capfd):
    said = "sbatch: error: invalid partition specified: nosuch"
    batch_system(
        sbatch=f'#!/bin/sh\necho "{said}" >&2\nexit 1\n', scancel="#!/bin/sh\n"
    )
    where = Execution(
        workers=2, cluster="slurm", options={**LOOPBACK, "queue": "nosuch"}
    )
    with pytest.raises(
        ClusterError, match=f"slurm takes no jobs: {said} .*queue=short"
    ):
        list(run_units([Unit("u", "0", double, (1,))], where))
    gc.collect()  # an exception that nobody asked for is told of when it goes
    assert "Traceback" not in capfd.readouterr().err
    from dask_jobqueue import JobQueueCluster

    left = [
        thing for thing in gc.get_objects() if issubclass(type(thing), JobQueueCluster)
    ]
    assert [
        cluster.status.name for cluster in left if cluster.status.name != "closed"
    ] == []


@pytest.mark.exhaustive
def test_a_job_that_is_not_taken_leaves_the_work_to_the_others(
    tmp_path, batch_system, capfd
):
    refuse = """#!/bin/sh
mkdir "{folder}/one" 2> /dev/null || {{ echo "over your limit" >&2; exit 1; }}
"""
    batch_system(sbatch=refuse + SBATCH, scancel=SCANCEL)
    where = Execution(workers=2, cluster="slurm", options=LOOPBACK)
    units = [Unit(f"u{i}", str(i), pause, (i,)) for i in range(4)]
    assert {one.index: one.result for one in run_units(units, where)} == {
        0: 0,
        1: 1,
        2: 2,
        3: 3,
    }
    said = capfd.readouterr().err
    assert "hardsynth: slurm did not take a job: over your limit" in said
    assert "Traceback" not in said


def test_an_option_out_of_range_is_one_clear_line(batch_system):
    batch_system(sbatch=SBATCH, scancel=SCANCEL)
    with pytest.raises(ClusterError, match=r"slurm takes no jobs: .*'two'"):
        list(
            run_units(
                [], Execution(cluster="slurm", options={**LOOPBACK, "cores": "two"})
            )
        )


def test_ctrl_c_stays_an_interruption():
    """dask-jobqueue, once imported, would make it exit with 0."""
    code = (
        "import signal\n"
        # a shell's background job, as this may be, begins by ignoring it
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from amlb_ext.core.parallel import batch\n"
        "batch._import_dask_jobqueue('slurm')\n"
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def _has_slurm():
    asked = os.environ.get("HARDSYNTH_NIGHTLY") and shutil.which("sinfo")
    return asked and not subprocess.run(["sinfo", "-h"], capture_output=True).returncode


@pytest.mark.skipif(
    not _has_slurm(), reason="HARDSYNTH_NIGHTLY is not set, or no SLURM answers"
)
def test_a_real_slurm(tmp_path, batch_system):
    batch_system()
    options = {
        "memory": "500MB",
        "walltime": "00:05:00",
        "security": LOOPBACK["security"],
    }
    where = Execution(workers=2, cluster="slurm", options=options)
    units = [Unit(f"u{i}", str(i), double, (i,)) for i in range(6)]
    found = {one.index: one.result for one in run_units(units, where)}
    assert found == {i: 2 * i for i in range(6)}
    assert list(tmp_path.glob("slurm-*.out"))


def test_no_batch_system_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match="slurm"):
        list(run_units([], Execution(cluster="slurm", options={"interface": "lo"})))
