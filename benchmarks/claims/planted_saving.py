"""Losses of twelve candidates and F with a truth that is known: what can be mended, and how much.

F fails in one corner of the features, some 12 % of the rows. A candidate is a mixture of the truth
and of F, with an error of its own that waves over the features: ``lag`` is its share of F, ``wave``
the size of that error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CANDIDATES = 12
#: Classes of each kind; 0 is regression, ``tails`` is one with t noise of 3 degrees.
KINDS = {"binary": 2, "multiclass": 5, "regression": 0, "tails": 0}
CASES = ("much", "little", "nothing", "twins", "one of twelve")


@dataclass(frozen=True)
class Planted:
    """One case of one kind: draws rows, and knows what the best candidate saves."""

    case: str
    kind: str

    def draw(self, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return candidate losses (n, m), F's (n,) and region weights (n,)."""
        rng = np.random.default_rng(seed)
        X, corner, w = _features(rows, rng)
        truth, f, candidates, scale = self._models(X, corner)
        if truth.ndim == 1:
            tails = self.kind == "tails"
            noise = (
                rng.standard_t(3, rows) / np.sqrt(3) if tails else rng.normal(size=rows)
            )
            y = truth + scale * noise
            return np.column_stack([(g - y) ** 2 for g in candidates]), (f - y) ** 2, w
        drawn = (rng.random(rows)[:, None] > truth.cumsum(axis=1)).sum(axis=1)
        y = np.eye(truth.shape[1])[np.minimum(drawn, truth.shape[1] - 1)]
        G = [((g - y) ** 2).sum(axis=1) for g in candidates]
        return np.column_stack(G), ((f - y) ** 2).sum(axis=1), w

    def truth(self, rows: int = 200_000) -> float:
        """Return the best expected saving of the candidates and F.

        Features come from a huge fresh sample; the expectation over the target is exact, since a
        mean of squared t noise settles far too slowly.
        """
        X, corner, w = _features(rows, np.random.default_rng(10**9))
        truth, f, candidates, scale = self._models(X, corner)

        def expected(prediction: np.ndarray) -> np.ndarray:
            if truth.ndim == 1:
                return (prediction - truth) ** 2 + scale**2
            return (prediction**2 - 2 * prediction * truth).sum(axis=1) + 1

        level = w @ expected(f)
        return max(0.0, *(float(1 - w @ expected(g) / level) for g in candidates))

    def _models(
        self, X: np.ndarray, corner: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
        """Return the truth, F's and the candidates' predictions, and the noise's size."""
        fixed = np.random.default_rng(
            CASES.index(self.case)
        )  # the models, the same in every draw
        slopes, phases = (
            fixed.normal(size=(CANDIDATES, 4)),
            fixed.uniform(0, 6, CANDIDATES),
        )
        lag, wave = self._candidates()
        errors = (wave * np.sin(3 * X @ slopes.T + phases)).T
        f_is_truth = self.case in ("nothing", "twins")
        scale = 0.4 * np.where(corner > 0.5, 1.5, 1)
        classes = KINDS[self.kind]
        if not classes:
            truth = np.sin(3 * X[:, 1]) + X[:, 2]
            f = truth if f_is_truth else truth + 1.2 * corner
            candidates = [
                (1 - a) * truth + a * f + 2 * e
                for a, e in zip(lag, errors, strict=True)
            ]
            return truth, f, candidates, scale
        truth = np.exp(3 * X @ fixed.normal(size=(4, classes)))
        truth /= truth.sum(axis=1, keepdims=True)
        wrong = 0.9 * corner[:, None]
        f = (
            truth
            if f_is_truth
            else (1 - wrong) * truth + wrong * np.roll(truth, 1, axis=1)
        )
        candidates = []
        for number in range(CANDIDATES):
            tilt = np.where(
                np.arange(classes) == number % classes, 1, -1 / (classes - 1)
            )
            q = (
                (1 - lag[number]) * truth
                + lag[number] * f
                + np.outer(errors[number], tilt)
            )
            q = np.maximum(q, 1e-3)
            candidates.append(q / q.sum(axis=1, keepdims=True))
        return truth, f, candidates, scale

    def _candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lag and wave of each candidate."""
        same = np.ones(CANDIDATES)
        if self.case == "much":
            return np.linspace(0.05, 0.6, CANDIDATES), 0.05 * same
        if self.case == "little":
            return 0.85 * same, 0.05 * same
        if self.case == "nothing":
            return 0 * same, np.linspace(0.05, 0.4, CANDIDATES)
        if self.case == "twins":
            return 0 * same, 0.03 * same
        lag, wave = same.copy(), 0.4 * same
        lag[3], wave[3] = 0.1, 0.05
        return lag, wave


def _features(
    rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, how far each row lies in the corner, and its region weight."""
    X = rng.uniform(-1, 1, (rows, 4))
    corner = 1 / (1 + np.exp(-14 * (X[:, 0] - 0.75)))
    # weights are estimates: off by a factor that depends on the features
    return (
        X,
        corner,
        (0.7 * corner + 0.03) * np.exp(0.5 * np.sin(7 * X[:, 1] + 3 * X[:, 2])),
    )
