"""What programs read: AGENTS.md runs in an empty folder, and llms.txt leads somewhere."""

import json
import re
import shlex
from pathlib import Path

import pytest

from amlb_ext.cli import main

ROOT = Path(__file__).parents[1]
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.M | re.S)
#: What makes a suite small.
QUICK = (
    "--kappa .02 --epochs 5 --copies 1 --times 1 --folds 1 --no-train-hard --baseline ridge "
    "--composition weighted -j 1 -q"
)


@pytest.mark.usefixtures("light_models")
@pytest.mark.filterwarnings("ignore")
def test_every_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    run = []
    for block in BLOCK.finditer(AGENTS):
        kind, text = block[1], block[2]
        if AGENTS[: block.start()].rstrip().endswith("*Needs the network:*"):
            continue
        if kind == "python":
            exec(compile(text, "AGENTS.md", "exec"), names)
            continue
        for line in text.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            assert words.pop(0) == "hardsynth"
            if words[0] == "generate":
                words += QUICK.split()
            capsys.readouterr()
            assert main(words) == 0, line
            run.append(words[0])
            if "--json" in words:
                json.loads(capsys.readouterr().out)
    # what the page says beside its examples
    assert names["row"]["overall"] == "better"
    assert set(run) == {
        "compare", "gate", "generate", "verify", "score", "report", "show",
    }  # fmt: skip


def test_links_for_programs_lead_to_pages():
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    # the form of https://llmstxt.org: a title, a summary, lists of links
    assert re.match(r"# .+\n\n> .+", text)
    links = re.findall(r"^- \[.+?\]\((.+?)\): .+", text, flags=re.M)
    assert len(links) == text.count("\n- ")
    assert len(set(links)) == len(links) > 15
    for link in links:
        page = ROOT / link if link == "AGENTS.md" else ROOT / "docs" / link
        assert page.with_suffix(".md").is_file(), link
    config = (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    assert 'html_extra_path = ["llms.txt", "../AGENTS.md"]' in config
