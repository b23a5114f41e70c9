"""The tables of AMLB's frameworks, and the page that lists what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from amlb_ext.amlb.frameworks import (
    AMLB_CONSTRAINTS,
    AMLB_FRAMEWORKS,
    Framework,
)
from amlb_ext.core.assets import asset_path
from amlb_ext.runner import setup
from amlb_ext.runner.checkout import TAG
from amlb_ext.runner.setup import look_up

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "automl_systems.md"


def amlb_framework(name, version="stable"):
    return Framework(
        name=name,
        version=version,
        module=f"frameworks.{name}",
        folder=Path(name),
        has_setup=True,
    )


def test_constraints_are_chosen_by_framework_and_version():
    flaml = look_up(amlb_framework("flaml"), "2.1.7").constraints
    tpot = look_up(amlb_framework("TPOT"), "2.1.7").constraints
    assert "lightgbm<4.2" in flaml
    assert "lightgbm<4.2" not in tpot
    # TPOT 1 takes other arguments than AMLB gives
    assert "tpot<1" in tpot
    # of flaml's newest code no more is known than of any other framework
    assert look_up(amlb_framework("flaml", "latest"), "2.1.7").constraints == (
        "numpy<2",
    )


def test_the_table_of_the_newest_release_stands_in(tmp_path, monkeypatch):
    (tmp_path / "v2.1.9.yaml").write_text("default: {constraints: [a<9]}")
    (tmp_path / "v2.1.10.yaml").write_text("default: {constraints: [a<10]}")
    monkeypatch.setattr(setup, "asset_path", lambda *parts: tmp_path)
    assert look_up(amlb_framework("Fw"), "2.1.9").constraints == ("a<9",)
    assert look_up(amlb_framework("Fw"), "dev dfe8d21").constraints == ("a<10",)


def test_the_page_lists_what_the_table_of_the_pinned_release_says():
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows[cells[0]] = " ".join(cells[1:])
    table = asset_path("resources", "amlb_setup", f"{TAG}.yaml")
    entries = yaml.safe_load(table.read_text(encoding="utf-8"))
    tried = {
        name: entry["tried"] for name, entry in entries.items() if "tried" in entry
    }
    assert len([known for known in tried.values() if "scored" in known]) >= 5
    for name, known in tried.items():
        # systems that ran tell of jobs, the others of their own last error
        assert ("scored" in known) != ("error" in known)
        for key in {"date", "version", "scored", "error"} & set(known):
            assert str(known[key]) in rows[name]


@pytest.mark.amlb
def test_the_names_of_amlbs_own_entries(amlb):
    for kind, known in (
        ("constraints", AMLB_CONSTRAINTS),
        ("frameworks", AMLB_FRAMEWORKS),
    ):
        file = amlb.root / "resources" / f"{kind}.yaml"
        names = {name.lower() for name in yaml.safe_load(file.read_text("utf-8"))}
        assert set(known) == {name for name in names if not name.startswith("__")}
