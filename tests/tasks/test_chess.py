"""Games out of a PGN file: which serve, what is counted, what a move says."""

import numpy as np
import pyarrow as pa
import pytest

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.tasks import chess, draw_fold, with_data_files
from amlb_ext.tasks.chess import encode_move, parse_game, read_games

GAME = """[Event "a"]
[White "x"]
[Result "{result}"]
[WhiteElo "{elo}"]
[BlackElo "1100"]

1. e4 {{ [%clk 0:01] }} e5 2. Nf3 Nc6 3. Bb5 {end}

"""


def write_games(path, *games):
    path.write_text("".join(GAME.format(**game) for game in games))
    return path


def test_broken_games_and_other_ratings_are_counted_and_left_out(tmp_path):
    good = {"result": "1-0", "elo": "1200", "end": "a6 1-0"}
    path = write_games(
        tmp_path / "games.pgn",
        good,
        {**good, "elo": "1300"},
        {**good, "elo": "?"},
        {**good, "end": "Qz9 1-0"},
        {**good, "end": "a6"},
        {**good, "result": "*", "end": "a6 *"},
        {**good, "result": "1/2-1/2", "end": "a6 1/2-1/2"},
    )
    file = read_games(path)
    assert [game.winner for game in file.games] == [1, 0]
    assert (file.too_strong, file.broken) == (2, 3)
    assert file.games[0].moves == ("e4", "e5", "Nf3", "Nc6", "Bb5", "a6")
    # the same behind a mark of the byte order, and packed
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_games(path) == file
    packed = tmp_path / "games.pgn.zst"
    with pa.CompressedOutputStream(str(packed), "zstd") as stream:
        stream.write(path.read_bytes())
    assert read_games(packed) == file


def test_too_few_games_and_no_file_are_one_line(tmp_path, monkeypatch):
    good = {"result": "1-0", "elo": "1200", "end": "a6 1-0"}
    path = write_games(tmp_path / "games.pgn", good, good)
    with pytest.raises(DataError, match="2 games of players below 1300"):
        with_data_files({"chess_winners": path})
    monkeypatch.setattr(chess, "TRAIN", 1)
    monkeypatch.setattr(chess, "TEST", 1)
    tasks = {task.name: task for task in with_data_files({"chess_winners": path})}
    assert "drop4_winners" not in tasks
    assert tasks["chess_winners"].origin == "real"
    assert len(draw_fold(tasks["chess_winners"], 0).test) == 1
    with pytest.raises(SourceError, match="cannot read the games"):
        with_data_files({"chess_winners": tmp_path / "nothing.pgn"})


def test_a_fold_is_a_split_of_the_games(tmp_path, monkeypatch):
    monkeypatch.setattr(chess, "TRAIN", 6)
    monkeypatch.setattr(chess, "TEST", 4)
    games = [
        {"result": result, "elo": str(800 + number), "end": f"a6 {result}"}
        for number, result in enumerate(["1-0", "0-1", "1/2-1/2"] * 4)
    ]
    file = read_games(write_games(tmp_path / "games.pgn", *games))
    draw = chess.draw_games(np.random.default_rng(0), file)
    assert (len(draw.train), len(draw.test)) == (6, 4)
    assert draw.train.features.shape == (6, 801)
    # the last move goes with probability one half
    assert set(draw.train.features["moves"]) == {5, 6}
    text = draw.train.texts[0]
    assert text.startswith("e4 e5 Nf3")
    assert len(text.split()) == draw.train.features["moves"][0]
    row = draw.train.features.iloc[0]
    assert (row["m002_piece"], row["m002_square"]) == (2, 22)


@pytest.mark.parametrize(
    ("move", "code"),
    [
        # a1 is 1, h8 is 64; files go first: d4 is 4 + 8 * 3 = 28
        ("d4", (1, 28, 0, 0)),
        ("exd5", (1, 36, 1, 5)),
        ("R1a3", (4, 17, 0, 9)),
        ("Qh4e1+", (5, 5, 2, 8)),
        ("O-O-O#", (6, 0, 36, 0)),
        ("axb8=N", (1, 58, 9, 1)),
    ],
)
def test_moves_are_read_off_the_notation(move, code):
    assert encode_move(move) == code


def test_asides_are_no_moves():
    game = parse_game("1. e4! (1... c5) e5 {x} 2. Nf3?? $4 1/2-1/2", "1/2-1/2")
    assert game.moves == ("e4", "e5", "Nf3")
    assert parse_game("1. e4 {never closed e5 1-0", "1-0") is None
