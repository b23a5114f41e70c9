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
#: Side of a digit that is enlarged.
DIGIT_SIDE = 22
#: Side of the view of a photograph, with room for what is turned and bent.
VIEW_SIDE = 40
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
    # one index for all pixels and channels of a patch
    index = np.expand_dims(places, tuple(range(2, in_order.ndim)))
    return np.take_along_axis(in_order, index, axis=1), places


def rows_of_images(
    images: np.ndarray, rng: np.random.Generator, *, first_id: int
) -> Rows:
    """Return a row for each patch of 8-bit images."""
    patches, places = cut_patches(images, rng)
    values = patches.reshape(9 * len(images), -1).astype(np.int64)
    channels = ("",) if images.ndim == 3 else ("r", "g", "b")
    names = []
    for y in range(PATCH):
        for x in range(PATCH):
            names += [f"v{y}{x}{channel}" for channel in channels]
    features = pd.DataFrame(values, columns=names)
    numbers = first_id + np.arange(len(images))
    features.insert(0, GROUP, np.repeat(numbers, 9))
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
    order = rng.permutation(len(images))
    crops = np.stack([_crop(images[row], rng) for row in order[:wanted]])
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


def _large_digits(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``n`` images of digits, at most 1,797, that stand in no collection.

    Each is a mixture of two of scikit-learn's digits of one kind, bent: whoever has the originals
    cannot look up which one it was, nor where its patches belong.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    small = digits.images / 16.0
    images = np.zeros((n, SIDE, SIDE), dtype=np.uint8)
    for place, row in enumerate(rng.permutation(len(small))[:n]):
        other = rng.choice(np.flatnonzero(digits.target == digits.target[row]))
        share = rng.uniform(0.35, 0.65)
        mixed = share * small[row] + (1 - share) * small[other]
        bent = _bent(mixed[:, :, None], rng, size=DIGIT_SIDE, span=8.0)
        # as dark and as bright as one digit alone
        picture = np.clip((bent[:, :, 0] - 0.2) / 0.5, 0, 1)
        # In steps, and black where it is nearly so: a forest would read the place of a patch
        # from values of 0 and 1 of 255.
        in_steps = np.round(picture * 16) / 16
        picture = np.where(picture < 0.12, 0.0, in_steps)
        top, left = rng.integers(0, SIDE - DIGIT_SIDE + 1, 2)
        box = images[place, top : top + DIGIT_SIDE, left : left + DIGIT_SIDE]
        box[:] = np.round(picture * 255)
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
    y, x = np.meshgrid(steps, steps, indexing="ij")
    grid = np.stack([y, x]).reshape(2, -1)
    angle = rng.uniform(-0.2, 0.2)
    cos = np.cos(angle)
    sin = np.sin(angle)
    turn = np.array([[cos, -sin], [sin, cos]])
    stretch = np.diag(rng.uniform(0.95, 1.1, 2))
    slant = np.array([[1.0, 0.0], [rng.uniform(-0.15, 0.15), 1.0]])
    # a few random steps, and smooth ones between them
    knots = rng.normal(scale=0.03, size=(2, 4, 4))
    waves = zoom(knots, (1, size / 4, size / 4), order=3)
    middle = (np.array([picture.shape[:2]]).T - 1) / 2
    moved = turn @ stretch @ slant @ grid + waves.reshape(2, -1)
    places = (span * moved + middle).reshape(2, size, size)
    channels = np.moveaxis(picture, -1, 0)
    bent = [map_coordinates(channel, places, order=1) for channel in channels]
    return np.stack(bent, axis=-1)


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
        view = _crop(half, rng, VIEW_SIDE * zoom).astype(float)
        blocks = view.reshape(VIEW_SIDE, zoom, VIEW_SIDE, zoom, 3)
        view = blocks.mean(axis=(1, 3)) / 255
        # lying on any side, mirrored or not
        view = np.rot90(view, int(rng.integers(4)))
        if rng.random() < 0.5:
            view = view[:, ::-1]
        view = _bent(view, rng, size=SIDE, span=float(SIDE))
        # channels mixed, inverted at times, and brightened
        shares = rng.dirichlet(np.full(3, 0.5), size=3)
        view = np.clip(view, 0, 1) @ shares.T
        if rng.random() < 0.5:
            view = 1 - view
        view = view ** rng.uniform(0.6, 1.6) * 255
        crops.append(np.round(view).astype(np.uint8))
    return np.stack(crops)


def _crop(image: np.ndarray, rng: np.random.Generator, side: int = SIDE) -> np.ndarray:
    height, width = image.shape[:2]
    top = int(rng.integers(height - side + 1))
    left = int(rng.integers(width - side + 1))
    return image[top : top + side, left : left + side]
