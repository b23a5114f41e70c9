"""Pictures of six digits: 26 with a label, 15,962 without, and a test set that is uneven."""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.tasks.record import Draw, Rows, name_labels

LABELS = tuple(f"d{digit}" for digit in range(1, 7))
HEIGHT, WIDTH = 15, 7
LABELLED, UNLABELLED, TEST = 26, 15_962, 500
#: Shares of the digits among the unlabelled and the test rows, and among the labelled ones, which
#: have more of the rare digits.
SHARES = np.array([0.46, 0.29, 0.14, 0.07, 0.03, 0.01])
LABELLED_SHARES = np.array([0.2, 0.2, 0.18, 0.16, 0.14, 0.12])
#: Of a digit's colour and the mean one behind it, in levels of 0 to 255.
LEAST_CONTRAST = 45
_GLYPHS = (
    "..#.. .##.. ..#.. ..#.. ..#.. ..#.. .###.",
    ".###. #...# ....# ..##. .#... #.... #####",
    ".###. #...# ....# ..##. ....# #...# .###.",
    "...#. ..##. .#.#. #..#. ##### ...#. ...#.",
    "##### #.... ####. ....# ....# #...# .###.",
    "..##. .#... #.... ####. #...# #...# .###.",
)


def draw_digits(rng: np.random.Generator, *, unlabelled: int = UNLABELLED) -> Draw:
    """Return 26 labelled, 500 test and 15,962 unlabelled pictures of 15 × 7 in colour."""
    spare, _ = _pictures(unlabelled, rng, SHARES)
    test, test_codes = _pictures(TEST, rng, SHARES)
    train, codes = _pictures(LABELLED, rng, LABELLED_SHARES, one_of_each=True)
    return Draw(
        train=Rows(features=_frame(train), labels=name_labels(codes, LABELS)),
        test=Rows(features=_frame(test), labels=name_labels(test_codes, LABELS)),
        unlabelled=_frame(spare),
    )


def glyph(code: int) -> np.ndarray:
    """Return a digit as a mask, ``(14, 5)``."""
    lines = _GLYPHS[code].split()
    mask = np.array([list(line) for line in lines]) == "#"
    # twice as high as it is written
    return np.repeat(mask, 2, axis=0)


def _pictures(
    n: int, rng: np.random.Generator, shares: np.ndarray, *, one_of_each: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return pictures ``(n, 15, 7, 3)`` of uint8 and their codes ``(n,)``."""
    codes = rng.choice(6, n, p=shares)
    if one_of_each:
        codes[:6] = np.arange(6)
        codes = codes[rng.permutation(n)]
    background = _backgrounds(n, rng)
    colour = _contrasting_colours(background.mean(axis=(1, 2)), rng)
    masks = np.zeros((n, HEIGHT, WIDTH), dtype=bool)
    glyphs = [glyph(code) for code in range(6)]
    glyph_height, glyph_width = glyphs[0].shape
    tops = rng.integers(0, HEIGHT - glyph_height + 1, n)
    lefts = rng.integers(0, WIDTH - glyph_width + 1, n)
    for row in range(n):
        y = slice(tops[row], tops[row] + glyph_height)
        x = slice(lefts[row], lefts[row] + glyph_width)
        masks[row, y, x] = glyphs[codes[row]]
    # a colour for each picture, and a mask for each of its channels
    pictures = np.where(masks[..., None], colour[:, None, None], background)
    return pictures.round().clip(0, 255).astype(np.uint8), codes


def _backgrounds(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return noisy gradients between two colours, ``(n, 15, 7, 3)``."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH] / (HEIGHT - 1)
    # a colour for each picture, the same for all of its pixels
    first = rng.uniform(0, 255, (n, 1, 1, 3))
    second = rng.uniform(0, 255, (n, 1, 1, 3))
    angle_y = rng.uniform(0, 6, (n, 1, 1))
    angle_x = rng.uniform(0, 6, (n, 1, 1))
    ramp = np.cos(angle_y) * y + np.sin(angle_x) * x
    noise = rng.normal(0, 18, (n, HEIGHT, WIDTH, 3))
    return first + (second - first) * ramp[..., None] + noise


def _contrasting_colours(mean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a colour for each picture that differs from its background's mean, ``(n, 3)``."""
    colours = rng.uniform(0, 255, mean.shape)
    while True:
        contrast = np.abs(colours - mean).mean(axis=1)
        weak = np.flatnonzero(contrast < LEAST_CONTRAST)
        if not len(weak):
            return colours + rng.normal(0, 12, colours.shape)
        colours[weak] = rng.uniform(0, 255, (len(weak), 3))


def _frame(pictures: np.ndarray) -> pd.DataFrame:
    names = []
    for y in range(HEIGHT):
        for x in range(WIDTH):
            names += [f"r{y:02d}c{x}_{channel}" for channel in "rgb"]
    values = pictures.reshape(len(pictures), -1).astype(np.int64)
    return pd.DataFrame(values, columns=names)
