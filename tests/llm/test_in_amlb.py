"""The how-to's way through the real AMLB, against replayed answers: the page's own commands.

The programs run in the environment of the tests; by default AMLB installs one for them.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "coding_models.md"
KEY = "sk-replayed-answers"
#: The page's commands again, without the server.
AGAIN = "hardsynth run LLMCoder_quick weirdml_quick -u w -r again\n"

pytestmark = [pytest.mark.amlb, pytest.mark.exhaustive]


def page_commands() -> str:
    """Return the commands of the section that needs no model, as a script."""
    section = PAGE.read_text(encoding="utf-8").partition("## Try it without a model")[2]
    [block] = re.findall(r"```console\n(.*?)```", section.partition("\n## ")[0], re.S)
    return "".join(line.removeprefix("$ ") + "\n" for line in block.splitlines())


def run_script(script, folder, amlb):
    """Run a script of a page in a folder that looks like a checkout."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, command in (("hardsynth", "-m amlb_ext"), ("python", "")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        program.chmod(0o755)
    if not (folder / "tests").exists():
        (folder / "tests").symlink_to(ROOT / "tests")
    env = dict(os.environ)
    env |= {
        "PATH": f"{programs}:{env['PATH']}",
        "PYTHONPATH": f"{ROOT}:{env.get('PYTHONPATH', '')}",
        "AMLB_HOME": str(amlb.root),
        "HARDSYNTH_LLM_CACHE": str(folder / "cache"),
        # minutes of installation less; what AMLB installs otherwise, setup.sh says
        "CODER_PYTHON": sys.executable,
    }
    # ends the server whatever comes
    script = f"set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(amlb, tmp_path_factory):
    """Where the page's commands were run, and once more with the server off."""
    folder = tmp_path_factory.mktemp("coder")
    script = page_commands().replace("8799", free_port())
    assert f"HARDSYNTH_LLM_KEY={KEY}" in script
    printed = run_script(script, folder, amlb)
    (folder / "printed.txt").write_text(printed)
    exported = re.findall(r"^export .*\n", script, flags=re.M)
    run_script("".join(exported) + AGAIN, folder, amlb)
    return folder


def coder_files(folder, results, name):
    found = folder.glob(f"{results}/llmcoder*/llm/drop4_winners/*/{name}")
    return {path.parent.name: path.read_bytes() for path in found}


def test_coder_and_systems_stand_side_by_side(folder):
    tables = folder / "w" / "hardsynth" / "report"
    scores, spread, coders = (
        pd.read_csv(tables / f"{name}.csv").set_index("framework")
        for name in ("scores", "spread", "coders")
    )
    assert spread["unscored"].tolist() == [0, 0, 0]
    assert spread["runs"].tolist() == [2, 2, 2]
    coder = coders.loc["LLMCoder_quick"]
    assert coder["failed"] == pytest.approx(0.4)
    # each column has its own choice: of the test labels it is never the worse one's
    assert coder["max_on_test"] > 0.3
    assert scores.loc["HardsynthReader", "value"] > 0.8
    page = (folder / "w" / "hardsynth" / "report.html").read_text(encoding="utf-8")
    assert "Max@5 on test" in page
    assert "report.html" in (folder / "printed.txt").read_text()


def test_each_run_says_why_submissions_failed_and_what_confined_them(folder):
    runs = coder_files(folder, "results", "run.json")
    assert set(runs) == {"0", "1"}
    for text in runs.values():
        run = json.loads(text)
        reasons = [submission["reason"] for submission in run["submissions"]]
        assert reasons == ["no code", "error", "", "", ""]
        assert run["selected"] in (3, 4, 5)
        assert run["final"] is True
        assert run["sandbox"] in ("bwrap", "builtin")
        assert run["requests"] == 5


def test_the_same_again_without_the_server_byte_for_byte(folder):
    again = [json.loads(t) for t in coder_files(folder, "again", "run.json").values()]
    assert [(run["requests"], run["cached"]) for run in again] == [(0, 5)] * 2
    for name in ("predictions_final.csv", "transcript.json", "submission_4.py"):
        first = coder_files(folder, "results", name)
        assert first == coder_files(folder, "again", name)
        # the folds are different runs
        assert len(first) == 2
    assert len(set(coder_files(folder, "results", "transcript.json").values())) == 2


def test_the_key_is_in_no_file(folder):
    for place in ("w", "results", "again", "cache"):
        for path in (folder / place).rglob("*"):
            if path.is_file() and "programs" not in path.parts:
                assert KEY.encode() not in path.read_bytes(), path
