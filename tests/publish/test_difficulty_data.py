"""Difficulty data on a server: sent once, linked to its source, and looked at before."""

import pytest
from small_suites import client, write_suite

from amlb_ext.core.errors import PublishError
from amlb_ext.difficulty import plan_difficulty, publish_difficulty

SOURCE = "https://www.openml.org/d/7"


@pytest.fixture
def linked(tmp_path):
    """A suite of a task that has an address."""
    tasks = {"cars": ("binary", 90, 12)}
    return write_suite(tmp_path / "linked", tasks, url=SOURCE)


def test_it_is_sent_once_and_linked_to_its_source(linked, loopback):
    units = plan_difficulty(linked)
    (first,) = publish_difficulty(linked, units, client(loopback))
    (again,) = publish_difficulty(linked, units, client(loopback))
    assert (first.status, again.status) == ("sent", "there")
    assert first.data_id == again.data_id
    (data,) = loopback.datasets.values()
    assert data.name == "hardsynth.difficulty.cars"
    assert loopback.tags == [("data", first.data_id, "hardsynth")]
    about = loopback.about[first.data_id]
    assert about["original_data_url"] == SOURCE
    assert "openml/t/4; data_id 7" in about["description"]
    assert "Left to gain: not measured." in about["description"]
    # no tasks: what is published is data
    assert not loopback.inputs


def test_a_licence_that_forbids_it_is_refused(tmp_path):
    root = write_suite(
        tmp_path / "x", {"a": ("binary", 60, 12)}, licence="CC BY-ND 4.0"
    )
    with pytest.raises(PublishError, match="nothing was written or sent"):
        plan_difficulty(root)
    with pytest.raises(PublishError, match="no such task"):
        plan_difficulty(root, only=["b"])


def test_a_dry_run_writes_what_would_be_sent(suite, output_of, tmp_path, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *a: pytest.fail("network"))
    words = ["publish", str(suite), "--difficulty", "--server", "test", "--dry-run"]
    shown = output_of(words, "--out", tmp_path / "out")
    assert "dry run: nothing was sent to https://test.openml.org" in shown
    text = (tmp_path / "out" / "hardsynth.difficulty.cars.arff").read_text()
    assert len(text.partition("@data\n")[2].splitlines()) == 12
