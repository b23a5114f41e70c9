"""Faults of the server and interruptions anywhere: nothing is published twice, nothing is lost."""

import shutil
from pathlib import Path

import pytest
from exhaustive import first_of
from loopback_publish import KEY, Fault, PublishingOpenML
from small_suites import client, publish, write_suite

from amlb_ext.core.errors import PublishError
from amlb_ext.publish import plan_suite, publish_plan, steps
from amlb_ext.publish.server import host_name
from amlb_ext.publish.steps import Journal
from amlb_ext.suite import verify_suite

SIZES = {"cars": ("binary", 90, 12), "homes": ("regression", 40, 9)}
ONLY = {"only": ["cars", "homes"]}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory):
    """The state of a server to which nothing went wrong, and how many lines the journal has."""
    root = write_suite(tmp_path_factory.mktemp("suite") / "hard", SIZES)
    with PublishingOpenML() as server:
        assert publish(root, server, **ONLY).ok
        lines = len(
            list(Journal(next((root / "hardsynth/publish").iterdir())).entries())
        )
        return server.state(), lines


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    return write_suite(tmp_path_factory.mktemp("once") / "hard", SIZES)


@pytest.fixture
def small(once, tmp_path):
    return Path(shutil.copytree(once, tmp_path / "hard"))


def test_without_the_journal_everything_is_found_on_the_server(small, loopback):
    report = publish(small, loopback, **ONLY)
    assert report.ok
    assert loopback.suites == {1: [1000, 1001]}
    tagged = [(kind, number) for kind, number, _ in loopback.tags]
    wanted = [("data", 100), ("data", 101), ("task", 1000), ("task", 1001)]
    assert sorted(tagged) == wanted
    assert loopback.studies[1]["alias"] == report.alias
    state = loopback.state()
    for path in (small / "hardsynth" / "publish").iterdir():
        path.unlink()
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == state
    assert loopback.posts.count("data/") == 2
    assert loopback.posts.count("study/") == 1


#: One more than the lines of a run: per unit 2 + 2 + 1 + 4, and 2 for the suite.
WRITES = 21


@pytest.mark.parametrize("moment", ["before", "after"])
# the lines of the second unit and of the suite; those of the first unit are like the second's
@pytest.mark.parametrize(
    "step", first_of([2, 12, 15, 18, 20, 3, 5, 13, 14, 16, 17, 19], 4)
)
def test_interrupted_at_any_line_of_the_journal_the_same_command_continues(
    small, loopback, wanted, monkeypatch, step, moment
):
    state, lines = wanted
    assert (
        lines == WRITES - 1
    )  # the last number asks for an interruption that never comes
    written, real = [], Journal.write

    def write(self, *words, **about):
        if len(written) == step and moment == "before":
            raise KeyboardInterrupt
        real(self, *words, **about)
        written.append(words)
        if len(written) == step + 1 and moment == "after":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", write)
        if step < lines:
            with pytest.raises(KeyboardInterrupt):
                publish(small, loopback, **ONLY)
        else:
            assert publish(small, loopback, **ONLY).ok
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == state
    assert loopback.posts.count("data/") == 2
    assert loopback.posts.count("study/") == 1
    assert verify_suite(small) == []


POSTS = ("POST data/", "POST task/", "POST data/tag", "POST task/tag", "POST study/")
LOSSES = ("500", "107", "lost", "reset", "garbled", "html")
#: Every request and every way of losing its answer at least twice among the first twelve.
LOST_ANSWERS = [
    (POSTS[(number + shift) % len(POSTS)], how)
    for shift in (0, 2, 1, 3, 4)
    for number, how in enumerate(LOSSES)
]


@pytest.mark.parametrize(("where", "how"), first_of(LOST_ANSWERS, 6))
def test_a_post_without_an_answer_is_looked_for_before_it_is_sent_again(
    small, loopback, wanted, where, how
):
    loopback.faults.append(Fault(where, how))
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == wanted[0]
    assert loopback.faults[0].times == 0
    assert loopback.posts.count("data/") == 2
    assert loopback.posts.count("study/") == 1


@pytest.mark.parametrize("how", ["500", "107", "lost"])
def test_a_get_is_tried_again(small, loopback, wanted, how):
    places = ("data/list", "data/1", "task/", "splits/", "study/")
    loopback.faults += [Fault(f"GET {where}", how, times=2) for where in places]
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == wanted[0]


def test_a_server_that_is_down_ends_the_run_and_the_next_one_continues(
    small, loopback, wanted
):
    loopback.faults.append(Fault("POST data/", "reset", times=1))
    loopback.faults.append(Fault("GET", "500", times=10**6))
    report = publish(small, loopback, wait=0, **ONLY)
    assert not report.ok
    assert {o.status for o in report.outcomes} == {"waiting"}
    assert report.suite_id is None
    loopback.faults.clear()
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == wanted[0]


def test_a_request_that_arrives_late_is_not_sent_twice(
    small, loopback, wanted, monkeypatch
):
    """The connection breaks, and the server takes the data set only some seconds later."""
    slept, real, late = [], loopback.take, []

    def take(path, headers, body):
        if path.endswith("/data/") and not late:
            late.append((path, headers, body))
            return None
        return real(path, headers, body)

    def sleep(seconds):
        slept.append(seconds)
        if len(late) == 1 and len(slept) == 2:
            late.append(real(*late[0]))

    monkeypatch.setattr(loopback, "take", take)
    server = client(loopback)
    server.sleep = sleep
    assert publish_plan(plan_suite(small, **ONLY), server, wait=5).ok
    assert loopback.state() == wanted[0]
    assert slept[:2] == [3.0, 10.0]


def test_what_is_not_active_in_time_is_left_for_the_next_run(small, loopback, wanted):
    loopback.active_after = 1000
    report = publish(small, loopback, wait=0, **ONLY)
    assert not report.ok
    assert [o.status for o in report.outcomes] == ["waiting", "waiting"]
    assert "not active after 0 s" in report.outcomes[0].reason
    assert loopback.tasks == {}
    assert loopback.suites == {}
    loopback.active_after = 0
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == wanted[0]


def test_the_wait_ends_by_the_clock(small, loopback):
    loopback.active_after = 10**6
    now = [0.0]
    server = client(loopback)
    server.sleep = lambda seconds: now.__setitem__(0, now[0] + seconds)
    report = publish_plan(
        plan_suite(small, **ONLY), server, wait=900, clock=lambda: now[0]
    )
    assert now[0] == pytest.approx(900)
    assert sum("data/list/data_id" in r for r in loopback.requests) < 50
    assert report.reason == "2 of 2 are not done"


def test_a_data_set_that_cannot_be_processed_is_said_at_once(small, loopback):
    loopback.broken.add("hardsynth.cars.0")
    report = publish(small, loopback, wait=10**6, **ONLY)
    cars, homes = report.outcomes
    assert (cars.status, homes.status) == ("failed", "good")
    assert "premature end of line" in cars.reason
    assert report.suite_id is None


def test_a_task_that_is_split_otherwise_never_enters_the_suite(small, loopback):
    loopback.wrong.add("hardsynth.cars.0")
    report = publish(small, loopback, only=["cars"])
    assert report.suite_id is None
    assert report.reason == "the server split none of the tasks as wanted"
    report = publish(small, loopback, **ONLY)
    assert not report.ok
    cars, homes = report.outcomes
    assert (cars.status, homes.status) == ("differs", "good")
    assert "of them ours" in cars.reason
    assert loopback.suites == {1: [homes.task_id]}
    assert ("task", cars.task_id, "hardsynth") not in loopback.tags
    assert ("data", cars.data_id, "hardsynth") not in loopback.tags
    kept = Journal(next((small / "hardsynth/publish").iterdir()))
    assert "differs" in [entry["state"] for entry in kept.entries()]


def test_an_upload_that_is_too_large_fails_alone(small, loopback):
    size = {p.unit.name: p.unit.size for p in plan_suite(small, **ONLY).units}
    loopback.largest = min(size.values())
    report = publish(small, loopback, **ONLY)
    assert sorted(o.status for o in report.outcomes) == ["failed", "good"]
    reason = next(o.reason for o in report.outcomes if o.status == "failed")
    assert "larger than the server takes" in reason
    assert "--fit drop" in reason
    assert report.suite_id is None


def test_an_alias_whose_suite_has_other_tasks_is_left_alone(small, loopback):
    first = publish(small, loopback, **ONLY)
    loopback.suites[1] = [1000]
    again = publish(small, loopback, **ONLY)
    assert again.ok
    assert again.alias != first.alias
    assert loopback.suites == {1: [1000], 2: [1000, 1001]}
    assert publish(small, loopback, **ONLY).suite_id == 2
    loopback.suites[2] = [1001]
    third = publish(small, loopback, **ONLY)
    assert third.suite_id is None
    assert "other tasks" in third.reason


def test_a_regenerated_suite_is_published_anew(tmp_path, loopback):
    first = publish(write_suite(tmp_path / "hard", SIZES), loopback, **ONLY)
    folder = tmp_path / "hard" / "hardsynth" / "publish"
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    root = write_suite(tmp_path / "hard", {**SIZES, "cars": ("binary", 91, 13)})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == kept
    again = publish(root, loopback, **ONLY)
    assert again.ok
    assert again.alias != first.alias
    assert again.outcomes[0].data_id == 102
    assert again.outcomes[1].data_id == first.outcomes[1].data_id
    assert loopback.suites == {1: [1000, 1001], 2: [1001, 1002]}


def test_what_was_removed_from_the_server_is_sent_again(small, loopback):
    publish(small, loopback, **ONLY)
    loopback.datasets.pop(100)
    loopback.inputs.pop(1000)
    loopback.tasks.pop(1000)
    loopback.suites[1].remove(1000)
    report = publish(small, loopback, **ONLY)
    assert report.ok
    assert report.outcomes[0].data_id == 102
    assert loopback.suites == {1: [1001], 2: [1001, 1002]}


def test_a_cut_off_line_of_the_journal_is_passed_over(small, loopback, wanted):
    loopback.active_after = 10**6
    publish(small, loopback, wait=0, **ONLY)
    path = next((small / "hardsynth" / "publish").iterdir())
    path.write_text(path.read_text()[:-20])
    loopback.active_after = 0
    assert publish(small, loopback, **ONLY).ok
    assert loopback.state() == wanted[0]
    lines = path.read_text().splitlines()
    assert sum(not line.endswith("}") for line in lines) == 1


def test_two_commands_do_not_publish_at_once(small, loopback):
    plan = plan_suite(small, **ONLY)
    with (
        Journal(plan.suite.layout.publication(host_name(loopback.url))).held(),
        pytest.raises(PublishError, match="another hardsynth publish"),
    ):
        publish_plan(plan, client(loopback))
    assert loopback.posts == []


def test_without_a_journal_nothing_is_sent(small, loopback):
    (small / "hardsynth" / "publish").write_text("a file where the folder should be")
    with pytest.raises(PublishError, match=r"cannot (read|write)"):
        publish(small, loopback, **ONLY)
    assert loopback.posts == []


def test_the_journal_is_on_disk_before_the_program_goes_on(
    small, loopback, monkeypatch
):
    calls, real = [], steps.os.fsync
    monkeypatch.setattr(
        steps.os, "fsync", lambda fd: (calls.append("fsync"), real(fd))[1]
    )
    send = steps.Server.post
    monkeypatch.setattr(
        steps.Server, "post", lambda *a, **k: (calls.append("post"), send(*a, **k))[1]
    )
    assert publish(small, loopback, **ONLY).ok
    posts = [i for i, call in enumerate(calls) if call == "post"]
    assert len(posts) == 9
    assert all(calls[i - 1] == calls[i + 1] == "fsync" for i in posts)


def test_the_key_travels_in_bodies_only(small, loopback):
    loopback.faults.append(Fault("POST data/", "reset"))
    said = []
    publish(small, loopback, say=said.append, **ONLY)
    assert all(KEY.encode() in body for body in loopback.bodies)
    assert KEY not in "".join([*loopback.requests, *said])
    for path in small.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert KEY not in repr(client(loopback))


def test_a_data_set_of_our_name_with_other_content_is_not_ours(small, loopback):
    other = write_suite(small.parent / "other", {"cars": ("binary", 80, 12)})
    publish(other, loopback, only=["cars"])
    report = publish(small, loopback, **ONLY)
    assert report.ok
    assert report.outcomes[0].data_id == 101
