"""The parts of the demo that take no minute; ``make demo`` runs all of it."""

import pytest

from amlb_ext.cli import demo
from amlb_ext.core.errors import RunError


def test_a_folder_with_something_else_is_left_alone(tmp_path, refused):
    (tmp_path / "mine.txt").write_text("mine")
    assert "choose a folder with -o" in refused("demo -o", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.fixture
def steps(tmp_path):
    with (tmp_path / "demo.log").open("w") as log:
        yield demo._Steps(log)


def test_a_step_shows_its_command_and_keeps_its_output_in_the_log(
    steps, tmp_path, capsys
):
    steps.run("list names", ["completion", "bash"])
    printed = capsys.readouterr().out
    assert "1. list names\n   $ hardsynth completion bash\n" in printed
    assert "COMPREPLY" not in printed
    assert "COMPREPLY" in (tmp_path / "demo.log").read_text()


def test_a_step_that_fails_stops_the_demo_with_its_last_line(steps):
    with pytest.raises(RunError, match="holds no suite"):
        steps.run("check", ["verify", "nope"])


def test_without_amlb_one_line_says_what_was_left_out(steps, tmp_path, capsys):
    (tmp_path / "config.yaml").write_text("{}")
    demo._run_amlb(steps, str(tmp_path), str(tmp_path / "r"), str(tmp_path / "none"))
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line.startswith("   left out, AMLB cannot be had here: ")
