"""All weird tasks by name, and how a fold of one is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from amlb_ext.core.errors import ConfigError, SourceError, suggest_nearest
from amlb_ext.core.rng import random_stream
from amlb_ext.tasks import chess, digits, drop4, patches, shapes
from amlb_ext.tasks.own import import_task
from amlb_ext.tasks.record import Draw, WeirdTask

_MADE = "Apache-2.0, made by hardsynth; no data of others"
_WEIRDML = (
    "after WeirdML, H. T. Ihle, https://htihle.github.io/weirdml.html (made anew: the "
    "benchmark's own data are not published)"
)

_SHAPES = (
    "Each sample is a set of 512 points in the unit square. Some of them lie on the outline of one "
    "shape (a circle, a square, a triangle, a pentagon or a star), very unevenly; the others are "
    "noise. The order of the points means nothing. {where} Say which shape it is."
)
_SHUFFLE = (
    "Each image, {image}, was cut into 9 patches of 9 x 9 pixels, which were shuffled. A row is a "
    "patch; rows with the same number in 'image' belong to one image, and all nine are there. Say "
    "where in the image each patch belongs: p0 p1 p2 is the upper row, p6 p7 p8 the lower. The "
    "score is the share of patches in their place."
)

#: A task that is drawn by this package.
_made_task = partial(WeirdTask, origin="made", licence=_MADE, citation=_WEIRDML)

_ALL = (
    _made_task(
        name="shapes_easy",
        title="Shapes, easy",
        labels=shapes.LABELS,
        statement=_SHAPES.format(
            where="The shape has always the same place, size and turn."
        ),
        row_shape=(shapes.POINTS, 2),
        draw=partial(shapes.draw_shapes, is_hard=False),
    ),
    _made_task(
        name="shapes_hard",
        title="Shapes, hard",
        labels=shapes.LABELS,
        statement=_SHAPES.format(where="Its place, size and turn are random."),
        row_shape=(shapes.POINTS, 2),
        draw=partial(shapes.draw_shapes, is_hard=True),
    ),
    WeirdTask(
        name="shuffle_easy",
        title="Shuffled patches, easy",
        labels=patches.LABELS,
        statement=_SHUFFLE.format(
            image="27 x 27 pixels in grey with a handwritten digit on black"
        ),
        origin="embedded",
        licence="CC BY 4.0: UCI digits, as distributed with scikit-learn; mixed in pairs, bent, "
        "enlarged and shifted",
        citation=f"Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI; {_WEIRDML}",
        row_shape=(9, 9),
        group=patches.GROUP,
        draw=patches.draw_easy,
    ),
    WeirdTask(
        name="shuffle_hard",
        title="Shuffled patches, hard",
        labels=patches.LABELS,
        statement=_SHUFFLE.format(
            image="27 x 27 pixels in colour out of a larger picture"
        ),
        origin="embedded",
        licence="CC BY 2.0: two photographs, as distributed with scikit-learn; cropped, "
        "bent and recoloured",
        citation="china.jpg by Flickr user pivot, flower.jpg by Flickr user dan; "
        + _WEIRDML,
        row_shape=(9, 9, 3),
        group=patches.GROUP,
        draw=patches.draw_hard,
    ),
    _made_task(
        name="drop4_winners",
        title="Who wins four in a row",
        labels=drop4.LABELS,
        statement=(
            "Each sample is a game of four in a row on a board of 7 columns and 6 rows between "
            "players who make mistakes. 'move00', 'move01', ... are the columns (1 to 7) that the "
            "first and the second player dropped a stone into, in turn; 0 means no move. 'moves' "
            "is their number. The last 0 to 3 moves of every game were taken away. Say who won: "
            "the first player, the second, or nobody."
        ),
        stands_for="chess_winners",
        draw=drop4.draw_games,
    ),
    _made_task(
        name="digits_few",
        title="Digits with 26 labels",
        labels=digits.LABELS,
        statement=(
            "Each sample is a picture of 15 x 7 pixels in colour of a digit from 1 to 6 on a "
            "varying background. Only 26 have a label; 15,962 more have none. The digits are very "
            "unevenly frequent among the unlabelled and the test pictures, and more evenly among "
            "the labelled ones. Say which digit it is."
        ),
        row_shape=(digits.HEIGHT, digits.WIDTH, 3),
        draw=digits.draw_digits,
    ),
)
#: The six tasks by name, as they are without any file of the user's.
TASKS: dict[str, WeirdTask] = {task.name: task for task in _ALL}

_CHESS = WeirdTask(
    name="chess_winners",
    title="Who wins a game of chess",
    labels=chess.LABELS,
    statement=(
        "Each sample is a game of chess between players rated below 1300, as its moves in short "
        "algebraic notation. With probability 1/2 the last move was taken away. Say who won: "
        "white, black, or nobody. In the table each move has four columns: the piece (1 pawn, "
        "2 knight, 3 bishop, 4 rook, 5 queen, 6 king), the square it went to (1 is a1, 8 is h1, "
        "64 is h8), flags (1 captures, 2 checks, 4 mates, 8 promotes, 16 and 32 castle) and a "
        "hint where it came from (1-8 file, 9-16 rank); 'moves' is their number."
    ),
    origin="real",
    licence="",
    draw=drop4.draw_games,
)
#: What a file of the user's may replace, with the form of the file.
DATA_FORMS = {
    "chess_winners": "games in PGN (.pgn or .pgn.zst)",
    "shuffle_easy": "grey images, NumPy's .npy of uint8, (n, height, width)",
    "shuffle_hard": "colour images, NumPy's .npy of uint8, (n, height, width, 3)",
}


def find_task(name: str) -> WeirdTask:
    """Return the task of a name.

    Raises
    ------
    SourceError
        There is none, or it needs a file.

    Examples
    --------
    >>> find_task("digits_few").labels[0]
    'd1'
    """
    if name == _CHESS.name:
        raise SourceError(
            "chess_winners needs a file of games",
            "hardsynth tasks weird --data chess_winners=FILE.pgn -o DIR, or use its offline "
            "stand-in weird/drop4_winners",
        )
    if name not in TASKS:
        raise SourceError(f"no weird task {name!r}", suggest_nearest(name, TASKS))
    return TASKS[name]


def draw_fold(
    task: WeirdTask,
    fold: int,
    *,
    seed: int = 0,
    literal: bool = False,
    salt: str = "",
) -> Draw:
    """Draw one fold of a task.

    Parameters
    ----------
    task : WeirdTask
    fold : int
        Every fold is another draw, keyed by (seed, task, fold).
    seed : int
    literal : bool
        All folds are fold 0: one set of data for all runs, as the seed of these tasks has it.
        A mean over such folds says how a framework varies, not how data do.
    salt : str
        A secret of whoever judges: how data are drawn is public, so that a program could draw the
        test rows and their labels again from the seed alone.

    Examples
    --------
    >>> draw = draw_fold(TASKS["drop4_winners"], 0)
    >>> draw.train.features.shape, len(draw.test)
    ((1000, 43), 1000)
    """
    number = 0 if literal else fold
    secret = [salt] if salt else []
    return task.draw(random_stream(seed, "weird", task.name, number, *secret))


def select_tasks(tasks: Sequence[WeirdTask], names: Sequence[str]) -> list[WeirdTask]:
    """Return the tasks of these names, in their own order; all tasks where none is named.

    Raises
    ------
    ConfigError

    Examples
    --------
    >>> [task.name for task in select_tasks(list(TASKS.values()), ["digits_few"])]
    ['digits_few']
    """
    known = [task.name for task in tasks]
    own = []
    for name in names:
        if ":" in name:
            own.append(import_task(name))
        elif name not in known:
            raise ConfigError(
                f"there is no task {name!r}", suggest_nearest(name, known)
            )
    return [task for task in tasks if not names or task.name in names] + own


def with_data_files(files: Mapping[str, Path], *, licence: str = "") -> list[WeirdTask]:
    """Return the tasks, with real data in the place of what the files replace.

    Parameters
    ----------
    files : mapping of str to Path
        By name of the task, see :data:`DATA_FORMS`.
    licence : str
        Of the user's files, for the manifest.

    Raises
    ------
    ConfigError, SourceError
    DataError
        A file has too few games or images for a fold; nothing is drawn.
    """
    for name in files:
        if name not in DATA_FORMS:
            raise ConfigError(
                f"--data names {name!r}, which takes no file",
                suggest_nearest(name, DATA_FORMS),
            )
    stated = licence or "not stated: the user's own copy, not to be published"
    tasks = []
    for task in TASKS.values():
        path = files.get(task.stands_for or task.name)
        tasks.append(task if path is None else _with_file(task, path, stated))
    return tasks


def _with_file(task: WeirdTask, path: Path, stated: str) -> WeirdTask:
    if task.stands_for == _CHESS.name:
        games = chess.read_games(path)
        # before minutes go by with other tasks
        chess.check_enough(games)
        draw = partial(chess.draw_games, file=games)
        note = (
            f"{path.name}: {len(games.games):,} games serve; {games.broken:,} broken ones and "
            f"{games.too_strong:,} of other ratings are left out"
        )
        return replace(_CHESS, licence=stated, draw=draw, note=note)
    is_colour = len(task.row_shape) == 3
    sizes: dict[str, Any] = {"n_train": 1000 if is_colour else 2000, "n_test": 1000}
    images = _read_images(path)
    patches.check_images(images, sum(sizes.values()), is_colour=is_colour)
    draw = partial(patches.draw_from_images, images=images, **sizes)
    image = f"27 x 27 pixels out of a picture of {path.name}"
    return replace(
        task,
        statement=_SHUFFLE.format(image=image),
        origin="real",
        licence=stated,
        citation="",
        draw=draw,
    )


def _read_images(path: Path) -> np.ndarray:
    try:
        # no pickles: the file may be anybody's
        images = np.load(path, allow_pickle=False)
        if not isinstance(images, np.ndarray):
            raise ValueError("it holds several arrays")
        return images
    except (OSError, ValueError) as error:
        raise SourceError(
            # the first sentence: numpy's next one advises to load code
            f"cannot read the images of {path}: {str(error).partition('. ')[0]}",
            "give a file that numpy.save wrote, of uint8",
        ) from None
