"""Who wins four in a row, from the moves: the offline stand-in for games of chess.

The last zero to three moves are taken away, so that replaying the board does not show the winner
every time. A board is two integers of 49 bits, 7 for each column, the seventh of which stays 0.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.tasks.record import Draw, Rows, name_labels

LABELS = ("c0_draw", "c1_first", "c2_second")
COLUMNS, HEIGHT = 7, 6
PLIES = COLUMNS * HEIGHT
#: How far a bit is from its neighbour: up, across, and along both diagonals.
_STEPS = (1, 7, 6, 8)
#: Players prefer the middle: weights of the columns.
_WEIGHTS = np.exp(-0.4 * np.abs(np.arange(COLUMNS) - 3))
#: How many last moves are taken away, at most.
MAX_HIDDEN = 3


def has_four(board: int) -> bool:
    """Whether a player's stones hold four in a row.

    Examples
    --------
    >>> has_four(0b1111), has_four(0b10111)
    (True, False)
    """
    for step in _STEPS:
        pairs = board & (board >> step)
        if pairs & (pairs >> 2 * step):
            return True
    return False


def play_game(rng: np.random.Generator) -> tuple[list[int], int]:
    """Return the columns of the moves, and who won: 0 nobody, 1 the first, 2 the second.

    A player sees a win, and the other's, with the probability that is the player's skill.
    """
    skill = rng.uniform(0.1, 0.9, 2)
    chances = rng.random((PLIES, 2))
    boards = [0, 0]
    heights = [0] * COLUMNS
    moves: list[int] = []
    for ply in range(PLIES):
        player = ply % 2
        # the bit of a stone that is dropped into a column
        free = [column for column in range(COLUMNS) if heights[column] < HEIGHT]
        stones = {column: 1 << (7 * column + heights[column]) for column in free}
        wins = []
        if chances[ply, 0] < skill[player]:
            for board in (boards[player], boards[1 - player]):
                wins += [column for column in free if has_four(board | stones[column])]
        shares = np.cumsum(_WEIGHTS[free])
        likely = free[int(np.searchsorted(shares, chances[ply, 1] * shares[-1]))]
        column = wins[0] if wins else likely
        boards[player] |= stones[column]
        heights[column] += 1
        moves.append(column)
        if has_four(boards[player]):
            return moves, player + 1
    return moves, 0


def draw_games(rng: np.random.Generator, *, rows: int = 1000) -> Draw:
    """Return 1,000 training and 1,000 test games."""
    train = [play_game(rng) for _ in range(rows)]
    # one game in 170 is a draw; AMLB cannot score a class that training did not have
    while all(winner for _, winner in train):
        train[-1] = play_game(rng)
    test = [play_game(rng) for _ in range(rows)]
    return Draw(train=_rows(train, rng), test=_rows(test, rng))


def _rows(games: list[tuple[list[int], int]], rng: np.random.Generator) -> Rows:
    values = np.zeros((len(games), PLIES + 1), dtype=np.int64)
    texts = []
    for row, (moves, _) in enumerate(games):
        n_kept = len(moves) - int(rng.integers(0, MAX_HIDDEN + 1))
        # columns count from 1, so that 0 says that there was no such move
        written = [column + 1 for column in moves[:n_kept]]
        values[row, :n_kept] = written
        values[row, PLIES] = n_kept
        texts.append(" ".join(map(str, written)))
    winners = np.array([winner for _, winner in games])
    names = [f"move{ply:02d}" for ply in range(PLIES)]
    return Rows(
        features=pd.DataFrame(values, columns=[*names, "moves"]),
        labels=name_labels(winners, LABELS),
        texts=tuple(texts),
    )
