"""OpenML tasks and suites, from the offline cache and from a loopback server."""

import csv
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from folders import contents

from amlb_ext.core.config import SourceConfig
from amlb_ext.core.errors import NetworkError, SourceError
from amlb_ext.sources import open_specs


def one(spec, options):
    return next(open_specs([spec], options)).load()


@pytest.fixture
def options(openml_server, tmp_path):
    return SourceConfig(
        openml_server=openml_server.url,
        openml_cache=str(tmp_path / "cache"),
    )


def test_all_real_tasks_load_offline_and_the_cache_stays_as_it_was(openml_cache):
    before = contents(openml_cache)
    options = SourceConfig(openml_cache=str(openml_cache))
    with (openml_cache / "MANIFEST.csv").open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 19
    for row in rows:
        task = one(f"openml/t/{row['task_id']}", options)
        assert len(task) == int(row["rows"]), row
        hidden = {"vineyard": 1}.get(row["name"], 0)  # 'year' is its row id
        assert len(task.columns) == int(row["cols"]) - 1 - hidden, row
        assert task.kind.is_classification == (row["type"] == "classification"), row
        assert len(task.folds) == int(row["folds"]), row
        assert int(task.features.isna().sum().sum()) == int(row["missing"]), row
        assert task.target_name == row["target"]
        assert task.origin.ids["task_id"] == row["task_id"]
        assert task.origin.ids["data_id"] == row["data_id"]
        tested = sorted(i for fold in task.folds for i in fold.test)
        assert tested == list(range(len(task))), row  # all are cross-validations
    assert contents(openml_cache) == before


def test_traps_of_the_client_are_avoided(options):
    task = one("openml/t/11", options)
    assert [c.name for c in task.columns] == ["small", "flag", "two words", "day"]
    assert [c.type for c in task.columns] == ["integer", "boolean", "text", "date"]
    # the client gives uint8: 250 + 10 would be 4
    assert task.features["small"].iloc[0] + 10 == 260
    assert task.columns[1].categories == ("True", "False")
    assert task.features["flag"].isna().tolist().index(True) == 4
    assert task.features["day"].iloc[0] == "2024-01-01"
    assert not task.features["flag"].cat.ordered
    assert task.labels == ("b", "a")
    assert task.name == "traps"
    assert (task.origin.licence, task.origin.ids["version"]) == ("CC0", "3")
    assert task.notes == ()
    assert task.folds[1].test.tolist() == list(range(1, 30, 2))


def test_a_sparse_file_with_a_nominal_column_and_no_url(options, tmp_path):
    task = one("openml/t/12", options)
    assert task.features["x"].tolist()[:4] == [0, 1, 0, 3]
    assert task.features["c"].tolist()[:2] == ["zero", "one"]
    assert task.kind.value == "regression"
    options = SourceConfig(openml_server="openml dot org", openml_cache=str(tmp_path))
    with pytest.raises(SourceError, match="not the address"):
        one("openml/t/31", options)


def test_second_load_needs_no_server(options, openml_server):
    first = one("openml/t/11", options)
    asked = len(openml_server.requests)
    assert one("openml/t/11", options).content_hash == first.content_hash
    assert len(openml_server.requests) == asked
    kept = contents(Path(options.openml_cache))
    assert {Path(name).suffix for name in kept} == {".xml", ".arff"}


def test_suite_goes_on_after_a_bad_task(options):
    refs = list(open_specs(["openml/s/7"], options))
    assert [ref.spec for ref in refs] == ["openml/t/11", "openml/t/13", "openml/t/12"]
    assert refs[0].load().name == "traps"
    with pytest.raises(SourceError, match="not a valid ARFF"):
        refs[1].load()
    assert refs[2].load().name == "sparse"


def test_suite_is_remembered(options, openml_server, tmp_path, monkeypatch):
    specs = [ref.spec for ref in open_specs(["openml/s/7"], options)]
    openml_server.stop()
    assert [ref.spec for ref in open_specs(["openml/s/7"], options)] == specs
    monkeypatch.setenv("HARDSYNTH_CACHE", str(tmp_path / "empty"))
    with pytest.raises(NetworkError):
        list(open_specs(["openml/s/7"], options))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openml/t/99", "code 151"),
        ("openml/t/14", "'Clustering'"),
        ("openml/t/15", "code 111"),
        ("openml/t/16", "beyond the 30 rows"),
        ("openml/t/17", "no split"),
        ("openml/s/8", "no tasks"),
        ("openml/s/9", "code 604"),
    ],
)
def test_errors_name_the_spec_and_a_remedy(options, spec, said):
    with pytest.raises(SourceError, match=said) as caught:
        [ref.load() for ref in open_specs([spec], options)]
    assert spec in str(caught.value)
    assert caught.value.remedy


def test_no_network_is_one_clear_line(no_network, direct, tmp_path):
    options = SourceConfig(
        openml_server=f"{no_network}/api/v1/xml", openml_cache=str(tmp_path)
    )
    with pytest.raises(NetworkError, match="cannot be reached") as caught:
        one("openml/t/31", options)
    assert "--openml-cache" in caught.value.remedy
    assert "\n" not in str(caught.value)


def test_damaged_cache_is_reported_and_left_alone(openml_cache):
    target = next(openml_cache.rglob("datasets/31/dataset.arff"))
    target.write_text("@relation r\n@attribute a {x\n@data\n1\n", encoding="utf-8")
    before = contents(openml_cache)
    with pytest.raises(SourceError, match="ARFF") as caught:
        one("openml/t/31", SourceConfig(openml_cache=str(openml_cache)))
    assert caught.value.remedy
    assert contents(openml_cache) == before


def test_only_parquet_in_the_cache(openml_cache):
    options = SourceConfig(openml_cache=str(openml_cache))
    expected = one("openml/t/31", options)
    folder = next(openml_cache.rglob("datasets/31"))
    from amlb_ext.sources.arff import read_arff

    read_arff(folder / "dataset.arff").frame.to_parquet(folder / "dataset_31.pq")
    (folder / "dataset.arff").unlink()
    text = (folder / "description.xml").read_text(encoding="utf-8")
    with_url = (
        "<oml:parquet_url>http://127.0.0.1:1/a.pq</oml:parquet_url><oml:visibility>"
    )
    (folder / "description.xml").write_text(
        text.replace("<oml:visibility>", with_url), "utf-8"
    )
    task = one("openml/t/31", options)
    assert task.content_hash == expected.content_hash
    assert "Parquet" in task.notes[0]


def test_client_is_given_back_as_it_was(options):
    import openml

    root = logging.getLogger()
    handlers, before = list(root.handlers), dict(openml.config.get_config_as_dict())
    environment = dict(os.environ)
    one("openml/t/11", options)
    with pytest.raises(SourceError):
        one("openml/t/99", options)
    assert dict(openml.config.get_config_as_dict()) == before
    assert root.handlers == handlers
    assert dict(os.environ) == environment


@pytest.mark.exhaustive
def test_import_leaves_the_home_alone(openml_cache, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "from amlb_ext.sources import open_specs\n"
        "from amlb_ext.core.config import SourceConfig\n"
        f"options = SourceConfig(openml_cache={str(openml_cache)!r})\n"
        "print(next(open_specs(['openml/t/59'], options)).load().name)\n"
    )
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "OPENML_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment | {"HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "iris"
    assert done.stderr == ""
    assert list(home.iterdir()) == []
