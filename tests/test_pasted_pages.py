"""How-to pages are pasted, block by block from the first line, into an empty folder.

``*Needs ...:*`` in the line before a block says that the block needs more than the page: AMLB, the
network, a suite of another page. Text blocks, and lines of console blocks without ``$``, are
output.
"""

import re
import shlex
from pathlib import Path

import pytest
from exhaustive import first_of

from amlb_ext.cli import main

pytestmark = pytest.mark.usefixtures("light_models")

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.M | re.S)
#: What makes a suite small.
QUICK = (
    "--kappa .02 --epochs 5 --copies 1 --times 1 --folds 1 --no-train-hard "
    "--composition weighted -j 1 -q --certificate none"
)
#: Pages that can be pasted; the first ones at every run.
PASTED = [
    "compare", "gate", "tables", "install", "predictions", "columns", "multi-output", "models",
    "thresholds", "splits", "swarm", "in_context", "forecasting", "estimate", "swap",
]  # fmt: skip


def blocks(page):
    """Yield the kind and the text of each block that needs nothing else."""
    text = (HOW_TO / f"{page}.md").read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        before = text[: block.start()].rstrip().splitlines()
        if not (before and re.fullmatch(r"\*Needs .*:\*", before[-1])):
            yield block[1], block[2]


def run_console(text, page):
    for line in text.replace("\\\n", " ").splitlines():
        if not line.startswith("$ "):
            continue
        words = shlex.split(line[2:], comments=True)
        assert words[0] == "hardsynth", f"{page}: {line} is not marked as *Needs ...:*"
        if words[1] in ("generate", "harden") and "--dry-run" not in words:
            words += QUICK.split()
        status = main(words[1:])
        # the gate of an example may be closed, and an estimate withheld
        assert status in ((0, 1, 3) if words[1] in ("gate", "estimate") else (0,)), line


@pytest.mark.parametrize("page", first_of(PASTED, 4))
@pytest.mark.filterwarnings("ignore")
def test_a_page_can_be_pasted(page, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    names = {"__name__": "page"}
    for kind, text in blocks(page):
        if kind == "console":
            run_console(text, page)
        elif kind == "python":
            exec(compile(text, f"{page}.md", "exec"), names)
