"""A teacher corrected on real rows: its mean moves by what real neighbours say it misses.

Notation
--------
e : residual of real rows: ``y - T(x)``, or ``1[y = c] - T_c(x)`` per class
k : neighbours;  s : rows that the belief "T is right here" counts for

``T'(x) = T(x) + sum of e over the k nearest real rows / (k + s)``: training rows with
out-of-fold T, and the rows of S, which T never saw.
"""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

from amlb_ext.experiments.fidelity.draw import Draw, Points
from amlb_ext.hardening.baseline.estimator import fill_missing
from amlb_ext.hardening.made_rows.population_teacher import FLOOR

NEIGHBOURS = 40
BELIEF = 40.0


class Corrected:
    """The corrected teacher of a sample.

    Parameters
    ----------
    draw : Draw
    points : Points
        The rows of S.
    y : ndarray of shape (n,)
        Their targets.
    """

    def __init__(self, draw: Draw, points: Points, y: np.ndarray) -> None:
        models = draw.ready.models
        self.draw, self.n_classes = draw, models.n_classes
        T = np.concatenate([models.targets[0].oracle.out_of_fold_, points.t])
        labels = np.concatenate([models.y[:, 0], y])
        seen = np.eye(self.n_classes)[labels.astype(int)] if self.n_classes else labels
        self.gaps_ = (seen - T).reshape(len(labels), -1)
        Z = np.vstack([models.Z, points.Z])
        self.near_ = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(Z))).fit(
            fill_missing(Z)
        )

    def outcomes(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return possible targets and their probabilities, ``(n, q)`` each."""
        near = self.near_.kneighbors(fill_missing(points.Z), return_distance=False)
        shift = self.gaps_[near].sum(axis=1) / (near.shape[1] + BELIEF)
        if self.n_classes:
            p = np.clip(points.t + shift, FLOOR, None)
            return points.outcomes, p / p.sum(axis=1, keepdims=True)
        return self.draw.teacher.outcomes(points.Z, points.t + shift[:, 0])
