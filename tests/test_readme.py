"""The README runs: its bash and python blocks, in order, in an empty folder."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from amlb_ext.cli import main
from amlb_ext.core import config

pytestmark = pytest.mark.usefixtures("light_models")

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.M | re.S)

#: Settings for all blocks that make a suite: less training, fewer rows, one fold.
QUICK = "--kappa .02 --epochs 5 --copies 1 --times 1 --folds 1 --no-train-hard"
QUICK += " --baseline ridge --composition weighted -j 1 -q"
QUICK_SETTINGS = {
    "search": {"kappa": 0.02, "copies": 1},
    "synthesizer": {"epochs": 5, "times": 1},
    "composition": ["weighted"],
    "train_hard": False,
}


def test_every_block_is_of_a_known_kind():
    # console blocks need the network or AMLB; the others are executed below
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "yaml", "console"}


def test_yaml_blocks_are_valid_settings():
    for kind, text in BLOCKS:
        if kind == "yaml":
            config.build_config(yaml.safe_load(text))


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


def test_bash_and_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    known = config.build_config
    monkeypatch.setattr(
        config, "build_config", lambda *layers: known(QUICK_SETTINGS, *layers)
    )
    for kind, text in BLOCKS:
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
            # each prints its answer: a comparison's verdicts, a suite's contrasts or provenance
            answers = ("where_f_fails", "HardsynthCandidate", "label_agrees")
            printed = capsys.readouterr().out
            assert any(answer in printed for answer in answers)
