"""The OpenML API key is nowhere: not in the process list, in no file, log, error or journal."""

import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest
from loopback_openml import Dataset, LoopbackOpenML, splits
from loopback_publish import KEY, Fault, PublishingOpenML
from small_suites import write_suite

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import HardsynthError
from amlb_ext.publish.server import Server
from amlb_ext.publish.steps import compare_split, read_task
from amlb_ext.sources import open_specs


@pytest.fixture
def loopback(direct):
    with PublishingOpenML() as server:
        yield server


def command_lines():
    """The arguments of every process that can be seen."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
def test_in_no_process_list_output_or_file(tmp_path, loopback):
    suite = write_suite(tmp_path / "hard", {"cars": ("binary", 60, 12)})
    seen, looks, over = [], [], threading.Event()

    def look():
        while not over.is_set():
            lines = list(command_lines())
            looks.append(any(str(suite).encode() in line for line in lines))
            seen.extend(line for line in lines if KEY.encode() in line)
            over.wait(0.05)

    watcher = threading.Thread(target=look)
    watcher.start()
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ, "OPENML_APIKEY": KEY, "NO_PROXY": "127.0.0.1", "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"), "TMPDIR": str(home),
    }  # fmt: skip
    words = ["publish", str(suite), "--server", loopback.url]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "amlb_ext", *words],
            env=environment,
            capture_output=True,
            text=True,
        )
    finally:
        over.set()
        watcher.join()
    assert loopback.posts, done.stderr
    assert any(looks)
    assert seen == []
    assert KEY not in done.stdout + done.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_in_no_error_not_even_in_its_causes(loopback):
    """A server that sends the key back, in words, in a redirect or in nonsense."""
    server = Server(loopback.url, KEY, sleep=lambda seconds: None)
    for how in ("500", "107", "html", "lost", "reset", "garbled"):
        loopback.faults[:] = [Fault("POST", how, times=10**6)]
        with pytest.raises(HardsynthError) as caught:
            server.post("data/", {"a": KEY}, description=f"<x>{KEY}</x>")
        whole = "".join(traceback.format_exception(caught.value))
        shown = [
            line
            for line in whole.splitlines()
            if not line.lstrip().startswith(("server", "^"))
        ]
        assert KEY not in "\n".join(shown)
        assert KEY not in repr(caught.value) + str(vars(caught.value))


class Elsewhere(LoopbackOpenML):
    """Names another host for data and splits, as anyone who uploads a data set may."""

    other = ""

    def _description(self, data_id):
        return (
            super()
            ._description(data_id)
            .replace(f"{self.root}/data", f"{self.other}/data")
        )

    def _task(self, task_id):
        return (
            super()
            ._task(task_id)
            .replace(f"{self.root}/splits", f"{self.other}/splits")
        )


def test_to_no_host_that_a_data_set_names(tmp_path, direct, own_cache, monkeypatch):
    """The key is the configured one of this very server, and is not needed to read."""
    import openml

    lines = ["@relation t", "@attribute a numeric", "@attribute y {u,v}", "@data"]
    lines += [f"{row},{'uv'[row % 2]}" for row in range(20)]
    features = [("a", "numeric", []), ("y", "nominal", ["u", "v"])]
    made = {1: Dataset("t", "\n".join(lines) + "\n", features, "y")}
    with (
        LoopbackOpenML(made, {11: (1, 1, splits(20))}) as far,
        Elsewhere(made, {11: (1, 1, splits(20))}, {5: [11]}) as near,
    ):
        near.other = far.root
        monkeypatch.setattr(openml.config, "server", near.url)
        monkeypatch.setattr(openml.config, "apikey", KEY)
        monkeypatch.setenv("OPENML_APIKEY", KEY)
        options = SourceConfig(openml_cache=str(tmp_path / "cache"))
        (ref,) = open_specs(["openml/s/5"], options)
        assert len(ref.load()) == 20
        assert {path.split("?")[0] for path in far.requests} == {
            "/data/file/1",
            "/splits/11",
        }
        assert near.requests
        for request in (*near.requests, *far.requests):
            assert KEY not in request
            assert "api_key" not in request
    assert openml.config.apikey == KEY


def test_what_is_published_is_looked_up_without_it(tmp_path, loopback):
    server = Server(loopback.url, KEY, sleep=lambda seconds: None)
    with pytest.raises(HardsynthError):
        compare_split(server, None, read_task(server, 1))
    assert loopback.requests
    assert not any(KEY in request for request in loopback.requests)
