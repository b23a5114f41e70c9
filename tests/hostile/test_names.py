"""Names that are markup, formulas, shell commands or YAML, from the table to page and prompt.

Data sets, columns, categories and labels come from a source, names of frameworks from results
that anyone may have written. Data files keep them as they are, since AMLB must read the bytes; what
people open (page, tables of the report, commands, terminal) must not run them.
"""

import csv
import json
import shlex

import numpy as np
import pandas as pd
import pytest
import yaml
from html_pages import Page
from loopback_publish import KEY
from small_faults import CHEAP
from small_models import shrink
from small_suites import problems

from amlb_ext.cli import main
from amlb_ext.core.errors import DataError
from amlb_ext.runner import compare_scores
from amlb_ext.suite import SuiteFiles

MARKUP = "<img src=x onerror=alert(1)>"
FORMULA = '=HYPERLINK("http://x")'
SHELL = "; rm -rf ~ $(id) `id`"
ESCAPE = "\x1b[31mred\x1b]0;title\x07"
FRAMEWORK = f"{FORMULA}{MARKUP}{SHELL} {{user}} '&amp;"
LABELS = ("</script><script>alert(1)</script>", "@SUM(1+1)|cmd")
TASK = f"{MARKUP.replace('/', '')} __defaults__ {{user}} ; rm -rf x"
#: Elements of the page that could run or load something.
ACTIVE = {"img", "iframe", "object", "embed", "base", "form", "video", "audio"}
ACTIVE |= {"applet", "frame"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Suite, results and report of a table whose every name is hostile."""
    root = tmp_path_factory.mktemp("hostile $(id) ;x")
    rng = np.random.default_rng(0)
    n = 90
    x = rng.normal(size=n)
    table = pd.DataFrame(
        {
            FORMULA: x,
            MARKUP: rng.choice([FORMULA, MARKUP, SHELL, "+1-1", "{user}"], n),
            f"{SHELL}\n{ESCAPE}": rng.integers(0, 5, n),
            "__defaults__": rng.choice(LABELS, n),
        }
    )
    table[f"target {MARKUP}"] = np.where(x + rng.normal(size=n) > 0, *LABELS)
    path = root / f"{TASK}.csv"
    table.to_csv(path, index=False)
    suite, results = root / "hard", root / "results"
    words = [*CHEAP, "--certificate", "none", "--target", table.columns[-1]]
    words += ["--rule", "quantile", "--share", ".3"]
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        patch.setenv("OPENML_APIKEY", KEY)
        assert main(["generate", str(path), "-o", str(suite), *words]) == 0
    compare_scores(suite, workers=1, results=results)
    for scores in results.glob("*/scores/results.csv"):
        frame = pd.read_csv(scores, dtype=str, keep_default_na=False)
        if frame["framework"].str.contains("null", case=False).any():
            continue
        frame["framework"] = FRAMEWORK
        frame.to_csv(scores, index=False)
        for metadata in scores.parents[1].glob("predictions/*/*/metadata.json"):
            about = json.loads(metadata.read_text()) | {"framework": FRAMEWORK}
            metadata.write_text(json.dumps(about))
        break
    next(iter(scores.parents[1].glob("predictions/*/0/predictions.csv"))).unlink()
    assert main(["report", str(suite), "--results", str(results), "-q"]) == 1
    return suite, results, table


def test_the_data_keep_their_bytes_and_the_suite_its_rules(made):
    suite, _, table = made
    assert problems(suite) == []
    opened = SuiteFiles.load(suite)
    (name,) = opened.tasks
    assert name.replace("_", "").replace("-", "").isalnum()
    train = pd.read_csv(opened.pair(name, 0)[0])
    # quotes and colons break frameworks; the manifest has the name itself
    assert train.columns[0] == "_HYPERLINK__http___x__"
    assert opened.tasks[name].coding.columns[0].name == FORMULA
    assert set(train.iloc[:, 1]) <= set(table[MARKUP])
    assert FORMULA in set(train.iloc[:, 1])


def test_definitions_hold_these_names_as_text_alone(made):
    suite, _, _ = made
    for path in (suite / "benchmarks").glob("*.yaml"):
        for entry in yaml.safe_load(path.read_text(encoding="ascii")):
            data = entry["dataset"]
            assert isinstance(data["target"], str)
            assert entry["name"] != "__defaults__"
            for file in data["train"] + data["test"]:
                assert file.startswith("{user}/data/")
                assert file.count("{") == 1


def test_the_page_shows_names_and_runs_none(made):
    suite, _, _ = made
    text = (suite / "hardsynth" / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & ACTIVE
    for _, attributes in page.tags:
        for key, value in attributes.items():
            assert not key.startswith("on")
            if key in ("href", "src", "xlink:href"):
                assert value.startswith(("#", "report/"))
    words = " ".join(page.words)
    assert MARKUP in words
    assert FRAMEWORK[:40] in words
    assert text.count("\x1b") == 0
    assert text.count("<script") == text.count("</script>")
    data = (' type="application/json"', " type=application/json")
    for script in text.split("<script")[1:]:
        plain = script.split("</script>")[0].replace("\\u003c", "<")
        plain = plain.replace("<script>alert(1)", "")
        assert "alert(1)" not in plain or script.startswith(data)


def test_the_reports_tables_hold_no_formula(made):
    suite, _, _ = made
    found = 0
    for path in (suite / "hardsynth" / "report").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as handle:
            cells = [cell for row in csv.reader(handle) for cell in row]
        found += sum(FORMULA in cell for cell in cells)
        if path.name == "results.csv":  # AMLB's own rows, as AMLB wrote them
            continue
        for cell in cells:
            assert not cell.startswith(("=", "@", "\t", "\r")), (path.name, cell)
            if cell.startswith(("+", "-")):
                float(cell)
    assert found


def test_commands_to_copy_are_quoted(made):
    suite, results, _ = made
    report = json.loads((suite / "hardsynth" / "report" / "report.json").read_text())
    assert report["commands"]
    for command in report["commands"]:
        words = shlex.split(command)
        assert words[0] == "hardsynth"
        assert str(results) in words or str(suite) in words
        assert "rm" not in words
    assert "rm" not in shlex.split(SuiteFiles.load(suite).manifest.command)


def test_the_terminal_sees_no_control_character(made, capsys):
    suite, results, _ = made
    assert (
        main(["report", str(suite), "--results", str(results), "--text"]) == 1
    )  # a job is missing
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    with pytest.raises(DataError) as caught:
        raise DataError(f"columns: a, {ESCAPE}\u202e", "use --target \x9b1m")
    assert "\\x1b[31mred" in str(caught.value)
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(str(caught.value))


def test_no_file_of_a_suite_holds_the_openml_key(made):
    suite, _, _ = made
    files = [path for path in suite.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
