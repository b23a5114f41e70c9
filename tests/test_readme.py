"""The README runs: its bash and python blocks, in order, in an empty folder."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from amlb_ext.core.config import build_config

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.M | re.S)

#: The same suite with less training, which takes half as long.
QUICK = ["--kappa", "0.02", "--epochs", "5", "--copies", "1"]


def test_every_block_is_of_a_known_kind():
    # console blocks need the network or AMLB; the others are executed below
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "yaml", "console"}


def test_yaml_blocks_are_valid_settings():
    for kind, text in BLOCKS:
        if kind == "yaml":
            build_config(yaml.safe_load(text))


def test_console_commands_parse():
    from amlb_ext.cli.main import build_parser

    lines = [
        line for kind, text in BLOCKS if kind == "console" for line in text.splitlines()
    ]
    commands = [shlex.split(line[2:], comments=True) for line in lines]
    ours = [words[1:] for words in commands if words[0] == "hardsynth"]
    assert len(ours) >= 5
    for words in ours:
        build_parser().parse_args(words)


def test_bash_and_python_blocks_run(tmp_path):
    for kind, text in BLOCKS:
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
            # each prints its answer: a comparison's verdicts, a suite's contrasts or provenance
            answers = ("where_f_fails", "HardsynthCandidate", "label_agrees")
            assert any(answer in done.stdout for answer in answers)
