"""Who wins a game of chess, from its moves: games of beginners, out of a PGN file.

The moves are read by a regular expression: what each column says can be read off the notation
alone, without the rules of the game.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError, SourceError
from amlb_ext.core.packed import (
    DAMAGED,
    CountingStream,
    UnpackLimits,
    open_decompressed,
)
from amlb_ext.tasks.record import Draw, Rows, name_labels

LABELS = ("c0_draw", "c1_white", "c2_black")
PLIES = 200
MAX_RATING = 1300
TRAIN, TEST = 1000, 1000
#: A month of a large server has millions of games; these are enough for every fold.
MAX_GAMES = 50_000
#: Most characters of a game; the longest ones, with comments, have some 100,000.
MAX_GAME_CHARACTERS = 1 << 20
_WINNERS = {"1/2-1/2": 0, "1-0": 1, "0-1": 2}
_HEADER = re.compile(r'\[(\w+)\s+"([^"]*)"\]')
# A brace that nothing closes takes the rest, and a number starts at its first digit: the time
# grows with the text, not with its square.
_ASIDES = re.compile(r"\{[^}]*(?:\}|$)|\([^()]*\)|;[^\n]*|\$\d+|(?<!\d)\d+\.+|[!?]+")
_MOVE = re.compile(
    r"(?:O-O(?:-O)?|([KQRBN])?([a-h])?([1-8])?(x)?([a-h])([1-8])(?:=([QRBN]))?)([+#])?"
)
_PIECES = "PNBRQK"


@dataclass(frozen=True)
class Game:
    """A game: its moves in short notation, and who won, as a code of :data:`LABELS`."""

    moves: tuple[str, ...]
    winner: int


@dataclass(frozen=True)
class GameFile:
    """The games of a file that serve, and how many do not.

    Attributes
    ----------
    games : tuple of Game
    broken : int
        Games with a move that is none, without a result, or cut off.
    too_strong : int
        Games of players rated above the limit, or not rated.
    """

    games: tuple[Game, ...]
    broken: int
    too_strong: int


def read_games(path: Path) -> GameFile:
    """Read the games of players rated below 1300 from a PGN file, packed or plain.

    Parameters
    ----------
    path : Path
        Plain, or packed by gzip, bzip2, xz or zstd.

    Raises
    ------
    SourceError
        The file cannot be read, a game of it is too long, or too much comes out of it.
    """
    games: list[Game] = []
    broken = too_strong = 0
    try:
        for headers, text in _entries(path):
            ratings = [headers.get(key, "") for key in ("WhiteElo", "BlackElo")]
            if not all(r.isdecimal() and int(r) < MAX_RATING for r in ratings):
                too_strong += 1
            elif game := parse_game(text, headers.get("Result", "")):
                games.append(game)
            else:
                broken += 1
            if len(games) == MAX_GAMES:
                break
    except DAMAGED as error:
        raise SourceError(
            f"cannot read the games of {path}: {error}", "give a file of games in PGN"
        ) from None
    return GameFile(tuple(games), broken, too_strong)


def parse_game(text: str, result: str) -> Game | None:
    """Return a game, or None where it is broken.

    Examples
    --------
    >>> parse_game("1. e4 {best} e5 2. Nf3 $1 Nc6?! 1-0", "1-0")
    Game(moves=('e4', 'e5', 'Nf3', 'Nc6'), winner=1)
    >>> parse_game("1. e4 e9 1-0", "1-0") is None
    True
    """
    winner = _WINNERS.get(result)
    words = _ASIDES.sub(" ", text).split()
    if winner is None or not words or words[-1] != result:
        return None
    moves = words[:-1]
    # two moves at least, since the last may be taken away
    if len(moves) < 2 or not all(_MOVE.fullmatch(move) for move in moves):
        return None
    return Game(tuple(moves), winner)


def draw_games(rng: np.random.Generator, file: GameFile) -> Draw:
    """Return a fresh split of a file's games: 1,000 to train, 1,000 to test.

    Raises
    ------
    DataError
        Too few games.
    """
    check_enough(file)
    wanted = TRAIN + TEST
    chosen = rng.permutation(len(file.games))[:wanted]
    games = [file.games[row] for row in chosen]
    return Draw(
        train=_rows(games[:TRAIN], rng),
        test=_rows(games[TRAIN:], rng),
    )


def check_enough(file: GameFile) -> None:
    """Raise where a file has too few games for a fold.

    Raises
    ------
    DataError
    """
    wanted = TRAIN + TEST
    if len(file.games) < wanted:
        raise DataError(
            f"the file has {len(file.games):,} games of players below {MAX_RATING} "
            f"({file.broken:,} broken and {file.too_strong:,} of other ratings were left out), "
            f"a fold takes {wanted:,}",
            "give a larger file, e.g. a month of database.lichess.org",
        )


def encode_move(move: str) -> tuple[int, int, int, int]:
    """Return piece (1–6), square (1–64), flags and hint of a move in short notation.

    The flags are a sum: 1 captures, 2 checks, 4 mates, 8 promotes, 16 castles short, 32 castles
    long. The hint is what the notation says of where the piece came from: 1–8 its file, 9–16 its
    rank, 0 nothing.

    Examples
    --------
    >>> encode_move("Nbxd2+"), encode_move("O-O"), encode_move("e8=Q#")
    ((2, 12, 3, 2), (6, 0, 16, 0), (1, 61, 12, 0))
    """
    match = _MOVE.fullmatch(move)
    if match is None:
        raise ValueError(f"{move!r} is no move in short notation")
    piece, from_file, from_rank, capture, file, rank, promotion, check = match.groups()
    flags = {"+": 2, "#": 4}.get(check, 0) + (1 if capture else 0)
    if file is None:
        castling = 32 if move.startswith("O-O-O") else 16
        return 6, 0, flags + castling, 0
    square = 1 + "abcdefgh".index(file) + 8 * (int(rank) - 1)
    hint = 0
    if from_file:
        hint = 1 + "abcdefgh".index(from_file)
    elif from_rank:
        hint = 8 + int(from_rank)
    flags += 8 if promotion else 0
    return 1 + _PIECES.index(piece or "P"), square, flags, hint


def _rows(games: list[Game], rng: np.random.Generator) -> Rows:
    values = np.zeros((len(games), 4 * PLIES + 1), dtype=np.int64)
    texts = []
    for row, game in enumerate(games):
        # the last move goes with probability one half
        hidden = int(rng.random() < 0.5)
        moves = game.moves[: len(game.moves) - hidden]
        for ply, move in enumerate(moves[:PLIES]):
            values[row, 4 * ply : 4 * ply + 4] = encode_move(move)
        values[row, -1] = len(moves)
        texts.append(" ".join(moves))
    names = []
    for ply in range(PLIES):
        names += [f"m{ply:03d}_{what}" for what in ("piece", "square", "flags", "hint")]
    winners = np.array([game.winner for game in games])
    return Rows(
        features=pd.DataFrame(values, columns=[*names, "moves"]),
        labels=name_labels(winners, LABELS),
        texts=tuple(texts),
    )


def _entries(path: Path) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the headers and the text of each game."""
    headers: dict[str, str] = {}
    lines: list[str] = []
    characters = 0
    packed = path.stat().st_size
    with open_decompressed(path) as stream:
        counted = CountingStream(
            stream, name=path.name, packed=packed, limits=UnpackLimits()
        )
        buffered = io.BufferedReader(counted)
        file = io.TextIOWrapper(buffered, "utf-8-sig", errors="replace")
        while line := file.readline(MAX_GAME_CHARACTERS):
            characters += len(line)
            if characters > MAX_GAME_CHARACTERS:
                raise SourceError(
                    f"{path.name} holds a game of more than {MAX_GAME_CHARACTERS:,} characters",
                    "give a file of games in PGN",
                )
            match = _HEADER.match(line)
            if match is None:
                lines.append(line)
                continue
            if any(text.strip() for text in lines):
                yield headers, "".join(lines)
                headers, lines, characters = {}, [], 0
            headers[match[1]] = match[2]
    if headers:
        yield headers, "".join(lines)
