"""``hardsynth tasks weird`` as it is typed: what is written, and what is refused in one line."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import words_of

from amlb_ext.cli import main
from amlb_ext.core.assets import asset_path
from amlb_ext.pipeline.weird import CODER_PARAMS
from amlb_ext.tasks import chess

GAME = (
    '[White "x"]\n[Result "{result}"]\n[WhiteElo "{elo}"]\n[BlackElo "1100"]\n\n'
    "1. e4 e5 2. Nf3 {end}\n\n"
)


@pytest.fixture
def few_games(monkeypatch):
    """A fold of chess takes six games."""
    monkeypatch.setattr(chess, "TRAIN", 4)
    monkeypatch.setattr(chess, "TEST", 2)


def write_games(path, n_good):
    results = ["1-0", "0-1", "1/2-1/2"]
    games = []
    for number in range(n_good):
        result = results[number % 3]
        games.append({"result": result, "elo": "1200", "end": f"Nc6 {result}"})
    games.append({"result": "1-0", "elo": "1200", "end": "Qz9 1-0"})
    games.append({"result": "1-0", "elo": "2400", "end": "Nc6 1-0"})
    path.write_text("".join(GAME.format(**game) for game in games))
    return path


def test_real_games_take_the_place_of_the_stand_in(few_games, tmp_path, output_of):
    file = write_games(tmp_path / "games.pgn", 9)
    words = ["tasks", "weird", "-o", str(tmp_path / "w"), "--folds", "1"]
    words += ["--data", f"chess_winners={file}", "--task", "chess_winners"]
    words += ["--licence", "CC0", "--salt", ""]
    words += ["--model", "m", "--coder-params", "max_cost=2"]
    printed = output_of(
        words, "--coder-params", ["price={input: 1.0e-6, output: 4.0e-6}"]
    )
    assert "9 games serve; 1 broken ones and 1 of other ratings" in printed
    [task] = yaml.safe_load((tmp_path / "w" / "benchmarks" / "weird.yaml").read_text())
    assert task["name"] == "chess_winners"
    test = pd.read_csv(tmp_path / "w/data/chess_winners/chess_winners_test_0.csv")
    assert len(test) == 2
    frameworks = yaml.safe_load((tmp_path / "w" / "frameworks.yaml").read_text())
    price = {"input": 1e-6, "output": 4e-6}
    params = {"model": "m", "max_cost": 2, "price": price}
    assert frameworks["LLMCoder_m"]["params"] == params
    # settings belong to the folder: it is whole
    assert main(["verify", str(tmp_path / "w")]) == 0


def images_file(tmp_path, shape):
    file = tmp_path / "images.npy"
    np.save(file, np.zeros(shape, dtype=np.uint8))
    return file


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "chess"], "no task 'chess'"),
        (["--task", "chess_winners"], "no task 'chess_winners'"),
        (["--data", "chess_winners"], "write TASK=FILE"),
        (["--data", "chess_winners={few}"], "5 games of players below 1300"),
        (["--data", "chess_winners={none}"], "cannot read the games"),
        (["--data", "shuffle_easy={grey}"], "has 40 images, a fold takes 3,000"),
        (
            ["--data", "shuffle_hard={grey}"],
            "give uint8 of shape (n, height, width, 3)",
        ),
        (["--data", "shuffle_easy={few}"], "cannot read the images"),
        (["--coder-params", "max_cost=2"], "--coder-params needs a model"),
        (["--model", "m", "--coder-params", "max_cost"], "write KEY=VALUE"),
        (["--model", "m", "--coder-params", "max_costs=2"], "did you mean 'max_cost'"),
        (["--model", "m", "--coder-params", "api_key=sk"], "HARDSYNTH_LLM_KEY"),
        *(
            (["--model", "m", "--coder-params", f"max_cost={value}"], "max_cost is")
            for value in ("nan", ".nan", ".inf", "-1", "true", "much", "[1]")
        ),
        (["--model", "m", "--coder-params", "price={input: .nan}"], "input is"),
        (["--model", "m", "--coder-params", "price=cheap"], "price is"),
        (["--model", "m", "--coder-params", "feedback=train"], "feedback is"),
    ],
)
def test_what_does_not_serve_is_one_line_before_anything_is_written(
    few_games, tmp_path, refused, words, said
):
    places = {
        "few": write_games(tmp_path / "few.pgn", 5),
        "none": tmp_path / "none.pgn",
        "grey": images_file(tmp_path, (40, 28, 28)),
    }
    typed = [
        word if word.startswith("--coder") or "price" in word else word.format(**places)
        for word in words
    ]
    assert said in refused("tasks weird -o", tmp_path / "w", typed)
    assert not (tmp_path / "w").exists()


def test_the_command_knows_the_parameters_of_the_coder():
    source = asset_path("frameworks", "LLMCoder", "exec.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.Assign)
            and getattr(node.targets[0], "id", "") == "PARAMS"
        ):
            assert ast.literal_eval(node.value) == {"model", *CODER_PARAMS}
            return
    pytest.fail("exec.py has no PARAMS")


def test_a_suite_of_generate_takes_coders(tmp_path, refused, output_of, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((120, 3)), columns=list("abc"))
    table["y"] = np.where(table["a"] + rng.normal(0, 0.3, 120) > 0.5, "yes", "no")
    table.to_csv(tmp_path / "t.csv", index=False)
    suite = str(tmp_path / "s")
    words = words_of(
        "generate", tmp_path / "t.csv", "-o", suite, "--baseline logistic -q"
    )
    assert main([*words, "--certificate", "none", "-j", "1", "--folds", "1"]) == 0
    add = ["tasks", "coders", "-o", suite, "--model", "a/b"]
    assert main([*add, "--coder-params", "submissions=2"]) == 0
    frameworks = yaml.safe_load((tmp_path / "s" / "frameworks.yaml").read_text())
    assert frameworks["Coder_a_b"]["params"] == {"model": "a/b", "submissions": 2}
    assert (tmp_path / "s" / "extensions" / "Coder" / "answers.py").is_file()
    # once more changes nothing
    before = (tmp_path / "s" / "frameworks.yaml").read_bytes()
    assert main([*add, "--coder-params", "submissions=2"]) == 0
    assert (tmp_path / "s" / "frameworks.yaml").read_bytes() == before
    capsys.readouterr()
    # other parameters are not dropped without a word
    assert "has Coder_a_b already" in refused(add)
    assert (tmp_path / "s" / "frameworks.yaml").read_bytes() == before
    assert "Coder_a_b" in output_of("verify", suite)
    # and what is no suite is left alone
    assert main(["tasks", "coders", "-o", str(tmp_path / "none"), "--model", "m"]) == 2
    assert main(["tasks", "coders", "-o", suite]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    assert not (tmp_path / "none").exists()
