"""Nine patches of an image, shuffled: where in the image does each belong?

A row is a patch, ``image`` says which patches belong together, and the label is the place, read
row by row. AMLB's accuracy over the rows is WeirdML's accuracy over the flattened array.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from amlb_ext.core.errors import DataError
from amlb_ext.tasks.record import Draw, Rows, name_labels

LABELS = tuple(f"p{place}" for place in range(9))
#: Side of an image and of a patch.
SIDE = 27
PATCH = 9
GROUP = "image"


def cut_patches(images: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Cut images into nine patches each, in random order.

    Parameters
    ----------
    images : ndarray of shape (n, 27, 27[, 3])

    Returns
    -------
    patches : ndarray of shape (n, 9, 9, 9[, 3])
    places : ndarray of shape (n, 9)
        ``places[i, j]`` is where patch ``j`` of image ``i`` belongs.

    Examples
    --------
    >>> image = np.arange(27 * 27).reshape(1, 27, 27)
    >>> patches, places = cut_patches(image, np.random.default_rng(0))
    >>> first = int(np.flatnonzero(places[0] == 0)[0])
    >>> patches[0, first, 0, :3].tolist()
    [0, 1, 2]
    """
    blocks = []
    for top in range(0, SIDE, PATCH):
        for left in range(0, SIDE, PATCH):
            blocks.append(images[:, top : top + PATCH, left : left + PATCH])
    in_order = np.stack(blocks, axis=1)
    places = np.array([rng.permutation(9) for _ in images])
    index = places.reshape(len(images), 9, *[1] * (in_order.ndim - 2))
    return np.take_along_axis(in_order, index, axis=1), places


def rows_of_images(
    images: np.ndarray, rng: np.random.Generator, *, first_id: int
) -> Rows:
    """Return a row for each patch of 8-bit images."""
    patches, places = cut_patches(images, rng)
    values = patches.reshape(9 * len(images), -1).astype(np.int64)
    is_grey = images.ndim == 3
    channels = ("",) if is_grey else ("r", "g", "b")
    names = []
    for y in range(PATCH):
        for x in range(PATCH):
            names += [f"v{y}{x}{channel}" for channel in channels]
    features = pd.DataFrame(values, columns=names)
    ids = first_id + np.repeat(np.arange(len(images)), 9)
    features.insert(0, GROUP, ids)
    return Rows(features=features, labels=name_labels(places.ravel(), LABELS))


def draw_easy(rng: np.random.Generator) -> Draw:
    """Return 1,200 and 300 images of handwritten digits, enlarged and shifted."""
    images = _large_digits(1500, rng)
    return _draw_of_images(images[:1200], images[1200:], rng)


def draw_hard(rng: np.random.Generator, *, images: int = 1000) -> Draw:
    """Return crops of two photographs: training from the left halves, test from the right."""
    train = _photo_crops(images, rng, is_train=True)
    test = _photo_crops(images, rng, is_train=False)
    return _draw_of_images(train, test, rng)


def draw_from_images(
    rng: np.random.Generator, images: np.ndarray, *, n_train: int, n_test: int
) -> Draw:
    """Return a fresh split of real images, each cropped to 27 × 27 at random.

    Parameters
    ----------
    images : ndarray of shape (n, height, width[, 3]), uint8

    Raises
    ------
    DataError
        Too few images, too small, or not 8-bit.
    """
    wanted = n_train + n_test
    check_images(images, wanted, is_colour=images.ndim == 4)
    chosen = rng.permutation(len(images))[:wanted]
    crops = np.stack([_crop(images[row], rng) for row in chosen])
    return _draw_of_images(crops[:n_train], crops[n_train:], rng)


def check_images(images: np.ndarray, wanted: int, *, is_colour: bool) -> None:
    """Raise where images have another form than patches are cut from, or are too few.

    Raises
    ------
    DataError
    """
    has_form = images.ndim == 3
    form = "(n, height, width)"
    if is_colour:
        has_form = images.ndim == 4 and images.shape[3] == 3
        form = "(n, height, width, 3)"
    if images.dtype != np.uint8 or not has_form or min(images.shape[1:3]) < SIDE:
        raise DataError(
            f"the images are an array of {images.dtype} of shape {images.shape}",
            f"give uint8 of shape {form}, height and width at least {SIDE}",
        )
    if len(images) < wanted:
        raise DataError(
            f"the file has {len(images)} images, a fold takes {wanted:,}",
            "give a larger file",
        )


def _draw_of_images(
    train: np.ndarray, test: np.ndarray, rng: np.random.Generator
) -> Draw:
    # ids go on in the test rows: no id stands on both sides
    return Draw(
        train=rows_of_images(train, rng, first_id=0),
        test=rows_of_images(test, rng, first_id=len(train)),
    )


@cache
def _small_digits() -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return scikit-learn's digits, ``(1797, 8, 8)`` in [0, 1], and the rows of each digit."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    rows = tuple(np.flatnonzero(digits.target == digit) for digit in range(10))
    return digits.images / 16.0, rows


def _large_digits(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``n`` images of digits, at most 1,797, that stand in no collection.

    Each is a mixture of two of scikit-learn's digits of one kind, bent: whoever has the originals
    cannot look up which one it was, nor where its patches belong.
    """
    small, rows_of_digit = _small_digits()
    images = np.zeros((n, SIDE, SIDE), dtype=np.uint8)
    order = rng.permutation(len(small))[:n]
    kinds = np.zeros(len(small), dtype=int)
    for digit, rows in enumerate(rows_of_digit):
        kinds[rows] = digit
    for place, row in enumerate(order):
        other = rng.choice(rows_of_digit[kinds[row]])
        share = rng.uniform(0.35, 0.65)
        mixed = share * small[row] + (1 - share) * small[other]
        picture = _bent(mixed[:, :, None], rng, size=22, span=8.0)[:, :, 0]
        # as dark and as bright as one digit alone
        picture = np.clip((picture - 0.2) / 0.5, 0, 1)
        # In steps, and black where it is nearly so: a forest would read the place of a patch
        # from values of 0 and 1 of 255.
        picture = np.where(picture < 0.12, 0.0, np.round(picture * 16) / 16)
        top, left = rng.integers(0, 6, 2)
        images[place, top : top + 22, left : left + 22] = np.round(picture * 255)
    return images


def _bent(
    picture: np.ndarray, rng: np.random.Generator, *, size: int, span: float
) -> np.ndarray:
    """Return a picture turned, stretched and bent a little, ``(size, size, channels)``.

    Parameters
    ----------
    picture : ndarray of shape (height, width, channels)
    rng : Generator
    size : int
        Side of the outcome, in its own pixels.
    span : float
        The same side in pixels of ``picture``, whose middle stays the middle.
    """
    from scipy.ndimage import map_coordinates, zoom

    # of the outcome's pixels, in units of its side, from its middle
    steps = (np.arange(size) + 0.5) / size - 0.5
    grid = np.stack(np.meshgrid(steps, steps, indexing="ij")).reshape(2, -1)
    angle = rng.uniform(-0.2, 0.2)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    stretch = np.diag(rng.uniform(0.95, 1.1, 2))
    slant = np.array([[1.0, 0.0], [rng.uniform(-0.15, 0.15), 1.0]])
    waves = zoom(
        rng.normal(scale=0.03, size=(2, 4, 4)), (1, size / 4, size / 4), order=3
    )
    middle = (np.array(picture.shape[:2])[:, None] - 1) / 2
    places = span * (turn @ stretch @ slant @ grid + waves.reshape(2, -1)) + middle
    channels = [
        map_coordinates(picture[:, :, channel], places, order=1)
        for channel in range(picture.shape[2])
    ]
    return np.stack(channels, axis=-1).reshape(size, size, -1)


@cache
def _photographs() -> tuple[np.ndarray, ...]:
    from sklearn.datasets import load_sample_images

    return tuple(np.asarray(image) for image in load_sample_images().images)


def _photo_crops(n: int, rng: np.random.Generator, *, is_train: bool) -> np.ndarray:
    """Return 27 × 27 views of the photographs, ``(n, 27, 27, 3)``, bent and in other colours."""
    photographs = _photographs()
    crops = []
    for _ in range(n):
        photograph = photographs[rng.integers(len(photographs))]
        middle = photograph.shape[1] // 2
        half = photograph[:, :middle] if is_train else photograph[:, middle:]
        zoom = int(rng.integers(1, 4))
        # room for what is turned and bent
        side = 40 * zoom
        top = int(rng.integers(half.shape[0] - side + 1))
        left = int(rng.integers(half.shape[1] - side + 1))
        view = half[top : top + side, left : left + side].astype(float)
        view = view.reshape(40, zoom, 40, zoom, 3).mean(axis=(1, 3)) / 255
        # lying on any side, mirrored or not
        view = np.rot90(view, int(rng.integers(4)))
        view = view[:, ::-1] if rng.random() < 0.5 else view
        view = _bent(view, rng, size=SIDE, span=float(SIDE))
        crops.append(np.round(_recoloured(view, rng) * 255).astype(np.uint8))
    return np.stack(crops)


def _recoloured(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a picture in [0, 1] with its channels mixed, inverted at times, and brightened."""
    mixed = np.clip(view, 0, 1) @ rng.dirichlet(np.full(3, 0.5), size=3).T
    if rng.random() < 0.5:
        mixed = 1 - mixed
    return mixed ** rng.uniform(0.6, 1.6)


def _crop(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    top = int(rng.integers(image.shape[0] - SIDE + 1))
    left = int(rng.integers(image.shape[1] - SIDE + 1))
    return image[top : top + SIDE, left : left + SIDE]
