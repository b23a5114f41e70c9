"""A suite in a user's own AMLB configuration: it works there, and leaves without a trace."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from amlb_runs import run_benchmark
from commands import BRIEF, words_of
from exhaustive import first_of
from folders import contents

from amlb_ext.amlb.configuration import (
    configured_folds,
    find_definition,
    read_constraint,
)
from amlb_ext.amlb.definition import list_jobs
from amlb_ext.cli import main
from amlb_ext.core.errors import RunError, SuiteError
from amlb_ext.report.compare import is_control_framework
from amlb_ext.runner.install import change, install, uninstall
from amlb_ext.runner.install.config_edit import (
    LISTS,
    list_entries,
    our_entries,
    read_config,
    set_entries,
)
from amlb_ext.runner.jobs import read_jobs
from amlb_ext.suite import SuiteFiles, verify_suite

FAST = words_of(BRIEF, "--baseline ridge --folds 2 --kappa .005 -q")
ENTRIES = {
    ("benchmarks", "definition_dir"): ["{user}/hardsynth_suites/a/benchmarks"],
    ("benchmarks", "constraints_file"): ["{user}/hardsynth_suites/a/constraints.yaml"],
    ("frameworks", "definition_file"): ["{user}/hardsynth_suites/a/frameworks.yaml"],
}
CONFIG = """\
# mine, put together by hand
---
seed: 3   # a comment

benchmarks:
    definition_dir:   # two
        - "{user}/benchmarks"
        - '{root}/resources/benchmarks'
frameworks:
    definition_file: ['{root}/resources/frameworks.yaml', "{user}/frameworks.yaml"]  # flow
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(80), "b": rng.choice(["u", "v"], 80)})
    frame["y"] = frame["a"] * 3 + rng.normal(0, 0.3, 80)
    frame.to_csv(root / "t.csv", index=False)
    assert main(["generate", str(root / "t.csv"), "-o", str(root / "hard"), *FAST]) == 0
    return root / "hard"


@pytest.fixture
def suite(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "hard {1}"))


@pytest.fixture
def user(tmp_path):
    root = tmp_path / "user"
    (root / "benchmarks").mkdir(parents=True)
    (root / "config.yaml").write_text(CONFIG)
    (root / "benchmarks" / "own.yaml").write_text("- {name: t, openml_task_id: 1}\n")
    (root / "frameworks.yaml").write_text("Mine: {module: extensions.Mine}\n")
    return root


def load(user):
    return yaml.safe_load((user / "config.yaml").read_text())


# --- the text of config.yaml

SECTIONS = [
    "",
    "{0}:\n",
    "{0}:   # nothing yet\n  # really\n",
    "{0}:\n  {1}: '{{user}}/x'   # one\n",
    "{0}:\n  {1}: {{user}}\n",  # YAML takes this for a mapping
    "{0}:\n  {1}:\n  - a\n  # between\n\n  - b   # last\n  # after\n  more: 1\n",
    "{0}:\n    other: {{x: [1, 2]}}\n    {1}:\n        - 'a'\n",
    "{0}: {{{1}: [a, 'b', ], more: 1}}\n",
    "{0}: {{more: 1}}\n",
    "{0}: {{}}\n",
    "{0}:\n  {1}: [ a,  # first\n    b\n    ]\n",
    "{0}:\n  {1}: []\n",
    "{0}:\n  other: |+\n    text\n\n",
]
TAILS = ["", "# end\n", "aws:\n  x: &y 1\n  z: *y\n\n\n"]


def documents():
    combined = itertools.product(
        SECTIONS, SECTIONS, TAILS, ("\n", "\r\n"), (True, False), (0, 1)
    )
    every = list(combined)
    for one, two, tail, end, whole, bom in random.Random(0).sample(every, 80):
        text = one.format("benchmarks", "definition_dir")
        text += "seed: 1  # s\n" + two.format("frameworks", "definition_file") + tail
        text = text if whole else text.rstrip("\n")
        yield "\ufeff" * bom + text.replace("\n", end)


def test_entries_go_in_and_out_and_all_else_is_kept():
    refused = 0
    for text in documents():
        before = read_config_without_lists(text)
        try:
            new = set_entries(text, ENTRIES)
        except RunError:
            refused += 1
            # a mapping where a list belongs, or a comment within a list on several lines
            assert ": {user}" in text or "[ a,  # first" in text, text
            continue
        assert our_entries(new) == ENTRIES
        back = set_entries(new, {})
        for key, listed in LISTS.items():
            own = list_entries(read_config(text), key)
            own = [listed.default] if own is None else own
            wanted = [*ENTRIES[key], *own] if listed.first else [*own, *ENTRIES[key]]
            assert list_entries(read_config(new), key) == wanted, text
            assert list_entries(read_config(back), key) == own, text
        for other in (new, back):
            assert read_config_without_lists(other) == before
            comments = re.findall(r"# \w+", text)
            assert sorted(re.findall(r"# \w+", other)) == sorted(comments)
            assert other.count("\r") in (0, other.count("\n"))
            assert other.startswith("\ufeff") is text.startswith("\ufeff")
    assert refused < 40


def read_config_without_lists(text):
    config = read_config(text)
    for section, name in LISTS:
        contents = config.get(section) or {}
        contents.pop(name, None)
        config[section] = contents
    return config


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\n", "is not valid YAML: line 2"),
        ("- a\n", "holds a list instead of a mapping"),
        ("a: 1\n---\nb: 2\n", "found another document"),
        ("benchmarks: 3\n", "benchmarks.definition_dir is 3"),
        (
            "benchmarks: {definition_dir: {x: 1}}\n",
            "benchmarks.definition_dir is {'x': 1}",
        ),
        ("x: &l [a]\nbenchmarks: {definition_dir: *l}\n", "an anchor"),
        ("b: &b {definition_dir: [q]}\nbenchmarks:\n  <<: *b\n  y: 1\n", "an anchor"),
        ("benchmarks: {definition_dir: !x [a]}\n", "is not valid YAML"),
        (
            "benchmarks: {definition_dir: [a,  # why\n b]}\n",
            "write by hand benchmarks.definition_dir: ['a', 'b', '{user}/hard",
        ),
        ("a: 1\na: 2\n", "duplicate key"),
        (b"a: \xe9\n", "not in UTF-8"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(suite, user, text, said, refused):
    (user / "config.yaml").write_bytes(
        text if isinstance(text, bytes) else text.encode()
    )
    before = contents(user)
    assert said in refused("install", suite, "--userdir", user)
    assert contents(user) == before


# --- install and uninstall

EMPTY = [
    "",
    "# only a comment\n",
    "---\n",
    "seed: 1",
    "\ufeff",
    "{}",
]


@pytest.mark.parametrize("text", [CONFIG, CONFIG.replace("\n", "\r\n"), *EMPTY])
def test_byte_for_byte_and_nothing_left(suite, user, text):
    (user / "config.yaml").write_bytes(text.encode())
    before = contents(user)
    change = install(suite, user)
    assert change.action == "installed"
    assert load(user)["benchmarks"]["definition_dir"][-1].endswith(
        "/hardsynth/benchmarks"
    )
    assert (user / "config.yaml.hardsynth-backup").read_bytes() == text.encode()
    installed = contents(user)
    assert install(suite, user).action == "unchanged"
    assert contents(user) == installed
    # files of others in our folder stay
    notes = user / "hardsynth_suites/hardsynth/notes.txt"
    notes.write_text("mine")
    change = uninstall(suite, user)
    assert change.action == "uninstalled"
    assert "not ours" in change.notes[0]
    assert notes.read_text() == "mine"
    assert set(contents(user)) - set(before) == {str(notes.relative_to(user))}
    assert (user / "config.yaml").read_bytes() == text.encode()
    notes.unlink()
    assert install(suite, user).action == "installed"
    uninstall(suite, user)
    assert contents(user) == before
    assert not (user / "hardsynth_suites").exists()
    assert verify_suite(suite) == []


def test_amlb_knows_the_suite_and_all_that_it_knew(suite, user):
    install(suite, user)
    config = load(user)
    assert config["seed"] == 3
    path = find_definition("hardsynth", user, Path("amlb"), config)
    tasks = yaml.safe_load(path.read_text())
    jobs = list_jobs(path, {}, fallback_folds=configured_folds(config))
    assert {job.task for job in jobs} == {task["name"] for task in tasks}
    for file in tasks[0]["dataset"]["test"]:
        assert Path(file.format(user="nowhere")).is_file()  # braces are doubled
    assert (
        find_definition("own", user, Path("amlb"), config).parent == user / "benchmarks"
    )
    assert read_constraint("hardsynth_quick", user, Path("amlb"), config)["cores"] == 1
    frameworks = yaml.safe_load(
        (user / "hardsynth_suites/hardsynth/frameworks.yaml").read_text()
    )
    module = frameworks["HardsynthNull"]["module"].replace(".", "/")
    assert (user / module / "exec.py").is_file()
    # the user's own constraint or framework of a name wins: AMLB takes the last
    assert "hardsynth_suites" in config["benchmarks"]["constraints_file"][0]
    assert "hardsynth_suites" in config["frameworks"]["definition_file"][0]


def test_one_suite_under_two_names_leaves_by_name(suite, user, output_of):
    output_of("install", suite, "--userdir", user)
    before = contents(user)
    said = output_of("install", suite, "--userdir", user, "--name again")
    (undo,) = re.findall("take back: *hardsynth (.*)", said)
    with pytest.raises(RunError, match=r"as again, hardsynth \(.*--name"):
        uninstall(suite, user)
    output_of(*map(Path, shlex.split(undo)))
    assert contents(user) == before


def test_dry_run_shows_and_changes_nothing(suite, user, output_of):
    before = contents(user)
    shown = output_of("install", suite, "--userdir", user, "--dry-run")
    assert "+        - '{user}/hardsynth_suites/hardsynth/benchmarks'" in shown
    assert "-    definition_file: ['{root}" in shown
    assert "dry run: nothing was changed" in shown
    assert contents(user) == before
    install(suite, user)
    before = contents(user)
    assert (
        json.loads(
            output_of("uninstall", suite, "--userdir", user, "--dry-run --json")
        )["action"]
        == "uninstalled"
    )
    assert contents(user) == before


OURS = "'{user}/hardsynth_suites/hardsynth"
EDITS = {
    "appended": lambda text: text + "archive: []  # later\n",
    "commented": lambda text: text.replace("# two", "# two, later"),
    "entry after ours": lambda text: text.replace(
        f"{OURS}/benchmarks'\n", f"{OURS}/benchmarks'\n        - /later\n"
    ),
    "in the line of ours": lambda text: text.replace("# flow", "# later"),
    "below a key of ours": lambda text: text.replace(
        "constraints.yaml'\nframe", "constraints.yaml'\n        - /later\nframe"
    ),
    "ours removed": lambda text: (
        re.sub(f" *- {OURS}.*\n", "", text).replace(f"{OURS}/frameworks.yaml', ", "")
        + "\n# later\n"
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_later_edits_of_the_user_stay(suite, user, edit):
    install(suite, user)
    config = user / "config.yaml"
    edited = EDITS[edit](config.read_text())
    assert edited != config.read_text()
    assert "later" in edited
    config.write_text(edited)
    wanted = {key: list_entries(read_config(edited), key) for key in LISTS}
    uninstall(suite, user)
    text = config.read_text()
    assert "later" in text
    assert "hardsynth" not in text
    for key, listed in wanted.items():
        own = [entry for entry in listed if "hardsynth" not in entry]
        assert list_entries(read_config(text), key) == own
    for kept in ("# mine, put together by hand\n---\n", "# a comment", '"{user}/bench'):
        assert kept in text
    assert set(os.listdir(user)) == {"benchmarks", "config.yaml", "frameworks.yaml"}


@pytest.mark.parametrize("order", ["abc", "bca"])
def test_several_suites_leave_in_any_order(made, user, order, tmp_path):
    before = contents(user)
    suites = {}
    for name in "abc":
        suites[name] = shutil.copytree(made, tmp_path / name)
        change = install(suites[name], user, name=name)
        assert change.benchmarks == [name, f"{name}_all"]
        assert f"HardsynthBaseline_{name}" in change.frameworks
    full = load(user)["benchmarks"]["definition_dir"]
    assert [Path(entry).parent.name for entry in full[2:]] == ["a", "b", "c"]
    for count, name in enumerate(order, start=1):
        uninstall(suites[name], user)
        left = load(user)["benchmarks"]["definition_dir"]
        assert len(left) == 5 - count
        assert not any(f"/{name}/" in entry for entry in left)
    assert contents(user) == before


def test_names_that_are_taken(made, suite, user, tmp_path):
    (user / "benchmarks" / "hardsynth_all.yaml").write_text("[]\n")
    before = contents(user)
    with pytest.raises(RunError, match=r"name hardsynth_all is taken by .*--name NAME"):
        install(suite, user)
    with pytest.raises(RunError, match="name validation is taken by AMLB"):
        install(suite, user, name="validation")
    (user / "benchmarks" / "hardsynth_all.yaml").unlink()
    (user / "frameworks.yaml").write_text("hardsynthnull: {}\n")
    with pytest.raises(RunError, match="name HardsynthNull is taken by"):
        install(suite, user)
    (user / "frameworks.yaml").write_text("Mine: {module: extensions.Mine}\n")
    with pytest.raises(RunError, match=r"use letters.*--name a_b"):
        install(suite, user, name="a b")
    assert set(before) - set(contents(user)) == {"benchmarks/hardsynth_all.yaml"}
    install(suite, user)
    other = shutil.copytree(made, tmp_path / "other")
    with pytest.raises(
        RunError, match=r"another suite is installed as hardsynth: .*hard \{1\}"
    ):
        install(other, user)
    install(other, user, name="hardsynth_2")
    text = (user / "hardsynth_suites/hardsynth_2/frameworks.yaml").read_text()
    assert "HardsynthNull_2:" in text
    assert is_control_framework("HardsynthNull_2")


def test_a_suite_made_again_moved_or_gone(suite, user, tmp_path):
    before = contents(user)
    install(suite, user)
    definition = user / "hardsynth_suites/hardsynth/benchmarks/hardsynth.yaml"
    definition.write_text("[]\n")
    assert install(suite, user).action == "updated"  # what was damaged stands again
    assert "t_full_test_0" in definition.read_text()
    moved = suite.rename(tmp_path / "moved")
    change = install(moved, user)
    assert change.action == "updated"
    assert f"{moved}/data" in definition.read_text()
    shutil.rmtree(moved)
    assert uninstall(moved, user).action == "uninstalled"
    assert contents(user) == before
    with pytest.raises(
        RunError, match=r"is not installed in .* \(installed there: none"
    ):
        uninstall(moved, user)


def test_a_link_stays_a_link_and_a_mode_a_mode(suite, user, tmp_path):
    target = tmp_path / "dotfiles" / "amlb.yaml"
    target.parent.mkdir()
    shutil.move(user / "config.yaml", target)
    (user / "config.yaml").symlink_to(target)
    target.chmod(0o600)
    install(suite, user)
    assert (user / "config.yaml").is_symlink()
    assert "hardsynth_suites" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o600
    uninstall(suite, user)
    assert (user / "config.yaml").is_symlink()
    assert target.read_text() == CONFIG
    assert os.listdir(target.parent) == ["amlb.yaml"]


def test_a_place_that_cannot_be_written(suite, user, tmp_path, monkeypatch):
    before = contents(user)
    writable = os.access
    monkeypatch.setattr(
        os,
        "access",
        lambda path, mode: path != user / "config.yaml" and writable(path, mode),
    )
    with pytest.raises(
        RunError, match=r"config.yaml is read-only; nothing was changed"
    ):
        install(suite, user)
    monkeypatch.undo()
    (user / "hardsynth_suites").write_text("a file")
    with pytest.raises(RunError, match="choose another --userdir"):
        install(suite, user)
    (user / "hardsynth_suites").unlink()
    assert contents(user) == before
    with pytest.raises(RunError, match="choose another --userdir"):
        install(suite, user / "config.yaml")
    for place in (suite, shutil.copytree(suite, tmp_path / "other")):
        with pytest.raises(RunError, match="is a suite itself"):
            install(suite, place)
    with pytest.raises(SuiteError, match="holds no suite"):
        install(tmp_path, user)


@pytest.mark.parametrize(
    "unwritten",
    [
        "installed.json",
        "config.yaml",
    ],
)
def test_killed_between_two_writes_and_run_again(suite, user, unwritten, monkeypatch):
    before = contents(user)
    replace = os.replace

    def killed(source, target):
        if Path(target).name == unwritten:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        install(suite, user)
    monkeypatch.undo()
    assert (user / "config.yaml").read_text() == CONFIG
    install(suite, user)
    assert "hardsynth_suites" in (user / "config.yaml").read_text()
    monkeypatch.setattr(change, "remove_suite", lambda *_, **__: os.replace("", ""))
    with pytest.raises(FileNotFoundError):
        uninstall(suite, user)
    monkeypatch.undo()
    assert (user / "config.yaml").read_text() == CONFIG
    uninstall(suite, user)
    assert contents(user) == before


# --- with AMLB itself


@pytest.mark.amlb
@pytest.mark.parametrize("name", first_of(["mine", None], 1))
def test_beside_amlbs_own_example(amlb, suite, tmp_path, name):
    user = Path(shutil.copytree(amlb.root / "examples" / "custom", tmp_path / "custom"))
    before = contents(user)
    change = install(suite, user, name=name)
    assert change.diff.count("\n+ ") == 3
    main_name, baseline = change.benchmarks[0], change.frameworks[0]
    quiet = {"userdir": user, "outdir": tmp_path / "out", "amlb": amlb, "quiet": True}
    # what is the example's own and what is the suite's, each with the other's
    runs = [
        ("GradientBoosting", "filedatasets", "30m4c2f", ["iris_csv"]),
        ("constantpredictor", main_name, None, []),
    ]
    if name is not None:
        runs = [
            (baseline, "filedatasets", None, ["iris_csv"]),
            (baseline, main_name, "hardsynth_quick", []),
        ]
    for framework, benchmark, constraint, tasks in runs:
        outcome = run_benchmark(
            framework, benchmark, constraint, tasks=tasks, folds=[0], **quiet
        )
        assert outcome.ok, outcome.summary()
    jobs = read_jobs(SuiteFiles.load(suite), tmp_path / "out").table
    scored = jobs[jobs["status"] == "scored"]
    listed = yaml.safe_load((suite / "benchmarks" / "hardsynth.yaml").read_text())
    assert set(scored["amlb_task"]) == {task["name"] for task in listed}
    assert set(scored["framework"]) == {runs[-1][0]}
    uninstall(suite, user)
    left = {path: digest for path, digest in contents(user).items() if path in before}
    assert left == before
    assert not list(user.rglob("*hardsynth*"))


def test_bytes_that_are_no_utf8_are_refused(suite, user):
    (user / "config.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(RunError, match="not in UTF-8"):
        install(suite, user)


def test_no_user_directory_before_none_after(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".config").mkdir()
    change = install(suite)
    assert change.userdir == str(tmp_path / ".config" / "automlbenchmark")
    assert load(Path(change.userdir))["benchmarks"]["definition_dir"][0].startswith(
        "{root}"
    )
    uninstall(suite)
    assert list((tmp_path / ".config").iterdir()) == []


def test_a_comment_at_an_entry_of_ours_is_left_to_the_user(suite, user):
    install(suite, user)
    config = user / "config.yaml"
    edited = config.read_text().replace("th/benchmarks'", "th/benchmarks'  # own")
    config.write_text(edited)
    before = contents(user)
    with pytest.raises(RunError, match=r"write by hand benchmarks\.definition_dir"):
        uninstall(suite, user)
    assert contents(user) == before
    lines = edited.splitlines(keepends=True)
    config.write_text("".join(line for line in lines if "# own" not in line))
    uninstall(suite, user)
    assert "hardsynth" not in config.read_text()


def test_a_constraint_of_the_users_stays(suite, user):
    text = CONFIG.replace(
        "benchmarks:\n", "benchmarks:\n    constraints_file: '{user}/c.yaml'\n"
    )
    (user / "config.yaml").write_text(text)
    (user / "c.yaml").write_text("hardsynth_quick: {folds: 1, cores: 7}\n")
    install(suite, user)
    assert (
        read_constraint("hardsynth_quick", user, Path("amlb"), load(user))["cores"] == 7
    )
    uninstall(suite, user)
    assert (user / "config.yaml").read_text() == text
