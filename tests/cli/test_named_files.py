"""``[NAME=]FILE``: a path may hold the sign itself."""

import pytest

from amlb_ext.cli.values import named_files
from amlb_ext.core.errors import ConfigError


def test_a_path_may_hold_the_sign_but_not_be_read_in_two_ways(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x=y").mkdir()
    for name in ("x=y/m.skops", "new=m.csv", "m.csv"):
        (tmp_path / name).touch()
    for word, name in (("x=y/m.skops", "m"), ("new=x=y/m.skops", "new")):
        assert named_files([word], "--candidate") == {name: "x=y/m.skops"}
    with pytest.raises(ConfigError, match="can be read in two ways"):
        named_files(["new=m.csv"], "--candidate")
