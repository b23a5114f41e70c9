"""An export under the real AMLB: fetched from a web server, run, reported; docker and aws mode."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from functools import partial

import pytest
from amlb_runs import run_benchmark
from exhaustive import first_of
from small_suites import write_suite

from amlb_ext.publish.export.export import export_suite
from amlb_ext.runner.jobs import read_jobs
from amlb_ext.runner.results import join_predictions, read_predictions
from amlb_ext.suite import SuiteFiles
from amlb_ext.suite.layout import files_below

pytestmark = pytest.mark.amlb


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and remembers what was asked for."""

    def log_message(self, *args):
        self.server.asked.append((self.command, self.path))


@pytest.fixture
def web(tmp_path):
    """A web server on loopback for ``tmp_path / 'web'``."""
    folder = tmp_path / "web"
    folder.mkdir()
    serve = partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def joined(suite, results, task, fold=0):
    """Join the one run's predictions to the suite, as a report does; return the rows."""
    opened = SuiteFiles.load(suite)
    jobs = read_jobs(opened, results).table
    row = jobs[(jobs["amlb_task"] == task) & (jobs["fold"] == fold)].iloc[0]
    assert row["status"] == "scored"
    predictions = read_predictions(row["run"], task, fold)
    _, test = opened.pair(task, fold)
    frame = opened.coding(task).read_csv(test)
    truth = frame[opened.amlb_task(task).target]
    return len(join_predictions(predictions, opened.provenance(task, fold), truth))


def test_amlb_fetches_and_runs_an_export_and_the_suite_joins_its_results(
    amlb, web, tmp_path
):
    url = f"http://127.0.0.1:{web.server_port}/some%20folder"
    suites = {  # the same names, other rows
        "one": write_suite(tmp_path / "one", {"cars": ("binary", (60, 12), (50, 14))}),
        "two": write_suite(tmp_path / "two", {"cars": ("binary", (40, 10), (50, 16))}),
    }
    inputs = tmp_path / "inputs"  # AMLB's cache, empty at first, then the first suite's
    rows = {}
    for name, root in suites.items():
        out = tmp_path / f"{name}_export"
        export_suite(root, url, out)
        (tmp_path / "web" / "some folder").mkdir(exist_ok=True)
        for path in (out / "upload").iterdir():
            path.rename(tmp_path / "web" / "some folder" / path.name)
        root.rename(tmp_path / f"away_{name}")  # AMLB must do without it
        outcome = run_benchmark(
            "constantpredictor",
            "hardsynth",
            "hardsynth_quick",
            userdir=out,
            outdir=tmp_path / f"results_{name}",
            tasks=["cars_full"],
            folds=[1] if name == "one" else [0],
            amlb=amlb,
            extra=("-i", str(inputs)),
            quiet=True,
        )
        assert outcome.ok, outcome.summary()
        fold = 1 if name == "one" else 0
        rows[name] = joined(
            tmp_path / f"away_{name}", tmp_path / f"results_{name}", "cars_full", fold
        )
    assert rows == {"one": 14, "two": 10}
    asked = web.asked
    assert [method for method, _ in asked] == ["HEAD", "GET", "HEAD", "GET"]
    assert len({path for _, path in asked}) == 2
    assert len(list(inputs.glob("cars_full-*"))) == 2


#: Runs AMLB's own code of aws and docker mode, with a bucket and a shell that only remember.
MODES = """
import json, os, sys
sys.path.insert(0, os.getcwd())
import amlb
from amlb import AWSBenchmark, DockerBenchmark, runners
from amlb.defaults import default_dirs
from amlb.utils import Namespace as ns, config_load
user, out = sys.argv[1:]
amlb.resources.from_configs(
    config_load("resources/config.yaml"), default_dirs,
    config_load(os.path.join(user, "config.yaml")),
    ns.parse({"user_dir": user, "output_dir": out, "script": "runbenchmark.py", "sid": "sid",
              "run_mode": "aws", "aws.region": "us-east-1", "test_server": False}),
)
rget, rconfig = amlb.resources.get(), amlb.resources.config()
class Bucket:
    name, files = "bucket", {}
    def upload_file(self, path, key): self.files[key] = path
bench = AWSBenchmark("HardsynthCandidate", "hardsynth", "hardsynth_quick", region="us-east-1")
bench.bucket = Bucket()
bench._upload_resources()
script = bench._ec2_startup_script("key", "HardsynthCandidate hardsynth")
said = []
runners.docker.run_cmd = lambda command, **how: said.append(command) or ("", "")
bench = DockerBenchmark("HardsynthCandidate", "hardsynth", "hardsynth_quick")
bench.image = "image"
bench._start_container("HardsynthCandidate hardsynth hardsynth_quick")
print("\\n" + json.dumps({"files": Bucket.files, "script": script, "docker": said,
                          "seed": rconfig.seed}))
"""


def modes(amlb, user, out):
    """Return what AMLB's aws and docker mode would upload and start."""
    done = subprocess.run(
        [str(amlb.python), "-W", "ignore", "-c", MODES, str(user), str(out)],
        cwd=amlb.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("exported", first_of([True, False], 1))
def test_aws_and_docker_mode_take_what_a_run_needs(amlb, tmp_path, exported):
    user = write_suite(
        tmp_path / "hard",
        {"cars": ("binary", 60, 12)},
        integrations={"HardsynthCandidate": {"module": "extensions.HardsynthSklearn"}},
    )
    if exported:
        export_suite(user, "https://host.org/x", tmp_path / "out")
        user = tmp_path / "out"
    told = modes(amlb, user, tmp_path / "results")
    files = told["files"]
    assert isinstance(files, dict)
    ours = {
        name
        for name in files_below(user)
        if not name.startswith(("hardsynth/", "upload/"))
    }
    # a run writes into both: what it notes of a set-up, and what Python compiles
    written = {name for name in ours if "/.setup/" in name or "/__pycache__/" in name}
    sent = {key.removeprefix("ec2/sid/user/") for key in files}
    assert sent - written == ours - written
    assert any(name.startswith("data/") for name in sent) is not exported
    script = str(told["script"])
    assert "aws s3 cp 's3://bucket/ec2/sid/user' /s3bucket/user --recursive" in script
    assert "-u /s3bucket/user" in script
    (command,) = told["docker"]
    assert f"-v {user.resolve()}:/custom" in command
    assert "-u /custom -s skip" in command
    assert told["seed"] == 1
