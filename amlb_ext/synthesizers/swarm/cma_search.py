"""CMA-ES within the hull of the initial generators, as a rival of the particle swarm.

It searches the N - 1 directions along which coefficients keep their sum of one. Source: Hansen,
The CMA Evolution Strategy: A Tutorial (2016); DEAP's ``cma.Strategy`` is the implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from deap import base, cma

from amlb_ext.core.rng import draw_int_seed
from amlb_ext.synthesizers.swarm.particles import check_generators, sum_to_one_basis

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


@contextmanager
def _seeded_global_numpy(seed: int) -> Iterator[None]:
    """Lend DEAP numpy's global stream, which it insists on, and give it back as it was."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
