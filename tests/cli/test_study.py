import json

import pytest
import yaml

from amlb_ext.cli.main import main
from amlb_ext.experiments.fidelity import run
from amlb_ext.experiments.fidelity.protocol import REFERENCES
from amlb_ext.experiments.fidelity.registry import METHODS

PROTOCOL = {
    "name": "tiny",
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
        "exploratory": {"first": 0, "draws": 3},
        "confirmatory": {"first": 9, "draws": 3},
    },
    "contrasts": [{"method": "weighted", "against": "few_bad", "reference": "region"}],
}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Run the command on a tiny protocol in an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(PROTOCOL), encoding="utf-8")

    def call(*words):
        return main(
            [
                "study",
                "fidelity",
                "--protocol",
                "p.yaml",
                "-o",
                "out",
                "-j",
                "1",
                *words,
            ]
        )

    return call


@pytest.fixture
def quick(monkeypatch):
    """No models are fitted; every draw is recorded, and the one in ``stop`` interrupts."""
    seen, stop = [], set()

    def one_draw(task, table, seed, protocol):
        if seed in stop:
            raise KeyboardInterrupt
        seen.append(seed)
        taus = {"few_bad": 0.0, "weighted": 0.25 * (seed + 1)}
        answers = {
            method: {"rows": 9, **{reference: {"tau": tau} for reference in REFERENCES}}
            for method, tau in taus.items()
        }
        return [{"table": table, "seed": seed, "n": 40, "first": 0, "answers": answers}]

    monkeypatch.setattr(run, "draw_records", one_draw)
    return seen, stop


def test_help_names_the_study(capsys):
    for words in (["study", "--help"], ["study", "fidelity", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
    assert "--phase {exploratory,confirmatory}" in capsys.readouterr().out


def test_a_mistyped_flag_names_the_nearest_of_the_study(capsys):
    with pytest.raises(SystemExit):
        main(["study", "fidelity", "-o", "x", "--phaze", "exploratory"])
    assert "did you mean --phase?" in capsys.readouterr().err


def test_methods_are_listed(capsys):
    assert main(["study", "methods"]) == 0
    assert "few_bad" in capsys.readouterr().out
    assert main(["study", "methods", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        n: m.text for n, m in METHODS.items()
    }


def test_a_tiny_study_runs(study, tmp_path, capsys):
    assert study("bundled/diabetes", "--draws", "1", "-q") == 0
    assert capsys.readouterr().out == ""
    assert study("bundled/diabetes", "--draws", "1") == 0
    out = capsys.readouterr().out
    assert "tiny, exploratory phase: 1 table, 1 of 3 declared draws" in out
    assert "weighted  few_bad  region" in out
    for ending in (".md", ".svg", "_contrasts.csv", "_levels.csv"):
        assert (tmp_path / "out" / f"exploratory{ending}").is_file()
        assert f"exploratory{ending}" in out
    assert [p.name for p in (tmp_path / "out/draws/exploratory").iterdir()] == [
        "diabetes_0.json"
    ]


def test_json_holds_the_contrasts(study, quick, capsys):
    assert (
        study("bundled/diabetes", "--phase", "confirmatory", "--draws", "2", "--json")
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert (found["phase"], found["draws"], found["declared"]) == ("confirmatory", 2, 3)
    every = found["contrasts"][0]
    assert every["table"] == "all tables"
    assert every["difference"] == pytest.approx((2.5 + 2.75) / 2)
    assert every["se"] == pytest.approx(0.125)
    assert len(found["files"]) == 5


def test_ctrl_c_leaves_what_the_same_command_continues(study, quick, capsys):
    seen, stop = quick
    stop.add(1)
    assert study("bundled/diabetes") == 130
    assert "the same command continues" in capsys.readouterr().err
    stop.clear()
    assert study("bundled/diabetes", "-q") == 0
    assert seen == [0, 1, 2]


def test_a_protocol_without_contrasts_shows_levels(study, quick, tmp_path, capsys):
    entry = {**PROTOCOL, "contrasts": [], "methods": ["few_bad", "weighted"]}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(entry), encoding="utf-8")
    assert study("bundled/diabetes") == 0
    out = capsys.readouterr().out
    assert "0.500 ± 0.144" in out
    assert "no contrast is declared" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no table for the exploratory phase (add one under 'tables')"),
        (["cars.csv", "--data", "there"], "no file there/cars.csv (name the folder"),
        (["--target", "y"], "--target was given without a SOURCE"),
        (["a/x.csv", "b/x.csv"], "a/x.csv and b/x.csv would both be table 'x'"),
        (["bundled/wine"], "wine has 178 rows"),
        (["bundled/nosuch"], "no bundled task 'nosuch'"),
        (
            ["bundled/toy", "--phase", "confirmatory", "--draws", "4"],
            "the protocol declares 3",
        ),
        (["bundled/toy", "--draws", "10"], "would use seeds of the confirmatory phase"),
    ],
)
def test_what_is_wrong_is_one_clear_line(study, words, message, capsys):
    assert study(*words) == 2
    err = capsys.readouterr().err.strip()
    assert message in err.splitlines()[-1]


def test_the_shipped_protocol_is_printed_to_start_from(capsys, tmp_path):
    assert main(["study", "protocol"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# hardsynth study fidelity")
    (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
    from amlb_ext.experiments.fidelity import read_protocol

    assert read_protocol(tmp_path / "mine.yaml") == read_protocol()
