"""What others wrote is shown, counted and measured before anything obeys it."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest
import yaml
from loopback_openml import LoopbackOpenML
from small_faults import cheap

from amlb_ext.cli import main
from amlb_ext.core.config import BaselineConfig, SourceConfig, build_config
from amlb_ext.core.display import escape_controls
from amlb_ext.core.errors import ConfigError, ModelError, SourceError, SuiteError
from amlb_ext.core.task import Kind
from amlb_ext.models.registry import resolve_model
from amlb_ext.pipeline.repair import check_version
from amlb_ext.sources import open_specs
from amlb_ext.synthesizers import copula, make_synthesizer

ESCAPES = "\x1b[2J\x1b]0;title\x07\r\x9b31m\u202e\u2066x"


# what is called


@pytest.fixture
def module(tmp_path, monkeypatch, mark):
    """Things that leave a mark when they are called."""
    leave = f"open({str(mark)!r}, 'w').close()"
    (tmp_path / "tempting.py").write_text(
        f"def function():\n    {leave}\n"
        f"class Class:\n    def __init__(self):\n        {leave}\n"
        "    def get_params(self, deep=True):\n        return {}\n"
        "class Instance:\n"
        "    fit = predict = get_params = set_params = None\n"
        f"    def __call__(self):\n        {leave}\n"
        "instance = Instance()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "tempting"


@pytest.mark.parametrize(
    "name", ["function", "Class", "instance", "Instance", "nothing"]
)
def test_only_a_class_with_the_methods_of_an_estimator_is_called(module, name):
    with pytest.raises(
        ModelError, match=r"not a class of scikit-learn estimators|cannot import"
    ):
        resolve_model(BaselineConfig(model=f"{module}.{name}"), Kind.REGRESSION)


@pytest.mark.parametrize(
    "word", ["os.abort", "sys.exit", "builtins.input", "os.getcwd"]
)
def test_a_function_as_a_baseline_or_candidate_is_refused(tmp_path, word, refused):
    pd.DataFrame({"a": range(30), "y": range(30)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    words = ["generate", str(tmp_path / "t.csv"), "-o", str(tmp_path / "out"), "-q"]
    said = refused(words, "--baseline", [word])
    assert f"{word} is not a class of scikit-learn estimators" in said
    assert "name a class that has get_params, fit and predict" in said
    assert not (tmp_path / "out").exists()


# what is printed


def test_text_of_others_moves_no_cursor():
    shown = escape_controls(f"a\tb\n{ESCAPES}")
    assert shown.startswith("a\tb\n")
    assert shown[4:].isprintable()
    assert "\\x1b[2J" in shown
    assert escape_controls("Zürich, 東京, ± → 😀") == "Zürich, 東京, ± → 😀"


def test_commands_print_no_control_character(tmp_path, capsys):
    """Names of files and versions in a suite, names of tables: all are written out."""
    suite = tmp_path / "hard"
    pd.DataFrame({"a": range(30), "y": range(30)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    words = [tmp_path / "t.csv", "-o", suite, "--rule", "quantile"]
    assert cheap("generate", *words, "--certificate", "none") == 0
    (suite / "data" / f"{ESCAPES}.csv").write_text("x")
    for more in ([], ["-q"], ["--json"]):
        assert main(["verify", str(suite), *more]) == 1
        said = capsys.readouterr()
        assert (said.out + said.err).replace("\n", "").isprintable(), more
        assert "\\x1b[2J" in said.out + said.err or "\\u001b[2J" in said.out
    manifest = suite / "hardsynth" / "manifest.json"
    entry = json.loads(manifest.read_text())
    entry["amlb_tasks"]["t_full"]["metric"] = [ESCAPES]
    manifest.write_text(json.dumps(entry))
    main(["verify", str(suite)])
    main(["report", str(suite), "--text", "-q"])
    said = capsys.readouterr()
    assert (said.out + said.err).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "version", ["0.9; touch ran", "$(touch ran)", "1 && x", "9.9\nrm", "-r x"]
)
def test_no_command_holds_words_of_a_manifest(version):
    with pytest.raises(SuiteError) as caught:
        check_version(version)
    assert "pip" not in caught.value.remedy
    with pytest.raises(SuiteError) as caught:
        check_version("9.9.1")
    command = caught.value.remedy.split(",")[0]
    assert shlex.split(command) == ["pip", "install", "hardsynth==9.9.1"]


# how much is fetched


def test_a_list_of_very_many_tasks_is_refused_before_any_is_fetched(
    tmp_path, direct, own_cache, monkeypatch
):
    many = list(range(1, 3001))
    with LoopbackOpenML({}, {k: (1, 1, None) for k in many}, {5: many}) as server:
        options = SourceConfig(
            openml_server=server.url,
            openml_cache=str(tmp_path / "cache"),
        )
        with pytest.raises(SourceError, match="more than 1,000 tasks"):
            list(open_specs(["openml/s/5"], options))
        assert [path for path in server.requests if "study" not in path] == []
        monkeypatch.setattr("amlb_ext.sources.MAX_TASKS", 3000)
        assert len(list(open_specs(["openml/s/5"], options))) == 3000


def test_a_definition_of_very_many_tasks_is_refused(tmp_path, refused, monkeypatch):
    entries = [{"name": f"t{k}", "openml_task_id": k} for k in range(1, 31)]
    (tmp_path / "many.yaml").write_text(yaml.safe_dump(entries))
    words = ["generate", str(tmp_path / "many.yaml"), "-o", str(tmp_path / "out"), "-q"]
    monkeypatch.setattr("amlb_ext.sources.MAX_TASKS", 20)
    assert "name more than 20 tasks" in refused(words)
    monkeypatch.setattr("amlb_ext.sources.MAX_TASKS", 30)
    assert len(list(open_specs([str(tmp_path / "many.yaml")]))) == 30


# how much is held


def test_a_copula_of_very_many_columns_is_refused_before_it_is_made(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((20, 20_000)), rng.random(20)
    model = make_synthesizer(
        build_config({"synthesizer": {"name": "copula"}}).synthesizer
    )
    monkeypatch.setattr(copula, "_shrunk_correlation", None)  # would be called
    with pytest.raises(ConfigError, match=r"20,000 columns need 17.9 GiB") as caught:
        model.fit(X, y, cards=(), n_classes=0, rng=rng)
    assert "--synthesizer local" in caught.value.remedy


def test_a_copula_of_many_classes_counts_their_matrices(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(copula, "MOST_BYTES", 8 * 10**2 * (copula.WORKING + 3))
    for n_classes, fits in ((3, True), (4, False)):
        X, y = rng.random((40, 10)), np.arange(40) % n_classes
        model = copula.GaussianCopula()
        if fits:
            model.fit(X, y, cards=(), n_classes=n_classes, rng=rng)
        else:
            with pytest.raises(ConfigError, match="correlations of 10 columns"):
                model.fit(X, y, cards=(), n_classes=n_classes, rng=rng)
