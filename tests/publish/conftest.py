"""A small suite, and a server to publish it to."""

import os
import shutil

import pytest
from loopback_publish import PublishingOpenML
from small_suites import write_suite


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No proxy between the tests and 127.0.0.1, no key in the environment."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.delenv("OPENML_APIKEY", raising=False)
    assert "OPENML_APIKEY" not in os.environ


@pytest.fixture
def loopback():
    with PublishingOpenML() as server:
        yield server


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """One task per kind; not to be changed."""
    tasks = {
        "cars": ("binary", 90, 12),
        "wines": ("multiclass", 60, 25),
        "homes": ("regression", 80, 20),
    }
    return write_suite(tmp_path_factory.mktemp("written") / "hard", tasks)


@pytest.fixture
def suite(written, tmp_path):
    """A copy of it, which takes a tenth of the time that writing does."""
    return shutil.copytree(written, tmp_path / "hard")
