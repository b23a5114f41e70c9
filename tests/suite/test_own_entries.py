"""Frameworks of the user's own beside those that hardsynth writes."""

from __future__ import annotations

import json

import pytest
import yaml
from small_suites import problems, write_suite

from amlb_ext.publish.export import export_suite
from amlb_ext.publish.huggingface import export_for_huggingface
from amlb_ext.suite import Layout, verify_suite
from amlb_ext.suite.shared_files import split_own_entries

FOREST = "sklearn.ensemble.RandomForestClassifier"
INTEGRATIONS = {
    "HardsynthNull": {
        "module": "extensions.HardsynthSklearn",
        "version": "stable",
        "params": {"classifier": FOREST, "encoding": "ordinal"},
    }
}
OWN = f"""
# my own
my_forest:
  module: extensions.HardsynthSklearn   # hardsynth's integration
  version: '1'
  params: {{classifier: {FOREST}, classifier_params: {{n_estimators: 9}}}}
long_flaml: {{extends: flaml}}
mine: {{module: extensions.Mine}}
"""


@pytest.fixture
def suite(tmp_path):
    """A suite to whose frameworks a user added three."""
    root = tmp_path / "suite"
    write_suite(root, {"a": ("binary", 40, 20)}, integrations=INTEGRATIONS)
    path = Layout(root).frameworks
    path.write_text(path.read_text() + OWN)
    code = root / "extensions" / "Mine" / "__init__.py"
    code.parent.mkdir()
    code.write_text("def run(dataset, config): ...\n")
    return root


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("bad: {extends: flaml, setup_cmd: touch ran}", "bad has 'setup_cmd'"),
        ("bad: {module: extensions.Mine, setup_script: x}", "bad has 'setup_script'"),
        ("bad: {module: os.path}", "bad is run by 'os.path'"),
        (
            "bad: {module: extensions.HardsynthSklearn, params: {classifier: os.system}}",
            "os.system",
        ),
    ],
)
def test_what_would_run_a_command_or_an_unlisted_model_is_damage(suite, entry, said):
    path = Layout(suite).frameworks
    path.write_text(path.read_text() + entry + "\n")
    assert any(said in line for line in problems(suite))


def test_an_export_does_not_publish_them(suite, tmp_path):
    export_suite(suite, "https://x.example/a", out=tmp_path / "out")
    export_for_huggingface(suite, out=tmp_path / "hub")
    for folder in (tmp_path / "out", tmp_path / "hub"):
        [frameworks] = folder.rglob("frameworks.yaml")
        assert "HardsynthNull" in frameworks.read_text()
        assert "my_forest" not in frameworks.read_text()
    assert verify_suite(tmp_path / "hub") == []


@pytest.mark.parametrize(
    "text", ["{a: {}, HardsynthNull: {}}\n", "a: [\n", "- a\n", "", "a: {}\na: {}\n"]
)
def test_what_cannot_be_told_apart_is_all_the_suites(text):
    assert split_own_entries(text) == (text, "")


def test_entries_may_stand_anywhere():
    text = "---\nfirst:\n  x: 1\nHardsynthA:\n  y: 2\n\n# third\nthird: {}\nHardsynthB: {}\n"
    suite_part, own_part = split_own_entries(text)
    assert list(yaml.safe_load(suite_part)) == ["HardsynthA", "HardsynthB"]
    assert list(yaml.safe_load(own_part)) == ["first", "third"]
    assert json.dumps(own_part).count("# third") == 1
