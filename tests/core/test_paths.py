"""Whether a typed path leads anywhere."""

from pathlib import Path

import pytest

from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import cache_folder
from amlb_ext.core.paths import TABLE_ENDINGS, check_sources, missing_source_file
from amlb_ext.sources.read_table import READERS


def test_the_endings_of_tables_are_those_that_can_be_read():
    assert set(TABLE_ENDINGS) == set(READERS)


@pytest.mark.parametrize(
    "spec", ["bundled/toy.csv", "nope.parquet", "nope.yaml#iris", "~/nope.ARFF"]
)
def test_a_file_that_is_not_there_is_missing(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert missing_source_file(spec) is not None


@pytest.mark.parametrize(
    "spec", ["bundled/toy", "openml/t/31", "validation", "https://a.org/nope.csv"]
)
def test_what_is_no_path_is_not_looked_for(spec):
    assert missing_source_file(spec) is None


def test_one_missing_file_among_others_is_left_to_the_reader():
    check_sources(("bundled/toy", "nope.csv"))
    with pytest.raises(SourceError, match=r"no such file: nope\.csv"):
        check_sources(("nope.csv", "other.csv"))


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("HARDSYNTH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "hardsynth"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/hardsynth")
    monkeypatch.setenv("HARDSYNTH_CACHE", "/y")
    assert cache_folder() == Path("/y")
