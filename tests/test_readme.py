"""The README runs: its bash and python blocks, in order, in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest

from amlb_ext.cli import main

pytestmark = pytest.mark.usefixtures("light_models")

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.M | re.S)

#: Settings for all blocks that make a suite: less training, fewer rows, one fold.
QUICK = "--kappa .02 --epochs 5 --copies 1 --times 1 --folds 1 --no-train-hard"
QUICK += " --baseline ridge --composition weighted -j 1 -q"


def without_numbers(text):
    """Return the words of a text without numbers, which differ with versions of packages."""
    return re.sub(r"\d+(\.\d+)?", "#", text).split()


def test_it_is_read_in_three_minutes():
    assert len(README.split()) <= 700


def test_every_block_is_of_a_known_kind():
    # console blocks need the network or AMLB; a text block is what the block above it prints
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "text", "console"}


def test_console_commands_parse():
    from amlb_ext.cli.command import all_commands
    from amlb_ext.cli.main import parse

    lines = [
        line for kind, text in BLOCKS if kind == "console" for line in text.splitlines()
    ]
    commands = [shlex.split(line[2:], comments=True) for line in lines]
    ours = [words[1:] for words in commands if words[0] == "hardsynth"]
    assert len(ours) >= 3
    for words in ours:
        parse(all_commands(), words)


def test_bash_and_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for (kind, text), (_, following) in zip(
        BLOCKS, [*BLOCKS[1:], ("", "")], strict=True
    ):
        if kind == "bash":
            for line in filter(None, text.splitlines()):
                words = shlex.split(line)
                assert words[0] == "hardsynth"
                if words[1] == "generate":
                    words += QUICK.split()
                assert main(words[1:]) == 0, line
        elif kind == "python":
            capsys.readouterr()
            exec(compile(text, "README.md", "exec"), {"__name__": "readme"})
            # the answer stands in the block below: the same words with every version
            answer = capsys.readouterr().out
            assert without_numbers(answer) == without_numbers(following)
