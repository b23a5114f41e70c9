"""Searches among mixtures of initial generators, each with ``ask`` and ``tell``.

``ask`` returns the next batch of coefficients, ``(k, N)``; ``tell`` takes their values, ``(k,)``.
An empty batch says that the search is over.

Notation
--------
N : number of initial generators theta_k, each a vector of D weights
c : (N,) coefficients with sum 1; the generator of c is theta(c) = sum_k c_k theta_k
f : objective, larger is better; a batch of c has values (k,)
x, v, p, g, w : position and velocity of a particle, its best position, the best and the worst
    position of all (Feng, Wang, Shi, Tsvetkov, "Data Swarms", Algorithm 1)

Theorem. The velocity of Algorithm 1 is a sum of *scalars* times differences of visited points, and
starts at zero or at such a difference. So every visited point is a combination of the initial
generators whose coefficients add up to one: the search has N - 1 dimensions, however many weights a
generator has, and running it on c is the same algorithm.
``tests/synthesizers/test_swarm_particles.py`` holds both searches to each other.

NOTE[OWN]: libraries of particle swarms draw a random number for each coordinate, which leaves the
affine hull; only scalars, the normaliser C, the term that repels and a start at given generators
make the algorithm of the paper.

Its rivals are CMA-ES along the N - 1 directions that keep the sum (Hansen, The CMA Evolution
Strategy: A Tutorial, 2016; DEAP's ``cma.Strategy`` is the implementation) and mixtures at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from deap import base, cma

from amlb_ext.core.errors import ConfigError
from amlb_ext.core.rng import draw_int_seed

#: The least number of initial generators; with two the hull is a line.
LEAST_GENERATORS = 3
#: Concentration of the weights of :class:`RandomSoups`.
SOUP_CONCENTRATION = 0.5
#: Restarts of :class:`CodeSwarm`: iterations in which a particle is left alone afterwards.
COOLDOWN = 3
#: Of Algorithm 1: phi_v (inertia), phi_p (cognitive), phi_g (social) and phi_w (repel).
WEIGHTS = np.array([0.2, 0.3, 0.4, 0.05])
#: Of :class:`CodeSwarm`: what a step is multiplied with after every particle, and its floor.
STEP_FACTOR, LEAST_STEP = 0.95, 0.1


@dataclass(frozen=True, kw_only=True)
class SwarmSettings:
    """Hyper-parameters of the particle swarm, in the notation of the paper.

    Attributes
    ----------
    step : float
        lambda, the length of a step.
    iterations : int
        K.
    patience : int
        c: iterations without a better value that end the search.
    """

    step: float = 0.8
    iterations: int = 30
    patience: int = 5


class PaperSwarm:
    """Algorithm 1 of the paper, by the letter.

    Parameters
    ----------
    start : ndarray of shape (N, D)
        The initial generators; the identity searches among coefficients.
    rng : numpy.random.Generator
    settings : SwarmSettings, optional

    Attributes
    ----------
    best : ndarray of shape (D,)
        g, the best position so far; of a noisy objective the luckiest one.
    best_value : float
    history : list of float
        ``best_value`` after each iteration.

    References
    ----------
    .. [1] Feng, Wang, Shi, Tsvetkov, Data Swarms: Optimizable Generation of Synthetic Evaluation
       Data, Algorithm 1.

    Examples
    --------
    >>> swarm = PaperSwarm(np.eye(3), np.random.default_rng(0))
    >>> while len(batch := swarm.ask()):
    ...     swarm.tell(-((batch - [0.0, 1.5, -0.5]) ** 2).sum(axis=1))
    >>> bool(abs(swarm.best.sum() - 1) < 1e-12)
    True
    """

    def __init__(
        self,
        start: np.ndarray,
        rng: np.random.Generator,
        settings: SwarmSettings | None = None,
    ) -> None:
        check_generators(len(start))
        self.settings = settings or SwarmSettings()
        self.rng = rng
        self.x = start.astype(float)
        self.v = self._first_velocities()
        self.p = self.x.copy()
        self.p_values = np.full(len(start), -np.inf)
        self.best = self.x[0].copy()
        self.best_value = -np.inf
        self.worst = self.x[0].copy()
        self.worst_value = np.inf
        self.step = self.settings.step
        self.history: list[float] = []
        self._improved_at = 0

    def _first_velocities(self) -> np.ndarray:
        return np.zeros_like(self.x)

    def ask(self) -> np.ndarray:
        """Return the positions of all particles, or none where the search is over."""
        # the first values are those of the start, before any iteration
        done = len(self.history) - 1
        since_gain = done - self._improved_at
        if done >= self.settings.iterations or since_gain >= self.settings.patience:
            return self.x[:0]
        return self.x.copy()

    def tell(self, values: np.ndarray) -> None:
        """Remember the best and the worst position, and move every particle."""
        values = np.asarray(values, dtype=float)
        is_better = values > self.p_values
        self.p[is_better] = self.x[is_better]
        self.p_values[is_better] = values[is_better]
        if values.max() > self.best_value:
            self.best_value = float(values.max())
            self.best = self.x[values.argmax()].copy()
            self._improved_at = len(self.history)
        if values.min() < self.worst_value:
            self.worst_value = float(values.min())
            self.worst = self.x[values.argmin()].copy()
        self.history.append(self.best_value)
        self._before_moves(values)
        for i in range(len(self.x)):
            self._move_particle(i)

    def _before_moves(self, values: np.ndarray) -> None:
        """Do what comes between the values and the moves; nothing in the paper."""

    def _move_particle(self, i: int) -> None:
        # one random number per term, not per coordinate: line 11 of Algorithm 1
        weights = self.rng.random(4) * WEIGHTS
        total = weights.sum()
        terms = np.stack(
            [
                self.v[i],
                self.p[i] - self.x[i],
                self.best - self.x[i],
                self.x[i] - self.worst,
            ]
        )
        self.v[i] = (weights / total) @ terms
        self.x[i] = self.x[i] + self.step * self.v[i]
        self._after_move()

    def _after_move(self) -> None:
        """Do what follows the move of one particle; nothing in the paper."""


class CodeSwarm(PaperSwarm):
    """What the authors' published code does and the paper does not say.

    NOTE[DIFF], each against the paper: a particle starts towards another one; the step shrinks
    after every *particle*; a particle whose value is no better than its first one returns to its
    best position with velocity zero and is then left alone for three iterations. The look back
    rounds to nothing, so all particles restart in the first iteration and the first velocities
    are never used.

    Parameters are those of :class:`PaperSwarm`.
    """

    def _first_velocities(self) -> np.ndarray:
        n = len(self.x)
        self._cooldown = np.zeros(n, dtype=int)
        self._first_values: np.ndarray | None = None
        velocities = np.empty_like(self.x)
        for i in range(n):
            # any particle but itself
            other = (i + 1 + self.rng.integers(n - 1)) % n
            velocities[i] = self.x[other] - self.x[i]
        return velocities

    def _before_moves(self, values: np.ndarray) -> None:
        if self._first_values is None:
            self._first_values = values.copy()
        is_stuck = values <= self._first_values
        restarts = is_stuck & (self._cooldown == 0)
        self._cooldown = np.where(restarts, COOLDOWN, np.maximum(0, self._cooldown - 1))
        self.x[restarts] = self.p[restarts]
        self.v[restarts] = 0.0

    def _after_move(self) -> None:
        self.step = max(LEAST_STEP, self.step * STEP_FACTOR)


class RandomSoups:
    """Convex mixtures (model soups) at random, after the corners: the start itself.

    Parameters
    ----------
    n_generators : int
    rng : numpy.random.Generator
    evaluations : int
        Budget, the N corners included.

    Examples
    --------
    >>> soups = RandomSoups(4, np.random.default_rng(0), evaluations=8)
    >>> soups.ask().shape, bool((soups.ask() >= 0).all()), soups.ask().shape
    ((4, 4), True, (0, 4))
    """

    def __init__(
        self, n_generators: int, rng: np.random.Generator, evaluations: int
    ) -> None:
        check_generators(n_generators)
        self.n_generators = n_generators
        self.rng = rng
        self.left = evaluations
        self._is_first = True

    def ask(self) -> np.ndarray:
        """Return N coefficients, first the corners: the initial generators themselves."""
        n = min(self.n_generators, self.left)
        self.left -= n
        if self._is_first:
            self._is_first = False
            return np.eye(self.n_generators)[:n]
        return self._draw(n)

    def tell(self, values: np.ndarray) -> None:
        """Learn nothing."""

    def _draw(self, n: int) -> np.ndarray:
        concentration = np.full(self.n_generators, SOUP_CONCENTRATION)
        return self.rng.dirichlet(concentration, size=n)


def sum_to_one_basis(n_generators: int) -> np.ndarray:
    """Return an orthonormal basis of the directions along which coefficients keep their sum.

    Returns
    -------
    ndarray of shape (N - 1, N)

    Examples
    --------
    >>> basis = sum_to_one_basis(4)
    >>> bool(np.allclose(basis.sum(axis=1), 0)), bool(np.allclose(basis @ basis.T, np.eye(3)))
    (True, True)
    """
    centred = np.eye(n_generators) - 1 / n_generators
    # the left-over singular vector is the constant one
    _, _, directions = np.linalg.svd(centred)
    return directions[: n_generators - 1]


def check_generators(n_generators: int) -> None:
    """Raise where a hull of so few generators is nothing to search in."""
    if n_generators < LEAST_GENERATORS:
        raise ConfigError(
            f"{n_generators} initial generators, a swarm needs {LEAST_GENERATORS} or more",
            f"give {LEAST_GENERATORS} or more",
        )


# CMA-ES, a rival.


#: First standard deviation along each direction; corners lie about 1 from the centre.
FIRST_SPREAD = 0.3


class _Fitness(base.Fitness):
    """One objective, maximised."""

    weights = (1.0,)


class _Point(np.ndarray):
    """A point with a fitness, as DEAP wants it."""

    fitness: _Fitness


class CmaSearch:
    """CMA-ES around the uniform soup.

    Parameters
    ----------
    n_generators : int
        N, also the size of a batch.
    rng : numpy.random.Generator
    evaluations : int
        Budget; the corners are evaluated first, so that no search returns less than the best of
        them.

    Examples
    --------
    >>> search = CmaSearch(4, np.random.default_rng(0), evaluations=12)
    >>> search.ask().tolist() == np.eye(4).tolist()
    True
    >>> search.tell(np.zeros(4))
    >>> search.ask().sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self, n_generators: int, rng: np.random.Generator, evaluations: int
    ) -> None:
        check_generators(n_generators)
        self.n_generators = n_generators
        self.left = evaluations
        self.rng = rng
        self.basis = sum_to_one_basis(n_generators)
        self._points: list[_Point] = []
        self._is_first = True
        self.strategy = cma.Strategy(
            centroid=np.zeros(n_generators - 1),
            sigma=FIRST_SPREAD,
            lambda_=n_generators,
        )

    def ask(self) -> np.ndarray:
        """Return the next batch of coefficients."""
        # an incomplete batch cannot be told to the strategy
        if self.left < self.n_generators:
            return np.zeros((0, self.n_generators))
        self.left -= self.n_generators
        if self._is_first:
            return np.eye(self.n_generators)
        with _seeded_global_numpy(draw_int_seed(self.rng)):
            self._points = self.strategy.generate(_as_point)
        centre = np.full(self.n_generators, 1 / self.n_generators)
        return centre + np.array(self._points) @ self.basis

    def tell(self, values: np.ndarray) -> None:
        """Adapt mean and covariance to the values."""
        if self._is_first:
            # the corners were no draw of the strategy
            self._is_first = False
            return
        for point, value in zip(self._points, values, strict=True):
            point.fitness.values = (float(value),)
        self.strategy.update(self._points)


def _as_point(values: np.ndarray) -> _Point:
    point = np.asarray(values, dtype=float).view(_Point)
    point.fitness = _Fitness()
    return point


#: Any search among coefficients.
Search = PaperSwarm | RandomSoups | CmaSearch


@contextmanager
def _seeded_global_numpy(seed: int) -> Iterator[None]:
    """Lend DEAP numpy's global stream, which it insists on, and give it back as it was."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
