"""The tables of AMLB's frameworks, and the page that lists what they say."""

from __future__ import annotations

from pathlib import Path

from amlb_ext.amlb.frameworks import Framework
from amlb_ext.runner import setup
from amlb_ext.runner.checkout import TAG
from amlb_ext.runner.setup import look_up, read_known_frameworks

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
    tried = {}
    for name, known in read_known_frameworks(TAG.removeprefix("v")).items():
        if known.date:
            tried[name] = known
    assert len([known for known in tried.values() if known.scored]) >= 5
    for name, known in tried.items():
        assert str(known.date) in rows[name]
        assert known.version in rows[name]
        # systems that ran tell of jobs, the others of their own last error
        assert (known.scored or known.error) in rows[name]
        assert bool(known.scored) != bool(known.error)
