"""The contract of a synthesizer.

Notation
--------
n, d, C : rows, columns, classes (C = 0 means regression)
M_c : number of categorical columns; they stand first in X
X : (n, d) float64; column j < M_c holds codes 0..cards[j]-1 (missing is a code of its own), the
    rest are numbers, roughly in [0, 1], where ``NaN`` is a missing value
y : (n,) float64 scaled target (C = 0) or int64 class codes 0..C-1; for several targets at once
    (n, k) float64, C = 0

A new synthesizer is one file with a subclass of :class:`Synthesizer` (two methods, ``_fit`` and
``_sample``; :mod:`~amlb_ext.synthesizers.prep` does the table work) and one line in the registry
of :mod:`amlb_ext.synthesizers`; it inherits ``tests/synthesizers/test_conformance.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from amlb_ext.core.errors import ConfigError, DataError
from amlb_ext.core.notes import Note

Self = TypeVar("Self", bound="Synthesizer")


@dataclass(frozen=True, kw_only=True)
class Judges:
    """A model that is tested, a teacher, and real rows, for a synthesizer that asks them.

    Attributes
    ----------
    X, y : ndarray of shape (r, d), (r,)
        Real rows in the notation of this module, with their targets.
    f : ndarray of shape (r,)
        The labels, class codes or numbers, that fits of the model give to rows they never saw.
    t : ndarray of shape (r,) or (r, C)
        The teacher's predictions or class probabilities, by fits that never saw the row.
    ask : callable
        New rows ``(n, d)`` to the model's labels and the teacher's predictions of them.
    user_rows : ndarray of shape (u, d)
        Rows that made rows may be asked to resemble.
    """

    X: np.ndarray
    y: np.ndarray
    f: np.ndarray
    t: np.ndarray
    ask: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    user_rows: np.ndarray


def best_labels(t: np.ndarray) -> np.ndarray:
    """Return the labels that predictions say are most likely: class codes, or the numbers."""
    return t if t.ndim == 1 else t.argmax(axis=1)


class Synthesizer(BaseEstimator, ABC):
    """A generative model of rows, conditional on the target.

    ``__init__`` only stores parameters; ``fit`` checks the table and calls ``_fit``; ``sample``
    chooses the targets, calls ``_sample`` and holds the result to the contract: codes are codes
    that a fitted row had, a number lies between the least and the largest fitted value of its
    column (``low_``, ``high_``), and ``NaN`` stands only where a fitted row had one. Both run on
    one thread, so that the order of sums, and with it every byte, is fixed.

    Attributes
    ----------
    cards_ : tuple of int
    n_classes_ : int
    targets_ : ndarray of shape (n,) or (n, k)
        The fitted rows' targets.
    low_, high_ : ndarray of shape (d - M_c,)
        Bounds of the numeric columns; a column without any value has bounds 0 and 0. ``_fit`` may
        widen them where a single row gives no range (:mod:`~amlb_ext.synthesizers.local`).
    notes_ : tuple of Note
        What happened while it learnt, for whoever reads of the rows.
    asks_judges : bool
        Of the class: whether ``fit`` makes use of judges.

    Examples
    --------
    >>> import numpy as np
    >>> class Bootstrap(Synthesizer):
    ...     def _fit(self, X, y, rng):
    ...         self.X_ = X
    ...     def _sample(self, y, rng):
    ...         return self.X_[rng.integers(len(self.X_), size=len(y))]
    >>> rng = np.random.default_rng(0)
    >>> X, y = np.array([[0.0, 0.5], [1.0, 0.7]]), np.array([0, 1])
    >>> new, labels = Bootstrap().fit(X, y, cards=(2,), n_classes=2, rng=rng).sample(5, rng)
    >>> new.shape, labels.dtype.name
    ((5, 2), 'int64')
    """

    asks_judges: ClassVar[bool] = False

    def fit(
        self: Self,
        X: np.ndarray,
        y: np.ndarray,
        *,
        cards: Sequence[int],
        n_classes: int,
        rng: np.random.Generator,
        judges: Judges | None = None,
    ) -> Self:
        """Learn the distribution of ``X`` given ``y``.

        Parameters
        ----------
        X : ndarray of shape (n, d)
            At least one row.
        y : ndarray of shape (n,) or (n, k)
        cards : sequence of int
            Number of codes of each categorical column.
        n_classes : int
            C, or 0 for regression.
        rng : numpy.random.Generator
        judges : Judges, optional
            For a synthesizer with ``asks_judges``; the others never look at them.

        Returns
        -------
        self

        Raises
        ------
        DataError
            The table breaks the notation above: no rows, other lengths, a code out of range, an
            infinite number, a class out of range, several targets that are classes.
        """
        X = np.asarray(X, dtype=float)
        self.cards_ = tuple(int(card) for card in cards)
        self.n_classes_ = int(n_classes)
        self._check_rows(X)
        expected_shape: tuple[int, ...] = (len(X),)
        # only a regression may have several targets: (n, k)
        if self.n_classes_ == 0:
            expected_shape += np.shape(y)[1:2]
        self.targets_ = self._check_targets(y, expected_shape)
        numbers = X[:, len(self.cards_) :]
        seen = ~np.isnan(numbers)
        # not nanmin, which warns of a column without any value; such a column has no range, and 0
        # keeps the infinities out of later sums
        has_value = seen.any(axis=0)
        low = np.where(seen, numbers, np.inf).min(axis=0)
        high = np.where(seen, numbers, -np.inf).max(axis=0)
        self.low_ = np.where(has_value, low, 0.0)
        self.high_ = np.where(has_value, high, 0.0)
        self.notes_: tuple[Note, ...] = ()
        self.judges_ = judges
        with threadpool_limits(1):
            self._fit(X, self.targets_, rng)
        # a fitted synthesizer travels without them
        self.judges_ = None
        return self

    @property
    def n_targets_(self) -> int:
        """How many values the fitted rows' targets have: k, or 1."""
        return 1 if self.targets_.ndim == 1 else self.targets_.shape[1]

    def sample(
        self,
        n: int,
        rng: np.random.Generator,
        y: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows.

        Parameters
        ----------
        n : int
            Number of rows, 0 or more.
        rng : numpy.random.Generator
        y : ndarray of shape (n,) or (n, k), optional
            Targets to draw rows for; drawn from the fitted rows' targets (with replacement)
            when omitted. A class that no fitted row has is served from all rows.

        Returns
        -------
        X : ndarray of shape (n, d)
        y : ndarray of shape (n,) or (n, k)

        Raises
        ------
        DataError
            ``y`` has another length than ``n``, or other targets than the fitted rows, or holds
            something that is no target.
        sklearn.exceptions.NotFittedError
            ``fit`` was not called.
        """
        if not hasattr(self, "targets_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted: call fit first")
        if y is None:
            y = self.targets_[rng.integers(len(self.targets_), size=n)]
        y = self._check_targets(y, (n, *self.targets_.shape[1:]))
        n_categorical = len(self.cards_)
        if n == 0:
            return np.empty((0, n_categorical + len(self.low_))), y
        with threadpool_limits(1):
            X = self._sample(y, rng)
        X[:, n_categorical:] = np.clip(X[:, n_categorical:], self.low_, self.high_)
        return X, y

    @abstractmethod
    def _fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> Any:
        """Learn from checked rows; sets attributes that end in ``_``."""

    @abstractmethod
    def _sample(
        self,
        y: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Return one new row of X for each of the checked targets, at least one."""

    def _check_rows(self, X: np.ndarray) -> None:
        """Raise where the rows break the notation of this module."""
        if X.ndim != 2 or len(X) == 0:
            raise DataError(
                f"a synthesizer needs a matrix with at least one row, got shape {X.shape}"
            )
        n_categorical = len(self.cards_)
        n_columns = X.shape[1]
        if n_columns < n_categorical:
            raise DataError(
                f"cards names {n_categorical} categorical columns, but X has {n_columns} columns"
            )
        codes = X[:, :n_categorical]
        numbers = X[:, n_categorical:]
        is_in_range = (codes >= 0) & (codes < np.array(self.cards_))
        if not np.all(is_in_range & (codes == np.rint(codes))):
            raise DataError(
                "a categorical column holds something other than its codes 0..card-1",
                "categorical columns stand first; a missing category is a code of its own",
            )
        if np.isinf(numbers).any():
            raise DataError(
                "a numeric column holds an infinite value",
                "NaN marks a missing one",
            )

    def _check_targets(
        self,
        y: np.ndarray,
        shape: tuple[int, ...],
    ) -> np.ndarray:
        """Return the targets as codes or as floats; raise where they are neither."""
        y = np.asarray(y)
        if y.shape != shape:
            expected = f"{shape[0]} targets"
            if len(shape) > 1:
                expected += f" of {shape[1]} values"
            raise DataError(f"expected {expected}, got an array of shape {y.shape}")
        if not np.isfinite(y.astype(float)).all():
            raise DataError("a target is missing or infinite")
        if self.n_classes_ == 0:
            return y.astype(float)
        is_in_range = (y >= 0) & (y < self.n_classes_)
        if not np.all(is_in_range & (y == np.rint(y))):
            last = self.n_classes_ - 1
            raise DataError(f"class codes must be whole numbers from 0 to {last}")
        return y.astype(np.int64)


def check_settings(settings: Mapping[str, Any], may_be_zero: Collection[str]) -> None:
    """Refuse a device that is unknown, and numbers that are too small.

    Parameters
    ----------
    settings : mapping
        Parameters of a synthesizer: ``device``, and whole numbers of 1 and more; others are not
        looked at.
    may_be_zero : collection of str
        Numbers for which 0 has a meaning of its own.

    Raises
    ------
    ConfigError
    """
    for name, value in settings.items():
        if name == "device" and value not in ("cpu", "auto"):
            raise ConfigError(f"device must be 'cpu' or 'auto', got {value!r}")
        least = 0 if name in may_be_zero else 1
        if isinstance(value, Real) and value < least:
            raise ConfigError(f"{name} must be at least {least}, got {value}")
