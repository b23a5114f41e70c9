"""Running a study: the same records however it runs, and nothing is computed twice."""

import json

import pytest
from small_models import lighten

from amlb_ext.core.errors import ConfigError, SuiteError
from amlb_ext.experiments.fidelity import run
from amlb_ext.experiments.fidelity.judge import FIGURES
from amlb_ext.experiments.fidelity.protocol import REFERENCES, Protocol
from amlb_ext.experiments.fidelity.run import draw_file, run_study

USED = ("few_bad", "whole", "weighted", "half", "jitter", "kappa_0.005")
ENTRY = {
    "tables": {"diabetes": {"source": "bundled/diabetes"}},
    "sizes": {
        "train": 150,
        "labelled": [40, 80],
        "unlabelled": 30,
        "pool": 120,
        "least_pool": 50,
    },
    "share": 0.2,
    "baselines": [{"model": "ridge"}],
    "seeds": {
        "exploratory": {"first": 0, "draws": 2},
        "confirmatory": {"first": 9, "draws": 2},
    },
    "methods": USED[:4],
    "contrasts": [{"method": "jitter", "against": "kappa_0.005"}],
}


def protocol(**changes):
    return Protocol.model_validate({**ENTRY, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with two real draws, by models with few trees, and their records."""
    out = tmp_path_factory.mktemp("study") / "out"
    with pytest.MonkeyPatch.context() as patch:
        lighten(patch)
        return out, run_study(protocol(), "exploratory", out, workers=1)


@pytest.fixture
def counted(monkeypatch):
    """The draws computed since, in place of real ones."""
    seen = []

    def one_draw(task, table, seed, protocol):
        seen.append((table, seed))
        return [{"table": table, "seed": seed, "n": 40, "first": 0, "answers": {}}]

    monkeypatch.setattr(run, "draw_records", one_draw)
    return seen


def test_records_say_what_was_drawn_and_answered(finished):
    _, records = finished
    assert [(r["seed"], r["n"], r["first"]) for r in records] == [
        (seed, n, first) for seed in (0, 1) for n, first in ((40, 0), (40, 40), (80, 0))
    ]
    for record in records:
        assert set(record["answers"]) | set(record["without"]) == set(USED)
        assert record["candidates"][-1] == "twin of F"
        for answer in record["answers"].values():
            assert set(answer) == {"rows", *REFERENCES}
            for reference in REFERENCES:
                assert set(answer[reference]) == set(FIGURES)
                assert -1 <= answer[reference]["tau"] <= 1
        assert record["answers"]["whole"]["rows"] == record["n"]


@pytest.mark.exhaustive
def test_workers_change_nothing(tmp_path):
    shared = run_study(protocol(), "exploratory", tmp_path / "2", workers=2)
    alone = run_study(protocol(), "exploratory", tmp_path / "1", draws=1, workers=1)
    assert alone == [record for record in shared if record["seed"] == 0]


def test_a_finished_draw_is_not_computed_again(finished, counted):
    out, records = finished
    assert run_study(protocol(), "exploratory", out, workers=1) == records
    assert counted == []


def test_only_a_missing_draw_is_computed(counted, tmp_path):
    first = run_study(protocol(), "exploratory", tmp_path, workers=1)
    assert counted == [("diabetes", 0), ("diabetes", 1)]
    draw_file(tmp_path, "exploratory", "diabetes", 0).unlink()
    assert run_study(protocol(), "exploratory", tmp_path, workers=1) == first
    assert counted[2:] == [("diabetes", 0)]
    damaged = draw_file(tmp_path, "exploratory", "diabetes", 1)
    damaged.write_text("{", encoding="utf-8")
    assert run_study(protocol(), "exploratory", tmp_path, workers=1) == first
    assert counted[3:] == [("diabetes", 1)]


def test_more_draws_continue_what_fewer_began(counted, tmp_path):
    run_study(protocol(), "exploratory", tmp_path, draws=1, workers=1)
    records = run_study(protocol(), "exploratory", tmp_path, draws=3, workers=1)
    assert counted == [("diabetes", seed) for seed in (0, 1, 2)]
    assert [r["seed"] for r in records] == [0, 1, 2]


def test_a_changed_method_or_table_is_computed_again(counted, tmp_path):
    run_study(protocol(), "exploratory", tmp_path, draws=1, workers=1)
    run_study(
        protocol(methods=["few_bad"]), "exploratory", tmp_path, draws=1, workers=1
    )
    less = {"diabetes": {"source": "bundled/diabetes", "drop": ["bmi"]}}
    run_study(protocol(tables=less), "exploratory", tmp_path, draws=1, workers=1)
    assert len(counted) == 3


def test_a_changed_protocol_is_refused_after_confirmatory_draws(counted, tmp_path):
    run_study(protocol(), "exploratory", tmp_path, workers=1)
    changed = protocol(contrasts=[{"method": "half", "against": "few_bad"}])
    run_study(changed, "confirmatory", tmp_path, workers=1)
    assert json.loads((tmp_path / run.PROTOCOL).read_text()) == changed.model_dump(
        mode="json"
    )
    for phase in ("exploratory", "confirmatory"):
        with pytest.raises(
            ConfigError, match=r"confirmatory draws of another protocol.* -o"
        ):
            run_study(protocol(), phase, tmp_path, workers=1)
    assert len(run_study(changed, "confirmatory", tmp_path, workers=1)) == 2
    assert len(counted) == 4


def test_a_foreign_folder_is_left_alone(counted, tmp_path):
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    for out in (tmp_path, tmp_path / "mine.txt"):
        with pytest.raises(SuiteError, match="holds no study"):
            run_study(protocol(), "exploratory", out, workers=1)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_nothing_is_written_when_something_is_wrong(counted, tmp_path):
    out = tmp_path / "out"
    wrong = [
        (
            protocol(methods=["few_bda"]),
            r"no method 'few_bda' .*did you mean 'few_bad'",
        ),
        (protocol(methods=[], contrasts=[]), "names no method"),
        (
            protocol(phases={"diabetes": "confirmatory"}),
            "no table for the exploratory phase",
        ),
        (protocol(tables={"d": {"source": "d.csv"}}), "--data DIR"),
    ]
    for bad, message in wrong:
        with pytest.raises(Exception, match=message):
            run_study(bad, "exploratory", out, workers=1)
    assert not out.exists()
