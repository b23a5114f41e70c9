"""S, the small labelled set that every method of a study builds from.

A method takes a :class:`Sample` and returns an
:class:`~benchmarks.studies.fidelity.answer.Answer`, or None where it has no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.core.row_losses import outcome_losses
from amlb_ext.stats.ranking import expected_contrast
from benchmarks.studies.fidelity.answer import Answer
from benchmarks.studies.fidelity.draw import Draw, Points


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
        self.points = self.draw.labelled.take_rows(self.rows)
        self.y = self.draw.y[self.rows]
        self.delta = self.points.delta(self.y)
        self.bad = np.flatnonzero(self.draw.is_bad(self.points, self.y))

    @property
    def key(self) -> str:
        """Name of this sample within its draw, for random streams."""
        return f"n{len(self.rows)}_{int(self.rows[0])}"

    def stage_stream(self, stage: str) -> np.random.Generator:
        """Return a random stream of this sample's own.

        Parameters
        ----------
        stage : str
            What the stream is for. It decides every number drawn, so it must never change.
        """
        return random_stream(self.draw.seed, self.draw.table, "study", self.key, stage)


Function = Callable[[Sample], Answer | None]


@dataclass(frozen=True)
class Method:
    """A way of building a benchmark.

    Attributes
    ----------
    function : callable
    text : str
        One line, for the page of a study.
    """

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
    outcomes = points.outcomes
    is_bad = None
    if failures:
        # one column per possible outcome of a row
        is_bad = np.column_stack([draw.is_bad(points, y) for y in outcomes.T])
    loss_of_f = outcome_losses(points.f, outcomes)
    tau = []
    for g in points.g:
        model_tau, beta = expected_contrast(
            outcome_losses(g, outcomes), loss_of_f, points.chance, is_bad
        )
        tau.append(model_tau)
    # beta depends on F alone, so that of the last model is that of all
    return np.column_stack(tau), beta
