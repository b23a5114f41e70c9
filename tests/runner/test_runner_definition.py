"""Which jobs AMLB must report."""

from __future__ import annotations

from pathlib import Path

import pytest

from amlb_ext.core.errors import RunError
from amlb_ext.runner.checkout import Checkout
from amlb_ext.runner.definition import (
    Job,
    expected_jobs,
    find_definition,
    read_constraint,
    read_user_config,
)


def jobs(tmp_path: Path, text: str, constraint: dict | None = None, **choice: list) -> list:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    config = choice.pop("config", {})
    return [(j.task, j.fold) for j in expected_jobs(path, constraint or {}, config, **choice)]


def test_whose_folds_win(tmp_path: Path) -> None:
    text = "- {name: own, folds: 1}\n- {name: other}\n"
    assert jobs(tmp_path, text, {"folds": 2}) == [("own", 0), ("other", 0), ("other", 1)]
    hard = "- {name: __defaults__, folds: 3}\n" + text
    assert len(jobs(tmp_path, hard, {"folds": 2})) == 1 + 3
    assert len(jobs(tmp_path, text)) == 1 + 10
    config = {"benchmarks": {"defaults": {"folds": 4}}}
    assert len(jobs(tmp_path, text, config=config)) == 1 + 4


def test_choice(tmp_path: Path) -> None:
    text = "- {name: a b, folds: 3}\n- {name: c, folds: 1}\n- {name: d, enabled: no, folds: 1}\n"
    assert jobs(tmp_path, text, folds=[0, 2]) == [("a_b", 0), ("a_b", 2), ("c", 0)]
    assert jobs(tmp_path, text, tasks=["A b", "c"], folds=[1]) == [("a_b", 1)]
    for choice, words in (
        ({"tasks": ["ab"]}, "did you mean 'a_b'"),
        ({"tasks": ["d"]}, "is disabled"),
        ({"folds": [7]}, "no fold of d is chosen"),
    ):
        with pytest.raises(RunError, match=words):
            jobs(tmp_path, text, **choice)


@pytest.mark.parametrize("text", ["a: 1", "- name", "- {folds: 2}", "[", ""])
def test_no_definition(tmp_path: Path, text: str) -> None:
    with pytest.raises(RunError):
        jobs(tmp_path, text)


def test_finding(
    fake: Checkout, userdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = read_user_config(userdir)
    wanted = userdir / "benchmarks" / "hardsynth.yaml"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hardsynth").mkdir()  # AMLB itself would take this one
    assert find_definition("hardsynth", userdir, fake.root, config) == wanted
    relative = Path("user") / "benchmarks" / "hardsynth.yaml"
    assert find_definition(str(relative), userdir, fake.root, config) == wanted
    (fake.root / "resources" / "benchmarks" / "fine.yaml").write_text("[]")  # the user's is first
    assert find_definition("fine", userdir, fake.root, config).parent == wanted.parent
    with pytest.raises(RunError, match="did you mean 'hardsynth'"):
        find_definition("hardsinth", userdir, fake.root, config)
    with pytest.raises(RunError, match="no benchmark definition"):
        find_definition("no/where.yaml", userdir, fake.root, config)
    assert read_constraint("mine", userdir, fake.root, config) == {"cores": 1}
    assert read_constraint("Test", userdir, fake.root, config) == {"folds": 2}
    with pytest.raises(RunError, match="did you mean 'mine'"):
        read_constraint("min", userdir, fake.root, config)
    with pytest.raises(RunError, match=r"no config.yaml"):
        read_user_config(tmp_path)


def test_jobs_sort() -> None:
    assert sorted([Job("b", 0), Job("a", 1)]) == [Job("a", 1), Job("b", 0)]


def test_words_that_yaml_once_took_for_truth_values(tmp_path: Path) -> None:
    # AMLB's parser (YAML 1.2) reads a task of the name `off`; PyYAML by itself reads False
    assert jobs(tmp_path, "- {name: off, enabled: yes, folds: 1}\n") == [("off", 0)]
