"""The command as a user meets it; the key in no output."""

import io
import json
import signal
import subprocess
import sys

import pytest
from loopback_publish import KEY
from small_suites import write_suite

from amlb_ext.cli import main
from amlb_ext.publish import server
from amlb_ext.publish.server import api_key, server_url

PUBLISH = [sys.executable, "-m", "amlb_ext", "publish"]

OTHER = "f" * 32


@pytest.fixture(autouse=True)
def awake(monkeypatch):
    """Pauses take no time."""
    monkeypatch.setattr(server.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(server.Server.__init__, "__defaults__", (lambda seconds: None,))


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("OPENML_APIKEY", KEY)


def run(capsys, *words):
    status = main(["publish", *map(str, words)])
    out, err = capsys.readouterr()
    assert KEY not in out + err
    assert OTHER not in out + err
    return status, out, err


def test_a_dry_run_needs_no_key_and_no_network(suite, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "socket.socket.connect", lambda *a: pytest.fail("the network was asked")
    )
    before = sorted(suite.rglob("*"))
    status, out, _ = run(
        capsys, suite, "--server", "production", "--dry-run", "--out", tmp_path / "o"
    )
    assert status == 0
    assert "hardsynth.cars.0" in out
    assert "90 of 90" in out
    assert "dry run: nothing was sent to https://www.openml.org/api/v1/xml" in out
    assert (tmp_path / "o" / "suite.xml").is_file()
    assert sorted(suite.rglob("*")) == before


def test_a_dry_run_as_json_has_every_text(suite, capsys):
    status, out, _ = run(
        capsys, suite, "--server", "test", "--dry-run", "--json", "--only", "cars"
    )
    assert status == 0
    (unit,) = json.loads(out)["units"]
    assert unit["procedure"]["id"] == 28
    assert unit["train"] == [90, 90]
    assert unit["repeats"] == 2
    assert "estimation procedure 28" in unit["data_xml"]
    assert "predictive" in unit["task_xml"] or "area_under" in unit["task_xml"]
    assert json.loads(out)["suite"]["alias"].startswith("hardsynth-")


def test_published_and_published_again(suite, capsys, loopback, key):
    words = (suite, "--server", loopback.url, "--only", "cars", "--only", "homes")
    status, out, err = run(capsys, *words)
    assert status == 0
    assert "suite: 1 (hardsynth-" in out
    assert f"hardsynth generate openml/s/1 --openml-server {loopback.url}" in out
    assert "task 1000, split as wanted" in err
    status, out, err = run(capsys, *words, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["ok"] is True
    assert len(loopback.posts) == 9


def test_waiting_and_differing_tasks_end_in_status_1(suite, capsys, loopback, key):
    loopback.active_after = 1000
    words = (suite, "--server", loopback.url, "--only", "cars", "--only", "wines")
    status, out, _ = run(capsys, *words, "--wait", "0")
    assert status == 1
    assert "no suite yet: 2 of 2 are not done" in out
    assert "the same command continues" in out
    loopback.active_after, loopback.wrong = 0, {"hardsynth.cars.0"}
    status, out, _ = run(capsys, *words)
    assert status == 1
    assert "differs" in out
    assert "suite: 1" in out


def test_no_key_a_wrong_key_and_a_key_of_another_server(
    suite, capsys, loopback, monkeypatch
):
    import openml

    words = (suite, "--server", loopback.url)
    monkeypatch.setattr(openml.config, "apikey", "")
    status, _, err = run(capsys, *words)
    assert status == 2
    assert "(102), nothing was sent" in err
    assert "OPENML_APIKEY" in err
    monkeypatch.setattr(openml.config, "apikey", KEY)
    status, _, err = run(capsys, *words)
    assert status == 2
    assert "the configured key is for" in err
    monkeypatch.setenv("OPENML_APIKEY", OTHER)
    status, _, err = run(capsys, *words)
    assert status == 2
    assert "not known to this server" in err
    assert loopback.posts == []
    assert not any(KEY.encode() in body for body in loopback.bodies)
    # the configured key goes to its own server
    monkeypatch.delenv("OPENML_APIKEY")
    monkeypatch.setattr(openml.config, "server", server_url("production"))
    assert api_key(server_url("production")) == KEY


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--server www.openml.org --dry-run", "is not the address of a server"),
        ("--server produktion --dry-run", "is not the address of a server"),
        ("--server ftp://openml.org --dry-run", "is not the address of a server"),
        ("--server http://openml.org/api/v1/xml --dry-run", "over http"),
        (f"--server https://me:{OTHER}@openml.org --dry-run", "more than an address"),
        (f"--server https://openml.org/?api_key={OTHER} --dry-run", "more than an"),
        ("--server http://[::1 --dry-run", "is not the address of a server"),
        ("--dry-run", "--server"),
        ("--server test --out x", "--dry-run"),
    ],
)
def test_bad_servers(suite, capsys, words, said):
    status, _, err = run(capsys, suite, *words.split())
    assert status == 2
    assert said in err


@pytest.fixture
def production(loopback, monkeypatch):
    """A server of ours in the place of OpenML's own."""
    monkeypatch.setitem(server.SERVERS, "production", loopback.url)
    return loopback


class Terminal(io.StringIO):
    def isatty(self):
        return True


WORDS = ("--server", "production", "--only", "cars")


def test_without_a_terminal_production_needs_yes(suite, capsys, production, key):
    status, out, err = run(capsys, suite, *WORDS)
    assert status == 2
    assert "nothing can be taken back" in err
    assert "add --yes" in err
    assert out == ""
    assert not production.datasets


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_production_is_asked_about_and_no_is_the_default(
    suite, capsys, production, key, monkeypatch, answer
):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    status, _, err = run(capsys, suite, *WORDS)
    assert status == 2
    assert "Send them? [y/N]" in err
    assert "nothing was sent" in err
    assert not production.datasets
    assert run(capsys, suite, *WORDS, "--yes")[0] == 0
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert run(capsys, suite, *WORDS)[0] == 0


def test_the_configured_key_goes_to_its_own_server(monkeypatch):
    import openml

    monkeypatch.setattr(openml.config, "server", "https://www.openml.org/api/v1/xml")
    monkeypatch.setattr(openml.config, "apikey", KEY)
    assert api_key(server_url("production")) == KEY


def test_a_licence_that_forbids_it(tmp_path, capsys, loopback, key):
    root = write_suite(tmp_path / "hard", {"t": ("binary", 40, 9)}, licence="")
    status, _, err = run(capsys, root, "--server", loopback.url)
    assert status == 2
    assert "t: its licence is not stated" in err
    assert loopback.requests == []
    words = (root, "--server", loopback.url, "--licence", "t=CC BY 4.0")
    assert run(capsys, *words)[0] == 0


@pytest.mark.exhaustive  # test_steps.py stops at each write
def test_a_killed_process_is_continued(suite, capsys, loopback, key):
    loopback.active_after = 10**6
    words = [*PUBLISH, str(suite), "--server", loopback.url]
    running = subprocess.Popen(
        words,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in running.stderr:
        if line.startswith("waiting"):
            running.kill()
            break
    running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    loopback.active_after = 0
    assert run(capsys, suite, "--server", loopback.url)[0] == 0
    assert loopback.posts.count("data/") == 6
    assert len(loopback.suites) == 1
