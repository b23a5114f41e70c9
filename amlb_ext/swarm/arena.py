"""One fold in which generators are compared: real rows in their roles, models, and the objective.

All generators of a batch pass the takers and the teacher in one predict: with some 3 ms of fixed
cost per predict, a batch of eight takes a fraction of the time of eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from amlb_ext.core.rng import random_stream
from amlb_ext.hardening.encode import Encoder, TargetEncoder
from amlb_ext.swarm.labels import (
    Labels,
    SupportGuard,
    Teacher,
    best_labels,
    performance,
)
from amlb_ext.swarm.objectives import MixedObjective, ScoredRows
from amlb_ext.swarm.space import GeneratorSpace
from amlb_ext.swarm.takers import Panel

#: Largest number of made rows in one predict.
MOST_ROWS_AT_ONCE = 50_000


@dataclass(frozen=True, kw_only=True)
class MadeBatch:
    """Rows of one generator.

    Attributes
    ----------
    features : DataFrame of shape (n, d)
        As they are written.
    Z : ndarray of shape (n, d)
        The same, encoded.
    y : ndarray of shape (n,)
        The generator's own labels.
    """

    features: pd.DataFrame
    Z: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Arena:
    """Everything that a search asks of one fold.

    Attributes
    ----------
    seed : int
    key : tuple
        Of the random streams: task, fold, ``swarm``.
    encoder : Encoder
    scale : TargetEncoder
    space : GeneratorSpace
    panel : Panel
        The takers that the search sees.
    teacher : Teacher
    guard : SupportGuard
    is_guarded : bool
        Whether a row without support counts as answered right.
    labels : Labels
    objective : MixedObjective
    real : ndarray of shape (M, r)
        How the takers do on the guard's real rows, by true labels.
    n_rows : int
        Made rows of each evaluation.
    common_numbers : bool
        The same random numbers for every generator, or fresh ones each time.
    user_rows : ndarray of shape (u, e) or None
        Rows of a user, in the guard's metric.
    """

    seed: int
    key: tuple[str | int, ...]
    encoder: Encoder
    scale: TargetEncoder
    space: GeneratorSpace
    panel: Panel
    teacher: Teacher
    guard: SupportGuard
    is_guarded: bool
    labels: Labels
    objective: MixedObjective
    real: np.ndarray
    n_rows: int
    common_numbers: bool
    user_rows: np.ndarray | None = None

    def make_rows(
        self, theta: np.ndarray, n: int, rng: np.random.Generator
    ) -> MadeBatch:
        """Draw rows of a generator, ``theta`` of shape (D,), as they would be written."""
        X, y = self.space.sample_weights(theta, n, rng)
        return self.as_written(X, y)

    def as_written(self, X: np.ndarray, y: np.ndarray) -> MadeBatch:
        """Return encoded rows with the rounding that writing brings."""
        features = self.encoder.inverse(X)
        return MadeBatch(
            features=features,
            Z=self.encoder.transform(features),
            y=self.scale.round_decimals(self.scale.snap(y)),
        )

    def values(
        self, batch: np.ndarray, *, n_rows: int | None = None, stream: str | int = 0
    ) -> np.ndarray:
        """Return the objective of each mixture.

        Parameters
        ----------
        batch : ndarray of shape (k, N)
            Coefficients.
        n_rows : int, optional
            Made rows of each; those of the search when omitted.
        stream : str or int
            Names the random numbers, where they are not common to all evaluations.
        """
        scored = self.scored(batch, n_rows=n_rows, stream=stream)
        return np.array([self.objective(rows) for rows in scored])

    def scored(
        self, batch: np.ndarray, *, n_rows: int | None = None, stream: str | int = 0
    ) -> list[ScoredRows]:
        """Draw rows of each mixture and let the takers answer them; as :meth:`values`."""
        made = []
        for number, c in enumerate(batch):
            # a stream of its own per evaluation, or one and the same for all of them
            name = ("common", stream) if self.common_numbers else (stream, number)
            rng = random_stream(self.seed, *self.key, "rows", *name)
            made.append(
                self.make_rows(c @ self.space.initial, n_rows or self.n_rows, rng)
            )
        return self.score(made)

    def score(
        self, made: Sequence[MadeBatch], labels: Labels | None = None
    ) -> list[ScoredRows]:
        """Let takers and teacher answer rows of several generators in one predict."""
        if not made:
            return []
        Z = np.concatenate([rows.Z for rows in made])
        y = np.concatenate([rows.y for rows in made])
        s_parts, supported_parts, nearest_parts = [], [], []
        for start in range(0, len(Z), MOST_ROWS_AT_ONCE):
            part = slice(start, start + MOST_ROWS_AT_ONCE)
            s = performance(
                self.panel.predict(Z[part]),
                labels or self.labels,
                y=y[part],
                t=self.teacher.predict(Z[part]),
            )
            supported, nearest = self.guard.nearest(Z[part])
            if self.is_guarded:
                # a row where no real one is earns nothing, whatever takers say there
                s = np.where(supported, s, 1.0)
            s_parts.append(s)
            supported_parts.append(supported)
            nearest_parts.append(nearest)
        s = np.concatenate(s_parts, axis=1)
        supported = np.concatenate(supported_parts)
        nearest = np.concatenate(nearest_parts)
        scored = []
        start = 0
        for rows in made:
            own = slice(start, start + len(rows.Z))
            start = own.stop
            scored.append(
                ScoredRows(
                    s=s[:, own],
                    real=self.real,
                    nearest=nearest[own],
                    supported=supported[own],
                    metric_rows=self.guard.metric(Z[own]),
                    user_rows=self.user_rows,
                )
            )
        return scored

    def written_labels(self, made: MadeBatch) -> np.ndarray:
        """Return the labels that are written: the generator's own, or the teacher's best."""
        if self.labels == "own":
            return made.y
        t = best_labels(self.teacher.predict(made.Z))
        return self.scale.round_decimals(self.scale.snap(t)) if t.dtype == float else t
