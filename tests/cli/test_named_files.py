"""``[NAME=]FILE``: a path may hold the sign itself."""

import pytest

from amlb_ext.cli.values import named_files
from amlb_ext.core.errors import ConfigError


def test_a_path_may_hold_the_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "x=y"
    folder.mkdir()
    (folder / "m.skops").write_text("")
    whole = str(folder / "m.skops")
    assert named_files([whole], "--candidate") == {"m": whole}
    assert named_files(["x=y/m.skops"], "--candidate") == {"m": "x=y/m.skops"}
    assert named_files([f"new={whole}"], "--candidate") == {"new": whole}


def test_a_word_that_is_a_file_in_two_readings_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("new=m.csv", "m.csv"):
        (tmp_path / name).write_text("")
    with pytest.raises(ConfigError, match="can be read in two ways"):
        named_files(["new=m.csv"], "--candidate")
