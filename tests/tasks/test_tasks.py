"""Weird tasks: what they are made of, and that nothing gives the answer away."""

import sys
import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy.ndimage import zoom
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from amlb_ext.core.assets import asset_path
from amlb_ext.core.errors import ConfigError, DataError, SourceError
from amlb_ext.tasks import TASKS, draw_fold, find_task, with_data_files
from amlb_ext.tasks.digits import draw_digits, glyph
from amlb_ext.tasks.drop4 import draw_games, has_four, play_game
from amlb_ext.tasks.patches import draw_from_images, draw_hard
from amlb_ext.tasks.shapes import (
    SHAPES,
    draw_shape,
    draw_shapes,
    shape_corners,
    shape_outline,
)

#: Task: a forest on the raw columns stays below, the task's reader comes above.
BOUNDS = {
    "shapes_easy": (0.70, 0.97),
    "shapes_hard": (0.30, 0.85),
    "shuffle_easy": (0.75, 0.84),
    "shuffle_hard": (0.15, 0.70),
    "drop4_winners": (0.65, 0.85),
    "digits_few": (0.40, 0.55),
}
#: Rows to train on and to test: as few as show it, since the whole takes minutes.
ROWS = {
    "shapes_easy": (400, 200),
    "shapes_hard": (250, 100),
    "shuffle_easy": (2700, 540),
    "shuffle_hard": (900, 540),
    "drop4_winners": (1000, 500),
    "digits_few": (26, 500),
}


@pytest.fixture(scope="session")
def readers():
    sys.path.insert(0, str(asset_path("frameworks", "WeirdReader")))
    try:
        import readers
    finally:
        del sys.path[0]
    return readers


@cache
def draw_few(name):
    rng = np.random.default_rng(1)
    if name.startswith("shapes"):
        return draw_shapes(rng, is_hard=name == "shapes_hard", rows=400)
    if name == "drop4_winners":
        return draw_games(rng, rows=1000)
    if name == "shuffle_hard":
        return draw_hard(rng, images=100)
    if name == "digits_few":
        return draw_digits(rng, unlabelled=2000)
    return draw_fold(TASKS[name], 0)


@pytest.mark.parametrize("name", TASKS)
def test_a_forest_fails_and_the_reader_does_not(readers, name):
    draw = draw_few(name)
    n_train, n_test = ROWS[name]
    X, y = draw.train.features[:n_train], draw.train.labels[:n_train].astype(str)
    T, truth = draw.test.features[:n_test], draw.test.labels[:n_test].astype(str)
    forest = RandomForestClassifier(30, random_state=0).fit(X.to_numpy(), y)
    floor, ceiling = BOUNDS[name]
    # three standard errors: the rows are few
    error = 3 * np.sqrt(0.25 / n_test)
    assert (forest.predict(T.to_numpy()) == truth).mean() <= floor + error

    reader = readers.READERS[name]()
    if name == "shapes_hard":
        reader.set_params(grid=32)
    with warnings.catch_warnings():
        # label spreading stops at its number of rounds
        warnings.simplefilter("ignore")
        more = () if draw.unlabelled is None else (draw.unlabelled,)
        reader.fit(X, y, *more)
    score = (reader.predict(T) == truth).mean()
    assert score >= ceiling - error
    if name == "drop4_winners":
        # replaying the board must not tell all
        assert score <= 0.97


@pytest.mark.exhaustive
def test_whoever_has_the_digits_cannot_look_the_places_up():
    """All 300 images were recognised among scikit-learn's digits, and .96 of the patches placed."""
    small = load_digits().images / 16
    large = zoom(small, (1, 22 / 8, 22 / 8), order=3).clip(0, 1)
    known = []
    for top, left in np.ndindex(6, 6):
        images = np.zeros((len(large), 27, 27), dtype=np.float32)
        images[:, top : top + 22, left : left + 22] = 255 * large
        known.append(cut_in_order(images))
    known = np.concatenate(known)
    test = draw_few("shuffle_easy").test
    squares = (known**2).sum(2)[:, None]
    pixels = test.features.drop(columns="image").to_numpy(np.float32)
    places = np.array([int(label[1]) for label in test.labels]).reshape(-1, 9)
    right = []
    for patches, truth in zip(pixels.reshape(-1, 9, 81)[:24], places, strict=False):
        distance = squares - 2 * (known @ patches.T).transpose(0, 2, 1)
        distance += (patches**2).sum(1)[:, None]
        nearest = distance[np.argsort(distance.min(2).sum(1))[:20]]
        placed = [linear_sum_assignment(costs)[1] for costs in nearest]
        totals = [
            costs[np.arange(9), at].sum()
            for costs, at in zip(nearest, placed, strict=True)
        ]
        right.append((placed[np.argmin(totals)] == truth).mean())
        # no picture is one of the collection
        assert min(totals) > 1e4
    # what a learner gets without them: .87
    assert np.mean(right) < 0.9


def cut_in_order(images):
    blocks = [images[:, a : a + 9, b : b + 9] for a in (0, 9, 18) for b in (0, 9, 18)]
    return np.stack(blocks, axis=1).reshape(len(images), 9, 81)


def test_a_fold_is_a_draw_and_literal_is_one():
    task = replace(TASKS["drop4_winners"], draw=partial(draw_games, rows=20))
    first = draw_fold(task, 0)
    assert not draw_fold(task, 0, salt="x").train.frame.equals(first.train.frame)
    assert draw_fold(task, 0).train.frame.equals(first.train.frame)
    assert not draw_fold(task, 1).train.frame.equals(first.train.frame)
    assert not draw_fold(task, 0, seed=1).train.frame.equals(first.train.frame)
    literal = draw_fold(task, 7, literal=True)
    assert literal.test.frame.equals(first.test.frame)


def test_flattened_accuracy_is_the_rows_accuracy():
    draw = draw_few("shuffle_easy")
    image = draw.test.features["image"].to_numpy().reshape(-1, 9)
    # the nine patches of an image stand together, and each place is taken once
    assert (image == image[:, :1]).all()
    places = draw.test.labels.reshape(-1, 9)
    assert (np.sort(places.astype(str), axis=1) == sorted(set(places[0]))).all()
    guess = np.roll(places, 1, axis=0)
    per_image = (guess == places).mean(axis=1)
    assert per_image.mean() == pytest.approx((guess.ravel() == draw.test.labels).mean())
    assert not set(draw.train.features["image"]) & set(draw.test.features["image"])


@pytest.mark.parametrize("shape", SHAPES)
def test_outlines_are_where_they_should_be(shape):
    t = np.linspace(0, 1, 50, endpoint=False)
    points = shape_outline(shape, t, 0.4)
    distance = np.hypot(points[:, 0], points[:, 1])
    assert distance.max() <= 0.4 + 1e-12
    if shape != "circle":
        corners = shape_corners(shape, 0.4)
        assert (
            len(corners)
            == {"triangle": 3, "square": 4, "pentagon": 5, "star": 10}[shape]
        )
        assert np.allclose(points[0], corners[0])
    for is_hard in (False, True):
        sample = draw_shape(shape, np.random.default_rng(1), is_hard=is_hard)
        assert sample.shape == (512, 2)
        assert sample.min() >= 0
        assert sample.max() <= 1


def test_digits_are_uneven_and_all_labelled_once():
    draw = draw_digits(np.random.default_rng(0), unlabelled=200)
    assert len(draw.train) == 26
    assert len(set(draw.train.labels)) == 6
    assert draw.unlabelled.shape == (200, 315)
    assert list(draw.unlabelled) == list(draw.test.features)
    counts = [(draw.test.labels == f"d{k}").sum() for k in range(1, 7)]
    assert counts[0] > 3 * counts[3]
    assert len({glyph(code).tobytes() for code in range(6)}) == 6


def test_four_in_a_row_is_found_in_all_directions_and_nowhere_else():
    def board(cells):
        return sum(1 << (7 * column + row) for column, row in cells)

    assert has_four(board([(0, 0), (0, 1), (0, 2), (0, 3)]))
    assert has_four(board([(0, 0), (1, 0), (2, 0), (3, 0)]))
    assert has_four(board([(0, 0), (1, 1), (2, 2), (3, 3)]))
    assert has_four(board([(0, 3), (1, 2), (2, 1), (3, 0)]))
    # over the upper edge into the next column is no line
    assert not has_four(board([(0, 4), (0, 5), (1, 0), (1, 1)]))
    moves, winner = play_game(np.random.default_rng(0))
    assert 7 <= len(moves) <= 42
    assert winner in (0, 1, 2)


def test_what_replaces_what_is_said():
    with pytest.raises(SourceError, match=r"drop4_winners"):
        find_task("chess_winners")
    with pytest.raises(SourceError, match="did you mean 'shapes_easy'"):
        find_task("shapes_eazy")
    with pytest.raises(ConfigError, match="takes no file"):
        with_data_files({"digits_few": "x"})
    for task in TASKS.values():
        assert task.licence
        assert task.origin != "real"


def test_real_images_take_the_place_of_embedded_ones(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 28), dtype=np.uint8)
    draw = draw_from_images(np.random.default_rng(0), images, n_train=30, n_test=10)
    assert draw.train.features.shape == (270, 82)
    np.save(tmp_path / "few.npy", images)
    with pytest.raises(DataError, match="has 40 images, a fold takes 3,000"):
        with_data_files({"shuffle_easy": tmp_path / "few.npy"})
    # in grey where colour is wanted
    with pytest.raises(DataError, match="height, width, 3"):
        with_data_files({"shuffle_hard": tmp_path / "few.npy"})
    np.savez(tmp_path / "several.npz", images)
    with pytest.raises(SourceError, match="several arrays"):
        with_data_files({"shuffle_easy": tmp_path / "several.npz"})
    enough = np.zeros((3000, 27, 27), dtype=np.uint8)
    np.save(tmp_path / "enough.npy", enough)
    [_, _, task, *_] = with_data_files({"shuffle_easy": tmp_path / "enough.npy"})
    assert task.origin == "real"
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    with pytest.raises(SourceError, match="cannot read the images"):
        with_data_files({"shuffle_easy": tmp_path / "objects.npy"})
