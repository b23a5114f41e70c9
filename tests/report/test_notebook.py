"""The example notebook and docs/reference/report.md run; frames have the columns named there.

The notebook's cells are executed as they stand, without Jupyter, and warnings are errors.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tempfile
from pathlib import Path

import pandas as pd
import pytest

from amlb_ext.cli import main
from amlb_ext.cli.command import all_commands
from amlb_ext.cli.main import parse
from amlb_ext.core import config

# what is written and said matters here, not how good the models are
pytestmark = pytest.mark.usefixtures("light_models")

QUICK = ["--composition", "weighted", "--times", "1", "--copies", "1"]

ROOT = Path(__file__).parents[2]
PATH = ROOT / "benchmarks" / "notebooks" / "which_framework.ipynb"
NOTEBOOK = json.loads(PATH.read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
DOCS = (ROOT / "docs" / "reference" / "report.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", DOCS, flags=re.M | re.S)
#: ``| `overall.csv` | framework | `a`, `b` |`` of docs/reference/report.md: columns by table.
FILES = {
    name: re.findall(r"`(\w+)`", columns)
    for name, columns in re.findall(
        r"^\| `(\w+)\.csv` \|[^|]*\|([^|]*)\|$", DOCS, flags=re.M
    )
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The names that the notebook leaves behind, run in order in one fresh namespace."""
    folder = tmp_path_factory.mktemp("notebook")
    names: dict = {"__name__": "notebook", "values": {}}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(tempfile, "tempdir", str(folder))
        # what it does not name: the mixture of the main task
        known = config.build_config
        mixture = {"composition": ["weighted"]}
        patch.setattr(config, "build_config", lambda *layers: known(mixture, *layers))
        for cell in CODE:
            _execute("".join(cell["source"]), cell["id"], names)
    left = [path.name for path in folder.iterdir()]
    assert left == [names["folder"].name]  # everything stands in its own folder
    return names


def _execute(text: str, name: str, names: dict) -> None:
    """Run a cell; keep under ``values`` what its last line shows."""
    tree = ast.parse(text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is not None:
        names["values"][name] = eval(
            compile(ast.Expression(last.value), name, "eval"), names
        )


def test_its_frames_have_the_documented_columns(ran):
    assert list(ran["tasks"]) == [
        *("task", "source", "kind", "target", "classes", "columns", "folds"),
        *("full", "bad", "ga", "synthetic"),
    ]
    assert list(ran["certificate"]) == [
        *("task", "verdict", "measure", "value", "low", "high", "sense", "threshold"),
        *("passed", "text"),
    ]
    assert list(ran["losses"]) == [
        "task",
        "part",
        "fold",
        "framework",
        "metric",
        "loss",
        "rows",
    ]
    for name in ("contrasts", "pairs", "scores", "slices"):
        assert list(ran[name]) == FILES[name], name
    assert set(ran["tasks"]["task"]) == {"toy", "titanic"}
    gains = ran["contrasts"]["where"] == "region minus elsewhere"
    assert (~gains).sum() == 2 * 3 * 2  # tasks, frameworks, all rows and region
    assert len(ran["pairs"]) == 2 * 3  # tasks, pairs of three frameworks


def test_what_it_shows_is_what_its_text_says(ran):
    shown = ran["values"]
    # an empty cell is a check that passed or was not made: every failed one has its number
    assert shown["certificate"].notna().sum().sum() == len(ran["failed"]) > 0
    assert set(shown["contrasts"]["framework"]) == {
        *("HardsynthBaseline", "HardsynthNull", "HardsynthCandidate"),
    }
    # F is linear and toy is not: the candidate's gain is plain, and negative is better
    toy = ran["contrasts"].query("task == 'toy' and framework == 'HardsynthCandidate'")
    assert toy["verdict"].tolist()[:2] == ["better", "no claim"]
    assert toy["high"].iloc[0] < 0
    # a fifth of the rows of two folds is described
    assert "described, not judged" in toy["reason"].iloc[1]
    # ridge has no seed: F fitted again is F, so its predictions were joined to the right rows
    twin = ran["contrasts"].query("framework == 'HardsynthBaseline'")
    assert twin["difference"].abs().max() < 1e-9
    assert (ran["slices"]["p_holm"] <= 0.05).all()
    assert list(shown["pairs"].columns) == ["full", "region"]


def test_the_page_stands_where_it_says_and_its_files_are_the_documented_ones(ran):
    page = ran["page"]
    assert page == ran["values"]["page"]
    assert page.read_text(encoding="utf-8").lstrip().startswith("<!DOCTYPE html>")
    beside = page.parent / "report"
    # it names no segments, no coding model is in its results, and two tasks tell of no wins
    sometimes = {"segments", "coders", "curve", "failures", "wins", "left_to_gain"}
    expected = {*FILES} - sometimes
    assert {path.stem for path in beside.glob("*.csv")} == expected
    for name in expected:
        columns = FILES[name]
        head = list(pd.read_csv(beside / f"{name}.csv", nrows=0))
        # two tasks are too few to test ranks, so there are no columns of p-values
        assert head == (columns[:2] if name == "ranks" else columns), name


def test_commands_in_notebook_and_docs_parse():
    text = "".join(
        "".join(c["source"]) for c in NOTEBOOK["cells"] if c["cell_type"] == "markdown"
    )
    blocks = [*BLOCKS, *re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.M | re.S)]
    assert {kind for kind, _ in blocks} == {"bash", "python", "console"}
    lines = [
        line
        for kind, block in blocks
        if kind == "console"
        for line in block.splitlines()
    ]
    assert len(lines) >= 8
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        assert words[0] == "hardsynth"
        parse(all_commands(), words[1:])


def test_blocks_of_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for kind, text in BLOCKS:
        if kind == "bash":
            for line in filter(None, text.splitlines()):
                words = shlex.split(line)
                assert words[0] == "hardsynth"
                quick = QUICK if words[1] == "generate" else []
                assert main([*words[1:], *quick, "-j", "1", "-q"]) == 0, line
        elif kind == "python":
            _execute(
                text, "docs/reference/report.md", {"__name__": "docs", "values": {}}
            )
    assert "HardsynthCandidate" in capsys.readouterr().out
    assert (tmp_path / "hard" / "hardsynth" / "report.html").is_file()
