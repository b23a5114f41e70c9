"""Every attack in every tier that this machine has, and a refusal where none holds."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from LLMCoder import choose
from LLMCoder.battery import PROGRAMS, Target, attack, failed_attacks
from LLMCoder.choose import choose_sandbox
from LLMCoder.confine import MIN_ABI, landlock_abi
from LLMCoder.containers import CONTAINERS, missing_container
from LLMCoder.fold_data import plan_rounds, write_round
from LLMCoder.protocol import Submission, run_program
from LLMCoder.sandbox import (
    Limits,
    Outcome,
    Sandbox,
    SandboxError,
    new_work_folder,
    read_result,
    remove_work_folder,
)

#: What limits and a clean environment alone do not stop: the reason for the other tiers.
OPEN_WITHOUT = {"read a file outside", "write outside", "TCP", "UDP"}


@pytest.fixture(scope="module", params=["builtin", "bwrap", "podman", "docker"])
def tier(request):
    if not sys.platform.startswith("linux"):
        pytest.skip("confinement needs Linux")
    if request.param == "builtin" and landlock_abi() < MIN_ABI:
        pytest.skip("this kernel has no Landlock of version 3")
    if request.param == "bwrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    if request.param in CONTAINERS and missing_container(request.param):
        pytest.skip(missing_container(request.param))
    held = Sandbox(request.param, sys.executable)
    target = Target()
    failed = attack(held, "good", target)
    target.close()
    if failed:
        pytest.skip(f"{request.param} does not work here: {failed}")
    return held


@pytest.fixture(scope="module")
def outcomes(tier):
    # all at once, as the self-test runs them: most of the time goes by waiting for a limit
    return failed_attacks(tier)


@pytest.mark.parametrize("name", PROGRAMS)
def test_attack_is_stopped(outcomes, name):
    succeeded = [text for text in outcomes if text.startswith(f"{name}: ")]
    assert succeeded == []


def outcome_of(tier, code, limits=None, **more):
    """Run a program in a work folder of its own."""
    work = new_work_folder(code)
    outcome = tier.run(work, limits or Limits(seconds=60), **more)
    remove_work_folder(work)
    return outcome


def test_without_a_confinement_the_same_attacks_succeed():
    # a battery that every tier passes would prove nothing if its attacks never worked
    failed = failed_attacks(Sandbox("none", sys.executable), ("good", *OPEN_WITHOUT))
    assert {text.partition(":")[0] for text in failed} == OPEN_WITHOUT


def test_scientific_packages_work_inside(tier):
    code = (
        "import numpy as np\n"
        "from sklearn.ensemble import RandomForestClassifier\n"
        "X = np.random.default_rng(0).normal(size=(60, 3)); y = (X[:, 0] > 0).astype(int)\n"
        "model = RandomForestClassifier(5, n_jobs=2, random_state=0).fit(X, y)\n"
        "print('score', model.score(X, y) > .8)\n"
    )
    outcome = outcome_of(tier, code)
    assert (outcome.reason, outcome.output.strip()) == ("", "score True")


def test_a_container_is_gone_with_its_program(tier):
    if tier.tier not in CONTAINERS:
        pytest.skip(f"{tier.tier} has no containers")
    outcome = outcome_of(tier, "import time; time.sleep(60)", Limits(seconds=3))
    assert outcome.reason == "timeout"
    command = [tier.tier, "ps", "-a", "-q", "--filter", "name=hardsynth-"]
    left = subprocess.run(command, capture_output=True, text=True, check=True)
    assert left.stdout == ""


def test_memory_of_a_program_ends_it_for_that_reason(tier):
    outcome = outcome_of(
        tier,
        "blocks = [bytearray(1 << 26) for _ in range(40)]",
        Limits(seconds=60, memory_mb=768),
    )
    assert outcome.reason == "memory"


#: What a program may leave or say so that its failure looks like ours.
IMITATIONS = {
    "an error": "1 / 0",
    "a status": "raise SystemExit(126)",
    "our message": "print('confinement failed: OSError: x'); raise SystemExit(126)",
    "our message again": "print('The confinement failed: x'); raise SystemExit(1)",
    "bubblewrap's message": "print('bwrap: no permissions'); raise SystemExit(1)",
    "docker's message": "print('docker: Error response'); raise SystemExit(125)",
    "the report itself": (
        "import os\n"
        "for handle in range(256):\n"
        '    try: os.write(handle, b\'{"reason": "", "failed": "x"}\')\n'
        "    except OSError: pass\n"
        "raise SystemExit(1)\n"
    ),
    "a signal": "import os; os.kill(os.getpid(), 9)",
    "bytes": "import os; os.write(1, bytes(range(256)) * 90); raise SystemExit(1)",
    "no work folder": "import shutil; shutil.rmtree('.', True); raise SystemExit(1)",
}


@pytest.mark.parametrize("code", IMITATIONS.values(), ids=IMITATIONS)
def test_a_program_that_fails_is_not_the_harness(tier, code):
    outcome = outcome_of(tier, code)
    assert outcome.reason == "error"


def test_what_breaks_before_the_program_is_the_harness(tier, monkeypatch):
    broken = Sandbox(tier.tier, sys.executable)
    broken.python = "/nowhere/python"
    work = new_work_folder("print(1)")
    assert broken.run(work, Limits(seconds=60)).reason == "harness"
    remove_work_folder(work)


#: What a program may leave where its result belongs; then the folder has to go.
LEFT = {
    "a folder": "os.mkdir('results/predictions.txt')",
    "a deep folder": (
        "os.makedirs('results/predictions.txt')\nos.chdir('results/predictions.txt')\n"
        "for _ in range(3000): os.mkdir('d'); os.chdir('d')\n"
    ),
    "a file for the folder": "os.rmdir('results'); open('results', 'w').close()",
    "no folder": "os.rmdir('results')",
    "a pipe": "os.mkfifo('results/predictions.txt')",
    "no rights": "open('results/predictions.txt', 'w').close(); os.chmod('results', 0)",
    "a folder without rights": "os.mkdir('a', 0o300); os.mkdir('a/b', 0)",
    "zeros": "open('results/predictions.txt', 'wb').write(b'\\0' * 1000)",
    "a name of surrogates": "open(b'results/\\xff', 'w').close()",
}


@pytest.mark.parametrize("code", LEFT.values(), ids=LEFT)
def test_whatever_a_program_leaves_is_booked_to_it_and_removed(
    tier, small_fold, monkeypatch, code
):
    data = small_fold[0]
    [chosen] = plan_rounds(data, np.random.default_rng(0))
    # not pytest's folder, which is private to its user, and not that of others at work
    place = tempfile.mkdtemp()
    os.chmod(place, 0o755)
    monkeypatch.setattr(tempfile, "tempdir", place)
    folder = os.path.join(place, "rows")
    write_round(data, chosen, folder)
    submission = Submission(1, code="import os\n" + code + "\n")
    run_program(submission, data, [(chosen, folder)], tier, Limits(seconds=60))
    assert submission.reason in ("bad predictions", "no predictions", "disk", "error")
    assert not submission.is_valid
    assert os.listdir(place) == ["rows"]
    shutil.rmtree(place)


def test_data_sets_of_packages_are_out_of_reach(tier):
    code = (
        "from sklearn.datasets import make_classification, load_digits, load_sample_images\n"
        "print(make_classification(5)[0].shape)\n"
        "for load in (load_digits, load_sample_images):\n"
        "    try: print('GOT', load())\n"
        "    except Exception as error: print(type(error).__name__)\n"
    )
    outcome = outcome_of(tier, code)
    assert outcome.reason == ""
    assert "GOT" not in outcome.output


def test_data_can_be_read_and_not_changed(tier):
    # not pytest's folder, which is private to its user
    data = Path(tempfile.mkdtemp())
    data.chmod(0o755)
    (data / "a.txt").write_text("rows")
    code = (
        "print(open('data/a.txt').read())\n"
        "try: open('data/a.txt', 'w').write('changed')\n"
        "except OSError as error: print('refused')\n"
    )
    outcome = outcome_of(tier, code, Limits(seconds=20), data=str(data))
    assert outcome.output.split() == ["rows", "refused"]
    assert (data / "a.txt").read_text() == "rows"
    shutil.rmtree(data)


def test_result_that_is_no_plain_file_is_refused(tmp_path):
    work = new_work_folder("", parent=str(tmp_path))
    secret = tmp_path / "secret"
    secret.write_text("x")
    place = os.path.join(work, "results", "predictions.txt")
    assert read_result(work, "predictions.txt", 10) is None
    for make in (os.symlink, os.link):
        make(secret, place)
        with pytest.raises(ValueError, match=r"link|cannot be read"):
            read_result(work, "predictions.txt", 10)
        os.remove(place)
    os.mkfifo(place)
    with pytest.raises(ValueError, match="no plain file"):
        read_result(work, "predictions.txt", 10)
    os.remove(place)
    with open(place, "w") as file:
        file.write("x" * 11)
    with pytest.raises(ValueError, match="11 bytes"):
        read_result(work, "predictions.txt", 10)
    shutil.rmtree(os.path.join(work, "results"))
    os.symlink(tmp_path, os.path.join(work, "results"))
    with pytest.raises(ValueError, match="cannot be read"):
        read_result(work, "secret", 10)


def test_where_nothing_holds_it_refuses(monkeypatch):
    monkeypatch.setattr(choose, "_CHOSEN", {})
    monkeypatch.setattr(choose, "failed_attacks", lambda held: ["TCP: succeeded"])
    with pytest.raises(SandboxError, match="no confinement") as caught:
        choose_sandbox("auto", sys.executable)
    assert "sandbox: none" in str(caught.value)
    held, tests = choose_sandbox("none", sys.executable)
    assert (held.tier, tests) == ("none", {})


def test_an_attack_that_had_no_time_to_try_is_not_stopped():
    class Busy(Sandbox):
        def run(self, *arguments, **named):
            return Outcome("timeout", "", 30.0, 0)

    target = Target()
    busy = Busy("none", sys.executable)
    assert "shows nothing" in attack(busy, "read a file outside", target)
    assert "shows nothing" in attack(busy, "good", target)
    assert attack(busy, "endless loop", target) == ""
    target.close()


def test_an_unknown_tier_is_named():
    with pytest.raises(
        SandboxError, match="choose auto, bwrap, builtin, podman, docker, or"
    ):
        choose_sandbox("gvisor")


# the interpreter: nothing above its own prefix is opened


def link(home, base):
    (home / "python").symlink_to(base)
    return home / "python"


def link_below(home, base):
    (home / "bin").mkdir()
    (home / "bin" / "python").symlink_to(base)
    return home / "bin" / "python"


def virtual(home, base):
    subprocess.run(
        [base, "-m", "venv", "--without-pip", home / "work" / "env"], check=True
    )
    return home / "work" / "env" / "bin" / "python"


def link_to_virtual(home, base):
    (home / "current").symlink_to(virtual(home, base).parents[1])
    return home / "current" / "bin" / "python"


def shim(home, base):
    """As pyenv has it: a script that starts the version which is set."""
    program = home / ".pyenv" / "shims" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {base} "$@"\n')
    program.chmod(0o755)
    return program


def copied(home, base):
    """As uv and conda have it: a whole interpreter below the home; here one that is linked."""
    kept = home / ".local" / "share" / "uv" / "python" / "cpython"
    (kept / "bin").mkdir(parents=True)
    shutil.copy(base, kept / "bin" / "python3")
    (kept / "lib").symlink_to(Path(os.__file__).parents[1])
    return kept / "bin" / "python3"


@pytest.fixture
def home(monkeypatch):
    # not pytest's folder, which is private to its user
    folder = Path(os.path.realpath(tempfile.mkdtemp()))
    folder.chmod(0o755)
    (folder / "key").write_text("KEY-OF-THE-HOME")
    monkeypatch.setenv("HOME", str(folder))
    yield folder
    shutil.rmtree(folder)


BASE = os.path.realpath(sys.executable)


@pytest.mark.parametrize(
    "layout", [link, link_below, virtual, link_to_virtual, shim, copied]
)
def test_an_interpreter_in_the_home_does_not_open_the_home(tier, home, layout):
    held = Sandbox(tier.tier, str(layout(home, BASE)))
    program = (
        "import json, os\nprint('runs')\n"
        f"for path in [{str(home)!r}, {str(home / 'key')!r}, {str(home / 'work')!r}]:\n"
        "    try: print(os.listdir(path) if os.path.isdir(path) else open(path).read())\n"
        "    except OSError: pass\n"
    )
    work = new_work_folder(program)
    outcome = held.run(work, Limits(seconds=30))
    remove_work_folder(work)
    assert outcome.reason == ""
    assert outcome.output.startswith("runs")
    assert "key" not in outcome.output.lower()


def test_an_environment_that_holds_the_home_or_the_test_rows_is_refused(home):
    inside = virtual(home, BASE)
    rows = inside.parents[1] / "tasks" / "data"
    rows.mkdir(parents=True)
    held = Sandbox("builtin", str(inside))
    for closed in (rows, rows.parents[1]):
        with pytest.raises(SandboxError, match="a folder of its own"):
            held.check_closed([str(closed)])
    subprocess.run([BASE, "-m", "venv", "--without-pip", home], check=True)
    tiers = ["builtin"] + (["bwrap"] if shutil.which("bwrap") else [])
    for tier in tiers:
        with pytest.raises(SandboxError, match="and holds") as caught:
            choose_sandbox(tier, str(home / "bin" / "python"))
        assert "\n" not in str(caught.value)
    with pytest.raises(SandboxError, match="no interpreter"):
        Sandbox("builtin", "/bin/true")
