"""Whether a typed path leads anywhere."""

from pathlib import Path

import pytest

from amlb_ext.core.errors import SourceError
from amlb_ext.core.files import cache_folder
from amlb_ext.core.paths import TABLE_ENDINGS, check_sources
from amlb_ext.sources.read_table import READERS


def test_the_endings_of_tables_are_those_that_can_be_read():
    assert set(TABLE_ENDINGS) == set(READERS)


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
