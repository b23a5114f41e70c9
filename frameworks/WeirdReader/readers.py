"""Readers of the weird tasks: a representation that fits the task, and a plain model behind it.

Runs in AMLB's environment (Python 3.9, scikit-learn 1.2), so it imports numpy, scipy, pandas and
scikit-learn alone. All readers are scikit-learn classifiers on the columns of the task's files.

Notation
--------
P : (n, 512, 2) points of each sample
I : (n, g, g) points counted in the cells of a grid
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np
from scipy.fft import rfft2
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading

# --- shapes --------------------------------------------------------------------------------------

#: Shape: distance of its corners from the centre, their number, the first one's angle.
SHAPES = {
    "circle": (0.31, 0, 0.0),
    "square": (0.42, 4, np.pi / 4),
    "triangle": (0.29, 3, np.pi / 2),
    "pentagon": (0.40, 5, 0.0),
    "star": (0.40, 10, 0.0),
}
#: How many turns are tried of a shape that is the same after some angle.
TURNS = {"circle": 1, "square": 6, "triangle": 9, "pentagon": 5, "star": 5}


#: A shape's centre lies at most so far from that of the square, along each axis.
REACH = 0.25
#: Matches of rows that were asked for before; ten numbers a row.
_KNOWN_MATCHES = {}
_MOST_KNOWN = 100_000


class OutlineReader(ClassifierMixin, BaseEstimator):
    """Match the outline of every shape over all places, sizes and turns; then a linear model.

    Parameters
    ----------
    is_hard : bool
        Whether place, size and turn are random.
    grid : int
    """

    def __init__(self, is_hard=True, grid=48):
        self.is_hard = is_hard
        self.grid = grid

    def fit(self, X, y):
        """Fit the linear model on the best match of each shape."""
        linear = LogisticRegression(max_iter=500)
        self.model_ = make_pipeline(StandardScaler(), linear).fit(self._matches(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        """Return probabilities, ``(n, 5)``."""
        return self.model_.predict_proba(self._matches(X))

    def predict(self, X):
        """Return labels, ``(n,)``."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _matches(self, X):
        """Return the best and the second-best template's match of each shape, ``(n, 10)``."""
        values = np.ascontiguousarray(X, dtype=float)
        if values.shape[1] % 2:
            raise ValueError(
                f"columns x000, y000, x001, y001, ... are wanted; there are {values.shape[1]}"
            )
        # cross-validation asks for the same rows again and again
        keys = [self._row_key(row) for row in values]
        new = [position for position, key in enumerate(keys) if key not in _KNOWN_MATCHES]
        if len(_KNOWN_MATCHES) + len(new) > _MOST_KNOWN:
            _KNOWN_MATCHES.clear()
            new = list(range(len(keys)))
        for start in range(0, len(new), 250):
            block = new[start : start + 250]
            for position, matches in zip(block, self._match_block(values[block])):
                _KNOWN_MATCHES[keys[position]] = matches
        return np.array([_KNOWN_MATCHES[key] for key in keys])

    def _row_key(self, row):
        """Return what tells a row's matches from others: they do not depend on labels."""
        digest = blake2b(row.tobytes(), digest_size=16).digest()
        return (self.is_hard, self.grid, digest)

    def _match_block(self, values):
        g = self.grid
        padded = _padded(g)
        counts = np.minimum(count_points(values, g), 2).astype(np.float32)
        counts -= counts.mean(axis=(1, 2), keepdims=True)
        spectrum = rfft2(counts, (padded, padded))
        reach = round(REACH * g) + 1 if self.is_hard else 0
        along_x, along_y = _inverse_at(np.arange(-reach, reach + 1), padded)
        matches = np.full((len(values), len(SHAPES), 2), -9.0, dtype=np.float32)
        for shape, template in _templates(self.is_hard, g):
            # the inverse transform at the shifts that are allowed, not at all: half the time
            rows = np.matmul(along_x, spectrum * template)
            parts = rows.reshape(-1, rows.shape[2]).view(np.float32)
            match = (parts @ along_y).reshape(len(values), -1).max(axis=1)
            best, second = matches[:, shape, 0], matches[:, shape, 1]
            matches[:, shape, 1] = np.maximum(second, np.minimum(best, match))
            matches[:, shape, 0] = np.maximum(best, match)
        return matches.reshape(len(values), -1).astype(float)


def _inverse_at(shifts, size):
    """Return the matrices that turn a spectrum of ``rfft2`` into values at some shifts.

    Parameters
    ----------
    shifts : ndarray of int, (s,)
        Along both axes.
    size : int
        Of the transform.

    Returns
    -------
    along_x : (s, size), complex
    along_y : (2 (size // 2 + 1), s)
        For real and imaginary parts in turn.
    """
    along_x = np.exp(2j * np.pi * np.outer(shifts, np.arange(size)) / size) / size
    waves = np.arange(size // 2 + 1)
    # a real signal's spectrum holds half of the waves: the others are their conjugates
    times = np.where((waves == 0) | (2 * waves == size), 1, 2)[:, None] / size
    angles = 2 * np.pi * np.outer(waves, shifts) / size
    along_y = np.empty((2 * len(waves), len(shifts)), dtype=np.float32)
    along_y[0::2] = times * np.cos(angles)
    along_y[1::2] = -times * np.sin(angles)
    return along_x.astype(np.complex64), along_y


def count_points(values, grid):
    """Return how many points lie in each cell, ``(n, grid, grid)``."""
    points = values.reshape(len(values), -1, 2)
    cells = np.clip((points * grid).astype(int), 0, grid - 1)
    flat = cells[:, :, 0] * grid + cells[:, :, 1]
    flat += np.arange(len(values))[:, None] * grid * grid
    counts = np.bincount(flat.ravel(), minlength=len(values) * grid * grid)
    return counts.reshape(len(values), grid, grid)


def _outline(shape, size):
    radius, corners, first = SHAPES[shape]
    radius = radius * size
    if not corners:
        angles = np.linspace(0, 2 * np.pi, 600, endpoint=False)
        return radius * np.column_stack([np.cos(angles), np.sin(angles)])
    angles = first + np.arange(corners + 1) * 2 * np.pi / corners
    radii = np.full(corners + 1, radius)
    if shape == "star":
        radii[1::2] *= 0.4
    at = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    share = np.linspace(0, 1, 600 // corners, endpoint=False)[:, None]
    return np.vstack([a + share * (b - a) for a, b in zip(at[:-1], at[1:])])


def _padded(grid):
    """Return a size at which no outline that is shifted as far as it may wraps around."""
    return 3 * grid // 2


@lru_cache(maxsize=4)
def _templates(is_hard, grid):
    """Return (shape number, conjugate spectrum) of each outline that is tried."""
    templates = []
    for number, shape in enumerate(SHAPES):
        turns = TURNS[shape] if is_hard else 1
        # a star is the same after a fifth of a turn, though it has ten corners
        symmetry = {"circle": 1, "square": 4, "triangle": 3}.get(shape, 5)
        for size in np.linspace(0.45, 1.1, 9) if is_hard else [1.0]:
            for turn in np.arange(turns) * 2 * np.pi / symmetry / turns:
                cos, sin = np.cos(turn), np.sin(turn)
                outline = _outline(shape, size) @ np.array([[cos, -sin], [sin, cos]])
                where = ((outline + 0.5) * grid).T
                hit = np.histogram2d(*where, grid, [[0, grid], [0, grid]])[0] > 0
                smooth = gaussian_filter(hit.astype(np.float32), 0.8)
                smooth /= np.sqrt((smooth**2).sum())
                spectrum = np.conj(rfft2(smooth, (_padded(grid), _padded(grid))))
                templates.append((number, spectrum.astype(np.complex64)))
    return templates


# --- patches -------------------------------------------------------------------------------------


class PatchReader(ClassifierMixin, BaseEstimator):
    """Put patches side by side where their borders fit, and where a forest would put them.

    Parameters
    ----------
    position : float
        What the forest's opinion on a patch's place counts, beside the fit of borders.
    trees : int
    """

    def __init__(self, position=0.5, trees=100):
        self.position = position
        self.trees = trees

    def fit(self, X, y):
        """Fit the forest that knows a patch's place from the patch alone."""
        pixels, _ = self._split(X)
        forest = RandomForestClassifier(self.trees, min_samples_leaf=2, random_state=0)
        self.model_ = forest.fit(pixels, y)
        self.classes_ = forest.classes_
        return self

    def predict_proba(self, X):
        """Return probabilities, ``(n, 9)``: nearly all on the place that was chosen."""
        pixels, image = self._split(X)
        forest = self.model_.predict_proba(pixels)
        places = np.zeros(len(pixels), dtype=int)
        for number in np.unique(image):
            rows = np.flatnonzero(image == number)
            # a baseline may be asked for some patches of an image only
            if len(rows) == 9:
                places[rows] = self._solve(pixels[rows], forest[rows])
            else:
                places[rows] = forest[rows].argmax(axis=1)
        chosen = np.eye(9)[places]
        return 0.9 * chosen + 0.1 * forest

    def predict(self, X):
        """Return labels, ``(n,)``."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _split(self, X):
        values = np.asarray(X, dtype=float)
        return values[:, 1:], values[:, 0]

    def _solve(self, pixels, forest):
        """Return the place of each of nine patches: the cheapest arrangement that swaps find."""
        patches = pixels.reshape(9, 9, 9, -1)
        right, below = _border_costs(patches)
        unary = -self.position * np.log(forest + 1e-3)
        rng = np.random.default_rng(0)
        starts = [_assignment(unary)] + [rng.permutation(9) for _ in range(3)]
        best = min(
            (_swap(start, right, below, unary) for start in starts), key=lambda found: found[1]
        )[0]
        places = np.empty(9, dtype=int)
        places[best] = np.arange(9)
        return places


def _assignment(unary):
    patch, place = linear_sum_assignment(unary)
    at = np.empty(9, dtype=int)
    at[place] = patch
    return at


def _border_costs(patches):
    """Return the misfit of each pair side by side, and one above the other, ``(9, 9)`` each.

    Both sides are continued linearly by half a pixel; flat images are not divided by zero.
    """

    def misfit(last, before, first, after):
        here = (1.5 * last - 0.5 * before).reshape(9, 1, -1)
        there = (1.5 * first - 0.5 * after).reshape(1, 9, -1)
        cost = ((here - there) ** 2).mean(axis=2)
        return cost / (np.median(cost) + 6.0)

    right = misfit(patches[:, :, 8], patches[:, :, 7], patches[:, :, 0], patches[:, :, 1])
    below = misfit(patches[:, 8], patches[:, 7], patches[:, 0], patches[:, 1])
    return right, below


def _swap(at, right, below, unary):
    """Swap two patches as long as that helps; return the arrangement and its cost."""

    def cost(at):
        square = at.reshape(3, 3)
        beside = right[square[:, :2], square[:, 1:]].sum()
        under = below[square[:2], square[1:]].sum()
        return beside + under + unary[at, np.arange(9)].sum()

    lowest = cost(at)
    improved = True
    while improved:
        improved = False
        for i in range(8):
            for j in range(i + 1, 9):
                other = at.copy()
                other[i], other[j] = at[j], at[i]
                value = cost(other)
                if value < lowest - 1e-12:
                    at, lowest, improved = other, value, True
    return at, lowest


# --- digits --------------------------------------------------------------------------------------


class SpreadingReader(ClassifierMixin, BaseEstimator):
    """Contrast against the background, labels spread over unlabelled rows, then a forest.

    Parameters
    ----------
    most : int
        Unlabelled rows to use, the first ones; more take longer than they help.
    """

    def __init__(self, most=4000):
        self.most = most

    def fit(self, X, y, unlabelled=None):
        """Fit on the labelled rows, and on unlabelled ones where there are some."""
        seen = contrast(X)
        labels = np.asarray(y)
        if unlabelled is not None:
            classes, codes = np.unique(labels, return_inverse=True)
            both = np.vstack([seen, contrast(unlabelled[: self.most])])
            z = PCA(20, random_state=0).fit_transform(both)
            marks = np.concatenate([codes, np.full(len(both) - len(seen), -1)])
            spreading = LabelSpreading("knn", n_neighbors=10, alpha=0.2, max_iter=50)
            labels = classes[spreading.fit(z, marks).transduction_]
            seen = both
        forest = RandomForestClassifier(150, random_state=0)
        self.model_ = forest.fit(seen, labels)
        self.classes_ = forest.classes_
        return self

    def predict_proba(self, X):
        """Return probabilities, ``(n, 6)``."""
        return self.model_.predict_proba(contrast(X))

    def predict(self, X):
        """Return labels, ``(n,)``."""
        return self.model_.predict(contrast(X))


def contrast(X):
    """Return how far each pixel is from the picture's median colour, ``(n, 105)`` in [0, 1]."""
    pixels = np.asarray(X, dtype=float).reshape(len(X), -1, 3)
    background = np.median(pixels, axis=1, keepdims=True)
    distance = np.abs(pixels - background).mean(axis=2)
    return distance / (distance.max(axis=1, keepdims=True) + 1e-9)


# --- four in a row -------------------------------------------------------------------------------


class BoardReader(ClassifierMixin, BaseEstimator):
    """Replay the board: who has four, who threatens four, and whose turn it is."""

    def __init__(self, trees=300):
        self.trees = trees

    def fit(self, X, y):
        """Fit a forest on what the boards show."""
        forest = RandomForestClassifier(self.trees, min_samples_leaf=3, random_state=0)
        self.model_ = forest.fit(boards(X), y)
        self.classes_ = forest.classes_
        return self

    def predict_proba(self, X):
        """Return probabilities, ``(n, 3)``."""
        return self.model_.predict_proba(boards(X))

    def predict(self, X):
        """Return labels, ``(n,)``."""
        return self.model_.predict(boards(X))


@lru_cache(maxsize=1)
def _lines():
    """Return the cells of every four in a row, ``(69, 4)``."""
    lines = []
    for row in range(6):
        for column in range(7):
            for up, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(row + k * up, column + k * right) for k in range(4)]
                if all(0 <= r < 6 and 0 <= c < 7 for r, c in cells):
                    lines.append([r * 7 + c for r, c in cells])
    return np.array(lines)


def boards(X):
    """Return what the replayed boards show, ``(n, 11)``."""
    return np.array([_board(row) for row in np.asarray(X, dtype=float).round().astype(int)])


def _board(moves):
    stones = np.zeros(42, dtype=int)
    heights = [0] * 7
    count = 0
    for ply, column in enumerate(moves[:42]):
        # a made row may hold any number
        if 1 <= column <= 7 and heights[column - 1] < 6:
            stones[heights[column - 1] * 7 + column - 1] = 1 if ply % 2 == 0 else -1
            heights[column - 1] += 1
            count += 1
    on_lines = stones[_lines()]
    free = {heights[c] * 7 + c for c in range(7) if heights[c] < 6}
    shown = []
    for player in (1, -1):
        own = (on_lines == player).sum(axis=1)
        is_open = (on_lines == -player).sum(axis=1) == 0
        threats = {int(cell) for line in _lines()[is_open & (own == 3)] for cell in line}
        threats = {cell for cell in threats if stones[cell] == 0}
        shown += [(own == 4).sum(), (is_open & (own == 3)).sum(), (is_open & (own == 2)).sum()]
        shown += [len(threats & free)]
    turn = 1 if count % 2 == 0 else -1
    return shown + [turn, count, shown[3] if turn == 1 else -shown[7]]


#: Task: its reader.
READERS = {
    "shapes_easy": lambda: OutlineReader(is_hard=False),
    "shapes_hard": lambda: OutlineReader(is_hard=True),
    "shuffle_easy": lambda: PatchReader(position=0.5),
    "shuffle_hard": lambda: PatchReader(position=0.1),
    "drop4_winners": BoardReader,
    "digits_few": SpreadingReader,
}
