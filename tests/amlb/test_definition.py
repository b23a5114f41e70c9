"""What a benchmark definition asks of AMLB, and where AMLB looks for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from amlb_ext.amlb.configuration import (
    configured_folds,
    find_definition,
    read_constraint,
    read_user_config,
)
from amlb_ext.amlb.definition import list_jobs, read_definition
from amlb_ext.core.errors import DefinitionError

CONFIG = """\
benchmarks:
  definition_dir: ['{user}/benchmarks', '{root}/resources/benchmarks']
  constraints_file: ['{root}/resources/constraints.yaml', '{user}/constraints.yaml']
"""


def jobs(tmp_path, text, constraint=None, **choice):
    path = tmp_path / "d.yaml"
    path.write_text(text)
    fallback = configured_folds(choice.pop("config", {}))
    found = list_jobs(path, constraint or {}, fallback_folds=fallback, **choice)
    return [(job.task, job.fold) for job in found]


def test_whose_folds_win(tmp_path):
    text = "- {name: own, folds: 1}\n- {name: other}\n"
    assert jobs(tmp_path, text, {"folds": 2}) == [
        ("own", 0),
        ("other", 0),
        ("other", 1),
    ]
    hard = "- {name: __defaults__, folds: 3}\n" + text
    assert len(jobs(tmp_path, hard, {"folds": 2})) == 1 + 3
    assert len(jobs(tmp_path, text)) == 1 + 10
    config = {"benchmarks": {"defaults": {"folds": 4}}}
    assert len(jobs(tmp_path, text, config=config)) == 1 + 4


def test_choice(tmp_path):
    text = "- {name: a b, folds: 3}\n- {name: c, folds: 1}\n- {name: d, enabled: no, folds: 1}\n"
    assert jobs(tmp_path, text, folds=[0, 2]) == [("a_b", 0), ("a_b", 2), ("c", 0)]
    assert jobs(tmp_path, text, tasks=["A b", "c"], folds=[1]) == [("a_b", 1)]
    for choice, words in (
        ({"tasks": ["ab"]}, "did you mean 'a_b'"),
        ({"tasks": ["d"]}, "is disabled"),
        ({"folds": [7]}, "no fold of d is chosen"),
    ):
        with pytest.raises(DefinitionError, match=words):
            jobs(tmp_path, text, **choice)


@pytest.mark.parametrize("text", ["a: 1", "- name", "- {folds: 2}", "[", ""])
def test_no_definition(tmp_path, text):
    with pytest.raises(DefinitionError):
        jobs(tmp_path, text)


def test_finding(tmp_path, monkeypatch):
    user, root = tmp_path / "user", tmp_path / "amlb"
    (user / "benchmarks").mkdir(parents=True)
    (root / "resources" / "benchmarks").mkdir(parents=True)
    (user / "config.yaml").write_text(CONFIG)
    (user / "constraints.yaml").write_text("mine: {cores: 1}\n")
    (root / "resources" / "constraints.yaml").write_text("test: {folds: 2}\n")
    for name in ("hardsynth", "fine"):
        (user / "benchmarks" / f"{name}.yaml").write_text("- {name: a}\n")
    config = read_user_config(user)
    wanted = user / "benchmarks" / "hardsynth.yaml"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hardsynth").mkdir()  # AMLB itself would take this one
    assert find_definition("hardsynth", user, root, config) == wanted
    relative = Path("user") / "benchmarks" / "hardsynth.yaml"
    assert find_definition(str(relative), user, root, config) == wanted
    (root / "resources" / "benchmarks" / "fine.yaml").write_text(
        "[]"
    )  # the user's is first
    assert find_definition("fine", user, root, config).parent == wanted.parent
    with pytest.raises(DefinitionError, match="did you mean 'hardsynth'"):
        find_definition("hardsinth", user, root, config)
    with pytest.raises(DefinitionError, match="no benchmark definition"):
        find_definition("no/where.yaml", user, root, config)
    assert read_constraint("mine", user, root, config) == {"cores": 1}
    assert read_constraint("Test", user, root, config) == {"folds": 2}
    with pytest.raises(DefinitionError, match="did you mean 'mine'"):
        read_constraint("min", user, root, config)
    with pytest.raises(DefinitionError, match=r"no config.yaml"):
        read_user_config(tmp_path)


#: A task called ``on``, and all the ways to say yes and no. Once, one of our two readers refused
#: the first name, and took ``enabled: "no"`` for true.
DISPUTED = """\
- {name: on, dataset: {train: a.csv, test: b.csv}, folds: 1}
- {name: a, enabled: "no", dataset: {train: a.csv, test: b.csv}, folds: 1}
- {name: b, enabled: off, dataset: {train: a.csv, test: b.csv}, folds: 1}
- {name: c, enabled: yes, dataset: {train: a.csv, test: b.csv}, folds: 1}
- {name: d, enabled: 0, dataset: {train: a.csv, test: b.csv}, folds: 1}
- {name: 31, enabled: T, dataset: {train: a.csv, test: b.csv}, folds: 1}
"""
ENABLED = ["on", "c", "31"]


def test_one_reader_for_sources_and_runs(tmp_path):
    assert jobs(tmp_path, DISPUTED) == [(name, 0) for name in ENABLED]
    assert [name for name, _ in read_definition(tmp_path / "d.yaml")] == ENABLED
    with pytest.raises(DefinitionError, match="'enabled: perhaps'"):
        jobs(tmp_path, "- {name: a, enabled: perhaps, folds: 1}\n")


@pytest.mark.amlb
def test_amlb_itself_reads_the_disputed_definition_so(amlb, tmp_path):
    path = tmp_path / "d.yaml"
    path.write_text(
        DISPUTED.replace("name: 31", "name: '31'")
    )  # AMLB wants names that are text
    code = (
        "import json, sys\n"
        "from amlb.benchmark import Benchmark\n"
        "from amlb.benchmarks.parser import benchmark_load\n"
        "tasks = benchmark_load(sys.argv[1], [])[1]\n"
        "print(json.dumps([t.name for t in tasks if Benchmark._is_task_enabled(t)]))\n"
    )
    done = subprocess.run(
        [str(amlb.python), "-c", code, str(path)],
        cwd=amlb.root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == ENABLED
