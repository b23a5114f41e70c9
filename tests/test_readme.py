"""The README runs: its bash and python blocks, in order, in an empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.M | re.S)

#: The same suite with less training, which takes half as long.
QUICK = ["--kappa", "0.02", "--epochs", "5", "--copies", "1"]


def without_numbers(text):
    """Return a text whose numbers are blanked: other versions of packages give others."""
    return re.sub(r"\d+(\.\d+)?", "#", text).split()


def test_it_is_read_in_three_minutes():
    assert len(README.split()) <= 700


def test_every_block_is_of_a_known_kind():
    # console blocks need the network or AMLB; a text block is what the block above it prints
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "text", "console"}


def test_console_commands_parse():
    from amlb_ext.cli.main import build_parser

    lines = [
        line for kind, text in BLOCKS if kind == "console" for line in text.splitlines()
    ]
    commands = [shlex.split(line[2:], comments=True) for line in lines]
    ours = [words[1:] for words in commands if words[0] == "hardsynth"]
    assert len(ours) >= 3
    for words in ours:
        build_parser().parse_args(words)


def test_bash_and_python_blocks_run(tmp_path):
    for (kind, text), (_, following) in zip(
        BLOCKS, [*BLOCKS[1:], ("", "")], strict=True
    ):
        if kind == "bash":
            for line in filter(None, text.splitlines()):
                words = shlex.split(line)
                assert words[0] == "hardsynth"
                if words[1] == "generate":
                    words += QUICK
                command = [sys.executable, "-m", "amlb_ext", *words[1:]]
                subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        elif kind == "python":
            done = subprocess.run(
                [sys.executable, "-c", text],
                cwd=tmp_path,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            # the answer stands below: the same words on every machine
            assert without_numbers(done.stdout) == without_numbers(following)
