"""YAML that is a bomb, or code, or no plain value: one error with its line, and quickly."""

import time

import pytest

from amlb_ext.amlb.configuration import search_folders, substitute_directories
from amlb_ext.amlb.definition import read_amlb_yaml, read_definition
from amlb_ext.core.config import SourceConfig, read_config
from amlb_ext.core.errors import ConfigError, RunError, SourceError
from amlb_ext.core.yaml_reader import Loader, read_yaml
from amlb_ext.sources import open_specs

LAUGHS = "a0: &a0 [lol, lol]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 40)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(
    f"a{i}: &a{i}\n  <<: [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 40)
)
BOMBS = {
    LAUGHS: "aliases stand for more than",
    MERGES: "aliases stand for more than",
    "- name: &x [*x]\n": "stands inside what it stands for",
    "&x {a: *x}\n": "stands inside what it stands for",
    "[" * 100_000: "levels of nesting",
    "{a: " * 100_000: "levels of nesting",
    "- " * 100_000: "levels of nesting",
    "a: 1\nb: 2\na: 3\n": "line 3, column 1: the key 'a' occurs twice",
    "!!python/object/apply:os.system [echo]": "could not determine a constructor",
    "!!python/name:os.system ''": "could not determine a constructor",
    "- 2001-99-99": "put it in quotes",
    "- !!int x": "put it in quotes",
    "- !!bool x": "put it in quotes",
    "- !!timestamp x": "put it in quotes",
    "- " + "9" * 5000: "put it in quotes",
    "%YAML " + "9" * 5000 + ".1\n--- a": "put it in quotes",
    "? [a]\n: b\n": "unhashable key",
    "a: b\0c": "special characters",
}


@pytest.mark.parametrize("text", BOMBS, ids=lambda text: text[:20].strip())
def test_bombs_in_every_reader(tmp_path, text):
    path = tmp_path / "d.yaml"
    path.write_text(text, encoding="utf-8")
    start = time.process_time()
    for read, error in (
        (read_yaml, SourceError),
        (lambda p: list(read_definition(p)), SourceError),
        (read_config, ConfigError),
        (read_amlb_yaml, RunError),
    ):
        with pytest.raises(error) as caught:
            read(path)
        assert BOMBS[text] in str(caught.value)
        assert caught.value.remedy
        assert len(str(caught.value)) < 500
    assert time.process_time() - start < 5


def test_the_users_own_configuration_is_read_by_it_too(tmp_path):
    (tmp_path / "config.yaml").write_text(LAUGHS)
    with pytest.raises(SourceError, match="aliases stand for"):
        search_folders(SourceConfig(userdir=str(tmp_path)))


@pytest.mark.parametrize(
    "content", ["benchmarks: [a]", "benchmarks: 7", "[a]", "7", "input_dir: []"]
)
def test_a_configuration_of_other_forms_is_as_good_as_none(tmp_path, content):
    (tmp_path / "config.yaml").write_text(content)
    assert search_folders(SourceConfig(userdir=str(tmp_path)))


def test_size_and_number(tmp_path, monkeypatch):
    path = tmp_path / "d.yaml"
    path.write_text("- a\n" * 100)
    assert len(read_yaml(path)) == 100
    monkeypatch.setattr(Loader, "max_nodes", 99)
    with pytest.raises(SourceError, match="more than 99 values"):
        read_yaml(path)
    assert len(read_amlb_yaml(path)) == 100  # a suite's own definition may be longer
    monkeypatch.setattr(Loader, "max_bytes", 399)
    with pytest.raises(SourceError, match="larger than"):
        read_yaml(path)


def test_aliases_and_merges_that_people_write(tmp_path):
    path = tmp_path / "d.yaml"
    path.write_text("- &a {name: t, folds: 2}\n- {<<: *a, name: u}\n- *a\n")
    first, second, third = read_yaml(path)
    assert second == {"name": "u", "folds": 2}
    assert first == third == {"name": "t", "folds": 2}


@pytest.mark.parametrize(
    "text", ["{user.__class__}", "{user!r}", "{user:>999999999}", "{0}", "{"]
)
def test_braces_are_words_and_never_a_format(text):
    with pytest.raises(SourceError):
        substitute_directories(text, {"user": "/u"})


@pytest.mark.parametrize(
    "path",
    ["~no-such-user-here/t.csv", "a\0b.csv", "x" * 5000 + ".csv", "/dev/zero", "/dev"],
)
def test_paths_no_table_can_have(tmp_path, path, monkeypatch):
    from amlb_ext.sources import dataset_files

    monkeypatch.setattr(dataset_files, "MAX_FILES", 3)
    definition = tmp_path / "d.yaml"
    definition.write_text(f"- name: t\n  dataset: {{path: {json_quoted(path)}}}\n")
    (ref,) = open_specs([str(definition)], SourceConfig(userdir=str(tmp_path)))
    with pytest.raises(SourceError) as caught:
        ref.load()
    assert len(str(caught.value)) < 1000


def json_quoted(text):
    return '"' + text.replace("\0", "\\0") + '"'
