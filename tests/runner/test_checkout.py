"""Finding and cloning AMLB, its environment, and what is said when that fails."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands import words_of

from amlb_ext.core.errors import RunError
from amlb_ext.runner import checkout
from amlb_ext.runner.checkout import (
    Checkout,
    amlb_version,
    clone_release,
    ensure_checkout,
)
from amlb_ext.runner.processes import run_command

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def repository(fake, tmp_path):
    """A git repository that holds the fake AMLB under the tag ``v9``."""
    git = words_of("git -C", fake.root, "-c user.name=t -c user.email=t@example.org")
    (fake.root / "resources" / "benchmarks" / "test.yaml").write_text("")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v9"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return fake.root.as_uri()


def test_clone_once(repository, tmp_path):
    cache = tmp_path / "cache"
    root = clone_release(cache, repository, "v9")
    assert amlb_version(root) == "2.1.7"
    (root / "mark").touch()
    assert clone_release(cache, "file:///nowhere", "v9") == root  # not cloned again
    assert (root / "mark").exists()


def test_a_killed_clone_is_cleared_away(repository, tmp_path):
    cache = tmp_path / "cache"
    half = cache / ".automlbenchmark-v9.part-abc" / "amlb"
    half.mkdir(parents=True)
    clone_release(cache, repository, "v9")
    assert sorted(path.name for path in cache.iterdir()) == [
        ".automlbenchmark-v9.lock",
        "automlbenchmark-v9",
    ]


def test_two_at_once_clone_once(repository, tmp_path):
    said: list[str] = []
    threads = [
        threading.Thread(
            target=clone_release, args=(tmp_path / "c", repository, "v9", said.append)
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("cloning" in text for text in said) == 1


def test_failing_clone_is_one_line_and_leaves_nothing(tmp_path):
    with pytest.raises(RunError, match="could not be cloned: fatal") as caught:
        clone_release(tmp_path / "c", (tmp_path / "nowhere").as_uri(), "v9")
    assert "AMLB_HOME" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.name for path in (tmp_path / "c").iterdir()] == [
        ".automlbenchmark-v9.lock"
    ]


def test_no_secrets_in_errors():
    with pytest.raises(RunError) as caught:
        run_command(
            [
                sys.executable,
                "-c",
                "import sys; sys.exit('ERROR: https://u:pw@host/x is gone')",
            ],
            "pip failed",
        )
    assert str(caught.value) == "pip failed: ERROR: https://***@host/x is gone"


@pytest.mark.usefixtures("bare")
def test_given_checkout(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("AMLB_HOME", str(fake.root))
    assert ensure_checkout(python=sys.executable, cache=tmp_path) == Checkout(
        fake.root, Path(sys.executable).absolute(), "2.1.7"
    )
    with pytest.raises(
        RunError, match=r"not an AMLB checkout: it has no runbenchmark.py"
    ):
        ensure_checkout(tmp_path)


@pytest.fixture
def bare(monkeypatch):
    """Environments without requirements, so that making one takes two seconds."""
    monkeypatch.setattr(checkout, "_SMOKE", checkout._PROBE)
    monkeypatch.setattr(checkout, "VERSIONS", (THIS_PYTHON,))


@pytest.mark.usefixtures("bare")
def test_environment_is_made_once_and_mended(fake, tmp_path):
    said: list[str] = []
    half_made = checkout.environment_dir(fake.root, tmp_path, THIS_PYTHON)
    (half_made / "lib").mkdir(parents=True)  # as after a kill
    (half_made / "lib" / "half-a-package").touch()
    python = checkout.ensure_interpreter(fake.root, tmp_path, say=said.append)
    assert python == half_made / "bin" / "python"
    assert python.is_file()
    assert not (half_made / "lib" / "half-a-package").exists()
    assert checkout.ensure_interpreter(fake.root, tmp_path, say=said.append) == python
    assert len(said) == 1
    (fake.root / "requirements.txt").write_text("# other pins\n")
    folder = checkout.environment_dir(fake.root, tmp_path, "3.11")
    assert folder.name != python.parents[1].name


@pytest.mark.usefixtures("bare")
def test_what_cannot_be_used_is_said(fake, tmp_path, monkeypatch):
    (fake.root / "amlb" / "__version__.py").write_text("__version__ = _dev_version\n")
    assert amlb_version(fake.root).startswith("dev")
    (tmp_path / "file").touch()
    refusals = {
        "cannot read": lambda: amlb_version(fake.root / "nowhere"),
        "lacks packages that AMLB needs .*pip install -r": lambda: (
            checkout.ensure_interpreter(fake.root, tmp_path, tmp_path / "python")
        ),
        "HARDSYNTH_CACHE": lambda: clone_release(tmp_path / "file" / "c", "file:///x"),
        "git is not installed": lambda: clone_release(tmp_path / "c", "file:///x"),
        r"AMLB needs Python 2\.7 .*--python": checkout.find_python,
    }
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(checkout, "VERSIONS", ("2.7",))
    for said, ask in refusals.items():
        with pytest.raises(RunError, match=said):
            ask()


@pytest.mark.usefixtures("bare")
def test_own_venv_of_the_checkout_is_used(fake, tmp_path):
    own = fake.root / "venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.symlink_to(sys.executable)
    assert checkout.ensure_interpreter(fake.root, tmp_path) == own
