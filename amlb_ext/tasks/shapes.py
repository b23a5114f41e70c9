"""Points on the outline of a shape, among noise: 512 points, five shapes.

Notation
--------
t : (m,) positions along the outline, in [0, 1)
p : (m, 2) points; the unit square holds them all

The number of points, the shapes, and what is random in the hard task are WeirdML's. The sizes
and the noise are ours, after the author's figures: with fewer noise points a forest on the raw
columns reached .77 on the easy task, where language models have a median of .96.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from amlb_ext.tasks.record import Draw, Rows, name_labels

SHAPES = ("circle", "square", "triangle", "pentagon", "star")
LABELS = tuple(f"c{code}_{shape}" for code, shape in enumerate(SHAPES))
POINTS = 512
#: Distance of the corners, or of the circle, from the centre.
RADII = {"circle": 0.31, "square": 0.42, "triangle": 0.29, "pentagon": 0.4, "star": 0.4}
#: How many corners a regular shape has, and the angle of the first one.
CORNERS = {
    "triangle": (3, np.pi / 2),
    "square": (4, np.pi / 4),
    "pentagon": (5, 0.0),
}
#: How far the inner corners of a star lie from its centre, in radii of the outer ones.
_INNER_STAR = 0.4
#: Arcs of an outline on which points are unevenly frequent.
_ARCS = 12


def shape_corners(shape: str, radius: float) -> np.ndarray:
    """Return the corners of a shape around the origin, ``(k, 2)``."""
    if shape == "star":
        number = np.arange(10)
        angles = number * np.pi / 5
        # every second corner points inwards
        is_outer = number % 2 == 0
        radii = np.where(is_outer, radius, radius * _INNER_STAR)
    else:
        n_corners, first_angle = CORNERS[shape]
        number = np.arange(n_corners)
        angles = first_angle + number * 2 * np.pi / n_corners
        radii = np.full(n_corners, radius)
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])


def shape_outline(shape: str, t: np.ndarray, radius: float) -> np.ndarray:
    """Return the points of an outline at positions ``t``, ``(m, 2)``.

    Examples
    --------
    >>> shape_outline("circle", np.array([0.0, 0.25]), 1.0).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if shape == "circle":
        angles = 2 * np.pi * t
        return radius * np.column_stack([np.cos(angles), np.sin(angles)])
    corners = shape_corners(shape, radius)
    edges = np.roll(corners, -1, axis=0) - corners
    lengths = np.hypot(edges[:, 0], edges[:, 1])
    # where each edge begins along the outline, and the last one ends
    ends = np.concatenate([[0.0], lengths.cumsum()])
    starts = ends / lengths.sum()
    edge = np.searchsorted(starts, t, side="right") - 1
    # rounding may put a position behind the last edge
    edge = np.minimum(edge, len(corners) - 1)
    along = (t - starts[edge]) / (starts[edge + 1] - starts[edge])
    return corners[edge] + along[:, None] * edges[edge]


def draw_shape(shape: str, rng: np.random.Generator, *, is_hard: bool) -> np.ndarray:
    """Return one sample, ``(512, 2)`` in the unit square.

    In the hard task place, size and turn are random too.
    """
    n_noise = int(rng.integers(10, 400))
    p = _outline_points(shape, POINTS - n_noise, rng)
    if is_hard:
        turn = rng.uniform(0, 2 * np.pi)
        cos = np.cos(turn)
        sin = np.sin(turn)
        rotation = np.array([[cos, -sin], [sin, cos]])
        size = rng.uniform(0.45, 1.1)
        place = rng.uniform(0.25, 0.75, 2)
        p = size * p @ rotation + place
    else:
        p = p + 0.5
    points = np.vstack([p, _noise_points(n_noise, rng)])
    # what falls outside of the square becomes noise
    is_outside = (points < 0) | (points > 1)
    points = np.where(is_outside, rng.random(points.shape), points)
    return points[rng.permutation(POINTS)]


def draw_shapes(rng: np.random.Generator, *, is_hard: bool, rows: int = 1000) -> Draw:
    """Return 1,000 training and 1,000 test samples, five shapes at random."""
    train = _draw_rows(rng, rows, is_hard=is_hard)
    test = _draw_rows(rng, rows, is_hard=is_hard)
    return Draw(train=train, test=test)


def _draw_rows(rng: np.random.Generator, rows: int, *, is_hard: bool) -> Rows:
    codes = rng.integers(len(SHAPES), size=rows)
    samples = [draw_shape(SHAPES[code], rng, is_hard=is_hard) for code in codes]
    values = np.stack(samples).reshape(rows, 2 * POINTS)
    # four decimals: the file of a fold has 14 MB, and a pixel of any use is coarser
    values = values.round(4)
    names = []
    for point in range(POINTS):
        names += [f"x{point:03d}", f"y{point:03d}"]
    features = pd.DataFrame(values, columns=names)
    return Rows(features=features, labels=name_labels(codes, LABELS))


def _outline_points(shape: str, m: int, rng: np.random.Generator) -> np.ndarray:
    """Return points along the outline, very unevenly: some arcs have none."""
    shares = rng.dirichlet(np.full(_ARCS, 0.3))
    arc = rng.choice(_ARCS, m, p=shares)
    within_arc = rng.random(m)
    # the arcs begin anywhere along the outline
    first_arc = rng.random()
    t = (arc + within_arc + first_arc) / _ARCS % 1
    # some points are spread evenly all the same
    is_even = rng.random(m) < rng.choice([0.0, 0.05, 0.4])
    t[is_even] = rng.random(int(is_even.sum()))
    jitter = rng.choice([0.004, 0.01, 0.02])
    outline = shape_outline(shape, t, RADII[shape])
    return outline + jitter * rng.uniform(-1, 1, (m, 2))


def _noise_points(n_noise: int, rng: np.random.Generator) -> np.ndarray:
    """Return bursts of noise, each in the whole square or in a random box."""
    bursts = []
    left = n_noise
    while left > 0:
        most = int(rng.integers(5, 60))
        size = min(left, most)
        low = rng.uniform(0, 0.8, 2)
        width = rng.uniform(0.05, 0.5, 2)
        burst = rng.random((size, 2))
        if rng.random() >= 0.5:
            burst = np.minimum(low + width * burst, 1)
        bursts.append(burst)
        left -= size
    return np.vstack(bursts)
