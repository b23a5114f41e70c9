"""S, the small labelled set that every method of a study builds from.

A method takes a :class:`Sample` and returns an :class:`~amlb_ext.experiments.fidelity.draw.Answer`,
or None where it has no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.experiments.fidelity.draw import Answer, Draw, Points
from amlb_ext.stats.ranking import expected_contrast


@dataclass
class Sample:
    """S, a small labelled set of a draw.

    Attributes
    ----------
    draw : Draw
    rows : ndarray of int
        Which of the draw's labelled rows.
    points : Points
    y : ndarray of shape (n,)
    delta : ndarray of shape (n, m + 1)
    bad : ndarray of int
        Positions within S.
    shared : dict
        What several methods compute once, e.g. augmented rows.
    """

    draw: Draw
    rows: np.ndarray
    points: Points = field(init=False)
    y: np.ndarray = field(init=False)
    delta: np.ndarray = field(init=False)
    bad: np.ndarray = field(init=False)
    shared: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.points = self.draw.labelled.take(self.rows)
        self.y = self.draw.y[self.rows]
        self.delta = self.points.delta(self.y)
        self.bad = np.flatnonzero(self.draw.bad(self.points, self.y))

    @property
    def key(self) -> str:
        """Name of this sample within its draw, for random streams."""
        return f"n{len(self.rows)}_{int(self.rows[0])}"

    def rng(self, word: str) -> np.random.Generator:
        """Return a random stream of this sample's own."""
        return random_stream(self.draw.seed, self.draw.table, "study", self.key, word)


Function = Callable[[Sample], Answer | None]


@dataclass(frozen=True)
class Method:
    """A way of building a benchmark."""

    function: Function
    text: str


def expected_contrasts(
    draw: Draw, points: Points, failures: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the teacher's ``E[b delta | x]`` per model and ``E[b | x]``.

    Parameters
    ----------
    draw : Draw
    points : Points
    failures : bool
        False counts every outcome, not only those on which F would be bad.

    Returns
    -------
    tau : ndarray of shape (n, m + 1)
    beta : ndarray of shape (n,)
    """
    y, chance = points.outcomes, points.chance
    bad = None
    if failures:
        bad = np.column_stack([draw.bad(points, column) for column in y.T])
    f = outcome_losses(points.f, y)
    both = [expected_contrast(outcome_losses(g, y), f, chance, bad) for g in points.g]
    return np.column_stack([tau for tau, _ in both]), both[0][1]


def outcome_losses(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``(n, q)`` losses of predictions for each of q possible targets.

    Examples
    --------
    >>> outcome_losses(np.array([[0.25, 0.75]]), np.array([[0, 1]])).tolist()
    [[1.125, 0.125]]
    """
    if f.ndim == 1:
        return (f[:, None] - y) ** 2
    own = np.take_along_axis(f, y.astype(int), axis=1)
    return (f**2).sum(axis=1)[:, None] - 2 * own + 1
