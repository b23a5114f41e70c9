"""S, the small labelled set that every method of a study builds from, and what a method says.

A method takes a :class:`Sample` and returns an :class:`Answer`, or None where it has no rows.

Notation
--------
m : candidates;  delta : loss of a model minus loss of F, so that negative is better than F
r : (m,) the reference's delta of each candidate, the twin of F left out;  a : the answer's
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amlb_ext.core.rng import random_stream
from amlb_ext.stats.ranking import kendall_tau
from amlb_ext.stats.weighted_mean import MeanEstimate, weighted_mean_interval
from benchmarks.studies.fidelity.draw import Draw, Points

#: The figures of :func:`judge_answer`, and what they mean.
FIGURES = {
    "tau": "agreement of rankings (Kendall's tau-b)",
    "regret": "loss of the model one would pick, 0 the best, 1 an average candidate",
    "coverage": "share of candidates whose interval holds the reference",
    "width": "mean width of intervals, in mean |delta| of the reference",
    "claims": "share of candidates called significantly better than F",
    "false_claims": "share of those claims where the reference says worse than F",
    "twin": "the twin of F against F, in mean |delta|; negative: it seems better",
}


@dataclass(frozen=True)
class Answer:
    """What one way of building a benchmark says of each model.

    Attributes
    ----------
    point : ndarray of shape (m + 1,)
        Estimated delta; the last model is the twin of F.
    low, high : ndarray of shape (m + 1,)
        95 % interval; NaN where the method has none.
    rows : int
        Rows that the answer rests on.
    """

    point: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: int

    @classmethod
    def from_estimates(cls, estimates: Sequence[MeanEstimate], rows: int) -> Answer:
        """Return the answer that has one estimate per model."""
        return cls(
            point=np.array([estimate.point for estimate in estimates]),
            low=np.array([estimate.low for estimate in estimates]),
            high=np.array([estimate.high for estimate in estimates]),
            rows=rows,
        )


def average_rows(
    delta: np.ndarray,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
) -> Answer | None:
    """Return weighted means with intervals clustered by the real row; None without rows.

    Parameters
    ----------
    delta : ndarray of shape (n, m + 1)
    weights : ndarray of shape (n,), optional
    clusters : ndarray of shape (n,), optional
        The real row that each row comes from; every row is its own when omitted.
    """
    if not len(delta):
        return None
    # one column per model, each with an interval of its own
    estimates = [
        weighted_mean_interval(model_delta, weights, clusters)
        for model_delta in delta.T
    ]
    return Answer.from_estimates(estimates, len(delta))


def without_interval(point: np.ndarray, rows: int) -> Answer:
    """Return a score that has no interval."""
    # NaN, not the point: an interval of no width would claim that it is sure
    no_limit = np.full(len(point), np.nan)
    return Answer(point=point, low=no_limit, high=no_limit, rows=rows)


def judge_answer(answer: Answer, reference: np.ndarray) -> dict[str, float]:
    """Return :data:`FIGURES` of an answer; NaN where one has no meaning.

    Examples
    --------
    >>> r = np.array([-0.2, 0.1, 0.3, 0.0])
    >>> figures = judge_answer(Answer(r, r - 0.1, r + 0.1, 50), r)
    >>> figures["tau"], figures["regret"], figures["coverage"], round(figures["claims"], 3)
    (1.0, 0.0, 1.0, 0.333)
    """
    # the last model is the twin: it is judged apart, since it is F but for chance
    r = reference[:-1]
    a = answer.point[:-1]
    low = answer.low[:-1]
    high = answer.high[:-1]
    figures = dict.fromkeys(FIGURES, float("nan"))
    figures["tau"] = kendall_tau(a, r)

    # candidates that are all alike leave nothing to regret
    spread = float(r.mean() - r.min())
    if spread > 0:
        figures["regret"] = float(r[a.argmin()] - r.min()) / spread

    # differences of loss have the unit of the reference's own
    size = float(np.abs(r).mean())
    if size > 0:
        figures["twin"] = float(answer.point[-1]) / size

    has_interval = np.isfinite(low) & np.isfinite(high)
    if has_interval.any():
        is_covered = (low <= r) & (r <= high)
        figures["coverage"] = float(is_covered[has_interval].mean())
        if size > 0:
            figures["width"] = float((high - low)[has_interval].mean()) / size
        is_claimed = has_interval & (high < 0)
        figures["claims"] = float(is_claimed.mean())
        if is_claimed.any():
            figures["false_claims"] = float((r > 0)[is_claimed].mean())
    return figures


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


#: Every way of building a benchmark that a protocol may name.
METHODS: dict[str, Method] = {}


def method(function: Function) -> Function:
    """Add a function to the methods, under its name; its docstring is the text of the page."""
    text = (inspect.getdoc(function) or "").replace("\n", " ").rstrip(".")
    METHODS[function.__name__] = Method(function, text)
    return function


def outcome_losses(f: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return ``(n, q)`` losses of predictions for each of q possible targets.

    Squared error for a number, the Brier score ``sum_c (f_c - 1[y = c])^2`` for a class.

    Examples
    --------
    >>> outcome_losses(np.array([[0.25, 0.75]]), np.array([[0, 1]])).tolist()
    [[1.125, 0.125]]
    """
    if f.ndim == 1:
        return (f[:, None] - y) ** 2
    # expanded: the sum of all f_c^2 is the same for every outcome
    outcome_chance = np.take_along_axis(f, y.astype(int), axis=1)
    sum_of_squares = (f**2).sum(axis=1)[:, None]
    return sum_of_squares - 2 * outcome_chance + 1


def expected_contrast(
    loss_g: np.ndarray,
    loss_f: np.ndarray,
    probabilities: np.ndarray,
    bad: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return a teacher's ``E[b d | x]`` and ``E[b | x]`` over its outcomes y_1..y_m.

    .. math:: \tau_i = \sum_j p_{ij} b_{ij} (l_G(x_i, y_j) - l_F(x_i, y_j)), \quad
              \beta_i = \sum_j p_{ij} b_{ij}

    Parameters
    ----------
    loss_g, loss_f : ndarray of shape (N, m)
        Loss if the outcome were ``y_j``.
    probabilities : ndarray of shape (N, m)
        The teacher's probability of each outcome; rows sum to 1.
    bad : ndarray of shape (N, m), bool, optional
        Whether F would be bad; every outcome counts when omitted.

    Returns
    -------
    contrast : ndarray of shape (N,)
    mass : ndarray of shape (N,)
        All ones without ``bad``.

    Examples
    --------
    >>> both = expected_contrast(np.array([[0.2, 0.8]]), np.array([[0.0, 1.0]]),
    ...                          np.array([[0.5, 0.5]]), np.array([[False, True]]))
    >>> [round(float(a[0]), 3) for a in both]  # .5 (.8 - 1), .5
    [-0.1, 0.5]
    """
    mass = np.asarray(probabilities, dtype=float)
    if bad is not None:
        # P(y_j and bad | x): outcomes at which F would not be bad do not count
        mass = mass * np.asarray(bad, dtype=float)
    gap = np.asarray(loss_g, dtype=float) - np.asarray(loss_f, dtype=float)
    contrast = (mass * gap).sum(axis=1)
    return contrast, mass.sum(axis=1)


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
